//! Paired differences: as [`PairedRatio`](super::PairedRatio), but of two arms that differ by
//! a constant and not by a factor, such as a step that one of them does in addition.
//!
//! The interval comes from inverting the sign test, as there.

use super::Sorted;
use super::paired::Rank;

/// The differences a - b of the pairs of two arms, in the arms' unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedDifference {
    /// How many pairs; at least 1.
    pub n: u64,
    /// The median of the differences, rounded half up.
    pub median: i64,
    /// Where the median of the population lies, or `None` for fewer than 6 pairs.
    pub interval: Option<DifferenceInterval>,
}

/// A closed confidence interval for the median of the differences, between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DifferenceInterval {
    /// The k-th smallest difference.
    pub low: i64,
    /// The k-th largest difference.
    pub high: i64,
    /// The probability of covering the median, rounded down; at least 950000.
    pub confidence_ppm: u64,
}

impl PairedDifference {
    /// Compares the pairs (a, b). `None` if there are none, or more than `scratch` is long.
    /// Values of 2^63 and more are not for this.
    pub fn new(pairs: &mut dyn Iterator<Item = (u64, u64)>, scratch: &mut [u64]) -> Option<Self> {
        let mut n = 0;
        for (a, b) in pairs {
            *scratch.get_mut(n)? = biased(a.wrapping_sub(b).cast_signed());
            n += 1;
        }
        let sorted = Sorted::new(&mut scratch[..n])?;
        let values = sorted.values();
        let interval = Rank::new(values.len()).map(|rank| DifferenceInterval {
            low: unbiased(values[rank.k - 1]),
            high: unbiased(values[values.len() - rank.k]),
            confidence_ppm: rank.confidence_ppm,
        });
        Some(Self {
            n: sorted.len() as u64,
            median: unbiased(sorted.median()),
            interval,
        })
    }

    /// Whether the difference is beyond chance and beyond what the same arm shows against
    /// itself: the interval does not contain 0, and the median is more than three times
    /// that of `null`.
    #[must_use]
    pub fn is_resolved(&self, null: &Self) -> bool {
        let excludes_zero = self
            .interval
            .is_some_and(|interval| interval.low > 0 || interval.high < 0);
        let floor = null.median.unsigned_abs().saturating_mul(3);
        excludes_zero && self.median.unsigned_abs() > floor
    }
}

const SIGN: u64 = 1 << 63;

/// Moved so that the order of the signed numbers is that of the unsigned ones.
const fn biased(value: i64) -> u64 {
    value.cast_unsigned() ^ SIGN
}

const fn unbiased(value: u64) -> i64 {
    (value ^ SIGN).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn compare(pairs: Vec<(u64, u64)>) -> Option<PairedDifference> {
        let mut scratch = vec![0; pairs.len()];
        PairedDifference::new(&mut pairs.into_iter(), &mut scratch)
    }

    /// With 8 pairs the interval is from the smallest to the largest (2 of 256 lie outside),
    /// with 9 from the second to the second last (2 times 10 of 512).
    #[test]
    fn median_and_interval_of_known_differences() {
        let eight = compare((0..8).map(|i| (100 + 10 * i, 130)).collect()).unwrap();
        assert_eq!((eight.n, eight.median), (8, 5));
        let interval = eight.interval.unwrap();
        assert_eq!((interval.low, interval.high), (-30, 40));
        assert_eq!(interval.confidence_ppm, 992_187);
        let nine = compare((0..9).map(|i| (100 + 10 * i, 130)).collect()).unwrap();
        let interval = nine.interval.unwrap();
        assert_eq!((interval.low, nine.median, interval.high), (-20, 10, 40));
        assert_eq!(interval.confidence_ppm, 960_937);
    }

    #[test]
    fn few_pairs_have_no_interval_and_none_no_difference() {
        assert_eq!(compare(vec![(3, 5); 5]).unwrap().interval, None);
        assert_eq!(compare(vec![(3, 5); 5]).unwrap().median, -2);
        assert_eq!(compare(vec![]), None);
    }

    #[test]
    fn resolved_takes_both_conditions() {
        let constant = |a, b| compare(vec![(a, b); 10]).unwrap();
        let three = constant(103, 100);
        assert!(three.is_resolved(&constant(100, 100)));
        assert!(!three.is_resolved(&constant(101, 100)), "not over 3 times");
        assert!(constant(96, 100).is_resolved(&constant(99, 100)));
        assert!(!constant(97, 100).is_resolved(&constant(99, 100)));
        let wide = compare((0..10).map(|i| (99 + 3 * (i % 2), 100)).collect()).unwrap();
        assert!(!wide.is_resolved(&constant(100, 100)), "contains 0");
        assert!(
            !compare(vec![(9, 1); 5])
                .unwrap()
                .is_resolved(&constant(1, 1))
        );
    }
}
