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
/// Part of a large folio: COMPOUND_HEAD, COMPOUND_TAIL, THP. The flags of the first page may stand for all of
/// it, and bit 56 of pagemap errs both ways.
pub(super) const LARGE: u64 = 1 << 15 | 1 << 16 | 1 << 22;
/// Number 34, MAPPEDTODISK, which of anonymous memory is PG_anon_exclusive (since Linux 5.19,
/// include/linux/page-flags.h; tools/mm/page-types.c tells it the same way): nobody else can have it,
/// so a pin leaves it alone (mm/gup.c, `gup_must_unshare`).
const ANON_EXCLUSIVE: u64 = 1 << 34;

/// To be written out before it can be reclaimed. Writing to an anonymous page marks its entry only; when the
/// page is moved, it takes that over (mm/rmap.c, `try_to_migrate_one`).
const DIRTY: u64 = 1 << 4;
/// SWAPCACHE and KSM, which make a page dirty for reasons of their own (mm/swapfile.c, `folio_free_swap`;
/// mm/ksm.c, `try_to_merge_one_page`).
const PREPARED: u64 = SWAPCACHE | KSM;
const SWAPCACHE: u64 = 1 << 13;
const KSM: u64 = 1 << 21;

/// Of as many pages as one look sees, what the kernel knows each to be.
pub(super) struct Marks {
    /// Some of [`OWN`], …
    pages: [u8; CHUNK_PAGES as usize],
    /// Whether all could be looked at.
    pub(super) complete: bool,
}

const OWN: u8 = 1;
const NOT_OWN: u8 = 1 << 1;
/// Anonymous, of one page, and neither joined nor on its way to swap; dirty, or clean.
const WRITTEN: u8 = 1 << 2;
const FRESH: u8 = 1 << 3;
/// Joined by KSM.
pub(super) const JOINED: u8 = 1 << 4;
/// In the swap cache: it has a copy in swap, or gets one.
pub(super) const CACHED: u8 = 1 << 5;

/// Where a page that lies in another frame than before may have come from, by the flags of that frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// Clean, as the copy that a pin makes (mm/memory.c, `wp_page_copy`, which marks it dirty only for
    /// a write); or nothing is known.
    #[default]
    Copied,
    /// It was written before, so no pin has just made it: the kernel has moved it.
    Moved,
    /// Part of a large folio, joined by KSM or on its way to swap: no pin made it so. Or the page was
    /// moved on before its flags were read.
    Altered,
}

impl Marks {
    /// Nothing is known.
    pub(super) const NONE: Self = Self {
        pages: [0; CHUNK_PAGES as usize],
        complete: false,
    };

    /// Keeps only what is of pages whose entry is still the same: the frame of another may have been somebody
    /// else's by then, and in the swap cache.
    pub(super) fn keep_same(&mut self, entries: &[u64], now: &[u64]) {
        for ((entry, now), page) in entries.iter().zip(now).zip(&mut self.pages) {
            if entry != now {
                *page = CACHED;
            }
        }
    }

    /// Whether the kernel knows an anonymous page to be the process's own; a pin of one that is not
    /// copies it, or makes it so in place. `None`: it cannot be told.
    pub(super) fn is_own(&self, page: usize) -> Option<bool> {
        match self.pages[page] & (OWN | NOT_OWN) {
            0 => None,
            known => Some(known & OWN > 0),
        }
    }

    /// Whether the page is [`JOINED`], or may be [`CACHED`].
    pub(super) fn is(&self, mark: u8, page: usize) -> bool {
        self.pages[page] & mark > 0
    }

    /// Where the page comes from, if its frame is another one than before.
    pub(super) fn origin(&self, page: usize) -> Origin {
        match self.pages[page] & (WRITTEN | FRESH) {
            0 if self.complete => Origin::Altered,
            WRITTEN => Origin::Moved,
            _ => Origin::Copied,
        }
    }
}

/// Whether nothing is part of a large folio but huge pages that a process maps as a whole.
fn are_wholes() -> bool {
    matches!(large::now(), Large::None | Large::Whole(_))
}

/// Where [`Marks`] come from.
pub(super) struct Owners {
    flags: Option<OwnedFd>,
    /// Whether every large folio is a huge page that a process maps as a whole: who alone maps a page of
    /// one, maps it so, and the flags of its first page are those of all.
    are_wholes: bool,
    /// Whether that was relied on.
    relied: bool,
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
        Ok(Self {
            flags,
            are_wholes: false,
            relied: false,
        })
    }

    /// Asks how large folios are mapped, for the looks that follow.
    pub(super) fn begin(&mut self) {
        self.are_wholes = are_wholes();
        self.relied = false;
    }

    /// Whether the looks since then told the truth: a huge page that was broken meanwhile may be one of
    /// those.
    pub(super) fn told_the_truth(&self) -> bool {
        !self.relied || are_wholes()
    }

    /// Whether there is anything to be told.
    pub(super) const fn tell(&self) -> bool {
        self.flags.is_some()
    }

    /// Looks at the anonymous pages among these entries.
    pub(super) fn look(&mut self, entries: &[u64], marks: &mut Marks) {
        *marks = Marks::NONE;
        let Some(flags) = &self.flags else {
            return;
        };
        let (are_wholes, relied) = (self.are_wholes, &mut self.relied);
        // What was told before it failed, was told.
        let told = each(flags, anonymous(entries), &mut |place, word| {
            let is_own = word & ANON_EXCLUSIVE > 0;
            let is_whole = are_wholes && Entry(entries[place]).exclusive();
            let whose = match word & ANON > 0 {
                true if word & LARGE == 0 && !is_own => NOT_OWN,
                // Of a huge page that is not, one fault may change that of all its pages.
                true if is_own && word & LARGE == 0 => OWN,
                true if is_own && is_whole => {
                    *relied = true;
                    OWN
                }
                _ => 0,
            };
            let from = match word & (ANON | LARGE | PREPARED | DIRTY) {
                ANON => FRESH,
                word if word == ANON | DIRTY => WRITTEN,
                _ => 0,
            };
            let joined = if word & KSM > 0 { JOINED } else { 0 };
            let cached = if word & SWAPCACHE > 0 { CACHED } else { 0 };
            marks.pages[place] = whose | from | joined | cached;
            true
        });
        marks.complete = told.is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, PRESENT};

    /// What is told of pages in frames 1, 2, …, which have these flags, and whether that huge pages are
    /// whole was relied on.
    fn told(are_wholes: bool, pages: &[(u64, u64)]) -> (std::vec::Vec<Option<bool>>, bool) {
        let (marks, relied) = looked(are_wholes, pages);
        let each = (0..pages.len()).map(|page| marks.is_own(page));
        (each.collect(), relied)
    }

    fn looked(are_wholes: bool, pages: &[(u64, u64)]) -> (Marks, bool) {
        let words = core::iter::once(0).chain(pages.iter().map(|&(_, flags)| flags));
        let bytes: std::vec::Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        let file = rustix::fs::memfd_create("flags", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(rustix::io::write(&file, &bytes), Ok(bytes.len()));
        let mut owners = Owners {
            flags: Some(file),
            are_wholes,
            relied: false,
        };
        let frames = (1..).zip(pages);
        let entries: std::vec::Vec<u64> = frames
            .map(|(frame, (entry, _))| PRESENT | entry | frame)
            .collect();
        let mut marks = Marks::NONE;
        owners.look(&entries, &mut marks);
        assert!(marks.complete);
        (marks, owners.relied)
    }

    #[test]
    fn nothing_is_known_of_a_page_that_went_on_before_its_flags_were_read() {
        let own = ANON | ANON_EXCLUSIVE | DIRTY;
        let (mut marks, _) = looked(true, &[(0, own), (0, own), (0, ANON)]);
        let known = |marks: &Marks| [0, 1, 2].map(|page| (marks.is_own(page), marks.origin(page)));
        let [yes, no] = [(Some(true), Origin::Moved), (Some(false), Origin::Copied)];
        assert_eq!(known(&marks), [yes, yes, no]);
        marks.keep_same(&[1, 2, 3], &[1, 2, 3]);
        assert_eq!(known(&marks), [yes, yes, no]);
        marks.keep_same(&[1, 2, 3], &[1, 5, 0]);
        assert_eq!(
            known(&marks),
            [yes, (None, Origin::Altered), (None, Origin::Altered)]
        );
    }

    #[test]
    fn a_page_in_another_frame_is_a_copy_only_if_it_is_as_pins_make_them() {
        let origin = |flags: u64| looked(true, &[(0, flags)]).0.origin(0);
        assert_eq!(origin(ANON), Origin::Copied);
        assert_eq!(origin(ANON | ANON_EXCLUSIVE | 1 << 3), Origin::Copied);
        assert_eq!(origin(ANON | ANON_EXCLUSIVE | DIRTY), Origin::Moved);
        for other in [1 << 13, 1 << 15, 1 << 16, 1 << 21, 1 << 22] {
            for flags in [ANON | other, ANON | DIRTY | other] {
                assert_eq!(origin(flags), Origin::Altered, "{flags:x}");
            }
        }
        let is = |mark, flags: u64| looked(true, &[(0, flags)]).0.is(mark, 0);
        let [cached, joined] = [13, 21].map(|bit| ANON | 1 << bit);
        for (flags, want) in [
            (cached, (true, false)),
            (joined, (false, true)),
            (cached | joined, (true, true)),
            (ANON, (false, false)),
        ] {
            assert_eq!((is(CACHED, flags), is(JOINED, flags)), want, "{flags:x}");
        }
        // It was moved on meanwhile.
        for flags in [0, DIRTY, 1 << 10] {
            assert_eq!(origin(flags), Origin::Altered, "{flags:x}");
        }
        // Nobody tells.
        assert_eq!(Marks::NONE.origin(0), Origin::Copied);
    }

    #[test]
    fn the_kernel_tells_whose_a_small_page_is_and_of_a_whole_huge_one_that_it_is_ones_own() {
        let own = ANON | ANON_EXCLUSIVE;
        let small = [
            (EXCLUSIVE, own),
            (EXCLUSIVE, ANON),
            (0, ANON),
            // Whoever knows no anonymous memory there, looked at another page.
            (EXCLUSIVE, ANON_EXCLUSIVE),
        ];
        let says = std::vec![Some(true), Some(false), Some(false), None];
        assert_eq!(told(true, &small), (says.clone(), false));
        assert_eq!(told(false, &small), (says, false));
        for part in [1 << 15, 1 << 16, 1 << 22] {
            let huge = [
                (EXCLUSIVE, own | part),
                (0, own | part),
                (EXCLUSIVE, ANON | part),
            ];
            assert_eq!(told(true, &huge), (std::vec![Some(true), None, None], true));
            assert_eq!(told(false, &huge), (std::vec![None; 3], false));
        }
    }
}
