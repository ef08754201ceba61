//! Framed streams: what the appliance writes, read back and checked.
//!
//! ```text
//! boot noise                      ignored
//! #cowitness 1                    a stream begins; its version
//! #label=rack 4                   notes, kept in order
//! #rows=180                       how many rows were intended
//! record,label,kernel,...         the header
//! bench,rack 4,6.18.44,...        rows, each on a line of its own
//! #end rows=180 crc32=1a2b3c4d    how many were written; header and rows, checksummed
//! more noise                      ignored, up to the next stream
//! ```
//!
//! A stream is trusted when all of it is there: three row counts that agree, a checksum
//! that holds, a header that starts with its record's columns in order. Columns that a
//! newer version added at the end are fine; records of a kind that is not known are not.
//! Carriage returns are dropped before anything is looked at, so a file with CRLF and a
//! serial console read the same.
//!
//! `cowitness env` writes the first line and notes, and nothing more: such a stream is whole
//! where the input or the next stream follows its last note.
//!
//! The checksum does not cover the lines before the header. Damage there is found when it
//! touches the first line, `#rows=`, or what makes a line a note; the text of a note is
//! taken as it stands.

mod error;
mod fields;
mod frame;
mod lines;
mod note;
mod reader;
mod row;
mod sound;

pub use error::{Place, Problem, StreamError};
#[cfg(test)]
pub(crate) use note::notes;
pub use note::{Note, Real, Told, told};
pub use reader::{Stream, StreamReader, Tolerance};
pub use row::Row;

use cowitness::emit::audit_row::AuditRow;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Record;
use cowitness::emit::sharing_row::{SharingFitRow, SharingRow};
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::startup_row::{StartupAbRow, StartupFitRow, StartupRow};
use cowitness::emit::stream::MAGIC;
use cowitness::emit::survey_row::SurveyRow;

/// What a first line starts with, before the version.
const BEGIN: &str = "#cowitness ";

/// The version of the schema this program reads.
const VERSION: &str = "1";

/// Whether notes speak of a software emulator.
#[must_use]
pub fn is_emulated(notes: &[Note]) -> bool {
    Real::of(notes) == Real::No
}

/// The command whose streams are notes alone: neither header nor rows, and no end.
pub const ENV: &str = "env";

/// A record this program knows.
struct Kind {
    name: &'static str,
    columns: &'static [&'static str],
    /// Columns that no two rows of a stream have alike; none: rows may be the same.
    case: &'static [&'static str],
    check: for<'r> fn(&Row<'r>) -> Result<(), StreamError>,
}

/// The kind of a record, which is named by its row type.
macro_rules! kind {
    ($row:ident: $($case:literal),*) => {
        Kind {
            name: $row::NAME,
            columns: $row::COLUMNS,
            case: &[$($case),*],
            check: |row| row.parse::<$row<'_>>().map(drop),
        }
    };
}

const KINDS: &[Kind] = &[
    kind!(BenchRow: "layout", "pages", "segment_pages", "method", "block_bytes", "repeat"),
    // A question that is asked again has the same answer, and counts once.
    kind!(ProbeRow: ),
    kind!(SurveyRow: "pid", "start", "end", "name"),
    kind!(AuditRow: "pid", "method", "block_bytes", "repeat"),
    kind!(MemmapRow: "mode", "advise", "bytes"),
    kind!(SharingRow: "arm", "n", "rep", "idx"),
    kind!(SharingFitRow: "arm"),
    kind!(StartupRow: "round", "arm"),
    kind!(StartupAbRow: "cache", "metric"),
    kind!(StartupFitRow: "cache", "metric", "arm", "n_objects"),
    kind!(SizesRow: "r", "page_size", "avg_chunk"),
];

fn known_records() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_appliances() {
        assert_eq!(format!("{BEGIN}{VERSION}"), MAGIC);
    }
}
