//! Mechanisms that copy another process's memory, one file each, behind one trait.
//!
//! A reader knows how to make one pass over ranges; it does not know what is being
//! measured, and nothing here looks at a clock.

mod any;
mod files;
pub mod hybrid;
mod kcore;
mod map_files;
mod memcpy;
pub mod own_page;
mod proc_mem;
mod ptrace;
mod target;
pub mod vma;
mod vmread;

pub use hybrid::{Care, Hybrid, Learned, Manners, WINDOW_BYTES};
pub use kcore::Kcore;
pub use map_files::MapFiles;
pub use memcpy::Memcpy;
pub use proc_mem::{ProcMem, ProcSeek};
pub use ptrace::Ptrace;
pub use target::Target;
pub use vmread::{BATCH_BYTES, Vmread, VmreadBatch};

use crate::emit::probe_row::reason;
use crate::sys::remote::RemoteSpan;
use crate::sys::{Errno, RemoteAddr};

/// The readers, by the names of the CSV's `method` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// pread(2) on /proc/PID/mem.
    Proc,
    /// lseek(2) and read(2) on /proc/PID/mem.
    ProcSeek,
    /// process_vm_readv(2), one remote iovec a call.
    Vmread,
    /// process_vm_readv(2), many remote iovecs a call.
    VmreadBatch,
    /// PTRACE_PEEKDATA, a word a call.
    Ptrace,
    /// The frames that pagemap names, out of /proc/kcore.
    Kcore,
    /// The file behind a mapping, through /proc/PID/map_files.
    MapFiles,
    /// What pagemap says decides, run by run, and nothing changes.
    Hybrid,
    /// An in-process copy of the same bytes: the ceiling.
    Memcpy,
}

impl Method {
    /// All of them, in the order of the documentation.
    pub const ALL: [Self; 9] = [
        Self::Proc,
        Self::ProcSeek,
        Self::Vmread,
        Self::VmreadBatch,
        Self::Ptrace,
        Self::Kcore,
        Self::MapFiles,
        Self::Hybrid,
        Self::Memcpy,
    ];

    /// Those that read another process, in the same order.
    #[must_use]
    pub fn remote() -> &'static [Self] {
        Self::ALL.split_last().map_or(&[], |(_, remote)| remote)
    }

    /// Whether any user can read any kind of memory with it. The others are `kcore`, which
    /// needs root and a kernel that has the file, and `map-files`, which needs a file behind
    /// the memory.
    #[must_use]
    pub const fn is_general(self) -> bool {
        !matches!(self, Self::Kcore | Self::MapFiles)
    }

    /// Whether the target stands still while it is read (ptrace(2), `PTRACE_PEEKDATA`).
    #[must_use]
    pub const fn stops_target(self) -> bool {
        matches!(self, Self::Ptrace)
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Proc => "proc",
            Self::ProcSeek => "proc-seek",
            Self::Vmread => "vmread",
            Self::VmreadBatch => "vmread-batch",
            Self::Ptrace => "ptrace",
            Self::Kcore => "kcore",
            Self::MapFiles => "map-files",
            Self::Hybrid => "hybrid",
            Self::Memcpy => "memcpy",
        }
    }

    /// The method of that name.
    #[must_use]
    pub fn from_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|method| method.name().as_bytes() == name)
    }

    /// Why nothing can be had from this reader here, as a reason for the `status` column;
    /// `None`: the errno is an answer about the memory that was asked for.
    #[must_use]
    pub const fn refusal(self, errno: Errno) -> Option<&'static str> {
        match (self, errno) {
            // These are made of calls on files, which a file system may lack, and no kernel.
            (Self::Proc | Self::ProcSeek | Self::MapFiles, Errno::NOSYS) => None,
            (_, Errno::NOSYS) => Some(reason::NOT_HERE),
            (_, Errno::PERM | Errno::ACCESS) => Some(reason::NOT_PERMITTED),
            (Self::Kcore, kcore::NOT_PRESENT) => Some(reason::NOT_PRESENT),
            (Self::Hybrid, hybrid::LEFT_UNREAD) => Some(reason::LEFT_UNREAD),
            (Self::MapFiles, map_files::NO_FILE) => Some(reason::NO_FILE),
            (Self::MapFiles, map_files::NOT_THE_FILES) => Some(reason::NOT_THE_FILES),
            _ => None,
        }
    }

    /// Bytes of buffer it needs for this block size.
    #[must_use]
    pub fn buffer_bytes(self, block_bytes: usize) -> usize {
        match self {
            Self::VmreadBatch => block_bytes.max(BATCH_BYTES),
            Self::Hybrid => block_bytes.max(WINDOW_BYTES),
            _ => block_bytes,
        }
    }
}

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything was read.
    Complete,
    /// A read returned nothing: the target is gone or its memory ends here.
    Short,
    /// A read failed.
    Failed(Errno),
}

/// What a pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Bytes copied.
    pub bytes: u64,
    /// How it ended.
    pub end: End,
    /// What the front of the buffer holds after the pass: the last block copied.
    pub last: RemoteSpan,
}

impl Pass {
    const NOTHING: Self = Self {
        bytes: 0,
        end: End::Complete,
        last: RemoteSpan {
            start: RemoteAddr(0),
            len: 0,
        },
    };
}

/// Gets each block after it was copied; a timed pass has none.
pub type Seen<'s> = Option<&'s mut dyn FnMut(RemoteAddr, &[u8])>;

/// A mechanism that reads ranges of one target.
///
/// Dispatched once a pass; the loop over blocks inside is compiled for one mechanism.
pub trait Reader {
    /// Reads every span once, in blocks of at most `block_bytes`, through `buffer`
    /// (at least [`Method::buffer_bytes`] long).
    fn pass(
        &mut self,
        spans: &mut dyn Iterator<Item = RemoteSpan>,
        block_bytes: usize,
        buffer: &mut [u8],
        seen: Seen<'_>,
    ) -> Pass;

    /// Bytes that it has left unread so far, in all passes, and gone on behind.
    fn passed_over(&self) -> u64 {
        0
    }

    /// Whether this errno, with which a pass has just ended, says that the reader gets nothing at
    /// all here. Else it is about the memory that was asked for.
    fn is_refusal(&self, errno: Errno) -> bool {
        may_refuse(errno)
    }

    /// What became of the pages so far, if it is a reader that takes care.
    fn care(&self) -> Option<&Care> {
        None
    }

    /// What it has learned of the process, for the reader of the next pass.
    fn learned(&self) -> Learned {
        Learned::default()
    }
}

/// Whether the kernel says so of a call that it does not give.
const fn may_refuse(errno: Errno) -> bool {
    matches!(errno, Errno::PERM | Errno::ACCESS | Errno::NOSYS)
}

/// A reader that copies one block a call.
pub trait BlockReader {
    /// Copies into all of `block` from `start` on; fewer bytes if it ran into memory
    /// that cannot be read.
    ///
    /// # Errors
    /// The mechanism's own, when not even the first byte could be read.
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno>;

    /// As [`Reader::is_refusal`].
    fn is_refusal(&self, errno: Errno) -> bool {
        may_refuse(errno)
    }

    /// As [`Reader::learned`].
    fn learned(&self) -> Learned {
        Learned::default()
    }
}

impl<R: BlockReader> Reader for R {
    fn is_refusal(&self, errno: Errno) -> bool {
        BlockReader::is_refusal(self, errno)
    }

    fn learned(&self) -> Learned {
        BlockReader::learned(self)
    }

    fn pass(
        &mut self,
        spans: &mut dyn Iterator<Item = RemoteSpan>,
        block_bytes: usize,
        buffer: &mut [u8],
        mut seen: Seen<'_>,
    ) -> Pass {
        let mut pass = Pass::NOTHING;
        // Cut once: a call for every block would be timed with it.
        let buffer = &mut buffer[..block_bytes];
        for span in spans {
            let end = span.start.plus(span.len);
            let mut at = span.start;
            while at < end {
                let left = (end.0 - at.0) as usize;
                let block = match left < block_bytes {
                    true => &mut buffer[..left],
                    false => &mut *buffer,
                };
                let got = match self.read(at, block) {
                    Ok(0) => {
                        return Pass {
                            end: End::Short,
                            ..pass
                        };
                    }
                    Ok(got) => got,
                    Err(Errno::INTR) => continue,
                    Err(errno) => {
                        return Pass {
                            end: End::Failed(errno),
                            ..pass
                        };
                    }
                };
                // After fewer bytes than asked the next read starts where this one
                // ended, and says why.
                if let Some(seen) = &mut seen {
                    seen(at, &buffer[..got]);
                }
                pass.bytes += got as u64;
                pass.last = RemoteSpan {
                    start: at,
                    len: got as u64,
                };
                at = at.plus(got as u64);
            }
        }
        pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Memory that is `start as u8 + offset` and can be read up to `readable_end`.
    struct Fake {
        readable_end: u64,
        calls: Vec<(u64, usize)>,
        interrupt_once: bool,
    }

    impl BlockReader for Fake {
        fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
            if core::mem::take(&mut self.interrupt_once) {
                return Err(Errno::INTR);
            }
            self.calls.push((start.0, block.len()));
            let left = self.readable_end.saturating_sub(start.0) as usize;
            if left == 0 {
                return Err(Errno::IO);
            }
            let count = left.min(block.len());
            for (offset, byte) in block[..count].iter_mut().enumerate() {
                *byte = (start.0 as u8).wrapping_add(offset as u8);
            }
            Ok(count)
        }
    }

    fn fake(readable_end: u64) -> Fake {
        Fake {
            readable_end,
            calls: Vec::new(),
            interrupt_once: false,
        }
    }

    fn span(start: u64, len: u64) -> RemoteSpan {
        RemoteSpan {
            start: RemoteAddr(start),
            len,
        }
    }

    #[test]
    fn a_block_that_does_not_divide_the_range_leaves_a_short_last_read() {
        let mut reader = fake(1000);
        let spans = [span(100, 40), span(200, 16)];
        let mut seen = Vec::new();
        let mut note = |at: RemoteAddr, block: &[u8]| seen.push((at.0, block.to_vec()));
        let pass = reader.pass(&mut spans.into_iter(), 16, &mut [0; 16], Some(&mut note));
        assert_eq!(reader.calls, [(100, 16), (116, 16), (132, 8), (200, 16)]);
        assert_eq!(
            (pass.bytes, pass.end, pass.last),
            (56, End::Complete, span(200, 16))
        );
        assert_eq!(seen[2], (132, (132..140).collect()));
    }

    #[test]
    fn after_a_partial_read_the_next_one_tells_the_errno() {
        let mut reader = fake(120);
        let pass = reader.pass(&mut [span(100, 64)].into_iter(), 32, &mut [0; 32], None);
        assert_eq!(reader.calls, [(100, 32), (120, 32)]);
        assert_eq!((pass.bytes, pass.end), (20, End::Failed(Errno::IO)));
    }

    #[test]
    fn an_interrupted_read_is_made_again() {
        let mut reader = fake(1000);
        reader.interrupt_once = true;
        let pass = reader.pass(&mut [span(0, 8)].into_iter(), 8, &mut [0; 8], None);
        assert_eq!((pass.bytes, pass.end), (8, End::Complete));
    }

    #[test]
    fn names_come_back() {
        for method in Method::ALL {
            assert_eq!(Method::from_name(method.name().as_bytes()), Some(method));
        }
        assert_eq!(Method::from_name(b"Proc"), None);
    }
}
