//! The row that `--csv` writes instead of lines.

use super::super::env::{self, Context, Kernel};
use super::figures::{Figures, Report};
use super::force::Force;
use super::measured::Measured;
use super::problem::Problem;
use super::subject::Subject;
use crate::cli::Effective;
use crate::cli::memmap::{Mode, Options};
use crate::emit::memmap_row::MemmapRow;
use crate::emit::record::Status;
use crate::emit::stream::Preamble;
use crate::sys::auxv::Auxv;
use crate::sys::stdio::stdout;
use crate::sys::{Clock, cpu, errno};
use crate::text::Text;

/// Writes the stream; also if nothing was measured.
#[inline(never)]
pub(super) fn write<'p>(
    subject: &Subject<'p>,
    options: &Options,
    effective: &Effective,
    auxv: &Auxv,
    force: &Force,
    measured: &Result<Measured, Problem<'p>>,
) -> Result<(), Problem<'p>> {
    let context = Context {
        command: "memmap",
        effective,
        common: options.common,
        clock: Clock::best(auxv),
        page_bytes: auxv.page_bytes(),
        cpu: None,
    };
    let kernel = Kernel::read();
    let mut preamble = Preamble::begin(stdout())?;
    env::write(&mut preamble, &context)?;
    let mut rows = preamble.header::<MemmapRow<'_>>(1)?;
    let (file, thp) = (given(subject), force.thp());
    let mut row = row(subject, options, &kernel, force, &file);
    row.thp = thp.read().unwrap_or_default();
    match measured {
        Ok(measured) => fill(&mut row, measured),
        Err(problem) => row.status = failed(problem),
    }
    rows.row(&row)?;
    Ok(rows.end()?)
}

/// Bytes of a path that a row has room for; its other columns have less than 700.
const FILE_BYTES: usize = 256;

/// FILE, as it is shown; of a long one the end.
fn given(subject: &Subject<'_>) -> Text {
    let mut shown = Text::new();
    if subject.mode == Mode::MmapFile {
        let path = subject.path.bytes();
        let cut = path.len().saturating_sub(FILE_BYTES);
        shown.add(if cut > 0 { "..." } else { "" });
        for part in path[cut..].utf8_chunks() {
            shown.add_printable(part.valid());
            shown.add(if part.invalid().is_empty() { "" } else { "?" });
        }
    }
    shown
}

fn failed(problem: &Problem<'_>) -> Status<'static> {
    match problem.errno() {
        Some(errno) => Status::Errno(errno::name_or_unknown(errno)),
        None => Status::Skipped("not-measured"),
    }
}

/// What is known without measuring.
#[inline(never)]
fn row<'r>(
    subject: &Subject<'_>,
    options: &Options,
    kernel: &'r Kernel,
    force: &'r Force,
    file: &'r Text,
) -> MemmapRow<'r> {
    MemmapRow {
        label: options.common.label,
        kernel: kernel.release(),
        arch: cpu::ARCH,
        page_bytes: subject.page_bytes as u64,
        mode: subject.mode.name(),
        advise: options.advised.map_or("none", |advised| advised.name),
        bytes: subject.bytes as u64,
        pages: subject.pages() as u64,
        vmas: None,
        minor_faults: None,
        major_faults: None,
        rss_before_kib: None,
        rss_after_kib: None,
        anon_huge_kib: None,
        advised_rss_kib: None,
        thp: "",
        fault_around_bytes: force.fault_around_bytes.ok(),
        write_bytes: force.write_bytes,
        status: Status::Ok,
        target_rss_kib: None,
        advised_anon_huge_kib: None,
        again_minor_faults: None,
        again_major_faults: None,
        vsz_before_kib: None,
        vsz_after_kib: None,
        pss_before_kib: None,
        pss_after_kib: None,
        uss_before_kib: None,
        uss_after_kib: None,
        swap_before_kib: None,
        swap_after_kib: None,
        committed_before_kib: None,
        committed_after_kib: None,
        commit_limit_kib: None,
        brk: if options.brk { "yes" } else { "no" },
        file: file.read().unwrap_or_default(),
    }
}

#[inline(never)]
fn fill(row: &mut MemmapRow<'_>, measured: &Measured) {
    let faults = measured.faults();
    row.vmas = Some(measured.vmas.count);
    row.minor_faults = Some(faults.minor);
    row.major_faults = Some(faults.major);
    row.rss_before_kib = Some(measured.before.rss_kib);
    row.rss_after_kib = Some(measured.after.rss_kib);
    row.target_rss_kib = measured.usage.map(|usage| usage.rss_kib);
    row.anon_huge_kib = measured.usage.map(|usage| usage.anon_huge_kib);
    if let Some(again) = &measured.again {
        row.advised_rss_kib = Some(again.rss_kib);
        row.advised_anon_huge_kib = again.usage.map(|usage| usage.anon_huge_kib);
        row.again_minor_faults = Some(again.faults.minor);
        row.again_major_faults = Some(again.faults.major);
    }
    let before = reported(&measured.before);
    let after = reported(&measured.after);
    (row.vsz_before_kib, row.vsz_after_kib) = (before.vsz_kib, after.vsz_kib);
    (row.pss_before_kib, row.pss_after_kib) = (before.pss_kib, after.pss_kib);
    (row.uss_before_kib, row.uss_after_kib) = (before.uss_kib, after.uss_kib);
    (row.swap_before_kib, row.swap_after_kib) = (before.swap_kib, after.swap_kib);
    (row.committed_before_kib, row.committed_after_kib) =
        (before.committed_kib, after.committed_kib);
    row.commit_limit_kib = after.commit_limit_kib;
}

/// All unknown unless it was asked for.
fn reported(figures: &Figures) -> Report {
    figures.report.unwrap_or_default()
}
