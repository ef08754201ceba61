//! x86_64. Numbers from arch/x86/entry/syscalls/syscall_64.tbl.

use core::arch::{asm, global_asm, x86_64::__cpuid};

/// System-call numbers.
pub(in crate::sys) mod nr {
    pub(in crate::sys) const READ: usize = 0;
    pub(in crate::sys) const LSEEK: usize = 8;
    pub(in crate::sys) const MMAP: usize = 9;
    pub(in crate::sys) const MPROTECT: usize = 10;
    pub(in crate::sys) const MUNMAP: usize = 11;
    pub(in crate::sys) const BRK: usize = 12;
    pub(in crate::sys) const RT_SIGACTION: usize = 13;
    pub(in crate::sys) const TIMER_CREATE: usize = 222;
    pub(in crate::sys) const TIMER_SETTIME: usize = 223;
    pub(in crate::sys) const RT_SIGPROCMASK: usize = 14;
    pub(in crate::sys) const IOCTL: usize = 16;
    pub(in crate::sys) const PREAD64: usize = 17;
    pub(in crate::sys) const MREMAP: usize = 25;
    pub(in crate::sys) const MINCORE: usize = 27;
    pub(in crate::sys) const MADVISE: usize = 28;
    pub(in crate::sys) const SENDMSG: usize = 46;
    pub(in crate::sys) const RECVMSG: usize = 47;
    pub(in crate::sys) const SOCKETPAIR: usize = 53;
    pub(in crate::sys) const CLONE: usize = 56;
    pub(in crate::sys) const EXECVE: usize = 59;
    pub(in crate::sys) const WAIT4: usize = 61;
    pub(in crate::sys) const KILL: usize = 62;
    pub(in crate::sys) const UNAME: usize = 63;
    pub(in crate::sys) const GETRUSAGE: usize = 98;
    pub(in crate::sys) const SYSINFO: usize = 99;
    pub(in crate::sys) const PTRACE: usize = 101;
    pub(in crate::sys) const SYSLOG: usize = 103;
    pub(in crate::sys) const SETPGID: usize = 109;
    pub(in crate::sys) const FSTATFS: usize = 138;
    pub(in crate::sys) const RT_SIGTIMEDWAIT: usize = 128;
    pub(in crate::sys) const PERSONALITY: usize = 135;
    pub(in crate::sys) const MLOCK: usize = 149;
    pub(in crate::sys) const PRCTL: usize = 157;
    pub(in crate::sys) const SWAPON: usize = 167;
    pub(in crate::sys) const SWAPOFF: usize = 168;
    pub(in crate::sys) const CLOCK_GETTIME: usize = 228;
    pub(in crate::sys) const EXIT_GROUP: usize = 231;
    pub(in crate::sys) const OPENAT: usize = 257;
    pub(in crate::sys) const MOVE_PAGES: usize = 279;
    pub(in crate::sys) const UNSHARE: usize = 272;
    pub(in crate::sys) const DUP3: usize = 292;
    pub(in crate::sys) const GETCPU: usize = 309;
    pub(in crate::sys) const PROCESS_VM_READV: usize = 310;
    pub(in crate::sys) const FINIT_MODULE: usize = 313;
    pub(in crate::sys) const EXECVEAT: usize = 322;
    pub(in crate::sys) const USERFAULTFD: usize = 323;
    pub(in crate::sys) const CLOSE_RANGE: usize = 436;
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
            "and rdi, rsp", // the start of the page that the stack pointer is in
            "sub rdi, rsi", // from so far below
            "syscall",      // madvise; clobbers rcx and r11
            inlateout("rax") nr::MADVISE => result,
            inlateout("rdi") !(page_bytes - 1) => _,
            in("rsi") bytes,
            in("rdx") MADV_DONTNEED,
            lateout("rcx") _,
            lateout("r11") _,
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
            "syscall",             // clone
            "test rax, rax",
            "jnz 4f",              // the parent, or an error
            "2:",
            "mov rax, [r12]",      // the next call's number and arguments
            "mov rdi, [r12 + 8]",
            "mov rsi, [r12 + 16]",
            "mov rdx, [r12 + 24]",
            "mov r10, [r12 + 32]",
            "mov r8, [r12 + 40]",
            "syscall",
            "add r12, 48",
            "test rax, rax",
            "jns 2b",
            "mov [r13], rax",      // it failed: say so
            "mov edi, 127",
            "mov eax, {exit}",
            "syscall",
            "ud2",                 // exit_group does not return
            "4:",
            exit = const nr::EXIT_GROUP,
            inlateout("rax") nr::CLONE => result,
            in("rdi") flags,
            in("rsi") 0usize,      // stack: the parent's, which the child leaves alone
            in("rdx") pidfd,       // parent_tid: where CLONE_PIDFD puts the descriptor
            in("r10") 0usize,      // child_tid
            in("r8") 0usize,       // tls
            in("r12") calls,
            in("r13") failed,
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

global_asm!(
    ".pushsection .rodata.cowitness_templates,\"a\",@progbits",
    // The last steps of a loader: system calls from a list, then a jump. r12: the list,
    // seven words each; r13: the new stack; r14: where to go.
    ".balign 8",
    ".globl cowitness_last_steps",
    "cowitness_last_steps:",
    "2:",
    "mov rax, [r12]", // the number, or -1 at the end of the list
    "cmp rax, -1",
    "je 3f",
    "mov rdi, [r12 + 8]",
    "mov rsi, [r12 + 16]",
    "mov rdx, [r12 + 24]",
    "mov r10, [r12 + 32]",
    "mov r8, [r12 + 40]",
    "mov r9, [r12 + 48]",
    "syscall",
    "add r12, 56",
    "cmp rax, -4096", // above it, as an unsigned number: an errno
    "jbe 2b",
    "mov edi, 125", // LAST_STEP_FAILED
    "mov eax, 231", // exit_group
    "syscall",
    "3:",
    "mov rsp, r13",
    "xor eax, eax",
    "xor edx, edx", // the ABI: a function for atexit, or 0
    "xor ebp, ebp", // the ABI: the outermost frame
    "jmp r14",
    ".globl cowitness_last_steps_end",
    "cowitness_last_steps_end:",
    // The built-in subject: touches text and data, waits for a byte or the end of standard
    // input, ends. Loaded BUILTIN_CODE_AT bytes into its image; its six words follow it.
    ".balign 8",
    ".globl cowitness_builtin",
    "cowitness_builtin:",
    "lea rbx, [rip + cowitness_builtin]",
    "sub rbx, 0x200",                         // the image
    "lea rbp, [rip + cowitness_builtin_end]", // the words
    "mov rdx, [rbp + 32]",                    // from page to page
    "mov rsi, [rbp]",                         // text: first offset
    "mov rcx, [rbp + 8]",                     // and past the last
    "4:",
    "cmp rsi, rcx",
    "jae 5f",
    "movzx eax, byte ptr [rbx + rsi]",
    "add rsi, rdx",
    "jmp 4b",
    "5:",
    "mov rsi, [rbp + 16]", // data: first offset
    "mov rcx, [rbp + 24]", // and past the last
    "6:",
    "cmp rsi, rcx",
    "jae 7f",
    "mov byte ptr [rbx + rsi], 1",
    "add rsi, rdx",
    "jmp 6b",
    "7:",
    "xor edi, edi", // standard input
    "lea rsi, [rsp - 8]",
    "mov edx, 1",
    "xor eax, eax", // read
    "syscall",
    "shr rax, 63", // 1 after an error
    "mov edi, eax",
    "mov eax, 231", // exit_group
    "syscall",
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
    // SAFETY: the caller's contract.
    unsafe {
        asm!(
            "jmp {code}",
            code = in(reg) code,
            in("r12") list,
            in("r13") stack,
            in("r14") entry,
            options(noreturn),
        )
    }
}
