//! One read of one kind of memory in a fresh fork, and everything it changed.

use super::evidence::{Both, Evidence, Found};
use super::footprint::{FootprintError, usage};
use crate::emit::record::Status;
use crate::fixture::kinds::{self, Kind, Op, PAGES_MAX};
use crate::fixture::{Arena, Fixture, FixtureError, content};
use crate::proc::pagemap::{ENTRY_BYTES, Entry, file_offset};
use crate::proc::smaps::{Usage, UsageDelta};
use crate::proc::stat::Stat;
use crate::reader::{AnyReader, End, Method, Target};
use crate::sys::file::{Process, open_proc, read_at};
use crate::sys::process::{Faults, own_faults};
use crate::sys::remote::RemoteSpan;
use crate::sys::{Clock, Errno, Region, RemoteAddr, errno};
use heapless::Vec;
use rustix::fd::{AsFd, OwnedFd};

/// What all probes of a run share.
pub struct Prober {
    /// For the fixture's patience.
    pub clock: Clock,
    /// Where blocks are copied to.
    pub buffer: Region,
    /// A place of every kind.
    pub arena: Arena,
    /// What can be told of frames here.
    pub evidence: Evidence,
}

/// What the bytes that came are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// As they were written.
    Intact,
    /// All zero.
    Zero,
    /// Neither.
    Wrong,
}

/// What the read gave.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// Bytes that came.
    pub bytes: u64,
    /// How it ended.
    pub end: End,
    /// What they are; `None` if none came.
    pub content: Option<Content>,
}

/// Pages of the range by what became of them. `None`: cannot be known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Shared before.
    pub tracked: u64,
    /// Of these, no longer.
    pub split: u64,
    /// Absent before, present now.
    pub faulted_in: u64,
    /// Swapped out before, present now.
    pub swapped_in: u64,
    /// Became soft-dirty.
    pub soft_dirty: Option<u64>,
    /// The parent maps another frame now, or none.
    pub partner: Option<u64>,
    /// Tracked, and no longer there.
    vanished: u64,
}

/// What is known of a probe; `None` was not reached or could not be known.
#[derive(Clone, Copy, Debug)]
pub struct Probed {
    /// Bytes asked for.
    pub requested: u64,
    /// What the read gave; `None` for the control.
    pub answer: Option<Answer>,
    /// Pages of the range.
    pub changes: Option<Changes>,
    /// The arena in the child, after minus before.
    pub target: Option<UsageDelta>,
    /// The arena in the parent, after minus before.
    pub partner: Option<UsageDelta>,
    /// Minor and major faults charged to the child.
    pub target_faults: Option<(i64, i64)>,
    /// Faults charged to the tool.
    pub reader_faults: Option<Faults>,
    /// Whether the question was answered.
    pub status: Status<'static>,
}

impl Probed {
    /// What changed although nothing may have; `None` is what the control must show. What
    /// could not be looked at counts as changed, but for the tool's own fault counters,
    /// which a filter may deny.
    #[must_use]
    pub fn change(&self) -> Option<&'static str> {
        let is = |delta: Option<UsageDelta>| delta == Some(UsageDelta::default());
        let changes = self.changes.unwrap_or(Changes {
            vanished: 1,
            ..Changes::default()
        });
        let unchanged = [
            ("pages of the range", changes.are_none()),
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

impl Changes {
    /// Whether every page of the range is as it was.
    fn are_none(&self) -> bool {
        let unknown_or_none = |count: Option<u64>| count.unwrap_or(0) == 0;
        self.split + self.faulted_in + self.swapped_in + self.vanished == 0
            && unknown_or_none(self.soft_dirty)
            && unknown_or_none(self.partner)
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

/// The pages of a range in both page tables.
type Pages = Vec<Both, { PAGES_MAX }>;

/// The state at one time.
struct State {
    pages: Pages,
    target: Usage,
    partner: Usage,
    stat: Stat,
}

impl Prober {
    /// Reads `op` of `kind` with `method` in a fresh fork; `None` reads nothing.
    ///
    /// # Errors
    /// Only what makes the run as a whole impossible.
    pub fn probe(
        &mut self,
        kind: &Kind,
        op: Op,
        method: Option<Method>,
    ) -> Result<Probed, FixtureError> {
        // Fresh pages: the kernel keeps marks of earlier reads with each.
        self.arena = kinds::populate(self.arena.page_bytes())
            .map_err(|errno| FixtureError::Kernel("map the arena", errno))?;
        let span = kind.span(op, &self.arena);
        let mut probed = Probed {
            requested: span.len,
            answer: None,
            changes: None,
            target: None,
            partner: None,
            target_faults: None,
            reader_faults: None,
            status: Status::Ok,
        };
        let fixture = Fixture::fork(&mut self.arena, self.clock);
        let ended = match &fixture {
            Ok(fixture) => self.observe(fixture, span, method, &mut probed),
            Err(error) => Err(Stop::Run(*error)),
        };
        match ended {
            Ok(()) => probed.status = judge(kind, op, self.arena.page_bytes() as u64, &probed),
            Err(Stop::Status(status)) => probed.status = status,
            Err(Stop::Run(FixtureError::Lost)) => probed.status = Status::Skipped("target-lost"),
            Err(Stop::Run(error)) => return Err(error),
        }
        Ok(probed)
    }

    fn observe(
        &mut self,
        fixture: &Fixture,
        span: RemoteSpan,
        method: Option<Method>,
        probed: &mut Probed,
    ) -> Result<(), Stop> {
        let (segments, page_bytes) = (self.arena.segments(), self.arena.page_bytes());
        let target = Target::child(fixture.child(), segments, page_bytes);
        let open = |method| AnyReader::open(method, &target);
        let mut reader = method
            .map(open)
            .transpose()
            .map_err(|errno| Stop::Status(refusal(errno)))?;
        let look = Look {
            tables: tables(fixture)?,
            fixture,
            arena: &self.arena,
            span,
        };
        if let Some(reader) = &mut reader {
            // The tool's own pages that fork made copy-on-write are written to here.
            let elsewhere = RemoteSpan {
                start: segments.address(1),
                len: page_bytes as u64,
            };
            answer(reader, elsewhere, page_bytes, self.buffer.bytes_mut());
        }
        let before = look.now()?;
        let faults = own_faults();
        probed.answer = reader
            .as_mut()
            .map(|reader| answer(reader, span, page_bytes, self.buffer.bytes_mut()));
        let charged = own_faults()
            .zip(faults)
            .map(|(after, before)| after.since(before));
        probed.reader_faults = charged;
        if !fixture.is_parked() {
            return Err(skip("target-did-not-stay-parked"));
        }
        let after = look.now()?;
        probed.target = Some(after.target.since(&before.target));
        probed.partner = Some(after.partner.since(&before.partner));
        probed.target_faults = Some((
            after.stat.minflt.cast_signed() - before.stat.minflt.cast_signed(),
            after.stat.majflt.cast_signed() - before.stat.majflt.cast_signed(),
        ));
        probed.changes = Some(changes(&before.pages, &after.pages, self.evidence));
        Ok(())
    }
}

/// How the state is looked at.
struct Look<'l> {
    tables: [OwnedFd; 2],
    fixture: &'l Fixture,
    arena: &'l Arena,
    span: RemoteSpan,
}

fn tables(fixture: &Fixture) -> Result<[OwnedFd; 2], Stop> {
    let open = |process| open_proc(process, "pagemap").map_err(failed);
    Ok([
        open(Process::Myself)?,
        open(Process::Id(fixture.child().pid()))?,
    ])
}

impl Look<'_> {
    fn now(&self) -> Result<State, Stop> {
        let pages = self.pages().map_err(failed)?;
        let range = self.arena.segments().range();
        let usage = |process| {
            usage(process, &range).map_err(|error| match error {
                FootprintError::Kernel(errno) => failed(errno),
                FootprintError::Text(_) => skip("smaps-not-understood"),
            })
        };
        Ok(State {
            pages,
            target: usage(Process::Id(self.fixture.child().pid()))?,
            partner: usage(Process::Myself)?,
            stat: self.fixture.stat().ok_or(skip("stat-cannot-be-read"))?,
        })
    }

    fn pages(&self) -> Result<Pages, Errno> {
        let page_bytes = self.arena.page_bytes() as u64;
        let offset = file_offset(self.span.start.0, page_bytes);
        let count = (self.span.len / page_bytes) as usize;
        let mut read = [[0; PAGES_MAX * ENTRY_BYTES as usize]; 2];
        for (file, entries) in self.tables.iter().zip(&mut read) {
            let entries = &mut entries[..count * ENTRY_BYTES as usize];
            if read_at(file.as_fd(), entries, offset)? != entries.len() {
                return Err(Errno::IO);
            }
        }
        let entry = |table: usize, page: usize| {
            let (entries, _) = read[table].as_chunks::<8>();
            Entry(u64::from_ne_bytes(entries[page]))
        };
        let mut pages = Pages::new();
        for page in 0..count {
            let both = Both {
                parent: entry(0, page),
                child: entry(1, page),
            };
            // PAGES_MAX is the most there are.
            let _ = pages.push(both);
        }
        Ok(pages)
    }
}

/// One pass over the range in one block, and what came.
fn answer(
    reader: &mut AnyReader<'_>,
    span: RemoteSpan,
    page_bytes: usize,
    buffer: &mut [u8],
) -> Answer {
    let mut content = None;
    let mut see = |at: RemoteAddr, block: &[u8]| {
        let mut at = at;
        for part in block.chunks(page_bytes) {
            content = Some(Content::of(at, part).after(content));
            at = at.plus(part.len() as u64);
        }
    };
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

impl Content {
    /// Of bytes within one page.
    fn of(at: RemoteAddr, bytes: &[u8]) -> Self {
        if content::is_intact(at, bytes) {
            Self::Intact
        } else if bytes.iter().all(|&byte| byte == 0) {
            Self::Zero
        } else {
            Self::Wrong
        }
    }

    /// Of a range whose front holds `front`. Zeros may follow what was written: memory
    /// that was never touched, behind memory that was. The other way round is wrong.
    fn after(self, front: Option<Self>) -> Self {
        match (front, self) {
            (None | Some(Self::Intact), found) => found,
            (Some(Self::Zero), Self::Zero) => Self::Zero,
            _ => Self::Wrong,
        }
    }
}

/// What became of the pages of a range.
fn changes(before: &Pages, after: &Pages, evidence: Evidence) -> Changes {
    let mut changes = Changes::default();
    let keeps_soft_dirty = before
        .iter()
        .any(|page| page.child.present() && page.child.soft_dirty());
    let mut soft_dirty = 0;
    let mut partner = 0;
    for (before, after) in before.iter().zip(after) {
        if before.judge(evidence) == Found::Shared {
            changes.tracked += 1;
            match after.judge(evidence) {
                Found::Shared => {}
                Found::Separate => changes.split += 1,
                Found::Absent => changes.vanished += 1,
            }
        }
        let came = !before.child.present() && after.child.present();
        changes.swapped_in += u64::from(came && before.child.swapped());
        changes.faulted_in += u64::from(came && !before.child.swapped());
        soft_dirty += u64::from(!before.child.soft_dirty() && after.child.soft_dirty());
        partner += u64::from(before.parent.frame() != after.parent.frame());
    }
    changes.soft_dirty = Some(soft_dirty).filter(|_| keeps_soft_dirty);
    changes.partner = Some(partner).filter(|_| evidence == Evidence::Pfn);
    changes
}

/// Whether the question was answered: the state was what the kind is, and what came is
/// what lies there.
fn judge(kind: &Kind, op: Op, page_bytes: u64, probed: &Probed) -> Status<'static> {
    let pages = probed.requested / page_bytes;
    let want = match (kind.populated, op) {
        (true, _) => pages,
        (false, Op::Cross) => 1,
        (false, _) => 0,
    };
    let changes = probed.changes.unwrap_or_default();
    if changes.tracked != want {
        return Status::Skipped("not-all-pages-shared");
    }
    if changes.vanished > 0 {
        return Status::Skipped("tracked-pages-vanished");
    }
    let Some(answer) = probed.answer else {
        return Status::Ok;
    };
    match (answer.bytes, answer.end) {
        (0, End::Failed(errno)) if is_refusal(errno) => return refusal(errno),
        (bytes, End::Failed(errno)) if kind.readable && bytes < probed.requested => {
            return Status::Errno(errno::name_or_unknown(errno));
        }
        (bytes, End::Short) if kind.readable => return Status::Short(bytes),
        _ => {}
    }
    let untouched_too = !kind.populated && (op != Op::Cross || answer.bytes > page_bytes);
    match answer.content {
        Some(Content::Zero) if untouched_too => Status::Ok,
        Some(Content::Intact) if !untouched_too => Status::Ok,
        None if answer.bytes == 0 => Status::Ok,
        _ => Status::Skipped("wrong-bytes"),
    }
}

/// The kernel has no such reader.
pub const NOT_HERE: &str = "not-in-this-kernel";
/// It may not be used here.
pub const NOT_PERMITTED: &str = "not-permitted";

/// Whether a reader is not to be had here at all, whatever is read.
fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::SRCH
    )
}

fn refusal(errno: Errno) -> Status<'static> {
    match errno {
        Errno::NOSYS => Status::Skipped(NOT_HERE),
        Errno::PERM | Errno::ACCESS => Status::Skipped(NOT_PERMITTED),
        _ => Status::Errno(errno::name_or_unknown(errno)),
    }
}

/// What can be told of frames here: whether the number of a page of our own is shown.
///
/// # Errors
/// As open(2) and pread(2) of pagemap; `EIO` if the page, just used, is not there.
pub fn evidence(arena: &Arena) -> Result<Evidence, Errno> {
    let offset = file_offset(arena.segments().address(0).0, arena.page_bytes() as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    const PRESENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const EXCLUSIVE: u64 = 1 << 56;
    const SOFT_DIRTY: u64 = 1 << 55;

    fn pages(entries: &[(u64, u64)]) -> Pages {
        let both = |&(parent, child)| Both {
            parent: Entry(parent),
            child: Entry(child),
        };
        entries.iter().map(both).collect()
    }

    #[test]
    fn each_change_is_counted_once() {
        let before = pages(&[
            (PRESENT | 7, PRESENT | SOFT_DIRTY | 7),
            (PRESENT | 8, PRESENT | 8),
            (0, 0),
            (0, SWAPPED),
            (PRESENT | 9, PRESENT | 9),
        ]);
        let after = pages(&[
            (PRESENT | 7, PRESENT | SOFT_DIRTY | 70),
            (PRESENT | 80, PRESENT | SOFT_DIRTY | 8),
            (0, PRESENT | 1),
            (0, PRESENT | 2),
            (PRESENT | 9, 0),
        ]);
        let want = Changes {
            tracked: 3,
            split: 2,
            faulted_in: 1,
            swapped_in: 1,
            soft_dirty: Some(1),
            partner: Some(1),
            vanished: 1,
        };
        assert_eq!(changes(&before, &after, Evidence::Pfn), want);
    }

    #[test]
    fn what_is_not_shown_is_unknown() {
        let before = pages(&[(PRESENT, PRESENT)]);
        let after = pages(&[(PRESENT, PRESENT | EXCLUSIVE)]);
        let found = changes(&before, &after, Evidence::Exclusive);
        assert_eq!((found.tracked, found.split), (1, 1));
        assert_eq!((found.soft_dirty, found.partner), (None, None));
    }

    #[test]
    fn zeros_may_follow_content_and_not_precede_it() {
        use Content::{Intact, Wrong, Zero};
        let fold = |parts: &[Content]| {
            parts
                .iter()
                .fold(None, |front, part| Some(part.after(front)))
        };
        assert_eq!(fold(&[Intact, Intact]), Some(Intact));
        assert_eq!(fold(&[Intact, Zero, Zero]), Some(Zero));
        assert_eq!(fold(&[Zero, Intact]), Some(Wrong));
        assert_eq!(fold(&[Intact, Wrong, Intact]), Some(Wrong));
    }
}
