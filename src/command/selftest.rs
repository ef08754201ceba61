//! `selftest`: each mechanism of this kernel, tried once, a line each. What PID 1 runs
//! unless told otherwise.
//!
//! A check fails only if something here is broken or lies. What this kernel or these
//! privileges do not offer is skipped, with the reason.

use super::probe::prober;
use crate::emit::probe_row::reason::{NO_LOSS, NOT_HERE, NOT_PERMITTED};
use crate::emit::record::Status;
use crate::error::Error;
use crate::fixture::content::is_intact;
use crate::fixture::kinds::{BASIC, KINDS, Kind, Op};
use crate::fixture::{Arena, Fixture, FixtureError};
use crate::measure::footprint::usage;
use crate::measure::probe::{Answer, Content, Probed, Prober};
use crate::proc::rollup::{self, FIELD_COUNT, FIELDS};
use crate::reader::{End, Memcpy, Method, Reader as _};
use crate::sys::auxv::Auxv;
use crate::sys::file::{Process, read_proc};
use crate::sys::process::own_faults;
use crate::sys::segments::Backing;
use crate::sys::stdio::stdout;
use crate::sys::{Clock, Errno, Shape, errno};
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

/// What is tried before any reader, in order: a later check needs what an earlier one has
/// set up.
const CHECKS: &[(&str, Check)] = &[
    ("clock", clock),
    ("fault-counters", fault_counters),
    ("evidence", evidence),
    ("fork", fork),
    ("smaps", smaps),
    ("smaps-rollup", smaps_rollup),
    ("control", control),
];

type Check = fn(&mut Bench<'_>, &mut Text) -> Outcome;

/// The kind that every reader must get, and that `control` looks at; the others are asked
/// for.
static SHARED: &Kind = &KINDS[0];

/// What the checks work with, as far as it could be had.
struct Bench<'b> {
    auxv: &'b Auxv,
    clock: Option<Clock>,
    arena: Option<Arena>,
    prober: Option<Prober>,
}

/// Runs all checks.
///
/// # Errors
/// [`Error::Checks`] if any failed; standard output's.
#[inline(never)]
pub fn run(auxv: &Auxv) -> Result<(), Error> {
    let mut bench = Bench {
        auxv,
        clock: None,
        arena: None,
        prober: None,
    };
    let mut counts = Counts::default();
    for (name, check) in CHECKS {
        counts.tell(name, &mut |detail| check(&mut bench, detail))?;
    }
    // The memory that is read here is no file's.
    let remote = Method::remote().iter().copied();
    for method in remote.filter(|&method| method != Method::MapFiles) {
        counts.tell(method.name(), &mut |detail| bench.reader(method, detail))?;
    }
    counts.tell("memcpy", &mut |detail| memcpy(&mut bench, detail))?;
    for kind in KINDS[..BASIC].iter().filter(|kind| !kind.readable) {
        counts.tell(kind.name, &mut |detail| bench.kind(kind, detail))?;
    }
    counts.conclude()
}

/// How many checks went how.
#[derive(Default)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Counts {
    /// Runs a check and writes its line.
    fn tell(
        &mut self,
        name: &str,
        check: &mut dyn FnMut(&mut Text) -> Outcome,
    ) -> Result<(), Error> {
        let mut detail = Text::new();
        let (word, count) = match check(&mut detail) {
            Ok(()) => ("ok ", &mut self.passed),
            Err(Not::Offered) => ("skip ", &mut self.skipped),
            Err(Not::Right) => ("fail ", &mut self.failed),
        };
        *count += 1;
        let detail = detail.read().map_err(|Full| Error::TooLong)?;
        let colon = if detail.is_empty() { "" } else { ": " };
        send(Text::new().add(word).add(name).add(colon).add(detail))
    }

    fn conclude(&self) -> Result<(), Error> {
        let mut line = Text::new();
        line.number(self.passed).add(" passed, ");
        line.number(self.failed).add(" failed, ");
        send(line.number(self.skipped).add(" skipped"))?;
        match self.failed {
            0 => Ok(()),
            failed => Err(Error::Checks(failed)),
        }
    }
}

fn send(line: &mut Text) -> Result<(), Error> {
    let line = line.add("\n").read().map_err(|Full| Error::TooLong)?;
    stdout().write_all(line.as_bytes()).map_err(Error::Output)
}

impl Bench<'_> {
    /// Reads fork-shared memory and compares every byte. ptrace makes a call for every 8
    /// bytes: one page is enough.
    fn reader(&mut self, method: Method, detail: &mut Text) -> Outcome {
        let op = match method {
            Method::Ptrace => Op::Page,
            _ => Op::Whole,
        };
        let probed = self.probe(SHARED, op, Some(method), detail)?;
        answered(&probed.status, detail)?;
        let changes = probed.changes.ok_or(Not::Right)?;
        detail.number(probed.requested).add(" bytes as written, ");
        detail.number(changes.split).add(" of ");
        detail.number(changes.tracked).add(" pages split");
        Ok(())
    }

    /// Asks `proc` and `vmread` for a page.
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
            if matches!(reason, NOT_HERE | NOT_PERMITTED) || NO_LOSS.contains(&reason) {
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
    detail.add("not tried, there is no fixture");
    Not::Offered
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

/// Sixteen pages, and as many behind a gap.
fn arena(page_bytes: usize) -> Result<Arena, Error> {
    let shape = Shape {
        segments: 2,
        segment_bytes: 16 * page_bytes,
        gap_bytes: page_bytes,
    };
    Arena::populate(shape, Backing::Small, page_bytes).map_err(Error::kernel("map the arena"))
}

/// Sets up what is read; says how sharing is told here.
fn evidence(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let clock = bench.clock.ok_or_else(|| no_arena(detail))?;
    let page_bytes = bench.auxv.page_bytes();
    let both = arena(page_bytes).and_then(|arena| Ok((arena, prober(clock, page_bytes)?)));
    let (arena, prober) = both.map_err(|error| {
        error.describe(detail);
        Not::Right
    })?;
    detail.add(prober.evidence.name());
    bench.arena = Some(arena);
    bench.prober = Some(prober);
    Ok(())
}

/// The child parks, writes when told to, and parks again.
fn fork(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let clock = bench.clock.ok_or_else(|| no_arena(detail))?;
    let arena = bench.arena.as_mut().ok_or_else(|| no_arena(detail))?;
    let written = Fixture::fork(arena, clock).and_then(|fixture| {
        fixture.first_write()?;
        let parked = fixture.is_parked();
        parked.map_err(|errno| FixtureError::Kernel("look at the child's stat", errno))
    });
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(Not::Right),
        Err(error) => Err(broken(error, detail)),
    }
}

/// The in-process copy, of the parent's own arena.
fn memcpy(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let arena = bench.arena.as_ref().ok_or_else(|| no_arena(detail))?;
    let mut buffer = [0; 4096];
    let mut intact = true;
    let mut see = |at, block: &[u8]| intact &= is_intact(at, block);
    let spans = &mut arena.segments().spans();
    let pass = Memcpy::new(arena.segments()).pass(spans, 4096, &mut buffer, Some(&mut see));
    let whole = pass.bytes == arena.segments().shape().readable_bytes() as u64;
    detail.number(pass.bytes).add(" bytes as written");
    (intact && whole).then_some(()).ok_or(Not::Right)
}

/// Every field that is relied on is there, and the VMAs are those that were made.
fn smaps(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let arena = bench.arena.as_ref().ok_or_else(|| no_arena(detail))?;
    let segments = arena.segments();
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

/// The fields of the file are known ones, each once and in kB; which of these there are depends
/// on the kernel.
fn smaps_rollup(_: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    let mut buffer = [0; 4096];
    let text = read_proc(Process::Myself, "smaps_rollup", &mut buffer).map_err(|errno| {
        detail.add(errno::name_or_unknown(errno));
        match errno {
            // Before Linux 4.14.
            Errno::NOENT => Not::Offered,
            _ => Not::Right,
        }
    })?;
    let mut values = [None; FIELD_COUNT];
    rollup::parse(text, &mut values).map_err(|error| {
        detail.add(error.problem()).add(error.field());
        Not::Right
    })?;
    let known = values.iter().flatten().count() as u64;
    detail.number(known).add(" of ").number(FIELD_COUNT as u64);
    detail.add(" known fields");
    let mut between = ", without ";
    for (name, _) in FIELDS
        .iter()
        .zip(&values)
        .filter(|(_, value)| value.is_none())
    {
        detail.add(between).add(name);
        between = ", ";
    }
    Ok(())
}

/// How often `control` is tried: the kernel moves a page now and then.
const TRIES: u64 = 3;

/// Reading nothing changes nothing.
fn control(bench: &mut Bench<'_>, detail: &mut Text) -> Outcome {
    for number in 1..=TRIES {
        let probed = bench.probe(SHARED, Op::Whole, None, detail)?;
        answered(&probed.status, detail)?;
        let Some(changed) = probed.change() else {
            return Ok(());
        };
        detail.add(if number == 1 { "" } else { ", " }).add(changed);
    }
    detail.add(" changed although nothing was read");
    Err(Not::Right)
}
