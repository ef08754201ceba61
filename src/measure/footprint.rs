//! What an arena uses in a process: smaps of its VMAs, not of the whole process.

use crate::proc::lines::LineBuffer;
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

/// A line of smaps is short; only a header with a path can be longer than this.
const LINE_BYTES: usize = 8192;

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
    let smaps = open_proc(process, file).map_err(FootprintError::Kernel)?;
    let mut lines = LineBuffer::<LINE_BYTES>::new();
    loop {
        let line = lines.read_line(|space| read_next(smaps.as_fd(), space));
        match line.map_err(FootprintError::Kernel)? {
            Some(line) => sum.line(line.bytes).map_err(FootprintError::Text)?,
            None => return sum.finish().map_err(FootprintError::Text),
        }
    }
}
