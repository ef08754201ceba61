//! One row and its place.

use super::KINDS;
use super::error::{Place, Problem, StreamError};
use super::sound::Sound;
use crate::text::shown;
use cowitness::emit::record::Record;
use csv::StringRecord;

/// One row, borrowed until the next is read.
pub struct Row<'r> {
    pub(super) header: &'r StringRecord,
    pub(super) fields: &'r StringRecord,
    pub(super) source: &'r str,
    pub(super) stream: u64,
    pub(super) line: u64,
    pub(super) row: u64,
}

impl<'r> Row<'r> {
    /// The name of its record, which is one that this program knows.
    #[must_use]
    pub fn record(&self) -> &'r str {
        self.fields.get(0).unwrap_or("")
    }

    /// The row as a record. Columns after the record's own are ignored; those behind `status` that an
    /// older version does not have are empty.
    ///
    /// # Errors
    /// [`Problem::OtherRecord`], [`Problem::Field`], [`Problem::Contradiction`].
    pub fn parse<T: Record<'r> + Sound>(&self) -> Result<T, StreamError> {
        // The header was checked, and the row has as many fields.
        let mut fields = self.fields.iter().chain(std::iter::repeat(""));
        let record = fields.next().unwrap_or("");
        if record != T::NAME {
            return Err(self.error(Problem::OtherRecord {
                found: shown(record.as_bytes()),
                wanted: T::NAME,
            }));
        }
        let read = T::get(&mut fields).map_err(|column| self.error(self.bad_field(column)))?;
        match read.contradiction() {
            Some(what) => Err(self.error(Problem::Contradiction(what))),
            None => Ok(read),
        }
    }

    /// Whether it is sound, whatever record it is of.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn check(&self) -> Result<(), StreamError> {
        let kind = KINDS.iter().find(|kind| kind.name == self.record());
        kind.map_or(Ok(()), |kind| (kind.check)(self))
    }

    fn bad_field(&self, column: &'static str) -> Problem {
        let mut fields = self.header.iter().zip(self.fields);
        let found = fields.find(|(name, _)| *name == column);
        Problem::Field {
            column,
            found: shown(found.map_or("", |(_, value)| value).as_bytes()),
        }
    }

    /// `problem` of this row.
    pub(crate) fn error(&self, problem: Problem) -> StreamError {
        StreamError {
            place: Place {
                source: self.source.to_owned(),
                stream: Some(self.stream),
                line: self.line,
                row: Some(self.row),
            },
            problem: Box::new(problem),
        }
    }
}
