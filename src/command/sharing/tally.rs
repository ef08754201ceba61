//! What is kept of an arm: medians for the fit, and the extremes that decide.

use super::batch::{Outcome, Slot, Together};
use super::census::Hidden;
use super::chosen::Chosen;
use super::growth::{Grown, Growth};
use super::verdict::{Doubt, Facts, Share, verdict};
use crate::cli::sharing::Arm;
use crate::fixture::subject::Form;
use crate::measure::plan::LIST_MAX;
use crate::proc::rollup::{Rollup, place};
use crate::stats::{InverseFit, Point, Sorted};
use crate::sys::exec::Words;
use heapless::Vec;

/// Values of one arm and one number, in room that was made for all of them.
pub(super) struct Values<'v, T> {
    space: &'v mut [T],
    used: usize,
}

impl<'v, T> Values<'v, T> {
    /// Takes room for so many out of `space`, which has it.
    fn cut(space: &mut &'v mut [T], len: usize) -> Self {
        let len = len.min(space.len());
        let (head, rest) = core::mem::take(space).split_at_mut(len);
        *space = rest;
        let space = head;
        Self { space, used: 0 }
    }

    fn add(&mut self, value: T) {
        if let Some(slot) = self.space.get_mut(self.used) {
            *slot = value;
            self.used += 1;
        }
    }

    pub(super) fn seen(&mut self) -> &mut [T] {
        &mut self.space[..self.used]
    }
}

/// What the batches of one number gave.
struct Number<'v> {
    n: u64,
    /// PSS of each process, thousandths of a KiB: the mean of two is exact.
    pss_milli: Values<'v, u64>,
    /// USS of each process, likewise.
    uss_milli: Values<'v, u64>,
    /// Growth of Shmem in each batch, likewise.
    grown_milli: Values<'v, i64>,
}

/// Room for all values of all arms.
pub(super) struct Room<'v> {
    /// Two for each process of an arm.
    pub(super) memory: &'v mut [u64],
    pub(super) grown: &'v mut [i64],
}

/// An arm.
pub(super) struct Tally<'v> {
    pub(super) arm: Arm,
    /// Size of the file, rounded up.
    pub(super) file_kb: u64,
    /// File sizes of the load segments that this arm loads.
    pub(super) load_bytes: u64,
    /// What a process of it will take of the machine, KiB.
    pub(super) need_kb: u64,
    numbers: Vec<Number<'v>, LIST_MAX>,
    /// Median USS for the largest number: what a process has for itself, whoever else maps the
    /// files.
    uss_median_milli: Option<u64>,
    /// Median PSS by number.
    points: Vec<Point, LIST_MAX>,
    pub(super) rows: u64,
    pub(super) rows_ok: u64,
    pub(super) uss_min_kb: Option<u64>,
    shared_dirty_kb: Option<u64>,
    file_dirty_kb: Option<u64>,
    /// Whether every process has a file in memory of its own.
    has_own_file: bool,
    /// The least Pss_Shmem of a process.
    shmem_least_kb: Option<u64>,
    pub(super) swap_kb: u64,
    growth: Growth,
    pub(super) bystanders: Option<u64>,
    /// Why there may be more of them.
    pub(super) hidden: Option<Hidden>,
    /// Whether a batch waited in vain for every single process.
    pub(super) is_hopeless: bool,
}

/// What a process takes of the machine besides its own program: page tables, stacks, kernel
/// structures. An estimate, only to refuse what cannot fit.
const PROCESS_KB: u64 = 512;

impl<'v> Tally<'v> {
    pub(super) fn new(arm: Arm, (chosen, _, form): (&Chosen, &Words<'_>, Form)) -> Self {
        // Only the copying loader loads the interpreter itself.
        let load_bytes = match form {
            Form::Copied => chosen.load_bytes + chosen.interpreter_bytes,
            Form::Mapped | Form::InMemory => chosen.load_bytes,
        };
        let file_kb = chosen.file_bytes.div_ceil(1024);
        let mut tally = Self::empty(arm, file_kb, load_bytes);
        tally.has_own_file = form == Form::InMemory;
        let written_kb = chosen.written_bytes.div_ceil(1024);
        tally.need_kb = PROCESS_KB
            + match form {
                Form::Mapped => written_kb,
                // What it writes to is copied already.
                Form::Copied => tally.sum_filesz_kb(),
                Form::InMemory => file_kb + written_kb,
            };
        tally
    }

    fn empty(arm: Arm, file_kb: u64, load_bytes: u64) -> Self {
        Self {
            arm,
            file_kb,
            load_bytes,
            need_kb: 0,
            numbers: Vec::new(),
            uss_median_milli: None,
            points: Vec::new(),
            rows: 0,
            rows_ok: 0,
            uss_min_kb: None,
            shared_dirty_kb: None,
            file_dirty_kb: None,
            has_own_file: false,
            shmem_least_kb: None,
            swap_kb: 0,
            growth: Growth::default(),
            bystanders: Some(0),
            hidden: None,
            is_hopeless: false,
        }
    }

    /// Makes room for `reps` batches of each number.
    pub(super) fn expect(&mut self, numbers: &[u64], reps: u64, room: &mut Room<'v>) {
        let number = |&n| Number {
            n,
            pss_milli: Values::cut(&mut room.memory, (n * reps) as usize),
            uss_milli: Values::cut(&mut room.memory, (n * reps) as usize),
            grown_milli: Values::cut(&mut room.grown, reps as usize),
        };
        self.numbers.extend(numbers.iter().map(number));
    }

    pub(super) fn sum_filesz_kb(&self) -> u64 {
        self.load_bytes.div_ceil(1024)
    }

    fn number(&mut self, n: u64) -> Option<&mut Number<'v>> {
        self.numbers.iter_mut().find(|number| number.n == n)
    }

    pub(super) fn note_batch(&mut self, n: u64, together: &Together, lag_kb: u64) {
        // Some seen once are worth more than none seen for sure.
        let both = self.bystanders.zip(together.bystanders);
        let most = both.map(|(most, now)| most.max(now));
        let seen = |count: Option<u64>| count.filter(|count| *count > 0);
        self.bystanders = most.or(seen(self.bystanders)).or(seen(together.bystanders));
        self.hidden = self.hidden.or(together.hidden);
        self.is_hopeless |= together.waited_in_vain;
        let Some(kb) = together.shmem_grown_kb else {
            return;
        };
        if !together.shmem_is_exact {
            self.growth.lag_kb = lag_kb;
        }
        if let Some(number) = self.number(n) {
            number.grown_milli.add(kb.saturating_mul(1000));
        }
    }

    /// Takes a process over, if it counts.
    pub(super) fn note(&mut self, n: u64, slot: &Slot) {
        self.rows += 1;
        let seen = Seen::of(&slot.rollup);
        let (Outcome::Ok, Some(seen)) = (slot.outcome, seen) else {
            return;
        };
        self.rows_ok += 1;
        if let Some(number) = self.number(n) {
            number.pss_milli.add(seen.pss_kb.saturating_mul(1000));
            number.uss_milli.add(seen.uss_kb.saturating_mul(1000));
        }
        self.uss_min_kb = least(self.uss_min_kb, seen.uss_kb);
        self.shmem_least_kb = least(self.shmem_least_kb, seen.shmem_kb);
        self.shared_dirty_kb = self.shared_dirty_kb.max(Some(seen.shared_dirty_kb));
        self.file_dirty_kb = self.file_dirty_kb.max(Some(seen.file_dirty_kb));
        self.swap_kb = self.swap_kb.max(seen.swap_kb);
    }

    /// All batches are over.
    pub(super) fn conclude(&mut self) {
        let mut most = 0;
        for number in &mut self.numbers {
            let n = number.n;
            // There is room for every number of the list.
            self.growth
                .points
                .extend(Grown::of(n, number.grown_milli.seen()));
            if n > most {
                most = n;
                self.uss_median_milli = Sorted::new(number.uss_milli.seen()).map(Sorted::median);
            }
            let median = Sorted::new(number.pss_milli.seen()).map(Sorted::median);
            let y_milli = median.and_then(|milli| i64::try_from(milli).ok());
            self.points
                .extend(y_milli.map(|y_milli| Point { n, y_milli }));
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

    fn is_whole(&self) -> bool {
        self.rows_ok == self.rows && self.fit().is_some()
    }

    /// How much more memory than in `reference` is private, of what could be, by the fits.
    pub(super) fn private(&self, reference: &Tally<'_>) -> Option<Share> {
        let more = i128::from(self.fit()?.a_milli) - i128::from(reference.fit()?.a_milli);
        self.share(more)
    }

    /// The same by USS.
    fn private_by_uss(&self, reference: &Tally<'_>) -> Option<Share> {
        let (own, theirs) = (self.uss_median_milli?, reference.uss_median_milli?);
        self.share(i128::from(own) - i128::from(theirs))
    }

    /// So many thousandths of a KiB of the load segments.
    fn share(&self, kb_milli: i128) -> Option<Share> {
        let whole = i128::from(self.load_bytes) * 1000;
        let part = kb_milli * 1024;
        Some(Share { part, whole }).filter(|share| share.whole > 0)
    }

    /// The share by USS if that is what decides. With M other processes that map the files
    /// PSS is U + S / (N + M): a fit of a + b / N puts part of S into a. USS is U whatever M
    /// is, so it decides unless there is nobody else for sure and both agree.
    pub(super) fn decided_by_uss(&self, reference: &Tally<'_>) -> Option<Share> {
        let by_uss = self.private_by_uss(reference)?;
        let alone = [self, reference].map(|tally| tally.bystanders) == [Some(0); 2];
        let by_fit = self.private(reference).filter(|_| alone);
        let agree = by_fit.is_some_and(|by_fit| by_fit.agrees_with(by_uss));
        Some(by_uss).filter(|_| !agree)
    }

    /// Why nothing can be said of it, if so.
    pub(super) fn doubt(&self, reference: &Tally<'_>) -> Option<Doubt> {
        let swap_kb = self.swap_kb.max(reference.swap_kb);
        if !self.is_whole() || !reference.is_whole() {
            Some(Doubt::NotMeasured)
        } else if swap_kb.saturating_mul(20) > self.file_kb {
            Some(Doubt::Swapped)
        } else {
            self.slope_milli().err()
        }
    }

    fn slope_milli(&self) -> Result<i64, Doubt> {
        // In another arm it may have been there before, and be the same in all processes.
        let own_kb = self.shmem_least_kb.filter(|_| self.has_own_file);
        self.growth.slope_milli(self.file_kb, own_kb.unwrap_or(0))
    }

    pub(super) fn verdict(&self, reference: &Tally<'_>) -> &'static str {
        verdict(&Facts {
            is_valid: self.doubt(reference).is_none(),
            file_kb: self.file_kb,
            shared_dirty_kb: self.shared_dirty_kb,
            file_dirty_kb: self.file_dirty_kb,
            shmem_milli: self.slope_milli().ok(),
            private: self.decided_by_uss(reference).or(self.private(reference)),
        })
    }
}

fn least(known: Option<u64>, value: u64) -> Option<u64> {
    Some(known.map_or(value, |known| known.min(value)))
}

/// Whether there is all that the fit and the verdict need.
pub(super) fn is_complete(rollup: &Rollup) -> bool {
    Seen::of(rollup).is_some()
}

/// The fields that the fit and the verdict need.
struct Seen {
    pss_kb: u64,
    uss_kb: u64,
    shared_dirty_kb: u64,
    file_dirty_kb: u64,
    shmem_kb: u64,
    /// 0 where the kernel does not have it.
    swap_kb: u64,
}

impl Seen {
    /// `None` if this kernel lacks one of them.
    fn of(rollup: &Rollup) -> Option<Self> {
        let private_dirty = rollup[const { place("Private_Dirty") }]?;
        let shmem_kb = rollup[const { place("Pss_Shmem") }]?;
        // A private mapping's shmem is not divided while it is private.
        let other = rollup[const { place("Anonymous") }]?.saturating_add(shmem_kb);
        Some(Self {
            pss_kb: rollup[const { place("Pss") }]?,
            uss_kb: rollup[const { place("Private_Clean") }]?.saturating_add(private_dirty),
            shared_dirty_kb: rollup[const { place("Shared_Dirty") }]?,
            file_dirty_kb: private_dirty.saturating_sub(other),
            shmem_kb,
            swap_kb: rollup[const { place("Swap") }].unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(pss_kb: u64, swap_kb: u64) -> Slot {
        let mut slot = Slot::EMPTY;
        slot.rollup = [Some(0); crate::proc::rollup::FIELD_COUNT];
        slot.rollup[const { place("Pss") }] = Some(pss_kb);
        slot.rollup[const { place("Swap") }] = Some(swap_kb);
        slot
    }

    /// An arm of a file of 44 KiB whose processes have `pss_kb` at N = 1, 2, and 4.
    fn measured(pss_kb: [&[u64]; 3], swap_kb: u64, check: &dyn Fn(&Tally<'_>)) {
        let (mut memory, mut grown) = ([0; 28], [0; 6]);
        let mut room = Room {
            memory: &mut memory,
            grown: &mut grown,
        };
        let mut tally = Tally::empty(Arm::Elf, 44, 36 << 10);
        tally.expect(&[1, 2, 4], 2, &mut room);
        let together = Together {
            shmem_grown_kb: Some(0),
            shmem_is_exact: true,
            ..Together::default()
        };
        for (n, values) in [1, 2, 4].into_iter().zip(pss_kb) {
            tally.note_batch(n, &together, 1000);
            tally.note_batch(n, &together, 1000);
            for &kb in values {
                tally.note(n, &slot(kb, swap_kb));
            }
        }
        tally.conclude();
        check(&tally);
    }

    #[test]
    fn the_median_of_two_is_between_them() {
        measured([&[100, 101], &[60, 60], &[41, 40]], 0, &|tally| {
            let milli: std::vec::Vec<i64> = tally.points.iter().map(|p| p.y_milli).collect();
            assert_eq!(milli, [100_500, 60_000, 40_500]);
        });
    }

    const SHARED_KB: u64 = 4096;

    /// An arm of a program of 4 MiB with these bystanders: they are on the machine whether or
    /// not they are seen, and map all of it. 44 KiB of a process are its own.
    fn beside(there: u64, seen: Option<u64>, copied_kb: u64, check: &dyn Fn(&Tally<'_>)) {
        let (mut memory, mut grown) = ([0; 28], [0; 3]);
        let mut room = Room {
            memory: &mut memory,
            grown: &mut grown,
        };
        let mut tally = Tally::empty(Arm::Native, SHARED_KB, SHARED_KB << 10);
        tally.expect(&[1, 2, 4], 1, &mut room);
        for n in [1, 2, 4] {
            let together = Together {
                shmem_grown_kb: Some(0),
                shmem_is_exact: true,
                bystanders: seen,
                ..Together::default()
            };
            tally.note_batch(n, &together, 0);
            let (shared_kb, own_kb) = (SHARED_KB - copied_kb, 44 + copied_kb);
            for _ in 0..n {
                let mut slot = slot(own_kb + shared_kb / (n + there), 0);
                slot.rollup[const { place("Private_Dirty") }] = Some(own_kb);
                slot.rollup[const { place("Anonymous") }] = Some(own_kb);
                tally.note(n, &slot);
            }
        }
        tally.conclude();
        check(&tally);
    }

    /// a of elf is far above what a process has for itself, so the fraction that the fits give
    /// is too small for a verdict.
    #[test]
    fn bystanders_do_not_make_a_copy_look_mixed() {
        for (there, seen) in [(7, Some(7)), (7, None), (7, Some(0)), (0, Some(0))] {
            beside(there, seen, 0, &|elf| {
                beside(there, seen, SHARED_KB, &|native| {
                    let milli = native.private(elf).and_then(Share::milli).unwrap();
                    assert_eq!(milli < 950, there > 0, "{milli}");
                    assert_eq!(native.verdict(elf), "copied-anon");
                    assert_eq!(elf.verdict(elf), "shared");
                    assert_eq!(native.decided_by_uss(elf).is_some(), there > 0);
                });
                // Half of it.
                beside(there, seen, SHARED_KB / 2, &|native| {
                    assert_eq!(native.verdict(elf), "mixed");
                });
            });
        }
    }

    #[test]
    fn what_is_in_swap_is_in_no_pss_and_makes_it_invalid() {
        // 5 % of 44 KiB are 2.2.
        for (swap_kb, doubt) in [(0, None), (2, None), (3, Some(Doubt::Swapped))] {
            measured([&[100], &[60], &[40]], swap_kb, &|tally| {
                assert_eq!(tally.doubt(tally), doubt);
                let verdict = tally.verdict(tally);
                assert_eq!(verdict == "invalid", doubt.is_some(), "{verdict}");
            });
        }
    }
}
