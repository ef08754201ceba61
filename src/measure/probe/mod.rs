//! One read of one kind of memory in a fresh fork, and everything it changed.

mod changes;
mod content;
mod judge;
mod look;

pub use changes::Changes;
pub use content::Content;

use super::evidence::Evidence;
use crate::emit::record::Status;
use crate::fixture::kinds::{Ground, Kind, Op, PAGES, Place, Sizes};
use crate::fixture::{Fixture, FixtureError, bounded, content as pattern};
use crate::proc::pagemap::{ENTRY_BYTES, Entry, file_offset};
use crate::proc::smaps::UsageDelta;
use crate::reader::{AnyReader, End, Method, Target};
use crate::sys::file::{Process, open_proc, read_at};
use crate::sys::process::{Faults, own_faults};
use crate::sys::remote::RemoteSpan;
use crate::sys::{Clock, Errno, Region, RemoteAddr, errno};
use changes::changes;
use content::Expected;
use look::{Look, Pages};
use rustix::fd::AsFd;

use crate::emit::probe_row::reason::{BLOCKED, NOT_HERE, NOT_PERMITTED};

/// What all probes of a run share.
pub struct Prober {
    /// For the fixture's patience.
    pub clock: Clock,
    /// What can be told of frames here.
    pub evidence: Evidence,
    sizes: Sizes,
    /// Where blocks are copied to.
    buffer: Region,
    /// A page of our own, to compare with.
    own: Region,
    before: Pages,
    after: Pages,
}

/// What the read gave.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Bytes that came.
    pub bytes: u64,
    /// How it ended.
    pub end: End,
    /// What they are; `None` if none came, or nothing is known of what lies there.
    pub content: Option<Content>,
}

/// What is known of a probe; `None` was not reached or could not be known.
#[derive(Clone, Copy, Debug)]
pub struct Probed {
    /// Bytes asked for.
    pub requested: u64,
    /// What the read gave; `None` for the control.
    pub answer: Option<Answer>,
    /// Pages of the kind.
    pub changes: Option<Changes>,
    /// What lies around it in the child, after minus before.
    pub target: Option<UsageDelta>,
    /// The same in the parent, after minus before.
    pub partner: Option<UsageDelta>,
    /// Minor and major faults charged to the child.
    pub target_faults: Option<(i64, i64)>,
    /// Faults charged to the tool.
    pub reader_faults: Option<Faults>,
    /// Whether the question was answered.
    pub status: Status<'static>,
}

impl Probed {
    const fn nothing(requested: u64, status: Status<'static>) -> Self {
        Self {
            requested,
            answer: None,
            changes: None,
            target: None,
            partner: None,
            target_faults: None,
            reader_faults: None,
            status,
        }
    }

    /// What changed although nothing may have; `None` is what the control must show. What
    /// could not be looked at counts as changed, but for the tool's own fault counters,
    /// which a filter may deny.
    #[must_use]
    pub fn change(&self) -> Option<&'static str> {
        let is = |delta: Option<UsageDelta>| delta == Some(UsageDelta::default());
        let unchanged = [
            (
                "pages of the range",
                self.changes.is_some_and(|changes| changes.are_none()),
            ),
            ("smaps of the target", is(self.target)),
            ("smaps of the parent", is(self.partner)),
            ("faults of the target", self.target_faults == Some((0, 0))),
            (
                "faults of the tool",
                self.reader_faults.unwrap_or_default() == Faults::default(),
            ),
        ];
        let changed = unchanged.into_iter().find(|(_, unchanged)| !unchanged);
        changed.map(|(what, _)| what)
    }
}

/// Why a probe ended before its end.
enum Stop {
    /// With this status in its row.
    Status(Status<'static>),
    /// The run cannot go on.
    Run(FixtureError),
}

/// The state could not be looked at: why, by name.
fn failed(errno: Errno) -> Stop {
    Stop::Status(Status::Errno(errno::name_or_unknown(errno)))
}

const fn skip(reason: &'static str) -> Stop {
    Stop::Status(Status::Skipped(reason))
}

/// A read that may never return is given up after this long.
const BOUND_NS: u64 = 3_000_000_000;

/// The largest page there is: two of them hold a whole one on any CPU.
const PAGE_MAX: usize = 65536;

/// Makes as much of the stack below here this process's own as looking will use: it is
/// looked at itself.
#[inline(never)]
fn own_stack() {
    let mut room = [0_u8; PAGE_MAX];
    core::hint::black_box(&mut room);
}

/// What any reader needs to read this much in one block.
fn buffer_bytes(block_bytes: usize) -> usize {
    let needs = Method::ALL
        .iter()
        .map(|method| method.buffer_bytes(block_bytes));
    needs.max().unwrap_or(block_bytes)
}

/// One question.
#[derive(Clone, Copy)]
struct Question<'q> {
    kind: &'q Kind,
    op: Op,
    method: Option<Method>,
}

impl Prober {
    /// For this kernel.
    ///
    /// # Errors
    /// `ENOMEM`; as open(2) and pread(2) of pagemap.
    pub fn new(clock: Clock, page_bytes: usize) -> Result<Self, Errno> {
        let sizes = Sizes::read(page_bytes);
        let touched = |bytes| {
            let mut region = Region::not_inherited(bytes)?;
            region.touch(page_bytes);
            Ok(region)
        };
        let mut own = touched(page_bytes)?;
        Ok(Self {
            clock,
            evidence: evidence(&mut own, page_bytes)?,
            sizes,
            buffer: touched(buffer_bytes(PAGES * page_bytes))?,
            own,
            before: Pages::new(sizes.pages_max(), page_bytes)?,
            after: Pages::new(sizes.pages_max(), page_bytes)?,
        })
    }

    /// Reads `op` of `kind` with `method` in a fresh fork; `None` reads nothing.
    ///
    /// # Errors
    /// Only what makes the run as a whole impossible.
    #[inline(never)]
    pub fn probe(
        &mut self,
        kind: &Kind,
        op: Op,
        method: Option<Method>,
    ) -> Result<Probed, FixtureError> {
        let question = Question { kind, op, method };
        // A page of the stack that nothing uses but the kind of that name.
        let mut room = [0_u8; 2 * PAGE_MAX];
        let page = self.sizes.page_bytes;
        let at = room.as_ptr() as usize;
        let start = at.next_multiple_of(page);
        let stack = RemoteAddr(start as u64);
        pattern::fill(stack, &mut room[start - at..start - at + page]);
        // Fresh pages: the kernel keeps marks of earlier reads with each.
        let probed = match Ground::make(kind, self.sizes, stack) {
            Ok(mut ground) => self.in_ground(&mut ground, &question),
            Err(status) => Ok(Probed::nothing(self.asked(&question), status)),
        };
        core::hint::black_box(&room);
        probed
    }

    /// What would be asked for, of a kind that is not to be had.
    fn asked(&self, question: &Question<'_>) -> u64 {
        let pages = match question.op {
            Op::Page => 1,
            Op::Cross => 2,
            Op::Whole => PAGES,
        };
        (pages * self.sizes.page_bytes) as u64
    }

    fn in_ground(
        &mut self,
        ground: &mut Ground,
        question: &Question<'_>,
    ) -> Result<Probed, FixtureError> {
        let kind = question.kind;
        let mut probed = Probed::nothing(ground.span(question.op).len, Status::Ok);
        let fixture = match Fixture::fork_kind(kind, ground, self.clock) {
            Ok(Ok(fixture)) => fixture,
            Ok(Err(errno)) => {
                probed.status = kind.failed(errno);
                return Ok(probed);
            }
            Err(FixtureError::Lost) => {
                probed.status = Status::Skipped("target-lost");
                return Ok(probed);
            }
            Err(error) => return Err(error),
        };
        let ended = match ground.perform(kind.after) {
            Ok(()) => self.observe(&fixture, ground, question, &mut probed),
            Err(errno) => Err(Stop::Status(kind.failed(errno))),
        };
        match ended {
            Ok(()) => {}
            Err(Stop::Status(status)) => probed.status = status,
            Err(Stop::Run(FixtureError::Lost)) => probed.status = Status::Skipped("target-lost"),
            Err(Stop::Run(error)) => return Err(error),
        }
        Ok(probed)
    }

    fn observe(
        &mut self,
        fixture: &Fixture,
        ground: &Ground,
        question: &Question<'_>,
        probed: &mut Probed,
    ) -> Result<(), Stop> {
        let page_bytes = self.sizes.page_bytes;
        let look = Look::open(fixture, ground, page_bytes)?;
        let mut read = Read::new(fixture, ground, question, &mut self.own)?;
        if !question.kind.blocks {
            read.open()?;
        }
        read.rehearse(self.buffer.bytes_mut());
        if question.kind.place == Place::Stack {
            own_stack();
        }
        // The first look is a rehearsal, too.
        look.now(&mut self.before)?;
        let before = look.now(&mut self.before)?;
        judge::prove(
            question.kind,
            ground,
            &mut self.before,
            &before,
            self.evidence,
        )?;
        let given = read.give(self.buffer.bytes_mut(), self.clock)?;
        if !fixture.is_parked() {
            return Err(skip("target-did-not-stay-parked"));
        }
        let after = look.now(&mut self.after)?;
        probed.answer = given.answer;
        probed.reader_faults = given.faults;
        probed.target = Some(after.target.since(&before.target));
        probed.partner = Some(after.partner.since(&before.partner));
        probed.target_faults = Some((
            after.stat.minflt.cast_signed() - before.stat.minflt.cast_signed(),
            after.stat.majflt.cast_signed() - before.stat.majflt.cast_signed(),
        ));
        let pages = read.pages(page_bytes as u64);
        let found = changes(&mut self.before, &mut self.after, &pages, self.evidence);
        probed.changes = Some(found);
        probed.status = match given.blocked {
            true => Status::Skipped(BLOCKED),
            false => judge::judge(question, page_bytes as u64, probed),
        };
        Ok(())
    }
}

/// What a read gave, and what it took.
struct Given {
    answer: Option<Answer>,
    faults: Option<Faults>,
    blocked: bool,
}

/// The read of a question.
struct Read<'r> {
    question: &'r Question<'r>,
    fixture: &'r Fixture,
    ground: &'r Ground,
    span: RemoteSpan,
    expected: Expected<'r>,
    reader: Option<AnyReader<'r>>,
}

impl<'r> Read<'r> {
    fn new(
        fixture: &'r Fixture,
        ground: &'r Ground,
        question: &'r Question<'r>,
        own: &'r mut Region,
    ) -> Result<Self, Stop> {
        let span = ground.span(question.op);
        Ok(Self {
            question,
            fixture,
            ground,
            span,
            expected: Expected::of(question.kind.holds, ground, span, own).map_err(failed)?,
            reader: None,
        })
    }

    /// Opens the reader.
    fn open(&mut self) -> Result<(), Stop> {
        let target = Target {
            child: Some(self.fixture.child()),
            ..Target::process(self.fixture.child().pid(), self.ground.page_bytes())
        };
        self.reader = self
            .question
            .method
            .map(|method| {
                let opened = AnyReader::open(method, &target);
                opened.map_err(|errno| Stop::Status(judge::refusal(method, errno)))
            })
            .transpose()?;
        Ok(())
    }

    /// The tool's own pages that fork made copy-on-write are written to here.
    fn rehearse(&mut self, buffer: &mut [u8]) {
        let page_bytes = self.ground.page_bytes() as u64;
        // Where the kind has no other page: one of the program's constants.
        let constant = crate::fixture::kinds::KINDS.as_ptr().addr() as u64;
        let start = RemoteAddr(constant - constant % page_bytes);
        let constant = RemoteSpan {
            start,
            len: page_bytes,
        };
        // A helper rehearses when the state has been looked at.
        let elsewhere = self
            .ground
            .elsewhere()
            .filter(|_| !self.question.kind.blocks);
        let elsewhere = elsewhere.unwrap_or(constant);
        if let Some(reader) = &mut self.reader {
            give(reader, elsewhere, &self.expected, buffer);
        }
    }

    fn give(&mut self, buffer: &mut [u8], clock: Clock) -> Result<Given, Stop> {
        if self.question.kind.blocks && self.question.method.is_some() {
            return self.give_bounded(buffer.len(), clock);
        }
        let faults = own_faults();
        let (span, expected) = (self.span, &self.expected);
        let answer = self
            .reader
            .as_mut()
            .map(|reader| give(reader, span, expected, buffer));
        let charged = own_faults()
            .zip(faults)
            .map(|(after, before)| after.since(before));
        Ok(Given {
            answer,
            faults: charged,
            blocked: false,
        })
    }

    /// By a helper, which is killed if it does not come back.
    fn give_bounded(&mut self, bytes: usize, clock: Clock) -> Result<Given, Stop> {
        let words = bounded(clock, BOUND_NS, &mut || {
            match self.open() {
                Ok(()) => {}
                Err(Stop::Status(Status::Skipped(reason))) => {
                    return Words::Refused(reason == NOT_HERE).write();
                }
                Err(_) => return Words::Refused(false).write(),
            }
            // The tool's own buffer does not exist in children.
            let Ok(mut buffer) = Region::new(bytes) else {
                return Words::Refused(false).write();
            };
            let buffer = buffer.bytes_mut();
            self.rehearse(buffer);
            let faults = own_faults();
            let answer = self
                .reader
                .as_mut()
                .map(|reader| give(reader, self.span, &self.expected, buffer));
            let charged = own_faults().zip(faults);
            Words::Given(answer, charged.map(|(after, before)| after.since(before))).write()
        })
        .map_err(Stop::Run)?;
        // A helper that traced it has let it go.
        self.fixture.wait_until_asleep().map_err(Stop::Run)?;
        match words.map(Words::read) {
            None => Ok(Given {
                answer: None,
                faults: None,
                blocked: true,
            }),
            Some(Words::Refused(true)) => Err(skip(NOT_HERE)),
            Some(Words::Refused(false)) => Err(skip(NOT_PERMITTED)),
            Some(Words::Given(answer, faults)) => Ok(Given {
                answer,
                faults,
                blocked: false,
            }),
        }
    }

    /// Numbers of the pages that are read, among those that are looked at.
    fn pages(&self, page_bytes: u64) -> core::ops::Range<usize> {
        let seen = self.ground.seen().start.0;
        let start = self.ground.untagged(self.span.start).0.saturating_sub(seen) / page_bytes;
        start as usize..(start + self.span.len / page_bytes) as usize
    }
}

/// What a helper tells.
enum Words {
    /// The reader is not to be had: whether the kernel has none.
    Refused(bool),
    /// As in [`Given`].
    Given(Option<Answer>, Option<Faults>),
}

impl Words {
    const KINDS: [Content; 3] = [Content::Intact, Content::Zero, Content::Wrong];

    fn write(self) -> [u64; 6] {
        let Self::Given(answer, faults) = self else {
            return [
                1,
                u64::from(matches!(self, Self::Refused(true))),
                0,
                0,
                0,
                0,
            ];
        };
        let (bytes, end, content) = answer.map_or((0, End::Short, None), |answer| {
            (answer.bytes, answer.end, answer.content)
        });
        let end = match end {
            End::Complete => 0,
            End::Short => u64::MAX,
            End::Failed(errno) => errno.raw_os_error().unsigned_abs().into(),
        };
        let place = |content| Self::KINDS.iter().position(|&kind| kind == content);
        let content = content.and_then(place).unwrap_or(Self::KINDS.len());
        let faults = faults.map_or([u64::MAX; 2], |faults| [faults.minor, faults.major]);
        [0, bytes, end, content as u64, faults[0], faults[1]]
    }

    fn read([refused, bytes, end, content, minor, major]: [u64; 6]) -> Self {
        if refused != 0 {
            return Self::Refused(bytes != 0);
        }
        let end = match end {
            0 => End::Complete,
            u64::MAX => End::Short,
            errno => End::Failed(Errno::from_raw_os_error(errno as i32)),
        };
        let answer = Answer {
            bytes,
            end,
            content: Self::KINDS.get(content as usize).copied(),
        };
        let faults = (minor != u64::MAX).then_some(Faults { minor, major });
        Self::Given(Some(answer), faults)
    }
}

/// One pass over the range in one block, and what came.
fn give(
    reader: &mut AnyReader<'_>,
    span: RemoteSpan,
    expected: &Expected<'_>,
    buffer: &mut [u8],
) -> Answer {
    let mut content = None;
    let mut see = |at: RemoteAddr, block: &[u8]| content = expected.judge(at, block, content);
    let spans = &mut [span].into_iter();
    let pass = reader
        .any()
        .pass(spans, span.len as usize, buffer, Some(&mut see));
    Answer {
        bytes: pass.bytes,
        end: pass.end,
        content,
    }
}

/// What can be told of frames here: whether the number of a page of our own is shown.
fn evidence(own: &mut Region, page_bytes: usize) -> Result<Evidence, Errno> {
    let offset = file_offset(own.address() as u64, page_bytes as u64);
    let mut bytes = [0; ENTRY_BYTES as usize];
    let pagemap = open_proc(Process::Myself, "pagemap")?;
    let read = read_at(pagemap.as_fd(), &mut bytes, offset)?;
    let entry = Entry(u64::from_ne_bytes(bytes));
    match (
        read == bytes.len() && entry.present(),
        entry.frames_hidden(),
    ) {
        (false, _) => Err(Errno::IO),
        (true, true) => Ok(Evidence::Exclusive),
        (true, false) => Ok(Evidence::Pfn),
    }
}
