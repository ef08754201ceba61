//! Entry and block copies on x86_64.

use core::arch::{asm, global_asm};

global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp", // the outermost frame, for debuggers that walk frame pointers
    "mov rdi, rsp", // first argument: the initial stack
    "and rsp, -16", // the ABI's alignment before a call
    "call cowitness_entry",
    "ud2", // cowitness_entry does not return
);

/// Copies `len` bytes upwards.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes; if they overlap, `to` is lower.
#[inline(always)]
pub(super) unsafe fn copy_up(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's contract. Direction flag is clear by the ABI. CPUs with ERMS
    // (Intel since 2013, AMD since 2020) run this at full width, as the kernel's own
    // copies do; on older ones this is slower, and with it the `memcpy` reader.
    unsafe {
        asm!(
            "rep movsb", // rcx bytes from [rsi] to [rdi]
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Sets `len` bytes.
///
/// # Safety
/// `to` is writable for `len` bytes.
#[inline(always)]
pub(super) unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
    // SAFETY: the caller's contract; direction flag as above.
    unsafe {
        asm!(
            "rep stosb", // rcx times al to [rdi]
            inout("rcx") len => _,
            inout("rdi") to => _,
            in("al") byte,
            options(nostack, preserves_flags),
        );
    }
}
