//! `survey PID`: what each reader would split in a live process, by its page table. Reads
//! nothing of its memory.

use super::env::{self, Context, Kernel};
use super::forecast::{Forecast, HUGETLB_WARNING, Outlook, Splits, UNTRIED, VOUCHED_FOR};
use super::live::{self, Come, KERNEL_HALF, Mappings, Vma, each_vma};
use super::progress::Progress;
use crate::cli::Effective;
use crate::cli::survey::Options;
use crate::emit::record::Status;
use crate::emit::stream::{Preamble, Rows};
use crate::emit::survey_row::SurveyRow;
use crate::error::Error;
use crate::measure::census::{Census, CensusError, Counter};
use crate::measure::doubts::Doubts;
use crate::reader::Method;
use crate::sys::auxv::Auxv;
use crate::sys::process::proc_is_ours;
use crate::sys::remote::process_vm_readv;
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, cpu, errno, page_lists};
use crate::text::{Full, Text};

/// The status of such a VMA.
const NOT_USER: &str = "not-user-memory";
/// The status of what came too late.
const GONE: &str = "target-is-gone";
/// Name of the last row.
const TOTAL: &str = "[total]";

/// Looks at every VMA.
///
/// # Errors
/// See [`Error`]. Rows of VMAs that were looked at are already written.
#[inline(never)]
pub fn run(options: &Options, effective: &Effective, auxv: &Auxv) -> Result<(), Error> {
    let clock = Clock::best(auxv).proved().ok_or(Error::NO_CLOCK)?;
    if !proc_is_ours() {
        return Err(Error::NO_PROC);
    }
    let kernel = Kernel::read();
    let pid = options.pid;
    // Opened first: pagemap shows what it showed then even if rights change.
    let counter = Counter::open(pid, auxv.page_bytes())
        .map_err(|errno| live::refused(pid, "pagemap", errno))?;
    // What a reader meets that comes next is what pagemap says. Where that cannot be, less is known,
    // which the words say in any case.
    let _ = page_lists::drain();
    let doubts = live::doubts(pid);
    let (before, source) = live::source(&counter, doubts)?;
    let mut survey = Survey {
        pid,
        counter,
        splits: Splits::untried(clock, auxv.page_bytes(), &READERS),
        label: options.common.label,
        kernel: kernel.release(),
        page_bytes: auxv.page_bytes() as u64,
        doubts,
        total: Totals {
            split: [Some(0); 3],
            ..Totals::default()
        },
        progress: Progress::new(options.common.quiet, clock, before.bytes >> 20),
        looked_at: 0,
    };
    let context = Context {
        command: "survey",
        effective,
        common: options.common,
        clock,
        page_bytes: auxv.page_bytes(),
        cpu: None,
    };
    let mut preamble = Preamble::begin(stdout())?;
    env::write(&mut preamble, &context)?;
    let mut rows = preamble.header::<SurveyRow<'_>>(before.vmas + 1)?;
    let state = survey.every_vma(before, source, &mut rows)?;
    survey.finish(rows, state)?;
    if !options.common.quiet {
        // A courtesy of standard error.
        let _ = survey.say(stderr());
    }
    Ok(())
}

/// What became of the process meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its mappings are as they were.
    Steady,
    /// They are not.
    Changed,
    /// They are; but what makes bit 56 err has come to the machine, and pages that were looked at before
    /// may be such.
    Unsure,
    /// It has ended, or is another program.
    Gone,
}

/// What all VMAs hold together.
#[derive(Default)]
struct Totals {
    census: Census,
    vmas: u64,
    lost: u64,
    /// By reader, in the order of [`READERS`].
    split: [Option<u64>; 3],
    forecast: Forecast,
}

/// The readers that a prediction is made for.
const READERS: [Method; 3] = [Method::Proc, Method::Vmread, Method::Hybrid];

struct Survey<'s> {
    pid: i32,
    counter: Counter,
    splits: Splits<'static>,
    label: &'s str,
    kernel: &'s str,
    page_bytes: u64,
    doubts: Doubts,
    total: Totals,
    progress: Progress,
    /// Bytes that were looked at.
    looked_at: u64,
}

/// The progress line is written anew after so many MiB.
const STEP_MIB: u64 = 4096;

impl<'s> Survey<'s> {
    /// Looks at every VMA, and whether they are still those that were there `before`.
    fn every_vma(
        &mut self,
        before: Mappings,
        source: &'static str,
        rows: &mut Rows<Output>,
    ) -> Result<State, Error> {
        let mut during = Mappings::none();
        let walked = each_vma(self.pid, source, &mut |vma| {
            during.add(vma);
            self.vma(vma, rows)
        });
        self.progress.clear();
        // Of a process that has ended, maps just ends, too.
        match self.counter.is_alive() {
            // There was none from the start.
            _ if before.vmas == 0 => Ok(State::Steady),
            Err(_) => Ok(State::Gone),
            Ok(()) => {
                walked?;
                let steady = before == during && Mappings::now(self.pid)? == before;
                Ok(match steady {
                    true if self.is_unsure() => State::Unsure,
                    true => State::Steady,
                    false => State::Changed,
                })
            }
        }
    }

    /// Whether what has come meanwhile matters.
    fn is_unsure(&mut self) -> bool {
        let come = Come::since(self.doubts, self.pid, &self.total.census);
        come.swap || come.doubts && self.splits.tried(Method::Vmread) != Some(false)
    }

    fn vma(&mut self, vma: &Vma, rows: &mut Rows<Output>) -> Result<(), Error> {
        let counted = match vma.start {
            KERNEL_HALF.. => None,
            _ => Some(self.count(vma)),
        };
        let census = counted.as_ref().and_then(|counted| counted.as_ref().ok());
        let forecast = census.map(|census| {
            let unsure = live::bit_56_may_err(&mut self.counter, vma, census, self.doubts);
            Forecast::of(vma, census, unsure)
        });
        let mut row = self.row(census);
        let (mut start, mut end) = (Text::new(), Text::new());
        let (start, end) = (start.address(vma.start), end.address(vma.end));
        row.start = start.read().map_err(|Full| Error::TooLong)?;
        row.end = end.read().map_err(|Full| Error::TooLong)?;
        let perms = vma.perms.as_bytes();
        row.perms = core::str::from_utf8(&perms).unwrap_or("?");
        row.name = vma.name.read().map_err(|Full| Error::TooLong)?;
        row.status = match counted {
            None => Status::Skipped(NOT_USER),
            Some(Ok(_)) => vma.unsafe_to_read.map_or(Status::Ok, Status::Skipped),
            Some(Err(CensusError::Gone)) => Status::Skipped(GONE),
            Some(Err(CensusError::Kernel(errno))) => Status::Errno(errno::name_or_unknown(errno)),
        };
        let mut split = [None; 3];
        if let Some(forecast) = &forecast {
            split = READERS.map(|method| self.splits.of(method, forecast));
            if row.status == Status::Ok {
                self.fill(&mut row, split, forecast.faulted());
            }
        }
        rows.row(&row)?;
        match counted {
            None => self.total.vmas += 1,
            Some(_) => self.total.add(census.zip(forecast.as_ref()), split),
        }
        Ok(())
    }

    fn count(&mut self, vma: &Vma) -> Result<Census, CensusError> {
        let (looked_at, progress) = (&mut self.looked_at, &self.progress);
        live::count(&mut self.counter, vma, self.doubts, &mut |bytes| {
            let before = *looked_at >> 20;
            *looked_at += bytes;
            let now = *looked_at >> 20;
            if now / STEP_MIB > before / STEP_MIB {
                progress.show(now, Text::new().add("MiB"));
            }
        })
    }

    fn row(&self, census: Option<&Census>) -> SurveyRow<'s> {
        let count = |field: fn(&Census) -> u64| census.map(field);
        SurveyRow {
            label: self.label,
            kernel: self.kernel,
            arch: cpu::ARCH,
            page_bytes: self.page_bytes,
            pid: self.pid.unsigned_abs().into(),
            start: "",
            end: "",
            perms: "",
            name: "",
            present_pages: count(Census::present),
            exclusive_pages: count(|census| census.exclusive),
            shared_anon_pages: count(|census| census.shared_anon),
            file_pages: count(|census| census.file),
            swapped_pages: count(Census::in_swap),
            absent_pages: count(|census| census.absent + census.poisoned),
            proc_split_pages: None,
            vmread_split_pages: None,
            vmread_extra_kib: None,
            hybrid_split_pages: None,
            status: Status::Ok,
            proc_faulted_pages: None,
            vmread_faulted_pages: None,
            hybrid_faulted_pages: None,
            guard_pages: count(|census| census.guard),
            faulted_kib: None,
            advice: "",
        }
    }

    /// The last row, and whether the VMAs were still those that were announced.
    fn finish(&mut self, mut rows: Rows<Output>, state: State) -> Result<(), Error> {
        if state == State::Unsure {
            for (reader, split) in READERS.iter().zip(&mut self.total.split) {
                *split = split
                    .and(self.splits.of(*reader, &Forecast::DOUBT))
                    .and(*split);
            }
        }
        let mut row = self.row(Some(&self.total.census));
        row.name = TOTAL;
        self.fill(&mut row, self.total.split, self.total.forecast.faulted());
        row.advice = self.advice().0.name();
        let (reason, ended) = self.ending(state);
        if let Some(reason) = reason {
            row.status = Status::Skipped(reason);
            row.advice = "";
        }
        rows.row(&row)?;
        rows.end()?;
        ended
    }

    /// Why the total is none, and what that is as an error.
    fn ending(&self, state: State) -> (Option<&'static str>, Result<(), Error>) {
        let (reason, error) = match (self.total.vmas, self.total.lost) {
            _ if state == State::Gone => (GONE, Error::Ended(self.pid)),
            (0, _) => (
                "no-memory",
                Error::Invalid("the process has no memory: a zombie or a kernel thread"),
            ),
            _ if state == State::Changed => (
                "mappings-changed",
                Error::Invalid(
                    "the process changed its mappings meanwhile; stop it (kill -STOP) and try again",
                ),
            ),
            _ if state == State::Unsure => (
                "bit-56-may-err",
                Error::Invalid(
                    "large folios, KSM or swap came into use meanwhile, or huge pages lost parts: what is \
                     shared cannot be told by the rows before; try again",
                ),
            ),
            (_, 1..) => (
                "not-all-looked-at",
                Error::Invalid("not every VMA could be looked at: see the status column"),
            ),
            _ if self.splits.untried => ("no-reader-tried", UNTRIED),
            _ => return (None, Ok(())),
        };
        (Some(reason), Err(error))
    }

    fn fill(
        &self,
        row: &mut SurveyRow<'_>,
        [proc, vmread, hybrid]: [Option<u64>; 3],
        faulted: Option<u64>,
    ) {
        row.proc_faulted_pages = faulted;
        row.vmread_faulted_pages = faulted;
        row.hybrid_faulted_pages = Some(0);
        row.faulted_kib = self.kib(faulted);
        row.proc_split_pages = proc;
        row.vmread_split_pages = vmread;
        row.vmread_extra_kib = self.kib(vmread);
        row.hybrid_split_pages = hybrid;
    }

    fn kib(&self, pages: Option<u64>) -> Option<u64> {
        pages?.checked_mul(self.page_bytes / 1024)
    }

    fn advice(&self) -> (Method, &'static str) {
        let [.., hybrid_split] = self.total.split;
        // Of no bytes: whether the kernel, or a seccomp filter, has the call for us.
        let can_pin = process_vm_readv(self.pid, &mut [], &[]).is_ok();
        let outlook = Outlook {
            vmread_splits: self.splits.known(Method::Vmread),
            hybrid_split: hybrid_split.filter(|_| can_pin),
            brought_in: self.total.forecast.faulted_at_most,
            hidden: self.counter.frames_are_hidden(),
        };
        outlook.advice()
    }

    /// The total in words.
    fn say(&self, out: Output) -> Result<(), Error> {
        let census = &self.total.census;
        let mut line = Text::new();
        line.add("cowitness survey: process ")
            .signed(self.pid.into());
        line.add(", ").number(self.total.vmas).add(" VMAs, ");
        line.number(census.present()).add(" pages present: ");
        line.number(census.exclusive).add(" its own, ");
        line.number(census.shared_anon)
            .add(" anonymous and shared, ");
        line.number(census.file).add(" of files; ");
        line.number(census.in_swap()).add(" swapped out\n");
        for (reader, pages) in READERS.iter().zip(self.total.split) {
            line.add("  ").add(reader.name()).add(" would split ");
            match (pages, self.kib(pages)) {
                (Some(pages), Some(kib)) => {
                    line.number(pages).add(" pages, ").number(kib);
                    line.add(" KiB more, charged to its memory cgroup\n");
                    let is_so = self.splits.known(Method::Vmread) == Some(false);
                    let vouched_for = *reader == Method::Vmread && !is_so;
                    line.add(if vouched_for { VOUCHED_FOR } else { "" })
                }
                _ => line.add(match self.splits.known(*reader) {
                    None => "an unknown number of pages: it could not be tried here\n",
                    Some(_) => {
                        "an unknown number of pages: some may be shared that are huge, in swap or \
                         joined by KSM\n"
                    }
                }),
            };
        }
        line.add("  all but hybrid would bring in up to ");
        let faulted = self.total.forecast.faulted_at_most;
        line.number(faulted).add(" pages (");
        line.number(self.kib(Some(faulted)).unwrap_or(0) >> 10);
        line.add(" MiB) that are absent or swapped out\n");
        if self.total.forecast.hugetlb > 0 {
            line.add(HUGETLB_WARNING);
        }
        let (reader, why) = self.advice();
        line.add("  read it with ").add(reader.name()).add(why);
        line.add("\n");
        let line = line.read().map_err(|Full| Error::TooLong)?;
        out.write_all(line.as_bytes()).map_err(Error::Output)
    }
}

impl Totals {
    fn add(&mut self, looked: Option<(&Census, &Forecast)>, split: [Option<u64>; 3]) {
        self.vmas += 1;
        match looked {
            Some((census, forecast)) => {
                self.census.add(census);
                self.forecast.add(forecast);
            }
            None => self.lost += 1,
        }
        for (sum, pages) in self.split.iter_mut().zip(split) {
            // One that is unknown makes the sum unknown.
            *sum = sum.zip(pages).map(|(sum, pages)| sum + pages);
        }
    }
}
