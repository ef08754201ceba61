//! Which frames parent and child share, before and after a read.
//!
//! With frame numbers, a page is shared if both map the same frame. Without them
//! (pagemap shows 0 to readers without CAP_SYS_ADMIN) bit 56 decides, "exclusively
//! mapped": a page present in both and exclusive in neither is shared, one that is
//! exclusive in the child is not. Source: Documentation/admin-guide/mm/pagemap.rst.
//!
//! pagemap is read in chunks, parent and child in turn. The kernel may migrate a page
//! between the two readings, which would look like a split; so a chunk in which a page
//! differs is read again until two readings in a row agree.

use crate::proc::pagemap::{ENTRY_BYTES, Entry, file_offset};
use crate::sys::file::{Process, open_proc, read_at};
use crate::sys::{Errno, Region, RemoteAddr, Segments};
use rustix::fd::{AsFd, OwnedFd};

/// How sharing was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Frame numbers were compared.
    Pfn,
    /// Bit 56, "exclusively mapped".
    Exclusive,
    /// Not at all.
    None,
}

impl Evidence {
    /// As the CSV's `evidence` column has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pfn => "pfn",
            Self::Exclusive => "exclusive",
            Self::None => "none",
        }
    }
}

/// Pages by what is known of them before the read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Present in both and shared: these are tracked.
    pub tracked: u64,
    /// Present in both, not shared.
    pub unshared: u64,
    /// Not present in parent or child.
    pub absent: u64,
}

/// Tracked pages by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// Still shared.
    pub shared: u64,
    /// Frames differ.
    pub split: u64,
    /// No longer present on one side, or never the same in two readings: unknown.
    pub lost: u64,
}

/// Bytes of a chunk of `pages` entries.
const fn entry_bytes(pages: usize) -> usize {
    pages * ENTRY_BYTES as usize
}

/// Pages in a chunk.
const CHUNK_PAGES: usize = 4096;
/// Readings of a chunk before its changing pages count as lost.
const READINGS_MAX: u32 = 5;

/// The page tables of parent and child, as pagemap shows them.
pub struct PageTables<'m> {
    parent: OwnedFd,
    child: OwnedFd,
    page_bytes: usize,
    memory: &'m mut Memory,
}

/// What [`PageTables`] works in: two chunks of entries, and one bit a page of the arena.
pub struct Memory {
    parent: Region,
    child: Region,
    tracked: Region,
}

impl Memory {
    /// For arenas of up to `pages` pages.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(pages: usize) -> Result<Self, Errno> {
        let chunk = || Region::unshared(entry_bytes(CHUNK_PAGES));
        Ok(Self {
            parent: chunk()?,
            child: chunk()?,
            tracked: Region::unshared(pages.div_ceil(64) * 8)?,
        })
    }
}

/// A page in both page tables.
#[derive(Clone, Copy)]
struct Both {
    parent: Entry,
    child: Entry,
}

impl Both {
    fn present(self) -> bool {
        self.parent.present() && self.child.present()
    }

    fn frames_hidden(self) -> bool {
        self.parent.frames_hidden() || self.child.frames_hidden()
    }

    /// Both map the same frame, as far as this kind of evidence can tell.
    fn shared(self, evidence: Evidence) -> bool {
        match evidence {
            Evidence::Pfn => {
                let frame = self.parent.frame();
                frame.is_some() && frame == self.child.frame()
            }
            Evidence::Exclusive => !self.parent.exclusive() && !self.child.exclusive(),
            Evidence::None => false,
        }
    }
}

impl<'m> PageTables<'m> {
    /// Opens pagemap of this process and of the child.
    ///
    /// # Errors
    /// `EACCES`, `ENOENT` (a kernel without CONFIG_PROC_PAGE_MONITOR), `ESRCH`.
    pub fn open(child: i32, page_bytes: usize, memory: &'m mut Memory) -> Result<Self, Errno> {
        Ok(Self {
            parent: open_proc(Process::Myself, "pagemap")?,
            child: open_proc(Process::Id(child), "pagemap")?,
            page_bytes,
            memory,
        })
    }

    /// Decides what kind of evidence there is, and finds the pages to track.
    ///
    /// # Errors
    /// As pread(2); `EIO` if pagemap ends early.
    pub fn before(&mut self, segments: &Segments) -> Result<(Evidence, Before), Errno> {
        let mut evidence = Evidence::Pfn;
        let (mut before, hidden) = self.find_tracked(segments, evidence)?;
        // One hidden frame anywhere, and all are judged by bit 56.
        if hidden {
            evidence = Evidence::Exclusive;
            (before, _) = self.find_tracked(segments, evidence)?;
        }
        Ok((evidence, before))
    }

    /// Marks the pages to track; also says whether any frame number was hidden.
    fn find_tracked(
        &mut self,
        segments: &Segments,
        evidence: Evidence,
    ) -> Result<(Before, bool), Errno> {
        let mut before = Before::default();
        let mut hidden = false;
        self.each_chunk(segments, |tables, first, start, pages| {
            tables.read_chunk(start, pages)?;
            for index in 0..pages {
                let both = tables.pair(index);
                let shared = both.present() && both.shared(evidence);
                hidden |= both.frames_hidden();
                tables.mark(first + index, shared);
                *match (both.present(), shared) {
                    (false, _) => &mut before.absent,
                    (true, true) => &mut before.tracked,
                    (true, false) => &mut before.unshared,
                } += 1;
            }
            Ok(())
        })?;
        Ok((before, hidden))
    }

    /// What became of the tracked pages.
    ///
    /// # Errors
    /// As [`before`](Self::before).
    pub fn after(&mut self, segments: &Segments, evidence: Evidence) -> Result<After, Errno> {
        let mut total = After::default();
        self.each_chunk(segments, |tables, first, start, pages| {
            let chunk = tables.settled_chunk(first, start, pages, evidence)?;
            total.shared += chunk.shared;
            total.split += chunk.split;
            total.lost += chunk.lost;
            Ok(())
        })?;
        Ok(total)
    }

    /// One chunk, read until two readings agree on what was split.
    fn settled_chunk(
        &mut self,
        first: usize,
        start: RemoteAddr,
        pages: usize,
        evidence: Evidence,
    ) -> Result<After, Errno> {
        self.read_chunk(start, pages)?;
        let mut last = self.count(first, pages, evidence);
        for _ in 1..READINGS_MAX {
            if last.split == 0 {
                return Ok(last);
            }
            self.read_chunk(start, pages)?;
            let next = self.count(first, pages, evidence);
            if next == last {
                return Ok(next);
            }
            last = next;
        }
        Ok(After {
            split: 0,
            lost: last.lost + last.split,
            ..last
        })
    }

    fn count(&mut self, first: usize, pages: usize, evidence: Evidence) -> After {
        let mut after = After::default();
        for index in 0..pages {
            if !self.is_tracked(first + index) {
                continue;
            }
            let both = self.pair(index);
            *match (both.present(), both.shared(evidence)) {
                (false, _) => &mut after.lost,
                (true, true) => &mut after.shared,
                (true, false) => &mut after.split,
            } += 1;
        }
        after
    }

    /// Calls `work(self, number of the chunk's first page, its address, its pages)`.
    fn each_chunk(
        &mut self,
        segments: &Segments,
        mut work: impl FnMut(&mut Self, usize, RemoteAddr, usize) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut first = 0;
        for span in segments.spans() {
            let pages = span.len as usize / self.page_bytes;
            for offset in (0..pages).step_by(CHUNK_PAGES) {
                let start = span.start.plus((offset * self.page_bytes) as u64);
                work(self, first + offset, start, CHUNK_PAGES.min(pages - offset))?;
            }
            first += pages;
        }
        Ok(())
    }

    fn read_chunk(&mut self, start: RemoteAddr, pages: usize) -> Result<(), Errno> {
        let offset = file_offset(start.0, self.page_bytes as u64);
        let bytes = entry_bytes(pages);
        let memory = &mut *self.memory;
        for (file, region) in [
            (&self.parent, &mut memory.parent),
            (&self.child, &mut memory.child),
        ] {
            // pagemap of a process that has died reads as empty.
            if read_at(file.as_fd(), &mut region.bytes_mut()[..bytes], offset)? != bytes {
                return Err(Errno::IO);
            }
        }
        Ok(())
    }

    fn pair(&mut self, index: usize) -> Both {
        Both {
            parent: Entry(self.memory.parent.words_mut()[index]),
            child: Entry(self.memory.child.words_mut()[index]),
        }
    }

    fn mark(&mut self, page: usize, tracked: bool) {
        let word = &mut self.memory.tracked.words_mut()[page / 64];
        *word = *word & !(1 << (page % 64)) | u64::from(tracked) << (page % 64);
    }

    fn is_tracked(&mut self, page: usize) -> bool {
        self.memory.tracked.words_mut()[page / 64] >> (page % 64) & 1 == 1
    }
}
