//! The measurement itself.

use super::figures::{Figures, Vmas};
use super::problem::Problem;
use super::subject::{STEPS, Subject};
use crate::cli::memmap::Options;
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
        self.steps
            .iter()
            .fold(Faults::default(), |sum, step| Faults {
                minor: sum.minor + step.minor,
                major: sum.major + step.major,
            })
    }
}

const NOT_COUNTED: Error =
    Error::Invalid("getrusage(2) is denied here (seccomp): faults cannot be counted");

/// Allocates, touches, looks.
pub(super) fn measure<'p>(
    subject: &Subject<'p>,
    options: &Options,
) -> Result<Measured, Problem<'p>> {
    rehearse(subject)?;
    let before = Figures::now(options.report)?;
    let (promise, steps) = touched(subject, options)?;
    let after = Figures::now(options.report)?;
    let vmas = Vmas::each(&promise.range(), &mut |_| Ok(()))?;
    let mut measured = Measured {
        usage: vmas.usage(),
        promise,
        steps,
        before,
        after,
        vmas,
        again: None,
    };
    measured.again = again(subject, options, &mut measured.promise)?;
    Ok(measured)
}

/// Runs once through what `touched` will run through.
fn rehearse<'p>(subject: &Subject<'p>) -> Result<(), Problem<'p>> {
    own_faults().ok_or(NOT_COUNTED)?;
    let mut small = subject.rehearsal()?;
    let all = small.range().len();
    touch(&mut small, 0..all)
}

fn touch<'p>(promise: &mut Promise, part: Range<usize>) -> Result<(), Problem<'p>> {
    let touched = promise.touch(part);
    touched.map_err(|errno| Problem::Spoilt("give back the stack that calls have used", errno))
}

/// The window: from before the allocation to after the last touch. The frame of a stack
/// that is touched lies below this one.
#[inline(never)]
fn touched<'p>(
    subject: &Subject<'p>,
    options: &Options,
) -> Result<(Promise, [Faults; STEPS]), Problem<'p>> {
    let mut steps = [Faults::default(); STEPS];
    let mut last = own_faults().ok_or(NOT_COUNTED)?;
    let mut promise = subject.promise()?;
    if let Some(advised) = options.advised.filter(|advised| !advised.afterwards) {
        let given = promise.advise(advised.advice);
        given.map_err(|errno| Problem::Advice(advised.name, errno))?;
    }
    for (index, step) in steps.iter_mut().enumerate() {
        let part = subject.part(index);
        if part.is_empty() {
            continue;
        }
        touch(&mut promise, part)?;
        let now = own_faults().ok_or(NOT_COUNTED)?;
        *step = now.since(last);
        last = now;
    }
    Ok((promise, steps))
}

/// Gives the advice that is about what is there, and touches all of it again.
fn again<'p>(
    subject: &Subject<'p>,
    options: &Options,
    promise: &mut Promise,
) -> Result<Option<Again>, Problem<'p>> {
    let Some(advised) = options.advised.filter(|advised| advised.afterwards) else {
        return Ok(None);
    };
    let given = promise.advise(advised.advice);
    given.map_err(|errno| Problem::Advice(advised.name, errno))?;
    let rss_kib = Figures::now(false)?.rss_kib;
    let usage = Vmas::each(&promise.range(), &mut |_| Ok(()))?.usage();
    let before = own_faults().ok_or(NOT_COUNTED)?;
    for index in 0..STEPS {
        let part = subject.part(index);
        if !part.is_empty() {
            touch(promise, part)?;
        }
    }
    let faults = own_faults().ok_or(NOT_COUNTED)?.since(before);
    Ok(Some(Again {
        rss_kib,
        usage,
        faults,
    }))
}
