//! One pass over all readable mappings, what was expected of it, and what the process looked
//! like before and after.

use super::super::forecast::Forecast;
use super::super::live::{self, Come, KERNEL_HALF, Mappings, Vma, each_vma};
use super::super::progress::Progress;
use super::{Run, stop};
use crate::error::Error;
use crate::measure::audit::{Ended, Tally};
use crate::measure::census::{Census, Counter};
use crate::measure::fate::Fate;
use crate::measure::footprint;
use crate::measure::pass::touch_stack;
use crate::proc::smaps::{Usage, UsageDelta};
use crate::proc::stat::Stat;
use crate::proc::vmstat::{self, Moves};
use crate::reader::{Care, Learned, Method, Reader, Target};
use crate::sys::Errno;
use crate::sys::errno::is_lack;
use crate::sys::file::{Process, read_proc, read_whole};
use crate::sys::process::{Faults, own_id};
use crate::text::Text;
use core::mem;

/// A pass.
pub(super) struct Passed {
    pub(super) method: Method,
    pub(super) cold: bool,
    pub(super) pfn: bool,
    /// Whether it may have copied pages that no bounds hold.
    pub(super) copies_hide: bool,
    /// Pages split, at least and at most.
    pub(super) bounds: (u64, u64),
    /// Whether it may have brought pages in out of swap that no page table shows.
    pub(super) swap_unseen: bool,
    pub(super) tally: Tally,
    /// Whether this kernel charges a reader with the faults that it causes.
    pub(super) charges: bool,
    /// How it ended.
    pub(super) ended: Result<(), Ended>,
    /// After minus before, of the whole process; `None` where it could not be known.
    pub(super) usage: Option<UsageDelta>,
    pub(super) faults: Option<(i64, i64)>,
    pub(super) vma_change: Option<i64>,
    /// Of all its mappings.
    pub(super) vm_size_kib: Option<i64>,
    /// Whether it stood still at first and no longer did at the end.
    pub(super) went_on: bool,
    /// Whether it did not run meanwhile, stopped or not.
    pub(super) stood: bool,
    /// What the kernel has moved meanwhile, of all processes; `None` where it does not tell.
    pub(super) moves: Option<Moves>,
    /// What became of the pages, if the reader is one that takes care.
    pub(super) care: Option<Care>,
}

impl Passed {
    /// Pages split, at least and at most, if that is known.
    pub(super) fn split_bounds(&self) -> Option<(u64, u64)> {
        Some(self.bounds).filter(|_| !self.copies_hide && self.tally.fate.taken == 0)
    }

    /// Pages that were split, if that is known to a hundredth of them.
    pub(super) fn split(&self) -> Option<u64> {
        let (least, most) = self.split_bounds()?;
        let is_known = (most - least) * 100 <= most;
        Some(self.tally.fate.split.clamp(least, most)).filter(|_| is_known)
    }

    /// Pages that were shared, or copied all the same, as far as that is known.
    pub(super) fn tracked(&self) -> u64 {
        let fate = &self.tally.fate;
        match self.split() {
            Some(_) => fate.tracked,
            None => fate.tracked - fate.split_exclusive,
        }
    }

    /// What others did is not the reader's. Of a process that ran meanwhile it is only known that each
    /// page split was a fault: it may have forked, and what the reader then split it may have given
    /// back. Where pages went, or more changed than the reader was charged for, somebody else was there.
    /// `hybrid` splits by pins alone.
    pub(super) fn bound(&mut self) {
        let found = self.tally.bounds;
        let quiet = self.faults == Some((0, 0)) && !found.others_were_there();
        let (least, most) = match (self.stood, quiet) {
            (true, true) => (self.proven(found.least_if_quiet), self.possible(found.most)),
            (true, false) => (self.proven(found.least), self.possible(found.most)),
            // A fault copies many pages of hugetlb memory.
            (false, _) if self.tally.hugetlb => {
                (0, self.charged().unwrap_or(0).saturating_add(found.most))
            }
            (false, _) => (0, self.charged().unwrap_or(0).max(found.most)),
        };
        self.copies_hide |= !self.stood && self.charged().is_none();
        let pins = self.care.and_then(|care| care.pin_faults);
        let pins = pins.filter(|&faults| self.charges && (faults == 0 || !self.tally.hugetlb));
        self.limit(least, pins.map_or(most, |faults| most.min(faults)));
    }

    /// Of so many pages that look like copies, those that nothing else can be: one that was moved, or came
    /// back from swap or KSM, had a fault, too, if the reader made it the process's own.
    fn proven(&self, copies: u64) -> u64 {
        let Some(moves) = self.moves else {
            return 0;
        };
        let found = &self.tally.bounds;
        let moved = moves.migrated.min(found.unproven);
        // Only what has a copy in swap already goes there without being written.
        let come_back = moves.swapped_out.saturating_add(found.cached);
        let others = [moved, moves.swapped_in.min(come_back), self.taken_apart()];
        others.into_iter().fold(copies, u64::saturating_sub)
    }

    /// With those that the reader may have taken apart, and KSM has hidden, if there were faults for as many.
    fn possible(&self, most: u64) -> u64 {
        let all = most.saturating_add(self.taken_apart());
        match self.charged() {
            // Of hugetlb memory a fault copies many pages.
            Some(faults) if !self.tally.hugetlb => all.min(faults),
            _ => all,
        }
    }

    /// Pages at most that were taken apart and do not show that: KSM has joined them behind the first look, or
    /// once more before the second.
    fn taken_apart(&self) -> u64 {
        let found = &self.tally.bounds;
        let all = self.moves.map_or(u64::MAX, |moves| moves.taken_apart);
        all.saturating_sub(found.joined).min(found.mergeable)
    }

    /// All faults charged to the reader; `None` where that is not known.
    fn charged(&self) -> Option<u64> {
        let faults = self.tally.faults.filter(|_| self.charges)?;
        Some(faults.minor + faults.major)
    }

    /// Pages that the reader brought in. A process that ran meanwhile brings some in itself, and gives
    /// some back.
    pub(super) fn faulted_in(&self) -> Option<u64> {
        let is_known = self.stood && !self.others_brought_in() || self.charged() == Some(0);
        Some(self.tally.fate.faulted_in).filter(|_| is_known)
    }

    /// Whether more than a hundredth of what came in may be somebody else's work.
    fn others_brought_in(&self) -> bool {
        let Tally { fate, bounds, .. } = &self.tally;
        let came = fate.faulted_in + fate.swapped_in;
        let least = match bounds.others_were_there() {
            true => bounds.least_came,
            false => bounds.least_came_if_quiet,
        };
        came.saturating_sub(least) * 100 > came
    }

    /// Hugetlb pages that became the process's own were let go by the others.
    pub(super) fn nothing_was_taken(&mut self) {
        let fate = &mut self.tally.fate;
        fate.raced += mem::take(&mut fate.taken);
    }

    /// At least and at most so many pages were split; what else was replaced, others did.
    pub(super) fn limit(&mut self, least: u64, most: u64) {
        self.bounds = (least.min(most), most);
        self.tally.fate.bound(&Fate::default(), most);
    }

    /// Pages that came out of swap; of shared memory pagemap does not show them.
    pub(super) fn swapped_in(&self) -> Option<u64> {
        let swapped_in = self.tally.fate.swapped_in;
        let is_known = self.stood && !self.others_brought_in() || swapped_in == 0;
        Some(swapped_in).filter(|_| is_known && !self.swap_unseen)
    }
}

/// What is expected of a reader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Pages split; `None` if that cannot be told.
    pub(super) split: Option<u64>,
    /// Pages faulted and swapped in; `None` if that cannot be told.
    pub(super) brought_in: Option<u64>,
}

/// How far the run has come, for the progress line.
#[derive(Default)]
pub(super) struct Done {
    bytes: u64,
    shown_mib: u64,
}

impl Done {
    fn add(&mut self, bytes: u64, progress: &Progress, next: &Text) {
        self.bytes += bytes;
        if self.bytes >> 20 >= self.shown_mib + STEP_MIB {
            self.shown_mib = self.bytes >> 20;
            progress.show(self.shown_mib, next);
        }
    }
}

/// What a reader says of its pass, and leaves to that of the next.
#[derive(Default)]
struct Said {
    care: Option<Care>,
    learned: Learned,
}

/// The process at one moment.
#[derive(Default)]
struct Standing {
    usage: Option<Usage>,
    faults: Option<(u64, u64)>,
    vm_size: Option<u64>,
    rest: Option<stop::Rest>,
    mappings: Option<Mappings>,
    moves: Option<Moves>,
}

impl Standing {
    fn now(pid: i32) -> Self {
        let mut text = [0; 1024];
        let stat = read_proc(Process::Id(pid), "stat", &mut text);
        let stat = stat.ok().and_then(Stat::parse);
        let mut text = [0; vmstat::BYTES];
        let vmstat = read_whole(vmstat::PATH, &mut text);
        Self {
            // A kernel before 4.14 has no smaps_rollup.
            usage: footprint::whole(Process::Id(pid)).ok(),
            faults: stat.map(|stat| (stat.minflt, stat.majflt)),
            vm_size: stat.map(|stat| stat.mapped_bytes),
            rest: stop::Rest::of(pid),
            mappings: Mappings::now(pid).ok(),
            moves: vmstat.ok().and_then(Moves::parse),
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
    /// What `method` will do, by the page table now; `None` if that cannot be told.
    pub(super) fn predict(&mut self, method: Method) -> Option<Expected> {
        let (mut forecast, mut all) = (Forecast::default(), Census::default());
        let doubts = live::doubts(self.pid);
        let mut next = Text::new();
        next.add("MiB looked at before: ").add(method.name());
        let (counter, progress) = (&mut self.auditor.counter, &self.progress);
        let (done, pid) = (&mut self.done, self.pid);
        let looked = each_vma(pid, "smaps", &mut |vma| {
            if is_wanted(vma) {
                let mut seen = |bytes| done.add(bytes, progress, &next);
                let census = live::count(counter, vma, doubts, &mut seen);
                let census = census.map_err(|_| Error::Ended(pid))?;
                let unsure = live::bit_56_may_err(counter, vma, &census, doubts);
                all.add(&census);
                forecast.add(&Forecast::of(vma, &census, unsure));
            }
            Ok(())
        });
        // If the process is gone, the pass finds that out, and says it.
        looked.ok()?;
        let come = Come::since(doubts, pid, &all);
        if come.doubts {
            forecast.add(&Forecast::DOUBT);
        }
        Some(Expected {
            split: self.splits.of(method, &forecast),
            brought_in: forecast
                .brought_in(
                    method,
                    self.manners,
                    self.auditor.counter.frames_are_hidden(),
                )
                .filter(|_| !come.swap),
        })
    }

    /// Reads everything once.
    pub(super) fn pass(&mut self, method: Method, cold: bool) -> Result<Passed, Error> {
        let before = Standing::now(self.pid);
        let mut tally = Tally {
            faults: Some(Faults::default()),
            ..Tally::default()
        };
        if cold || mem::take(&mut self.forked) {
            self.rehearse(method)?;
            touch_stack::<STACK_BYTES>();
        }
        let mut said = Said {
            care: None,
            learned: self.learned,
        };
        self.auditor.begin();
        let mut ended = self.read_all(self.pid, method, &mut tally, &mut said)?;
        self.learned = said.learned;
        let mut after = Standing::now(self.pid);
        // Asked last: what another program has is no difference. Of a process that has ended, smaps
        // just ends, too.
        let alive = self.auditor.counter.is_alive();
        ended = ended.and(alive.map_err(Ended::from));
        if alive.is_err() || ended == Err(Ended::Gone) {
            after = Standing::default();
        }
        let faults = after.faults.zip(before.faults);
        let faults =
            faults.map(|(after, before)| (minus(after.0, before.0), minus(after.1, before.1)));
        let pfn = !self.auditor.counter.frames_are_hidden();
        // Who stands still has no faults of its own, and those of a reader are not charged to it.
        let own_faults = faults.is_some_and(|faults| faults != (0, 0));
        let ran = self.auditor.charges.usual && own_faults;
        // Who pins without a fault has copied none, whatever was told of its pages.
        let pins = said.care.and_then(|care| care.pin_faults);
        let held = self.auditor.told_the_truth();
        let went_on = self.stopped && ended.is_ok() && !stop::stands_after(self.pid, method);
        Ok(Passed {
            method,
            cold,
            pfn,
            copies_hide: self.swap_hides_copies(method, &tally) || pins != Some(0) && !held,
            bounds: (0, 0),
            swap_unseen: tally.fate.swap_unseen
                && match method {
                    Method::Hybrid => self.manners.swap_in && !self.manners.no_files,
                    Method::Kcore => false,
                    _ => true,
                },
            tally,
            charges: self.auditor.charges.usual,
            ended,
            usage: after.usage.zip(before.usage).map(|(a, b)| a.since(&b)),
            faults,
            care: said.care,
            went_on,
            stood: match method {
                // It wakes a stopped process, which does not come to run its own code.
                Method::Ptrace => self.stopped && !went_on,
                _ => before.rest.is_some() && before.rest == after.rest && !ran,
            },
            moves: after.moves.zip(before.moves).and_then(|(a, b)| a.since(b)),
            vma_change: after
                .mappings
                .zip(before.mappings)
                .map(|(after, before)| minus(after.vmas, before.vmas)),
            vm_size_kib: after
                .vm_size
                .zip(before.vm_size)
                .map(|(after, before)| minus(after, before) / 1024),
        })
    }

    /// Whether pages may have been copied that no bounds hold: of one that was swapped out a copy cannot
    /// be seen. Not by a reader that copies nothing whatever others map.
    fn swap_hides_copies(&mut self, method: Method, tally: &Tally) -> bool {
        tally.fate.swapped_in > 0 && self.splits.of(method, &Forecast::DOUBT) != Some(0)
    }

    /// Reads the tool itself, so that its own code and stack are there: a fault that is charged
    /// later was caused by the target's memory. First with a reader that brings in all there is.
    fn rehearse(&mut self, method: Method) -> Result<(), Error> {
        let own = Counter::open(own_id(), self.common.page_bytes as usize);
        let own = own.map_err(Error::kernel("read the tool's own pagemap"))?;
        let theirs = mem::replace(&mut self.auditor.counter, own);
        let done = mem::take(&mut self.done);
        let mut read = Ok(Ok(()));
        for method in [Method::Proc, method] {
            read = self.read_all(
                own_id(),
                method,
                &mut Tally::default(),
                &mut Said::default(),
            );
        }
        self.auditor.counter = theirs;
        self.done = done;
        // Who cannot read itself has no rehearsal.
        read.map(drop)
    }

    fn read_all(
        &mut self,
        pid: i32,
        method: Method,
        tally: &mut Tally,
        said: &mut Said,
    ) -> Result<Result<(), Ended>, Error> {
        let mut target = Target::process(pid, self.common.page_bytes as usize);
        target.manners = self.manners;
        target.learned = said.learned;
        let mut walked = Ok(Ok(()));
        let lent = method.lend(&target, &mut |reader| {
            walked = self.walk(pid, method, reader, tally);
            said.care = reader.care().copied();
            said.learned = reader.learned();
        });
        match lent {
            Ok(()) => walked,
            Err(Errno::NOENT | Errno::SRCH) => Ok(Err(Ended::Gone)),
            Err(errno) if is_lack(errno) => Ok(Err(Ended::Lacks(errno))),
            Err(errno) => Ok(Err(Ended::Refused(errno))),
        }
    }

    /// Has a reader read every VMA that is to be read.
    fn walk(
        &mut self,
        pid: i32,
        method: Method,
        reader: &mut dyn Reader,
        tally: &mut Tally,
    ) -> Result<Result<(), Ended>, Error> {
        let mut next = Text::new();
        next.add("MiB: ").add(method.name());
        let mut ended = Ok(());
        let buffer = self.auditor.buffer.address() as u64;
        let is_own_buffer = |vma: &Vma| pid == own_id() && (vma.start..vma.end).contains(&buffer);
        let (auditor, done, progress) = (&mut self.auditor, &mut self.done, &self.progress);
        let walked = each_vma(pid, "smaps", &mut |vma| {
            if !is_wanted(vma) || is_own_buffer(vma) {
                return Ok(());
            }
            if vma.unsafe_to_read.is_some() {
                tally.left_out += vma.end - vma.start;
                return Ok(());
            }
            tally.vmas += 1;
            ended = auditor.read(reader, vma, tally, &mut |bytes| {
                done.add(bytes, progress, &next);
            });
            ended.map_err(|_| Error::Ended(pid))
        });
        match walked {
            Ok(()) | Err(Error::Ended(_)) => Ok(ended),
            Err(Error::Process(.., Errno::SRCH | Errno::NOENT, _)) => Ok(Err(Ended::Gone)),
            Err(error) => Err(error),
        }
    }
}

/// More of the stack than a pass takes, the reader included.
const STACK_BYTES: usize = 192 << 10;

/// The progress line is written anew after so many MiB.
const STEP_MIB: u64 = 64;
