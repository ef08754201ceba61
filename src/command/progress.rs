//! The progress line: only on a terminal, only between cases, never in a file.

use crate::sys::Clock;
use crate::sys::stdio::{Output, stderr, stdout};
use crate::text::Text;

/// A line that is rewritten in place on standard error.
pub(super) struct Progress {
    out: Option<Output>,
    clock: Clock,
    start_ns: u64,
    total: u64,
}

/// Back to the first column, and the rest of the line cleared (ECMA-48 EL).
const REWRITE: &str = "\r\x1b[K";

impl Progress {
    /// Silent if `quiet`, or if standard error is no terminal; also if standard output is
    /// one, where the rows themselves show progress and the line would stand among them.
    pub(super) fn new(quiet: bool, clock: Clock, total: u64) -> Self {
        let shown = !quiet && stderr().is_terminal() && !stdout().is_terminal();
        let out = Some(stderr()).filter(|_| shown);
        Self {
            out,
            clock,
            start_ns: clock.now_ns(),
            total,
        }
    }

    /// Shows that `done` cases are done and what is next.
    pub(super) fn show(&self, done: u64, next: &Text) {
        let Some(out) = self.out else { return };
        let elapsed_ns = self.clock.now_ns() - self.start_ns;
        let line = line(
            // There may be more by now than was expected.
            done.min(self.total),
            self.total,
            elapsed_ns,
            next.read().unwrap_or_default(),
        );
        // Progress is a courtesy: if it cannot be shown, the measurement goes on.
        let _ = out.write_all(line.read().unwrap_or_default().as_bytes());
    }

    /// Takes the line away.
    pub(super) fn clear(&self) {
        if let Some(out) = self.out {
            let _ = out.write_all(REWRITE.as_bytes());
        }
    }
}

fn line(done: u64, total: u64, elapsed_ns: u64, next: &str) -> Text {
    let mut line = Text::new();
    line.add(REWRITE)
        .add("[")
        .number(done)
        .add("/")
        .number(total)
        .add("] ")
        .add(next);
    // Milliseconds, so that the product fits: 2^64 ms are longer than any run.
    let left_ms = (elapsed_ns / 1_000_000)
        .saturating_mul(total - done)
        .checked_div(done);
    if let Some(left_ms) = left_ms {
        let seconds = left_ms / 1000;
        let colon = if seconds % 60 < 10 { ":0" } else { ":" };
        line.add("  about ")
            .number(seconds / 60)
            .add(colon)
            .number(seconds % 60)
            .add(" left");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_from_what_is_done() {
        let text = |done, elapsed| {
            std::string::String::from(line(done, 180, elapsed, "vma").read().unwrap())
        };
        assert_eq!(text(0, 0), "\r\x1b[K[0/180] vma");
        // 60 in 30 s leaves 120 for 60 s.
        assert_eq!(
            text(60, 30_000_000_000),
            "\r\x1b[K[60/180] vma  about 1:00 left"
        );
        assert_eq!(
            text(180, 30_000_000_000),
            "\r\x1b[K[180/180] vma  about 0:00 left"
        );
    }
}
