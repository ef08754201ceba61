//! Quantiles of a sorted sample.

use super::div_half_up;

/// A sample in ascending order, with at least one value, so that a quantile of unsorted
/// or absent data cannot be written.
///
/// Quantiles interpolate linearly between neighbours: the quantile p of n values lies at
/// position (n - 1) p, counted from 0. This is numpy's default, and definition 7 of
/// Hyndman & Fan, "Sample Quantiles in Statistical Packages", The American Statistician
/// 50 (1996) 361-365. The interpolation is exact over all of `u64`; its result is rounded
/// half up.
#[derive(Clone, Copy, Debug)]
pub struct Sorted<'a> {
    values: &'a [u64],
}

impl<'a> Sorted<'a> {
    /// Sorts `values` in place. `None` if there are none.
    pub fn new(values: &'a mut [u64]) -> Option<Self> {
        super::sort_by(values, &|a, b| a < b);
        (!values.is_empty()).then_some(Self { values })
    }

    /// How many values; at least 1.
    #[expect(
        clippy::len_without_is_empty,
        reason = "never empty, the constructor sees to it"
    )]
    pub fn len(self) -> usize {
        self.values.len()
    }

    /// The smallest value.
    pub fn min(self) -> u64 {
        self.values[0]
    }

    /// The 25th percentile.
    pub fn p25(self) -> u64 {
        self.interpolate(1, 4)
    }

    /// The median.
    pub fn median(self) -> u64 {
        self.interpolate(1, 2)
    }

    /// The 75th percentile.
    pub fn p75(self) -> u64 {
        self.interpolate(3, 4)
    }

    /// The 95th percentile.
    pub fn p95(self) -> u64 {
        self.interpolate(19, 20)
    }

    /// The largest value.
    pub fn max(self) -> u64 {
        self.values[self.values.len() - 1]
    }

    /// The quantile `numerator / denominator`: `quantile(99, 100)` is the 99th percentile.
    /// `None` if that is not a number from 0 to 1.
    pub fn quantile(self, numerator: u32, denominator: u32) -> Option<u64> {
        (denominator != 0 && numerator <= denominator)
            .then(|| self.interpolate(numerator, denominator))
    }

    /// The values, ascending.
    pub(super) fn values(self) -> &'a [u64] {
        self.values
    }

    /// Twice the median, which unlike the median is always an integer.
    pub(super) fn median_doubled(self) -> u128 {
        let n = self.values.len();
        u128::from(self.values[(n - 1) / 2]) + u128::from(self.values[n / 2])
    }

    /// The quantile of a fraction known to lie in 0..=1.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`whole` is an index of the slice, and the result is at most `upper`"
    )]
    fn interpolate(self, numerator: u32, denominator: u32) -> u64 {
        let denominator = u128::from(denominator);
        let position = (self.values.len() - 1) as u128 * u128::from(numerator);
        let (whole, part) = ((position / denominator) as usize, position % denominator);
        let lower = self.values[whole];
        // Only the last value has no upper neighbour, and then `part` is 0.
        let upper = self.values.get(whole + 1).copied().unwrap_or(lower);
        lower + div_half_up(u128::from(upper - lower) * part, denominator) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{Random, numbers, records};
    use super::*;

    #[test]
    fn quantiles_agree_with_the_reference() {
        for [numerator, denominator, expected, values] in
            records(include_str!("../../tests/data/stats/quantile.csv"))
        {
            let mut values = numbers(values);
            let sorted = Sorted::new(&mut values).unwrap();
            let found = sorted.quantile(numerator.parse().unwrap(), denominator.parse().unwrap());
            assert_eq!(
                found,
                Some(expected.parse().unwrap()),
                "{numerator}/{denominator} of {values:?}"
            );
        }
    }

    #[test]
    fn quantiles_rise_from_min_to_max() {
        let mut random = Random::new(2);
        for _ in 0..300 {
            let mut values = random.sample(40, u64::MAX);
            let sorted = Sorted::new(&mut values).unwrap();
            assert_eq!(sorted.quantile(0, 7), Some(sorted.min()));
            assert_eq!(sorted.quantile(7, 7), Some(sorted.max()));
            let all: std::vec::Vec<u64> = (0..=997)
                .map(|numerator| sorted.quantile(numerator, 997).unwrap())
                .collect();
            assert!(all.is_sorted());
        }
    }

    #[test]
    fn named_quantiles_are_the_fractions_they_name() {
        let mut random = Random::new(3);
        for _ in 0..300 {
            let mut values = random.sample(40, u64::MAX);
            let sorted = Sorted::new(&mut values).unwrap();
            assert_eq!(sorted.quantile(25, 100), Some(sorted.p25()));
            assert_eq!(sorted.quantile(50, 100), Some(sorted.median()));
            assert_eq!(sorted.quantile(75, 100), Some(sorted.p75()));
            assert_eq!(sorted.quantile(95, 100), Some(sorted.p95()));
            assert_eq!(
                sorted.median_doubled().div_ceil(2),
                u128::from(sorted.median())
            );
        }
    }

    #[test]
    fn what_has_no_quantile_says_so() {
        assert!(Sorted::new(&mut []).is_none());
        let mut one = [7];
        let sorted = Sorted::new(&mut one).unwrap();
        assert_eq!(sorted.quantile(1, 0), None);
        assert_eq!(sorted.quantile(0, 0), None);
        assert_eq!(sorted.quantile(8, 7), None);
        assert_eq!(sorted.quantile(u32::MAX, u32::MAX), Some(7));
    }
}
