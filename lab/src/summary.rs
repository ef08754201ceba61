//! `summary`: what the rows of `bench` say, in the words of the appliance.
//!
//! Nothing is said before every input has proved itself whole.

mod pool;

use crate::cli::SummaryOptions;
use crate::failure::Failure;
use crate::matrix::MATRIX_CSV;
use crate::stream::{Problem, Row, Stream, StreamError, StreamReader};
use crate::text::printable;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::record::Record;
use cowitness::emit::summary::{Name, Sample};
use pool::{Machine, Measured, Pools};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Reads all inputs and gives the summary of their rows of `bench`; streams of other records
/// are checked and passed over. `warn` is told, a line each, what was taken
/// although it is not whole.
///
/// # Errors
/// [`Failure`]; the first input that fails ends it.
pub fn run(options: &SummaryOptions, warn: &dyn Fn(&str)) -> Result<String, Failure> {
    let mut pools = Pools::default();
    // The first stream of another record, for the case that there is none of bench.
    let mut other = None;
    for file in &options.files {
        if Path::new(file)
            .file_name()
            .is_some_and(|name| name == MATRIX_CSV)
        {
            let name = printable(file.as_encoded_bytes());
            warn(&format!(
                "{name} is the table of a matrix, not rows; it is passed over"
            ));
            continue;
        }
        let (name, input) = open(file)?;
        let mut streams = StreamReader::new(name.clone(), input, options.tolerance);
        while let Some(mut stream) = streams.next_stream()? {
            let measured = measured(&name, &mut stream, pools.next_source())?;
            if let Some(cut) = stream.cut() {
                warn(&format!("{cut}; taken as far as it goes"));
            }
            match measured.other {
                Some(error) => other = other.or(Some(error)),
                None => pools.add(measured)?,
            }
        }
    }
    match (pools.summarise(), other) {
        (Err(Failure::NoRows), Some(other)) => Err(other.into()),
        (summary, _) => summary,
    }
}

/// Opens an input; also what to call it.
fn open(file: &OsStr) -> Result<(String, Box<dyn BufRead>), Failure> {
    if file == "-" {
        return Ok(("standard input".to_owned(), Box::new(io::stdin().lock())));
    }
    let name = printable(file.as_encoded_bytes());
    match File::open(file) {
        Ok(file) => Ok((name, Box::new(BufReader::with_capacity(1 << 16, file)))),
        Err(error) => Err(Failure::Open { name, error }),
    }
}

/// Reads a stream to its checked end.
fn measured<R: BufRead>(
    file: &str,
    stream: &mut Stream<'_, R>,
    source: u32,
) -> Result<Measured, StreamError> {
    let mut measured = Measured {
        place: format!("{file}, stream {}", stream.number()),
        file: file.to_owned(),
        checksum: 0,
        notes: stream.notes().to_vec(),
        announced: stream.announced(),
        machine: None,
        samples: Vec::new(),
        partial: false,
        other: None,
    };
    while let Some(row) = stream.next_row()? {
        let bench: BenchRow<'_> = match row.parse() {
            // All rows of a stream are of one record; they are read to their checked end.
            Err(error) if row.record() != BenchRow::NAME => {
                measured.other.get_or_insert(error);
                continue;
            }
            parsed => parsed?,
        };
        measured.samples.push(sample(&row, &bench, source)?);
        // The reader sees to it that all rows of a stream agree in these.
        measured.machine.get_or_insert_with(|| Machine::of(&bench));
    }
    measured.checksum = stream.checksum();
    measured.partial = stream.cut().is_some();
    Ok(measured)
}

fn sample(row: &Row<'_>, bench: &BenchRow<'_>, source: u32) -> Result<Sample, StreamError> {
    Sample::from_row(bench, source).ok_or_else(|| {
        let names = [
            ("layout", bench.layout),
            ("pages", bench.pages),
            ("method", bench.method),
            ("evidence", bench.evidence),
        ];
        let long = names.iter().find(|(_, name)| Name::new(name).is_none());
        let (column, found) = *long.unwrap_or(&("record", "bench"));
        let found = crate::text::shown(found.as_bytes());
        row.error(Problem::Field { column, found })
    })
}
