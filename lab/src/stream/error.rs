//! What can be wrong with a stream: where, what, and what to do about it.

use super::lines::LINE_MAX;
use super::{MAGIC, VERSION, known_records};
use crate::input::Damage;
use std::fmt;
use std::io;
use thiserror::Error;

/// Why an input is refused, and the place where that was seen.
#[derive(Debug, Error)]
#[error("{place}: {problem}")]
pub struct StreamError {
    /// Where.
    pub place: Place,
    /// What.
    #[source]
    pub problem: Box<Problem>,
}

impl StreamError {
    /// Whether the input itself is at fault. `false`: it could not be read, so nothing is
    /// known about it.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        match &*self.problem {
            // Compressed bytes that are damaged or end too early are the input's fault.
            Problem::Read(error) => Damage::of(error).is_some(),
            _ => true,
        }
    }
}

/// A place in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The input's name.
    pub source: String,
    /// Which stream of the input, from 1; `None` outside of streams.
    pub stream: Option<u64>,
    /// Which line of the input, from 1; 0 if it has none.
    pub line: u64,
    /// Which row of the stream, from 1; `None` if the line is no row.
    pub row: Option<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.source)?;
        if let Some(stream) = self.stream {
            write!(out, ", stream {stream}")?;
        }
        if self.line > 0 {
            write!(out, ", line {}", self.line)?;
        }
        self.row.map_or(Ok(()), |row| write!(out, " (row {row})"))
    }
}

/// What is wrong. Text quoted from an input is clipped and has its control characters
/// escaped, so that a message is always one line.
#[derive(Debug, Error)]
pub enum Problem {
    /// The input could not be read further.
    #[error("cannot read on: {0}")]
    Read(#[source] io::Error),
    /// The input holds no stream at all.
    #[error("no stream found: no line is '{MAGIC}'")]
    NoStream,
    /// A stream of another version of the schema.
    #[error("schema version '{0}' is unknown; this program reads version {VERSION}")]
    UnknownVersion(String),
    /// A header or an end outside of any stream.
    #[error("'{0}' belongs to a stream whose first line, '{MAGIC}', is missing or damaged")]
    Orphan(String),
    /// A line of a stream is longer than anything the appliance writes.
    #[error("the line is longer than {LINE_MAX} bytes")]
    LongLine,
    /// A line of a stream is not text.
    #[error("the line is not UTF-8: '{0}'")]
    NotUtf8(String),
    /// A line before the first row that has no place there.
    #[error("'{0}' is neither a note '#key=value' nor a header 'record,...'")]
    NotPreamble(String),
    /// `#rows=` without a plain number.
    #[error("'#rows={0}' announces no number of rows")]
    BadAnnouncement(String),
    /// `#rows=` for the second time.
    #[error("'#rows=' stands here for the second time")]
    AnnouncedTwice,
    /// A header before `#rows=`.
    #[error("the header comes without '#rows=N' before it: the number of rows is not announced")]
    NotAnnounced,
    /// Rows of a kind this program does not know.
    #[error("unknown record '{found}'; this program reads: {}", known_records())]
    UnknownRecord {
        /// What the first column says.
        found: String,
    },
    /// A header that does not start with its record's columns in order.
    #[error("column {number} of the header is '{found}' where '{record}' has '{expected}'")]
    Header {
        /// The record.
        record: &'static str,
        /// Which column, from 1.
        number: usize,
        /// The column's name in the schema.
        expected: &'static str,
        /// What the header says; empty if it ends before.
        found: String,
    },
    /// A header of no known record, in a stream without rows.
    #[error(
        "the header is of no known record; this program reads: {}",
        known_records()
    )]
    UnknownHeader,
    /// A line that has not as many fields as the header.
    #[error("field count {found}, the header's is {expected}: '{line}'")]
    Width {
        /// Fields of the line.
        found: usize,
        /// Columns of the header.
        expected: usize,
        /// The line.
        line: String,
    },
    /// A quote that its line does not close. No field of any record has a line feed.
    #[error("a quoted field is not closed on its line: '{0}'")]
    OpenQuote(String),
    /// Rows of different records or machines in one stream.
    #[error("mismatched settings: '{column}' is '{found}', in the stream's first row '{first}'")]
    Mismatch {
        /// The column.
        column: String,
        /// Its value here.
        found: String,
        /// Its value in the stream's first row.
        first: String,
    },
    /// Rows that are not of the record that was asked for.
    #[error("rows of '{found}'; '{wanted}' is needed here")]
    OtherRecord {
        /// The record of the stream.
        found: String,
        /// The record that was asked for.
        wanted: &'static str,
    },
    /// A row about another machine than the stream's notes.
    #[error("the notes contradict the row: '{column}' is '{found}' here, and noted as '{noted}'")]
    Noted {
        /// The column.
        column: &'static str,
        /// Its value here.
        found: String,
        /// The note's.
        noted: String,
    },
    /// A case that the stream has had before: counted twice it would look like more evidence.
    #[error("the same case for the second time in one stream: {0}")]
    Repeated(String),
    /// A field that holds no value of its column.
    #[error("'{found}' is no value of column '{column}'")]
    Field {
        /// The column.
        column: &'static str,
        /// What stands there.
        found: String,
    },
    /// Columns of one row that cannot all be true.
    #[error("the row contradicts itself: {0}")]
    Contradiction(String),
    /// `#end ` without a plain count and checksum.
    #[error("'{0}' is not '#end rows=N crc32=' and eight lower-case hexadecimal digits")]
    BadEnd(String),
    /// `#end ` before the header.
    #[error("the stream ends before its header")]
    NoHeader,
    /// No `#end` before the input's end or the next stream.
    #[error("truncated: no whole '#end' line, so no checksum; {rows} of {} rows are there", or_unknown(*announced))]
    Truncated {
        /// Whole rows seen.
        rows: u64,
        /// What `#rows=` said, if that line is there.
        announced: Option<u64>,
    },
    /// The end counts other rows than are there.
    #[error("'#end' says rows={end}, the row count is {rows}")]
    Count {
        /// Rows seen.
        rows: u64,
        /// What the end says.
        end: u64,
    },
    /// Fewer rows than announced, properly ended: the measurement stopped early.
    #[error("ended early: {rows} of {announced} rows are there")]
    EndedEarly {
        /// Rows seen.
        rows: u64,
        /// What `#rows=` said.
        announced: u64,
    },
    /// More rows than announced.
    #[error("'#rows=' says {announced}, the row count is {rows}")]
    TooMany {
        /// Rows seen.
        rows: u64,
        /// What `#rows=` said.
        announced: u64,
    },
    /// The bytes are not those that were written.
    #[error("bad checksum: header and rows have crc32 {computed:08x}, '#end' says {written:08x}")]
    Checksum {
        /// Of the bytes read.
        computed: u32,
        /// What the end says.
        written: u32,
    },
}

fn or_unknown(rows: Option<u64>) -> String {
    rows.map_or_else(
        || "an unknown number of".to_owned(),
        |rows| rows.to_string(),
    )
}

impl Problem {
    /// What to do about it, in one line.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Read(error) => match Damage::of(error) {
                Some(damage) => damage.remedy(),
                None => "check the file and its permissions",
            },
            Self::NoStream => {
                "give the appliance's standard output, or a console log that holds it"
            }
            Self::UnknownVersion(_) | Self::UnknownRecord { .. } | Self::UnknownHeader => {
                "use the cowitness-lab that belongs to the cowitness which wrote it"
            }
            Self::Header { .. }
            | Self::Mismatch { .. }
            | Self::Noted { .. }
            | Self::Repeated(_)
            | Self::Field { .. }
            | Self::Contradiction(_) => {
                "the file was edited or comes from another version: use it as cowitness wrote it"
            }
            Self::OtherRecord { .. } => "give a file of the record that is needed",
            Self::Truncated { .. } | Self::EndedEarly { .. } => {
                "measure or copy it again; --partial takes the whole rows that are there"
            }
            Self::TooMany { .. } => {
                "survey writes more rows than it announced if the process maps more meanwhile (cowitness ended with \
                 status 3): stop the process, and survey it again; else the stream was damaged"
            }
            _ => "the stream was damaged, or other output was mixed in: measure or copy it again",
        }
    }

    /// Whether the line is none that the appliance writes, in shape alone.
    pub(super) fn is_noise(&self) -> bool {
        matches!(
            self,
            Self::Width { .. } | Self::NotUtf8(_) | Self::OpenQuote(_) | Self::LongLine
        )
    }

    /// Whether the bytes before it may be wrong already, with nothing to prove them.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Read(error) if Damage::of(error).is_some())
    }

    /// Whether rows are missing at the end and nothing else is wrong.
    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::EndedEarly { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_names_what_is_known() {
        let mut place = Place {
            source: "a.csv".to_owned(),
            stream: None,
            line: 0,
            row: None,
        };
        assert_eq!(place.to_string(), "a.csv");
        place.line = 7;
        place.stream = Some(2);
        place.row = Some(3);
        assert_eq!(place.to_string(), "a.csv, stream 2, line 7 (row 3)");
    }
}
