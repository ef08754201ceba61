//! Memory of another process: addresses that cannot be dereferenced here, and
//! process_vm_readv(2), which rustix lacks.

use super::arch::{nr, syscall6};
use super::process::thread_faults;
use super::{Errno, check};
use core::mem::MaybeUninit;

/// An address in another process (or in ours, seen as another would see it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct RemoteAddr(pub u64);

impl RemoteAddr {
    /// The address `bytes` further up; wraps like the hardware's arithmetic.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// A range of remote memory, laid out as `struct iovec` (readv(2)) on 64-bit Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RemoteSpan {
    /// Its first byte.
    pub start: RemoteAddr,
    /// How many bytes.
    pub len: u64,
}

/// The most spans one call takes (`UIO_MAXIOV`, include/uapi/linux/uio.h).
pub const SPANS_PER_CALL: usize = 1024;

/// Copies `spans` of process `pid` one after the other into `local`.
///
/// C form: `process_vm_readv(pid, &local, 1, remote, count, 0)`. The result is the
/// number of bytes copied: fewer than asked if it ran into memory that cannot be read.
///
/// # Errors
/// `EFAULT` (the first byte already cannot be read), `EPERM`, `ESRCH`, `ENOMEM`,
/// `EINVAL` (more than [`SPANS_PER_CALL`] spans).
#[inline(always)]
pub fn process_vm_readv(pid: i32, local: &mut [u8], spans: &[RemoteSpan]) -> Result<usize, Errno> {
    let local = RemoteSpan {
        start: RemoteAddr(local.as_mut_ptr() as u64),
        len: local.len() as u64,
    };
    // SAFETY: SYSCALL; the kernel reads both arrays and writes at most `local.len`
    // bytes at `local.start`, an exclusive slice. `pid` and addresses are only numbers.
    let result = unsafe {
        syscall6(
            nr::PROCESS_VM_READV,
            pid.cast_unsigned() as usize,
            (&raw const local) as usize,
            1,
            spans.as_ptr() as usize,
            spans.len(),
            0,
        )
    };
    check(result)
}

/// Page faults charged to this thread within one call, and since it began; `None` if they are not
/// told.
pub type Charged = Option<(u64, u64)>;

/// As [`process_vm_readv`], with each span copied to its own place in `local`: span `index`
/// goes to `offsets[index]`. One call, up to [`SPANS_PER_CALL`] spans. `local` must have been
/// written to, or its own faults are among those told. `before`: what was charged to this thread
/// before, if that is known.
///
/// C form: `process_vm_readv(pid, locals, count, remote, count, 0)`, and
/// `getrusage(RUSAGE_THREAD, &usage)` behind it and, if need be, before. The result is the number of
/// bytes copied, counted over the spans in order.
///
/// # Errors
/// As [`process_vm_readv`]; `EINVAL` also if a place does not lie within `local`.
#[inline(never)]
pub fn process_vm_readv_to(
    pid: i32,
    local: &mut [u8],
    offsets: &[usize],
    spans: &[RemoteSpan],
    before: Option<u64>,
) -> (Result<usize, Errno>, Charged) {
    let mut places = [const { MaybeUninit::<RemoteSpan>::uninit() }; SPANS_PER_CALL];
    let count = spans.len().min(offsets.len()).min(SPANS_PER_CALL);
    let base = local.as_mut_ptr() as u64;
    for ((place, &offset), span) in places.iter_mut().zip(offsets).zip(spans) {
        let room = local.len().checked_sub(offset);
        if room.is_none_or(|room| span.len > room as u64) {
            return (Err(Errno::INVAL), None);
        }
        place.write(RemoteSpan {
            start: RemoteAddr(base + offset as u64),
            len: span.len,
        });
    }
    let before = before.or_else(thread_faults);
    // SAFETY: SYSCALL; the kernel reads `count` entries of both arrays, all of which are
    // written, and writes at most what each place says, which lies within `local`, an
    // exclusive slice.
    let result = unsafe {
        syscall6(
            nr::PROCESS_VM_READV,
            pid.cast_unsigned() as usize,
            places.as_ptr() as usize,
            count,
            spans.as_ptr() as usize,
            count,
            0,
        )
    };
    let charged = thread_faults().zip(before);
    (
        check(result),
        charged.map(|(now, before)| (now - before, now)),
    )
}
