//! What is gathered in the buffer until it is full: pieces that will be handed on, and the runs
//! among them that one call has still to fetch.

use crate::reader::{Pass, Seen};
use crate::sys::RemoteAddr;
use crate::sys::remote::{RemoteSpan, SPANS_PER_CALL};
use heapless::Vec;

/// Ranges that follow each other in the buffer and not in the target.
const PIECES: usize = 256;

pub(super) struct Window {
    filled: usize,
    pieces: Vec<RemoteSpan, PIECES>,
    pub(super) spans: Vec<RemoteSpan, SPANS_PER_CALL>,
    pub(super) offsets: Vec<usize, SPANS_PER_CALL>,
    /// Whether there are anonymous pages among what is still to come.
    pub(super) has_own: bool,
}

impl Window {
    pub(super) const fn new() -> Self {
        Self {
            filled: 0,
            pieces: Vec::new(),
            spans: Vec::new(),
            offsets: Vec::new(),
            has_own: false,
        }
    }

    /// Bytes of the buffer that are taken.
    pub(super) const fn filled(&self) -> usize {
        self.filled
    }

    /// Whether one more range has a place in the lists.
    pub(super) fn has_room(&self) -> bool {
        !self.pieces.is_full() && !self.spans.is_full()
    }

    /// Takes the next bytes of the buffer for `span`.
    pub(super) fn take(&mut self, span: RemoteSpan) {
        self.filled += span.len as usize;
        match self.pieces.last_mut() {
            Some(last) if last.start.plus(last.len) == span.start => last.len += span.len,
            // The caller asked for room.
            _ => drop(self.pieces.push(span)),
        }
    }

    /// As [`take`](Self::take); the bytes come with the next call. `own`: of anonymous pages.
    pub(super) fn take_later(&mut self, span: RemoteSpan, own: bool) {
        self.has_own |= own;
        let behind = |last: &RemoteSpan| last.start.plus(last.len) == span.start;
        let offset = self.filled;
        self.take(span);
        match self.spans.last_mut().filter(|last| behind(last)) {
            Some(last) => last.len += span.len,
            None => {
                // The caller asked for room.
                let _ = self.spans.push(span);
                let _ = self.offsets.push(offset);
            }
        }
    }

    /// Hands on the first `sound` bytes, and is empty again.
    pub(super) fn hand_on(
        &mut self,
        sound: usize,
        buffer: &[u8],
        pass: &mut Pass,
        seen: &mut Seen<'_>,
    ) {
        let mut rest = &buffer[..sound.min(self.filled)];
        for (index, piece) in self.pieces.iter().enumerate() {
            let (bytes, behind) = rest.split_at(rest.len().min(piece.len as usize));
            if bytes.is_empty() {
                break;
            }
            if index == 0 {
                pass.last = RemoteSpan {
                    start: piece.start,
                    len: bytes.len() as u64,
                };
            }
            if let Some(seen) = seen {
                seen(piece.start, bytes);
            }
            pass.bytes += bytes.len() as u64;
            rest = behind;
        }
        self.filled = 0;
        self.pieces.clear();
        self.spans.clear();
        self.offsets.clear();
        self.has_own = false;
    }
}

/// Where the first byte behind what a call brought lies: number of the run, bytes into it.
pub(super) fn reached(spans: &[RemoteSpan], got: usize) -> (usize, u64) {
    let mut rest = got as u64;
    for (index, span) in spans.iter().enumerate() {
        if rest < span.len {
            return (index, rest);
        }
        rest -= span.len;
    }
    (spans.len(), 0)
}

/// The rest of a run.
pub(super) const fn behind(span: RemoteSpan, bytes: u64) -> RemoteSpan {
    RemoteSpan {
        start: RemoteAddr(span.start.0 + bytes),
        len: span.len - bytes,
    }
}
