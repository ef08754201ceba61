//! x86_64. Numbers from arch/x86/entry/syscalls/syscall_64.tbl.

use core::arch::{asm, x86_64::__cpuid};

/// System-call numbers.
pub(in crate::sys) mod nr {
    pub(in crate::sys) const READ: usize = 0;
    pub(in crate::sys) const LSEEK: usize = 8;
    pub(in crate::sys) const MMAP: usize = 9;
    pub(in crate::sys) const MPROTECT: usize = 10;
    pub(in crate::sys) const MUNMAP: usize = 11;
    pub(in crate::sys) const BRK: usize = 12;
    pub(in crate::sys) const RT_SIGACTION: usize = 13;
    pub(in crate::sys) const RT_SIGPROCMASK: usize = 14;
    pub(in crate::sys) const IOCTL: usize = 16;
    pub(in crate::sys) const PREAD64: usize = 17;
    pub(in crate::sys) const MADVISE: usize = 28;
    pub(in crate::sys) const CLONE: usize = 56;
    pub(in crate::sys) const EXECVE: usize = 59;
    pub(in crate::sys) const GETRUSAGE: usize = 98;
    pub(in crate::sys) const PTRACE: usize = 101;
    pub(in crate::sys) const SYSLOG: usize = 103;
    pub(in crate::sys) const RT_SIGTIMEDWAIT: usize = 128;
    pub(in crate::sys) const MLOCK: usize = 149;
    pub(in crate::sys) const SWAPON: usize = 167;
    pub(in crate::sys) const SWAPOFF: usize = 168;
    pub(in crate::sys) const CLOCK_GETTIME: usize = 228;
    pub(in crate::sys) const EXIT_GROUP: usize = 231;
    pub(in crate::sys) const OPENAT: usize = 257;
    pub(in crate::sys) const UNSHARE: usize = 272;
    pub(in crate::sys) const GETCPU: usize = 309;
    pub(in crate::sys) const PROCESS_VM_READV: usize = 310;
    pub(in crate::sys) const USERFAULTFD: usize = 323;
    pub(in crate::sys) const MEMFD_SECRET: usize = 447;
}

/// The vDSO's clock (arch/x86/entry/vdso/vdso.lds.S).
pub(in crate::sys) const VDSO_CLOCK_GETTIME: &[u8] = b"__vdso_clock_gettime";

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
            "syscall", // number in rax, result in rax; clobbers rcx (rip) and r11 (flags)
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// The twelve bytes of CPUID leaf 0x4000_0000, when the hypervisor bit is set.
///
/// Source: Intel SDM on CPUID.1:ECX[31]; the leaf is a convention of all hypervisors
/// (Linux arch/x86/include/asm/processor.h, `hypervisor_cpuid_base`).
pub(in crate::sys) fn hypervisor_signature() -> Option<[u8; 12]> {
    const HYPERVISOR_PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & HYPERVISOR_PRESENT == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let mut signature = [0; 12];
    signature[0..4].copy_from_slice(&leaf.ebx.to_le_bytes());
    signature[4..8].copy_from_slice(&leaf.ecx.to_le_bytes());
    signature[8..12].copy_from_slice(&leaf.edx.to_le_bytes());
    Some(signature)
}
