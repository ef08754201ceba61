//! How much two starts of the same program may differ by, as far as the rows themselves tell.
//!
//! One start cannot show what differs between starts: other frames, other load. But what
//! disturbs a machine between two runs disturbs it within them, too, and there identical cases
//! show it. So the noise of a comparison is what nine in ten settings of the more restless
//! side vary by from their slowest to their fastest case, and never less than what starts
//! differ by on a quiet machine. `scripts/compare-null` puts it to the test.

use super::ratio::Noise;
use crate::groups::Group;
use cowitness::emit::summary::Phase;
use cowitness::stats::Sorted;

/// What starts differ by on a quiet machine, per cent: they get other frames.
const LEAST_PERCENT: u64 = 10;

/// The noise of comparing two sides, rounded up; `given` takes the place of all that is found.
pub(super) fn of(a: &[Group<'_>], b: &[Group<'_>], given: Option<u64>) -> Noise {
    let own = [a, b].into_iter().filter_map(restlessness).max();
    let least = given.unwrap_or(LEAST_PERCENT);
    Noise {
        least,
        most: given.or(own).unwrap_or(0).max(least),
    }
}

/// What nine in ten settings of one side vary by; `None` if it has no rate.
fn restlessness(groups: &[Group<'_>]) -> Option<u64> {
    let arms = groups.iter().flat_map(|group| &group.arms);
    let summaries = arms.flat_map(|arm| Phase::BOTH.map(|phase| arm.summary(phase)));
    let mut spreads: Vec<u64> = summaries
        .flatten()
        .map(|found| spread(found.min, found.max))
        .collect();
    Sorted::new(&mut spreads)?.quantile(9, 10)
}

/// By how many per cent the fastest case is faster than the slowest, rounded up.
fn spread(min: u64, max: u64) -> u64 {
    let more = u128::from(max - min) * 100;
    let percent = more.div_ceil(u128::from(min).max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_rounded_up() {
        assert_eq!(
            [spread(100, 100), spread(100, 101), spread(1000, 1001)],
            [0, 1, 1]
        );
        assert_eq!(spread(0, 5), 500);
    }
}
