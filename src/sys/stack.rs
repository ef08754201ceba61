//! The main thread's stack as memory that is promised: frames that are touched, and what
//! lies below the frames in use.
//!
//! The kernel grows the mapping when a page just below it is touched, up to RLIMIT_STACK
//! (mm/mmap.c, `acct_stack_growth`); if it refuses, the touching ends in SIGSEGV. A system
//! call that writes there gets EFAULT instead.

use super::arch::{discard_below_stack, nr, syscall6};
use super::process::{Ending, Side, exit, fork};
use super::promise::write_each;
use super::{Errno, check};
use core::mem::MaybeUninit;
use core::ops::Range;

const MIB: usize = 1 << 20;

/// By MiB, from 1 on: a frame of that size, touched. Gives where it was.
const FRAMES: [fn(usize) -> usize; 4] = [
    frame::<MIB>,
    frame::<{ 2 * MIB }>,
    frame::<{ 3 * MIB }>,
    frame::<{ 4 * MIB }>,
];

/// The most that [`touch_frame`] takes, in MiB: half of the usual RLIMIT_STACK.
pub const STACK_MIB_MAX: usize = FRAMES.len();

/// Touches a frame of `mib` MiB so far below the caller's that nothing else that the caller
/// calls reaches it: what looks at memory before and after takes no page of the frame's. Gives
/// where it was. 0 MiB is no frame: everything around it is paid for then, and the code of all
/// frames, or its first page, is in memory.
///
/// With `clear`, what calls that are over have used there is given back first, so that every
/// page is paid for.
///
/// # Errors
/// `EINVAL` (locked memory), `EPERM` (seccomp): that cannot be given back; nothing was touched.
#[inline(never)]
pub(super) fn touch_frame(mib: usize, page_bytes: usize, clear: bool) -> Result<usize, Errno> {
    let mut apart = MaybeUninit::<[u8; APART_BYTES]>::uninit();
    let frame = mib.checked_sub(1).and_then(|index| FRAMES.get(index));
    if frame.is_none() {
        // SAFETY: all of it lies in `apart`.
        unsafe { write_each(apart.as_mut_ptr().cast(), APART_BYTES, page_bytes) };
    }
    if clear {
        discard_used(page_bytes)?;
    }
    if let Some(frame) = frame {
        return Ok(frame(page_bytes));
    }
    for frame in FRAMES {
        // SAFETY: code of this program, which both CPUs map to be read, too.
        unsafe { (frame as *const u8).read_volatile() };
    }
    Ok(0)
}

/// What lies between a frame and its caller's: more than the appliance's calls take that look
/// at memory.
const APART_BYTES: usize = 128 << 10;

/// A frame, touched. The compiler probes each page of so large a frame as it makes it (at
/// function entry, from the top down), so the pages may be paid for before the loop begins.
#[inline(never)]
fn frame<const BYTES: usize>(page_bytes: usize) -> usize {
    let mut frame = MaybeUninit::<[u8; BYTES]>::uninit();
    let at = frame.as_mut_ptr().cast::<u8>();
    // SAFETY: all of it lies in `frame`.
    unsafe { write_each(at, BYTES, page_bytes) };
    at.addr()
}

/// Where memory ends that belongs to no frame: a page below the one that the caller's
/// frame is in, if that has less than a page and calls nothing while it relies on it.
#[inline(always)]
fn dead_end(page_bytes: usize) -> usize {
    let mark = 0_u8;
    ((&raw const mark).addr() & !(page_bytes - 1)) - page_bytes
}

/// Grows the stack's mapping in one go, as far as a frame of `bytes` will reach in
/// [`touch_frame`], and leaves nothing there that is paid for: its lowest page is touched, and
/// given back. Gives where that frame will be, to a page or two.
///
/// # Errors
/// `EFAULT`: the kernel does not let it grow that far; as [`touch_frame`].
#[inline(never)]
pub(super) fn grow(bytes: usize, page_bytes: usize) -> Result<Range<usize>, Errno> {
    /// -1. Not RUSAGE_SELF, whose readings are what passes stand between.
    const RUSAGE_CHILDREN: usize = usize::MAX;
    const MADV_DONTNEED: usize = 4;
    let end = dead_end(page_bytes) - APART_BYTES;
    let start = end - bytes;
    // SAFETY: SYSCALL; the kernel writes one `struct rusage` (144 bytes) to `start`, below
    // every frame. No mapping is there but the stack's: the kernel keeps at least 128 MiB
    // free for it (MIN_GAP, mm/util.c).
    check(unsafe { syscall6(nr::GETRUSAGE, RUSAGE_CHILDREN, start, 0, 0, 0, 0) })?;
    // SAFETY: SYSCALL; a page below every frame.
    check(unsafe { syscall6(nr::MADVISE, start, page_bytes, MADV_DONTNEED, 0, 0, 0) })?;
    Ok(start..end)
}

/// Grows the stack by so much, of which one page is touched.
///
/// # Errors
/// As [`can_grow`].
pub fn grow_stack(bytes: usize, page_bytes: usize) -> Result<(), Errno> {
    grow(bytes, page_bytes).map(drop)
}

/// Whether the stack can grow by `bytes`: a child tries, so that this process's stack stays
/// as it is.
///
/// # Errors
/// `EFAULT` if it cannot; as fork; `EPERM` if a filter denies getrusage(2), by which it tries.
pub fn can_grow(bytes: usize, page_bytes: usize) -> Result<(), Errno> {
    match fork()? {
        Side::Child => exit(match grow(bytes, page_bytes) {
            Ok(_) => 0,
            Err(errno) => errno.raw_os_error(),
        }),
        Side::Parent(child) => match child.end_as_init()? {
            Ending::Exited(0) => Ok(()),
            Ending::Exited(errno) => Err(Errno::from_raw_os_error(errno)),
            _ => Err(Errno::FAULT),
        },
    }
}

/// The part of `range` that belongs to no frame.
#[inline(always)]
pub(super) fn dead_part(range: Range<usize>, page_bytes: usize) -> Range<usize> {
    range.start..range.end.min(dead_end(page_bytes))
}

/// Gives back what calls that are over have used below the caller's frame, so that a frame
/// that comes next is paid for to its last page.
///
/// # Errors
/// `EINVAL` (locked memory), `EPERM` (seccomp): a frame would find some of it paid for.
#[inline(always)]
fn discard_used(page_bytes: usize) -> Result<(), Errno> {
    /// More than any call of the appliance needs, and less than the gap that the kernel
    /// keeps below a stack (stack_guard_gap, 256 pages).
    const BYTES: usize = 256 << 10;
    // SAFETY: within that gap nothing lies but the stack; 256 KiB are a multiple of any page.
    match check(unsafe { discard_below_stack(BYTES, page_bytes) }) {
        // ENOMEM: not all of it is mapped; what is has been given back.
        Ok(_) | Err(Errno::NOMEM) => Ok(()),
        Err(errno) => Err(errno),
    }
}
