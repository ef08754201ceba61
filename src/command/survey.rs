//! `survey PID`: what each reader would split in a live process, by its page table. Reads
//! nothing of its memory.

use super::env::{self, Context, Kernel};
use super::live::{self, KERNEL_HALF, Mappings, Vma, each_vma};
use super::probe::prober;
use crate::cli::Effective;
use crate::cli::survey::Options;
use crate::emit::record::Status;
use crate::emit::stream::{Preamble, Rows};
use crate::emit::survey_row::SurveyRow;
use crate::error::Error;
use crate::measure::census::{Census, CensusError, Counter};
use crate::measure::probe::Prober;
use crate::reader::Method;
use crate::sys::auxv::Auxv;
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, cpu, errno};
use crate::text::{Full, Text};

/// The status of such a VMA.
const NOT_USER: &str = "not-user-memory";
/// Name of the last row.
const TOTAL: &str = "[total]";

/// Looks at every VMA.
///
/// # Errors
/// See [`Error`]. Rows of VMAs that were looked at are already written.
pub fn run(options: &Options, effective: &Effective, auxv: &Auxv) -> Result<(), Error> {
    let clock = Clock::best(auxv).proved().ok_or(Error::NO_CLOCK)?;
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
        splits: Splits::tried(&mut prober(clock, auxv.page_bytes())?),
        label: options.common.label,
        kernel: kernel.release(),
        page_bytes: auxv.page_bytes() as u64,
        total: Totals {
            proc_split: Some(0),
            vmread_split: Some(0),
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
    each_vma(pid, source, &mut |vma| {
        during.add(vma);
        survey.vma(vma, &mut rows)
    })?;
    let steady = before == during && Mappings::now(pid)? == before;
    survey.finish(rows, steady)?;
    if !options.common.quiet {
        // A courtesy of standard error.
        let _ = survey.say(stderr());
    }
    Ok(())
}

/// Whether a reader splits shared pages on this kernel; `None` if that could not be tried.
struct Splits {
    proc: Option<bool>,
    vmread: Option<bool>,
}

impl Splits {
    fn tried(prober: &mut Prober) -> Self {
        let mut splits = |method| live::splits(prober, method);
        Self {
            proc: splits(Method::Proc),
            vmread: splits(Method::Vmread),
        }
    }
}

/// Pages that would be split: all that are shared, if the reader splits and gets there.
fn split(splits: Option<bool>, reachable: bool, shared: u64) -> Option<u64> {
    match splits {
        _ if !reachable || shared == 0 => Some(0),
        Some(true) => Some(shared),
        Some(false) => Some(0),
        None => None,
    }
}

/// What all VMAs hold together.
#[derive(Default)]
struct Totals {
    census: Census,
    vmas: u64,
    lost: u64,
    proc_split: Option<u64>,
    vmread_split: Option<u64>,
}

struct Survey<'s> {
    pid: i32,
    counter: Counter,
    splits: Splits,
    label: &'s str,
    kernel: &'s str,
    page_bytes: u64,
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
        let [start, end] = [vma.start, vma.end].map(hex);
        row.start = start.read().map_err(|Full| Error::TooLong)?;
        row.end = end.read().map_err(|Full| Error::TooLong)?;
        let perms = vma.perms.as_bytes();
        row.perms = core::str::from_utf8(&perms).unwrap_or("?");
        row.name = vma.name.read().map_err(|Full| Error::TooLong)?;
        if let Ok(census) = &counted {
            let shared = census.shared_anon;
            row.proc_split_pages = split(self.splits.proc, true, shared);
            row.vmread_split_pages = split(self.splits.vmread, vma.perms.readable, shared);
            row.vmread_extra_kib = self.kib(row.vmread_split_pages);
        }
        row.status = match counted {
            Ok(_) => Status::Ok,
            Err(CensusError::NotUser) => Status::Skipped(NOT_USER),
            Err(CensusError::Gone) => Status::Skipped("target-is-gone"),
            Err(CensusError::Kernel(errno)) => Status::Errno(errno::name_or_unknown(errno)),
        };
        rows.row(&row)?;
        let (proc, vmread) = (row.proc_split_pages, row.vmread_split_pages);
        match counted {
            Err(CensusError::NotUser) => self.total.vmas += 1,
            _ => self.total.add(counted.as_ref().ok(), proc, vmread),
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
            // There is no such reader yet.
            hybrid_split_pages: None,
            status: Status::Ok,
        }
    }

    /// The last row, and whether the VMAs were still those that were announced.
    fn finish(&mut self, mut rows: Rows<Output>, steady: bool) -> Result<(), Error> {
        let mut row = self.row(Some(&self.total.census));
        row.name = TOTAL;
        row.proc_split_pages = self.total.proc_split;
        row.vmread_split_pages = self.total.vmread_split;
        row.vmread_extra_kib = self.kib(row.vmread_split_pages);
        row.status = match (self.total.vmas, self.total.lost) {
            (0, _) => Status::Skipped("no-memory"),
            _ if !steady => Status::Skipped("mappings-changed"),
            (_, 0) => Status::Ok,
            _ => Status::Skipped("not-all-looked-at"),
        };
        rows.row(&row)?;
        rows.end()?;
        match row.status {
            Status::Skipped("no-memory") => Err(Error::Invalid(
                "the process has no memory: a zombie or a kernel thread",
            )),
            Status::Skipped("mappings-changed") => Err(Error::Invalid(
                "the process changed its mappings meanwhile; stop it (kill -STOP) and try again",
            )),
            Status::Ok => Ok(()),
            _ => Err(Error::Invalid(
                "not every VMA could be looked at: see the status column",
            )),
        }
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
        let splits = [
            ("proc", self.total.proc_split),
            ("vmread", self.total.vmread_split),
        ];
        for (reader, pages) in splits {
            line.add("  ").add(reader).add(" would split ");
            match (pages, self.kib(pages)) {
                (Some(pages), Some(kib)) => {
                    line.number(pages).add(" pages, ").number(kib);
                    line.add(" KiB of the machine's memory\n")
                }
                _ => line.add("an unknown number of pages: it could not be tried here\n"),
            };
        }
        let line = line.read().map_err(|Full| Error::TooLong)?;
        out.write_all(line.as_bytes()).map_err(Error::Output)
    }
}

impl Totals {
    fn add(&mut self, census: Option<&Census>, proc: Option<u64>, vmread: Option<u64>) {
        self.vmas += 1;
        match census {
            Some(census) => self.census.add(census),
            None => self.lost += 1,
        }
        // One that is unknown makes the sum unknown.
        self.proc_split = self.proc_split.zip(proc).map(|(sum, pages)| sum + pages);
        self.vmread_split = self
            .vmread_split
            .zip(vmread)
            .map(|(sum, pages)| sum + pages);
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

    #[test]
    fn only_what_is_reached_and_shared_is_split() {
        assert_eq!(split(Some(true), true, 5), Some(5));
        assert_eq!(split(Some(true), false, 5), Some(0));
        assert_eq!(split(Some(false), true, 5), Some(0));
        assert_eq!(split(None, true, 5), None);
        assert_eq!(split(None, true, 0), Some(0));
    }
}
