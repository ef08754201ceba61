//! What became of a page, by its entries in the page table before and after a reader came by.

use crate::proc::pagemap::{Entry, Frame};

/// Pages by what became of them between two looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// Anonymous and mapped by others, too, before: by bit 56, or because reading copied them.
    pub tracked: u64,
    /// Of these, as before.
    pub still_shared: u64,
    /// Of these, now a copy of the process's own.
    pub split: u64,
    /// Of these, those that bit 56 had called the process's own.
    pub split_exclusive: u64,
    /// Absent before, present now.
    pub faulted_in: u64,
    /// Swapped out before, present now.
    pub swapped_in: u64,
    /// Whether more of them, or fewer, may have come out of swap: shared memory has no entry there,
    /// and a mark of userfaultfd looks the same to who sees no frames.
    pub swap_unseen: bool,
    /// Of hugetlb memory and tracked before, the same frame, and the process's own now, while the
    /// reader was charged with faults: taken from the others (mm/hugetlb.c, `hugetlb_wp`).
    pub taken: u64,
    /// Changed in another way, which reading does not explain.
    pub raced: u64,
    /// Entries of pages in swap before.
    pub(super) in_swap: u64,
}

/// What is known of a range before its pages are looked at.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// The zero page's frame where frames can be seen.
    pub(super) zero: Option<Frame>,
    /// Whether none of it is in swap.
    pub(super) no_swap: bool,
}

impl Fate {
    /// Takes one page over.
    pub(super) fn page(&mut self, before: Entry, after: Entry, Known { zero, no_swap }: Known) {
        let in_swap = before.swapped() && !before.guard() && before.mark().is_none() && !no_swap;
        self.in_swap += u64::from(in_swap);
        let anonymous = before.present() && !before.file_or_shared_anon();
        let is_zero = zero.is_some() && before.frame() == zero;
        if anonymous && !before.exclusive() && !is_zero {
            self.tracked += 1;
            *self.of_tracked(before, after) += 1;
            return;
        }
        let stays_anonymous = anonymous && after.present() && !after.file_or_shared_anon();
        if stays_anonymous && !is_zero && before.frame() != after.frame() {
            // Copied, whatever bit 56 said: it errs on large folios, and does not know who else
            // refers to the page.
            self.tracked += 1;
            self.split += 1;
            self.split_exclusive += 1;
            return;
        }
        match (before.present(), after.present()) {
            (false, true) if in_swap => {
                self.swapped_in += 1;
                self.swap_unseen |= before.uffd_wp() && zero.is_none();
            }
            (false, true) => self.faulted_in += 1,
            (true, false) => self.raced += 1,
            (true, true) if before.frame() != after.frame() => self.raced += 1,
            _ => {}
        }
    }

    /// Of what was split since `was`, the reader has copied `most` pages at most: the others were
    /// replaced by somebody else. Those that bit 56 had called the process's own are among these
    /// first, and are not tracked then.
    pub fn bound(&mut self, was: &Self, most: u64) {
        let others = (self.split - was.split).saturating_sub(most);
        let own = others.min(self.split_exclusive - was.split_exclusive);
        self.split -= others;
        self.raced += others;
        self.split_exclusive -= own;
        self.tracked -= own;
    }

    /// What was called raced, or split where frames are hidden, was taken from others.
    pub(super) fn take(&mut self, pages: u64, hidden: bool) {
        let place = match hidden {
            true => &mut self.split,
            false => &mut self.raced,
        };
        *place -= pages;
        self.taken += pages;
    }

    /// Where frames cannot be seen, they are the same.
    fn of_tracked(&mut self, before: Entry, after: Entry) -> &mut u64 {
        let same_frame = before.frame() == after.frame();
        let hidden = before.frames_hidden();
        match (
            after.present() && !after.file_or_shared_anon(),
            after.exclusive(),
        ) {
            (true, false) if same_frame => &mut self.still_shared,
            (true, true) if hidden => &mut self.split,
            // Another frame is a copy, though a fork may have shared it again.
            (true, _) if !same_frame => &mut self.split,
            // The same frame, and now nobody else's: the others let it go.
            _ => &mut self.raced,
        }
    }
}

/// Whether nobody else maps it, by bit 56. Without frame numbers a copy of it looks the same.
pub(super) const fn is_own(entry: Entry) -> bool {
    entry.present() && !entry.file_or_shared_anon() && entry.exclusive()
}

/// Whether an anonymous page that others had, too, is the process's own now, in the same frame.
pub(super) fn is_let_go(before: Entry, after: Entry) -> bool {
    let anonymous = |entry: Entry| entry.present() && !entry.file_or_shared_anon();
    anonymous(before)
        && anonymous(after)
        && before.frame() == after.frame()
        && (before.exclusive(), after.exclusive()) == (false, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, FILE, PRESENT, SWAPPED};

    fn fate(pages: &[(u64, u64)]) -> Fate {
        let mut fate = Fate::default();
        for &(before, after) in pages {
            let zero = Entry(PRESENT | 3).frame();
            let known = Known {
                zero,
                no_swap: false,
            };
            fate.page(Entry(before), Entry(after), known);
        }
        Fate { in_swap: 0, ..fate }
    }

    /// Nothing but the entry of a page in swap shows that one was brought in.
    #[test]
    fn a_mark_was_never_in_swap() {
        const WRITE_PROTECTED: u64 = SWAPPED | 1 << 57;
        let came = |entry: u64, hidden: bool, no_swap: bool| {
            let mut fate = Fate::default();
            let zero = Entry(PRESENT | 3).frame().filter(|_| !hidden);
            fate.page(
                Entry(entry),
                Entry(PRESENT | EXCLUSIVE),
                Known { zero, no_swap },
            );
            (fate.swapped_in, fate.faulted_in, fate.swap_unseen)
        };
        assert_eq!(came(SWAPPED | 0x60, false, false), (1, 0, false));
        assert_eq!(came(SWAPPED | 0x60, false, true), (0, 1, false));
        assert_eq!(came(WRITE_PROTECTED | 0x3f, false, false), (0, 1, false));
        assert_eq!(came(WRITE_PROTECTED | 0x60, false, false), (1, 0, false));
        // Swapped out and protected, or never there.
        assert_eq!(came(WRITE_PROTECTED, true, false), (1, 0, true));
        assert_eq!(came(WRITE_PROTECTED, true, true), (0, 1, false));
    }

    #[test]
    fn what_is_taken_from_others_is_no_race() {
        let shared = (Entry(PRESENT | 7), Entry(PRESENT | EXCLUSIVE | 7));
        assert!(is_let_go(shared.0, shared.1));
        for (before, after) in [
            (PRESENT | 7, PRESENT | EXCLUSIVE | 8),
            (PRESENT | EXCLUSIVE | 7, PRESENT | EXCLUSIVE | 7),
            (PRESENT | FILE | 7, PRESENT | EXCLUSIVE | 7),
            (PRESENT | 7, 0),
        ] {
            assert!(!is_let_go(Entry(before), Entry(after)), "{before:x}");
        }
        let mut fate = fate(&[(shared.0.0, shared.1.0)]);
        fate.take(1, false);
        assert_eq!((fate.taken, fate.raced, fate.split), (1, 0, 0));
    }

    /// Two shared pages and one of its own lie elsewhere.
    #[test]
    fn what_the_reader_cannot_have_copied_is_raced() {
        let shared = (PRESENT | 7, PRESENT | EXCLUSIVE | 8);
        let own = (PRESENT | EXCLUSIVE | 7, PRESENT | EXCLUSIVE | 8);
        let before = fate(&[shared]);
        for (most, split, split_exclusive, tracked) in [
            (9, 3, 1, 3),
            (3, 3, 1, 3),
            (2, 2, 0, 2),
            (1, 1, 0, 2),
            (0, 0, 0, 2),
        ] {
            let mut fate = fate(&[shared, shared, shared, own]);
            fate.bound(&before, most);
            let want = Fate {
                tracked: 1 + tracked,
                split: 1 + split,
                split_exclusive,
                raced: 3 - split,
                ..Fate::default()
            };
            assert_eq!(fate, want, "{most}");
        }
    }

    #[test]
    fn a_copy_of_ones_own_is_a_split_and_nothing_else_is() {
        let split = Fate {
            tracked: 1,
            split: 1,
            ..Fate::default()
        };
        assert_eq!(fate(&[(PRESENT | 7, PRESENT | EXCLUSIVE | 8)]), split);
        // Bit 56 stays 0 on a large folio, or a fork shares the copy.
        assert_eq!(fate(&[(PRESENT | 7, PRESENT | 8)]), split);
        let exclusive = Fate {
            split_exclusive: 1,
            ..split
        };
        assert_eq!(
            fate(&[(PRESENT | EXCLUSIVE | 7, PRESENT | EXCLUSIVE | 8)]),
            exclusive
        );
        assert_eq!(fate(&[(PRESENT | EXCLUSIVE | 7, PRESENT | 8)]), exclusive);
        // Without frames only bit 56 tells.
        assert_eq!(fate(&[(PRESENT, PRESENT | EXCLUSIVE)]), split);
        let shared = Fate {
            tracked: 1,
            still_shared: 1,
            ..Fate::default()
        };
        assert_eq!(fate(&[(PRESENT | 7, PRESENT | 7)]), shared);
        assert_eq!(fate(&[(PRESENT, PRESENT)]), shared);
        let raced = Fate {
            tracked: 1,
            raced: 1,
            ..Fate::default()
        };
        // The others let it go; gone; swapped out.
        for after in [PRESENT | EXCLUSIVE | 7, 0, SWAPPED | 1] {
            assert_eq!(fate(&[(PRESENT | 7, after)]), raced, "{after:x}");
        }
    }

    #[test]
    fn what_comes_in_is_told_from_what_was_there() {
        let pages = [
            (0, PRESENT | FILE | 9),
            (0, PRESENT | 3),
            (SWAPPED | 5, PRESENT | EXCLUSIVE | 9),
            (0, 0),
            (PRESENT | 3, PRESENT | 3),
            (PRESENT | EXCLUSIVE | 9, PRESENT | EXCLUSIVE | 9),
            (PRESENT | FILE | 9, PRESENT | FILE | 9),
            (PRESENT | 3, PRESENT | EXCLUSIVE | 10),
            (PRESENT | FILE | 9, PRESENT | EXCLUSIVE | 10),
            (PRESENT | EXCLUSIVE | 9, 0),
        ];
        let want = Fate {
            faulted_in: 2,
            swapped_in: 1,
            raced: 3,
            ..Fate::default()
        };
        assert_eq!(fate(&pages), want);
    }
}
