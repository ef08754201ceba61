//! The VMA that an address lies in, from /proc/PID/maps.

use crate::proc::lines::LineBuffer;
use crate::proc::maps::{MapsLine, Perms};
use crate::sys::file::{Process, open_proc, read_next};
use crate::sys::{Errno, RemoteAddr};
use rustix::fd::AsFd;

/// A line with a path of up to 4,096 bytes, each of which may be printed as four.
const LINE_BYTES: usize = 20 << 10;

/// What a reader needs to know of a VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vma {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where in its file it begins.
    pub(super) offset: u64,
    pub(super) perms: Perms,
    /// Whether it maps a file, one without a name included (memfd, shared anonymous memory).
    pub(super) has_file: bool,
}

impl Vma {
    pub(super) fn of(line: &MapsLine<'_>) -> Self {
        Self {
            start: line.start,
            end: line.end,
            offset: line.offset,
            perms: line.perms,
            has_file: line.inode != 0,
        }
    }

    pub(super) fn contains(&self, address: RemoteAddr) -> bool {
        (self.start..self.end).contains(&address.0)
    }
}

/// The VMA at `address`; `None` if there is none.
///
/// # Errors
/// As open(2) and read(2); `EIO` for a line that is not understood.
#[inline(never)]
pub(super) fn at(pid: i32, address: RemoteAddr) -> Result<Option<Vma>, Errno> {
    let maps = open_proc(Process::Id(pid), "maps")?;
    let mut lines = LineBuffer::<LINE_BYTES>::new();
    while let Some(line) = lines.read_line(|space| read_next(maps.as_fd(), space))? {
        let vma = MapsLine::parse(line.bytes).ok_or(Errno::IO)?;
        if address.0 < vma.end {
            return Ok(Some(Vma::of(&vma)).filter(|vma| vma.contains(address)));
        }
    }
    Ok(None)
}
