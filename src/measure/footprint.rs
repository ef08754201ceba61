//! What an arena uses in a process: smaps of its VMAs, not of the whole process.

use crate::proc::lines::{Line, LineBuffer};
use crate::proc::maps::LINE_BYTES;
use crate::proc::smaps::{SmapsError, Usage, UsageSum};
use crate::sys::file::{Process, open_proc, read_next};
use crate::sys::{Errno, RemoteAddr};
use core::ops::Range;
use rustix::fd::AsFd;

/// Why usage is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FootprintError {
    /// smaps could not be opened or read.
    Kernel(Errno),
    /// smaps was not what proc_pid_smaps(5) describes, or the range's edges are inside
    /// a VMA.
    Text(SmapsError),
}

/// Sums the VMAs within `range`.
///
/// # Errors
/// See [`FootprintError`]; a field that this kernel does not print is an error, not 0.
pub fn usage(process: Process, range: &Range<RemoteAddr>) -> Result<Usage, FootprintError> {
    let sum = UsageSum::within(range.start.0, range.end.0);
    summed(process, "smaps", sum)
}

/// The whole process, from smaps_rollup (since Linux 4.14).
///
/// # Errors
/// As [`usage`]; a process without memory is [`SmapsError::NoVma`] or has no such file.
pub fn whole(process: Process) -> Result<Usage, FootprintError> {
    summed(process, "smaps_rollup", UsageSum::whole())
}

#[inline(never)]
fn summed(process: Process, file: &str, mut sum: UsageSum) -> Result<Usage, FootprintError> {
    let mut understood = Ok(());
    let read = each_line(process, file, &mut |line| {
        understood = sum.line(line.bytes);
        understood.is_ok()
    });
    read.map_err(FootprintError::Kernel)?;
    understood.map_err(FootprintError::Text)?;
    sum.finish().map_err(FootprintError::Text)
}

/// Gives `take` the lines of a file of /proc, until it says that it has enough.
///
/// # Errors
/// As open(2) and read(2).
#[inline(never)]
pub fn each_line(
    process: Process,
    file: &str,
    take: &mut dyn FnMut(Line<'_>) -> bool,
) -> Result<(), Errno> {
    let file = open_proc(process, file)?;
    let mut lines = LineBuffer::<LINE_BYTES>::new();
    while let Some(line) = lines.read_line(|space| read_next(file.as_fd(), space))? {
        if !take(line) {
            break;
        }
    }
    Ok(())
}
