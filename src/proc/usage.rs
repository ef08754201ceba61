//! Amounts of memory in use, and how they differ.

/// The largest amount that [`Usage::since`] can subtract exactly, in KiB.
pub(super) const MAX_KIB: u64 = i64::MAX.cast_unsigned();

/// The fields, in KiB, and the number of VMAs they were summed over.
///
/// The kernel cuts each VMA's Pss down to whole KiB, so over many VMAs `pss_kib` is up
/// to `vmas` KiB too small; a rollup is cut once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters<T> {
    /// VMAs counted; 1 for a rollup.
    pub vmas: T,
    /// Resident memory.
    pub rss_kib: T,
    /// Resident memory, each page divided by the number of its mappings.
    pub pss_kib: T,
    /// Pages with several mappings, clean.
    pub shared_clean_kib: T,
    /// Pages with several mappings, dirty.
    pub shared_dirty_kib: T,
    /// Pages mapped once, clean.
    pub private_clean_kib: T,
    /// Pages mapped once, dirty.
    pub private_dirty_kib: T,
    /// Pages marked as accessed.
    pub referenced_kib: T,
    /// Pages that belong to no file, copies of private file pages included.
    pub anonymous_kib: T,
    /// Anonymous memory mapped by huge page table entries.
    pub anon_huge_kib: T,
    /// Swapped-out anonymous memory.
    pub swap_kib: T,
    /// hugetlb pages with several mappings, which no other field has in it.
    pub shared_hugetlb_kib: T,
    /// hugetlb pages mapped once, likewise.
    pub private_hugetlb_kib: T,
}

/// What is used.
pub type Usage = Counters<u64>;

/// How much more is used than before; negative where it is less.
pub type UsageDelta = Counters<i64>;

impl Usage {
    /// Memory nobody else maps (USS): private clean plus private dirty plus private hugetlb.
    #[must_use]
    pub fn private_kib(&self) -> u64 {
        self.private_clean_kib
            .saturating_add(self.private_dirty_kib)
            .saturating_add(self.private_hugetlb_kib)
    }

    /// This minus `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> UsageDelta {
        UsageDelta {
            vmas: minus(self.vmas, before.vmas),
            rss_kib: minus(self.rss_kib, before.rss_kib),
            pss_kib: minus(self.pss_kib, before.pss_kib),
            shared_clean_kib: minus(self.shared_clean_kib, before.shared_clean_kib),
            shared_dirty_kib: minus(self.shared_dirty_kib, before.shared_dirty_kib),
            private_clean_kib: minus(self.private_clean_kib, before.private_clean_kib),
            private_dirty_kib: minus(self.private_dirty_kib, before.private_dirty_kib),
            referenced_kib: minus(self.referenced_kib, before.referenced_kib),
            anonymous_kib: minus(self.anonymous_kib, before.anonymous_kib),
            anon_huge_kib: minus(self.anon_huge_kib, before.anon_huge_kib),
            swap_kib: minus(self.swap_kib, before.swap_kib),
            shared_hugetlb_kib: minus(self.shared_hugetlb_kib, before.shared_hugetlb_kib),
            private_hugetlb_kib: minus(self.private_hugetlb_kib, before.private_hugetlb_kib),
        }
    }
}

impl UsageDelta {
    /// Change of what is still to be written back, whoever maps it.
    #[must_use]
    pub fn dirty_kib(&self) -> i64 {
        self.shared_dirty_kib.saturating_add(self.private_dirty_kib)
    }

    /// Change of the memory nobody else maps (USS).
    #[must_use]
    pub fn private_kib(&self) -> i64 {
        self.private_clean_kib
            .saturating_add(self.private_dirty_kib)
            .saturating_add(self.private_hugetlb_kib)
    }
}

/// Exact as long as both sides are at most [`MAX_KIB`], which the sum sees to.
fn minus(after: u64, before: u64) -> i64 {
    after.wrapping_sub(before).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign() {
        let before = Usage {
            vmas: 2,
            rss_kib: 128,
            pss_kib: 80,
            shared_dirty_kib: 96,
            private_clean_kib: 20,
            private_dirty_kib: 12,
            ..Usage::default()
        };
        let after = Usage {
            pss_kib: 112,
            shared_dirty_kib: 32,
            private_clean_kib: 84,
            ..before
        };
        let expected = UsageDelta {
            pss_kib: 32,
            shared_dirty_kib: -64,
            private_clean_kib: 64,
            ..UsageDelta::default()
        };
        assert_eq!(after.since(&before), expected);
        assert_eq!(before.since(&after).private_kib(), -64);
        assert_eq!((before.private_kib(), after.private_kib()), (32, 96));
        assert_eq!(after.since(&before).dirty_kib(), -64);
    }

    #[test]
    fn every_field_is_subtracted_from_itself() {
        let after = Usage {
            vmas: 1,
            rss_kib: 2,
            pss_kib: 3,
            shared_clean_kib: 4,
            shared_dirty_kib: 5,
            private_clean_kib: 6,
            private_dirty_kib: 7,
            referenced_kib: 8,
            anonymous_kib: 9,
            anon_huge_kib: 10,
            swap_kib: 11,
            shared_hugetlb_kib: 12,
            private_hugetlb_kib: 13,
        };
        let expected = UsageDelta {
            vmas: 1,
            rss_kib: 2,
            pss_kib: 3,
            shared_clean_kib: 4,
            shared_dirty_kib: 5,
            private_clean_kib: 6,
            private_dirty_kib: 7,
            referenced_kib: 8,
            anonymous_kib: 9,
            anon_huge_kib: 10,
            swap_kib: 11,
            shared_hugetlb_kib: 12,
            private_hugetlb_kib: 13,
        };
        assert_eq!(after.since(&Usage::default()), expected);
        assert_eq!(after.since(&after), UsageDelta::default());
    }

    #[test]
    fn the_largest_amounts_subtract_exactly() {
        let largest = Usage {
            private_clean_kib: MAX_KIB,
            private_dirty_kib: MAX_KIB,
            ..Usage::default()
        };
        let none = Usage::default();
        assert_eq!(largest.since(&none).private_clean_kib, i64::MAX);
        assert_eq!(none.since(&largest).private_clean_kib, -i64::MAX);
        assert_eq!(largest.private_kib(), u64::MAX - 1);
    }
}
