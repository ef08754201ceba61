//! One line of CSV to its fields, as RFC 4180 has them, through the `csv` crate.

use super::error::Problem;
use crate::text::shown;
use csv::StringRecord;
use std::io::Cursor;

/// Splits lines into fields; its buffers serve every line of an input.
pub(super) struct Splitter {
    csv: csv::Reader<Cursor<Vec<u8>>>,
    fields: StringRecord,
}

impl Splitter {
    pub(super) fn new() -> Self {
        Self {
            csv: reader(),
            fields: StringRecord::new(),
        }
    }

    /// Splits `line`, which ends with its line feed.
    pub(super) fn split(&mut self, line: &[u8]) -> Result<(), Problem> {
        let input = self.csv.get_mut();
        input.get_mut().clear();
        input.get_mut().extend_from_slice(line);
        input.set_position(0);
        let found = self.csv.read_record(&mut self.fields);
        // In memory and with any number of fields allowed, UTF-8 is all it can object to.
        let found = found.map_err(|_| Problem::NotUtf8(shown(line)))?;
        // The csv crate sees one line. If that is blank, or has an open quote, it looks for
        // more and finds the end of its input, after which it reads nothing any more.
        let open = self.fields.iter().any(|field| field.contains('\n'));
        if !found || open {
            self.csv = reader();
        }
        if !found {
            self.fields.clear();
        }
        if open {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            return Err(Problem::OpenQuote(shown(line)));
        }
        Ok(())
    }

    /// The fields of the last line.
    pub(super) fn fields(&self) -> &StringRecord {
        &self.fields
    }
}

fn reader() -> csv::Reader<Cursor<Vec<u8>>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(2048)
        .from_reader(Cursor::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_one_after_the_other() {
        let mut splitter = Splitter::new();
        let long = "x".repeat(5000);
        let cases: [(&str, &[&str]); 6] = [
            ("a,b,\n", &["a", "b", ""]),
            ("\"a, \"\"b\"\"\",#c\n", &["a, \"b\"", "#c"]),
            (&format!("{long},1\n"), &[&long, "1"]),
            ("#a,\"\"\n", &["#a", ""]),
            ("\n", &[]),
            ("a\n", &["a"]),
        ];
        for (line, fields) in cases {
            splitter.split(line.as_bytes()).unwrap();
            assert!(
                splitter.fields().iter().eq(fields.iter().copied()),
                "{line}"
            );
        }
    }

    #[test]
    fn an_open_quote_and_foreign_bytes_are_refused_and_leave_no_trace() {
        let mut splitter = Splitter::new();
        let open = splitter.split(b"a,\"b\n");
        assert!(matches!(open, Err(Problem::OpenQuote(line)) if line == "a,\"b"));
        let foreign = splitter.split(b"a,\xe4\n");
        assert!(matches!(foreign, Err(Problem::NotUtf8(_))));
        splitter.split(b"a,b\n").unwrap();
        assert_eq!(splitter.fields(), &StringRecord::from(vec!["a", "b"]));
    }
}
