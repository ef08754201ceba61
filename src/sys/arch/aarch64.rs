//! aarch64. Numbers from include/uapi/asm-generic/unistd.h.

use core::arch::asm;

/// System-call numbers.
pub(in crate::sys) mod nr {
    pub(in crate::sys) const IOCTL: usize = 29;
    pub(in crate::sys) const OPENAT: usize = 56;
    pub(in crate::sys) const LSEEK: usize = 62;
    pub(in crate::sys) const READ: usize = 63;
    pub(in crate::sys) const PREAD64: usize = 67;
    pub(in crate::sys) const EXIT_GROUP: usize = 94;
    pub(in crate::sys) const UNSHARE: usize = 97;
    pub(in crate::sys) const CLOCK_GETTIME: usize = 113;
    pub(in crate::sys) const SYSLOG: usize = 116;
    pub(in crate::sys) const PTRACE: usize = 117;
    pub(in crate::sys) const RT_SIGACTION: usize = 134;
    pub(in crate::sys) const RT_SIGPROCMASK: usize = 135;
    pub(in crate::sys) const RT_SIGTIMEDWAIT: usize = 137;
    pub(in crate::sys) const GETRUSAGE: usize = 165;
    pub(in crate::sys) const GETCPU: usize = 168;
    pub(in crate::sys) const BRK: usize = 214;
    pub(in crate::sys) const MUNMAP: usize = 215;
    pub(in crate::sys) const CLONE: usize = 220;
    pub(in crate::sys) const EXECVE: usize = 221;
    pub(in crate::sys) const MMAP: usize = 222;
    pub(in crate::sys) const SWAPON: usize = 224;
    pub(in crate::sys) const SWAPOFF: usize = 225;
    pub(in crate::sys) const MPROTECT: usize = 226;
    pub(in crate::sys) const MLOCK: usize = 228;
    pub(in crate::sys) const MADVISE: usize = 233;
    pub(in crate::sys) const PROCESS_VM_READV: usize = 270;
    pub(in crate::sys) const USERFAULTFD: usize = 282;
    pub(in crate::sys) const MEMFD_SECRET: usize = 447;
}

/// The vDSO's clock (arch/arm64/kernel/vdso/vdso.lds.S).
pub(in crate::sys) const VDSO_CLOCK_GETTIME: &[u8] = b"__kernel_clock_gettime";

/// One system call.
///
/// # Safety
/// The arguments must be valid for that call: see syscall(2) and the call's own page.
#[inline(always)]
pub(in crate::sys) unsafe fn syscall6(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let result: isize;
    // SAFETY: SYSCALL; the caller vouches for the arguments. No `nomem`: the kernel may
    // write through them. No `readonly` for the same reason.
    unsafe {
        asm!(
            "svc 0", // number in x8, result in x0; every other register is preserved
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}

/// aarch64 has no instruction that tells.
pub(in crate::sys) fn hypervisor_signature() -> Option<[u8; 12]> {
    None
}
