//! The answers as a table on standard error: a line for each question, a column for each
//! reader.

use crate::emit::probe_row::ProbeRow;
use crate::emit::record::Status;
use crate::fixture::kinds::{KINDS, Kind, Op};
use crate::reader::Method;
use crate::sys::Errno;
use crate::sys::stdio::Output;
use crate::text::{Full, Text};
use heapless::Vec;

/// Most questions: every op of every kind.
const LINES_MAX: usize = 3 * KINDS.len();
/// Where the first reader's column begins, and how wide a column is.
const FIRST: usize = 29;
const WIDTH: usize = 17;

/// The lines so far.
pub(super) struct Grid {
    lines: Vec<Text, LINES_MAX>,
    column: usize,
}

impl Grid {
    pub(super) const fn new() -> Self {
        Self {
            lines: Vec::new(),
            column: 0,
        }
    }

    /// Begins the line of a question.
    pub(super) fn next(&mut self, kind: &Kind, op: Op) {
        let mut line = Text::new();
        line.add("  ").add(kind.name).add(", ").add(op.name());
        // There is room for every question.
        let _ = self.lines.push(line);
        self.column = FIRST;
    }

    /// Adds an answer to the last line. Controls have no column.
    pub(super) fn note(&mut self, row: &ProbeRow<'_>) {
        let Some(line) = self.lines.last_mut().filter(|_| row.method != "none") else {
            return;
        };
        line.pad_to(self.column);
        self.column += WIDTH;
        match (row.status, row.returned_bytes) {
            (Status::Skipped(_), _) => line.add("skipped"),
            (_, None | Some(0)) => line.add(row.errno),
            (_, Some(bytes)) if bytes == row.requested_bytes => line.add("all"),
            (_, Some(bytes)) => line.number(bytes).add(" ").add(row.errno),
        };
        if row.content == "zero" {
            line.add(" zero");
        }
        match row.split_pages {
            Some(0) => {}
            Some(split) => drop(line.add(" S").number(split)),
            None => drop(line.add(" ?")),
        }
        if row.faulted_in_pages.is_some_and(|pages| pages > 0) {
            line.add(" F");
        }
    }

    pub(super) fn write(&self, out: Output, methods: &[Method]) -> Result<(), Errno> {
        let mut heading = Text::new();
        heading.add("cowitness probe");
        for (index, method) in methods.iter().enumerate() {
            heading.pad_to(FIRST + index * WIDTH).add(method.name());
        }
        send(out, &heading)?;
        for line in &self.lines {
            send(out, line)?;
        }
        out.write_all(
            b"all: every byte came; N ERRNO: N bytes came, then the errno; zero: zeros came;\n\
              SN: reading split N pages that were shared; F: it faulted pages into the target\n",
        )
    }
}

fn send(out: Output, line: &Text) -> Result<(), Errno> {
    let line = line.read().map_err(|Full| Errno::FBIG)?;
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")
}
