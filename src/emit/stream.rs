//! The framed stream: environment, header, rows, and an end that proves it is whole.
//!
//! ```text
//! #cowitness 1
//! #key=value
//! #rows=180
//! record,label,…
//! bench,…
//! #end rows=180 crc32=1a2b3c4d
//! ```

use super::Sink;
use super::crc::Crc32;
use super::record::{Record, Row};
use crate::text::{Full, Text};

/// First line of every stream: the version of the schema.
pub const MAGIC: &str = "#cowitness 1";

/// Why a stream could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError<E> {
    /// The sink's error.
    Sink(E),
    /// A row or a comment line is longer than its buffer.
    TooLong,
}

impl<E> From<Full> for StreamError<E> {
    fn from(Full: Full) -> Self {
        Self::TooLong
    }
}

/// Before the header: comment lines only.
pub struct Preamble<S> {
    sink: S,
}

impl<S: Sink> Preamble<S> {
    /// Starts a stream.
    ///
    /// # Errors
    /// The sink's.
    pub fn begin(mut sink: S) -> Result<Self, StreamError<S::Error>> {
        sink.write_all(MAGIC.as_bytes())
            .map_err(StreamError::Sink)?;
        sink.write_all(b"\n").map_err(StreamError::Sink)?;
        Ok(Self { sink })
    }

    /// Adds `#key=value`. Control characters in the value become `?`, so that one value
    /// is always one line.
    ///
    /// # Errors
    /// The sink's.
    pub fn note(&mut self, key: &str, value: &str) -> Result<(), StreamError<S::Error>> {
        let mut line = Text::new();
        line.add("#").add(key).add("=");
        line.add_printable(value);
        let line = line.add("\n").read()?;
        self.sink
            .write_all(line.as_bytes())
            .map_err(StreamError::Sink)
    }

    /// Announces how many rows are coming and writes the header.
    ///
    /// # Errors
    /// The sink's.
    pub fn header<'a, R: Record<'a>>(
        self,
        rows_intended: u64,
    ) -> Result<Rows<S>, StreamError<S::Error>> {
        self.columns(R::COLUMNS, rows_intended)
    }

    /// The same code for every record.
    fn columns(
        mut self,
        columns: &[&str],
        rows_intended: u64,
    ) -> Result<Rows<S>, StreamError<S::Error>> {
        let mut count = Text::new();
        self.note("rows", count.number(rows_intended).read()?)?;
        let mut header = Row::new();
        header.field(&"record");
        for column in columns {
            header.field(column);
        }
        let mut rows = Rows {
            sink: self.sink,
            crc: Crc32::new(),
            written: 0,
        };
        rows.send(header.end()?)?;
        Ok(rows)
    }
}

/// After the header: rows, then the end.
pub struct Rows<S> {
    sink: S,
    crc: Crc32,
    written: u64,
}

impl<S: Sink> Rows<S> {
    /// Writes one row, whole.
    ///
    /// # Errors
    /// The sink's; [`StreamError::TooLong`].
    pub fn row<'a, R: Record<'a>>(&mut self, record: &R) -> Result<(), StreamError<S::Error>> {
        let mut row = Row::new();
        row.field(&R::NAME);
        record.put(&mut row);
        self.send(row.end()?)?;
        self.written += 1;
        Ok(())
    }

    /// Ends the stream with the number of rows and the checksum.
    ///
    /// # Errors
    /// The sink's.
    pub fn end(mut self) -> Result<(), StreamError<S::Error>> {
        let mut line = Text::new();
        line.add("#end rows=").number(self.written);
        line.add(" crc32=").hex(self.crc.value()).add("\n");
        self.sink
            .write_all(line.read()?.as_bytes())
            .map_err(StreamError::Sink)
    }

    fn send(&mut self, line: &str) -> Result<(), StreamError<S::Error>> {
        self.crc.update(line.as_bytes());
        self.sink
            .write_all(line.as_bytes())
            .map_err(StreamError::Sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;
    use std::string::String;
    use std::vec::Vec;

    record! {
        /// For the tests.
        pub struct Pair<'a> = "pair" {
            /// Text.
            name: &'a str,
            /// Number.
            count: u64,
        }
    }

    struct Memory<'m>(&'m mut Vec<u8>, usize);

    impl Sink for Memory<'_> {
        type Error = &'static str;

        fn write_all(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
            if self.0.len() + bytes.len() > self.1 {
                return Err("full");
            }
            self.0.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn written(room: usize) -> (String, Result<(), StreamError<&'static str>>) {
        let mut bytes = Vec::new();
        let result = (|| {
            let mut preamble = Preamble::begin(Memory(&mut bytes, room))?;
            preamble.note("label", "two\nlines\r")?;
            let mut rows = preamble.header::<Pair>(2)?;
            rows.row(&Pair {
                name: "a",
                count: 1,
            })?;
            rows.row(&Pair {
                name: "b,c",
                count: 2,
            })?;
            rows.end()
        })();
        (String::from_utf8(bytes).unwrap(), result)
    }

    /// The checksum is Python's: zlib.crc32 over header line to last row.
    #[test]
    fn a_whole_stream() {
        let want = "#cowitness 1\n#label=two?lines?\n#rows=2\nrecord,name,count\npair,a,1\n\
                    pair,\"b,c\",2\n#end rows=2 crc32=624c682b\n";
        let (text, result) = written(1000);
        assert_eq!(result, Ok(()));
        assert_eq!(text, want);
    }

    #[test]
    fn a_full_sink_is_an_error_at_every_byte() {
        let whole = written(1000).0.len();
        for room in 0..whole {
            assert_eq!(written(room).1, Err(StreamError::Sink("full")), "{room}");
        }
    }
}
