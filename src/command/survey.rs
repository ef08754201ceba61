//! `survey PID`: what each reader would split in a live process, by its page table. Reads
//! nothing of its memory.

use super::env::{self, Context, Kernel};
use super::live::{self, KERNEL_HALF, Mappings, Outlook, Splits, Vma, each_vma};
use crate::cli::Effective;
use crate::cli::survey::Options;
use crate::emit::record::Status;
use crate::emit::stream::{Preamble, Rows};
use crate::emit::survey_row::SurveyRow;
use crate::error::Error;
use crate::measure::census::{Census, CensusError, Counter};
use crate::reader::Method;
use crate::reader::hybrid::large;
use crate::sys::auxv::Auxv;
use crate::sys::process::proc_is_ours;
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, cpu, errno};
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
    // Without frames, smaps tells zero pages from shared ones; it costs a second look.
    let source = if counter.frames_are_hidden() {
        "smaps"
    } else {
        "maps"
    };
    let before = Mappings::now(pid)?;
    let mut survey = Survey {
        pid,
        counter,
        splits: Splits::untried(clock, auxv.page_bytes()),
        label: options.common.label,
        kernel: kernel.release(),
        page_bytes: auxv.page_bytes() as u64,
        large: large::possible(),
        total: Totals {
            split: [Some(0); 3],
            ..Totals::default()
        },
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
    let mut during = Mappings::none();
    let walked = each_vma(pid, source, &mut |vma| {
        during.add(vma);
        survey.vma(vma, &mut rows)
    });
    // Of a process that has ended, maps just ends, too.
    let state = match survey.counter.is_alive() {
        // There was none from the start.
        _ if before.vmas == 0 => State::Steady,
        Err(_) => State::Gone,
        Ok(()) => {
            walked?;
            match before == during && Mappings::now(pid)? == before {
                true => State::Steady,
                false => State::Changed,
            }
        }
    };
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
    /// Pages that a reader other than hybrid would bring in.
    faulted: u64,
}

/// The readers that a prediction is made for.
const READERS: [Method; 3] = [Method::Proc, Method::Vmread, Method::Hybrid];

struct Survey<'s> {
    pid: i32,
    counter: Counter,
    splits: Splits,
    label: &'s str,
    kernel: &'s str,
    page_bytes: u64,
    /// Whether this machine has large folios of anonymous memory.
    large: bool,
    total: Totals,
}

impl<'s> Survey<'s> {
    fn vma(&mut self, vma: &Vma, rows: &mut Rows<Output>) -> Result<(), Error> {
        let mut counted = match vma.start {
            KERNEL_HALF.. => Err(CensusError::NotUser),
            start => self.counter.count(start, vma.end),
        };
        if let (Ok(census), Some(kib)) = (&mut counted, vma.anonymous_kib) {
            census.know_anonymous(kib / (self.page_bytes / 1024));
        }
        let mut row = self.row(counted.as_ref().ok());
        let doubtful = match &counted {
            Ok(census) if self.large && census.anonymous() > 0 => {
                match self.counter.has_no_large_folio(vma.start, vma.end) {
                    true => 0,
                    false => census.anonymous(),
                }
            }
            _ => 0,
        };
        let [start, end] = [vma.start, vma.end].map(hex);
        row.start = start.read().map_err(|Full| Error::TooLong)?;
        row.end = end.read().map_err(|Full| Error::TooLong)?;
        let perms = vma.perms.as_bytes();
        row.perms = core::str::from_utf8(&perms).unwrap_or("?");
        row.name = vma.name.read().map_err(|Full| Error::TooLong)?;
        let split = counted.as_ref().map_or([None; 3], |census| {
            READERS.map(|method| {
                // /proc/PID/mem may read what its owner may not; the others do not.
                let reached = vma.perms.readable || method == Method::Proc;
                let shared = if reached { census.shared_anon } else { 0 };
                let doubtful = if reached { doubtful } else { 0 };
                self.splits.of(method, shared, doubtful)
            })
        });
        // Others come in by a fault.
        let faulted = counted
            .as_ref()
            .ok()
            .map(|census| match vma.perms.readable {
                true => census.absent + census.swapped,
                false => 0,
            });
        self.fill(&mut row, split, faulted);
        row.status = match counted {
            Ok(_) => Status::Ok,
            Err(CensusError::NotUser) => Status::Skipped(NOT_USER),
            Err(CensusError::Gone) => Status::Skipped(GONE),
            Err(CensusError::Kernel(errno)) => Status::Errno(errno::name_or_unknown(errno)),
        };
        rows.row(&row)?;
        match counted {
            Err(CensusError::NotUser) => self.total.vmas += 1,
            _ => self.total.add(counted.as_ref().ok(), split, faulted),
        }
        Ok(())
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
            swapped_pages: count(|census| census.swapped),
            absent_pages: count(|census| census.absent),
            proc_split_pages: None,
            vmread_split_pages: None,
            vmread_extra_kib: None,
            hybrid_split_pages: None,
            status: Status::Ok,
            proc_faulted_pages: None,
            vmread_faulted_pages: None,
            hybrid_faulted_pages: None,
        }
    }

    /// The last row, and whether the VMAs were still those that were announced.
    fn finish(&mut self, mut rows: Rows<Output>, state: State) -> Result<(), Error> {
        let mut row = self.row(Some(&self.total.census));
        row.name = TOTAL;
        self.fill(&mut row, self.total.split, Some(self.total.faulted));
        row.status = match (self.total.vmas, self.total.lost) {
            _ if state == State::Gone => Status::Skipped(GONE),
            (0, _) => Status::Skipped("no-memory"),
            _ if state == State::Changed => Status::Skipped("mappings-changed"),
            (_, 0) => Status::Ok,
            _ => Status::Skipped("not-all-looked-at"),
        };
        rows.row(&row)?;
        rows.end()?;
        match row.status {
            Status::Skipped("no-memory") => Err(Error::Invalid(
                "the process has no memory: a zombie or a kernel thread",
            )),
            Status::Skipped(GONE) => Err(Error::Ended(self.pid)),
            Status::Skipped("mappings-changed") => Err(Error::Invalid(
                "the process changed its mappings meanwhile; stop it (kill -STOP) and try again",
            )),
            Status::Ok => Ok(()),
            _ => Err(Error::Invalid(
                "not every VMA could be looked at: see the status column",
            )),
        }
    }

    fn fill(
        &self,
        row: &mut SurveyRow<'_>,
        [proc, vmread, hybrid]: [Option<u64>; 3],
        faulted: Option<u64>,
    ) {
        row.proc_faulted_pages = faulted;
        row.vmread_faulted_pages = faulted;
        row.hybrid_faulted_pages = faulted.map(|_| 0);
        row.proc_split_pages = proc;
        row.vmread_split_pages = vmread;
        row.vmread_extra_kib = self.kib(vmread);
        row.hybrid_split_pages = hybrid;
    }

    fn kib(&self, pages: Option<u64>) -> Option<u64> {
        pages?.checked_mul(self.page_bytes / 1024)
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
        line.number(census.swapped).add(" swapped out\n");
        for (reader, pages) in READERS.iter().zip(self.total.split) {
            line.add("  ").add(reader.name()).add(" would split ");
            match (pages, self.kib(pages)) {
                (Some(pages), Some(kib)) => {
                    line.number(pages).add(" pages, ").number(kib);
                    line.add(" KiB of the machine's memory\n")
                }
                _ => line.add(
                    "an unknown number of pages: it could not be tried here, or huge pages \
                     may be shared\n",
                ),
            };
        }
        line.add("  all but hybrid would bring in up to ");
        line.number(self.total.faulted)
            .add(" pages that are absent or swapped out\n");
        let [_, vmread_split, hybrid_split] = self.total.split;
        let outlook = Outlook {
            vmread_split,
            hybrid_split,
            filled_up: self.total.faulted.saturating_sub(census.swapped),
            swapped: census.swapped,
        };
        line.add("  read it with ").add(outlook.advice()).add("\n");
        let line = line.read().map_err(|Full| Error::TooLong)?;
        out.write_all(line.as_bytes()).map_err(Error::Output)
    }
}

impl Totals {
    fn add(&mut self, census: Option<&Census>, split: [Option<u64>; 3], faulted: Option<u64>) {
        self.vmas += 1;
        match census {
            Some(census) => {
                self.census.add(census);
                self.faulted += faulted.unwrap_or(0);
            }
            None => self.lost += 1,
        }
        for (sum, pages) in self.split.iter_mut().zip(split) {
            // One that is unknown makes the sum unknown.
            *sum = sum.zip(pages).map(|(sum, pages)| sum + pages);
        }
    }
}

/// An address as maps prints it, in as many digits as it needs.
fn hex(address: u64) -> Text {
    let mut text = Text::new();
    let digits = (64 - address.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        let nibble = (address >> (4 * digit) & 15) as usize;
        text.add(&"0123456789abcdef"[nibble..=nibble]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_maps() {
        for address in [0, 1, 0x10, 0x0040_0000, 0x7f12_3456_7000, u64::MAX] {
            assert_eq!(hex(address).read().unwrap(), std::format!("{address:x}"));
        }
    }
}
