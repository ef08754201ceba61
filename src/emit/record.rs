//! Records: named fields that become a CSV row and come back from one.
//!
//! [`record!`](crate::record) declares a struct once; its columns, its row and its parser
//! follow from the declaration, for the appliance and the lab alike.

use super::fixed::{Centi, Milli};
use crate::text::{Full, Text};

/// A row under construction.
#[derive(Debug, Default)]
pub struct Row {
    text: Text,
    fields: usize,
}

impl Row {
    /// No fields yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            text: Text::new(),
            fields: 0,
        }
    }

    /// Adds a field.
    pub fn field<'a>(&mut self, field: &impl Field<'a>) {
        if self.fields > 0 {
            self.text.add(",");
        }
        self.fields += 1;
        field.put(&mut self.text);
    }

    /// Ends it with a line feed and gives its text.
    ///
    /// # Errors
    /// [`Full`]: the row is too long.
    pub fn end(&mut self) -> Result<&str, Full> {
        self.text.add("\n").read()
    }
}

/// A value that stands in one field.
pub trait Field<'a>: Sized {
    /// Writes it; quoted where RFC 4180 asks for it.
    fn put(&self, out: &mut Text);

    /// Reads it back from an unquoted field; `None` if it is no such value.
    fn get(text: &'a str) -> Option<Self>;
}

/// A record that knows its columns.
pub trait Record<'a>: Sized {
    /// Value of the first column, `record`.
    const NAME: &'static str;
    /// The columns after `record`, in order.
    const COLUMNS: &'static [&'static str];

    /// Writes the fields after `record`.
    fn put(&self, row: &mut Row);

    /// Reads the fields after `record`; columns that a newer version added at the end
    /// are ignored.
    ///
    /// # Errors
    /// The column that is missing or holds no such value.
    fn get(fields: &mut dyn Iterator<Item = &'a str>) -> Result<Self, &'static str>;
}

/// Declares a record.
#[macro_export]
macro_rules! record {
    (
        $(#[$about:meta])*
        pub struct $name:ident<$life:lifetime> = $record:literal {
            $($(#[$doc:meta])* $field:ident: $kind:ty,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<$life> {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl<$life> $crate::emit::record::Record<$life> for $name<$life> {
            const NAME: &'static str = $record;
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];

            fn put(&self, row: &mut $crate::emit::record::Row) {
                $(row.field(&self.$field);)*
            }

            fn get(
                fields: &mut dyn Iterator<Item = &$life str>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: fields
                        .next()
                        .and_then($crate::emit::record::Field::get)
                        .ok_or(stringify!($field))?,)*
                })
            }
        }
    };
}

/// Adds `prefix` and `text` as one field, quoted where RFC 4180 asks for it, and where
/// a `#` would begin a comment to the readers that are told so.
fn put_text(out: &mut Text, prefix: &str, text: &str) {
    let special = |byte| matches!(byte, b',' | b'"' | b'#' | b'\r' | b'\n');
    if !text.bytes().any(special) {
        out.add(prefix).add(text);
        return;
    }
    out.add("\"").add(prefix);
    for (index, part) in text.split('"').enumerate() {
        out.add(if index == 0 { "" } else { "\"\"" }).add(part);
    }
    out.add("\"");
}

impl<'a> Field<'a> for &'a str {
    fn put(&self, out: &mut Text) {
        put_text(out, "", self);
    }

    fn get(text: &'a str) -> Option<Self> {
        Some(text)
    }
}

impl Field<'_> for u64 {
    fn put(&self, out: &mut Text) {
        out.number(*self);
    }

    fn get(text: &str) -> Option<Self> {
        crate::proc::number::decimal(text.as_bytes())
    }
}

impl Field<'_> for i64 {
    fn put(&self, out: &mut Text) {
        out.signed(*self);
    }

    fn get(text: &str) -> Option<Self> {
        let plain = !text.starts_with('+');
        text.parse().ok().filter(|_| plain)
    }
}

impl Field<'_> for Centi {
    fn put(&self, out: &mut Text) {
        out.hundredths(self.0);
    }

    fn get(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

impl Field<'_> for Milli {
    fn put(&self, out: &mut Text) {
        out.thousandths(self.0);
    }

    fn get(text: &str) -> Option<Self> {
        Self::parse(text)
    }
}

/// Unknown is empty, never 0.
impl<'a, T: Field<'a>> Field<'a> for Option<T> {
    fn put(&self, out: &mut Text) {
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(text: &'a str) -> Option<Self> {
        if text.is_empty() {
            return Some(None);
        }
        T::get(text).map(Some)
    }
}

/// How a measurement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status<'a> {
    /// All of it was read.
    Ok,
    /// The reads of a pass ended early, after so many bytes.
    Short(u64),
    /// A read failed with this errno, by name.
    Errno(&'a str),
    /// It was not measured, or cannot be trusted, for this reason.
    Skipped(&'a str),
}

impl<'a> Field<'a> for Status<'a> {
    fn put(&self, out: &mut Text) {
        match *self {
            Self::Ok => put_text(out, "ok", ""),
            Self::Short(bytes) => {
                out.add("short:").number(bytes);
            }
            Self::Errno(name) => put_text(out, "errno:", name),
            Self::Skipped(reason) => put_text(out, "skipped:", reason),
        }
    }

    fn get(text: &'a str) -> Option<Self> {
        match text.split_once(':') {
            None if text == "ok" => Some(Self::Ok),
            Some(("short", bytes)) => Field::get(bytes).map(Self::Short),
            Some(("errno", name)) if !name.is_empty() => Some(Self::Errno(name)),
            Some(("skipped", reason)) if !reason.is_empty() => Some(Self::Skipped(reason)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    record! {
        /// For the tests.
        pub struct Sample<'a> = "sample" {
            /// Text.
            name: &'a str,
            /// A number that may be unknown.
            count: Option<u64>,
            /// A difference.
            change: i64,
            /// How it ended.
            status: Status<'a>,
        }
    }

    const ONE: Sample<'static> = Sample {
        name: "a \"b\", c",
        count: None,
        change: -3,
        status: Status::Short(4096),
    };

    #[test]
    fn a_row_is_quoted_where_it_must_be_and_unknown_is_empty() {
        let mut row = Row::new();
        ONE.put(&mut row);
        assert_eq!(row.end().unwrap(), "\"a \"\"b\"\", c\",,-3,short:4096\n");
        assert_eq!(Sample::COLUMNS, ["name", "count", "change", "status"]);
    }

    #[test]
    fn fields_come_back() {
        let fields = ["a \"b\", c", "", "-3", "short:4096", "a later column"];
        assert_eq!(Sample::get(&mut fields.into_iter()), Ok(ONE));
    }

    #[test]
    fn a_bad_field_is_named() {
        let bad: [(&[&str], &str); 6] = [
            (&[], "name"),
            (&["a", "-1", "0", "ok"], "count"),
            (&["a", "18446744073709551616", "0", "ok"], "count"),
            (&["a", "1", "", "ok"], "change"),
            (&["a", "1", "+2", "ok"], "change"),
            (&["a", "1", "2", "okay"], "status"),
        ];
        for (fields, column) in bad {
            let fields: Vec<&str> = fields.into();
            assert_eq!(Sample::get(&mut fields.into_iter()), Err(column));
        }
    }

    #[test]
    fn every_status_comes_back() {
        for status in [
            Status::Ok,
            Status::Short(0),
            Status::Errno("EIO"),
            Status::Skipped("no: reason"),
        ] {
            let mut text = Text::new();
            status.put(&mut text);
            assert_eq!(Status::get(text.read().unwrap()), Some(status));
        }
        let mut text = Text::new();
        Status::Skipped("this, or \"that\"").put(&mut text);
        assert_eq!(text.read(), Ok("\"skipped:this, or \"\"that\"\"\""));
    }

    #[test]
    fn a_row_that_does_not_fit_is_an_error() {
        let long = "x".repeat(crate::text::TEXT_MAX);
        let mut row = Row::new();
        row.field(&long.as_str());
        assert_eq!(row.end(), Err(Full));
    }
}
