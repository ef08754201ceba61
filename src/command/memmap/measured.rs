//! The measurement itself.

use super::figures::{Figures, Vmas};
use super::problem::Problem;
use super::subject::{Run, STEPS, Subject};
use crate::cli::memmap::{Advised, Mode, Options};
use crate::error::Error;
use crate::proc::smaps::Usage;
use crate::sys::process::{Faults, own_faults};
use crate::sys::promise::Promise;
use core::ops::Range;

/// What was found.
pub(super) struct Measured {
    /// Still there, so that it can be shown.
    pub(super) promise: Promise,
    /// Of each step; all are in the first unless it is a fault-walk.
    pub(super) steps: [Faults; STEPS],
    pub(super) before: Figures,
    pub(super) after: Figures,
    pub(super) vmas: Vmas,
    /// Of the target's VMAs after touching; `None` if smaps cannot be read.
    pub(super) usage: Option<Usage>,
    pub(super) again: Option<Again>,
}

/// After advice that was given after touching, and after touching once more.
pub(super) struct Again {
    /// Of the process, after the advice.
    pub(super) rss_kib: u64,
    /// Of the target's VMAs, after the advice.
    pub(super) usage: Option<Usage>,
    /// Of touching it again.
    pub(super) faults: Faults,
}

impl Measured {
    /// All faults of touching.
    pub(super) fn faults(&self) -> Faults {
        sum(&self.steps)
    }
}

const NOT_COUNTED: Error =
    Error::Invalid("getrusage(2) is denied here (seccomp): faults cannot be counted");

/// Allocates, touches, looks. All calls of `window` are from here, so that the frame of a
/// stack, which lies below this one's, is in the same place each time.
pub(super) fn measure<'p>(
    subject: &Subject<'p>,
    options: &Options,
) -> Result<Measured, Problem<'p>> {
    let (mut small, mut promise) = (None, None);
    // What is read below takes pages of the tool's own the first time.
    Figures::now(options.report)?;
    look(&(0..usize::MAX / 2))?;
    window(subject, options, Run::Rehearsal, &mut small)?;
    drop(small);
    let before = Figures::now(options.report)?;
    let steps = window(subject, options, Run::Real, &mut promise)?;
    let after = Figures::now(options.report)?;
    let mut promise = promise.ok_or(NOT_COUNTED)?;
    let (vmas, usage) = look(&promise.range())?;
    let mut again = None;
    if let Some(advised) = options.advised.filter(|advised| advised.afterwards) {
        advise(&mut promise, advised)?;
        again = Some(Again {
            rss_kib: Figures::now(false)?.rss_kib,
            usage: look(&promise.range())?.1,
            faults: Faults::default(),
        });
    }
    let mut promise = Some(promise);
    if let Some(again) = &mut again {
        again.faults = sum(&window(subject, options, Run::Real, &mut promise)?);
    }
    Ok(Measured {
        promise: promise.ok_or(NOT_COUNTED)?,
        steps,
        before,
        after,
        vmas,
        usage,
        again,
    })
}

/// The VMAs that overlap a range, and what they hold. One function each time: the tool's own stack is
/// as deep then as it was the first time.
#[inline(never)]
fn look(range: &Range<usize>) -> Result<(Vmas, Option<Usage>), Problem<'static>> {
    let vmas = Vmas::each(range, &mut |_| Ok(()))?;
    let usage = vmas.usage();
    Ok((vmas, usage))
}

/// The window: from before the allocation to after the last touch. What is there is only
/// touched.
#[inline(never)]
fn window<'p>(
    subject: &Subject<'p>,
    options: &Options,
    run: Run,
    promise: &mut Option<Promise>,
) -> Result<[Faults; STEPS], Problem<'p>> {
    let mut steps = [Faults::default(); STEPS];
    let mut last = own_faults().ok_or(NOT_COUNTED)?;
    if promise.is_none() {
        let made = promise.insert(subject.promise(run)?);
        if let Some(advised) = options.advised.filter(|advised| !advised.afterwards) {
            // A page that stands in for one of a file may be refused what that takes.
            advise(made, advised).or_else(|problem| match run {
                Run::Rehearsal => Ok(()),
                Run::Real => Err(problem),
            })?;
        }
        if subject.mode == Mode::Stack {
            // What growing it for the advice was charged is none of the frame's.
            last = own_faults().ok_or(NOT_COUNTED)?;
        }
    }
    for (index, step) in steps.iter_mut().enumerate() {
        let part = subject.part(index, run);
        let Some(promise) = promise.as_mut().filter(|_| !part.is_empty()) else {
            continue;
        };
        let touched = promise.touch(part);
        touched
            .map_err(|errno| Problem::Spoilt("give back the stack that calls have used", errno))?;
        let now = own_faults().ok_or(NOT_COUNTED)?;
        *step = now.since(last);
        last = now;
    }
    Ok(steps)
}

fn advise<'p>(promise: &mut Promise, advised: Advised) -> Result<(), Problem<'p>> {
    let given = promise.advise(advised.advice);
    given.map_err(|errno| Problem::Advice(advised.name, errno))
}

fn sum(steps: &[Faults; STEPS]) -> Faults {
    let mut sum = Faults::default();
    for step in steps {
        sum.minor += step.minor;
        sum.major += step.major;
    }
    sum
}
