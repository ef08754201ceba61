//! One case from fork to reaping: the proof of its starting state, the cold pass, what
//! it changed, the warm passes, the check of the bytes, the first write.

use super::evidence::{After, Evidence, Memory, PageTables};
use super::footprint::{FootprintError, usage};
use super::pass::{TimedPass, timed, touch_stack, verifying};
use super::plan::Case;
use crate::emit::bench_row::NOT_APPLICABLE;
use crate::emit::record::Status;
use crate::fixture::{Arena, Exclusive, Fixture, FixtureError, TARGET_STOPPED};
use crate::proc::smaps::{Usage, UsageDelta};
use crate::proc::stat::Stat;
use crate::reader::hybrid::Obstacle;
use crate::reader::{End, Method, Pass, Reader, Target};
use crate::sys::file::Process;
use crate::sys::segments::Backing;
use crate::sys::{Clock, Errno, Region, errno};

/// What every case of a run needs; made once, before anything is populated.
pub struct Bench {
    /// Read between passes.
    pub clock: Clock,
    /// What the blocks are copied into; touched, and not inherited by children.
    pub buffer: Region,
    /// For the page tables.
    pub memory: Memory,
    /// One page outside the arena, read once before the clock starts, so that the code,
    /// the stack and the buffer of the timed pass have been used when it does.
    pub rehearsal: Arena,
    /// Warm passes after the cold one.
    pub warm_passes: u64,
    /// Whether the child writes to each page at the end.
    pub first_write: bool,
    /// The pages that the child makes its own before it is measured.
    pub exclusive: Exclusive,
    /// What backs the arenas.
    pub backing: Backing,
    /// Whether this kernel charges each split to the reader as a fault of its own: with
    /// small pages, since Linux 5.9 (`mm_account_fault`, mm/memory.c).
    pub faults_are_charged: bool,
}

/// What is known of a case; `None` was not reached or could not be known.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// How sharing was decided.
    pub evidence: Evidence,
    /// Pages that were shared before.
    pub tracked: Option<u64>,
    /// What became of them.
    pub after: Option<After>,
    /// The cold pass.
    pub cold: Option<TimedPass>,
    /// The warm passes.
    pub warm: Warm,
    /// What became of the pages in the cold pass, if the reader is one that takes care: pages that
    /// were pinned, and why none, or none any more.
    pub pinned: Option<(u64, Option<Obstacle>)>,
    /// The arena in the child, after minus before.
    pub target: Option<UsageDelta>,
    /// The arena in the parent, after minus before.
    pub partner: Option<UsageDelta>,
    /// Minor and major faults charged to the child.
    pub target_faults: Option<(i64, i64)>,
    /// The child's own first write to each page.
    pub first_write_ns: Option<u64>,
    /// How it ended.
    pub status: Status<'static>,
}

/// The warm passes of a case, taken together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Warm {
    /// How many there were.
    pub passes: u64,
    /// Nanoseconds of all.
    pub ns: u64,
    /// Of the fastest.
    pub min_ns: u64,
    /// Of the slowest.
    pub max_ns: u64,
    /// Minor faults charged to the tool; `None` if a pass's are unknown.
    pub minor_faults: Option<u64>,
}

impl Warm {
    fn add(&mut self, pass: &TimedPass) {
        self.min_ns = if self.passes == 0 {
            pass.ns
        } else {
            self.min_ns.min(pass.ns)
        };
        self.max_ns = self.max_ns.max(pass.ns);
        self.ns += pass.ns;
        let sum = if self.passes == 0 {
            Some(0)
        } else {
            self.minor_faults
        };
        let minor = pass.faults.map(|faults| faults.minor);
        self.minor_faults = sum.zip(minor).map(|(sum, minor)| sum + minor);
        self.passes += 1;
    }
}

/// Why a case ended before its end.
enum Stop {
    /// With this status in its row.
    Status(Status<'static>),
    /// The run cannot go on.
    Run(FixtureError),
}

/// The child ended, or /proc does not show it (it may be another pid namespace's).
const TARGET_LOST: &str = "target-lost-or-not-in-this-proc";

/// More of the stack than a pass takes: of `hybrid`, which takes the most, the rehearsal of one page
/// may not come as deep.
const PASS_STACK_BYTES: usize = 32 << 10;

/// How far splits and faults may differ: the machine may add a fault of its own.
const HANDFUL: u64 = 16;

const fn skip(reason: &'static str) -> Stop {
    Stop::Status(Status::Skipped(reason))
}

/// The child could not be looked at: why, by name.
fn unseen(errno: Errno) -> Stop {
    Stop::Status(Status::Errno(errno::name_or_unknown(errno)))
}

/// What a reader said: that it is not to be had here, or an errno.
fn failed(method: Method, error: Errno) -> Stop {
    Stop::Status(match method.refusal(error) {
        Some(reason) => Status::Skipped(reason),
        None => Status::Errno(errno::name_or_unknown(error)),
    })
}

impl Bench {
    /// Runs one case on a fresh fork of `arena`. The child is gone when this returns.
    ///
    /// # Errors
    /// Only what makes the run as a whole impossible; a case that fails has a status.
    pub fn run(&mut self, case: &Case, arena: &mut Arena) -> Result<Measured, FixtureError> {
        let mut measured = Measured {
            evidence: Evidence::None,
            tracked: None,
            after: None,
            cold: None,
            warm: Warm::default(),
            pinned: None,
            target: None,
            partner: None,
            target_faults: None,
            first_write_ns: None,
            status: Status::Ok,
        };
        let shape = arena.segments().shape();
        if let Backing::Huge(bytes) = self.backing
            && !(shape.segment_bytes.is_multiple_of(bytes) && shape.gap_bytes.is_multiple_of(bytes))
        {
            measured.status = Status::Skipped(NOT_APPLICABLE);
            return Ok(measured);
        }
        let ended = match Fixture::fork_with(arena, self.clock, self.exclusive) {
            Ok(fixture) => match self.measure(case, &fixture, arena, &mut measured) {
                // It does not answer any more.
                Err(Stop::Run(error)) => Err(Stop::Run(error)),
                ended => ended.and(self.part(fixture, &measured).map_err(Stop::Run)),
            },
            Err(error) => Err(Stop::Run(error)),
        };
        match ended {
            Ok(()) => {}
            Err(Stop::Status(status)) => measured.status = status,
            // A row like any other; the next child may live.
            Err(Stop::Run(FixtureError::Lost)) => measured.status = Status::Skipped(TARGET_LOST),
            Err(Stop::Run(FixtureError::Stopped)) => {
                measured.status = Status::Skipped(TARGET_STOPPED);
            }
            Err(Stop::Run(error)) => return Err(error),
        }
        Ok(measured)
    }

    fn measure(
        &mut self,
        case: &Case,
        fixture: &Fixture,
        arena: &Arena,
        measured: &mut Measured,
    ) -> Result<(), Stop> {
        let target = Target::child(fixture.child(), arena.segments(), arena.page_bytes());
        let mut ended = Ok(());
        let lent = case.method.lend(&target, &mut |reader| {
            ended = self.passes(case, reader, fixture, arena, measured);
        });
        lent.map_err(|error| failed(case.method, error))?;
        ended?;
        if self.first_write {
            // A stopped child could not write; a reader that stopped it has let it go.
            let ns = fixture.first_write().map_err(Stop::Run)?;
            measured.first_write_ns = Some(ns).filter(|&ns| ns > 0);
        }
        Ok(())
    }

    fn passes(
        &mut self,
        case: &Case,
        reader: &mut dyn Reader,
        fixture: &Fixture,
        arena: &Arena,
        measured: &mut Measured,
    ) -> Result<(), Stop> {
        touch_stack::<PASS_STACK_BYTES>();
        let mut observer = Observer::open(fixture, arena, &mut self.memory)?;
        let before = observer.prove(self.backing, self.exclusive, measured)?;

        let segments = arena.segments();
        let buffer = self.buffer.bytes_mut();
        let pass = |reader: &mut dyn Reader, segments, buffer: &mut [u8]| {
            timed(reader, self.clock, segments, case.block_bytes, buffer)
        };
        pass(reader, self.rehearsal.segments(), buffer);
        let rehearsed = reader.care().map_or(0, |care| care.pinned);
        let cold = pass(reader, segments, buffer);
        let care = reader.care();
        measured.pinned = care.map(|care| (care.pinned - rehearsed, care.not_pinned));
        let wanted = segments.shape().readable_bytes() as u64;
        let cold_is_sound = cold.is_sound(segments, buffer);

        measured.cold = Some(cold);
        observer.compare(&before, measured)?;
        outcome(case.method, &cold, wanted, cold_is_sound)?;
        if self.faults_are_charged {
            agree(measured)?;
        }
        for _ in 0..self.warm_passes {
            let warm = pass(reader, segments, buffer);
            outcome(case.method, &warm, wanted, warm.is_sound(segments, buffer))?;
            measured.warm.add(&warm);
        }
        // A page a call is enough for checking, however small the timed blocks were.
        let block_bytes = case.block_bytes.max(arena.page_bytes());
        verify(
            case.method,
            verifying(reader, segments, block_bytes, buffer),
        )
    }

    /// Ends a child whose case is over, however that went; one that has single pages of its own, or
    /// may have, so that the next gets their frames in the same order.
    fn part(&self, fixture: Fixture, measured: &Measured) -> Result<(), FixtureError> {
        let may_have_split = measured.after.is_none_or(|after| after.split > 0);
        let has_written = self.first_write || self.exclusive != Exclusive::None;
        let owns = may_have_split || has_written && self.backing == Backing::Small;
        match owns {
            true => fixture.give_back(),
            false => Ok(()),
        }
    }
}

/// A split that a read causes is a fault of the reader. Where they differ, somebody else
/// split pages meanwhile, or merged them again.
fn agree(measured: &Measured) -> Result<(), Stop> {
    let split = measured.after.map(|after| after.split);
    let faults = measured.cold.and_then(|cold| cold.faults);
    match split.zip(faults) {
        Some((split, faults)) if split.abs_diff(faults.minor) > HANDFUL => {
            Err(skip("splits-and-faults-disagree"))
        }
        _ => Ok(()),
    }
}

fn outcome(method: Method, timed: &TimedPass, wanted: u64, is_sound: bool) -> Result<(), Stop> {
    ended(method, &timed.pass)?;
    // Pages that a careful reader left alone.
    if timed.pass.bytes < wanted {
        return Err(Stop::Status(Status::Short(timed.pass.bytes)));
    }
    match (is_sound, timed.ns) {
        (false, _) => Err(skip("wrong-bytes")),
        (true, 0) => Err(skip("clock-gave-no-time")),
        (true, _) => Ok(()),
    }
}

fn verify(
    method: Method,
    (pass, wrong): (Pass, Option<crate::sys::RemoteAddr>),
) -> Result<(), Stop> {
    ended(method, &pass)?;
    match wrong {
        Some(_) => Err(skip("wrong-bytes")),
        None => Ok(()),
    }
}

fn ended(method: Method, pass: &Pass) -> Result<(), Stop> {
    match pass.end {
        End::Complete => Ok(()),
        End::Short => Err(Stop::Status(Status::Short(pass.bytes))),
        End::Failed(error) => Err(failed(method, error)),
    }
}

/// What is looked at before and after the cold pass.
struct Observer<'o> {
    fixture: &'o Fixture,
    arena: &'o Arena,
    tables: PageTables<'o>,
    evidence: Evidence,
}

/// The state before the cold pass.
struct Before {
    target: Usage,
    partner: Usage,
    stat: Stat,
}

impl<'o> Observer<'o> {
    fn open(fixture: &'o Fixture, arena: &'o Arena, memory: &'o mut Memory) -> Result<Self, Stop> {
        let child = fixture.child().pid();
        let tables = PageTables::open(child, arena.page_bytes(), memory)
            .map_err(|_| skip("no-evidence-pagemap-cannot-be-opened"))?;
        Ok(Self {
            fixture,
            arena,
            tables,
            evidence: Evidence::None,
        })
    }

    /// Proves the starting state: every page present in both and shared, or as
    /// many not shared as the child has written to; the VMAs as
    /// they were cut, the backing as asked for.
    fn prove(
        &mut self,
        backing: Backing,
        exclusive: Exclusive,
        measured: &mut Measured,
    ) -> Result<Before, Stop> {
        let segments = self.arena.segments();
        let (evidence, pages) = self
            .tables
            .before(segments)
            .map_err(|_| skip("no-evidence-pagemap-cannot-be-read"))?;
        (self.evidence, measured.evidence) = (evidence, evidence);
        measured.tracked = Some(pages.tracked);
        if pages.absent > 0 {
            return Err(skip("not-all-pages-present"));
        }
        if pages.unshared != exclusive.count(self.arena.pages(), self.arena.page_bytes()) {
            return Err(skip(match exclusive {
                Exclusive::None => "not-all-pages-shared",
                _ => "not-as-many-pages-shared-as-asked",
            }));
        }
        let before = Before {
            target: self.usage_of(Process::Id(self.fixture.child().pid()))?,
            partner: self.usage_of(Process::Myself)?,
            stat: self.stat()?,
        };
        let readable_kib = segments.shape().readable_bytes() as u64 / 1024;
        let huge_kib = match backing {
            Backing::Small => 0,
            Backing::Huge(_) => readable_kib,
        };
        for usage in [&before.target, &before.partner] {
            if usage.vmas != segments.shape().vmas() as u64 || usage.rss_kib != readable_kib {
                return Err(skip("arena-not-as-it-was-made"));
            }
            if usage.anon_huge_kib != huge_kib {
                return Err(skip("backing-not-as-asked"));
            }
        }
        Ok(before)
    }

    /// Takes the same again and notes the difference.
    fn compare(&mut self, before: &Before, measured: &mut Measured) -> Result<(), Stop> {
        if !self.fixture.is_parked().map_err(unseen)? {
            return Err(skip("target-did-not-stay-parked"));
        }
        let after = self
            .tables
            .after(self.arena.segments(), self.evidence)
            .map_err(|_| skip("no-evidence-pagemap-cannot-be-read"))?;
        let target = self.usage_of(Process::Id(self.fixture.child().pid()))?;
        let partner = self.usage_of(Process::Myself)?;
        let stat = self.stat()?;
        measured.target = Some(target.since(&before.target));
        measured.partner = Some(partner.since(&before.partner));
        measured.target_faults = Some((
            stat.minflt.cast_signed() - before.stat.minflt.cast_signed(),
            stat.majflt.cast_signed() - before.stat.majflt.cast_signed(),
        ));
        if after.lost > 0 {
            return Err(skip("tracked-pages-vanished"));
        }
        measured.after = Some(after);
        Ok(())
    }

    fn usage_of(&self, process: Process) -> Result<Usage, Stop> {
        usage(process, &self.arena.segments().range()).map_err(|error| match error {
            FootprintError::Kernel(_) => skip("smaps-cannot-be-read"),
            FootprintError::Text(_) => skip("smaps-not-understood"),
        })
    }

    fn stat(&self) -> Result<Stat, Stop> {
        self.fixture.stat().map_err(unseen)
    }
}
