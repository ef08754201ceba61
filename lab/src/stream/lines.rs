//! Lines of an input: numbered, without carriage returns, and of bounded length, so that
//! an endless line costs no more memory than a long one.

use std::io::{self, BufRead, Read};
use std::mem;

/// The longest line in bytes, its line feed not counted. A row of the appliance has at
/// most 1,024; the longest note is a kernel's command line, 4,096 on most architectures.
pub(super) const LINE_MAX: u64 = 64 * 1024;

/// What a line ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its line feed.
    Feed,
    /// The end of the input: it may be cut.
    Input,
    /// Nothing we have seen: it is longer than [`LINE_MAX`], and its rest was skipped.
    TooLong,
}

/// The lines of `input`, one at a time.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    ending: Ending,
    number: u64,
    held: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            line: Vec::new(),
            ending: Ending::Input,
            number: 0,
            held: false,
        }
    }

    /// Goes to the next line; `false` at the end of the input.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if mem::take(&mut self.held) {
            return Ok(true);
        }
        self.line.clear();
        let mut bounded = self.input.by_ref().take(LINE_MAX + 1);
        if bounded.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(false);
        }
        self.number += 1;
        self.ending = match (self.line.last(), bounded.limit()) {
            (Some(b'\n'), _) => Ending::Feed,
            (_, 0) => Ending::TooLong,
            _ => Ending::Input,
        };
        if self.ending == Ending::TooLong {
            self.input.skip_until(b'\n')?;
        }
        self.line.retain(|&byte| byte != b'\r');
        Ok(true)
    }

    /// Makes the next [`advance`](Self::advance) stay on this line.
    pub(super) fn hold(&mut self) {
        self.held = true;
    }

    /// The line without its line feed.
    pub(super) fn text(&self) -> &[u8] {
        self.line.strip_suffix(b"\n").unwrap_or(&self.line)
    }

    /// The line with its line feed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.line
    }

    pub(super) fn ending(&self) -> Ending {
        self.ending
    }

    /// From 1; 0 before the first line.
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_are_dropped_and_a_cut_line_is_told() {
        let mut lines = Lines::new(&b"a\r\n\r\n\n\rb\rc"[..]);
        for (text, ending) in [
            ("a", Ending::Feed),
            ("", Ending::Feed),
            ("", Ending::Feed),
            ("bc", Ending::Input),
        ] {
            assert!(lines.advance().unwrap());
            assert_eq!(lines.text(), text.as_bytes());
            assert_eq!(lines.ending(), ending);
        }
        assert!(!lines.advance().unwrap());
        assert_eq!(lines.number(), 4);
    }

    #[test]
    fn a_held_line_comes_again() {
        let mut lines = Lines::new(&b"a\nb\n"[..]);
        assert!(lines.advance().unwrap());
        lines.hold();
        assert!(lines.advance().unwrap());
        assert_eq!((lines.text(), lines.number()), (&b"a"[..], 1));
        assert!(lines.advance().unwrap());
        assert_eq!((lines.text(), lines.number()), (&b"b"[..], 2));
    }

    #[test]
    fn only_the_limit_of_a_long_line_is_kept() {
        let limit = usize::try_from(LINE_MAX).unwrap();
        let input = format!("{}\n{}\nnext\n", "x".repeat(limit), "y".repeat(limit + 1));
        let mut lines = Lines::new(input.as_bytes());
        let mut found = Vec::new();
        while lines.advance().unwrap() {
            found.push((lines.text().len(), lines.ending()));
        }
        assert_eq!(
            found,
            [
                (limit, Ending::Feed),
                (limit + 1, Ending::TooLong),
                (4, Ending::Feed),
            ]
        );
    }
}
