//! What became of a page, by its entries in the page table before and after a reader came by.

use super::flags::Origin;
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
    /// Whether it may be more of those, since others replaced such pages, too.
    pub is_mixed: bool,
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

/// What is known of a page beside its entries.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// The zero page's frame where frames can be seen.
    pub(super) zero: Option<Frame>,
    /// Whether none of its mapping is in swap.
    pub(super) no_swap: bool,
    /// Whether the kernel knew it to be the process's own before, if that could be told: then a reader
    /// does not copy it.
    pub(super) was_own: Option<bool>,
    /// The same after.
    pub(super) is_own: Option<bool>,
    /// Whether KSM had joined it with others.
    pub(super) was_joined: bool,
    /// Whether it was in the swap cache.
    pub(super) was_cached: bool,
    /// Where it comes from, if its frame is another one now.
    pub(super) origin: Origin,
}

impl Known {
    /// Whether the kernel has put it into another frame, where it is what it was. Only of a kernel that
    /// tells whose it was it is certain that a copy would be clean: others make one as if for a write.
    fn was_moved(&self, before: Entry, after: Entry) -> bool {
        self.holds(after)
            && before.frame() != after.frame()
            && self.was_own == Some(false)
            && self.origin == Origin::Moved
    }

    /// Whether the kernel was about to move it at the first look, so that it cannot be told whose it was.
    /// Who sees no frames sees an entry of swap, where there is no swap.
    fn was_under_migration(&self, before: Entry, after: Entry) -> bool {
        let is_entry = match self.zero {
            Some(_) => before.under_migration(),
            None => self.no_swap && before.swapped() && !before.guard() && !before.uffd_wp(),
        };
        is_entry && self.holds(after)
    }

    /// Whether it holds anonymous memory, not the zero page.
    fn holds(&self, entry: Entry) -> bool {
        let is_zero = self.zero.is_some() && entry.frame() == self.zero;
        entry.anonymous() && !is_zero
    }
}

impl Fate {
    /// Takes one page over.
    pub(super) fn page(&mut self, before: Entry, after: Entry, known: &Known) {
        let in_swap =
            before.swapped() && !before.guard() && before.mark().is_none() && !known.no_swap;
        self.in_swap += u64::from(in_swap);
        let was_moved = known.was_moved(before, after);
        if known.holds(before) && !before.exclusive() {
            self.tracked += 1;
            if was_moved {
                self.raced += 1;
                return;
            }
            *self.of_tracked(before, after, known) += 1;
            return;
        }
        let stays_anonymous = known.holds(before) && known.holds(after);
        let may_be_copied = known.was_own != Some(true) && !was_moved;
        if stays_anonymous && before.frame() != after.frame() && may_be_copied {
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
                self.swap_unseen |= before.uffd_wp() && known.zero.is_none();
            }
            (false, true) if known.was_under_migration(before, after) => self.raced += 1,
            (false, true) => self.faulted_in += 1,
            (true, false) => self.raced += 1,
            (true, true) if before.frame() != after.frame() => self.raced += 1,
            _ => {}
        }
    }

    /// Of what was split since `was`, the reader has copied `most` pages at most: the others were
    /// replaced by somebody else. Which, is not known; those that bit 56 had called the process's own
    /// are not tracked then.
    pub fn bound(&mut self, was: &Self, most: u64) {
        let others = (self.split - was.split).saturating_sub(most);
        let own = others.min(self.split_exclusive - was.split_exclusive);
        self.split -= others;
        self.raced += others;
        self.split_exclusive -= own;
        self.tracked -= own;
        self.is_mixed |= own > 0;
    }

    /// Of what came in since `was`, the reader has brought in `most` pages at most.
    pub(super) fn bound_came(&mut self, was: &Self, most: u64) {
        let others = (self.faulted_in - was.faulted_in).saturating_sub(most);
        self.faulted_in -= others;
        self.raced += others;
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
    fn of_tracked(&mut self, before: Entry, after: Entry, known: &Known) -> &mut u64 {
        let same_frame = before.frame() == after.frame();
        let hidden = before.frames_hidden();
        match (known.holds(after), after.exclusive()) {
            (true, false) if same_frame => &mut self.still_shared,
            (true, true) if hidden => &mut self.split,
            // Another frame is a copy, though a fork may have shared it again.
            (true, _) if !same_frame => &mut self.split,
            // The same frame, and now nobody else's: the others let it go.
            _ => &mut self.raced,
        }
    }
}

/// What the pages of a window say of the faults that a reader was charged there, in a process that
/// stood still: it forked not, wrote not, and gave nothing back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Traces {
    /// Lie in another frame: copied by the reader, or replaced by somebody else.
    pub(super) replaced: u64,
    /// Of these, those that were in the swap cache.
    pub(super) cached: u64,
    /// Of these, those that KSM had joined.
    pub(super) joined: u64,
    /// The process's own now, where they were: one fault each.
    pub(super) in_place: u64,
    /// Gone, or the zero page, or in another frame as part of something larger; or under migration at the
    /// first look: copied, perhaps, and not seen.
    pub(super) lost: u64,
    /// As before, but of them it cannot be told whether there was anything to unshare: they may have had
    /// a fault each.
    pub(super) untold: u64,
    /// Absent before, and the zero page now: one fault each, whoever had it.
    pub(super) zeros: u64,
    /// Frames are hidden, and a copy looks no different: from a page that the others let go, if they
    /// had it, too, else from the page itself.
    pub(super) unseen: u64,
    /// Of these, the others had it before, and no longer: one fault each, unless they let it go.
    pub(super) became_own: u64,
    /// What the kernel has put into another frame, where it is what it was; or a copy that somebody else
    /// has then written to through a pin (mm/process_vm_access.c).
    pub(super) moved: u64,
}

impl Traces {
    /// Takes one page over. One that was the process's own leaves none: a reader has nothing to do there.
    pub(super) fn page(&mut self, before: Entry, after: Entry, known: &Known) {
        let hidden = before.frames_hidden();
        if !known.holds(before) {
            let is_zero = known.zero.is_some() && after.frame() == known.zero;
            self.zeros += u64::from(!before.present() && is_zero);
            self.lost += u64::from(known.was_under_migration(before, after));
            return;
        }
        let was_moved = known.was_moved(before, after);
        self.moved += u64::from(was_moved);
        let place = match (known.was_own, known.holds(after)) {
            (Some(true), _) => return,
            (_, false) => &mut self.lost,
            _ if hidden && (before.exclusive() || after.exclusive()) => {
                self.became_own += u64::from(!before.exclusive());
                &mut self.unseen
            }
            _ if before.frame() != after.frame() && !was_moved => {
                match known.origin {
                    Origin::Copied => {
                        self.cached += u64::from(known.was_cached);
                        self.joined += u64::from(known.was_joined);
                        &mut self.replaced
                    }
                    // It may have been copied before that.
                    Origin::Moved | Origin::Altered => &mut self.lost,
                }
            }
            (Some(false), _) => match known.is_own {
                Some(true) => &mut self.in_place,
                Some(false) => return,
                None => &mut self.untold,
            },
            (None, _) => &mut self.untold,
        };
        *place += 1;
    }
}

/// Whether an anonymous page that others had, too, is the process's own now, in the same frame.
pub(super) fn is_let_go(before: Entry, after: Entry) -> bool {
    before.anonymous()
        && after.anonymous()
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
                ..Known::default()
            };
            fate.page(Entry(before), Entry(after), &known);
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
            let known = Known {
                zero,
                no_swap,
                ..Known::default()
            };
            fate.page(Entry(entry), Entry(PRESENT | EXCLUSIVE), &known);
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

    /// Neither that it came in nor that it was copied.
    #[test]
    fn what_was_under_migration_may_have_been_copied() {
        const MIGRATION: u64 = SWAPPED | 0x1234 << 5 | 25;
        let found = |before: u64, after: u64, sees_frames: bool| {
            let known = Known {
                zero: Entry(PRESENT | 3).frame().filter(|_| sees_frames),
                no_swap: !sees_frames,
                ..Known::default()
            };
            let (mut fate, mut traces) = (Fate::default(), Traces::default());
            fate.page(Entry(before), Entry(after), &known);
            traces.page(Entry(before), Entry(after), &known);
            let told = fate.split + fate.swapped_in + traces.replaced;
            (fate.raced, fate.faulted_in, traces.lost, told)
        };
        for (before, after, sees_frames) in [
            (MIGRATION, PRESENT | EXCLUSIVE | 7, true),
            (MIGRATION, PRESENT | 7, true),
            (MIGRATION | 1 << 57, PRESENT | 7, true),
            (SWAPPED, PRESENT | EXCLUSIVE, false),
        ] {
            let found = found(before, after, sees_frames);
            assert_eq!(found, (1, 0, 1, 0), "{before:x} {after:x}");
        }
        for (before, after, sees_frames) in [
            (0, PRESENT | EXCLUSIVE | 7, true),
            (0, PRESENT | EXCLUSIVE, false),
            (
                SWAPPED | 1 << 57 | 1 << 5 | 31,
                PRESENT | EXCLUSIVE | 7,
                true,
            ),
            (SWAPPED | 1 << 7 | 31, PRESENT | EXCLUSIVE | 7, true),
            (SWAPPED | 1 << 57, PRESENT | EXCLUSIVE, false),
            (MIGRATION, PRESENT | FILE | 7, true),
        ] {
            let found = found(before, after, sees_frames);
            assert_eq!(found, (0, 1, 0, 0), "{before:x} {after:x}");
        }
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
                is_mixed: split_exclusive == 0,
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
        // The others let it go; gone; swapped out; given back, and the zero page came.
        for after in [PRESENT | EXCLUSIVE | 7, 0, SWAPPED | 1, PRESENT | 3] {
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
            (PRESENT | EXCLUSIVE | 9, PRESENT | 3),
        ];
        let want = Fate {
            faulted_in: 2,
            swapped_in: 1,
            raced: 4,
            ..Fate::default()
        };
        assert_eq!(fate(&pages), want);
    }

    /// What a reader does not copy, it did not copy.
    #[test]
    fn a_page_that_the_kernel_knows_to_be_its_own_was_replaced_by_others() {
        let entries = (
            Entry(PRESENT | EXCLUSIVE | 7),
            Entry(PRESENT | EXCLUSIVE | 8),
        );
        for (was_own, split) in [(None, 1), (Some(false), 1), (Some(true), 0)] {
            let known = Known {
                was_own,
                ..Known::default()
            };
            let mut fate = Fate::default();
            fate.page(entries.0, entries.1, &known);
            assert_eq!((fate.split, fate.raced), (split, 1 - split));
        }
    }

    #[test]
    fn what_was_not_brought_in_by_a_fault_came_by_others() {
        let was = fate(&[(0, PRESENT | FILE | 1)]);
        for (most, came) in [(0, 1), (1, 2), (2, 3), (9, 3)] {
            let mut fate = fate(&[(0, PRESENT | FILE | 1); 3]);
            fate.bound_came(&was, most);
            assert_eq!((fate.faulted_in, fate.raced), (came, 3 - came));
        }
    }

    /// A shared one and one of which bit 56 says that it is the process's own.
    #[test]
    fn a_page_that_the_kernel_moved_is_what_it_was_if_its_copy_could_be_told() {
        let (yes, no) = (Some(true), Some(false));
        let after = Entry(PRESENT | EXCLUSIVE | 8);
        let found = |was_own, is_own, origin| {
            let known = Known {
                was_own,
                is_own,
                origin,
                ..Known::default()
            };
            let (mut traces, mut fate) = (Traces::default(), Fate::default());
            for before in [PRESENT | 7, PRESENT | EXCLUSIVE | 7] {
                traces.page(Entry(before), after, &known);
                fate.page(Entry(before), after, &known);
            }
            assert_eq!(fate.split + fate.raced, 2);
            (traces, fate.raced)
        };
        let two = |moved, place: fn(&mut Traces) -> &mut u64| {
            let mut traces = Traces {
                moved,
                ..Traces::default()
            };
            *place(&mut traces) = 2;
            traces
        };
        let (moved, altered) = (Origin::Moved, Origin::Altered);
        let in_place = two(2, |traces| &mut traces.in_place);
        assert_eq!(found(no, yes, moved), (in_place, 2));
        let untold = two(2, |traces| &mut traces.untold);
        assert_eq!(found(no, None, moved), (untold, 2));
        let lost = two(0, |traces| &mut traces.lost);
        assert_eq!(found(None, yes, moved), (lost, 0));
        assert_eq!(found(no, yes, altered), (lost, 0));
        let replaced = two(0, |traces| &mut traces.replaced);
        assert_eq!(found(no, yes, Origin::Copied), (replaced, 0));
    }

    #[test]
    fn of_a_copy_it_is_noted_what_the_page_was() {
        let found = |was_joined, was_cached, origin| {
            let known = Known {
                was_joined,
                was_cached,
                origin,
                ..Known::default()
            };
            let mut traces = Traces::default();
            traces.page(Entry(PRESENT | 7), Entry(PRESENT | 8), &known);
            (traces.replaced, traces.joined, traces.cached)
        };
        assert_eq!(found(true, false, Origin::Copied), (1, 1, 0));
        assert_eq!(found(false, true, Origin::Copied), (1, 0, 1));
        assert_eq!(found(false, false, Origin::Copied), (1, 0, 0));
        assert_eq!(found(true, true, Origin::Altered), (0, 0, 0));
    }

    #[test]
    fn a_page_tells_of_one_thing() {
        let shared = PRESENT | 7;
        let own = PRESENT | EXCLUSIVE | 7;
        let copy = PRESENT | EXCLUSIVE | 8;
        let told = |before: u64, after: u64, was_own, is_own| {
            let known = Known {
                zero: Entry(PRESENT | 3).frame(),
                was_own,
                is_own,
                ..Known::default()
            };
            let mut traces = Traces::default();
            traces.page(Entry(before), Entry(after), &known);
            traces
        };
        let one = |place: fn(&mut Traces) -> &mut u64| {
            let mut traces = Traces::default();
            *place(&mut traces) = 1;
            traces
        };
        let (yes, no) = (Some(true), Some(false));
        let replaced = one(|traces| &mut traces.replaced);
        assert_eq!(told(shared, copy, no, yes), replaced);
        assert_eq!(told(shared, copy, None, None), replaced);
        assert_eq!(told(own, copy, no, yes), replaced);
        let in_place = one(|traces| &mut traces.in_place);
        assert_eq!(told(own, own, no, yes), in_place);
        assert_eq!(told(shared, own, no, yes), in_place);
        let untold = one(|traces| &mut traces.untold);
        assert_eq!(told(own, own, None, None), untold);
        assert_eq!(told(shared, shared, no, None), untold);
        let nothing = Traces::default();
        assert_eq!(told(shared, shared, no, no), nothing);
        for after in [own, copy, 0, PRESENT | 3] {
            assert_eq!(told(own, after, yes, None), nothing, "{after:x}");
        }
        for before in [PRESENT | 3, PRESENT | FILE | 9, 0] {
            assert_eq!(told(before, before, None, None), nothing, "{before:x}");
        }
        for after in [0, PRESENT | 3, SWAPPED | 5] {
            assert_eq!(
                told(shared, after, no, None),
                one(|traces| &mut traces.lost)
            );
        }
        // What came in is counted as such.
        assert_eq!(told(0, copy, None, yes), nothing);
        let zeros = one(|traces| &mut traces.zeros);
        assert_eq!(told(0, PRESENT | 3, None, None), zeros);
        // Without frames.
        let unseen = one(|traces| &mut traces.unseen);
        let own = PRESENT | EXCLUSIVE;
        let became_own = Traces {
            became_own: 1,
            ..unseen
        };
        assert_eq!(told(PRESENT, own, None, None), became_own);
        assert_eq!(told(own, own, None, None), unseen);
        assert_eq!(told(own, PRESENT, None, None), unseen);
        assert_eq!(told(PRESENT, PRESENT, None, None), untold);
    }
}
