//! Lines out of chunks. A [`LineBuffer`] owns the bytes between a file and a line
//! parser; it never reads by itself.

use super::number::{position, split_once};
use core::ops::Range;

/// One line, without its line feed. A carriage return before it stays: the kernel
/// prints none, so it belongs to the text (a file name, say).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The line, or its beginning.
    pub bytes: &'a [u8],
    /// The line and its line feed did not fit into the buffer: `bytes` are its first
    /// N bytes and the rest is lost.
    pub truncated: bool,
}

/// Turns chunks into lines in `N` bytes, wherever they live: on a stack or, being all
/// zeroes when new, in .bss.
///
/// [`read_line`](Self::read_line) does it all. By hand: take lines with
/// [`next_line`](Self::next_line) until there is none, fill [`space`](Self::space),
/// say how much with [`filled`](Self::filled), and at the end of the file take what is
/// left with [`finish`](Self::finish).
#[derive(Debug)]
pub struct LineBuffer<const N: usize> {
    bytes: [u8; N],
    marks: Marks,
}

/// What is where in the bytes; one code for every size.
#[derive(Clone, Copy, Debug)]
struct Marks {
    /// `start <= searched <= end <= N`: `start..end` is not handed out yet and has no
    /// line feed before `searched`.
    start: usize,
    searched: usize,
    end: usize,
    /// Everything up to the next line feed is the rest of a truncated line.
    skipping: bool,
}

impl Marks {
    const NEW: Self = Self {
        start: 0,
        searched: 0,
        end: 0,
        skipping: false,
    };
}

impl<const N: usize> LineBuffer<N> {
    /// An empty buffer. `N` must not be 0.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(N > 0) }
        Self {
            bytes: [0; N],
            marks: Marks::NEW,
        }
    }

    /// Forgets everything, for the next file.
    pub fn clear(&mut self) {
        self.marks = Marks::NEW;
    }

    /// The free bytes to read into. Moves the unfinished line to the front first; it is
    /// never empty once [`next_line`](Self::next_line) has said `None`.
    pub fn space(&mut self) -> &mut [u8] {
        self.marks.move_up(&mut self.bytes);
        &mut self.bytes[self.marks.end..]
    }

    /// The first `n` bytes of [`space`](Self::space) are now data; no more than the
    /// space can be.
    pub fn filled(&mut self, n: usize) {
        self.marks.end = self.marks.end.saturating_add(n).min(N);
    }

    /// The next line that has its line feed, or a truncated one as soon as it fills the
    /// buffer. `None` asks for more data.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        let taken = self.marks.take(&self.bytes)?;
        Some(self.line(taken))
    }

    /// At the end of the file: what [`next_line`](Self::next_line) would still give,
    /// then the last line if it has no line feed. Once it says `None`, the buffer is as
    /// new.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        let taken = self.marks.take(&self.bytes);
        let taken = taken.or_else(|| self.marks.take_rest())?;
        Some(self.line(taken))
    }

    /// The next line of a file, pulled through `read`, which has the meaning of read(2):
    /// 0 is the end of the file. `None` means that the file and the buffer are used up.
    ///
    /// # Errors
    ///
    /// Those of `read`. Nothing is lost: the call may be repeated.
    pub fn read_line<E>(
        &mut self,
        mut read: impl FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Option<Line<'_>>, E> {
        loop {
            if let Some(taken) = self.marks.take(&self.bytes) {
                return Ok(Some(self.line(taken)));
            }
            match read(self.space())? {
                0 => return Ok(self.finish()),
                n => self.filled(n),
            }
        }
    }

    fn line(&self, taken: Taken) -> Line<'_> {
        Line {
            bytes: &self.bytes[taken.bytes],
            truncated: taken.truncated,
        }
    }
}

impl Marks {
    fn move_up(&mut self, bytes: &mut [u8]) {
        if self.start > 0 {
            bytes.copy_within(self.start..self.end, 0);
            self.searched -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Option<Taken> {
        if self.skipping {
            self.skip(bytes);
        }
        if let Some(feed) = self.line_feed(bytes) {
            let line = self.start..feed;
            self.start = feed + 1;
            self.searched = self.start;
            return Some(Taken::whole(line));
        }
        let full = self.start == 0 && self.end == bytes.len();
        if !full {
            return None;
        }
        self.start = self.end;
        self.skipping = true;
        Some(Taken {
            bytes: 0..self.end,
            truncated: true,
        })
    }

    fn take_rest(&mut self) -> Option<Taken> {
        let rest = self.start..self.end;
        *self = Self::NEW;
        (!rest.is_empty()).then_some(Taken::whole(rest))
    }

    fn skip(&mut self, bytes: &[u8]) {
        let feed = self.line_feed(bytes);
        self.skipping = feed.is_none();
        self.start = feed.map_or(self.end, |feed| feed + 1);
        self.searched = self.start;
    }

    /// Where the first line feed of `start..end` is; looks at no byte twice.
    fn line_feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let unseen = &bytes[self.searched..self.end];
        let feed = position(unseen, b'\n');
        let found = feed.map(|at| self.searched + at);
        self.searched = found.unwrap_or(self.end);
        found
    }
}

impl<const N: usize> Default for LineBuffer<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// A line by its place in the buffer, so that the buffer can move on before it is lent.
struct Taken {
    bytes: Range<usize>,
    truncated: bool,
}

impl Taken {
    fn whole(bytes: Range<usize>) -> Self {
        Self {
            bytes,
            truncated: false,
        }
    }
}

/// The lines of a text that have their line feed. What follows the last one is left
/// out: the file was larger than what was read of it, and a number there may be cut.
pub fn complete(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let (line, rest) = split_once(text, b'\n')?;
        text = rest;
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// The lines of `text`, read in chunks of at most `chunk` bytes; `~` marks those
    /// that were truncated.
    fn lines<const N: usize>(text: &str, chunk: usize) -> Vec<String> {
        let mut rest = text.as_bytes();
        let mut buffer = LineBuffer::<N>::new();
        let mut out = Vec::new();
        while let Some(line) = buffer
            .read_line(|space| read(&mut rest, space, chunk))
            .unwrap()
        {
            let mark = if line.truncated { "~" } else { "" };
            let text = core::str::from_utf8(line.bytes).unwrap();
            out.push(text.to_string() + mark);
        }
        out
    }

    fn read(rest: &mut &[u8], space: &mut [u8], chunk: usize) -> Result<usize, ()> {
        assert!(
            !space.is_empty(),
            "a read of 0 bytes looks like the end of the file"
        );
        let n = rest.len().min(space.len()).min(chunk);
        space[..n].copy_from_slice(&rest[..n]);
        *rest = &rest[n..];
        Ok(n)
    }

    #[test]
    fn every_chunk_size_gives_the_same_lines() {
        let cases: [(&str, &[&str]); 8] = [
            ("", &[]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("one\ntwo\n", &["one", "two"]),
            ("one\n\ntwo", &["one", "", "two"]),
            ("1234567\nx\n", &["1234567", "x"]),
            ("12345678901234567890\nx\n", &["12345678~", "x"]),
            ("a\r\n12345678901234567890", &["a\r", "12345678~"]),
        ];
        for (text, expected) in cases {
            for chunk in 1..=24 {
                assert_eq!(lines::<8>(text, chunk), expected, "{text:?} by {chunk}");
            }
        }
    }

    #[test]
    fn a_line_fits_if_its_line_feed_does() {
        assert_eq!(
            lines::<4>("123\n1234\n12345\n1\n", 16),
            ["123", "1234~", "1234~", "1"]
        );
        assert_eq!(lines::<1>("a\n\nb", 1), ["a~", "", "b~"]);
    }

    #[test]
    fn by_hand_it_is_the_same() {
        let mut buffer = LineBuffer::<8>::new();
        assert_eq!(buffer.next_line(), None);
        buffer.space()[..5].copy_from_slice(b"ab\ncd");
        buffer.filled(5);
        assert_eq!(buffer.next_line().map(|line| line.bytes), Some(&b"ab"[..]));
        assert_eq!(buffer.next_line(), None);
        assert_eq!(buffer.space().len(), 6);
        assert_eq!(buffer.finish().map(|line| line.bytes), Some(&b"cd"[..]));
        assert_eq!(buffer.finish(), None);
        assert_eq!(buffer.space().len(), 8);
    }

    #[test]
    fn finish_gives_the_lines_nobody_took() {
        let mut buffer = LineBuffer::<8>::new();
        buffer.space()[..4].copy_from_slice(b"a\nb\n");
        buffer.filled(4);
        assert_eq!(buffer.finish().map(|line| line.bytes), Some(&b"a"[..]));
        assert_eq!(buffer.finish().map(|line| line.bytes), Some(&b"b"[..]));
        assert_eq!(buffer.finish(), None);
    }

    #[test]
    fn a_cleared_buffer_forgets_even_that_it_was_skipping() {
        let mut buffer = LineBuffer::<4>::new();
        buffer.space().copy_from_slice(b"1234");
        buffer.filled(usize::MAX);
        assert!(buffer.next_line().is_some_and(|line| line.truncated));
        buffer.clear();
        buffer.space()[..2].copy_from_slice(b"x\n");
        buffer.filled(2);
        assert_eq!(buffer.next_line().map(|line| line.bytes), Some(&b"x"[..]));
    }

    #[test]
    fn a_failed_read_loses_nothing() {
        let mut buffer = LineBuffer::<8>::new();
        buffer.space()[..2].copy_from_slice(b"ab");
        buffer.filled(2);
        assert_eq!(buffer.read_line(|_| Err("EINTR")), Err("EINTR"));
        let mut rest = &b"c\n"[..];
        let line = buffer.read_line(|space| read(&mut rest, space, 8)).unwrap();
        assert_eq!(line.map(|line| line.bytes), Some(&b"abc"[..]));
    }

    #[test]
    fn complete_lines_leave_a_cut_one_out() {
        let all: Vec<&[u8]> = complete(b"a\n\nb\nMemTotal: 246").collect();
        assert_eq!(all, [&b"a"[..], b"", b"b"]);
        assert_eq!(complete(b"").count(), 0);
    }
}
