//! The ratio of the medians of two independent samples, and how sure one can be of it.
//!
//! Two starts of a program cannot be paired case by case. So each side's median gets an
//! interval of its own from its order statistics (David & Nagaraja, *Order Statistics*, 3rd ed.
//! 2003, ch. 7.1), each with at least 97.5 % confidence; both hold together with at least 95 %
//! (Bonferroni), and then the ratio lies between the ratios of their ends. Nothing is assumed
//! of how the values are distributed, nor that both sides are distributed alike.

use cowitness::stats::Sorted;

/// One, in parts per million.
const PARITY_PPM: u128 = 1_000_000;

/// The largest n whose binomial sums are taken exactly, within `u128`.
const EXACT_N: u64 = 120;

/// What a comparison of rates comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// B is faster, beyond the noise.
    Faster,
    /// B is slower, beyond the noise.
    Slower,
    /// Any difference is within what starts differ by on a quiet machine.
    Same,
    /// The data do not tell.
    Unresolved,
}

impl Verdict {
    /// All, in the order they are counted.
    pub const ALL: [Self; 4] = [Self::Faster, Self::Slower, Self::Same, Self::Unresolved];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Unresolved => "unresolved",
        }
    }
}

/// What two starts of the same program may differ by, in per cent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// On a quiet machine: within it, rates are the same.
    pub least: u64,
    /// On these machines as they were: a rate is another only beyond it.
    pub most: u64,
}

/// B over A, in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Of the medians.
    pub median_ppm: u64,
    /// Where the ratio of the true medians lies, with at least 95 % confidence; `None` if a
    /// side has fewer than 7 values.
    pub interval_ppm: Option<(u64, u64)>,
    /// Whether both sides are the same values.
    pub identical: bool,
}

impl Ratio {
    /// Compares two samples, which are sorted in place. `None` if one is empty or has a
    /// median of 0.
    pub fn of(a: &mut [u64], b: &mut [u64]) -> Option<Self> {
        let (median_a, median_b) = (Sorted::new(a)?.median(), Sorted::new(b)?.median());
        Some(Self {
            median_ppm: ppm(median_b, median_a)?,
            interval_ppm: interval(a, b),
            identical: a == b,
        })
    }

    /// What it comes to, given what counts as noise.
    #[must_use]
    pub fn verdict(&self, noise: Noise) -> Verdict {
        let Some((low, high)) = self.interval_ppm.filter(|_| !self.identical) else {
            return if self.identical {
                Verdict::Same
            } else {
                Verdict::Unresolved
            };
        };
        let Noise { least, most } = noise;
        if is_above(low, most) {
            Verdict::Faster
        } else if is_below(high, most) {
            Verdict::Slower
        } else if !is_above(high, least) && !is_below(low, least) {
            Verdict::Same
        } else {
            Verdict::Unresolved
        }
    }

    /// Whether all of its interval is farther from 1 than `percent`.
    #[must_use]
    pub fn is_beyond(&self, percent: u64) -> bool {
        let far = |(low, high)| is_above(low, percent) || is_below(high, percent);
        !self.identical && self.interval_ppm.is_some_and(far)
    }
}

/// Above 1 + `percent`.
fn is_above(ppm: u64, percent: u64) -> bool {
    u128::from(ppm) * 100 > PARITY_PPM * u128::from(100 + percent)
}

/// Below 1 / (1 + `percent`): as far below as the other is above.
fn is_below(ppm: u64, percent: u64) -> bool {
    u128::from(ppm) * u128::from(100 + percent) < PARITY_PPM * 100
}

fn ppm(part: u64, whole: u64) -> Option<u64> {
    let whole = u128::from(whole);
    let ppm = (u128::from(part) * PARITY_PPM + whole / 2).checked_div(whole)?;
    u64::try_from(ppm).ok()
}

fn interval(a: &[u64], b: &[u64]) -> Option<(u64, u64)> {
    let ends = |sorted: &[u64]| {
        let k = rank(sorted.len() as u64)?;
        let k = usize::try_from(k).ok()?;
        Some((sorted[k - 1], sorted[sorted.len() - k]))
    };
    let ((low_a, high_a), (low_b, high_b)) = (ends(a)?, ends(b)?);
    Some((ppm(low_b, high_a)?, ppm(high_b, low_a)?))
}

/// The largest k with P(Bin(n, 1/2) < k) at most 1.25 %: from the k-th smallest to the k-th
/// largest of n values is an interval for the median with at least 97.5 % confidence. Up to
/// 120 values exactly, beyond by the normal approximation, rounded to the safe side.
fn rank(n: u64) -> Option<u64> {
    if n > EXACT_N {
        // The quantile of 98.75 % is 2.2415.
        let root = (22_415_u128 * 22_415 * u128::from(n)).isqrt() + 1;
        let k = (10_000 * u128::from(n + 1) - root) / 20_000;
        return u64::try_from(k).ok();
    }
    let total = 1_u128 << n;
    let (mut k, mut tail, mut next) = (0_u64, 0_u128, 1_u128);
    // 1.25 % is an eightieth.
    while 80 * (tail + next) <= total {
        tail += next;
        k += 1;
        next = next * u128::from(n + 1 - k) / u128::from(k);
    }
    (k > 0).then_some(k)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By sums of Python's `math.comb`; the last by `statistics.NormalDist`.
    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        for (n, k) in [
            (0, None),
            (6, None),
            (7, Some(1)),
            (9, Some(1)),
            (10, Some(2)),
            (20, Some(5)),
            (100, Some(39)),
            (120, Some(48)),
        ] {
            assert_eq!(rank(n), k, "n = {n}");
        }
        for (n, exact) in [(121, 48), (200, 84), (1000, 465), (1_000_000, 498_879)] {
            let k = rank(n).unwrap();
            assert!(k == exact || k + 1 == exact, "n = {n}: {k}, not {exact}");
        }
    }

    fn verdict(a: &[u64], b: &[u64], percent: u64) -> Verdict {
        let noise = Noise {
            least: percent,
            most: percent,
        };
        Ratio::of(&mut a.to_vec(), &mut b.to_vec())
            .unwrap()
            .verdict(noise)
    }

    #[test]
    fn verdicts_need_the_whole_interval() {
        let a: Vec<u64> = (1000..1010).collect();
        let times = |percent: u64| -> Vec<u64> { a.iter().map(|a| a * percent / 100).collect() };
        assert_eq!(verdict(&a, &times(130), 10), Verdict::Faster);
        assert_eq!(verdict(&times(130), &a, 10), Verdict::Slower);
        assert_eq!(verdict(&a, &times(105), 10), Verdict::Same);
        assert_eq!(verdict(&a, &times(110), 10), Verdict::Unresolved);
        assert_eq!(verdict(&a, &times(105), 0), Verdict::Faster);
        // Six values have no interval, however far apart.
        assert_eq!(verdict(&a[..6], &times(500)[..6], 10), Verdict::Unresolved);
        let wide: Vec<u64> = (1..11).map(|value| value * 100).collect();
        assert_eq!(verdict(&wide, &wide, 0), Verdict::Same);
    }

    /// On a restless machine nothing is told apart, and nothing is called the same either.
    #[test]
    fn noise_is_no_sameness() {
        let a: Vec<u64> = (1000..1010).collect();
        let b: Vec<u64> = a.iter().map(|a| a * 13 / 10).collect();
        let ratio = Ratio::of(&mut a.clone(), &mut b.clone()).unwrap();
        let noise = |most| Noise { least: 10, most };
        assert_eq!(ratio.verdict(noise(20)), Verdict::Faster);
        assert_eq!(ratio.verdict(noise(50)), Verdict::Unresolved);
    }

    #[test]
    fn a_threshold_is_about_the_near_end() {
        let a = [1000; 10];
        let ratio = |b: u64| Ratio::of(&mut a.to_vec(), &mut [b; 10]).unwrap();
        assert!(ratio(1060).is_beyond(5) && !ratio(1050).is_beyond(5));
        assert!(ratio(940).is_beyond(5) && !ratio(953).is_beyond(5));
        assert_eq!(Ratio::of(&mut [0; 3], &mut [1; 3]), None);
        assert_eq!(Ratio::of(&mut [], &mut [1]), None);
    }
}
