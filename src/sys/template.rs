//! Machine code that is not run where it lies but copied: the last steps of a loader, and
//! the built-in subject of `sharing`. Position-independent; one file per CPU in `arch`.

use core::slice;

unsafe extern "C" {
    static cowitness_last_steps: u8;
    static cowitness_last_steps_end: u8;
    static cowitness_builtin: u8;
    static cowitness_builtin_end: u8;
}

/// Where the built-in subject's code must stand in its image. Its text and data are touched
/// relative to that; the five words it reads follow it.
pub const BUILTIN_CODE_AT: usize = 0x200;

/// The built-in subject's code.
#[must_use]
pub fn builtin() -> &'static [u8] {
    between(
        &raw const cowitness_builtin,
        &raw const cowitness_builtin_end,
    )
}

/// A loader's last steps.
pub(super) fn last_steps() -> &'static [u8] {
    between(
        &raw const cowitness_last_steps,
        &raw const cowitness_last_steps_end,
    )
}

fn between(start: *const u8, end: *const u8) -> &'static [u8] {
    // SAFETY: only called with the two symbols around one template, which `arch` assembles
    // in this order into one section of read-only data.
    unsafe { slice::from_raw_parts(start, end.addr() - start.addr()) }
}
