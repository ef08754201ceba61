//! What was measured, kept until all of it is.

use crate::stats::{PairedDifference, Sorted};
use crate::sys::{Errno, Region};

/// The two times of an exec.
#[derive(Clone, Copy)]
pub(super) enum Metric {
    Exec,
    Total,
}

impl Metric {
    pub(super) const ALL: [Self; 2] = [Self::Exec, Self::Total];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Total => "total",
        }
    }
}

/// Nanoseconds of every exec that counts, by metric, arm and round.
pub(super) struct Times {
    words: Region,
    scratch: Region,
    arms: usize,
    rounds: usize,
}

impl Times {
    pub(super) fn new(arms: usize, rounds: usize) -> Result<Self, Errno> {
        let words = Metric::ALL.len() * arms * rounds;
        Ok(Self {
            words: Region::not_inherited(8 * words)?,
            scratch: Region::not_inherited(8 * rounds)?,
            arms,
            rounds,
        })
    }

    /// Keeps the times of one exec. 0 is no time.
    pub(super) fn keep(&mut self, arm: usize, round: usize, exec_ns: u64, total_ns: u64) {
        for (metric, ns) in Metric::ALL.into_iter().zip([exec_ns, total_ns]) {
            let start = self.start(metric, arm);
            self.words.words_mut()[start + round] = ns;
        }
    }

    /// How many of an arm were kept, and their median.
    pub(super) fn median(&mut self, metric: Metric, arm: usize) -> (u64, Option<u64>) {
        let start = self.start(metric, arm);
        let all = &self.words.words_mut()[start..start + self.rounds];
        let scratch = self.scratch.words_mut();
        let mut count = 0;
        for &ns in all.iter().filter(|&&ns| ns > 0) {
            scratch[count] = ns;
            count += 1;
        }
        let sorted = Sorted::new(&mut scratch[..count]);
        (count as u64, sorted.map(Sorted::median))
    }

    /// One arm less another, over the rounds in which both were kept.
    pub(super) fn difference(
        &mut self,
        metric: Metric,
        arm: usize,
        other: usize,
    ) -> Option<PairedDifference> {
        let [arm, other] = [arm, other].map(|arm| self.start(metric, arm));
        let words = self.words.words_mut();
        let [arm, other] = [arm, other].map(|start| &words[start..start + self.rounds]);
        let pairs = arm.iter().copied().zip(other.iter().copied());
        let mut kept = pairs.filter(|&(arm, other)| arm > 0 && other > 0);
        PairedDifference::new(&mut kept, self.scratch.words_mut())
    }

    fn start(&self, metric: Metric, arm: usize) -> usize {
        (metric as usize * self.arms + arm) * self.rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rounds_that_both_arms_have_are_paired() {
        let mut times = Times::new(2, 4).unwrap();
        for (round, (a, b)) in [(10, 7), (20, 0), (0, 9), (40, 35)].into_iter().enumerate() {
            times.keep(0, round, a, 10 * a);
            times.keep(1, round, b, 10 * b);
        }
        assert_eq!(times.median(Metric::Exec, 0), (3, Some(20)));
        assert_eq!(times.median(Metric::Total, 1), (3, Some(90)));
        let difference = times.difference(Metric::Exec, 0, 1).unwrap();
        assert_eq!((difference.n, difference.median), (2, 4));
        let difference = times.difference(Metric::Total, 1, 0).unwrap();
        assert_eq!((difference.n, difference.median), (2, -40));
    }

    #[test]
    fn nothing_has_no_median() {
        let mut times = Times::new(1, 3).unwrap();
        assert_eq!(times.median(Metric::Exec, 0), (0, None));
        assert_eq!(times.difference(Metric::Exec, 0, 0), None);
    }
}
