//! How much shared memory of the machine each process takes: the slope of Shmem over N.

use super::verdict::Doubt;
use crate::measure::plan::LIST_MAX;
use crate::stats::sort_by;
use heapless::Vec;

/// What the batches of one number say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grown {
    n: u64,
    /// Median growth, thousandths of a KiB.
    milli: i64,
    /// Median distance of a batch from that.
    scatter_milli: i64,
}

impl Grown {
    /// `None` without batches.
    pub(super) fn of(n: u64, milli: &mut [i64]) -> Option<Self> {
        let middle = median(milli)?;
        for value in milli.iter_mut() {
            *value = (*value - middle).saturating_abs();
        }
        Some(Self {
            n,
            milli: middle,
            scatter_milli: median(milli)?,
        })
    }
}

/// Of an arm.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// How far a reading of Shmem can be off, KiB; 0 if it never was.
    pub(super) lag_kb: u64,
    pub(super) points: Vec<Grown, LIST_MAX>,
}

const PAIRS_MAX: usize = LIST_MAX * (LIST_MAX - 1) / 2;

impl Growth {
    /// How much Shmem grows with each process, thousandths of a KiB: the median slope of all
    /// pairs of numbers (Theil and Sen), which neither something else that grows at the same
    /// pace all the time nor a few bursts can move.
    ///
    /// A pair counts if the kernel's lag moves its slope by at most 5 % of the file: growth is
    /// a reading less the mean of two, and a slope the difference of two growths, so four
    /// lags, over how far the numbers are apart. `least_kb` of shared memory was seen in every
    /// process as its own, so the machine cannot have grown by less.
    ///
    /// # Errors
    /// Why it is not known.
    pub(super) fn slope_milli(&self, file_kb: u64, least_kb: u64) -> Result<i64, Doubt> {
        let mut slopes = Vec::<(i64, i64), PAIRS_MAX>::new();
        for (index, one) in self.points.iter().enumerate() {
            let fine = self.points[..index].iter().filter(|other| {
                let apart = one.n.abs_diff(other.n);
                self.lag_kb.saturating_mul(4 * 20) <= file_kb.saturating_mul(apart)
            });
            slopes.extend(fine.filter_map(|other| slope(one, other)));
        }
        let mut values: Vec<i64, PAIRS_MAX> = slopes.iter().map(|(slope, _)| *slope).collect();
        let missing = match self.lag_kb {
            0 => Doubt::NotMeasured,
            _ => Doubt::Lag,
        };
        let middle = median(&mut values).ok_or(missing)?;
        let mut off: Vec<i64, PAIRS_MAX> = slopes
            .iter()
            .map(|(slope, scatter)| (slope - middle).saturating_abs() + scatter)
            .collect();
        let off = median(&mut off).ok_or(missing)?;
        let twentieth_milli = i64::try_from(file_kb.saturating_mul(50)).unwrap_or(i64::MAX);
        let least_milli = i64::try_from(least_kb.saturating_mul(1000)).unwrap_or(i64::MAX);
        if off > twentieth_milli || middle < least_milli - twentieth_milli {
            return Err(Doubt::Company);
        }
        Ok(middle)
    }
}

/// Slope between two, and by how much their batches scatter, both for each process.
fn slope(one: &Grown, other: &Grown) -> Option<(i64, i64)> {
    let apart = i64::try_from(one.n).ok()? - i64::try_from(other.n).ok()?;
    let slope = (one.milli - other.milli).checked_div(apart)?;
    let scatter = (one.scatter_milli + other.scatter_milli).checked_div(apart.abs())?;
    Some((slope, scatter))
}

/// The mean of the middle two, if there are two.
fn median(values: &mut [i64]) -> Option<i64> {
    sort_by(values, &|a, b| a < b);
    let last = values.len().checked_sub(1)?;
    Some(values[last / 2].midpoint(values[last.div_ceil(2)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KiB by number.
    fn growth(grown: &[(u64, &[i64])]) -> Growth {
        let mut growth = Growth::default();
        for (n, batches) in grown {
            let mut milli: std::vec::Vec<i64> = batches.iter().map(|kb| kb * 1000).collect();
            growth.points.extend(Grown::of(*n, &mut milli));
        }
        growth
    }

    const FILE_KB: u64 = 44;

    fn slope(growth: &Growth) -> Result<i64, Doubt> {
        growth.slope_milli(FILE_KB, 0)
    }

    #[test]
    fn what_others_do_with_shared_memory_is_no_growth_per_process() {
        // Nothing of our own; others take 500 KiB in every batch, and two bursts.
        let quiet = growth(&[
            (1, &[500, 500, 90_000]),
            (2, &[500, 500, 500]),
            (4, &[500, 0, 500]),
            (8, &[9_000, 9_000, 500]),
            (16, &[500, 500, 500]),
            (32, &[500, 500, 500]),
        ]);
        assert_eq!(slope(&quiet), Ok(0));
        // 44 KiB for each process under the same conditions.
        let copies = growth(&[
            (1, &[544, 544, 90_000]),
            (2, &[588, 588, 588]),
            (4, &[676, 176, 676]),
            (8, &[9_352, 9_352, 852]),
            (16, &[1_204, 1_204, 1_204]),
            (32, &[1_908, 1_908, 1_908]),
        ]);
        assert_eq!(slope(&copies), Ok(44_000));
    }

    /// Somebody takes and gives back some 100 KiB all the time.
    #[test]
    fn much_company_makes_it_unknown() {
        let busy = growth(&[
            (1, &[44, 150, -60]),
            (2, &[-12, 88, 210]),
            (4, &[300, 176, 70]),
            (8, &[352, 250, 470]),
        ]);
        assert_eq!(slope(&busy), Err(Doubt::Company));
        // Each number agrees with itself, not with the others.
        let shifting = growth(&[(1, &[44]), (2, &[400]), (4, &[100]), (8, &[352])]);
        assert_eq!(slope(&shifting), Err(Doubt::Company));
    }

    #[test]
    fn what_every_process_has_the_machine_has() {
        // Others gave back as much as the copies took.
        let hidden = growth(&[(1, &[0, 0]), (2, &[0, 0]), (4, &[0, 0])]);
        assert_eq!(hidden.slope_milli(FILE_KB, 0), Ok(0));
        assert_eq!(hidden.slope_milli(FILE_KB, 2), Ok(0));
        assert_eq!(hidden.slope_milli(FILE_KB, 44), Err(Doubt::Company));
    }

    /// Only pairs that are far apart decide: 4 lags of 10 KiB are 5 % of 44 KiB for 19
    /// processes.
    #[test]
    fn pairs_that_a_lag_could_decide_do_not() {
        let mut grown = growth(&[(1, &[44]), (2, &[5_000]), (4, &[5_000]), (20, &[880])]);
        grown.lag_kb = 10;
        // (1, 20) is the only one.
        assert_eq!(slope(&grown), Ok(44_000));
        grown.lag_kb = 11;
        assert_eq!(slope(&grown), Err(Doubt::Lag));
        grown.lag_kb = u64::MAX;
        assert_eq!(slope(&grown), Err(Doubt::Lag));
    }

    #[test]
    fn growth_that_was_not_seen_twice_is_unknown() {
        assert_eq!(slope(&growth(&[])), Err(Doubt::NotMeasured));
        assert_eq!(slope(&growth(&[(4, &[176, 176])])), Err(Doubt::NotMeasured));
        assert_eq!(slope(&growth(&[(4, &[176]), (1, &[44])])), Ok(44_000));
    }
}
