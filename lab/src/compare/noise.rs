//! How much two starts of the same program may differ by, as far as the rows themselves tell.
//!
//! One start cannot show what differs between starts: other frames, other load. But what
//! disturbs a machine between two runs disturbs it within them, too, and there identical cases
//! show it. A setting's spread is that of its cases without the tenth that is fastest and the
//! tenth that is slowest: it does not grow with their number, and rare outliers are not in it.
//! Half as much again stands for what one run does not show. The noise of a setting is that of
//! its own two sides, and never less than what half of the settings of the more restless side
//! have, nor than what starts differ by on a quiet machine. `scripts/compare-null` puts it to
//! the test.

use super::ratio::Noise;
use crate::groups::{Arm, Group};
use cowitness::emit::summary::Phase;
use cowitness::stats::Sorted;

/// What starts differ by on a quiet machine, per cent: they get other frames.
const LEAST_PERCENT: u64 = 10;

/// Fewer cases are all taken.
const TRIMMED_LEAST: usize = 5;

/// The noise of comparing two sides, rounded up; `given` takes the place of all that is found.
pub(super) fn of(a: &[Group<'_>], b: &[Group<'_>], given: Option<u64>) -> Noise {
    let own = [a, b].into_iter().filter_map(restlessness).max();
    let least = given.unwrap_or(LEAST_PERCENT);
    Noise {
        least,
        most: given.or(own).unwrap_or(0).max(least),
    }
}

/// That of one setting, `overall` being that of all; `given` as in [`of`].
pub(super) fn of_setting(
    overall: Noise,
    arms: [Arm<'_>; 2],
    phase: Phase,
    given: Option<u64>,
) -> Noise {
    let own = arms.into_iter().filter_map(|arm| spread(arm.rates(phase)));
    let own = own.max().filter(|_| given.is_none()).unwrap_or(0);
    Noise {
        most: overall.most.max(own),
        ..overall
    }
}

/// What half of the settings of one side vary by; `None` if it has no rate.
fn restlessness(groups: &[Group<'_>]) -> Option<u64> {
    let arms = groups.iter().flat_map(|group| &group.arms);
    let rates = arms.flat_map(|arm| Phase::BOTH.map(|phase| arm.rates(phase)));
    let mut spreads: Vec<u64> = rates.filter_map(spread).collect();
    Some(Sorted::new(&mut spreads)?.median())
}

/// By how many per cent the fastest case is faster than the slowest, without a tenth at either
/// end, and half as much again; rounded up. `None` of no case.
fn spread(mut rates: Vec<u64>) -> Option<u64> {
    rates.sort_unstable();
    let gone = match rates.len() {
        few if few < TRIMMED_LEAST => 0,
        many => many.div_ceil(10),
    };
    let kept = &rates[gone..rates.len() - gone];
    let (least, most) = (*kept.first()?, *kept.last()?);
    let more = u128::from(most - least) * 150;
    let percent = more.div_ceil(u128::from(least).max(1));
    Some(u64::try_from(percent).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_rounded_up() {
        let pair = |a, b| spread(vec![a, b]).unwrap();
        assert_eq!(
            [pair(100, 100), pair(1000, 1001), pair(100, 110)],
            [0, 1, 15]
        );
        assert_eq!(pair(0, 4), 600);
        assert_eq!(spread(Vec::new()), None);
    }

    /// Uniform from 1000 to 1100, one case in a hundred, and at least one, tenfold slower.
    #[test]
    fn a_spread_neither_grows_with_the_cases_nor_with_rare_outliers() {
        let spread = |cases: u64| {
            let rate = |case: u64| match case % 100 {
                5 => 100,
                _ => 1000 + case * 7919 % 101,
            };
            spread((0..cases).map(rate).collect()).unwrap()
        };
        let found = [10, 100, 1000, 10_000].map(spread);
        assert!(
            found.iter().all(|percent| (5..=15).contains(percent)),
            "{found:?}"
        );
    }
}
