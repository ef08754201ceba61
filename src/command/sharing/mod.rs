//! `sharing`: how PSS falls with the number of processes, for each way a program gets into
//! memory.

mod batch;
mod census;
mod chosen;
mod row;
mod tally;
mod verdict;
mod words;

use super::env::{self, Context, Kernel};
use super::progress::Progress;
use crate::cli::sharing::{Arm, Options};
use crate::cli::{Effective, Problem, Topic, UsageError, Word};
use crate::emit::sharing_row::{SharingFitRow, SharingRow};
use crate::emit::stream::{Preamble, Rows};
use crate::error::Error;
use crate::fixture::builtin::Builtin;
use crate::fixture::subject::{Form, Launch};
use crate::proc::rollup::RollupError;
use crate::sys::auxv::Auxv;
use crate::sys::exec::Words;
use crate::sys::process::{adopt_orphans, proc_is_ours, reap_ended};
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, Region, Table};
use crate::text::Text;
use batch::{Batch, Slot};
use chosen::Chosen;
use core::ffi::CStr;
use heapless::Vec;
use row::Common;
use tally::{Tally, Values};

/// One of each kind.
const ARMS_MAX: usize = 4;
/// What a process takes of the machine besides its own program: page tables, stacks, kernel
/// structures. An estimate, only to refuse what cannot fit.
const PROCESS_KB: u64 = 512;

/// Word of argv by its number.
type Argument<'a> = &'a dyn Fn(usize) -> Option<&'static CStr>;

/// Measures every arm.
///
/// # Errors
/// See [`Error`]. Rows of batches that ended before are already written.
pub fn run(
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
        is_alone: !reap_ended(),
        environment: chosen::environment(),
        unknown: None,
    };
    let tallies = run.measure(&context, &arms(options))?;
    run.conclude(&context, &tallies)
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

/// The programs of a run and the words they all get, argv[0] included.
struct Programs {
    main: Chosen,
    control: Option<Chosen>,
    words: Words<'static>,
}

impl Programs {
    fn choose(options: &Options, argument: Argument<'_>, page: usize) -> Result<Self, Error> {
        let mut words = Words::new();
        let first = options.program.into_iter().flat_map(|first| first..);
        for word in first.map_while(argument) {
            let fits = words.push(word);
            fits.map_err(|_| Error::Invalid("PROGRAM has too many arguments: 124 are possible"))?;
        }
        let builtin = Builtin {
            text_bytes: options.text_bytes,
            data_bytes: options.data_bytes,
            touches_text: options.touches_text,
        };
        let name = match (options.program, words.first()) {
            (None, _) => None,
            (Some(_), Some(name)) => Some(name.to_str().map_err(|_| NOT_UTF_8)?),
            (Some(_), None) => {
                let problem = Problem::MissingOperand("an ELF program, and its arguments");
                return Err(usage(b"PROGRAM", "", problem));
            }
        };
        let choose = |name: Option<&'static str>| match name {
            Some(name) => Chosen::named(name),
            None => Chosen::builtin(&builtin, options.folder, page),
        };
        let main = choose(name)?;
        if name.is_none() {
            words.extend([c"cowitness-subject"]);
        }
        let control = options.arms.iter().find_map(|arm| match arm {
            Arm::Static(path) => Some(*path),
            _ => None,
        });
        let control = match control {
            None => None,
            Some("") if name.is_none() => Some(choose(None)?),
            Some("") => {
                let problem = Problem::BadValue("static=PATH if there is a PROGRAM");
                return Err(usage(b"static", "--arm", problem));
            }
            Some(path) => Some(static_program(path)?),
        };
        Ok(Self {
            main,
            control,
            words,
        })
    }

    fn of(&self, arm: &Arm) -> (&Chosen, &Words<'static>, Form) {
        let main = |form| (&self.main, &self.words, form);
        match (arm, &self.control) {
            (Arm::Static(_), Some(control)) => (control, &self.words, Form::Mapped),
            (Arm::Elf | Arm::Static(_), _) => main(Form::Mapped),
            (Arm::Native, _) => main(Form::Copied),
            (Arm::Memfd, _) => main(Form::InMemory),
        }
    }
}

const NOT_UTF_8: Error = Error::Invalid("PROGRAM is not UTF-8");

/// What does not fit together on the command line.
fn usage(word: Word, option: &'static str, problem: Problem) -> Error {
    Error::Usage(UsageError {
        word,
        option,
        problem,
        topic: Topic::Sharing,
    })
}

/// The control: without interpreter, or it would be none.
fn static_program(path: &'static str) -> Result<Chosen, Error> {
    let chosen = Chosen::named(path)?;
    if chosen.interpreter_bytes > 0 {
        let why = "it has an interpreter, so it is not static";
        return Err(Error::Unsuited(path, why));
    }
    Ok(chosen)
}

/// What a run carries from batch to batch.
struct Run<'r> {
    options: &'r Options,
    programs: &'r Programs,
    clock: Clock,
    common: Common<'r>,
    is_alone: bool,
    environment: Words<'static>,
    unknown: Option<RollupError>,
}

impl Run<'_> {
    /// All arms, one after the other; the first stream.
    fn measure(
        &mut self,
        context: &Context<'_>,
        arms: &[Arm],
    ) -> Result<Vec<Tally, ARMS_MAX>, Error> {
        let memory = Error::kernel("map memory for the rows");
        let most = self.options.n.iter().max().copied().unwrap_or(1) as usize;
        let mut slots = Table::new(most).map_err(&memory)?;
        while slots.push(Slot::EMPTY).is_ok() {}
        let mut values =
            Region::not_inherited(most * self.options.reps as usize * 8).map_err(&memory)?;
        let mut preamble = Preamble::begin(stdout())?;
        env::write(&mut preamble, context)?;
        let each: u64 = self.options.n.iter().sum();
        let total = each * self.options.reps * arms.len() as u64;
        let mut rows = preamble.header::<SharingRow<'_>>(total)?;
        let batches = arms.len() * self.options.n.len();
        let progress = Progress::new(self.options.common.quiet, self.clock, batches as u64);
        let mut tallies = Vec::new();
        let mut done = 0;
        for arm in arms {
            let mut tally = Tally::new(*arm, self.programs.of(arm));
            for &n in &self.options.n {
                progress.show(done, Text::new().add(arm.name()).add(" n=").number(n));
                let slots = &mut slots.as_mut_slice()[..n as usize];
                let mut values = Values::new(values.words_mut());
                for rep in 1..=self.options.reps {
                    self.batch(&mut tally, (n, rep), slots, &mut values, &mut rows)?;
                }
                tally.note_median(n, values);
                done += 1;
            }
            // At most one of each kind.
            let _ = tallies.push(tally);
        }
        progress.clear();
        rows.end()?;
        Ok(tallies)
    }

    /// The second stream, the summary, and how the run ends.
    fn conclude(&self, context: &Context<'_>, tallies: &[Tally]) -> Result<(), Error> {
        let is_elf = |tally: &&Tally| matches!(tally.arm, Arm::Elf);
        let no_elf = Error::Invalid("elf was not measured: a defect of cowitness");
        let reference = tallies.iter().find(is_elf).ok_or(no_elf)?;
        let mut preamble = Preamble::begin(stdout())?;
        env::write(&mut preamble, context)?;
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
        match self.unknown {
            Some(error) => Err(Error::Rollup(error)),
            None if is_valid => Ok(()),
            None => Err(Error::Invalid(
                "not every process of every arm could be measured: see the status column",
            )),
        }
    }

    fn batch(
        &mut self,
        tally: &mut Tally,
        (n, rep): (u64, u64),
        slots: &mut [Slot],
        values: &mut Values<'_>,
        rows: &mut Rows<Output>,
    ) -> Result<(), Error> {
        let (chosen, words, form) = self.programs.of(&tally.arm);
        let copied_kb = match form {
            Form::Mapped => 0,
            Form::Copied => tally.sum_filesz_kb(),
            Form::InMemory => tally.file_kb,
        };
        let batch = Batch {
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
            need_kb: copied_kb + PROCESS_KB,
            is_alone: self.is_alone,
        };
        let together = batch.run(slots)?;
        self.unknown = self.unknown.or(together.unknown);
        let most = self.options.n.iter().max() == Some(&n);
        tally.note_batch(&together, most);
        for (index, slot) in slots.iter().enumerate() {
            tally.note(slot, values);
            let place = (n, rep, index as u64 + 1);
            row::write(&self.common, tally, place, slot, &together, rows)?;
        }
        Ok(())
    }
}
