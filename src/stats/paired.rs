//! Paired ratios and how sure one can be of their median.
//!
//! The two arms of a comparison are measured in pairs, and each pair gives one ratio; what
//! disturbs both measurements of a pair alike cancels. The interval for the median of the
//! ratios comes from inverting the sign test: it assumes that pairs are independent, and
//! nothing about how the ratios are distributed (Conover, *Practical Nonparametric
//! Statistics*, 3rd ed. 1999, ch. 3.2; David & Nagaraja, *Order Statistics*, 3rd ed. 2003,
//! ch. 7.1).

use super::{Sorted, div_half_up};

/// One, in parts per million: the ratio of two arms that do not differ.
const PARITY_PPM: u64 = 1_000_000;

/// The coverage an interval has to reach, in parts per million.
const NOMINAL_PPM: u64 = 950_000;

/// The largest n whose binomial sums are taken exactly, within `u128`.
const EXACT_N: usize = 120;

/// The ratios a/b of the pairs of two arms. All ratios are in parts per million: 1000000
/// means equal, 1050000 that a is 5 % more than b.
///
/// The ratio is of what the caller passes. Passed times, a ratio above one means that a
/// took longer; the ratio of the throughputs for equal bytes is then b/a, so pass b's
/// times first to have a's throughput over b's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairedRatio {
    /// How many pairs; at least 1.
    pub n: u64,
    /// The median of the ratios, each of which was rounded half up first.
    pub median_ppm: u64,
    /// Where the median of the population lies, or `None` for fewer than 6 pairs: not
    /// even the smallest to the largest ratio covers it with 95 % then.
    pub interval: Option<Interval>,
    /// In how many pairs a is greater than b, however little.
    pub above: u64,
    /// In how many pairs a is less than b, however little.
    pub below: u64,
}

/// A closed confidence interval for the median of the ratios: from the k-th smallest to
/// the k-th largest, k being the greatest rank that keeps the coverage at 95 % or more.
///
/// For ratios that tie, the coverage is at least the one stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The k-th smallest ratio.
    pub low_ppm: u64,
    /// The k-th largest ratio.
    pub high_ppm: u64,
    /// The probability of covering the median, rounded down. Exact up to 120 pairs,
    /// 1 - 2 P(Bin(n, 1/2) < k); above that the nominal 950000, which the interval reaches
    /// or exceeds.
    pub confidence_ppm: u64,
}

/// Where the ratio of a to b lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Above one: a is greater.
    Above,
    /// Below one: a is less.
    Below,
    /// The data do not tell: the interval contains one, or there is none.
    Unresolved,
}

/// Why there is no ratio. `index` counts pairs from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioError {
    /// There are no pairs.
    Empty,
    /// The two arms differ in length.
    UnequalLengths,
    /// The scratch is shorter than the arms.
    ScratchTooShort,
    /// b is 0.
    ZeroDivisor {
        /// The pair.
        index: usize,
    },
    /// The ratio in parts per million exceeds `u64`.
    Overflow {
        /// The pair.
        index: usize,
    },
}

impl PairedRatio {
    /// Compares the pairs `(a[i], b[i])`, both in the same unit. The ratios are left in
    /// `scratch`, which must be at least as long as the arms; beyond their length it is
    /// not touched. After an error its content is unspecified.
    pub fn new(a: &[u64], b: &[u64], scratch: &mut [u64]) -> Result<Self, RatioError> {
        if a.len() != b.len() {
            return Err(RatioError::UnequalLengths);
        }
        let ratios = scratch
            .get_mut(..a.len())
            .ok_or(RatioError::ScratchTooShort)?;
        for (index, ratio) in ratios.iter_mut().enumerate() {
            *ratio = ratio_ppm(a[index], b[index], index)?;
        }
        let sorted = Sorted::new(ratios).ok_or(RatioError::Empty)?;
        let pairs = || a.iter().zip(b);
        Ok(Self {
            n: sorted.len() as u64,
            median_ppm: sorted.median(),
            interval: Interval::new(sorted),
            above: pairs().filter(|(a, b)| a > b).count() as u64,
            below: pairs().filter(|(a, b)| a < b).count() as u64,
        })
    }

    /// Whether the interval, as it is stated in whole parts per million, lies wholly above
    /// or wholly below one.
    pub fn verdict(&self) -> Direction {
        match self.interval {
            Some(interval) if interval.low_ppm > PARITY_PPM => Direction::Above,
            Some(interval) if interval.high_ppm < PARITY_PPM => Direction::Below,
            _ => Direction::Unresolved,
        }
    }
}

impl Interval {
    fn new(sorted: Sorted) -> Option<Self> {
        let rank = Rank::new(sorted.len())?;
        let ratios = sorted.values();
        Some(Self {
            low_ppm: ratios[rank.k - 1],
            high_ppm: ratios[ratios.len() - rank.k],
            confidence_ppm: rank.confidence_ppm,
        })
    }
}

fn ratio_ppm(a: u64, b: u64, index: usize) -> Result<u64, RatioError> {
    if b == 0 {
        return Err(RatioError::ZeroDivisor { index });
    }
    let ppm = div_half_up(u128::from(a) * u128::from(PARITY_PPM), u128::from(b));
    u64::try_from(ppm).map_err(|_| RatioError::Overflow { index })
}

/// Which order statistics bound the interval: the `k`-th from either end, `k >= 1`.
pub(super) struct Rank {
    pub(super) k: usize,
    pub(super) confidence_ppm: u64,
}

impl Rank {
    /// The rank for n values, or `None` if there are too few for any.
    pub(super) fn new(n: usize) -> Option<Self> {
        if n <= EXACT_N {
            Self::exact(n)
        } else {
            Some(Self::approximate(n))
        }
    }

    /// The largest k with 2 P(Bin(n, 1/2) < k) <= 0.05, that is 40 sum C(n, i) <= 2^n
    /// over i < k. For n up to 120 no step reaches 2^121.
    fn exact(n: usize) -> Option<Self> {
        let total = 1u128 << n;
        let (mut k, mut tail, mut next) = (0, 0, 1);
        while 40 * (tail + next) <= total {
            tail += next;
            k += 1;
            // C(n, k) from C(n, k - 1).
            next = next * (n + 1 - k) as u128 / k as u128;
        }
        (k > 0).then(|| Self {
            k,
            confidence_ppm: PARITY_PPM - ppm_of_power_of_two(2 * tail, n),
        })
    }

    /// The normal approximation of the binomial with the continuity correction,
    /// k = (n + 1 - 1.96 sqrt n) / 2 rounded down, the root being taken in hundredths and
    /// rounded up: 196 sqrt n < isqrt(38416 n) + 1.
    ///
    /// Never above the exact rank for any n from 121 to 1000000, and one below it for 13 of
    /// those up to 2000 (`scripts/stats-reference` checks it against
    /// `scipy.stats.binom`), so the coverage claimed is never more than the true one.
    fn approximate(n: usize) -> Self {
        // 64 bits hold the product on any machine; k is less than n and fits back.
        let n = n as u64;
        let root_centi = floor_sqrt(38_416 * n) + 1;
        Self {
            k: ((100 * (n + 1) - root_centi) / 200) as usize,
            confidence_ppm: NOMINAL_PPM,
        }
    }
}

/// The root of `n`, rounded down, bit by bit: core's `isqrt` is ten times the code.
fn floor_sqrt(n: u64) -> u64 {
    (0..32).rev().fold(0, |root, bit| {
        let candidate = root | 1 << bit;
        if candidate * candidate <= n {
            candidate
        } else {
            root
        }
    })
}

/// `part / 2^n` in parts per million, rounded up, for `part` < 2^n and n up to 124. Long
/// division, a decimal digit at a time: a million times `part` need not fit.
fn ppm_of_power_of_two(part: u128, n: usize) -> u64 {
    let (mut ppm, mut rest) = (0, part);
    for _ in 0..6 {
        rest *= 10;
        ppm = 10 * ppm + (rest >> n);
        rest &= (1 << n) - 1;
    }
    ppm += u128::from(rest != 0);
    // At most a million, as `part` is less than the whole.
    u64::try_from(ppm).unwrap_or(PARITY_PPM)
}

#[cfg(test)]
mod tests {
    use super::super::test_support::{Random, numbers, records};
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn compare(a: &[u64], b: &[u64]) -> Result<PairedRatio, RatioError> {
        PairedRatio::new(a, b, &mut vec![0; a.len()])
    }

    #[test]
    fn roots_are_cores() {
        let edges = [
            0,
            1,
            2,
            3,
            4,
            u64::MAX,
            u64::MAX - 1,
            (1 << 32) - 1,
            1 << 62,
        ];
        for n in edges.into_iter().chain((0..1000).map(|n| n * 38_416 + n)) {
            assert_eq!(floor_sqrt(n), n.isqrt(), "{n}");
        }
    }

    #[test]
    fn ratios_agree_with_the_reference() {
        for [name, expected, interval, direction, a, b] in
            records(include_str!("../../tests/data/stats/paired.csv"))
        {
            let ratio = compare(&numbers(a), &numbers(b)).unwrap();
            let found = [ratio.n, ratio.median_ppm, ratio.above, ratio.below];
            assert_eq!(found.as_slice(), numbers(expected), "{name}");
            let found = ratio
                .interval
                .map(|i| vec![i.low_ppm, i.high_ppm, i.confidence_ppm]);
            let interval = (!interval.is_empty()).then(|| numbers(interval));
            assert_eq!(found, interval, "{name}");
            assert_eq!(std::format!("{:?}", ratio.verdict()), direction, "{name}");
        }
    }

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        for [n, exact_k, exact_confidence_ppm] in
            records(include_str!("../../tests/data/stats/binomial.csv"))
        {
            let (n, exact_k): (usize, usize) = (n.parse().unwrap(), exact_k.parse().unwrap());
            let exact_confidence_ppm: Option<u64> = exact_confidence_ppm.parse().ok();
            let rank = Rank::new(n);
            if n <= EXACT_N {
                assert_eq!(rank.as_ref().map_or(0, |rank| rank.k), exact_k, "n = {n}");
                let confidence_ppm = rank.map(|rank| rank.confidence_ppm);
                assert_eq!(confidence_ppm, exact_confidence_ppm, "n = {n}");
            } else {
                let rank = rank.unwrap();
                assert!(rank.k == exact_k || rank.k + 1 == exact_k, "n = {n}");
                assert!(Some(rank.confidence_ppm) <= exact_confidence_ppm, "n = {n}");
            }
        }
    }

    #[test]
    fn exchanging_the_arms_reverses_the_verdict() {
        let mut random = Random::new(6);
        let mut seen = [0; 3];
        for _ in 0..2000 {
            // Distinct numbers up to 1700 differ by more than 500 parts per million.
            let bound = 300 + random.below(1400);
            let mut a = random.sample(150, bound);
            a.iter_mut().for_each(|a| *a += 1);
            let b: Vec<u64> = a.iter().map(|_| 1 + random.below(1000)).collect();
            let (there, back) = (compare(&a, &b).unwrap(), compare(&b, &a).unwrap());
            assert_eq!((there.above, there.below), (back.below, back.above));
            let reversed = match there.verdict() {
                Direction::Above => Direction::Below,
                Direction::Below => Direction::Above,
                Direction::Unresolved => Direction::Unresolved,
            };
            assert_eq!(back.verdict(), reversed);
            seen[there.verdict() as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times > 200), "{seen:?}");
    }

    #[test]
    fn the_interval_holds_the_median() {
        let mut random = Random::new(7);
        for _ in 0..500 {
            let a = random.sample(300, u64::MAX >> 20);
            let b: Vec<u64> = a.iter().map(|_| 1 + random.below(1 << 40)).collect();
            let ratio = compare(&a, &b).unwrap();
            assert_eq!(ratio.interval.is_some(), ratio.n >= 6);
            assert!(ratio.above + ratio.below <= ratio.n);
            if let Some(interval) = ratio.interval {
                assert!(interval.low_ppm <= ratio.median_ppm);
                assert!(interval.high_ppm >= ratio.median_ppm);
                assert!(interval.confidence_ppm >= NOMINAL_PPM);
            }
        }
    }

    #[test]
    fn what_has_no_ratio_says_why() {
        assert_eq!(compare(&[], &[]), Err(RatioError::Empty));
        assert_eq!(compare(&[1], &[]), Err(RatioError::UnequalLengths));
        let short = PairedRatio::new(&[1, 2], &[1, 2], &mut [0]);
        assert_eq!(short, Err(RatioError::ScratchTooShort));
        let zero = compare(&[1, 2, 3], &[1, 0, 0]);
        assert_eq!(zero, Err(RatioError::ZeroDivisor { index: 1 }));
        let large = compare(&[1, 2, u64::MAX], &[1, 2, 999_999]);
        assert_eq!(large, Err(RatioError::Overflow { index: 2 }));
        assert_eq!(
            compare(&[u64::MAX], &[1_000_000]).unwrap().median_ppm,
            u64::MAX
        );
    }

    #[test]
    fn the_scratch_may_be_longer() {
        let mut scratch = [9; 3];
        let ratio = PairedRatio::new(&[3, 1], &[2, 2], &mut scratch).unwrap();
        assert_eq!(ratio.median_ppm, PARITY_PPM);
        assert_eq!(scratch, [500_000, 1_500_000, 9]);
    }
}
