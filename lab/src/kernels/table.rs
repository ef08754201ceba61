//! The table of machines, `qemu/kernels.toml`: read once, compiled in.

use crate::readers::Class;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

const TEXT: &str = include_str!("../../../qemu/kernels.toml");

/// A CPU that the appliance is built for, by the name that `uname -m` has for it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arch {
    /// Intel's and AMD's.
    #[serde(rename = "x86_64")]
    X86,
    /// Arm's, 64 bits.
    #[serde(rename = "aarch64")]
    Arm,
}

/// Both, for messages and loops.
pub const ARCHES: [Arch; 2] = [Arch::X86, Arch::Arm];

impl Arch {
    /// As `uname -m` says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// The CPU of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        ARCHES.into_iter().find(|arch| arch.name() == name)
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// How a CPU is emulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The emulator's program.
    pub qemu: String,
    /// Board and CPU.
    pub arguments: Vec<String>,
    /// The kernel's name for its serial port.
    pub console: String,
    /// Debian's name for the CPU.
    pub debian: String,
}

/// What all guests have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Seconds that a guest may take from its start to its verdict.
    pub deadline_s: u64,
    /// Words of every kernel's command line.
    pub append: String,
}

/// What a kernel's sources and configuration say about reading.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Per cent of shared pages split by /proc/PID/mem.
    pub proc_split: u64,
    /// Per cent of shared pages split by process_vm_readv.
    pub vmread_split: u64,
    /// Per cent of shared pages split by PTRACE_PEEKDATA.
    pub ptrace_split: u64,
    /// `read` or an errno: PROT_NONE by /proc/PID/mem.
    pub prot_none_proc: String,
    /// The same by process_vm_readv.
    pub prot_none_vmread: String,
    /// The same by PTRACE_PEEKDATA.
    pub prot_none_ptrace: String,
    /// The same where nothing is mapped, by /proc/PID/mem.
    pub hole_proc: String,
    /// The same by process_vm_readv.
    pub hole_vmread: String,
    /// The same by PTRACE_PEEKDATA.
    pub hole_ptrace: String,
}

impl Expect {
    /// Per cent of shared pages that a reader of `class` splits.
    #[must_use]
    pub fn split(&self, class: Class) -> u64 {
        match class {
            Class::Proc => self.proc_split,
            Class::Vmread => self.vmread_split,
            Class::Ptrace => self.ptrace_split,
            // What it is for.
            Class::Hybrid => 0,
        }
    }

    /// What a page of PROT_NONE gives to a reader of `class`.
    #[must_use]
    pub fn prot_none(&self, class: Class) -> &str {
        match class {
            Class::Proc | Class::Hybrid => &self.prot_none_proc,
            Class::Vmread => &self.prot_none_vmread,
            Class::Ptrace => &self.prot_none_ptrace,
        }
    }

    /// What a page gives where nothing is mapped.
    #[must_use]
    pub fn hole(&self, class: Class) -> &str {
        match class {
            Class::Proc | Class::Hybrid => &self.hole_proc,
            Class::Vmread => &self.hole_vmread,
            Class::Ptrace => &self.hole_ptrace,
        }
    }
}

/// A kernel of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name here.
    pub name: String,
    /// The CPU.
    pub arch: Arch,
    /// Page size in KiB.
    pub page_kib: u64,
    /// Debian's suite.
    pub suite: String,
    /// The metapackage that it is resolved from.
    pub package: String,
    /// Words of its own for the kernel's command line.
    #[serde(default)]
    pub append: String,
    /// Why it is here.
    pub reason: String,
    /// What is to be seen on it.
    pub expect: Expect,
}

/// The whole table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    machine: BTreeMap<Arch, Board>,
    /// What all guests have in common.
    pub guest: Common,
    /// The kernels, in the order they are run.
    #[serde(rename = "kernel")]
    pub kernels: Vec<Kernel>,
}

impl Table {
    /// The table that this program was built with.
    ///
    /// # Panics
    /// Never in a program whose tests pass: they read the table.
    #[must_use]
    pub fn built_in() -> Self {
        toml::from_str(TEXT).expect("qemu/kernels.toml is read by the tests")
    }

    /// How `arch` is emulated.
    ///
    /// # Panics
    /// As [`Table::built_in`]: the table has both CPUs.
    #[must_use]
    pub fn board(&self, arch: Arch) -> &Board {
        &self.machine[&arch]
    }

    /// Kernels of `arch` (of any, if `None`) and of those `names` (all, if empty).
    ///
    /// # Errors
    /// What is asked for and not there, and what is.
    pub fn choose(&self, arch: Option<Arch>, names: &[String]) -> Result<Vec<&Kernel>, String> {
        let known = |name: &&String| self.kernels.iter().any(|kernel| kernel.name == **name);
        if let Some(name) = names.iter().find(|name| !known(name)) {
            let all: Vec<&str> = self.kernels.iter().map(|kernel| &*kernel.name).collect();
            let name = crate::text::printable(name.as_bytes());
            let all = all.join(", ");
            return Err(format!("unknown kernel '{name}'; kernels are {all}"));
        }
        let wanted = |kernel: &&Kernel| {
            arch.is_none_or(|arch| arch == kernel.arch)
                && (names.is_empty() || names.contains(&kernel.name))
        };
        let chosen: Vec<&Kernel> = self.kernels.iter().filter(wanted).collect();
        if chosen.is_empty() {
            return Err("no kernel is left: those named are of the other CPU".to_owned());
        }
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_sound() {
        let table = Table::built_in();
        for arch in ARCHES {
            assert!(table.board(arch).qemu.starts_with("qemu-system-"));
        }
        let names: BTreeSet<&str> = table.kernels.iter().map(|k| &*k.name).collect();
        assert_eq!(names.len(), table.kernels.len());
        for kernel in &table.kernels {
            assert!(kernel.name.contains(kernel.arch.name()), "{}", kernel.name);
            assert!([4, 16, 64].contains(&kernel.page_kib), "{}", kernel.name);
            // The name becomes a file's.
            assert!(
                !kernel.name.contains(['/', ',']) && !kernel.reason.is_empty(),
                "{}",
                kernel.name
            );
            let debian = &table.board(kernel.arch).debian;
            assert!(kernel.package.contains(&**debian), "{}", kernel.name);
        }
    }

    #[test]
    fn both_cpus_have_every_series() {
        let table = Table::built_in();
        for arch in ARCHES {
            for series in ["5.10", "6.1", "6.12", "forky", "backports"] {
                let name = format!("{series}-{arch}");
                assert_eq!(table.choose(Some(arch), &[name]).unwrap().len(), 1);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let table = Table::built_in();
        let error = table.choose(None, &["6.13".to_owned()]).unwrap_err();
        assert!(error.starts_with("unknown kernel '6.13'; kernels are 5.10-x86_64, "));
        let other = table.choose(Some(Arch::Arm), &["6.1-x86_64".to_owned()]);
        assert!(other.unwrap_err().starts_with("no kernel is left"));
    }
}
