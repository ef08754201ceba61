//! The state of a kind's memory at one time, in both processes.

use super::{Stop, failed, skip};
use crate::fixture::Fixture;
use crate::fixture::kinds::{Ground, reason};
use crate::measure::evidence::Both;
use crate::measure::footprint::{FootprintError, usage};
use crate::proc::pagemap::{ENTRY_BYTES, Entry, file_offset};
use crate::proc::smaps::Usage;
use crate::proc::stat::Stat;
use crate::sys::file::{Process, open, open_proc, read_words_at};
use crate::sys::remote::RemoteSpan;
use crate::sys::{Errno, Region};
use rustix::fd::{AsFd, OwnedFd};

/// Pages in both page tables: a table's entries in one half each.
pub(super) struct Pages {
    words: Region,
    most: usize,
    count: usize,
}

impl Pages {
    /// Room for so many.
    pub(super) fn new(most: usize, page_bytes: usize) -> Result<Self, Errno> {
        let mut words = Region::not_inherited(2 * most * ENTRY_BYTES as usize)?;
        words.touch(page_bytes);
        Ok(Self {
            words,
            most,
            count: 0,
        })
    }

    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.count
    }

    /// A page in both.
    pub(super) fn at(&mut self, page: usize) -> Both {
        let most = self.most;
        let words = self.words.words_mut();
        Both {
            parent: Entry(words[page]),
            child: Entry(words[most + page]),
        }
    }

    #[cfg(test)]
    pub(super) fn of(entries: &[(u64, u64)]) -> Self {
        let mut pages = Self::new(entries.len(), 4096).unwrap();
        pages.count = entries.len();
        for (page, (parent, child)) in entries.iter().enumerate() {
            let words = pages.words.words_mut();
            words[page] = *parent;
            words[entries.len() + page] = *child;
        }
        pages
    }

    /// Reads the entries of a range; where pagemap shows nothing, there are none.
    fn read(
        &mut self,
        tables: &[OwnedFd; 2],
        seen: RemoteSpan,
        page_bytes: u64,
    ) -> Result<(), Errno> {
        let offset = file_offset(seen.start.0, page_bytes);
        self.count = (seen.len / page_bytes) as usize;
        let wanted = self.count;
        for (number, file) in tables.iter().enumerate() {
            let from = number * self.most;
            let entries = &mut self.words.words_mut()[from..from + wanted];
            self.count = self
                .count
                .min(read_words_at(file.as_fd(), entries, offset)?);
        }
        Ok(())
    }
}

/// What is looked at besides pages.
pub(super) struct State {
    pub(super) target: Usage,
    pub(super) partner: Usage,
    pub(super) stat: Stat,
}

/// How the state is looked at.
pub(super) struct Look<'l> {
    tables: [OwnedFd; 2],
    fixture: &'l Fixture,
    ground: &'l Ground,
    page_bytes: u64,
}

impl<'l> Look<'l> {
    pub(super) fn open(
        fixture: &'l Fixture,
        ground: &'l Ground,
        page_bytes: usize,
    ) -> Result<Self, Stop> {
        let open = |process| open_proc(process, "pagemap").map_err(failed);
        Ok(Self {
            tables: [
                open(Process::Myself)?,
                open(Process::Id(fixture.child().pid()))?,
            ],
            fixture,
            ground,
            page_bytes: page_bytes as u64,
        })
    }

    /// The pages alone.
    pub(super) fn pages(&self, pages: &mut Pages) -> Result<(), Stop> {
        let read = pages.read(&self.tables, self.ground.seen(), self.page_bytes);
        read.map_err(failed)
    }

    /// Everything, now.
    pub(super) fn now(&self, pages: &mut Pages) -> Result<State, Stop> {
        self.pages(pages)?;
        let usage = |process| {
            usage(process, self.ground.range()).map_err(|error| match error {
                FootprintError::Kernel(errno) => failed(errno),
                FootprintError::Text(_) => skip("smaps-not-understood"),
            })
        };
        Ok(State {
            target: usage(Process::Id(self.fixture.child().pid()))?,
            partner: usage(Process::Myself)?,
            stat: self.fixture.stat().map_err(failed)?,
        })
    }
}

/// Whether all pages of the kind have one of these bits in /proc/kpageflags.
pub(super) fn flagged(pages: &mut Pages, from: usize, bits: u64) -> Result<bool, Stop> {
    let flags = open(c"/proc/kpageflags").map_err(|errno| match errno {
        Errno::NOENT => skip(reason::CANNOT_BE_PROVED),
        Errno::PERM | Errno::ACCESS => skip(reason::NEEDS_PRIVILEGE),
        _ => failed(errno),
    })?;
    for page in from..pages.len() {
        let Some(frame) = pages.at(page).child.frame() else {
            return Err(skip(reason::NEEDS_PRIVILEGE));
        };
        let mut word = [0];
        let offset = frame.number() * ENTRY_BYTES;
        let read = read_words_at(flags.as_fd(), &mut word, offset).map_err(failed)?;
        if read == 0 || word[0] & bits == 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
