//! Which frames parent and child share, before and after a read.
//!
//! With frame numbers, a page is shared if both map the same frame. Without them
//! (pagemap shows 0 to readers without CAP_SYS_ADMIN) bit 56 decides, "exclusively
//! mapped": a page present in both and exclusive in neither is shared, one that is
//! exclusive in the child is not. Source: Documentation/admin-guide/mm/pagemap.rst.
//!
//! pagemap is read in chunks, parent and child in turn, over the whole range: one call
//! for thousands of pages however small the segments are. The kernel may migrate a page
//! meanwhile, which looks absent, or differs between the two readings; so a chunk in
//! which a page is not as expected is read again, and a split counts only if two
//! readings in a row agree on it.

use crate::proc::pagemap::{ENTRY_BYTES, Entry, file_offset};
use crate::sys::file::{Process, open_proc, read_at};
use crate::sys::{Errno, Region, RemoteAddr, Segments};
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::sched_yield;

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
    /// Sum of the numbers of the split pages: two readings that split other pages differ.
    split_sum: u64,
}

/// Bytes of a chunk of `pages` entries.
const fn entry_bytes(pages: usize) -> usize {
    pages * ENTRY_BYTES as usize
}

/// Pages in a chunk.
const CHUNK_PAGES: usize = 4096;
/// Readings of a chunk before its pages count as what they were last.
const READINGS_MAX: u32 = 8;

/// The page tables of parent and child, as pagemap shows them.
pub struct PageTables<'m> {
    parent: OwnedFd,
    child: OwnedFd,
    page_bytes: usize,
    memory: &'m mut Memory,
}

/// What [`PageTables`] works in: two chunks of entries, and one bit a page of the range.
pub struct Memory {
    parent: Region,
    child: Region,
    tracked: Region,
}

impl Memory {
    /// For arenas that span up to `pages` pages, gaps included.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(pages: usize) -> Result<Self, Errno> {
        let chunk = || Region::not_inherited(entry_bytes(CHUNK_PAGES));
        Ok(Self {
            parent: chunk()?,
            child: chunk()?,
            tracked: Region::not_inherited(pages.div_ceil(64) * 8)?,
        })
    }
}

/// A page in both page tables.
#[derive(Clone, Copy)]
pub(super) struct Both {
    pub(super) parent: Entry,
    pub(super) child: Entry,
}

/// What two page tables say of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Missing in one of them.
    Absent,
    /// The same frame in both, as far as the evidence can tell.
    Shared,
    /// A frame of its own in each.
    Separate,
}

impl Both {
    pub(super) fn frames_hidden(self) -> bool {
        self.parent.frames_hidden() || self.child.frames_hidden()
    }

    pub(super) fn judge(self, evidence: Evidence) -> Found {
        if !self.parent.present() || !self.child.present() {
            return Found::Absent;
        }
        let shared = match evidence {
            Evidence::Pfn => {
                let frame = self.parent.frame();
                frame.is_some() && frame == self.child.frame()
            }
            Evidence::Exclusive => !self.parent.exclusive() && !self.child.exclusive(),
            Evidence::None => false,
        };
        if shared {
            Found::Shared
        } else {
            Found::Separate
        }
    }
}

/// Where an arena's pages lie among those of its range.
#[derive(Clone, Copy)]
struct Grid {
    start: RemoteAddr,
    pages: usize,
    segment_pages: usize,
    stride_pages: usize,
}

/// Some neighbouring pages of a range: the number of the first, and how many.
#[derive(Clone, Copy)]
struct Chunk {
    first: usize,
    pages: usize,
}

impl Grid {
    fn of(segments: &Segments, page_bytes: usize) -> Self {
        let shape = segments.shape();
        Self {
            start: segments.address(0),
            pages: shape.span_bytes() / page_bytes,
            segment_pages: shape.segment_bytes / page_bytes,
            stride_pages: (shape.segment_bytes + shape.gap_bytes) / page_bytes,
        }
    }

    fn chunks(self) -> impl Iterator<Item = Chunk> {
        (0..self.pages)
            .step_by(CHUNK_PAGES)
            .map(move |first| Chunk {
                first,
                pages: CHUNK_PAGES.min(self.pages - first),
            })
    }

    /// Whether a page is one of a segment's, not of a gap.
    const fn is_readable(self, page: usize) -> bool {
        page % self.stride_pages < self.segment_pages
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
        let grid = Grid::of(segments, self.page_bytes);
        let mut evidence = Evidence::Pfn;
        let (mut before, hidden) = self.find_tracked(grid, evidence)?;
        // One hidden frame anywhere, and all are judged by bit 56.
        if hidden {
            evidence = Evidence::Exclusive;
            (before, _) = self.find_tracked(grid, evidence)?;
        }
        Ok((evidence, before))
    }

    /// Marks the pages to track; also says whether any frame number was hidden.
    fn find_tracked(&mut self, grid: Grid, evidence: Evidence) -> Result<(Before, bool), Errno> {
        let mut total = Before::default();
        let mut hidden = false;
        for chunk in grid.chunks() {
            let mut found = Before::default();
            for _ in 0..READINGS_MAX {
                self.read_chunk(grid, chunk)?;
                found = self.mark_shared(grid, chunk, evidence, &mut hidden);
                if hidden || found.absent + found.unshared == 0 {
                    break;
                }
                sched_yield();
            }
            total.tracked += found.tracked;
            total.unshared += found.unshared;
            total.absent += found.absent;
        }
        Ok((total, hidden))
    }

    fn mark_shared(
        &mut self,
        grid: Grid,
        chunk: Chunk,
        evidence: Evidence,
        hidden: &mut bool,
    ) -> Before {
        let mut before = Before::default();
        for index in 0..chunk.pages {
            let page = chunk.first + index;
            let mut tracked = false;
            if grid.is_readable(page) {
                let both = self.pair(index);
                *hidden |= both.frames_hidden();
                match both.judge(evidence) {
                    Found::Absent => before.absent += 1,
                    Found::Separate => before.unshared += 1,
                    Found::Shared => {
                        before.tracked += 1;
                        tracked = true;
                    }
                }
            }
            let word = &mut self.memory.tracked.words_mut()[page / 64];
            *word = *word & !(1 << (page % 64)) | u64::from(tracked) << (page % 64);
        }
        before
    }

    /// What became of the tracked pages.
    ///
    /// # Errors
    /// As [`before`](Self::before).
    pub fn after(&mut self, segments: &Segments, evidence: Evidence) -> Result<After, Errno> {
        let grid = Grid::of(segments, self.page_bytes);
        let mut total = After::default();
        for chunk in grid.chunks() {
            let found = self.settled(grid, chunk, evidence)?;
            total.shared += found.shared;
            total.split += found.split;
            total.lost += found.lost;
        }
        Ok(total)
    }

    /// One chunk, read until nothing is lost and two readings agree on what was split.
    fn settled(&mut self, grid: Grid, chunk: Chunk, evidence: Evidence) -> Result<After, Errno> {
        let mut last = After::default();
        for _ in 0..READINGS_MAX {
            self.read_chunk(grid, chunk)?;
            let now = self.count(chunk, evidence);
            if now.lost == 0 && (now.split == 0 || now == last) {
                return Ok(now);
            }
            last = now;
            sched_yield();
        }
        Ok(After {
            shared: last.shared,
            split: 0,
            lost: last.lost + last.split,
            split_sum: 0,
        })
    }

    fn count(&mut self, chunk: Chunk, evidence: Evidence) -> After {
        let mut after = After::default();
        for index in 0..chunk.pages {
            let page = chunk.first + index;
            if self.memory.tracked.words_mut()[page / 64] >> (page % 64) & 1 == 0 {
                continue;
            }
            match self.pair(index).judge(evidence) {
                Found::Absent => after.lost += 1,
                Found::Shared => after.shared += 1,
                Found::Separate => {
                    after.split += 1;
                    after.split_sum = after.split_sum.wrapping_add(page as u64);
                }
            }
        }
        after
    }

    fn read_chunk(&mut self, grid: Grid, chunk: Chunk) -> Result<(), Errno> {
        let start = grid.start.plus((chunk.first * self.page_bytes) as u64);
        let offset = file_offset(start.0, self.page_bytes as u64);
        let bytes = entry_bytes(chunk.pages);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, PRESENT, SWAPPED};

    fn judge(parent: u64, child: u64, evidence: Evidence) -> Found {
        let (parent, child) = (Entry(parent), Entry(child));
        Both { parent, child }.judge(evidence)
    }

    #[test]
    fn frames_are_compared_and_a_hidden_one_is_never_shared() {
        let pfn = |parent, child| judge(parent, child, Evidence::Pfn);
        assert_eq!(pfn(PRESENT | 7, PRESENT | 7), Found::Shared);
        assert_eq!(pfn(PRESENT | 7, PRESENT | 8), Found::Separate);
        // Present, and the number reads as 0.
        assert_eq!(pfn(PRESENT, PRESENT), Found::Separate);
        // The low bits of a swapped entry are no frame.
        assert_eq!(pfn(SWAPPED | 7, SWAPPED | 7), Found::Absent);
        assert_eq!(pfn(PRESENT | 7, 0), Found::Absent);
    }

    #[test]
    fn bit_56_on_either_side_means_not_shared() {
        let exclusive = |parent, child| judge(parent, child, Evidence::Exclusive);
        assert_eq!(exclusive(PRESENT, PRESENT), Found::Shared);
        assert_eq!(exclusive(PRESENT, PRESENT | EXCLUSIVE), Found::Separate);
        assert_eq!(exclusive(PRESENT | EXCLUSIVE, PRESENT), Found::Separate);
        assert_eq!(exclusive(EXCLUSIVE, PRESENT), Found::Absent);
    }

    #[test]
    fn without_evidence_nothing_is_shared() {
        assert_eq!(
            judge(PRESENT | 7, PRESENT | 7, Evidence::None),
            Found::Separate
        );
    }

    #[test]
    fn gaps_are_left_out_and_every_page_is_in_one_chunk() {
        let grid = Grid {
            start: RemoteAddr(0),
            pages: 5 * 2000 - 1,
            segment_pages: 4,
            stride_pages: 5,
        };
        let readable = (0..grid.pages)
            .filter(|&page| grid.is_readable(page))
            .count();
        assert_eq!(readable, 4 * 2000);
        let mut next = 0;
        for chunk in grid.chunks() {
            assert_eq!(chunk.first, next);
            next += chunk.pages;
        }
        assert_eq!(next, grid.pages);
    }
}
