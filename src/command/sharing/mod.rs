//! `sharing`: how PSS falls with the number of processes, for each way a program gets into
//! memory.

mod batch;
mod census;
mod chosen;
mod growth;
mod programs;
mod row;
mod tally;
mod verdict;
mod words;

use super::apart::apart;
use super::env::{self, Context, Kernel};
use super::progress::Progress;
use crate::cli::Effective;
use crate::cli::sharing::{Arm, Options};
use crate::emit::sharing_row::{SharingFitRow, SharingRow};
use crate::emit::stream::{Preamble, Rows};
use crate::error::Error;
use crate::fixture::subject::Launch;
use crate::measure::plan::{List, Random};
use crate::measure::rounds::Rounds;
use crate::proc::number::count_listed;
use crate::proc::rollup::RollupError;
use crate::sys::auxv::Auxv;
use crate::sys::exec::Words;
use crate::sys::file::read_whole;
use crate::sys::process::{adopt_orphans, is_first, proc_is_ours, reap_ended};
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, Errno, Region, Table, signal};
use crate::text::Text;
use batch::{Batch, Outcome, Slot, Together};
use core::ffi::CStr;
use heapless::Vec;
use programs::Programs;
use row::Common;
use tally::{Room, Tally};
use verdict::Doubt;

/// One of each kind.
const ARMS_MAX: usize = 4;
/// Word of argv by its number.
type Argument<'a> = &'a dyn Fn(usize) -> Option<&'static CStr>;

/// Measures every arm.
///
/// Whoever has become this program may have had children; they are ours then, and so are all
/// orphans if this is the first process of a container. They are nobody of the measurement's,
/// and not to be told from what subjects leave behind. A child has none of either.
///
/// # Errors
/// See [`Error`]. Rows of batches that ended before are already written.
#[inline(never)]
pub fn run(
    options: &Options,
    effective: &Effective,
    argument: Argument<'_>,
    auxv: &Auxv,
) -> Result<(), Error> {
    signal::stop_on_others().map_err(Error::kernel("install signal handlers"))?;
    if !is_first() && !reap_ended() {
        return alone(options, effective, argument, auxv);
    }
    let held = signal::hold().map_err(Error::kernel("hold back signals"))?;
    apart(&held, &mut || alone(options, effective, argument, auxv))
}

/// Measures in a process that has no children yet, and gets none but those of subjects.
fn alone(
    options: &Options,
    effective: &Effective,
    argument: Argument<'_>,
    auxv: &Auxv,
) -> Result<(), Error> {
    let clock = Clock::best(auxv).proved().ok_or(Error::NO_CLOCK)?;
    if !proc_is_ours() {
        return Err(Error::NO_PROC);
    }
    adopt_orphans().map_err(Error::kernel("adopt orphans"))?;
    signal::undo_when_stopped(batch::clean_up);
    let kernel = Kernel::read();
    let programs = Programs::choose(options, argument, auxv.page_bytes())?;
    // Pages that were written and never stored would look dirty in every process.
    rustix::fs::sync();
    let context = Context {
        command: "sharing",
        effective,
        common: options.common,
        clock,
        page_bytes: auxv.page_bytes(),
        cpu: None,
    };
    let mut run = Run {
        options,
        programs: &programs,
        clock,
        common: Common {
            label: options.common.label,
            kernel: kernel.release(),
        },
        lag_kb: lag_kb(auxv.page_bytes()),
        environment: chosen::environment(),
        unknown: None,
        cannot_end: false,
    };
    let arms = arms(options);
    let words = run.rows_of_an_arm() as usize * arms.len();
    let mut memory = Region::not_inherited(2 * words * 8).map_err(Error::kernel(MEMORY))?;
    let batches = options.n.len() * options.reps as usize * arms.len();
    let mut grown = Table::new(batches).map_err(Error::kernel(MEMORY))?;
    while grown.push(0).is_ok() {}
    let mut tallies: Vec<Tally<'_>, ARMS_MAX> = arms
        .iter()
        .map(|arm| Tally::new(*arm, programs.of(arm)))
        .collect();
    let mut room = Room {
        memory: memory.words_mut(),
        grown: grown.as_mut_slice(),
    };
    run.measure(&context, &mut tallies, &mut room)?;
    run.conclude(&context, &tallies)
}

/// How far the machine's count of Shmem can be off, KiB, unless the kernel is told to sum up:
/// each CPU keeps up to 125 pages of each node to itself (`calculate_normal_threshold`,
/// mm/vmstat.c), whichever of them this process may use. Boundless if they cannot be counted.
fn lag_kb(page_bytes: usize) -> u64 {
    const PAGES_MAX: u64 = 125;
    let count = |path| {
        let mut buffer = [0; 1024];
        read_whole(path, &mut buffer).map(|text| count_listed(text.trim_ascii_end()))
    };
    let cpus = count(c"/sys/devices/system/cpu/online");
    let nodes = match count(c"/sys/devices/system/node/online") {
        // A kernel without NUMA.
        Err(Errno::NOENT) => Some(1),
        nodes => nodes.ok().flatten(),
    };
    match (cpus, nodes) {
        (Ok(Some(cpus)), Some(nodes)) => cpus
            .saturating_mul(nodes)
            .saturating_mul(PAGES_MAX * page_bytes as u64 / 1024),
        _ => u64::MAX,
    }
}

/// The arms to measure: `elf` among them.
fn arms(options: &Options) -> Vec<Arm, ARMS_MAX> {
    let mut arms = Vec::new();
    let is_elf = |arm: &Arm| matches!(arm, Arm::Elf);
    if !options.arms.iter().any(is_elf) {
        // There is room for one of each kind, and a list has no doubles.
        let _ = arms.push(Arm::Elf);
    }
    arms.extend(options.arms.iter().copied());
    arms
}

/// What a run carries from batch to batch.
struct Run<'r> {
    options: &'r Options,
    programs: &'r Programs,
    clock: Clock,
    common: Common<'r>,
    /// How far the kernel's count of Shmem can be behind if it is not told to sum up.
    lag_kb: u64,
    environment: Words<'static>,
    unknown: Option<RollupError>,
    /// Whether a subject goes on that may not be killed.
    cannot_end: bool,
}

impl Run<'_> {
    /// The first stream: every arm with every number in every repetition, in an order that
    /// the seed decides. A repetition takes the numbers shuffled, and with each of them all
    /// arms, each of which stands at each position equally often.
    fn measure<'v>(
        &mut self,
        context: &Context<'_>,
        tallies: &mut [Tally<'v>],
        room: &mut Room<'v>,
    ) -> Result<(), Error> {
        let numbers = &self.options.n;
        let most = numbers.iter().max().copied().unwrap_or(1) as usize;
        let mut slots = Table::new(most).map_err(Error::kernel(MEMORY))?;
        while slots.push(Slot::EMPTY).is_ok() {}
        for tally in &mut *tallies {
            tally.expect(numbers, self.options.reps, room);
        }
        let mut preamble = Preamble::begin(stdout())?;
        env::write(&mut preamble, context)?;
        self.programs.note(&mut preamble)?;
        let total = self.rows_of_an_arm() * tallies.len() as u64;
        let mut rows = preamble.header::<SharingRow<'_>>(total)?;
        let batches = self.options.reps * (numbers.len() * tallies.len()) as u64;
        let progress = Progress::new(self.options.common.quiet, self.clock, batches);
        let mut rounds = Rounds::new(tallies.len(), self.options.common.seed);
        let mut random = Random::new(self.options.common.seed, 1);
        let mut places: List<usize> = (0..numbers.len()).collect();
        let (mut round, mut done) = (0, 0);
        for rep in 1..=self.options.reps {
            random.shuffle(&mut places);
            for n in places.iter().map(|&place| numbers[place]) {
                let slots = &mut slots.as_mut_slice()[..n as usize];
                for arm in rounds.round(round) {
                    let tally = &mut tallies[arm];
                    let title = tally.arm.name();
                    progress.show(done, Text::new().add(title).add(" n=").number(n));
                    self.batch(tally, (n, rep), slots, &mut rows)?;
                    done += 1;
                }
                round += 1;
            }
        }
        progress.clear();
        rows.end()?;
        tallies.iter_mut().for_each(Tally::conclude);
        Ok(())
    }

    fn rows_of_an_arm(&self) -> u64 {
        self.options.n.iter().sum::<u64>() * self.options.reps
    }

    /// The second stream, the summary, and how the run ends.
    fn conclude(&self, context: &Context<'_>, tallies: &[Tally<'_>]) -> Result<(), Error> {
        let is_elf = |tally: &&Tally<'_>| matches!(tally.arm, Arm::Elf);
        let no_elf = Error::Invalid("elf was not measured: a defect of cowitness");
        let reference = tallies.iter().find(is_elf).ok_or(no_elf)?;
        let mut preamble = Preamble::begin(stdout())?;
        env::write(&mut preamble, context)?;
        self.programs.note(&mut preamble)?;
        let mut rows = preamble.header::<SharingFitRow<'_>>(tallies.len() as u64)?;
        let mut is_valid = true;
        for tally in tallies {
            let row = row::fit(&self.common, tally, reference);
            is_valid &= row.verdict != "invalid";
            rows.row(&row)?;
        }
        rows.end()?;
        if !self.options.common.quiet {
            // A courtesy of standard error.
            let _ = words::write(stderr(), &self.common, self.options, tallies, reference);
        }
        let mut doubts = tallies.iter().filter_map(|tally| tally.doubt(reference));
        ending(self.unknown, self.cannot_end, is_valid, doubts.next())
    }

    fn batch(
        &mut self,
        tally: &mut Tally<'_>,
        (n, rep): (u64, u64),
        slots: &mut [Slot],
        rows: &mut Rows<Output>,
    ) -> Result<(), Error> {
        let why_not = match (self.cannot_end, tally.is_hopeless) {
            (true, _) => Some("one-cannot-be-ended"),
            (false, true) => Some("never-at-the-barrier"),
            (false, false) => None,
        };
        let together = match why_not {
            Some(why) => {
                slots.fill(Slot::EMPTY);
                batch::spoil_all(slots, Outcome::Skipped(why));
                Together::default()
            }
            None => {
                let together = self.gather(tally)?.run(slots)?;
                tally.note_batch(n, &together, self.lag_kb);
                together
            }
        };
        self.unknown = self.unknown.or(together.unknown);
        self.cannot_end |= together.cannot_end;
        for (index, slot) in slots.iter().enumerate() {
            tally.note(n, slot);
            let place = (n, rep, index as u64 + 1);
            row::write(&self.common, tally, place, slot, &together, rows)?;
        }
        Ok(())
    }

    fn gather(&self, tally: &Tally<'_>) -> Result<Batch<'_>, Error> {
        let (chosen, words, form) = self.programs.of(&tally.arm);
        Ok(Batch {
            launch: Launch {
                form,
                path: chosen.path()?,
                file: &chosen.file,
                words,
                environment: &self.environment,
                randomize: self.options.randomize,
            },
            clock: self.clock,
            patience_ns: self.options.settle_s * 1_000_000_000,
            release: self.options.release,
            need_kb: tally.need_kb,
        })
    }
}

const MEMORY: &str = "map memory for the rows";

/// How a run ends whose rows are written.
fn ending(
    unknown: Option<RollupError>,
    cannot_end: bool,
    is_valid: bool,
    doubt: Option<Doubt>,
) -> Result<(), Error> {
    if let Some(error) = unknown {
        return Err(Error::Rollup(error));
    }
    if cannot_end {
        return Err(Error::Invalid(
            "a subject has become a program of another user, so it may not be killed, and it \
             goes on although its input has ended: end it (the pid column names it), or use root",
        ));
    }
    match doubt {
        None if is_valid => Ok(()),
        None | Some(Doubt::NotMeasured) => Err(Error::Invalid(
            "not every process of every arm could be measured: see the status column",
        )),
        Some(doubt) => Err(Error::Invalid(words::of_doubt(doubt))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn said(ending: Result<(), Error>) -> (i32, std::string::String) {
        let error = ending.unwrap_err();
        let mut line = Text::new();
        error.describe(&mut line);
        (error.status(), line.read().unwrap().into())
    }

    #[test]
    fn a_field_that_is_not_known_ends_the_run_and_is_named_with_the_kernel() {
        let mut slot = Slot::EMPTY;
        let text = b"1000-2000 ---p 00000000 00:00 0   [rollup]\nPss_Moon: 4 kB\n";
        let unknown = batch::take(text, &mut slot);
        assert_eq!(slot.outcome, Outcome::Skipped("unknown-smaps_rollup"));
        let kernel = Kernel::read();
        let want = format!("Linux {} has unknown field Pss_Moon", kernel.release());
        let (status, line) = said(ending(unknown, true, false, None));
        assert!(line.contains(&want), "{line}");
        assert_eq!(status, 3);
    }

    #[test]
    fn what_makes_a_run_invalid_is_said() {
        assert!(ending(None, false, true, None).is_ok());
        let cases = [
            (ending(None, true, false, None), "may not be killed"),
            (ending(None, false, false, None), "status column"),
            (ending(None, false, false, Some(Doubt::Swapped)), "swap"),
            (ending(None, false, false, Some(Doubt::Lag)), "only root"),
            (ending(None, false, false, Some(Doubt::Company)), "others"),
        ];
        for (ending, want) in cases {
            let (status, line) = said(ending);
            assert_eq!(status, 3);
            assert!(line.contains(want), "{line}");
        }
    }
}
