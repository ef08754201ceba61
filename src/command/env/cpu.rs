//! The CPU: what it is, how fast it runs, what stands between it and the metal.

use super::files::{field, line};
use super::record::{Finding, Missing, Record, Why, add};
use crate::proc::cpuinfo::{self, Model};
use crate::sys::cpu;

pub fn architecture(record: &mut Record, _: &str) -> Finding {
    record.say(cpu::ARCH)
}

/// The first CPU's model: on x86_64 a name, on aarch64 two numbers, such as
/// `Arm Neoverse-N1 0x41:0xd0c`, with names only where they are known.
pub fn model(record: &mut Record, name: &str) -> Finding {
    if cfg!(target_arch = "x86_64") {
        return field(record, name);
    }
    if let Some(Model::Arm(cpu)) = cpuinfo::model(record.files.head("/proc/cpuinfo")?) {
        for name in [cpu.maker(), cpu.name()].into_iter().flatten() {
            record.value.add(name).add(" ");
        }
    }
    field(record, "/proc/cpuinfo:CPU implementer\t")?;
    record.value.add(":");
    field(record, "/proc/cpuinfo:CPU part\t")
}

/// Whether the CPU may exceed its nominal frequency; each driver has its own switch.
pub fn turbo(record: &mut Record, _: &str) -> Finding {
    let switches = [
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", b'0'),
        ("/sys/devices/system/cpu/cpufreq/boost", b'1'),
    ];
    for (path, on) in switches {
        let state = match record.files.head(path) {
            Err(Missing::Absent) => continue,
            text => text?.first(),
        };
        return match state {
            Some(state) if *state == on => record.say("on"),
            Some(b'0' | b'1') => record.say("off"),
            _ => Err(Why::OtherForm.into()),
        };
    }
    Err(Missing::Absent)
}

/// The signature that a hypervisor shows through the CPU.
pub fn hypervisor(record: &mut Record, _: &str) -> Finding {
    match cpu::hypervisor() {
        Some(signature) => add(&mut record.value, &signature),
        None if cfg!(target_arch = "x86_64") => return Err(Missing::Absent),
        None => return Err(Why::NoInstruction.into()),
    }
    Ok(())
}

/// Makers of virtual machines as the firmware names them, for CPUs that do not tell
/// whether they are virtual. As systemd's src/basic/virt.c, and clouds that show their own.
const VIRTUAL: &str = "Akamai|Alibaba Cloud|Amazon EC2|Apple Virtualization|Google|Hetzner|\
    KVM|Microsoft Corporation|OpenStack|QEMU|Tencent Cloud|VMware";

/// Maker and product of a virtual machine. Those of a real one are left out: there they
/// tell one person's machine from another's.
pub fn hypervisor_dmi(record: &mut Record, path: &str) -> Finding {
    let vendor = record.files.head(path)?;
    let listed = VIRTUAL.as_bytes().split(|byte| *byte == b'|').any(|name| vendor.starts_with(name));
    if !listed && cpu::hypervisor().is_none() {
        return Err(Why::NotVirtual.into());
    }
    add(&mut record.value, vendor);
    record.value.add(" ");
    line(record, "/sys/class/dmi/id/product_name")
}
