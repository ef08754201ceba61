//! aarch64. Numbers from include/uapi/asm-generic/unistd.h.

use core::arch::{asm, global_asm};

/// System-call numbers.
pub(in crate::sys) mod nr {
    pub(in crate::sys) const DUP3: usize = 24;
    pub(in crate::sys) const IOCTL: usize = 29;
    pub(in crate::sys) const FSTATFS: usize = 44;
    pub(in crate::sys) const OPENAT: usize = 56;
    pub(in crate::sys) const LSEEK: usize = 62;
    pub(in crate::sys) const READ: usize = 63;
    pub(in crate::sys) const PREAD64: usize = 67;
    pub(in crate::sys) const PERSONALITY: usize = 92;
    pub(in crate::sys) const EXIT_GROUP: usize = 94;
    pub(in crate::sys) const UNSHARE: usize = 97;
    pub(in crate::sys) const CLOCK_GETTIME: usize = 113;
    pub(in crate::sys) const SYSLOG: usize = 116;
    pub(in crate::sys) const PTRACE: usize = 117;
    pub(in crate::sys) const KILL: usize = 129;
    pub(in crate::sys) const RT_SIGACTION: usize = 134;
    pub(in crate::sys) const TIMER_CREATE: usize = 107;
    pub(in crate::sys) const TIMER_SETTIME: usize = 110;
    pub(in crate::sys) const RT_SIGPROCMASK: usize = 135;
    pub(in crate::sys) const RT_SIGTIMEDWAIT: usize = 137;
    pub(in crate::sys) const SETPGID: usize = 154;
    pub(in crate::sys) const UNAME: usize = 160;
    pub(in crate::sys) const GETRUSAGE: usize = 165;
    pub(in crate::sys) const PRCTL: usize = 167;
    pub(in crate::sys) const GETCPU: usize = 168;
    pub(in crate::sys) const SYSINFO: usize = 179;
    pub(in crate::sys) const SOCKETPAIR: usize = 199;
    pub(in crate::sys) const SENDMSG: usize = 211;
    pub(in crate::sys) const RECVMSG: usize = 212;
    pub(in crate::sys) const BRK: usize = 214;
    pub(in crate::sys) const MUNMAP: usize = 215;
    pub(in crate::sys) const MREMAP: usize = 216;
    pub(in crate::sys) const CLONE: usize = 220;
    pub(in crate::sys) const EXECVE: usize = 221;
    pub(in crate::sys) const MMAP: usize = 222;
    pub(in crate::sys) const SWAPON: usize = 224;
    pub(in crate::sys) const SWAPOFF: usize = 225;
    pub(in crate::sys) const MPROTECT: usize = 226;
    pub(in crate::sys) const MLOCK: usize = 228;
    pub(in crate::sys) const MINCORE: usize = 232;
    pub(in crate::sys) const MADVISE: usize = 233;
    pub(in crate::sys) const MOVE_PAGES: usize = 239;
    pub(in crate::sys) const WAIT4: usize = 260;
    pub(in crate::sys) const PROCESS_VM_READV: usize = 270;
    pub(in crate::sys) const FINIT_MODULE: usize = 273;
    pub(in crate::sys) const EXECVEAT: usize = 281;
    pub(in crate::sys) const USERFAULTFD: usize = 282;
    pub(in crate::sys) const CLOSE_RANGE: usize = 436;
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

/// madvise(2) MADV_DONTNEED for the `bytes` below the page that the stack pointer is in.
///
/// # Safety
/// Nothing but the stack lies there; `page_bytes` is a page's size, `bytes` a multiple of it.
#[inline(always)]
pub(in crate::sys) unsafe fn discard_below_stack(bytes: usize, page_bytes: usize) -> isize {
    const MADV_DONTNEED: usize = 4;
    let result: isize;
    // SAFETY: SYSCALL; without `nostack` nothing of the caller's lies below the stack
    // pointer, so no frame loses anything.
    unsafe {
        asm!(
            "mov {at}, sp",      // `and` does not take sp
            "and x0, x0, {at}",  // the start of the page that the stack pointer is in
            "sub x0, x0, x1",    // from so far below
            "svc 0",             // madvise
            at = out(reg) _,
            in("x8") nr::MADVISE,
            inlateout("x0") !(page_bytes - 1) => result,
            in("x1") bytes,
            in("x2") MADV_DONTNEED,
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

global_asm!(
    ".pushsection .rodata.cowitness_templates,\"a\",@progbits",
    // The last steps of a loader: system calls from a list, then a jump. x19: the list,
    // seven words each; x20: the new stack; x21: where to go.
    ".balign 8",
    ".globl cowitness_last_steps",
    "cowitness_last_steps:",
    "2:",
    "ldr x8, [x19]", // the number, or -1 at the end of the list
    "cmn x8, #1",
    "b.eq 3f",
    "ldp x0, x1, [x19, #8]",
    "ldp x2, x3, [x19, #24]",
    "ldp x4, x5, [x19, #40]",
    "svc 0",
    "add x19, x19, #56",
    "cmn x0, #4095", // from -4095 on, as an unsigned number: an errno
    "b.lo 2b",
    "mov x0, #125", // LAST_STEP_FAILED
    "mov x8, #94",  // exit_group
    "svc 0",
    "3:",
    "mov sp, x20",
    "mov x0, xzr",
    "mov x29, xzr", // the outermost frame
    "mov x30, xzr",
    "br x21",
    ".globl cowitness_last_steps_end",
    "cowitness_last_steps_end:",
    // The built-in subject: touches text and data, waits for a byte or the end of standard
    // input, ends. Loaded BUILTIN_CODE_AT bytes into its image; its six words follow it.
    ".balign 8",
    ".globl cowitness_builtin",
    "cowitness_builtin:",
    "adr x19, cowitness_builtin",
    "sub x19, x19, #0x200",           // the image
    "adr x20, cowitness_builtin_end", // the words
    "ldp x4, x2, [x20]",              // text: first offset, past the last
    "ldr x3, [x20, #32]",             // from page to page
    "4:",
    "cmp x4, x2",
    "b.hs 5f",
    "ldrb w5, [x19, x4]",
    "add x4, x4, x3",
    "b 4b",
    "5:",
    "ldp x4, x2, [x20, #16]", // data, likewise
    "6:",
    "cmp x4, x2",
    "b.hs 7f",
    "strb w3, [x19, x4]",
    "add x4, x4, x3",
    "b 6b",
    "7:",
    "mov x0, xzr", // standard input
    "sub x1, sp, #16",
    "mov x2, #1",
    "mov x8, #63", // read
    "svc 0",
    "lsr x0, x0, #63", // 1 after an error
    "mov x8, #94",     // exit_group
    "svc 0",
    ".balign 8",
    ".globl cowitness_builtin_end",
    "cowitness_builtin_end:",
    ".popsection",
);

/// Leaves for `code`, a copy of the last steps.
///
/// # Safety
/// `code` is executable and holds them; `list` is readable and ends with -1 in a first word;
/// nothing of this program runs or is used afterwards.
pub(in crate::sys) unsafe fn leave(code: usize, list: usize, stack: usize, entry: usize) -> ! {
    // SAFETY: the caller's contract. x19 is reserved by the compiler as an operand, so the
    // values come in registers it may choose and are moved.
    unsafe {
        asm!(
            "mov x19, x9",
            "mov x20, x10",
            "mov x21, x11",
            "br x12",
            in("x9") list,
            in("x10") stack,
            in("x11") entry,
            in("x12") code,
            options(noreturn),
        )
    }
}
