//! What the texts of files say: pure functions, from a text to a value.

use super::files::HEAD_MAX;
use super::record::{Finding, Missing, Why};
use crate::proc::choice::selected;
use crate::proc::cmdline::{Word, parameters};
use crate::proc::cpuinfo::{self, Model};
use crate::proc::{number, status};
use crate::text::Text;
use core::slice::from_ref;

/// Adds what the kernel printed, without the blanks and NULs around it: device trees end
/// their strings with a NUL. If it is not UTF-8, each byte that is not ASCII becomes `?`.
pub fn add(text: &mut Text, mut bytes: &[u8]) {
    while let [b'\0' | b'\t'..=b'\r' | b' ', rest @ ..]
    | [rest @ .., b'\0' | b'\t'..=b'\r' | b' '] = bytes
    {
        bytes = rest;
    }
    if let Ok(part) = str::from_utf8(bytes) {
        text.add(part);
        return;
    }
    for byte in bytes {
        text.add(str::from_utf8(from_ref(byte)).unwrap_or("?"));
    }
}

/// What stands before and after the first `separator`; all and nothing without one.
pub fn halves(text: &[u8], separator: u8) -> (&[u8], &[u8]) {
    number::split_once(text, separator).unwrap_or((text, b""))
}

/// The parts of a text between separators.
pub fn words(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    core::iter::from_fn(move || {
        let word;
        (word, rest) = halves(rest, separator);
        (!word.is_empty()).then_some(word)
    })
}

/// The first line.
pub fn line(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    add(value, halves(text, b'\n').0);
    Ok(())
}

/// The choice that is marked with brackets.
pub fn choice(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    add(value, selected(text).ok_or(Why::OtherForm)?);
    Ok(())
}

/// A field among `Name:  value` lines.
pub fn field(value: &mut Text, text: &[u8], name: &[u8]) -> Finding {
    add(value, find_field(text, name)?);
    Ok(())
}

/// As [`field`], a size in KiB.
pub fn kib(value: &mut Text, text: &[u8], name: &[u8]) -> Finding {
    let size = number::kib(find_field(text, name)?);
    value.number(size.ok_or(Why::OtherForm)?);
    Ok(())
}

/// The first CPU's model.
pub fn cpu_model(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    match cfg!(target_arch = "aarch64") {
        true => arm_model(value, text),
        false => field(value, text, b"model name\t"),
    }
}

/// Two numbers, such as `Arm Neoverse-N1 0x41:0xd0c`, with names where they are known.
fn arm_model(value: &mut Text, text: &[u8]) -> Finding {
    if let Some(Model::Arm(cpu)) = cpuinfo::model(text) {
        for name in [cpu.maker(), cpu.name()].into_iter().flatten() {
            value.add(name).add(" ");
        }
    }
    field(value, text, b"CPU implementer\t")?;
    value.add(":");
    field(value, text, b"CPU part\t")
}

fn find_field<'t>(text: &'t [u8], name: &[u8]) -> Result<&'t [u8], Missing> {
    match status::field(text, name) {
        Some(value) => Ok(value),
        None if text.len() == HEAD_MAX => Err(Why::TooLong.into()),
        None => Err(Missing::ABSENT),
    }
}

/// What uid_map says where every user is itself: user_namespaces(7), `uid_m_show` in
/// kernel/user_namespace.c.
const IDENTITY: &[u8] = b"         0          0 4294967295\n";

/// Whether a user namespace maps every user to itself, as the first one does. In another,
/// capabilities count only for what belongs to it.
pub fn user_namespace(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    value.add(if text == IDENTITY {
        "initial"
    } else {
        "nested"
    });
    Ok(())
}

/// The load averages over 1, 5 and 15 minutes.
pub fn averages(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    let (averages, _) = load(text).ok_or(Why::OtherForm)?;
    add(value, averages);
    Ok(())
}

/// How many tasks were running or ready to run, this one included.
pub fn runnable(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    let (_, runnable) = load(text).ok_or(Why::OtherForm)?;
    value.number(runnable);
    Ok(())
}

/// `0.04 0.34 0.23 1/85 14926`: averages, and how many tasks are runnable; not the last
/// number, a process id. proc_loadavg(5).
fn load(text: &[u8]) -> Option<(&[u8], u64)> {
    let (before, tasks) = number::split_once(text, b'/')?;
    // With the process id begun, the tasks are not cut.
    number::split_once(tasks, b' ')?;
    let blank = before.iter().rposition(|byte| *byte == b' ')?;
    let (averages, runnable) = before.split_at_checked(blank)?;
    Some((averages, number::decimal(runnable.get(1..)?)?))
}

/// The words of the command line that matter to a measurement. No others are shown: they
/// can name hosts, disks and secrets.
///
/// Source: Documentation/admin-guide/kernel-parameters.txt.
const WORDS: &[u8] = b"\
    page_reporting.page_reporting_order mitigations pti nopti kpti spectre_v2 nospectre_v1 nospectre_v2 retbleed \
    hardened_usercopy init_on_alloc init_on_free page_poison debug_pagealloc slub_debug \
    kasan kfence.sample_interval randomize_kstack_offset \
    transparent_hugepage transparent_hugepage_shmem thp_anon thp_shmem hugepages \
    hugepagesz default_hugepagesz numa_balancing cgroup_disable swapaccount zswap.enabled \
    secretmem.enable mem psi \
    proc_mem.force_override norandmaps lsm security lockdown selinux apparmor \
    nosmt maxcpus isolcpus nohz nohz_full rcu_nocbs preempt idle clocksource tsc \
    processor.max_cstate intel_idle.max_cstate intel_pstate amd_pstate \
    cpufreq.default_governor cpuidle.off";

/// The listed words that the command line holds, in its order.
pub fn listed_words(value: &mut Text, text: &[u8], _: &[u8]) -> Finding {
    let mut gap = "";
    each_listed(text, WORDS, &mut |word| {
        value.add(gap);
        gap = " ";
        add(value, word.key);
        if let Some(setting) = word.value {
            value.add("=");
            add(value, setting);
        }
    })?;
    if gap.is_empty() {
        value.add("none of the listed words");
    }
    Ok(())
}

/// The value of the last word of that name. (Of proc_mem.force_override: whether
/// /proc/PID/mem may go where the mapping forbids it, fs/proc/base.c since 6.12; where the
/// command line says nothing, `config_proc_mem_*` decide.)
pub fn last_value(value: &mut Text, text: &[u8], name: &[u8]) -> Finding {
    let mut last = None;
    each_listed(text, name, &mut |word| last = word.value.or(last))?;
    add(value, last.ok_or(Missing::ABSENT)?);
    Ok(())
}

/// Gives `take` each word of the command line whose name is listed.
fn each_listed<'t>(text: &'t [u8], listed: &[u8], take: &mut dyn FnMut(Word<'t>)) -> Finding {
    if text.len() == HEAD_MAX {
        return Err(Why::TooLong.into());
    }
    for word in parameters(text) {
        if words(listed, b' ').any(|name| word.is(name)) {
            take(word);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Errno;
    use std::string::String;

    const STATUS: &[u8] = b"Name:\thead\nGroups:\t \nCapEff:\t000001fffeffffff\n";
    const MEMINFO: &[u8] = b"MemTotal:       24684092 kB\nMemFree:        24370700 kB\n";

    fn found(
        parse: super::super::record::Parse,
        text: &[u8],
        name: &[u8],
    ) -> Result<String, Missing> {
        let mut value = Text::new();
        parse(&mut value, text, name)?;
        Ok(value.read().unwrap().into())
    }

    #[test]
    fn what_the_kernel_printed() {
        let cases: [(&[u8], &str); 6] = [
            (b"  madvise \n", "madvise"),
            (b"AMD \xff\xfe EPYC\t2", "AMD ?? EPYC\t2"),
            ("µ\0x\0".as_bytes(), "µ\0x"),
            ("µ\0x\0\u{ff}".as_bytes(), "µ\0x\0\u{ff}"),
            (b"\0 \n\x0b", ""),
            (b"", ""),
        ];
        for (bytes, want) in cases {
            let mut value = Text::new();
            add(&mut value, bytes);
            assert_eq!(value.read(), Ok(want), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn parts_between_separators() {
        assert_eq!(halves(b"a b c", b' '), (&b"a"[..], &b"b c"[..]));
        assert_eq!(halves(b"abc", b' '), (&b"abc"[..], &b""[..]));
        assert!(words(b"a bc", b' ').eq([&b"a"[..], b"bc"]));
        assert_eq!(words(b"", b' ').count(), 0);
    }

    #[test]
    fn lines_and_choices() {
        assert_eq!(found(line, b" 0-3 \nsecond\n", b"").unwrap(), "0-3");
        assert_eq!(found(line, b"\n", b"").unwrap(), "");
        assert_eq!(
            found(choice, b"always [madvise] never\n", b"").unwrap(),
            "madvise"
        );
        assert_eq!(
            found(choice, b"always madvise\n", b""),
            Err(Why::OtherForm.into())
        );
    }

    #[test]
    fn fields() {
        assert_eq!(found(field, STATUS, b"CapEff").unwrap(), "000001fffeffffff");
        assert_eq!(found(field, STATUS, b"Groups").unwrap(), "");
        assert_eq!(found(field, STATUS, b"Cap"), Err(Missing::ABSENT));
        assert_eq!(
            found(field, &[b'\n'; HEAD_MAX], b"CapEff"),
            Err(Why::TooLong.into())
        );
        assert_eq!(found(kib, MEMINFO, b"MemTotal").unwrap(), "24684092");
        assert_eq!(
            found(kib, b"MemTotal: 7\n", b"MemTotal"),
            Err(Why::OtherForm.into())
        );
        assert_eq!(found(kib, MEMINFO, b"Nothing"), Err(Errno::NOENT.into()));
    }

    #[test]
    fn cpus_by_name_and_number() {
        let arm = |text| found(|value, text, _| arm_model(value, text), text, b"");
        let cases: [(&[u8], &str); 3] = [
            (
                b"CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
                "Arm Neoverse-N1 0x41:0xd0c",
            ),
            (
                b"CPU implementer\t: 0x41\nCPU part\t: 0xfff\n",
                "Arm 0x41:0xfff",
            ),
            (
                b"CPU implementer\t: 0x00\nCPU part\t: 0x001\n",
                "0x00:0x001",
            ),
        ];
        for (text, want) in cases {
            assert_eq!(arm(text).unwrap(), want);
        }
        assert_eq!(arm(b"CPU implementer\t: 0x41\n"), Err(Missing::ABSENT));
        if cfg!(target_arch = "x86_64") {
            let text = b"model\t\t: 2\nmodel name\t: AMD EPYC\n";
            assert_eq!(found(cpu_model, text, b"").unwrap(), "AMD EPYC");
        }
    }

    #[test]
    fn only_the_identity_is_initial() {
        let state = |text| found(user_namespace, text, b"").unwrap();
        assert_eq!(state(IDENTITY), "initial");
        let twice = [IDENTITY, IDENTITY].concat();
        let nested: [&[u8]; 4] = [
            b"",
            b"         0       1000          1\n",
            b"0 0 65536\n",
            &twice,
        ];
        assert!(nested.into_iter().all(|text| state(text) == "nested"));
    }

    #[test]
    fn the_process_id_is_left_out_of_the_load() {
        let text = b"0.04 0.34 10.23 12/85 14926\n";
        assert_eq!(found(averages, text, b"").unwrap(), "0.04 0.34 10.23");
        assert_eq!(found(runnable, text, b"").unwrap(), "12");
        let bad: [&[u8]; 6] = [
            b"",
            b"0.04 0.34",
            b"0.04 0.34 0.23 1/85",
            b"0.04 0.34 0.23 185 14926",
            b"0.04 0.34 0.23 x/85 14926",
            b"1/85 14926",
        ];
        for text in bad {
            for parse in [averages, runnable] {
                assert_eq!(
                    found(parse, text, b""),
                    Err(Why::OtherForm.into()),
                    "{}",
                    text.escape_ascii()
                );
            }
        }
    }

    #[test]
    fn only_listed_words_are_shown() {
        let cases: [(&[u8], &str); 6] = [
            (
                b"BOOT_IMAGE=/vmlinuz root=UUID=12 mitigations=off ip=10.0.0.1::::ada nosmt quiet\n",
                "mitigations=off nosmt",
            ),
            (b"mem=1G token=abc mem=2G", "mem=1G mem=2G"),
            (b"proc-mem.force-override=never", "proc-mem.force-override=never"),
            (b"quiet -- mitigations=off", "none of the listed words"),
            (b"lsm=\"yama,bpf\" memx=1", "lsm=yama,bpf"),
            (b"", "none of the listed words"),
        ];
        for (text, want) in cases {
            assert_eq!(
                found(listed_words, text, b"").unwrap(),
                want,
                "{}",
                text.escape_ascii()
            );
        }
        let long = [b'x'; HEAD_MAX];
        assert_eq!(found(listed_words, &long, b""), Err(Why::TooLong.into()));
    }

    #[test]
    fn the_last_word_decides() {
        let name = b"proc_mem.force_override";
        let text = b"proc-mem.force_override=always proc_mem.force_override=never nosmt";
        assert_eq!(found(last_value, text, name).unwrap(), "never");
        assert_eq!(found(last_value, b"nosmt", name), Err(Missing::ABSENT));
        assert_eq!(
            found(last_value, b"proc_mem.force_override", name),
            Err(Missing::ABSENT)
        );
    }

    #[test]
    fn the_list_of_words_has_no_double_entry() {
        let mut all: std::vec::Vec<_> = words(WORDS, b' ').collect();
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(
            (all.len(), WORDS.split(|byte| *byte == b' ').count()),
            (count, count)
        );
    }
}
