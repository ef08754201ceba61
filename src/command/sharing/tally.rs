//! What is kept of an arm: medians for the fit, and the extremes that decide.

use super::batch::{Outcome, Slot, Together};
use super::chosen::Chosen;
use super::verdict::{Facts, verdict};
use crate::cli::sharing::{Arm, REPS_MAX};
use crate::fixture::subject::Form;
use crate::measure::plan::LIST_MAX;
use crate::proc::rollup::{Rollup, place};
use crate::stats::{InverseFit, Point, Sorted, sort_by};
use crate::sys::exec::Words;
use heapless::Vec;

/// PSS of the processes of one arm and one number.
pub(super) struct Values<'v> {
    space: &'v mut [u64],
    used: usize,
}

impl<'v> Values<'v> {
    pub(super) fn new(space: &'v mut [u64]) -> Self {
        Self { space, used: 0 }
    }

    fn add(&mut self, value: u64) {
        // The space was made for every process of every repetition.
        if let Some(slot) = self.space.get_mut(self.used) {
            *slot = value;
            self.used += 1;
        }
    }
}

/// An arm.
pub(super) struct Tally {
    pub(super) arm: Arm,
    /// Size of the file, rounded up.
    pub(super) file_kb: u64,
    /// File sizes of the load segments that this arm loads.
    pub(super) load_bytes: u64,
    /// Median PSS by number.
    points: Vec<Point, LIST_MAX>,
    pub(super) rows: u64,
    pub(super) rows_ok: u64,
    pub(super) uss_min_kb: Option<u64>,
    shared_dirty_kb: Option<u64>,
    file_dirty_kb: Option<u64>,
    /// Of the batches with the most processes, where what else happens counts least.
    shmem_kb: Vec<i64, REPS_MAX>,
    pub(super) bystanders: Option<u64>,
}

impl Tally {
    pub(super) fn new(arm: Arm, (chosen, _, form): (&Chosen, &Words<'_>, Form)) -> Self {
        // Only the copying loader loads the interpreter itself.
        let load_bytes = match form {
            Form::Copied => chosen.load_bytes + chosen.interpreter_bytes,
            Form::Mapped | Form::InMemory => chosen.load_bytes,
        };
        Self {
            arm,
            file_kb: chosen.file_bytes.div_ceil(1024),
            load_bytes,
            points: Vec::new(),
            rows: 0,
            rows_ok: 0,
            uss_min_kb: None,
            shared_dirty_kb: None,
            file_dirty_kb: None,
            shmem_kb: Vec::new(),
            bystanders: Some(0),
        }
    }

    pub(super) fn sum_filesz_kb(&self) -> u64 {
        self.load_bytes.div_ceil(1024)
    }

    pub(super) fn note_batch(&mut self, together: &Together, is_largest: bool) {
        // Some seen once are worth more than none seen for sure.
        let both = self.bystanders.zip(together.bystanders);
        let most = both.map(|(most, now)| most.max(now));
        let seen = |count: Option<u64>| count.filter(|count| *count > 0);
        self.bystanders = most.or(seen(self.bystanders)).or(seen(together.bystanders));
        if let Some(shmem) = together.shmem_delta_kb.filter(|_| is_largest) {
            // There is room for every repetition.
            let _ = self.shmem_kb.push(shmem);
        }
    }

    /// Takes a process over, if it counts.
    pub(super) fn note(&mut self, slot: &Slot, values: &mut Values<'_>) {
        self.rows += 1;
        let seen = Seen::of(&slot.rollup);
        let (Outcome::Ok, Some(seen)) = (slot.outcome, seen) else {
            return;
        };
        self.rows_ok += 1;
        values.add(seen.pss_kb);
        self.uss_min_kb = least(self.uss_min_kb, seen.uss_kb);
        self.shared_dirty_kb = self.shared_dirty_kb.max(Some(seen.shared_dirty_kb));
        self.file_dirty_kb = self.file_dirty_kb.max(Some(seen.file_dirty_kb));
    }

    pub(super) fn note_median(&mut self, n: u64, values: Values<'_>) {
        let Some(sorted) = Sorted::new(&mut values.space[..values.used]) else {
            return;
        };
        if let Ok(kb) = i64::try_from(sorted.median()) {
            let y_milli = kb.saturating_mul(1000);
            // There is room for every number of the list.
            let _ = self.points.push(Point { n, y_milli });
        }
    }

    pub(super) fn fit(&self) -> Option<InverseFit> {
        InverseFit::through(&self.points)
    }

    /// Without N = 1, where nothing can be shared with another subject.
    pub(super) fn fit_from_2(&self) -> Option<InverseFit> {
        let mut points = self.points.clone();
        points.retain(|point| point.n > 1);
        InverseFit::through(&points)
    }

    pub(super) fn is_whole(&self) -> bool {
        self.rows_ok == self.rows && self.fit().is_some()
    }

    /// How much more memory than in `reference` is private, of what could be.
    pub(super) fn private_milli(&self, reference: &Self) -> Option<i64> {
        let more = self.fit()?.a_milli - reference.fit()?.a_milli;
        let bytes = i128::from(self.load_bytes);
        let milli = (i128::from(more) * 1024).checked_div(bytes)?;
        i64::try_from(milli).ok()
    }

    fn shmem_median_kb(&self) -> Option<i64> {
        let mut sorted = self.shmem_kb.clone();
        sort_by(&mut sorted, &|a, b| a < b);
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }

    pub(super) fn verdict(&self, reference: &Self) -> &'static str {
        verdict(&Facts {
            is_valid: self.is_whole() && reference.is_whole(),
            file_kb: self.file_kb,
            shared_dirty_kb: self.shared_dirty_kb,
            file_dirty_kb: self.file_dirty_kb,
            shmem_kb: self.shmem_median_kb(),
            private_milli: self.private_milli(reference),
        })
    }
}

fn least(known: Option<u64>, value: u64) -> Option<u64> {
    Some(known.map_or(value, |known| known.min(value)))
}

/// The fields that the fit and the verdict need.
struct Seen {
    pss_kb: u64,
    uss_kb: u64,
    shared_dirty_kb: u64,
    file_dirty_kb: u64,
}

impl Seen {
    /// `None` if this kernel lacks one of them.
    fn of(rollup: &Rollup) -> Option<Self> {
        let private_dirty = rollup[const { place("Private_Dirty") }]?;
        // A private mapping's shmem is not divided while it is private.
        let other = rollup[const { place("Anonymous") }]?
            .saturating_add(rollup[const { place("Pss_Shmem") }]?);
        Some(Self {
            pss_kb: rollup[const { place("Pss") }]?,
            uss_kb: rollup[const { place("Private_Clean") }]?.saturating_add(private_dirty),
            shared_dirty_kb: rollup[const { place("Shared_Dirty") }]?,
            file_dirty_kb: private_dirty.saturating_sub(other),
        })
    }
}
