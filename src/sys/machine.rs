//! What the kernel says of the whole machine by calls that its documentation knows no failure of. A
//! filter (seccomp(2)) can deny any call; rustix gives back memory that nobody has written then.

use super::arch::{nr, syscall6};
use super::{Errno, check};
use core::mem::MaybeUninit;
use rustix::system::Sysinfo;

/// Bytes of one of uname(2)'s names, with the zeros behind it (include/uapi/linux/utsname.h).
const NAME_BYTES: usize = 65;

/// uname(2): names of the system, the host, the release, the version, the CPU, the domain. All empty
/// where the call is denied.
pub struct Names([[u8; NAME_BYTES]; 6]);

impl Names {
    /// Asks the kernel.
    #[must_use]
    pub fn now() -> Self {
        let mut names = [[0; NAME_BYTES]; 6];
        let at = (&raw mut names) as usize;
        // SAFETY: SYSCALL; the kernel writes one `struct new_utsname`, six names, into `names`.
        let _ = unsafe { syscall6(nr::UNAME, at, 0, 0, 0, 0, 0) };
        Self(names)
    }

    /// As `uname -r`.
    #[must_use]
    pub fn release(&self) -> &[u8] {
        self.name(2)
    }

    /// As `uname -v`.
    #[must_use]
    pub fn version(&self) -> &[u8] {
        self.name(3)
    }

    fn name(&self, place: usize) -> &[u8] {
        let name = &self.0[place];
        name.split(|&byte| byte == 0).next().unwrap_or(name)
    }
}

/// The machine's swap.
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    /// KiB of all of it.
    pub total_kib: u64,
    /// KiB in which nothing lies.
    pub free_kib: u64,
}

/// How much swap the machine has, which no mount can hide. sysinfo(2).
///
/// # Errors
/// Only where the call is denied.
pub fn swap() -> Result<Swap, Errno> {
    let mut info = MaybeUninit::<Sysinfo>::uninit();
    let at = info.as_mut_ptr() as usize;
    // SAFETY: SYSCALL; the kernel writes one `struct sysinfo` into `info`.
    check(unsafe { syscall6(nr::SYSINFO, at, 0, 0, 0, 0, 0) })?;
    // SAFETY: it has, all of it (kernel/sys.c: it clears its own before it fills it).
    let info = unsafe { info.assume_init() };
    let kib = |units| u64::from(info.mem_unit) * units / 1024;
    Ok(Swap {
        total_kib: kib(info.totalswap),
        free_kib: kib(info.freeswap),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::status::kib_field;

    #[test]
    fn names_are_those_of_proc() {
        let names = Names::now();
        for (name, file) in [(names.release(), "osrelease"), (names.version(), "version")] {
            let text = std::fs::read(std::format!("/proc/sys/kernel/{file}")).unwrap();
            assert_eq!(name, text.trim_ascii());
        }
    }

    /// The kernel's two accounts of the same; not where a container has a file of its own.
    #[test]
    fn swap_is_that_of_meminfo() {
        let text = std::fs::read("/proc/mounts").unwrap();
        if text.windows(13).any(|part| part == b"/proc/meminfo") {
            std::eprintln!("skipped: something is mounted over /proc/meminfo");
            return;
        }
        for _ in 0..100 {
            let swap = swap().unwrap();
            let text = std::fs::read("/proc/meminfo").unwrap();
            let kib = |name: &[u8]| kib_field(&text, name).unwrap_or(0);
            if (kib(b"SwapTotal"), kib(b"SwapFree")) == (swap.total_kib, swap.free_kib) {
                return;
            }
            // It came, went or was used in between.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("never the same");
    }
}
