//! Which CPU, and what it says about itself.

use super::arch::{hypervisor_signature, nr, syscall6};
use super::{Errno, check};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The architecture as `uname -m` spells it.
pub const ARCH: &str = if cfg!(target_arch = "x86_64") {
    "x86_64"
} else {
    "aarch64"
};

/// The CPU this process is running on. C form: `getcpu(&cpu, NULL, NULL)`, getcpu(2).
///
/// # Errors
/// `ENOSYS` where a seccomp filter hides the call.
pub fn current() -> Result<usize, Errno> {
    let mut cpu: u32 = 0;
    // SAFETY: SYSCALL; the kernel writes one u32 into `cpu`.
    let result = unsafe { syscall6(nr::GETCPU, (&raw mut cpu) as usize, 0, 0, 0, 0, 0) };
    check(result).map(|_| cpu as usize)
}

/// The largest CPU number [`pin`] takes, plus one.
pub const LIMIT: usize = CpuSet::MAX_CPU;

/// Keeps this process, and children forked later, on one CPU. sched_setaffinity(2).
///
/// # Errors
/// `EINVAL` if the CPU does not exist, is offline, or is outside the cpuset.
pub fn pin(cpu: usize) -> Result<(), Errno> {
    if cpu >= LIMIT {
        return Err(Errno::INVAL);
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

/// How many CPUs this process and its children may run on. sched_getaffinity(2).
///
/// # Errors
/// `EINVAL` on a machine with more CPUs than [`LIMIT`].
pub fn usable() -> Result<u32, Errno> {
    Ok(sched_getaffinity(None)?.count())
}

/// The hypervisor's own signature, e.g. `KVMKVMKVM`, where the CPU gives one.
#[must_use]
pub fn hypervisor() -> Option<[u8; 12]> {
    hypervisor_signature()
}
