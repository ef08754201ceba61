//! `startup`: what starting a program takes, as a difference between two (`ab`) or as a
//! line over the number of its shared objects (`slope`).

mod compare;
mod fit;
mod handler;
mod order;
mod registered;
mod subject;
mod times;

use super::bench::pin;
use super::env::{self, Context, Kernel};
use super::progress::Progress;
use crate::cli::Effective;
use crate::cli::startup::{Options, Side};
use crate::emit::record::Status;
use crate::emit::startup_row::StartupRow;
use crate::emit::stream::{Preamble, Rows};
use crate::error::Error;
use crate::fixture::copied;
use crate::measure::rounds::{ARMS_MAX, Rounds};
use crate::sys::auxv::Auxv;
use crate::sys::process::Ending;
use crate::sys::spawn::{self, Execed};
use crate::sys::stdio::{Output, stdout};
use crate::sys::{Clock, Errno, cpu, errno, signal, system};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::OwnedFd;
use subject::{NATIVE, Subject, Subjects};
use times::Times;

/// A word of argv by its number.
type Argument<'a> = &'a dyn Fn(usize) -> Option<&'static CStr>;

/// The program ended with another status than 0, or by a signal.
const FAILED: Status<'_> = Status::Skipped("command-failed");
/// The loader of this program could not load it, and ended with [`LOADER_FAILED`].
const NOT_LOADED: Status<'_> = Status::Skipped("not-loaded");
const LOADER_FAILED: i64 = copied::CANNOT_LOAD as i64;
/// Something of its file stayed in memory although the cache was dropped.
const NOT_COLD: Status<'_> = Status::Skipped("not-cold");
/// It did not end in time and was killed, or it did so before and was not started again.
const TIMED_OUT: Status<'_> = Status::Skipped("timeout");

/// Starts everything as often as was asked.
///
/// # Errors
/// See [`Error`]. Rows of rounds that ended before are already written.
#[inline(never)]
pub fn run(
    options: &Options,
    effective: &Effective,
    argument: Argument<'_>,
    auxv: &Auxv,
) -> Result<(), Error> {
    let clock = Clock::best(auxv).proved().ok_or(Error::NO_CLOCK)?;
    signal::stop_on_others().map_err(Error::kernel("install signal handlers"))?;
    let pinned = pin(options.pin)?;
    let kernel = Kernel::read();
    let mut run = Run {
        options,
        clock,
        kernel: kernel.release(),
        null: spawn::open_null().map_err(Error::kernel("open /dev/null"))?,
        subjects: subject::all(options, argument)?,
        page_bytes: auxv.page_bytes(),
        is_valid: true,
    };
    if options.cold {
        drop_caches()?;
    }
    run.warm_up()?;
    if options.cold {
        let mut subjects = run.subjects.iter();
        subjects.try_for_each(|subject| run.make_cold(subject))?;
    }
    let context = Context {
        command: "startup",
        effective,
        common: options.common,
        clock,
        page_bytes: auxv.page_bytes(),
        cpu: pinned,
    };
    let head = |subjects: &Subjects| {
        let mut preamble = Preamble::begin(stdout())?;
        env::write(&mut preamble, &context)?;
        subject::note(options, argument, &mut preamble)?;
        registered::note(&mut preamble)?;
        order::note(subjects.len(), options.rounds, &mut preamble)?;
        subject::note_compared(subjects, &mut preamble)?;
        Ok::<_, Error>(preamble)
    };
    let mut times = Times::new(run.subjects.len(), options.rounds as usize)
        .map_err(Error::kernel("map memory for the times"))?;
    run.every_round(head(&run.subjects)?, &mut times)?;
    run.subjects.iter().try_for_each(Subject::check_objects)?;
    match options.arms.first().map(|arm| arm.side) {
        Some(Side::A | Side::B) => compare::write(&run, head(&run.subjects)?, &mut times)?,
        _ => fit::write(&run, head(&run.subjects)?, &mut times)?,
    }
    run.conclude()
}

/// What a run carries from exec to exec.
struct Run<'r> {
    options: &'r Options,
    clock: Clock,
    kernel: &'r str,
    null: OwnedFd,
    subjects: Subjects,
    page_bytes: usize,
    /// Whether every exec was measured.
    is_valid: bool,
}

impl Run<'_> {
    /// Starts each arm before anything is written; one that cannot be started ends the run.
    fn warm_up(&mut self) -> Result<(), Error> {
        for _ in 0..self.options.warmup {
            for index in 0..self.subjects.len() {
                let mut execed = self.exec(index)?;
                let subject = &mut self.subjects[index];
                if let Some(Err(Errno::NOENT)) = execed
                    && subject.program.name_memory()
                {
                    execed = self.exec(index)?;
                }
                if let Some(Err(errno)) = execed {
                    return Err(self.subjects[index].cannot_run(errno));
                }
            }
        }
        Ok(())
    }

    /// Drops the cache, sees that it leaves nothing of the program's file in memory, and drops
    /// what seeing that took.
    fn make_cold(&self, subject: &Subject) -> Result<(), Error> {
        /// In between another process may read it.
        const TRIES: usize = 3;
        let mut held = Ok(());
        for _ in 0..TRIES {
            drop_caches()?;
            held = subject.check_uncached(self.page_bytes);
            if held.is_ok() {
                return drop_caches();
            }
        }
        held
    }

    fn every_round(&mut self, head: Preamble<Output>, times: &mut Times) -> Result<(), Error> {
        let (arms, rounds) = (self.subjects.len(), self.options.rounds);
        let total = arms as u64 * rounds;
        let mut rows = head.header::<StartupRow<'_>>(total)?;
        let progress = Progress::new(self.options.common.quiet, self.clock, total);
        let mut order = Rounds::new(arms, self.options.common.seed);
        for round in 0..rounds {
            progress.show(round * arms as u64, Text::new().add("startup"));
            // Rows leave after the round: who reads them is not at work within it.
            let mut done = heapless::Vec::<_, { ARMS_MAX }>::new();
            for index in order.round(round) {
                let _ = done.push((index, self.start(index)?));
            }
            // They count once these are known to be the programs that were asked for.
            let mut subjects = self.subjects.iter();
            subjects
                .try_for_each(Subject::check_unchanged)
                .inspect_err(|_| progress.clear())?;
            for (position, (index, execed)) in done.into_iter().enumerate() {
                let place = (round, position as u64 + 1);
                self.write(place, index, execed, &mut rows, times)?;
            }
        }
        progress.clear();
        rows.end()?;
        Ok(())
    }

    /// Starts an arm in a round; what its row says if that could not be done.
    fn start(&mut self, index: usize) -> Result<Result<Execed, Status<'static>>, Error> {
        if self.options.cold {
            match self.make_cold(&self.subjects[index]) {
                Err(Error::StaysCached(..)) => return Ok(Err(NOT_COLD)),
                made => made?,
            }
        }
        Ok(match self.exec(index)? {
            None => Err(TIMED_OUT),
            Some(execed) => execed.map_err(|errno| Status::Errno(errno::name_or_unknown(errno))),
        })
    }

    /// Starts an arm; `None` if it is not started any more.
    ///
    /// # Errors
    /// It did not end and cannot be killed: what runs beside it is not measured alone.
    fn exec(&mut self, index: usize) -> Result<Option<Result<Execed, Errno>>, Error> {
        let subject = &mut self.subjects[index];
        if subject.is_stuck {
            return Ok(None);
        }
        let patience_ns = self.options.timeout_s * 1_000_000_000;
        let execed = spawn::exec(&mut subject.program, &self.null, self.clock, patience_ns);
        subject.is_stuck = execed.is_ok_and(|execed| execed.end.is_none());
        match execed.ok().and_then(|execed| execed.survivor) {
            Some((pid, errno)) => Err(Error::Survives(subject.path.to_bytes(), pid, errno)),
            None => Ok(Some(execed)),
        }
    }

    fn write(
        &mut self,
        (round, position): (u64, u64),
        index: usize,
        execed: Result<Execed, Status<'static>>,
        rows: &mut Rows<Output>,
        times: &mut Times,
    ) -> Result<(), Error> {
        let subject = &self.subjects[index];
        let mut row = self.row(subject)?;
        (row.round, row.position) = (round + 1, position);
        row.status = match execed {
            Err(status) => status,
            Ok(execed) => self.fill(&mut row, subject, &execed),
        };
        if let (Status::Ok, Some(exec_ns), Some(total_ns)) = (row.status, row.exec_ns, row.total_ns)
        {
            times.keep(index, round as usize, exec_ns, total_ns);
        }
        rows.row(&row)?;
        self.is_valid &= row.status == Status::Ok;
        Ok(())
    }

    fn row<'s>(&'s self, subject: &'s Subject) -> Result<StartupRow<'s>, Error> {
        Ok(StartupRow {
            label: self.options.common.label,
            kernel: self.kernel,
            arch: cpu::ARCH,
            round: 0,
            position: 0,
            arm: subject.name.read().map_err(|Full| Error::TooLong)?,
            dispatch: subject.dispatch,
            n_objects: subject.objects,
            exec_ns: None,
            total_ns: None,
            exit_status: None,
            minflt: None,
            majflt: None,
            nivcsw: None,
            status: Status::Ok,
            cache: self.cache(),
        })
    }

    fn fill(
        &self,
        row: &mut StartupRow<'_>,
        subject: &Subject,
        execed: &Execed,
    ) -> Status<'static> {
        row.exec_ns = Some(execed.exec_ns);
        let Some(end) = &execed.end else {
            return TIMED_OUT;
        };
        let exit_status = match end.ending {
            Ending::Exited(status) => i64::from(status),
            Ending::Killed(signal) => -i64::from(signal),
        };
        row.total_ns = Some(end.total_ns);
        row.exit_status = Some(exit_status);
        row.minflt = Some(end.minor_faults);
        row.majflt = Some(end.major_faults);
        row.nivcsw = Some(end.involuntary_switches);
        match exit_status {
            0 => Status::Ok,
            // Also a program may end with it; nobody can tell.
            LOADER_FAILED if subject.dispatch == NATIVE => NOT_LOADED,
            _ if self.options.allow_failure => Status::Ok,
            _ => FAILED,
        }
    }

    const fn cache(&self) -> &'static str {
        if self.options.cold { "cold" } else { "warm" }
    }

    fn conclude(&self) -> Result<(), Error> {
        if self.is_valid {
            return Ok(());
        }
        Err(Error::Invalid(
            "not every exec could be measured: see exit_status and status; \
             --allow-failure takes programs that end with another status than 0",
        ))
    }
}

fn drop_caches() -> Result<(), Error> {
    system::drop_caches().map_err(Error::CannotDropCaches)
}
