//! The machine: what no single file tells of its CPU, its memory, and what stands between
//! it and the metal.

use super::parse::{add, words};
use super::record::{Finding, Missing, Record, Why};
use crate::proc::choice::selected;
use crate::proc::cmdline::last_value;
use crate::proc::number;
use crate::sys::cpu;
use crate::sys::file::{each_name, open, read_whole};

/// Whether the CPU is known to be emulated by software, by QEMU's own signature or by the
/// word `cowitness.emulated` on the kernel's command line, which the lab puts there: not
/// every CPU can tell.
pub fn is_emulated() -> bool {
    let mut text = [0; 4096];
    let line = read_whole(c"/proc/cmdline", &mut text).unwrap_or_default();
    cpu::hypervisor() == Some(*b"TCGTCGTCGTCG") || last_value(line, b"cowitness.emulated").is_some()
}

pub fn note_all(record: &mut Record) {
    let found = turbo(record);
    record.note("turbo", found);
    let found = hypervisor(record);
    record.note("hypervisor", found);
    let found = hypervisor_dmi(record);
    record.note("hypervisor_dmi", found);
    let found = per_size(record, b"/sys~hugepages-#kB/enabled");
    record.note("mthp_enabled", found);
    let path = b"/sys~hugepages-#kB/shmem_enabled";
    let found = per_size(record, path);
    record.note("mthp_shmem_enabled", found);
}

/// Whether the CPU may exceed its nominal frequency; each driver has its own switch.
fn turbo(record: &mut Record) -> Finding {
    let mut switch = |path: &'static [u8], on| match record.files.head(path)? {
        [state @ (b'0' | b'1'), b'\n'] => Ok(*state == on),
        _ => Err(Why::OtherForm.into()),
    };
    let mut state = switch(b"/sys^intel_pstate/no_turbo", b'0');
    if state == Err(Missing::ABSENT) {
        state = switch(b"/sys^cpufreq/boost", b'1');
    }
    record.value.add(if state? { "on" } else { "off" });
    Ok(())
}

/// The signature that a hypervisor shows through the CPU.
fn hypervisor(record: &mut Record) -> Finding {
    match cpu::hypervisor() {
        Some(signature) => add(&mut record.value, &signature),
        None if cfg!(target_arch = "x86_64") => return Err(Missing::ABSENT),
        None => return Err(Why::NoInstruction.into()),
    }
    Ok(())
}

/// Makers of virtual machines as the firmware names them, for CPUs that do not tell
/// whether they are virtual. As systemd's src/basic/virt.c, and clouds that show their own.
const VIRTUAL: &[u8] = b"Akamai|Alibaba Cloud|Amazon EC2|Apple Virtualization|Google|Hetzner|\
    KVM|Microsoft Corporation|OpenStack|QEMU|Tencent Cloud|VMware";

/// Maker and product of a virtual machine. Those of a real one are left out: there they
/// tell one person's machine from another's.
fn hypervisor_dmi(record: &mut Record) -> Finding {
    let vendor = record.files.head(b"/sys/class/dmi/id/sys_vendor")?;
    let listed = words(VIRTUAL, b'|').any(|name| vendor.starts_with(name));
    if !listed && cpu::hypervisor().is_none() {
        return Err(Why::NotVirtual.into());
    }
    add(&mut record.value, vendor);
    record.value.add(" ");
    let product = record.files.head(b"/sys/class/dmi/id/product_name")?;
    add(&mut record.value, product);
    Ok(())
}

/// The sizes that have a folder of their own, as a sum of their KiB; all that there may be where no
/// folder tells.
fn sizes() -> u64 {
    let size =
        |name: &[u8]| number::decimal(name.strip_prefix(b"hugepages-")?.strip_suffix(b"kB")?);
    let mut sizes = 0;
    let mut take = |name: &[u8]| sizes |= size(name).unwrap_or(0);
    let folder = open(c"/sys/kernel/mm/transparent_hugepage");
    match folder.and_then(|folder| each_name(folder, &mut take)) {
        Ok(()) => sizes,
        Err(_) => u64::MAX,
    }
}

/// The choice for each size that has such a file, least first. The kernel has sizes from 8 KiB to 1 GiB
/// at most.
fn per_size(record: &mut Record, path: &'static [u8]) -> Finding {
    let mut found = Err(Missing::ABSENT);
    let sizes = sizes();
    for order in (3..=20).filter(|order| sizes >> order & 1 == 1) {
        record.files.kib = 1 << order;
        let text = match record.files.head(path) {
            Err(Missing::ABSENT) => continue,
            text => text?,
        };
        let value = &mut record.value;
        value.add(if found.is_ok() { " " } else { "" });
        value.number(1 << order).add("kB:");
        add(value, selected(text).ok_or(Why::OtherForm)?);
        found = Ok(());
    }
    found
}
