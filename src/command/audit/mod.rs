//! `audit PID`: really reads a live process, and reports what that cost and changed against
//! what its page table let expect.

mod pass;
mod refusal;
mod row;
mod stop;
mod words;

use super::env::kernel::{CHARGES_READER, CHARGES_READER_FOR_HUGETLB};
use super::env::{self, Context, Kernel};
use super::forecast::{Splits, UNTRIED};
use super::live::{self, Mappings};
use super::progress::Progress;
use crate::cli::Effective;
use crate::cli::audit::Options;
use crate::emit::audit_row::AuditRow;
use crate::emit::record::Status;
use crate::emit::stream::{Preamble, Rows};
use crate::error::Error;
use crate::measure::audit::{Auditor, Ended};
use crate::measure::census::Counter;
use crate::measure::charge::Charges;
use crate::measure::plan::LIST_MAX;
use crate::reader::{Learned, Manners, Method};
use crate::sys::auxv::Auxv;
use crate::sys::process::proc_is_ours;
use crate::sys::stdio::{Output, stdout};
use crate::sys::{Clock, Errno, errno, page_lists, signal};
use heapless::Vec;
use pass::Passed;
use row::Common;
use words::Finding;

/// Status of passes that could not begin, because the process had ended.
const GONE: &str = "target-is-gone";
/// Status of a pass over a process that was set going meanwhile.
const WENT_ON: &str = "target-went-on";
/// Why what a pass has split is unknown, and what can be done.
const TAKEN: &str = "what was split is unknown: hugetlb pages were, or may have been, taken from \
    another process";
const CAME_FROM_SWAP: &str = "what was split is unknown: pages came out of swap, of which no copy \
    shows; hybrid leaves those";
const FRAMES_HIDDEN: &str = "what was split is unknown: frames are hidden, and without them a copy \
    looks like a page that the others let go; CAP_SYS_ADMIN shows them";
const RAN: &str = "what was split is unknown: the process ran meanwhile; --stop holds it, and proc \
    splits nothing";
const NOT_ALONE: &str = "what was split is unknown: others, or the kernel, replaced pages meanwhile, or \
    took them away; try again when nobody else reads it; proc splits nothing";
const UNTOLD: &str = "what was split is unknown: the kernel moved, swapped or joined pages, or does \
    not tell whose some were (they are of large folios, or /proc/kpageflags or vmstat may not be read: \
    CAP_DAC_READ_SEARCH); try again; proc splits nothing";
const NOTHING_READ: Error = Error::Invalid("nothing could be read: see the errno column");
/// Status of the other passes of a reader that the kernel refused.
const REFUSED: &str = "not-permitted";

/// Reads the process with each reader.
///
/// # Errors
/// See [`Error`]. Rows of passes that ended before are already written.
#[inline(never)]
pub fn run(options: &Options, effective: &Effective, auxv: &Auxv) -> Result<(), Error> {
    let clock = Clock::best(auxv).proved().ok_or(Error::NO_CLOCK)?;
    let page_bytes = auxv.page_bytes();
    let (counter, mappings) = first_look(options.pid, page_bytes)?;
    // What reads may be made to wait, and keeps what it has stopped.
    signal::end_out_of_the_kernel().map_err(Error::kernel("take signal handlers back"))?;
    let kernel = Kernel::read();
    let (_held, stopped) = stop::still(options.pid, options.stop)?;
    let common = Common {
        label: options.common.label,
        kernel: kernel.release(),
        page_bytes: page_bytes as u64,
        pid: options.pid,
        block_bytes: options.block,
    };
    let mut run = Run::new(options, clock, (counter, &mappings), common, stopped)?;
    run.auditor.stands = stopped;
    run.auditor.charges = Charges {
        usual: kernel.is_since(CHARGES_READER),
        hugetlb: kernel.is_since(CHARGES_READER_FOR_HUGETLB),
    };
    let context = Context {
        command: "audit",
        effective,
        common: options.common,
        clock,
        page_bytes,
        cpu: None,
    };
    let mut preamble = Preamble::begin(stdout())?;
    env::write(&mut preamble, &context)?;
    preamble.note("target_stopped", if stopped { "yes" } else { "no" })?;
    let total = options.methods.len() as u64 * run.passes;
    let mut rows = preamble.header::<AuditRow<'_>>(total)?;
    let done = run.every_reader(&options.methods, &mut rows);
    run.progress.clear();
    done?;
    rows.end()?;
    if !options.common.quiet {
        words::say(&run.findings, &run.common, stopped);
    }
    run.ending
}

/// Whether there is anything to read, and what counts its pages.
fn first_look(pid: i32, page_bytes: usize) -> Result<(Counter, Mappings), Error> {
    if !proc_is_ours() {
        return Err(Error::NO_PROC);
    }
    // Opened first: it stays this process's, whatever becomes of the number.
    let counter = Counter::open(pid, page_bytes);
    let counter = counter.map_err(|errno| live::refused(pid, "pagemap", errno))?;
    let mappings = Mappings::now(pid)?;
    if mappings.vmas == 0 {
        return Err(live::refused(pid, "maps", Errno::SRCH));
    }
    Ok((counter, mappings))
}

/// What a run carries from pass to pass.
struct Run<'r> {
    pid: i32,
    /// Of each reader.
    passes: u64,
    /// Whether it stood still when it began.
    stopped: bool,
    manners: Manners,
    /// What the reader's passes before have shown.
    learned: Learned,
    common: Common<'r>,
    auditor: Auditor,
    splits: Splits<'r>,
    /// Whether a child was made since the last rehearsal: the tool's own pages fault anew then.
    forked: bool,
    progress: Progress,
    done: pass::Done,
    findings: Vec<Finding, LIST_MAX>,
    /// The worst that was seen.
    ending: Result<(), Error>,
}

impl<'r> Run<'r> {
    /// Ready for the first pass.
    fn new(
        options: &'r Options,
        clock: Clock,
        (counter, mappings): (Counter, &Mappings),
        common: Common<'r>,
        stopped: bool,
    ) -> Result<Self, Error> {
        let (block, page_bytes) = (options.block as usize, common.page_bytes as usize);
        let buffers = options.methods.iter();
        let buffer = buffers.map(|method| method.buffer_bytes(block)).max();
        let auditor = Auditor::new(clock, counter, block, buffer.unwrap_or(0), page_bytes);
        // All of it is looked at once more for each reader.
        let looks = options.methods.len() as u64 * (2 + options.warm);
        Ok(Self {
            pid: options.pid,
            passes: 1 + options.warm,
            stopped,
            manners: Manners {
                swap_in: options.allow_swap_in,
                no_files: options.strict,
                one_walk: true,
            },
            learned: Learned::default(),
            common,
            auditor: auditor.map_err(Error::kernel("map memory for the buffer"))?,
            splits: Splits::untried(clock, page_bytes, &options.methods),
            forked: false,
            progress: Progress::new(options.common.quiet, clock, (mappings.bytes >> 20) * looks),
            done: pass::Done::default(),
            findings: Vec::new(),
            ending: Ok(()),
        })
    }

    fn every_reader(&mut self, methods: &[Method], rows: &mut Rows<Output>) -> Result<(), Error> {
        for (method, position) in methods.iter().copied().zip(1..) {
            let mut finding = Finding::of(method);
            let mut lost = None;
            let mut predicted = None;
            self.auditor.block_bytes = self.block(method);
            self.learned = Learned::default();
            for repeat in 1..=self.passes {
                let place = row::Place {
                    method,
                    position,
                    repeat,
                };
                let gone = matches!(self.ending, Err(Error::Ended(_))).then_some(GONE);
                if let Some(reason) = gone.or(lost) {
                    rows.row(&row::skipped(&self.common, &place, reason))?;
                    continue;
                }
                if repeat == 1 {
                    predicted = self.predict(method);
                }
                if matches!(method, Method::Vmread | Method::VmreadBatch) {
                    // A page that an earlier pass has left on a list of the kernel would be copied
                    // for that. Where it cannot be emptied, it is.
                    let _ = page_lists::drain();
                }
                let mut passed = self.pass(method, repeat == 1)?;
                self.settle(&mut passed);
                rows.row(&row::make(&self.common, &place, predicted, &passed))?;
                finding.note(predicted, &passed);
                lost = self.note(&passed);
            }
            // As many as there are methods at most.
            let _ = self.findings.push(finding);
        }
        Ok(())
    }

    /// Bytes of one read. `hybrid` gathers whole pages, and counts those that it leaves: at each end
    /// of a block that cuts a page it would count that page twice.
    const fn block(&self, method: Method) -> usize {
        let (asked, page) = (self.common.block_bytes, self.common.page_bytes);
        match method {
            Method::Hybrid if asked > page => (asked - asked % page) as usize,
            _ => asked as usize,
        }
    }

    /// Decides what the pages of single windows do not: by whether the process ran, by what `hybrid`
    /// was charged in its pins, and by whether the reader splits anything on this kernel.
    fn settle(&mut self, passed: &mut Passed) {
        passed.bound();
        let (_, most) = passed.bounds;
        let any = most + passed.tally.maybe_taken + passed.tally.fate.taken > 0;
        if !any && !passed.copies_hide {
            return;
        }
        self.forked |= !self.splits.is_tried();
        match self.splits.tried(passed.method) {
            // Whoever copies nothing takes nothing.
            Some(false) => {
                passed.tally.maybe_taken = 0;
                passed.nothing_was_taken();
                // A pin of hybrid's still may.
                if passed.method != Method::Hybrid {
                    passed.limit(0, 0);
                    passed.copies_hide = false;
                }
            }
            Some(true) => passed.copies_hide |= passed.tally.maybe_taken > 0,
            None => {
                passed.copies_hide = true;
                passed.nothing_was_taken();
            }
        }
    }

    /// What became of the pass; the reason why its reader need not try again.
    fn note(&mut self, passed: &Passed) -> Option<&'static str> {
        let refused = |method, errno| refusal::refused(self.pid, method, errno);
        let (error, lost) = match passed.ended {
            Ok(()) if passed.tally.bytes == 0 => (NOTHING_READ, None),
            Ok(()) if self.splits.untried => (UNTRIED, None),
            Ok(()) if passed.split().is_none() => (Error::Invalid(passed.why_unknown()), None),
            Ok(()) if passed.went_on => (
                Error::Invalid(
                    "the process was set going (SIGCONT) while it was read: see the status column",
                ),
                None,
            ),
            Ok(()) => return None,
            Err(Ended::Gone) => (Error::Ended(self.pid), None),
            Err(Ended::Refused(Errno::NOSYS)) => (
                Error::Invalid(not_in_this_kernel(passed.method)),
                Some("not-in-this-kernel"),
            ),
            Err(Ended::Refused(errno)) => (refused(passed.method, errno), Some(REFUSED)),
            Err(Ended::Lacks(errno)) => (refused(passed.method, errno), None),
            Err(Ended::Pagemap(errno)) => {
                (live::refused(self.pid, "pagemap", errno), Some(REFUSED))
            }
        };
        // That it is gone outweighs that a reader was refused.
        if self.ending.is_ok() || passed.ended == Err(Ended::Gone) {
            self.ending = Err(error);
        }
        lost
    }
}

/// What is said of a reader that this kernel does not have.
const fn not_in_this_kernel(method: Method) -> &'static str {
    match method {
        Method::Kcore => "kcore is not in this kernel: it takes CONFIG_PROC_KCORE",
        Method::Vmread | Method::VmreadBatch | Method::Hybrid => {
            "process_vm_readv(2) is not in this kernel: it takes CONFIG_CROSS_MEMORY_ATTACH, or a \
             seccomp filter hides it"
        }
        _ => "a reader is not in this kernel: see the status column",
    }
}

impl Passed {
    /// Why what was split is unknown.
    const fn why_unknown(&self) -> &'static str {
        let tally = &self.tally;
        match self.pfn {
            _ if tally.fate.taken + tally.maybe_taken > 0 => TAKEN,
            _ if tally.fate.swapped_in > 0 && self.copies_hide => CAME_FROM_SWAP,
            _ if !self.stood => RAN,
            false => FRAMES_HIDDEN,
            true if tally.bounds.others_were_there() => NOT_ALONE,
            true => UNTOLD,
        }
    }

    /// What the row says of how it ended.
    fn status(&self) -> Status<'static> {
        match self.ended {
            Ok(()) if self.tally.bytes == 0 => Status::Skipped("nothing-could-be-read"),
            Ok(()) if self.went_on => Status::Skipped(WENT_ON),
            Ok(()) => Status::Ok,
            Err(Ended::Gone) => Status::Errno("ESRCH"),
            Err(Ended::Refused(errno) | Ended::Lacks(errno) | Ended::Pagemap(errno)) => {
                let name = errno::name_or_unknown(errno);
                let reason = self.method.refusal(errno);
                reason.map_or(Status::Errno(name), Status::Skipped)
            }
        }
    }
}
