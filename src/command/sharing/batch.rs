//! One batch: N processes of a program, held together at the barrier, looked at once.

use super::census::{self, Hidden};
use super::tally::is_complete;
use crate::cli::sharing::{N_MAX, Release};
use crate::error::Error;
use crate::fixture::subject::{CANNOT_EXECUTE, Gathering, Launch, Place, Subject, THREADS_RUN};
use crate::proc::rollup::{self, FIELD_COUNT, Rollup, RollupError};
use crate::proc::status::kib_field;
use crate::sys::file::{Process, read_proc, read_whole};
use crate::sys::process::{DENIED_PATIENCE_MS, Ending, reap_ended, sleep_ms};
use crate::sys::{Clock, Errno};
use heapless::Vec;

/// What one process gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) pid: Option<i32>,
    pub(super) settle_us: Option<u64>,
    pub(super) rollup: Rollup,
    pub(super) outcome: Outcome,
    /// Page faults of it, all threads, when all were at the barrier.
    faults: Option<u64>,
}

/// Whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok,
    Errno(Errno),
    Skipped(&'static str),
    /// It ended before it should, or with something else than 0.
    Ended(Ending),
}

impl Slot {
    pub(super) const EMPTY: Self = Self {
        pid: None,
        settle_us: None,
        rollup: [None; FIELD_COUNT],
        outcome: Outcome::Ok,
        faults: None,
    };

    /// A process that lacks what is needed does not count, and does not look as if it did.
    fn complete(&mut self) {
        if !is_complete(&self.rollup) {
            self.spoil(Outcome::Skipped("fields-missing"));
        }
    }

    /// The first that goes wrong is what is told.
    fn spoil(&mut self, outcome: Outcome) {
        if self.outcome == Outcome::Ok {
            self.outcome = outcome;
        }
    }
}

/// What is true of the whole batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Together {
    /// Growth of the machine's Shmem, KiB.
    pub(super) shmem_grown_kb: Option<i64>,
    /// Whether the kernel summed up its counters before it told.
    pub(super) shmem_is_exact: bool,
    pub(super) bystanders: Option<u64>,
    /// The first field of smaps_rollup that is not known.
    pub(super) unknown: Option<RollupError>,
    /// Whether a subject goes on, because it may not be killed.
    pub(super) cannot_end: bool,
    /// Whether all patience went by and no process came to the barrier.
    pub(super) waited_in_vain: bool,
    /// Why there may be more bystanders.
    pub(super) hidden: Option<Hidden>,
}

/// How a batch is run.
pub(super) struct Batch<'b> {
    pub(super) launch: Launch<'b>,
    pub(super) clock: Clock,
    pub(super) patience_ns: u64,
    pub(super) release: Release,
    /// What a process will take of the machine, KiB.
    pub(super) need_kb: u64,
}

type Subjects = Vec<Subject, N_MAX>;
type Places = Vec<Place, N_MAX>;

impl Batch<'_> {
    /// Runs it with as many processes as there are slots.
    pub(super) fn run(&self, slots: &mut [Slot]) -> Result<Together, Error> {
        slots.fill(Slot::EMPTY);
        let mut together = Together::default();
        let before = Memory::now()?;
        let need_kb = self.need_kb.saturating_mul(slots.len() as u64);
        if need_kb > before.available_kb {
            spoil_all(slots, Outcome::Skipped("not-enough-memory"));
            return Ok(together);
        }
        let mut gathering = match Gathering::new() {
            Ok(gathering) => gathering,
            Err(errno) => {
                spoil_all(slots, Outcome::Errno(errno));
                return Ok(together);
            }
        };
        let mut at_barrier = None;
        let mut subjects = Subjects::new();
        self.start(&gathering, &mut subjects, slots);
        if subjects.len() == slots.len() {
            let (places, had_time) = self.settle(&gathering, &subjects, slots);
            together.waited_in_vain = had_time && !places.contains(&Place::AtBarrier);
            together.unknown = sweep(&subjects, &places, slots);
            at_barrier = Some(Memory::now()?);
            self.look_again(&gathering, &subjects, slots, &mut together);
            self.let_go(&mut gathering, &subjects, slots);
        }
        gathering.release_by_end();
        together.cannot_end = finish(subjects).is_err();
        drop(gathering);
        clean_up();
        if let Some(memory) = at_barrier {
            together.shmem_grown_kb = memory.shmem_over(&before)?;
            together.shmem_is_exact = memory.is_exact && before.is_exact;
        }
        Ok(together)
    }

    fn start(&self, gathering: &Gathering, subjects: &mut Subjects, slots: &mut [Slot]) {
        for index in 0..slots.len() {
            let has_own_input = self.release == Release::Byte;
            let started = Subject::start(&self.launch, gathering, has_own_input, self.clock);
            match started {
                Ok(subject) => {
                    slots[index].pid = Some(subject.pid());
                    // There is room for N_MAX, which bounds the slots.
                    let _ = subjects.push(subject);
                }
                Err(errno) => {
                    // Those behind it were not tried.
                    slots[index].spoil(Outcome::Errno(errno));
                    spoil_all(slots, Outcome::Skipped("others-did-not-start"));
                    return;
                }
            }
        }
    }

    /// Waits until all are at the barrier in one look, until one never will be, or until
    /// patience ends, which is told.
    fn settle(
        &self,
        gathering: &Gathering,
        subjects: &Subjects,
        slots: &mut [Slot],
    ) -> (Places, bool) {
        let deadline = self.clock.now_ns() + self.patience_ns;
        let is_there = |place: &Place| *place == Place::AtBarrier;
        let is_over = |place: &Place| matches!(place, Place::Ended(_) | Place::Hidden(_));
        let (places, had_time) = loop {
            let places: Places = subjects.iter().map(Subject::place).collect();
            if places.iter().all(is_there) || places.iter().any(is_over) {
                break (places, false);
            }
            if self.clock.now_ns() > deadline {
                break (places, true);
            }
            sleep_ms(1);
        };
        let now = self.clock.now_ns();
        let all = places.iter().all(is_there);
        for ((slot, subject), place) in slots.iter_mut().zip(subjects).zip(&places) {
            if all {
                slot.settle_us = Some((now - subject.started_ns()) / 1000);
                slot.faults = subject.faults();
            }
            // One that was on its way when another ended has done nothing wrong.
            if had_time || is_over(place) {
                slot.spoil(missed(*place, gathering));
            }
        }
        if !all {
            spoil_all(slots, Outcome::Skipped("others-not-at-barrier"));
        }
        (places, had_time)
    }

    /// What could have changed while they were looked at must not have.
    fn look_again(
        &self,
        gathering: &Gathering,
        subjects: &Subjects,
        slots: &mut [Slot],
        together: &mut Together,
    ) {
        let census = census::take(subjects, &[gathering.anchor().pid()]);
        together.bystanders = census.bystanders;
        together.hidden = census.hidden;
        if census.forked {
            spoil_all(slots, Outcome::Skipped("a-subject-forked"));
        }
        if census.probed {
            spoil_all(slots, Outcome::Skipped("a-subject-has-uprobes"));
        }
        for (slot, subject) in slots.iter_mut().zip(subjects) {
            match subject.place() {
                // Memory does not change without a fault.
                Place::AtBarrier if slot.faults == subject.faults() => {}
                Place::AtBarrier | Place::Elsewhere(THREADS_RUN) => {
                    slot.spoil(Outcome::Skipped(THREADS_RUN));
                }
                Place::Ended(ending) => slot.spoil(Outcome::Ended(ending)),
                _ => slot.spoil(Outcome::Skipped("left-the-barrier")),
            }
        }
    }

    /// Lets them go and sees how they end. If one did not come to the barrier, the others
    /// are not asked any more.
    fn let_go(&self, gathering: &mut Gathering, subjects: &Subjects, slots: &mut [Slot]) {
        if slots.iter().all(|slot| slot.settle_us.is_none()) {
            return;
        }
        gathering.release_by_end();
        for (slot, subject) in slots.iter_mut().zip(subjects) {
            if let Err(errno) = subject.release_by_byte() {
                slot.spoil(Outcome::Errno(errno));
            }
        }
        let deadline = self.clock.now_ns() + self.patience_ns;
        while subjects.iter().any(|subject| subject.ending().is_none())
            && self.clock.now_ns() < deadline
        {
            sleep_ms(1);
        }
        for (slot, subject) in slots.iter_mut().zip(subjects) {
            match subject.ending() {
                Some(Ending::Exited(0)) => slot.complete(),
                Some(ending) => slot.spoil(Outcome::Ended(ending)),
                None => slot.spoil(Outcome::Skipped("did-not-end-when-let-go")),
            }
        }
    }
}

/// Ends what has not ended. A program that has become another user's may not be killed; but
/// its input has ended by now.
///
/// # Errors
/// `EPERM`: one goes on all the same.
fn finish(subjects: Subjects) -> Result<(), Errno> {
    let mut patience_ms = DENIED_PATIENCE_MS;
    let mut all = Ok(());
    for subject in subjects {
        let ended = subject.finish(patience_ms);
        if ended.is_err() {
            // The others had as long.
            patience_ms = 0;
        }
        all = all.and(ended);
    }
    all
}

/// Kills and reaps what subjects have left behind: orphans are adopted. In the handler of a
/// signal, too.
pub(super) fn clean_up() {
    // A killed process ends at once unless it hangs in the kernel; that is not waited for
    // for ever.
    for wait_ms in 1..=64 {
        if !reap_ended() {
            return;
        }
        census::kill_strays();
        sleep_ms(wait_ms);
    }
}

pub(super) fn spoil_all(slots: &mut [Slot], outcome: Outcome) {
    for slot in slots {
        slot.spoil(outcome);
    }
}

/// What became of a subject that is not at the barrier.
fn missed(place: Place, gathering: &Gathering) -> Outcome {
    match place {
        Place::AtBarrier => Outcome::Ok,
        Place::Elsewhere(what) => Outcome::Skipped(what),
        Place::Hidden(errno) => Outcome::Errno(errno),
        Place::Ended(ending) => {
            let complaint = match ending {
                Ending::Exited(CANNOT_EXECUTE) => gathering.complaint(),
                _ => None,
            };
            complaint.map_or(Outcome::Ended(ending), Outcome::Errno)
        }
    }
}

/// Reads smaps_rollup of everyone at the barrier once, one after the other with nothing in
/// between.
fn sweep(subjects: &Subjects, places: &Places, slots: &mut [Slot]) -> Option<RollupError> {
    let mut unknown = None;
    let mut all = slots.iter_mut().zip(subjects).zip(places);
    let at_barrier = |(_, place): &(_, &Place)| **place == Place::AtBarrier;
    while let Some(((slot, subject), _)) = all.find(at_barrier) {
        let mut buffer = [0; 4096];
        let text = match read_proc(Process::Id(subject.pid()), "smaps_rollup", &mut buffer) {
            Ok(text) => text,
            Err(errno) => {
                slot.spoil(Outcome::Errno(errno));
                continue;
            }
        };
        // The first is told.
        let unknown_here = take(text, slot);
        unknown = unknown.or(unknown_here);
    }
    unknown
}

/// Takes the text of smaps_rollup over; gives what of it is not known.
pub(super) fn take(text: &[u8], slot: &mut Slot) -> Option<RollupError> {
    let error = rollup::parse(text, &mut slot.rollup).err()?;
    // A process that has ended has no lines; its ending is told instead.
    if text.is_empty() {
        return None;
    }
    slot.spoil(Outcome::Skipped("unknown-smaps_rollup"));
    Some(error)
}

/// The machine's memory, KiB.
struct Memory {
    available_kb: u64,
    shmem_kb: u64,
    is_exact: bool,
}

impl Memory {
    fn now() -> Result<Self, Error> {
        // The kernel counts per CPU and sums up now and then; reading this file makes it do
        // so (vm.stat_refresh). Only root may.
        let mut buffer = [0; 8192];
        let is_exact = read_whole(c"/proc/sys/vm/stat_refresh", &mut buffer).is_ok();
        let text = read_whole(c"/proc/meminfo", &mut buffer)
            .map_err(Error::kernel("read /proc/meminfo"))?;
        let field = |name| {
            kib_field(text, name).ok_or(Error::Kernel(
                "find MemAvailable and Shmem in /proc/meminfo",
                Errno::NODATA,
            ))
        };
        Ok(Self {
            available_kb: field(b"MemAvailable")?,
            shmem_kb: field(b"Shmem")?,
            is_exact,
        })
    }

    /// How much more Shmem there is than without the processes. What others take or give back
    /// meanwhile is halved by looking before and after. A file in memory goes some time after
    /// the last process that has it.
    fn shmem_over(&self, before: &Self) -> Result<Option<i64>, Error> {
        const LOOKS: u32 = 10;
        let mut after = Self::now()?;
        for _ in 0..LOOKS {
            if after.shmem_kb <= before.shmem_kb {
                break;
            }
            sleep_ms(5);
            after = Self::now()?;
        }
        let without = before.shmem_kb.midpoint(after.shmem_kb);
        let signed = |value: u64| i64::try_from(value).ok();
        let grown = signed(self.shmem_kb).zip(signed(without));
        Ok(grown.map(|(at, without)| at - without))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    const ROLLUP: &str = "1000-2000 ---p 00000000 00:00 0   [rollup]\nPss: 9 kB\n\
        Pss_Shmem: 0 kB\nShared_Dirty: 0 kB\nPrivate_Clean: 1 kB\nPrivate_Dirty: 8 kB\n\
        Anonymous: 8 kB\n";

    #[test]
    fn what_lacks_a_field_that_counts_is_not_ok() {
        let mut slot = Slot::EMPTY;
        assert_eq!(take(ROLLUP.as_bytes(), &mut slot), None);
        slot.complete();
        assert_eq!(slot.outcome, Outcome::Ok);
        for field in ["Pss_Shmem:", "Private_Dirty:", "Anonymous:"] {
            let mut lines = ROLLUP
                .lines()
                .map(ToString::to_string)
                .collect::<std::vec::Vec<_>>();
            lines.retain(|line| !line.starts_with(field));
            let text = lines.join("\n") + "\n";
            assert!(text.len() + 10 < ROLLUP.len(), "{field} was there");
            let mut slot = Slot::EMPTY;
            assert_eq!(take(text.as_bytes(), &mut slot), None);
            slot.complete();
            assert_eq!(slot.outcome, Outcome::Skipped("fields-missing"), "{field}");
        }
    }
}
