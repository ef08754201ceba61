//! Statistics in integers: quantiles, outliers, paired ratios, throughput.
//!
//! The appliance has no floating point to trust and no allocator, so everything here is
//! exact arithmetic over `u64` samples (widened to `u128` inside) and works in place: a
//! function either sorts the slice it is handed or takes one that proves it is sorted.
//! What has to be rounded is rounded half up. The module knows nothing of what the samples
//! mean; their unit is whatever the caller put in.
//!
//! Samples are never dropped. An outlier is counted, and a reader of the summary decides.

mod difference;
mod inverse;
mod line;
mod outlier;
mod paired;
mod quantile;
mod sort;

pub use difference::{DifferenceInterval, PairedDifference};
pub use inverse::{InverseFit, Point, ratio_milli};
pub use line::{Line, LineError};
pub use paired::{Direction, Interval, PairedRatio, RatioError};
pub use quantile::Sorted;
pub use sort::sort_by;

/// The order statistics of one sample, in the sample's own unit.
///
/// Quantiles are those of [`Sorted`]: linear interpolation, rounded half up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many values; at least 1.
    pub n: u64,
    /// The smallest value.
    pub min: u64,
    /// The 25th percentile.
    pub p25: u64,
    /// The median.
    pub median: u64,
    /// The 75th percentile.
    pub p75: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The largest value.
    pub max: u64,
    /// How many of the `n` values have a modified z-score above 3.5. They are part of
    /// every other field: nothing is removed.
    ///
    /// The score is 0.6745 |x - median| / MAD (Iglewicz & Hoaglin, *How to Detect and
    /// Handle Outliers*, ASQC Basic References in Quality Control 16, 1993), where MAD is
    /// the median absolute deviation from the median. When more than half of the values
    /// equal the median the MAD is 0, and the score is |x - median| / (1.253314 MeanAD)
    /// instead, MeanAD being the mean absolute deviation from the median (the same
    /// fallback, with 1.253314 = sqrt(pi/2), is IBM's:
    /// <https://www.ibm.com/docs/en/cognos-analytics/11.1.0?topic=terms-modified-z-score>).
    /// When all values are equal there are no outliers. The comparison is exact: the
    /// median and the MAD are not rounded first.
    pub outliers: u64,
}

/// Quantiles of a [`Summary`] lie between two values in quarters, halves or twentieths. Of values
/// that are multiples of this they are exact, so that what prints them rounds once.
pub const PARTS: u64 = 20;

impl Summary {
    /// Summarises `values`, sorting them in place. `None` if there are none.
    pub fn new(values: &mut [u64]) -> Option<Self> {
        let sorted = Sorted::new(values)?;
        Some(Self {
            n: sorted.len() as u64,
            min: sorted.min(),
            p25: sorted.p25(),
            median: sorted.median(),
            p75: sorted.p75(),
            p95: sorted.p95(),
            max: sorted.max(),
            outliers: outlier::count(sorted),
        })
    }
}

/// The throughput of `bytes` moved in `ns` nanoseconds, in hundredths of a MiB/s
/// (2^20 bytes a second), rounded half up: 12345 is 123.45 MiB/s.
///
/// `None` if `ns` is 0, or if the result does not fit, which takes more than 2^57 MiB/s.
pub fn mib_s_centi(bytes: u64, ns: u64) -> Option<u64> {
    const CENTI_NS_PER_S: u128 = 100 * 1_000_000_000;
    const MIB: u128 = 1 << 20;
    if ns == 0 {
        return None;
    }
    let rate = div_half_up(u128::from(bytes) * CENTI_NS_PER_S, u128::from(ns) * MIB);
    u64::try_from(rate).ok()
}

/// `parts`, each one of `of` in a unit, in whole units, rounded half up; `of` is not 0.
pub const fn rounded(parts: u64, of: u64) -> u64 {
    parts / of + (parts % of >= of.div_ceil(2)) as u64
}

/// `dividend / divisor` rounded half up. The caller sees to it that `divisor` is not 0
/// and that `dividend + divisor / 2` fits.
const fn div_half_up(dividend: u128, divisor: u128) -> u128 {
    (dividend + divisor / 2) / divisor
}

#[cfg(test)]
mod test_support;

#[cfg(test)]
mod tests {
    use super::test_support::{Random, numbers, records};
    use super::*;

    #[test]
    fn summaries_agree_with_the_reference() {
        for [name, values, expected] in records(include_str!("../../tests/data/stats/summary.csv"))
        {
            let mut values = numbers(values);
            let s = Summary::new(&mut values).unwrap();
            let found = [s.n, s.min, s.p25, s.median, s.p75, s.p95, s.max, s.outliers];
            assert_eq!(found.as_slice(), numbers(expected), "{name}");
        }
    }

    #[test]
    fn quantiles_in_parts_are_exact_and_rounded_once() {
        let mut values = [783_849, 783_850].map(|value| value * PARTS);
        let median = Summary::new(&mut values).unwrap().median;
        // 7838.495, whose hundredths are 7838.50.
        assert_eq!(rounded(median, PARTS), 783_850);
        assert_eq!(rounded(median, 100 * PARTS), 7838);
        assert_eq!([0, 1, 2, 3].map(|parts| rounded(parts, 3)), [0, 0, 1, 1]);
        assert_eq!(rounded(u64::MAX, 1), u64::MAX);
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Summary::new(&mut []), None);
    }

    #[test]
    fn a_summary_ignores_order_and_shift() {
        let mut random = Random::new(1);
        for _ in 0..500 {
            let mut values = random.sample(30, 50);
            let mut shifted: std::vec::Vec<u64> =
                values.iter().rev().map(|v| u64::MAX - 50 + v).collect();
            let low = Summary::new(&mut values).unwrap();
            let high = Summary::new(&mut shifted).unwrap();
            assert_eq!(high.median - (u64::MAX - 50), low.median);
            assert_eq!(high.p95 - (u64::MAX - 50), low.p95);
            assert_eq!(high.outliers, low.outliers);
        }
    }

    #[test]
    fn throughput_agrees_with_the_reference() {
        for [bytes, ns, expected] in records(include_str!("../../tests/data/stats/throughput.csv"))
        {
            let found = mib_s_centi(bytes.parse().unwrap(), ns.parse().unwrap());
            assert_eq!(found, expected.parse().ok(), "{bytes} bytes in {ns} ns");
        }
    }
}
