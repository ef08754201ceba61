//! From rows of `bench` to samples.

use crate::stream::{Problem, Row, StreamError};
use crate::text::shown;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::summary::{Name, Sample};

/// What is kept of a row of the stream with this number.
///
/// # Errors
/// [`Problem::Field`]: a name that the appliance does not write.
pub fn sample(row: &Row<'_>, bench: &BenchRow<'_>, source: u32) -> Result<Sample, StreamError> {
    Sample::from_row(bench, source).ok_or_else(|| {
        let names = [
            ("layout", bench.layout),
            ("pages", bench.pages),
            ("method", bench.method),
            ("evidence", bench.evidence),
        ];
        let long = names.iter().find(|(_, name)| Name::new(name).is_none());
        let (column, found) = *long.unwrap_or(&("record", "bench"));
        let found = shown(found.as_bytes());
        row.error(Problem::Field { column, found })
    })
}
