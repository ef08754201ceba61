//! aarch64. Numbers from include/uapi/asm-generic/unistd.h.

use core::arch::asm;

/// System-call numbers.
pub(in crate::sys) mod nr {
    pub(in crate::sys) const DUP3: usize = 24;
    pub(in crate::sys) const UNLINKAT: usize = 35;
    pub(in crate::sys) const OPENAT: usize = 56;
    pub(in crate::sys) const LSEEK: usize = 62;
    pub(in crate::sys) const READ: usize = 63;
    pub(in crate::sys) const PREAD64: usize = 67;
    pub(in crate::sys) const EXIT_GROUP: usize = 94;
    pub(in crate::sys) const CLOCK_GETTIME: usize = 113;
    pub(in crate::sys) const SYSLOG: usize = 116;
    pub(in crate::sys) const PTRACE: usize = 117;
    pub(in crate::sys) const KILL: usize = 129;
    pub(in crate::sys) const RT_SIGACTION: usize = 134;
    pub(in crate::sys) const RT_SIGPROCMASK: usize = 135;
    pub(in crate::sys) const SETPGID: usize = 154;
    pub(in crate::sys) const GETRUSAGE: usize = 165;
    pub(in crate::sys) const PRCTL: usize = 167;
    pub(in crate::sys) const GETCPU: usize = 168;
    pub(in crate::sys) const BRK: usize = 214;
    pub(in crate::sys) const CLONE: usize = 220;
    pub(in crate::sys) const EXECVE: usize = 221;
    pub(in crate::sys) const MADVISE: usize = 233;
    pub(in crate::sys) const WAIT4: usize = 260;
    pub(in crate::sys) const PROCESS_VM_READV: usize = 270;
    pub(in crate::sys) const EXECVEAT: usize = 281;
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

/// One clone(2), whose child does the system calls of a table.
///
/// # Safety
/// The flags are valid with a stack pointer of 0; `pidfd`, `failed` and the table live on,
/// and the last call of the table does not come back unless it fails.
#[inline(always)]
pub(in crate::sys) unsafe fn clone_and_call(
    flags: usize,
    pidfd: *mut i32,
    calls: *const [usize; 6],
    failed: *mut isize,
) -> isize {
    let result: isize;
    // SAFETY: SYSCALL; the caller vouches for flags and table. The child is a copy of the
    // registers at the call and never leaves this block.
    unsafe {
        asm!(
            "svc 0",                   // clone
            "cbnz x0, 4f",             // the parent, or an error
            "2:",
            "ldp x8, x0, [x20]",       // the next call's number and arguments
            "ldp x1, x2, [x20, #16]",
            "ldp x3, x4, [x20, #32]",
            "svc 0",
            "add x20, x20, #48",
            "tbz x0, #63, 2b",
            "str x0, [x21]",           // it failed: say so
            "mov x0, #127",
            "mov x8, {exit}",
            "svc 0",
            "brk #1",                  // exit_group does not return
            "4:",
            exit = const nr::EXIT_GROUP,
            in("x8") nr::CLONE,
            inlateout("x0") flags => result,
            in("x1") 0usize,           // stack: the parent's, which the child leaves alone
            in("x2") pidfd,            // parent_tid: where CLONE_PIDFD puts the descriptor
            in("x3") 0usize,           // tls
            in("x4") 0usize,           // child_tid
            in("x20") calls,
            in("x21") failed,
            options(nostack),
        );
    }
    result
}

/// aarch64 has no instruction that tells.
pub(in crate::sys) fn hypervisor_signature() -> Option<[u8; 12]> {
    None
}
