//! Entry and block copies on aarch64.

use core::arch::{asm, global_asm};

global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr", // the outermost frame, for debuggers that walk frame records
    "mov x30, xzr", // and no return address
    "mov x0, sp",   // first argument: the initial stack, 16-aligned by the kernel
    "bl cowitness_entry",
    "brk #1", // cowitness_entry does not return
);

/// Copies `len` bytes upwards.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes; if they overlap, `to` is lower.
#[inline(always)]
pub(super) unsafe fn copy_up(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's contract; every access stays below `len`. Unaligned access is
    // allowed on normal memory. Each step loads all it needs before it stores, so a
    // lower `to` may overlap.
    unsafe {
        asm!(
            "subs {n}, {n}, #64",      // at least 64 left?
            "b.lo 3f",
            "2:",
            "ldp {a:q}, {b:q}, [{s}], #32",
            "ldp {c:q}, {d:q}, [{s}], #32",
            "stp {a:q}, {b:q}, [{t}], #32",
            "stp {c:q}, {d:q}, [{t}], #32",
            "subs {n}, {n}, #64",
            "b.hs 2b",
            "3:",
            "adds {n}, {n}, #64",      // the rest, 0..63
            "b.eq 5f",
            "4:",
            "ldrb {x:w}, [{s}], #1",
            "strb {x:w}, [{t}], #1",
            "subs {n}, {n}, #1",
            "b.ne 4b",
            "5:",
            n = inout(reg) len => _,
            s = inout(reg) from => _,
            t = inout(reg) to => _,
            x = out(reg) _,
            a = out(vreg) _, b = out(vreg) _, c = out(vreg) _, d = out(vreg) _,
            options(nostack),
        );
    }
}

/// Sets `len` bytes.
///
/// # Safety
/// `to` is writable for `len` bytes.
#[inline(always)]
pub(super) unsafe fn fill(to: *mut u8, byte: u8, len: usize) {
    // SAFETY: the caller's contract; every access stays below `len`.
    unsafe {
        asm!(
            "dup {v}.16b, {byte:w}",
            "subs {n}, {n}, #32",
            "b.lo 3f",
            "2:",
            "stp {v:q}, {v:q}, [{t}], #32",
            "subs {n}, {n}, #32",
            "b.hs 2b",
            "3:",
            "adds {n}, {n}, #32",      // the rest, 0..31
            "b.eq 5f",
            "4:",
            "strb {byte:w}, [{t}], #1",
            "subs {n}, {n}, #1",
            "b.ne 4b",
            "5:",
            n = inout(reg) len => _,
            t = inout(reg) to => _,
            byte = in(reg) u32::from(byte),
            v = out(vreg) _,
            options(nostack),
        );
    }
}
