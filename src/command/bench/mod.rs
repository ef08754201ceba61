//! `bench`: readers × layouts × blocks on forked fixtures.

mod prepare;
mod row;

use super::env::kernel::CHARGES_READER;
use super::env::{self, Context, Kernel};
use super::progress::Progress;
use crate::cli::Effective;
use crate::cli::bench::{ClockPath, Hold, Options, Pages};
use crate::emit::bench_row::{BenchRow, NOT_APPLICABLE};
use crate::emit::record::Status;
use crate::emit::stream::{Preamble, Rows, StreamError};
use crate::emit::summary::{self, Heading, SCRATCH_PER_SAMPLE, Sample, SummaryError};
use crate::error::Error;
use crate::fixture::{Arena, Fragments, Reserve};
use crate::measure::case::Bench;
use crate::sys::auxv::Auxv;
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, Errno, Region, Table, cpu};
use crate::text::Text;
pub(super) use prepare::pin;
use prepare::{Prepared, Room};
use row::Common;

/// Runs the whole experiment.
///
/// # Errors
/// See [`Error`]. Rows of cases that ended before are already written.
#[inline(never)]
pub fn run(options: &Options, effective: &Effective, auxv: &Auxv) -> Result<(), Error> {
    let clock = match options.clock {
        ClockPath::Best => Clock::best(auxv),
        ClockPath::SystemCall => Clock::system_call(),
    };
    let clock = clock.proved().ok_or(Error::NO_CLOCK)?;
    let pinned = pin(options.pin)?;
    let prepared = Prepared::new(options, auxv.page_bytes())?;
    let spare_bytes = prepared.check_room(&Room::now()?)?;
    let fragments = match (options.fragments, options.pages) {
        (Hold::Leave, _) => Fragments::Left("left"),
        (Hold::Hold, Pages::Thp) => Fragments::Left("left: huge pages are whole blocks"),
        (Hold::Hold, Pages::Small) => {
            let arena_bytes = options.mb << 20;
            Fragments::hold(arena_bytes, spare_bytes, auxv.page_bytes(), clock)?
        }
    };

    let kernel = Kernel::read();
    let total = prepared.plan.len() * prepared.layouts.len() as u64;
    let context = Context {
        command: "bench",
        effective,
        common: options.common,
        clock,
        page_bytes: auxv.page_bytes(),
        cpu: pinned,
    };
    let mut run = Run {
        bench: prepared.bench(options, clock, kernel.is_since(CHARGES_READER))?,
        samples: Table::new(total as usize).map_err(Error::kernel("map memory for the samples"))?,
        common: Common {
            label: options.common.label,
            kernel: kernel.release(),
            page_bytes: auxv.page_bytes() as u64,
            pages: options.pages.name(),
        },
        progress: Progress::new(options.common.quiet, clock, total),
        valid: true,
    };
    let mut preamble = Preamble::begin(stdout())?;
    env::write(&mut preamble, &context)?;
    note_fragments(&mut preamble, &fragments)?;
    let mut rows = preamble.header::<BenchRow<'_>>(total)?;
    let measured = run.every_layout(&prepared, &mut rows);
    run.progress.clear();
    measured?;
    rows.end()?;
    run.conclude(options.common.quiet, total)?;
    match fragments.last() {
        true => Ok(()),
        false => Err(Error::Invalid(
            "a process that held small free blocks of memory was killed meanwhile, so the frames \
             of some cases were scattered; free some memory or say --fragments leave",
        )),
    }
}

/// What became of the machine's small free blocks, in notes of the stream.
fn note_fragments(
    preamble: &mut Preamble<Output>,
    fragments: &Fragments,
) -> Result<(), StreamError<Errno>> {
    let holder = match fragments {
        Fragments::Left(why) => return preamble.note("fragments", why),
        Fragments::Held(holder) => holder,
    };
    preamble.note("fragments", "held")?;
    for (key, value) in [
        ("fragments_kib", Some(holder.bytes >> 10)),
        (
            "fragments_left_kib",
            holder.left_bytes.map(|left| left >> 10),
        ),
        ("fragments_us", Some(holder.took_ns / 1000)),
    ] {
        let Some(value) = value else { continue };
        let mut text = Text::new();
        preamble.note(key, text.number(value).read().unwrap_or_default())?;
    }
    Ok(())
}

/// What a run carries from case to case.
struct Run<'r> {
    bench: Bench,
    samples: Table<Sample>,
    common: Common<'r>,
    progress: Progress,
    /// Whether every case that applies here was measured and can be trusted.
    valid: bool,
}

impl Run<'_> {
    fn every_layout(&mut self, prepared: &Prepared, rows: &mut Rows<Output>) -> Result<(), Error> {
        let mut done = 0;
        for (number, layout) in prepared.layouts.iter().enumerate() {
            let (backing, page_bytes) = (self.bench.backing, prepared.page_bytes);
            self.progress.show(done, &row::title(layout.layout, None));
            let reserve = Reserve::fork(layout.shape.readable_bytes(), page_bytes)
                .map_err(Error::kernel("fork"))?;
            let mut arena = Arena::populate(layout.shape, backing, page_bytes)
                .map_err(Error::kernel("map the arena"))?;
            reserve.fill(self.bench.clock)?;
            for case in prepared.plan.cases(number as u64) {
                self.progress
                    .show(done, &row::title(layout.layout, Some(&case)));
                let measured = self.bench.run(&case, &mut arena)?;
                let row = row::make(&self.common, layout, &case, &measured);
                rows.row(&row)?;
                self.note(&row);
                done += 1;
            }
        }
        Ok(())
    }

    fn note(&mut self, row: &BenchRow<'_>) {
        self.valid &= is_valid(&row.status);
        // The table was made for all cases, and every name is one of ours.
        let kept = Sample::from_row(row, 0).map(|sample| self.samples.push(sample));
        debug_assert_eq!(kept, Some(Ok(())));
    }

    fn conclude(mut self, quiet: bool, total: u64) -> Result<(), Error> {
        let samples = self.samples.as_mut_slice();
        let any_ok = samples
            .iter()
            .any(|one| one.outcome == summary::Outcome::Ok);
        if !quiet {
            let heading = Heading {
                kernel: self.common.kernel,
                arch: cpu::ARCH,
                page_bytes: self.common.page_bytes,
                intended: total,
                emulated: env::is_emulated(),
            };
            let mut scratch = Region::not_inherited(samples.len() * SCRATCH_PER_SAMPLE * 8)
                .map_err(Error::kernel("map memory for the summary"))?;
            print_summary(&heading, samples, scratch.words_mut())?;
        }
        match (self.valid, any_ok) {
            (true, true) => Ok(()),
            (true, false) => Err(Error::Invalid(
                "no case applies here: see the status column",
            )),
            (false, _) => Err(Error::Invalid(
                "not every case could be measured: see the status column",
            )),
        }
    }
}

/// Whether a case leaves the measurement as a whole valid: it was measured, or it does
/// not apply to what was asked.
fn is_valid(status: &Status<'_>) -> bool {
    matches!(status, Status::Ok | Status::Skipped(NOT_APPLICABLE))
}

/// The summary is a courtesy of standard error; only a defect in it is an error.
fn print_summary(
    heading: &Heading<'_>,
    samples: &mut [Sample],
    scratch: &mut [u64],
) -> Result<(), Error> {
    match summary::write(&mut stderr(), heading, samples, scratch) {
        Ok(()) | Err(SummaryError::Sink(_)) => Ok(()),
        Err(SummaryError::TooLong) => Err(Error::TooLong),
    }
}
