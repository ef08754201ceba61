//! The look at the target's page table: a piece of pagemap ahead of what is read next. Small,
//! so that little time passes between the look and the read.

use super::decide::doubt_wholes;
use crate::proc::pagemap::{Entry, file_offset};
use crate::proc::status;
use crate::sys::file::{Process, read_proc, read_words_at};
use crate::sys::remote::RemoteSpan;
use crate::sys::{Errno, RemoteAddr};
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::sched_yield;

/// Pages that one look covers: what pagemap itself walks at a time (one page table).
const PAGES: u64 = 512;
/// Pages that a look covers at least, since the next ranges are often near; twice as many
/// after each time that they were.
const AHEAD: u64 = 64;
/// Looks at what seems swapped out and may only be under migration, which is over soon; of a
/// process that has nothing in swap, and of one that has.
const LOOKS_MAX: [u32; 2] = [64, 3];

pub(super) struct Look {
    pid: i32,
    pagemap: OwnedFd,
    page_bytes: u64,
    /// Pages of a huge page, where such may be mapped as a whole.
    huge_pages: Option<u64>,
    entries: [u64; PAGES as usize],
    /// Number of the first page that was looked at, and how many were.
    first: u64,
    count: u64,
    ahead: u64,
}

impl Look {
    pub(super) const fn new(
        pid: i32,
        page_bytes: u64,
        huge_pages: Option<u64>,
        pagemap: OwnedFd,
    ) -> Self {
        Self {
            pid,
            pagemap,
            page_bytes,
            huge_pages,
            // Not mapped: a new mapping could land in a gap of what is measured.
            entries: [0; PAGES as usize],
            first: 0,
            count: 0,
            ahead: AHEAD,
        }
    }

    /// Forgets what was seen.
    pub(super) const fn forget(&mut self) {
        self.count = 0;
    }

    /// Looks at `at`, and on towards `end`, unless that was done; gives the bytes from `at` on
    /// that are covered.
    pub(super) fn at(&mut self, at: RemoteAddr, end: RemoteAddr) -> Result<u64, Errno> {
        let page = at.0 / self.page_bytes;
        if page < self.first || page >= self.first + self.count {
            let is_near = page.wrapping_sub(self.first + self.count) < AHEAD;
            self.ahead = if is_near { self.ahead * 2 } else { AHEAD }.min(PAGES);
            let wanted = end.0.div_ceil(self.page_bytes) - page;
            self.look(page, wanted.clamp(self.ahead, PAGES))?;
        }
        Ok((self.first + self.count) * self.page_bytes - at.0)
    }

    fn look(&mut self, page: u64, wanted: u64) -> Result<(), Errno> {
        self.read(page, wanted)?;
        if let Some(huge_pages) = self.huge_pages {
            doubt_wholes(&mut self.entries[..self.count as usize], page, huge_pages);
        }
        Ok(())
    }

    fn read(&mut self, page: u64, wanted: u64) -> Result<(), Errno> {
        let offset = file_offset(page * self.page_bytes, self.page_bytes);
        let mut looks = 0;
        loop {
            let entries = &mut self.entries[..wanted as usize];
            // Fewer at the end of the address space; none of a process that is gone.
            self.count = read_words_at(self.pagemap.as_fd(), entries, offset)? as u64;
            self.first = page;
            if self.count == 0 {
                // Nothing at an address that is no process's, either.
                let is_alive = read_words_at(self.pagemap.as_fd(), &mut [0], 0)? > 0;
                return Err(if is_alive { Errno::IO } else { Errno::SRCH });
            }
            let mut seen = self.entries[..self.count as usize].iter();
            // Mostly none is, and there are many pages.
            let all = seen.clone().fold(0, |all, word| all | word);
            if !Entry(all).swapped()
                || !seen.any(|&word| Entry(word).swapped() && !Entry(word).guard())
            {
                return Ok(());
            }
            looks += 1;
            if looks >= LOOKS_MAX[0] || looks >= LOOKS_MAX[1] && has_swapped(self.pid) {
                return Ok(());
            }
            sched_yield();
        }
    }

    /// The entries of the pages of `part`, which was looked at.
    pub(super) fn entries(&self, part: RemoteSpan) -> &[u64] {
        let first = part.start.0 / self.page_bytes - self.first;
        let end = (part.start.0 + part.len).div_ceil(self.page_bytes) - self.first;
        &self.entries[first as usize..end as usize]
    }
}

/// Whether any of the process's memory is in swap; unknown is yes.
fn has_swapped(pid: i32) -> bool {
    let mut buffer = [0; 8192];
    let text = read_proc(Process::Id(pid), "status", &mut buffer);
    let kib = text
        .ok()
        .and_then(|text| status::kib_field(text, b"VmSwap"));
    kib != Some(0)
}
