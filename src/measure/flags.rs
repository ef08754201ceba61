//! /proc/kpageflags: a word of flags for each frame, which only root is shown
//! (Documentation/admin-guide/mm/pagemap.rst; fs/proc/page.c).

use super::census::CHUNK_PAGES;
use crate::proc::pagemap::Entry;
use crate::reader::hybrid::large::{self, Large};
use crate::reader::own_page::own_entry;
use crate::sys::file::{open, read_words_at};
use crate::sys::{Errno, Region};
use rustix::fd::{AsFd, OwnedFd};

/// Frames in a row whose flags one call reads.
const FRAMES: usize = 64;

/// Gives `take` each place with the flags of its frame, until it says that it needs no more. Frames that lie side by side, upwards or
/// downwards, as the kernel hands them out, are asked for together. `None`: they cannot be read.
pub(super) fn each(
    flags: &OwnedFd,
    frames: impl Iterator<Item = (usize, u64)>,
    take: &mut dyn FnMut(usize, u64) -> bool,
) -> Option<()> {
    let mut frames = frames.peekable();
    let mut places = [0; FRAMES];
    let mut found = [0; FRAMES];
    while let Some((place, first)) = frames.next() {
        places[0] = place;
        let up = frames.peek().is_none_or(|&(_, next)| next > first);
        let (mut count, mut lowest) = (1, first);
        while count < FRAMES
            && let Some((place, frame)) = frames.next_if(|&(_, frame)| match up {
                true => frame == first + count as u64,
                false => frame + count as u64 == first,
            })
        {
            places[count] = place;
            lowest = lowest.min(frame);
            count += 1;
        }
        let found = &mut found[..count];
        if read_words_at(flags.as_fd(), found, lowest * size_of::<u64>() as u64) != Ok(count) {
            return None;
        }
        if !up {
            found.reverse();
        }
        let mut found = places.iter().zip(&*found);
        if !found.all(|(&place, &word)| take(place, word)) {
            return Some(());
        }
    }
    Some(())
}

/// Each anonymous page among these entries whose frame is to be seen, with the frame's number.
pub(super) fn anonymous(entries: &[u64]) -> impl Iterator<Item = (usize, u64)> {
    entries.iter().enumerate().filter_map(|(place, &word)| {
        let frame = Entry(word).frame().filter(|_| Entry(word).anonymous())?;
        Some((place, frame.number()))
    })
}

/// Anonymous memory.
const ANON: u64 = 1 << 12;
/// COMPOUND_HEAD, COMPOUND_TAIL, THP: the flags of its first page may stand for all of it.
const LARGE: u64 = 1 << 15 | 1 << 16 | 1 << 22;
/// Number 34, MAPPEDTODISK, which of anonymous memory is PG_anon_exclusive (since Linux 5.19,
/// include/linux/page-flags.h; tools/mm/page-types.c tells it the same way): nobody else can have it,
/// so a pin leaves it alone (mm/gup.c, `gup_must_unshare`).
const ANON_EXCLUSIVE: u64 = 1 << 34;

const WORDS: usize = CHUNK_PAGES as usize / 64;

/// Of as many pages as one look sees, what the kernel knows each to be.
pub(super) struct Marks {
    own: [u64; WORDS],
    not_own: [u64; WORDS],
}

impl Marks {
    /// Nothing is known.
    pub(super) const NONE: Self = Self {
        own: [0; WORDS],
        not_own: [0; WORDS],
    };

    /// Whether the kernel knows an anonymous page to be the process's own; a pin of one that is not
    /// copies it, or makes it so in place. `None`: it cannot be told.
    pub(super) fn is_own(&self, page: usize) -> Option<bool> {
        let has = |words: &[u64; WORDS]| words[page / 64] >> (page % 64) & 1 == 1;
        match (has(&self.own), has(&self.not_own)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// Where [`Marks`] come from.
pub(super) struct Owners {
    flags: Option<OwnedFd>,
    /// Whether every large folio is a huge page that a process maps as a whole: who alone maps a page of
    /// one, maps it so, and the flags of its first page are those of all.
    are_wholes: bool,
}

impl Owners {
    /// Nobody tells, unless the flag was seen on a page of our own that was just written: older
    /// kernels do not have it.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn open(page_bytes: usize) -> Result<Self, Errno> {
        let mut page = Region::not_inherited(page_bytes)?;
        page.small_pages();
        page.touch(page_bytes);
        let flags = open(c"/proc/kpageflags").ok().filter(|flags| {
            let mut seen = 0;
            let entry = own_entry(page.address() as u64, page_bytes as u64);
            let frame = entry.ok().and_then(Entry::frame);
            let frames = frame.map(|frame| (0, frame.number())).into_iter();
            let told = each(flags, frames, &mut |_, word| {
                seen = word;
                true
            });
            told.is_some() && seen & ANON > 0 && seen & ANON_EXCLUSIVE > 0
        });
        let are_wholes = matches!(large::now(), Large::None | Large::Whole(_));
        Ok(Self { flags, are_wholes })
    }

    /// Looks at the anonymous pages among these entries.
    pub(super) fn look(&self, entries: &[u64], marks: &mut Marks) {
        *marks = Marks::NONE;
        let Some(flags) = &self.flags else {
            return;
        };
        // What was told before it failed, was told.
        let _ = each(flags, anonymous(entries), &mut |place, word| {
            let is_own = word & ANON_EXCLUSIVE > 0;
            let is_whole = self.are_wholes && Entry(entries[place]).exclusive();
            let words = match word & ANON > 0 {
                true if word & LARGE == 0 && !is_own => Some(&mut marks.not_own),
                // Of a huge page that is not, one fault may change that of all its pages.
                true if is_own && (word & LARGE == 0 || is_whole) => Some(&mut marks.own),
                _ => None,
            };
            if let Some(words) = words {
                words[place / 64] |= 1 << (place % 64);
            }
            true
        });
    }
}
