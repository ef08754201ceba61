//! One read of one kind of memory in a fresh fork, and everything it changed.

mod changes;
mod content;
mod judge;
mod look;
mod read;
mod trial;
mod watch;

pub use changes::Changes;
pub use content::Content;

use super::evidence::Evidence;
use crate::emit::record::Status;
use crate::fixture::kinds::{Blocks, Ground, Kind, Op, PAGES, Sizes};
use crate::fixture::{Fixture, FixtureError, TARGET_STOPPED, content as pattern};
use crate::proc::smaps::UsageDelta;
use crate::proc::stat::Stat;
use crate::reader::own_page::own_entry;
use crate::reader::{End, Method};
use crate::sys::plot::{PAGE_MAX, renew_own, rewrite_own};
use crate::sys::process::Faults;
use crate::sys::{Clock, Errno, Region, RemoteAddr, errno};
use changes::changes;
use core::ops::Range;
use look::{Look, Pages};
use read::Read;
use watch::{Seen, Watch};

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
    /// KiB by which the child's mappings grew, wherever they are.
    pub target_vm_size_kib: Option<i64>,
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
            target_vm_size_kib: None,
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
                "size of the target's mappings",
                self.target_vm_size_kib == Some(0),
            ),
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

/// Makes the stack from here to `up_to`, and as much below as looking will use, this process's
/// own again after a fork: it is looked at itself, and its faults are counted.
#[inline(never)]
fn own_stack(up_to: RemoteAddr) {
    let mut room = [0_u8; PAGE_MAX];
    core::hint::black_box(&mut room);
    rewrite_own(&room, up_to);
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
    /// A page of the stack, above all that is called from here.
    stack: RemoteAddr,
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
            buffer: Region::not_inherited(buffer_bytes(PAGES * page_bytes))?,
            own,
            before: Pages::new(sizes.pages_max(), page_bytes)?,
            after: Pages::new(sizes.pages_max(), page_bytes)?,
        })
    }

    /// Has KSM run only while it is to merge: who calls puts back whether it runs.
    pub fn merging_is_ours(&mut self) {
        self.sizes.merging_is_ours = true;
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
        // A page of the stack that nothing uses but the kind of that name: two of the largest
        // hold a whole one.
        let mut room = [0_u8; 2 * PAGE_MAX];
        let at = room.as_ptr() as usize;
        let start = at.next_multiple_of(PAGE_MAX);
        let stack = RemoteAddr(start as u64);
        if let Some(page) = room[start - at..].first_chunk_mut() {
            // Fresh: the kernel keeps marks of earlier reads with each frame.
            let renewed = renew_own(page);
            renewed.map_err(|errno| FixtureError::Kernel("renew a page of the stack", errno))?;
            pattern::fill(stack, &mut page[..self.sizes.page_bytes]);
        }
        let question = Question {
            kind,
            op,
            method,
            stack,
        };
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
            Err(error) => return unmeasured(probed, error),
        };
        let ended = match ground.perform(kind.after) {
            Ok(()) => self.observe(&fixture, ground, question, &mut probed),
            Err(errno) => Err(Stop::Status(kind.failed(errno))),
        };
        match ended {
            Ok(()) => {}
            Err(Stop::Status(status)) => probed.status = status,
            Err(Stop::Run(error)) => return unmeasured(probed, error),
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
        self.buffer.touch(page_bytes);
        let look = Look::open(fixture, ground, page_bytes)?;
        let read = Read::new(fixture, ground, question, &mut self.own)?;
        let mut watch = Watch {
            question,
            fixture,
            ground,
            look: &look,
            read: &read,
            buffer: self.buffer.bytes_mut(),
            before: &mut self.before,
            after: &mut self.after,
            clock: self.clock,
            evidence: self.evidence,
        };
        let Seen {
            before,
            given,
            after,
        } = watch.all()?;
        probed.answer = given.answer;
        probed.reader_faults = given.faults;
        // A server that was killed had pages in common with both: their shares have changed.
        if !(given.blocked && question.kind.blocks == Blocks::UntilServerGoes) {
            probed.target = Some(after.target.since(&before.target));
            probed.partner = Some(after.partner.since(&before.partner));
        }
        probed.target_faults = Some((
            after.stat.minflt.cast_signed() - before.stat.minflt.cast_signed(),
            after.stat.majflt.cast_signed() - before.stat.majflt.cast_signed(),
        ));
        let mapped_kib = |stat: Stat| (stat.mapped_bytes / 1024).cast_signed();
        probed.target_vm_size_kib = Some(mapped_kib(after.stat) - mapped_kib(before.stat));
        let pages = read.pages(page_bytes as u64);
        self.compare(&pages, question, probed);
        if given.blocked {
            probed.status = judge::blocked(probed);
        }
        Ok(())
    }

    /// What became of the pages that were read, by the two looks, and what that and the answer say.
    fn compare(&mut self, read: &Range<usize>, question: &Question<'_>, probed: &mut Probed) {
        let found = changes(&mut self.before, &mut self.after, read, self.evidence);
        probed.changes = Some(found);
        probed.status = judge::judge(question, self.sizes.page_bytes as u64, probed);
    }
}

/// A row like any other, if the next child may fare better.
fn unmeasured(probed: Probed, error: FixtureError) -> Result<Probed, FixtureError> {
    let why = match error {
        FixtureError::Lost => "target-lost",
        FixtureError::Stopped => TARGET_STOPPED,
        error => return Err(error),
    };
    let status = Status::Skipped(why);
    Ok(Probed { status, ..probed })
}

/// What can be told of frames here: whether the number of a page of our own is shown.
fn evidence(own: &mut Region, page_bytes: usize) -> Result<Evidence, Errno> {
    let entry = own_entry(own.address() as u64, page_bytes as u64)?;
    Ok(match entry.frames_hidden() {
        true => Evidence::Exclusive,
        false => Evidence::Pfn,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Growth that is there, and growth that could not be looked at.
    #[test]
    fn a_control_whose_mappings_grew_has_changed() {
        let control = |target_vm_size_kib| Probed {
            changes: Some(Changes::default()),
            target: Some(UsageDelta::default()),
            partner: Some(UsageDelta::default()),
            target_faults: Some((0, 0)),
            target_vm_size_kib,
            ..Probed::nothing(4096, Status::Ok)
        };
        assert_eq!(control(Some(0)).change(), None);
        for grown in [Some(4), None] {
            let changed = control(grown).change();
            assert_eq!(changed, Some("size of the target's mappings"));
        }
    }
}
