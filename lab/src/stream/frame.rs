//! One stream under way: what its lines have said so far, and whether the next one fits.
//! Knows nothing of inputs and places; `reader` does.

use super::error::Problem;
use super::fields::Splitter;
use super::{KINDS, Kind, Note};
use crate::text::shown;
use cowitness::emit::crc::Crc32;
use csv::StringRecord;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Columns that say which record and machine a row is of: the same in all rows of a stream.
const SETTINGS: [&str; 5] = ["record", "label", "kernel", "arch", "page_bytes"];

/// What every end line starts with.
pub(super) const END: &[u8] = b"#end ";

/// What every header starts with.
pub(super) const HEADER: &[u8] = b"record,";

pub(super) struct Frame {
    pub(super) notes: Vec<Note>,
    pub(super) announced: Option<u64>,
    pub(super) header: StringRecord,
    pub(super) rows: u64,
    first: StringRecord,
    /// Which fields tell rows apart.
    case: Vec<usize>,
    /// Hashes of those fields of all rows so far.
    seen: HashSet<u64>,
    crc: Crc32,
}

impl Frame {
    pub(super) fn new() -> Self {
        Self {
            notes: Vec::new(),
            announced: None,
            header: StringRecord::new(),
            rows: 0,
            first: StringRecord::new(),
            case: Vec::new(),
            seen: HashSet::new(),
            crc: Crc32::new(),
        }
    }

    /// CRC-32 of the header and the rows so far.
    pub(super) fn checksum(&self) -> u32 {
        self.crc.value()
    }

    /// Takes a line before the rows, its line feed included; whether it was the header.
    pub(super) fn preamble(
        &mut self,
        line: &[u8],
        splitter: &mut Splitter,
    ) -> Result<bool, Problem> {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if line.starts_with(END) {
            return Err(Problem::NoHeader);
        }
        if line.starts_with(b"#") {
            return self.note(text).map(|()| false);
        }
        if !line.starts_with(HEADER) {
            return Err(Problem::NotPreamble(shown(text)));
        }
        if self.announced.is_none() {
            return Err(Problem::NotAnnounced);
        }
        self.crc.update(line);
        splitter.split(line)?;
        self.header = splitter.fields().clone();
        Ok(true)
    }

    fn note(&mut self, line: &[u8]) -> Result<(), Problem> {
        let text = str::from_utf8(line).map_err(|_| Problem::NotUtf8(shown(line)))?;
        let note = text.strip_prefix('#').and_then(|note| note.split_once('='));
        let is_key = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        let Some((key, value)) = note.filter(|(key, _)| is_key(key)) else {
            return Err(Problem::NotPreamble(shown(line)));
        };
        if key == "rows" {
            return self.announce(value);
        }
        self.notes.push(Note {
            key: key.to_owned(),
            value: value.to_owned(),
        });
        Ok(())
    }

    fn announce(&mut self, value: &str) -> Result<(), Problem> {
        if self.announced.is_some() {
            return Err(Problem::AnnouncedTwice);
        }
        let rows = plain_decimal(value.as_bytes());
        self.announced =
            Some(rows.ok_or_else(|| Problem::BadAnnouncement(shown(value.as_bytes())))?);
        Ok(())
    }

    /// Takes a row, its line feed included.
    pub(super) fn row(&mut self, line: &[u8], splitter: &mut Splitter) -> Result<(), Problem> {
        self.crc.update(line);
        splitter.split(line)?;
        let fields = splitter.fields();
        if fields.len() != self.header.len() {
            return Err(Problem::Width {
                found: fields.len(),
                expected: self.header.len(),
                line: shown(line.trim_ascii_end()),
            });
        }
        if self.rows == 0 {
            let kind = known(&fields[0])?;
            kind.check(&self.header)?;
            self.case = kind.case(&self.header);
            self.first = fields.clone();
        }
        self.same_settings(fields)?;
        self.once(fields)?;
        self.rows += 1;
        Ok(())
    }

    fn same_settings(&self, fields: &StringRecord) -> Result<(), Problem> {
        let columns = self.header.iter().zip(fields).zip(&self.first);
        for ((column, found), first) in columns.take(SETTINGS.len()) {
            if found != first && SETTINGS.contains(&column) {
                return Err(Problem::Mismatch {
                    column: shown(column.as_bytes()),
                    found: shown(found.as_bytes()),
                    first: shown(first.as_bytes()),
                });
            }
        }
        Ok(())
    }

    /// A case that is there twice would look like more evidence. That two of a million cases
    /// have the same 64 bits has a chance of 1 in 30 million.
    fn once(&mut self, fields: &StringRecord) -> Result<(), Problem> {
        let mut hash = DefaultHasher::new();
        for &index in &self.case {
            fields[index].hash(&mut hash);
        }
        if self.case.is_empty() || self.seen.insert(hash.finish()) {
            return Ok(());
        }
        let word = |index: &usize| format!("{} {}", &self.header[*index], &fields[*index]);
        let words: Vec<String> = self.case.iter().map(word).collect();
        Err(Problem::Repeated(shown(words.join(", ").as_bytes())))
    }

    /// Takes the end line, without its line feed: is the stream whole?
    pub(super) fn end(&self, line: &[u8]) -> Result<(), Problem> {
        let Some((end, written)) = parse_end(line) else {
            return Err(Problem::BadEnd(shown(line)));
        };
        let (rows, computed) = (self.rows, self.checksum());
        if rows != end {
            return Err(Problem::Count { rows, end });
        }
        if computed != written {
            return Err(Problem::Checksum { computed, written });
        }
        if rows == 0 && KINDS.iter().all(|kind| kind.check(&self.header).is_err()) {
            return Err(Problem::UnknownHeader);
        }
        match self.announced {
            Some(announced) if announced > rows => Err(Problem::EndedEarly { rows, announced }),
            Some(announced) if announced < rows => Err(Problem::TooMany { rows, announced }),
            _ => Ok(()),
        }
    }
}

fn known(record: &str) -> Result<&'static Kind, Problem> {
    let kind = KINDS.iter().find(|kind| kind.name == record);
    kind.ok_or_else(|| Problem::UnknownRecord {
        found: shown(record.as_bytes()),
    })
}

impl Kind {
    /// Where in `header`, which has been checked, the columns are that tell rows apart.
    fn case(&self, header: &StringRecord) -> Vec<usize> {
        let place = |column: &&str| header.iter().position(|found| found == *column);
        self.case.iter().filter_map(place).collect()
    }

    /// Whether `header` starts with `record` and this kind's columns, at least those up to `status`:
    /// what is behind came later.
    fn check(&self, header: &StringRecord) -> Result<(), Problem> {
        // Every header starts with `record`; `preamble` has seen to that.
        let mut found = header.iter().skip(1);
        for (index, &expected) in self.columns.iter().enumerate() {
            let found = found.next();
            if found.is_none() && self.columns[..index].contains(&"status") {
                break;
            }
            let found = found.unwrap_or("");
            if found != expected {
                return Err(Problem::Header {
                    record: self.name,
                    number: index + 2,
                    expected,
                    found: shown(found.as_bytes()),
                });
            }
        }
        Ok(())
    }
}

/// `#end rows=N crc32=xxxxxxxx` and nothing else: an end that is written another way is
/// not one of ours.
fn parse_end(line: &[u8]) -> Option<(u64, u32)> {
    let text = str::from_utf8(line).ok()?;
    let (rows, crc) = text.strip_prefix("#end rows=")?.split_once(" crc32=")?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if crc.len() != 8 || !crc.bytes().all(is_hex) {
        return None;
    }
    Some((
        plain_decimal(rows.as_bytes())?,
        u32::from_str_radix(crc, 16).ok()?,
    ))
}

/// A number as the appliance writes it: without sign and leading zeros.
fn plain_decimal(digits: &[u8]) -> Option<u64> {
    let padded = digits.len() > 1 && digits[0] == b'0';
    cowitness::proc::number::decimal(digits).filter(|_| !padded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_has_one_form() {
        assert_eq!(
            parse_end(b"#end rows=10 crc32=00a01b2c"),
            Some((10, 0x00a0_1b2c))
        );
        for bad in [
            "#end rows=10 crc32=00a01b2",
            "#end rows=10 crc32=00a01b2c ",
            "#end rows=10 crc32=00A01B2C",
            "#end rows=10 crc32=+0a01b2c",
            "#end rows=010 crc32=00a01b2c",
            "#end rows=+1 crc32=00a01b2c",
            "#end rows= crc32=00a01b2c",
            "#end  rows=10 crc32=00a01b2c",
            "#end crc32=00a01b2c rows=10",
        ] {
            assert_eq!(parse_end(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn notes_are_keys_and_values() {
        let (mut frame, mut splitter) = (Frame::new(), Splitter::new());
        for line in ["#label=a=b, #c\n", "#empty=\n", "#rows=0\n"] {
            assert!(!frame.preamble(line.as_bytes(), &mut splitter).unwrap());
        }
        let notes = frame.notes.iter().map(|note| (&*note.key, &*note.value));
        assert!(notes.eq([("label", "a=b, #c"), ("empty", "")]));
        for line in [
            "#\n",
            "#=\n",
            "#a b=c\n",
            "#a\n",
            "\n",
            "a=b\n",
            "records,a\n",
        ] {
            let refused = frame.preamble(line.as_bytes(), &mut splitter);
            assert!(matches!(refused, Err(Problem::NotPreamble(_))), "{line}");
        }
    }
}
