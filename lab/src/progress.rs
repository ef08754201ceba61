//! What is being done, on a terminal; elsewhere, only what is done.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Machines done, and the one that was started last.
pub struct Progress(ProgressBar);

impl Progress {
    /// Of `total` machines, none is done. Nothing is drawn unless standard error is a
    /// terminal.
    #[must_use]
    pub fn new(total: usize) -> Self {
        let bar = ProgressBar::new(total as u64);
        let style = ProgressStyle::with_template("{spinner} {pos} of {len} done, {elapsed}: {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        // The ticker is a thread, and ends the program where no further one is allowed.
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// A machine starts.
    pub fn starts(&self, name: &str) {
        self.0.set_message(name.to_owned());
    }

    /// A machine has ended.
    pub fn ends(&self) {
        self.0.inc(1);
    }

    /// Has `say` write a line where the progress is drawn.
    pub fn note(&self, line: &str, say: &(dyn Fn(&str) + Sync)) {
        self.0.suspend(|| say(line));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
