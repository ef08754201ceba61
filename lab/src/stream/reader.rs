//! From an input to its streams and rows, line by line.

use super::error::{Place, Problem, StreamError};
use super::fields::Splitter;
use super::frame::{END, Frame, HEADER};
use super::lines::{Ending, Lines};
use super::{BEGIN, ENV, Note, Row, VERSION};
use crate::text::shown;
use std::io::BufRead;
use std::mem;

/// Whether a stream that is not whole is taken all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// It is refused.
    Whole,
    /// Of a stream whose end is missing or early the whole rows are taken, and [`Stream::cut`]
    /// tells. One that is damaged has to be left out, as [`Stream::is_unproved`] tells; those
    /// beside it are whole.
    Partial,
}

/// What the next line is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Noise, or the first line of a stream.
    Between,
    /// A note or the header.
    Preamble,
    /// A row or the end.
    Rows,
    /// Nothing: the input is at its end or was refused.
    Over,
}

/// Reads the framed streams of one input.
///
/// Lines before, between and after streams are ignored: a console log may hold anything
/// there, and what a firmware leaves in front of a first line, too. Within a stream
/// nothing is. One line is in memory at a time.
pub struct StreamReader<R> {
    source: String,
    lines: Lines<R>,
    tolerance: Tolerance,
    phase: Phase,
    number: u64,
    frame: Frame,
    splitter: Splitter,
    cut: Option<StreamError>,
    /// Whether what is wrong may have made rows wrong before it showed.
    damaged: bool,
}

impl<R: BufRead> StreamReader<R> {
    /// Reads from `input`, which errors call `source`.
    pub fn new(source: impl Into<String>, input: R, tolerance: Tolerance) -> Self {
        Self {
            source: source.into(),
            lines: Lines::new(input),
            tolerance,
            phase: Phase::Between,
            number: 0,
            frame: Frame::new(),
            splitter: Splitter::new(),
            cut: None,
            damaged: false,
        }
    }

    /// Goes to the next stream, past what is left of the last one. `None` at the end of
    /// the input, and after an error.
    ///
    /// # Errors
    /// Everything that [`Problem`] lists; an input without any stream is an error.
    pub fn next_stream(&mut self) -> Result<Option<Stream<'_, R>>, StreamError> {
        let begun = self.begin();
        if begun.is_err() {
            self.phase = Phase::Over;
        }
        Ok(begun?.then_some(Stream { reader: self }))
    }

    fn begin(&mut self) -> Result<bool, StreamError> {
        while self.take_row()? {}
        if !self.find()? {
            return Ok(false);
        }
        while self.phase == Phase::Preamble {
            self.take_preamble()?;
        }
        Ok(true)
    }

    /// Looks for the first line of a stream.
    fn find(&mut self) -> Result<bool, StreamError> {
        while self.phase == Phase::Between && self.advance_between()? {
            let line = self.lines.text();
            if let Some(version) = version(line) {
                let unknown = (version != VERSION.as_bytes()).then(|| shown(version));
                self.open();
                if let Some(version) = unknown {
                    let error = self.error(Problem::UnknownVersion(version));
                    self.leave_out(error)?;
                }
                return Ok(true);
            }
            if line.starts_with(END) || line.starts_with(HEADER) {
                let error = self.error(Problem::Orphan(shown(line)));
                self.open();
                return self.leave_out(error).map(|()| true);
            }
        }
        let over = mem::replace(&mut self.phase, Phase::Over);
        if over == Phase::Between && self.number == 0 {
            return Err(self.error(Problem::NoStream));
        }
        Ok(false)
    }

    fn open(&mut self) {
        self.number += 1;
        self.frame = Frame::new();
        self.cut = None;
        self.damaged = false;
        self.phase = Phase::Preamble;
    }

    fn take_preamble(&mut self) -> Result<(), StreamError> {
        let header = self.next_line().and_then(|()| {
            let line = self.lines.bytes();
            self.frame.preamble(line, &mut self.splitter)
        });
        match header.map_err(|problem| self.error(problem)) {
            Ok(false) => {}
            Ok(true) => self.phase = Phase::Rows,
            Err(error) if error.problem.is_cut() && self.is_notes_alone() => {
                self.phase = Phase::Between;
            }
            Err(error) => self.tolerate(error)?,
        }
        Ok(())
    }

    /// Whether the stream is of a command that writes notes alone, and its last line is whole.
    fn is_notes_alone(&self) -> bool {
        let Frame {
            notes, announced, ..
        } = &self.frame;
        let is_env = |note: &Note| note.key == "command" && note.value == ENV;
        announced.is_none() && notes.iter().any(is_env) && self.lines.ending() == Ending::Feed
    }

    /// Takes one line of rows; whether it was a row.
    fn take_row(&mut self) -> Result<bool, StreamError> {
        if self.phase != Phase::Rows {
            return Ok(false);
        }
        if let Err(problem) = self.next_line() {
            let error = self.error(problem);
            return self.tolerate(error).map(|()| false);
        }
        let line = self.lines.text();
        if line.starts_with(END) {
            let ended = self.frame.end(line).map_err(|problem| self.error(problem));
            self.phase = Phase::Between;
            return ended.or_else(|error| self.tolerate(error)).map(|()| false);
        }
        if let Err(problem) = self.frame.row(self.lines.bytes(), &mut self.splitter) {
            let mut error = self.error(problem);
            error.place.row = Some(self.frame.rows + 1);
            return self.tolerate(error).map(|()| false);
        }
        Ok(true)
    }

    /// Goes to the next line of a stream under way; there must be one, and it must end.
    fn next_line(&mut self) -> Result<(), Problem> {
        let there = self.lines.advance().map_err(Problem::Read)?;
        let next_begins = there && self.lines.text().starts_with(BEGIN.as_bytes());
        if next_begins {
            self.lines.hold();
        }
        if !there || next_begins || self.lines.ending() == Ending::Input {
            return Err(Problem::Truncated {
                rows: self.frame.rows,
                announced: self.frame.announced,
            });
        }
        if self.lines.ending() == Ending::TooLong {
            return Err(Problem::LongLine);
        }
        Ok(())
    }

    /// Ends the stream before its time, if that was asked for.
    fn tolerate(&mut self, error: StreamError) -> Result<(), StreamError> {
        let in_rows = self.phase == Phase::Rows;
        if self.tolerance == Tolerance::Whole || !error.is_untrusted() {
            return Err(error);
        }
        if in_rows && error.problem.is_noise() {
            // A console log whose machine went down: no end will come. If one does, the
            // noise is damage in the middle of the rows.
            self.damaged = self.end_follows()?;
        } else if !error.problem.is_cut() {
            return self.leave_out(error);
        }
        self.phase = Phase::Between;
        self.cut = Some(error);
        Ok(())
    }

    /// Passes over what is left of a stream that is damaged, if that was asked for.
    fn leave_out(&mut self, error: StreamError) -> Result<(), StreamError> {
        if self.tolerance == Tolerance::Whole || !error.is_untrusted() {
            return Err(error);
        }
        let has_ended = match &*error.problem {
            // The line that is wrong begins no other stream.
            Problem::UnknownVersion(_) => !self.advance_between()?,
            // What looks like an end may be a row.
            Problem::BadEnd(_) => false,
            _ => self.phase == Phase::Between || self.lines.text().starts_with(END),
        };
        if !has_ended && !error.problem.is_damage() {
            self.end_follows()?;
        }
        self.phase = Phase::Between;
        self.cut = Some(error);
        self.damaged = true;
        Ok(())
    }

    /// Whether an end comes before the next stream begins, from this line on. A row that
    /// was cut may have the next stream's first line glued to it.
    fn end_follows(&mut self) -> Result<bool, StreamError> {
        loop {
            if version(self.lines.text()).is_some() {
                self.lines.hold();
                return Ok(false);
            }
            if !self.advance_between()? {
                return Ok(false);
            }
            if self.lines.text().starts_with(END) {
                return Ok(true);
            }
        }
    }

    /// Where packed data are damaged, an input may end that is taken as far as it goes.
    fn advance_between(&mut self) -> Result<bool, StreamError> {
        match self.advance() {
            Err(error) if self.tolerance == Tolerance::Partial && error.problem.is_damage() => {
                Ok(false)
            }
            there => there,
        }
    }

    fn advance(&mut self) -> Result<bool, StreamError> {
        let there = self.lines.advance();
        there.map_err(|error| self.error(Problem::Read(error)))
    }

    fn error(&self, problem: Problem) -> StreamError {
        let within = matches!(self.phase, Phase::Preamble | Phase::Rows);
        StreamError {
            place: Place {
                source: self.source.clone(),
                stream: within.then_some(self.number),
                line: self.lines.number(),
                row: None,
            },
            problem: Box::new(problem),
        }
    }
}

/// One stream of an input, its notes and header read.
pub struct Stream<'s, R> {
    reader: &'s mut StreamReader<R>,
}

impl<R: BufRead> Stream<'_, R> {
    /// Which stream of the input it is, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.reader.number
    }

    /// What was noted before the header, in order; `#rows` is not among it.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.reader.frame.notes
    }

    /// How many rows were intended; `None` only if the stream is cut before that line.
    #[must_use]
    pub fn announced(&self) -> Option<u64> {
        self.reader.frame.announced
    }

    /// The next row, or `None` at the stream's end, when the count and the checksum have
    /// been found right. Before that no row can be trusted.
    ///
    /// # Errors
    /// As [`StreamReader::next_stream`]. Afterwards there are no more rows.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, StreamError> {
        let taken = self.reader.take_row();
        if taken.is_err() {
            self.reader.phase = Phase::Over;
        }
        let StreamReader {
            frame,
            splitter,
            source,
            number,
            lines,
            ..
        } = &*self.reader;
        Ok(taken?.then(|| Row {
            header: &frame.header,
            fields: splitter.fields(),
            source,
            stream: *number,
            line: lines.number(),
            row: frame.rows,
        }))
    }

    /// CRC-32 of the header and the rows read so far.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        self.reader.frame.checksum()
    }

    /// Whether its rows may be wrong: it is damaged, and no checksum proves them. Known as
    /// [`cut`](Self::cut) is.
    #[must_use]
    pub fn is_unproved(&self) -> bool {
        self.reader.damaged
    }

    /// Passes over the rest of it because of `error`, which one of its rows has; it is unproved
    /// from then on.
    ///
    /// # Errors
    /// `error`, unless what is damaged is to be left out.
    pub fn leave_out(&mut self, error: StreamError) -> Result<(), StreamError> {
        self.reader.leave_out(error)
    }

    /// What is wrong with it, if it is [unproved](Self::is_unproved).
    pub fn take_damage(&mut self) -> Option<StreamError> {
        self.reader.cut.take_if(|_| self.reader.damaged)
    }

    /// Why the stream is not whole; `None` if it is. Known once
    /// [`next_row`](Self::next_row) has given `None`.
    #[must_use]
    pub fn cut(&self) -> Option<&StreamError> {
        self.reader.cut.as_ref()
    }
}

/// The version of the stream that begins on this line. Firmware may have left terminal
/// codes in front of it without ending the line; what is not a number behind it is noise.
fn version(line: &[u8]) -> Option<&[u8]> {
    let begin = BEGIN.as_bytes();
    let is_version = |rest: &&[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
    if line.starts_with(b"#") {
        return line.strip_prefix(begin).filter(is_version);
    }
    let at = line.windows(begin.len()).rposition(|part| part == begin)?;
    Some(&line[at + begin.len()..]).filter(is_version)
}
