//! `summary`: what the rows of `bench` say, in the words of the appliance.
//!
//! Nothing is said before every input has proved itself whole.

mod fit;
mod pool;

use crate::cli::SummaryOptions;
use crate::failure::Failure;
use crate::runs::{Machine, Source, cut_warning, each_stream, notes, sample};
use crate::stream::{Stream, StreamError};
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::record::Record;
use pool::{Measured, Pools};
use std::io::BufRead;

/// Reads all inputs and gives the summary of their rows of `bench`; streams of other records
/// are checked and passed over. `warn` is told, a line each, what was taken
/// although it is not whole. `width` is that of the terminal, if the text goes to one.
///
/// # Errors
/// [`Failure`]; the first input that fails ends it.
pub fn run(
    options: &SummaryOptions,
    width: Option<usize>,
    warn: &dyn Fn(&str),
) -> Result<String, Failure> {
    let mut pools = Pools::default();
    // The first stream of another record, for the case that there is none of bench.
    let mut other = None;
    let take = &mut |name: &str, stream: &mut Stream<'_, _>| {
        let measured = measured(name, stream, pools.next_source())?;
        if stream.is_unproved() {
            return Ok(());
        }
        if let Some(cut) = stream.cut() {
            warn(&cut_warning(cut));
        }
        match measured.other {
            Some(error) => {
                other.get_or_insert(error);
            }
            None => pools.add(measured)?,
        }
        Ok(())
    };
    let lost = each_stream(&options.files, options.tolerance, warn, take)?;
    if pools.is_empty() {
        return Err(match (lost.why(), other) {
            (Failure::NoRows, Some(other)) => other.into(),
            (why, _) => why,
        });
    }
    pools.lost(lost.lines(warn));
    let text = pools.summarise()?;
    Ok(width.map_or(text.clone(), |width| fit::fit(&text, width)))
}

/// Reads a stream to its checked end.
fn measured<R: BufRead>(
    file: &str,
    stream: &mut Stream<'_, R>,
    source: u32,
) -> Result<Measured, StreamError> {
    let mut measured = Measured {
        source: Source {
            place: format!("{file}, stream {}", stream.number()),
            file: file.to_owned(),
            record: BenchRow::NAME.to_owned(),
            checksum: 0,
            notes: stream.notes().to_vec(),
            partial: false,
            rows: 0,
            intended: 0,
            pids: Vec::new(),
        },
        announced: stream.announced(),
        machine: None,
        samples: Vec::new(),
        other: None,
    };
    while let Some(row) = stream.next_row()? {
        let bench: BenchRow<'_> = match row.parse() {
            // All rows of a stream are of one record; they are read to their checked end.
            Err(error) if row.record() != BenchRow::NAME => {
                row.check()?;
                measured.other.get_or_insert(error);
                continue;
            }
            parsed => parsed?,
        };
        measured.samples.push(sample(&row, &bench, source)?);
        // The reader sees to it that all rows of a stream agree in these.
        if measured.machine.is_none() {
            let machine = Machine {
                label: bench.label.to_owned(),
                kernel: bench.kernel.to_owned(),
                arch: bench.arch.to_owned(),
                page_bytes: Some(bench.page_bytes),
            };
            notes::agree(&measured.source.notes, &row, &machine)?;
            measured.machine = Some(machine);
        }
    }
    let rows = measured.samples.len() as u64;
    measured.source.rows = rows;
    measured.source.intended = measured.announced.unwrap_or(rows);
    measured.source.checksum = stream.checksum();
    measured.source.partial = stream.cut().is_some();
    Ok(measured)
}
