//! One pass over all readable mappings, what was expected of it, and what the process looked
//! like before and after.

use super::super::live::{KERNEL_HALF, Mappings, Vma, each_vma};
use super::{Run, stop};
use crate::error::Error;
use crate::measure::audit::{Ended, Tally};
use crate::measure::census::Counter;
use crate::measure::footprint;
use crate::proc::smaps::{Usage, UsageDelta};
use crate::proc::stat::Stat;
use crate::reader::hybrid::large;
use crate::reader::{AnyReader, Care, Method, Target};
use crate::sys::Errno;
use crate::sys::file::{Process, read_proc};
use crate::sys::process::{Faults, own_id};
use crate::text::Text;
use core::mem;

/// A pass.
pub(super) struct Passed {
    pub(super) method: Method,
    pub(super) cold: bool,
    pub(super) pfn: bool,
    pub(super) tally: Tally,
    /// How it ended.
    pub(super) ended: Result<(), Ended>,
    /// After minus before, of the whole process; `None` where it could not be known.
    pub(super) usage: Option<UsageDelta>,
    pub(super) faults: Option<(i64, i64)>,
    pub(super) vma_change: Option<i64>,
    /// Whether it stood still at first and no longer did at the end.
    pub(super) went_on: bool,
    /// What became of the pages, if the reader is one that takes care.
    pub(super) care: Option<Care>,
}

impl Passed {
    /// Faults charged to the tool beyond what is seen to have been split or brought in; `None`
    /// where they are not counted.
    pub(super) fn unexplained_faults(&self) -> Option<u64> {
        let fate = &self.tally.fate;
        let faults = self.tally.faults?;
        let seen = fate.split + fate.faulted_in + fate.swapped_in;
        Some((faults.minor + faults.major).saturating_sub(seen))
    }

    /// Pages that were split. Without frame numbers a copy of a page that bit 56 called exclusive
    /// cannot be seen; then faults that nothing else explains make the number unknown, unless they
    /// are less than a hundredth of it.
    pub(super) fn split(&self) -> Option<u64> {
        let split = self.tally.fate.split;
        let unexplained = self.unexplained_faults();
        let known = self.pfn || unexplained.is_some_and(|faults| faults * 100 <= split);
        Some(split).filter(|_| known)
    }
}

/// How far the run has come, for the progress line.
#[derive(Default)]
pub(super) struct Done {
    bytes: u64,
    shown_mib: u64,
}

/// The process at one moment.
struct Standing {
    usage: Option<Usage>,
    faults: Option<(u64, u64)>,
    mappings: Option<Mappings>,
}

impl Standing {
    fn now(pid: i32) -> Self {
        let mut text = [0; 1024];
        let stat = read_proc(Process::Id(pid), "stat", &mut text);
        let stat = stat.ok().and_then(Stat::parse);
        Self {
            // A kernel before 4.14 has no smaps_rollup.
            usage: footprint::whole(Process::Id(pid)).ok(),
            faults: stat.map(|stat| (stat.minflt, stat.majflt)),
            mappings: Mappings::now(pid).ok(),
        }
    }
}

fn minus(after: u64, before: u64) -> i64 {
    after.wrapping_sub(before).cast_signed()
}

/// Whether a VMA is to be read.
fn is_wanted(vma: &Vma) -> bool {
    vma.perms.readable && vma.start < KERNEL_HALF
}

impl Run<'_> {
    /// Pages that `method` will split, by the page table now; `None` if that cannot be told.
    pub(super) fn predict(&mut self, method: Method, passes: u64) -> Result<Option<u64>, Error> {
        let (mut shared, mut doubtful, mut bytes) = (0, 0, 0);
        let large = large::possible();
        let (auditor, page_kib) = (&mut self.auditor, self.common.page_bytes / 1024);
        let looked = each_vma(self.pid, "smaps", &mut |vma| {
            if is_wanted(vma) && vma.unsafe_to_read.is_none() {
                let counted = auditor.count(vma.start, vma.end);
                let mut census = counted.map_err(|_| Error::Ended(self.pid))?;
                // What smaps tells beyond: the zero page is not among it.
                if let Some(kib) = vma.anonymous_kib {
                    census.know_anonymous(kib / page_kib);
                }
                shared += census.shared_anon;
                let is_known = !large
                    || census.anonymous() == 0
                    || auditor.counter.has_no_large_folio(vma.start, vma.end);
                if !is_known {
                    doubtful += census.anonymous();
                }
                bytes += vma.end - vma.start;
            }
            Ok(())
        });
        self.progress.expect((passes * bytes) >> 20);
        // If the process is gone, the pass finds that out, and says it.
        Ok(looked
            .ok()
            .and_then(|()| self.splits.of(method, shared, doubtful)))
    }

    /// Reads everything once.
    pub(super) fn pass(&mut self, method: Method, cold: bool) -> Result<Passed, Error> {
        let before = Standing::now(self.pid);
        let mut tally = Tally {
            faults: Some(Faults::default()),
            ..Tally::default()
        };
        if cold {
            self.rehearse(method)?;
        }
        let mut care = None;
        let ended = self.read_all(self.pid, method, &mut tally, &mut care)?;
        let after = Standing::now(self.pid);
        let both = |field: fn(&Standing) -> Option<(u64, u64)>| {
            let (after, before) = field(&after).zip(field(&before))?;
            Some((minus(after.0, before.0), minus(after.1, before.1)))
        };
        Ok(Passed {
            method,
            cold,
            pfn: !self.auditor.counter.frames_are_hidden(),
            tally,
            ended,
            usage: after.usage.zip(before.usage).map(|(a, b)| a.since(&b)),
            faults: both(|standing| standing.faults),
            care,
            went_on: self.stopped && ended.is_ok() && !stop::stands(self.pid),
            vma_change: both(|standing| standing.mappings.map(|mappings| (mappings.vmas, 0)))
                .map(|(vmas, _)| vmas),
        })
    }

    /// Reads the tool itself, so that its own code and stack are there: a fault that is charged
    /// later was caused by the target's memory.
    fn rehearse(&mut self, method: Method) -> Result<(), Error> {
        let own = Counter::open(own_id(), self.common.page_bytes as usize);
        let own = own.map_err(Error::kernel("read the tool's own pagemap"))?;
        let theirs = mem::replace(&mut self.auditor.counter, own);
        let done = mem::take(&mut self.read_mib);
        let read = self.read_all(own_id(), method, &mut Tally::default(), &mut None);
        self.auditor.counter = theirs;
        self.read_mib = done;
        // Who cannot read itself has no rehearsal.
        read.map(drop)
    }

    fn read_all(
        &mut self,
        pid: i32,
        method: Method,
        tally: &mut Tally,
        care: &mut Option<Care>,
    ) -> Result<Result<(), Ended>, Error> {
        let mut target = Target::process(pid, self.common.page_bytes as usize);
        target.manners = self.manners;
        let mut reader = match AnyReader::open(method, &target) {
            Ok(reader) => reader,
            Err(Errno::NOENT | Errno::SRCH) => return Ok(Err(Ended::Gone)),
            Err(errno) => return Ok(Err(Ended::Refused(errno))),
        };
        self.auditor.leaves_alone = method == Method::Hybrid;
        let mut next = Text::new();
        next.add("MiB: ").add(method.name());
        let mut ended = Ok(());
        let buffer = self.auditor.buffer.address() as u64;
        let is_own_buffer = |vma: &Vma| pid == own_id() && (vma.start..vma.end).contains(&buffer);
        let (auditor, done, progress) = (&mut self.auditor, &mut self.read_mib, &self.progress);
        let walked = each_vma(pid, "smaps", &mut |vma| {
            if !is_wanted(vma) || is_own_buffer(vma) {
                return Ok(());
            }
            if vma.unsafe_to_read.is_some() {
                tally.left_out += vma.end - vma.start;
                return Ok(());
            }
            tally.vmas += 1;
            let range = (vma.start, vma.end);
            ended = auditor.read(reader.any(), range, !vma.fills_up, tally, &mut |bytes| {
                done.bytes += bytes;
                if done.bytes >> 20 >= done.shown_mib + STEP_MIB {
                    done.shown_mib = done.bytes >> 20;
                    progress.show(done.shown_mib, &next);
                }
            });
            ended.map_err(|_| Error::Ended(pid))
        });
        *care = reader.care().copied();
        match walked {
            Ok(()) => {}
            Err(Error::Ended(_)) => return Ok(ended),
            Err(Error::Process(.., Errno::SRCH | Errno::NOENT, _)) => return Ok(Err(Ended::Gone)),
            Err(error) => return Err(error),
        }
        // Of a process that has ended, smaps just ends, too.
        Ok(auditor.counter.is_alive().map_err(Ended::from))
    }
}

/// The progress line is written anew after so many MiB.
const STEP_MIB: u64 = 64;
