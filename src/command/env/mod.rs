//! The environment record: what a result depends on, one `#key=value` a line.
//!
//! A value is what its source says, or why there is none: `absent` (the kernel here has no
//! such thing), `unreadable:EACCES` (it has, and refuses), `unknown:<why>` (there is no
//! telling), `empty`. Nothing in it names the machine or a person: the host name is never
//! asked for, and of the kernel's command line only listed words are shown.
//!
//! `FILES` lists what single files tell; [`invocation`] and [`machine`] know what none
//! tells, [`config`] the kernel's configuration. The appliance is budgeted in bytes and
//! this record is long: hence one function for each kind of file, and tables as texts.

mod command;
mod config;
mod files;
mod gzip;
mod invocation;
pub(super) mod kernel;
mod machine;
mod parse;
mod record;

pub use command::run;
pub use kernel::Kernel;
pub use machine::is_emulated;

use crate::cli::{Common, Effective};
use crate::emit::Sink;
use crate::emit::stream::{Preamble, StreamError};
use crate::sys::Clock;
use parse::{choice, field, kib, line};
use record::{Parse, Record};

/// What the record needs to know of this run.
pub struct Context<'a> {
    /// The command's name.
    pub command: &'static str,
    /// The value in effect of each option.
    pub effective: &'a Effective,
    /// Label and seed.
    pub common: Common,
    /// The clock that measures.
    pub clock: Clock,
    /// Bytes in a page.
    pub page_bytes: usize,
    /// The CPU this process is pinned to, if it is.
    pub cpu: Option<usize>,
}

/// How a value is found in the text of a file, and for which keys, one a line: the key, the
/// file, and for some what to look for in it. [`files::Files::expand`] tells what some
/// characters of a path stand for. One text for many keys: a table of slices would be twice
/// its size.
#[rustfmt::skip]
const FILES: &[(Parse, &[u8])] = &[
    (parse::listed_words, b"kernel_cmdline /proc/cmdline"),
    (parse::last_value, b"\
        proc_mem_force_override /proc/cmdline proc_mem.force_override\n\
        emulated /proc/cmdline cowitness.emulated"),
    (parse::cpu_model, b"cpu_model /proc/cpuinfo"),
    (line, b"\
        cpus_online /sys^online\n\
        smt /sys^smt/control\n\
        cpufreq_driver /sys^cpu%/cpufreq/scaling_driver\n\
        governor /sys^cpu%/cpufreq/scaling_governor\n\
        meltdown /sys^vulnerabilities/meltdown\n\
        spectre_v2 /sys^vulnerabilities/spectre_v2\n\
        clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource\n\
        hypervisor_type /sys/hypervisor/type\n\
        devicetree /proc/device-tree/compatible"),

    (kib, b"\
        ram_kib /proc/meminfo MemTotal\n\
        ram_available_kib /proc/meminfo MemAvailable\n\
        swap_kib /proc/meminfo SwapTotal"),
    (choice, b"\
        thp_enabled /sys~enabled\n\
        thp_defrag /sys~defrag\n\
        thp_shmem_enabled /sys~shmem_enabled"),
    (line, b"\
        thp_use_zero_page /sys~use_zero_page\n\
        thp_pmd_bytes /sys~hpage_pmd_size\n\
        ksm_run /sys/kernel/mm/ksm/run\n\
        zswap /sys/module/zswap/parameters/enabled\n\
        modules /modules/loaded\n\
        page_reporting_order /sys/module/page_reporting/parameters/page_reporting_order\n\
        cgroup_root_memory_max /sys/fs/cgroup/memory.max\n\
        numa_nodes_online /sys/devices/system/node/online\n\
        numa_balancing /proc/sys/kernel/numa_balancing\n\
        overcommit_memory /proc/sys/vm/overcommit_memory\n\
        max_map_count /proc/sys/vm/max_map_count\n\
        aslr /proc/sys/kernel/randomize_va_space\n\
        personality /proc/self/personality"),

    (parse::user_namespace, b"user_namespace /proc/self/uid_map"),
    (field, b"\
        cap_eff /proc/self/status CapEff\n\
        seccomp /proc/self/status Seccomp\n\
        no_new_privs /proc/self/status NoNewPrivs"),
    (line, b"\
        yama_ptrace_scope /proc/sys/kernel/yama/ptrace_scope\n\
        unprivileged_userfaultfd /proc/sys/vm/unprivileged_userfaultfd\n\
        lsm /sys/kernel/security/lsm\n\
        selinux_enforce /sys/fs/selinux/enforce\n\
        apparmor_mode /sys/module/apparmor/parameters/mode"),
    (choice, b"lockdown /sys/kernel/security/lockdown"),

    (parse::averages, b"loadavg /proc/loadavg"),
    (parse::runnable, b"tasks_runnable /proc/loadavg"),
];

/// Writes every line of the record into the preamble of a stream.
///
/// # Errors
/// The sink's.
pub fn write<S: Sink>(
    preamble: &mut Preamble<S>,
    context: &Context,
) -> Result<(), StreamError<S::Error>> {
    let mut result = Ok(());
    let mut note = |key: &str, value: &str| {
        if result.is_ok() {
            result = preamble.note(key, value);
        }
    };
    note_all(&mut Record::new(context, &mut note));
    result
}

fn note_all(record: &mut Record) {
    invocation::note_all(record);
    machine::note_all(record);
    for (parse, lines) in FILES {
        for line in parse::words(lines, b'\n') {
            record.note_file(*parse, line);
        }
    }
    config::note_all(record);
    invocation::note_options(record);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::string::String;
    use std::vec::Vec;

    /// What `write` notes for a run without options.
    pub(super) fn recorded(write: impl FnOnce(&mut Record)) -> Vec<(String, String)> {
        let context = Context {
            command: "env",
            effective: &Effective::default(),
            common: Common {
                label: "none\nof",
                quiet: false,
                seed: 7,
            },
            clock: Clock::system_call(),
            page_bytes: 4096,
            cpu: Some(0),
        };
        let mut noted = Vec::new();
        let mut note = |key: &str, value: &str| noted.push((key.into(), value.into()));
        write(&mut Record::new(&context, &mut note));
        noted
    }

    #[test]
    fn keys_are_snake_case_and_stand_once() {
        let mut seen = BTreeSet::new();
        for (key, value) in recorded(note_all) {
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            assert!(key.bytes().all(plain), "{key}");
            assert!(!key.starts_with("option_"), "{key}");
            assert!(key != "rows", "the stream's own");
            assert!(!value.is_empty(), "{key}");
            assert!(seen.insert(key.clone()), "{key} twice");
        }
        assert!(seen.len() > 70, "{}", seen.len());
    }

    #[test]
    fn every_line_of_the_table_has_a_key_and_a_path() {
        for (_, lines) in FILES {
            for line in lines.split(|byte| *byte == b'\n') {
                let parts: Vec<_> = line.splitn(3, |byte| *byte == b' ').collect();
                assert!(parts[1].starts_with(b"/"), "{}", line.escape_ascii());
                assert!(parts.iter().all(|part| !part.is_empty()));
            }
        }
    }

    #[test]
    fn what_this_run_was_asked_is_noted() {
        let noted = recorded(note_all);
        let value = |key| &noted.iter().find(|(noted, _)| noted == key).unwrap().1;
        assert_eq!(value("command"), "env");
        assert_eq!(value("label"), "none\nof");
        assert_eq!(value("seed"), "7");
        assert_eq!(value("pinned_cpu"), "0");
        assert_eq!(value("clock"), "syscall");
        assert_eq!(value("page_bytes"), "4096");
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(value("kernel"), release.trim_end());
        let version = std::fs::read_to_string("/proc/sys/kernel/version").unwrap();
        assert_eq!(value("kernel_version"), version.trim_end());
    }
}
