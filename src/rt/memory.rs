//! The memory functions that compiled code calls by their C names.
//!
//! Loops here read through `read_volatile` or assembly, so that the compiler cannot
//! recognise them and turn them into calls to themselves.

use super::cpu;

#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: memcpy's contract is the caller's: valid and not overlapping.
    unsafe { cpu::copy_up(to, from, len) };
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= len {
        // SAFETY: valid by memmove's contract; `to` is lower or they do not overlap.
        unsafe { cpu::copy_up(to, from, len) };
        return to;
    }
    for index in (0..len).rev() {
        // SAFETY: valid by memmove's contract; from the top down nothing is overwritten
        // before it is read.
        unsafe {
            let byte = from.add(index).read_volatile();
            to.add(index).write_volatile(byte);
        }
    }
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: valid by memset's contract. The value is an unsigned char (C11 7.24.6.1).
    unsafe { cpu::fill(to, byte.cast_unsigned() as u8, len) };
    to
}

#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    for index in 0..len {
        // SAFETY: valid by memcmp's contract.
        let (left, right) = unsafe { (a.add(index).read_volatile(), b.add(index).read_volatile()) };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, len: usize) -> i32 {
    // SAFETY: bcmp's contract is memcmp's.
    unsafe { memcmp(a, b, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(string: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: a C string ends with a NUL, where this stops.
    while unsafe { string.add(len).read_volatile() } != 0 {
        len += 1;
    }
    len
}
