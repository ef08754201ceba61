//! What became of the pages of a kind.

use super::look::Pages;
use crate::measure::evidence::{Evidence, Found};
use crate::proc::pagemap::Entry;
use core::ops::Range;

/// Pages by what became of them. `None`: cannot be known here. `tracked` and `split` are
/// of the range that was read, the others of all that is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Shared before.
    pub tracked: u64,
    /// Of these, no longer.
    pub split: u64,
    /// Absent before, present now.
    pub faulted_in: u64,
    /// Swapped out before, present now.
    pub swapped_in: u64,
    /// Became soft-dirty.
    pub soft_dirty: Option<u64>,
    /// The parent maps another frame now, or none.
    pub partner: Option<u64>,
    /// Present before, no longer there.
    pub(super) vanished: u64,
    /// Split although they were not read: the rest of a huge page.
    pub(super) beyond: u64,
    /// Present before and now, in another frame, and not counted as split: copied, or moved by
    /// the kernel.
    pub(super) moved: u64,
}

impl Changes {
    /// Pages that were split, whether or not they were read.
    #[must_use]
    pub const fn all_split(&self) -> u64 {
        self.split + self.beyond
    }

    /// Whether every page is as it was.
    pub(super) fn are_none(&self) -> bool {
        let unknown_or_none = |count: Option<u64>| count.unwrap_or(0) == 0;
        self.split + self.faulted_in + self.swapped_in + self.vanished + self.beyond + self.moved
            == 0
            && unknown_or_none(self.soft_dirty)
            && unknown_or_none(self.partner)
    }
}

/// Compares; `read` are the numbers of the pages that were read.
pub(super) fn changes(
    before: &mut Pages,
    after: &mut Pages,
    read: &Range<usize>,
    evidence: Evidence,
) -> Changes {
    let mut changes = Changes::default();
    let mut keeps_soft_dirty = false;
    let mut soft_dirty = 0;
    let mut partner = 0;
    for page in 0..before.len().min(after.len()) {
        let (old, new) = (before.at(page), after.at(page));
        keeps_soft_dirty |= old.child.present() && old.child.soft_dirty();
        match (old.judge(evidence), new.judge(evidence)) {
            (Found::Shared, Found::Separate) if read.contains(&page) => changes.split += 1,
            (Found::Shared, Found::Separate) => changes.beyond += 1,
            // Whether or not the parent has such a page: a copy is a copy.
            _ => changes.moved += u64::from(is_elsewhere(old.child, new.child)),
        }
        changes.vanished += u64::from(old.child.present() && !new.child.present());
        let shared = old.judge(evidence) == Found::Shared;
        changes.tracked += u64::from(shared && read.contains(&page));
        let came = !old.child.present() && new.child.present();
        changes.swapped_in += u64::from(came && old.child.swapped());
        changes.faulted_in += u64::from(came && !old.child.swapped());
        soft_dirty += u64::from(!old.child.soft_dirty() && new.child.soft_dirty());
        partner += u64::from(old.parent.frame() != new.parent.frame());
    }
    changes.soft_dirty = Some(soft_dirty).filter(|_| keeps_soft_dirty);
    changes.partner = Some(partner).filter(|_| evidence == Evidence::Pfn);
    changes
}

/// Whether both show a frame, and not the same.
fn is_elsewhere(old: Entry, new: Entry) -> bool {
    let frames = old.frame().zip(new.frame());
    frames.is_some_and(|(old, new)| old != new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, PRESENT, SOFT_DIRTY, SWAPPED};

    #[test]
    fn each_change_is_counted_once() {
        let mut before = Pages::of(&[
            (PRESENT | 7, PRESENT | SOFT_DIRTY | 7),
            (PRESENT | 8, PRESENT | 8),
            (0, 0),
            (0, SWAPPED),
            (PRESENT | 9, PRESENT | 9),
            (PRESENT | 3, PRESENT | 4),
        ]);
        let mut after = Pages::of(&[
            (PRESENT | 7, PRESENT | SOFT_DIRTY | 70),
            (PRESENT | 80, PRESENT | SOFT_DIRTY | 8),
            (0, PRESENT | 1),
            (0, PRESENT | 2),
            (PRESENT | 9, 0),
            (PRESENT | 3, PRESENT | 5),
        ]);
        let want = Changes {
            tracked: 3,
            split: 2,
            faulted_in: 1,
            swapped_in: 1,
            soft_dirty: Some(1),
            partner: Some(1),
            vanished: 1,
            beyond: 0,
            moved: 1,
        };
        assert_eq!(
            changes(&mut before, &mut after, &(0..6), Evidence::Pfn),
            want
        );
    }

    #[test]
    fn what_was_not_read_is_not_tracked() {
        let mut before = Pages::of(&[(PRESENT | 7, PRESENT | 7), (PRESENT | 8, PRESENT | 8)]);
        let mut after = Pages::of(&[(PRESENT | 7, PRESENT | 7), (PRESENT | 8, PRESENT | 9)]);
        let found = changes(&mut before, &mut after, &(0..1), Evidence::Pfn);
        assert_eq!((found.tracked, found.split, found.beyond), (1, 0, 1));
        assert!(!found.are_none());
    }

    /// The parent of `anon-parent-gone` has no page, and so nothing is shared or split.
    #[test]
    fn a_copy_is_not_missed_where_the_parent_has_no_page() {
        let mut before = Pages::of(&[(0, PRESENT | 7), (0, PRESENT | 8)]);
        let mut after = Pages::of(&[(0, PRESENT | 70), (0, PRESENT | 8)]);
        let found = changes(&mut before, &mut after, &(0..2), Evidence::Pfn);
        assert_eq!((found.tracked, found.split, found.moved), (0, 0, 1));
        assert!(!found.are_none());
    }

    #[test]
    fn what_is_not_shown_is_unknown() {
        let mut before = Pages::of(&[(PRESENT, PRESENT)]);
        let mut after = Pages::of(&[(PRESENT, PRESENT | EXCLUSIVE)]);
        let found = changes(&mut before, &mut after, &(0..1), Evidence::Exclusive);
        assert_eq!((found.tracked, found.split), (1, 1));
        assert_eq!((found.soft_dirty, found.partner), (None, None));
    }
}
