//! Outliers by the modified z-score; [`Summary::outliers`](super::Summary::outliers) has
//! the definition and its sources.
//!
//! The median of an even sample may end in a half, so distances from it are kept doubled;
//! the MAD of an even sample averages two distances, so it is kept fourfold. Both are then
//! integers and every comparison is exact.

use super::Sorted;

/// How many values lie far from the median.
pub(super) fn count(sorted: Sorted) -> u64 {
    let limit = Limit::new(sorted);
    let center_doubled = sorted.median_doubled();
    let far = |value: &&u64| limit.is_exceeded_by(distance_doubled(**value, center_doubled));
    sorted.values().iter().filter(far).count() as u64
}

/// A bound on doubled distances: one is too far if `scale` times it exceeds `bound`.
struct Limit {
    scale: u128,
    bound: u128,
}

impl Limit {
    fn new(sorted: Sorted) -> Self {
        match mad_fourfold(sorted) {
            0 => Self::from_mean_deviation(sorted),
            mad => Self::from_mad(mad),
        }
    }

    /// With D = 2d and F = 4 MAD, 0.6745 d / MAD > 3.5 becomes 1349 D > 3500 F.
    fn from_mad(mad_fourfold: u128) -> Self {
        Self {
            scale: 1349,
            bound: 3500 * mad_fourfold,
        }
    }

    /// With D = 2d and S the sum of all D, d / (1.253314 MeanAD) > 3.5 becomes
    /// 1000000 D > 4386599 S / n. Dividing S in two steps keeps the product within `u128`;
    /// rounding the right side down changes nothing, as the left side is an integer.
    fn from_mean_deviation(sorted: Sorted) -> Self {
        const SCALE: u128 = 1_000_000;
        const BOUND: u128 = 4_386_599;
        let center_doubled = sorted.median_doubled();
        let n = sorted.len() as u128;
        let sum: u128 = sorted
            .values()
            .iter()
            .map(|&value| distance_doubled(value, center_doubled))
            .sum();
        Self {
            scale: SCALE,
            bound: BOUND * (sum / n) + BOUND * (sum % n) / n,
        }
    }

    fn is_exceeded_by(&self, distance_doubled: u128) -> bool {
        self.scale * distance_doubled > self.bound
    }
}

/// Twice the distance of `value` from the median.
fn distance_doubled(value: u64, median_doubled: u128) -> u128 {
    (2 * u128::from(value)).abs_diff(median_doubled)
}

/// Four times the median absolute deviation from the median.
fn mad_fourfold(sorted: Sorted) -> u128 {
    let n = sorted.len();
    ranked_distance_doubled(sorted, (n - 1) / 2) + ranked_distance_doubled(sorted, n / 2)
}

/// The doubled distance from the median with `rank` others before it, nearest first.
///
/// The `rank + 1` values nearest to the median are neighbours in the sorted sample, and
/// the farthest of them is the first or the last. Of all runs of that length theirs
/// reaches least far, so no second array has to be filled and sorted.
fn ranked_distance_doubled(sorted: Sorted, rank: usize) -> u128 {
    let center_doubled = sorted.median_doubled();
    let reach = |run: &[u64]| {
        let first = distance_doubled(run[0], center_doubled);
        first.max(distance_doubled(run[rank], center_doubled))
    };
    let runs = sorted.values().windows(rank + 1);
    runs.map(reach).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::Random;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn ranked_distances_are_the_sorted_distances() {
        let mut random = Random::new(4);
        for round in 0..500 {
            let bound = if round % 2 == 0 { 8 } else { u64::MAX };
            let mut values = random.sample(25, bound);
            let sorted = Sorted::new(&mut values).unwrap();
            let mut distances: Vec<u128> = sorted
                .values()
                .iter()
                .map(|&value| distance_doubled(value, sorted.median_doubled()))
                .collect();
            distances.sort_unstable();
            let ranked: Vec<u128> = (0..sorted.len())
                .map(|rank| ranked_distance_doubled(sorted, rank))
                .collect();
            assert_eq!(ranked, distances);
        }
    }

    #[test]
    fn fewer_than_half_are_outliers() {
        let mut random = Random::new(5);
        for _ in 0..500 {
            let mut values = random.sample(25, 6);
            let sorted = Sorted::new(&mut values).unwrap();
            assert!(2 * count(sorted) < sorted.len() as u64);
        }
    }
}
