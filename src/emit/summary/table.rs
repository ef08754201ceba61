//! The table of distributions.

use super::sample::{Phase, Sample};
use super::words::place;
use super::{Lines, Outcome, Sink, SummaryError};
use crate::stats::{PARTS, Summary, mib_s_centi, rounded};
use crate::text::Text;

/// Throughput of every layout, block, pass and method.
pub(super) fn distributions<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
    scratch: &mut [u64],
) -> Result<(), SummaryError<S::Error>> {
    if samples.iter().all(|one| one.outcome != Outcome::Ok) {
        return Ok(());
    }
    out.text(
        "\nThroughput in MiB/s; quartiles by linear interpolation, outliers counted and kept",
    )?;
    out.text(
        "  layout           block  pass  method          N     min     P25  median     P75     P95     max  outliers",
    )?;
    for group in samples.chunk_by(|a, b| a.group() == b.group()) {
        for phase in Phase::BOTH {
            for cases in group.chunk_by(|a, b| a.method == b.method) {
                let mut rates = cases.iter().filter_map(|one| {
                    let (bytes, ns) = phase.work(one)?;
                    mib_s_centi(bytes, ns)
                });
                if let Some(summary) = summarise(&mut rates, scratch) {
                    out.line(&row(&cases[0], phase, &summary))?;
                }
            }
        }
    }
    Ok(())
}

/// Quartiles of what `values` gives, in [`PARTS`] of it; `None` if it gives nothing.
pub(super) fn summarise(
    values: &mut dyn Iterator<Item = u64>,
    scratch: &mut [u64],
) -> Option<Summary> {
    let mut count = 0;
    for (place, value) in scratch.iter_mut().zip(values) {
        *place = value.saturating_mul(PARTS);
        count += 1;
    }
    Summary::new(&mut scratch[..count])
}

fn row(first: &Sample, phase: Phase, summary: &Summary) -> Text {
    let mut line = place(first);
    line.add(phase.name())
        .add("  ")
        .add(first.method.as_str())
        .pad_to(46);
    line.right_number(2, summary.n);
    for value in [
        summary.min,
        summary.p25,
        summary.median,
        summary.p75,
        summary.p95,
        summary.max,
    ] {
        line.right(8, &|part| add_rate(part, value));
    }
    line.right_number(10, summary.outliers);
    line
}

/// [`PARTS`] of hundredths of MiB/s: whole numbers from 100 on, two decimals below.
pub(super) fn add_rate(line: &mut Text, parts: u64) {
    let centi = rounded(parts, PARTS);
    if centi < 10_000 {
        line.hundredths(centi);
    } else {
        line.number(rounded(parts, 100 * PARTS));
    }
}
