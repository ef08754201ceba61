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
use crate::sys::{Errno, Region};
use rustix::fd::{AsFd, OwnedFd};

/// Readings of the page tables before they count as never at rest.
const READINGS_MAX: usize = 8;

/// Pages in both page tables: a table's entries in one quarter each, of two readings.
pub(super) struct Pages {
    words: Region,
    most: usize,
    count: usize,
}

impl Pages {
    /// Room for so many.
    pub(super) fn new(most: usize, page_bytes: usize) -> Result<Self, Errno> {
        let mut words = Region::not_inherited(4 * most * ENTRY_BYTES as usize)?;
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

    /// Reads `wanted` entries of each table, by its number, until two readings in a row agree: a
    /// page that the kernel moves meanwhile looks absent, or lies in one frame here and in
    /// another there. Where a table has nothing, there are none.
    fn read(
        &mut self,
        wanted: usize,
        mut read: impl FnMut(usize, &mut [u64]) -> Result<usize, Errno>,
    ) -> Result<(), Stop> {
        for reading in 0..READINGS_MAX {
            self.count = wanted;
            for table in 0..2 {
                let from = (reading % 2 * 2 + table) * self.most;
                let entries = &mut self.words.words_mut()[from..from + wanted];
                self.count = self.count.min(read(table, entries).map_err(failed)?);
            }
            if reading > 0 && self.agree() {
                return Ok(());
            }
        }
        Err(skip(reason::PAGES_MOVED))
    }

    /// Whether the two last readings do.
    fn agree(&mut self) -> bool {
        let (most, count) = (self.most, self.count);
        let (one, other) = self.words.words_mut().split_at(2 * most);
        let mut tables = [0, most].into_iter();
        tables.all(|from| one[from..from + count] == other[from..from + count])
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
        let seen = self.ground.seen();
        let offset = file_offset(seen.start.0, self.page_bytes);
        let wanted = (seen.len / self.page_bytes) as usize;
        pages.read(wanted, |table, entries| {
            read_words_at(self.tables[table].as_fd(), entries, offset)
        })
    }

    /// Everything, now: smaps, too, until two readings in a row agree. A page that is being moved
    /// is mapped less often meanwhile, and looks clean.
    pub(super) fn now(&self, pages: &mut Pages) -> Result<State, Stop> {
        self.pages(pages)?;
        let mut last = self.usages()?;
        for _ in 1..READINGS_MAX {
            let usages = self.usages()?;
            if usages == last {
                let [target, partner] = usages;
                return Ok(State {
                    target,
                    partner,
                    stat: self.fixture.stat().map_err(failed)?,
                });
            }
            last = usages;
        }
        Err(skip(reason::PAGES_MOVED))
    }

    /// Of the target and of its parent.
    fn usages(&self) -> Result<[Usage; 2], Stop> {
        let of = |process| {
            usage(process, self.ground.range()).map_err(|error| match error {
                FootprintError::Kernel(errno) => failed(errno),
                FootprintError::Text(_) => skip("smaps-not-understood"),
            })
        };
        Ok([
            of(Process::Id(self.fixture.child().pid()))?,
            of(Process::Myself)?,
        ])
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Status;

    /// Readings of one page in parent and child, one after another; the last goes on.
    fn read(readings: &[[u64; 2]]) -> (Result<(), Stop>, [u64; 2], usize) {
        let mut pages = Pages::new(3, 4096).unwrap();
        let mut calls = 0;
        let ended = pages.read(1, |table, entries| {
            let reading = readings.get(calls / 2).or(readings.last()).unwrap();
            entries[0] = reading[table];
            calls += 1;
            Ok(1)
        });
        let page = pages.at(0);
        (ended, [page.parent.0, page.child.0], calls / 2)
    }

    /// The kernel has moved a page between the look at the parent and that at the child.
    #[test]
    fn what_two_readings_do_not_agree_on_is_read_again() {
        let (ended, page, readings) = read(&[[7, 8], [8, 8]]);
        assert!(ended.is_ok());
        assert_eq!((page, readings), ([8, 8], 3));
        let (ended, page, readings) = read(&[[7, 8]]);
        assert!(ended.is_ok());
        assert_eq!((page, readings), ([7, 8], 2));
    }

    #[test]
    fn what_never_comes_to_rest_is_no_finding() {
        let moving: [[u64; 2]; 9] = core::array::from_fn(|at| [at as u64; 2]);
        let (ended, ..) = read(&moving);
        let moved = Status::Skipped(reason::PAGES_MOVED);
        assert!(matches!(ended, Err(Stop::Status(status)) if status == moved));
    }
}
