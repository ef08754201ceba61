//! `selftest`: each mechanism of this kernel, tried once, a line each. What PID 1 runs
//! unless told otherwise.
//!
//! A check fails only if something here is broken or lies. What this kernel or these
//! privileges do not offer is skipped, with the reason.

use super::probe::prober;
use crate::emit::record::Status;
use crate::error::Error;
use crate::fixture::kinds::{KINDS, Kind, Op};
use crate::fixture::{Fixture, FixtureError};
use crate::measure::footprint::usage;
use crate::measure::probe::{Answer, Content, NOT_HERE, NOT_PERMITTED, Probed, Prober};
use crate::reader::{End, Method};
use crate::sys::auxv::Auxv;
use crate::sys::file::Process;
use crate::sys::process::own_faults;
use crate::sys::stdio::stdout;
use crate::sys::{Clock, errno};
use crate::text::{Full, Text};

/// Why a check did not pass; the text beside it tells more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Not {
    /// Not offered here.
    Offered,
    /// Broken.
    Right,
}

type Outcome = Result<(), Not>;

/// What is done for a check.
enum Run {
    /// This.
    Call(fn(&mut Bench<'_>, &mut Text) -> Outcome),
    /// Fork-shared memory is read by this reader, and every byte compared.
    Reader(Method, Op),
    /// `proc` and `vmread` are asked for a page of the kind of this number.
    Kind(usize),
}

/// The checks, in order; a later one may need what an earlier one has set up. ptrace makes
/// a call for every 8 bytes: one page is enough.
const CHECKS: &[(&str, Run)] = &[
    ("clock", Run::Call(clock)),
    ("fault-counters", Run::Call(fault_counters)),
    ("evidence", Run::Call(evidence)),
    ("fork", Run::Call(fork)),
    ("smaps", Run::Call(smaps)),
    ("control", Run::Call(control)),
    (
        Method::ALL[0].name(),
        Run::Reader(Method::ALL[0], Op::Whole),
    ),
    (
        Method::ALL[1].name(),
        Run::Reader(Method::ALL[1], Op::Whole),
    ),
    (
        Method::ALL[2].name(),
        Run::Reader(Method::ALL[2], Op::Whole),
    ),
    (
        Method::ALL[3].name(),
        Run::Reader(Method::ALL[3], Op::Whole),
    ),
    (Method::ALL[4].name(), Run::Reader(Method::ALL[4], Op::Page)),
    (
        Method::ALL[5].name(),
        Run::Reader(Method::ALL[5], Op::Whole),
    ),
    (KINDS[1].name, Run::Kind(1)),
    (KINDS[2].name, Run::Kind(2)),
    (KINDS[3].name, Run::Kind(3)),
];

/// The kind that every reader must get, and that `control` looks at.
const SHARED: &Kind = &KINDS[0];

/// What the checks work with, as far as it could be had.
struct Bench<'b> {
    auxv: &'b Auxv,
    clock: Option<Clock>,
    prober: Option<Prober>,
}

/// Runs all checks.
///
/// # Errors
/// [`Error::Checks`] if any failed; standard output's.
pub fn run(auxv: &Auxv) -> Result<(), Error> {
    let mut bench = Bench {
        auxv,
        clock: None,
        prober: None,
    };
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, run) in CHECKS {
        let mut detail = Text::new();
        let (word, count) = match bench.check(run, &mut detail) {
            Ok(()) => ("ok ", &mut passed),
            Err(Not::Offered) => ("skip ", &mut skipped),
            Err(Not::Right) => ("fail ", &mut failed),
        };
        *count += 1;
        let detail = detail.read().map_err(|Full| Error::TooLong)?;
        let colon = if detail.is_empty() { "" } else { ": " };
        send(Text::new().add(word).add(name).add(colon).add(detail))?;
    }
    let mut line = Text::new();
    line.number(passed).add(" passed, ").number(failed);
    send(line.add(" failed, ").number(skipped).add(" skipped"))?;
    match failed {
        0 => Ok(()),
        _ => Err(Error::Checks(failed)),
    }
}

fn send(line: &mut Text) -> Result<(), Error> {
    let line = line.add("\n").read().map_err(|Full| Error::TooLong)?;
    stdout().write_all(line.as_bytes()).map_err(Error::Output)
}

impl Bench<'_> {
    fn check(&mut self, run: &Run, detail: &mut Text) -> Outcome {
        match *run {
            Run::Call(check) => check(self, detail),
            Run::Reader(method, op) => self.reader(method, op, detail),
            Run::Kind(index) => self.kind(&KINDS[index], detail),
        }
    }

    fn reader(&mut self, method: Method, op: Op, detail: &mut Text) -> Outcome {
        let probed = self.probe(SHARED, op, Some(method), detail)?;
        let answered = answered(&probed.status, detail);
        answered?;
        let changes = probed.changes.ok_or(Not::Right)?;
        detail.number(probed.requested).add(" bytes as written, ");
        detail.number(changes.split).add(" of ");
        detail.number(changes.tracked).add(" pages split");
        Ok(())
    }

    fn kind(&mut self, kind: &Kind, detail: &mut Text) -> Outcome {
        for method in [Method::Proc, Method::Vmread] {
            detail.add(if method == Method::Proc { "" } else { ", " });
            detail.add(method.name()).add(" ");
            let probed = self.probe(kind, Op::Page, Some(method), detail)?;
            answered(&probed.status, detail)?;
            describe(&probed.answer.ok_or(Not::Right)?, detail);
        }
        Ok(())
    }

    fn probe(
        &mut self,
        kind: &Kind,
        op: Op,
        method: Option<Method>,
        detail: &mut Text,
    ) -> Result<Probed, Not> {
        let prober = self.prober.as_mut().ok_or_else(|| no_arena(detail))?;
        let probed = prober.probe(kind, op, method);
        probed.map_err(|error| broken(error, detail))
    }
}

/// Whether the status of a probe is a pass; if not, says it.
fn answered(status: &Status<'_>, detail: &mut Text) -> Outcome {
    match *status {
        Status::Ok => return Ok(()),
        Status::Skipped(reason) => {
            detail.add(reason);
            if matches!(reason, NOT_HERE | NOT_PERMITTED) {
                return Err(Not::Offered);
            }
        }
        Status::Errno(name) => {
            detail.add(name);
        }
        Status::Short(bytes) => {
            detail.add("ended after ").number(bytes).add(" bytes");
        }
    }
    Err(Not::Right)
}

/// What a page of a kind gave.
fn describe(answer: &Answer, detail: &mut Text) {
    match (answer.bytes, answer.end) {
        (0, End::Failed(errno)) => detail.add(errno::name_or_unknown(errno)),
        (0, _) => detail.add("nothing"),
        (bytes, _) => detail.number(bytes).add(match answer.content {
            Some(Content::Zero) => " zero bytes",
            _ => " bytes",
        }),
    };
}

fn broken(error: FixtureError, detail: &mut Text) -> Not {
    Error::from(error).describe(detail);
    Not::Right
}

fn no_arena(detail: &mut Text) -> Not {
    detail.add("there is no fixture to check it on");
    Not::Right
}

/// Both ways to read the clock must agree, to a second.
fn clock(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let (best, call) = (Clock::best(bench.auxv), Clock::system_call());
    bench.clock = best.proved();
    let path = best.path();
    let apart = best.now_ns().abs_diff(call.now_ns());
    if bench.clock.is_none() || apart > 1_000_000_000 {
        detail.add(path).add(" and the system call are ");
        detail.number(apart).add(" ns apart");
        return Err(Not::Right);
    }
    detail.add(path);
    Ok(())
}

fn fault_counters(_: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    own_faults().map(|_| ()).ok_or_else(|| {
        detail.add("getrusage gives nothing");
        Not::Offered
    })
}

/// Sets up the arena; says how sharing is told here.
fn evidence(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let clock = bench.clock.ok_or_else(|| no_arena(detail))?;
    let prober = prober(clock, bench.auxv.page_bytes()).map_err(|error| {
        error.describe(detail);
        Not::Right
    })?;
    detail.add(prober.evidence.name());
    bench.prober = Some(prober);
    Ok(())
}

/// The child parks, writes when told to, and parks again.
fn fork(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let clock = bench.clock.ok_or_else(|| no_arena(detail))?;
    let prober = bench.prober.as_mut().ok_or_else(|| no_arena(detail))?;
    let written = Fixture::fork(&mut prober.arena, clock).and_then(|fixture| {
        fixture.first_write()?;
        Ok(fixture.is_parked())
    });
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(Not::Right),
        Err(error) => Err(broken(error, detail)),
    }
}

/// Every field that is relied on is there, and the VMAs are those that were made.
fn smaps(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let prober = bench.prober.as_ref().ok_or_else(|| no_arena(detail))?;
    let segments = prober.arena.segments();
    let found = usage(Process::Myself, &segments.range()).map_err(|_| {
        detail.add("a field is missing or not understood");
        Not::Right
    })?;
    let want = segments.shape().vmas() as u64;
    detail.number(found.vmas).add(" VMAs of ").number(want);
    detail.add(", ").number(found.rss_kib).add(" KiB resident");
    (found.vmas == want && found.rss_kib > 0)
        .then_some(())
        .ok_or(Not::Right)
}

/// Reading nothing changes nothing.
fn control(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let probed = bench.probe(SHARED, Op::Whole, None, detail)?;
    answered(&probed.status, detail)?;
    if probed.is_unchanged() {
        return Ok(());
    }
    detail.add("something changed although nothing was read");
    Err(Not::Right)
}
