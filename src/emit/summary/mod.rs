//! What a set of `bench` rows says, in words and figures.
//!
//! The appliance calls this with the cases it has just measured, the lab with those it
//! read from files; both print the same.

mod blocks;
mod sample;
mod table;
mod words;

pub use sample::{Name, Outcome, Phase, Sample};
pub use words::paired;

use super::Sink;
use crate::stats::sort_by;
use crate::text::{Full, Text};

/// What the samples have in common.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// `uname -r`.
    pub kernel: &'a str,
    /// `uname -m`.
    pub arch: &'a str,
    /// Bytes in a page.
    pub page_bytes: u64,
    /// Cases that were meant to be measured.
    pub intended: u64,
    /// Whether the CPU is emulated by software: its timings mean nothing.
    pub emulated: bool,
}

/// Why a summary could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryError<E> {
    /// The sink's error.
    Sink(E),
    /// A line is too long: a name in the rows is.
    TooLong,
}

impl<E> From<Full> for SummaryError<E> {
    fn from(Full: Full) -> Self {
        Self::TooLong
    }
}

/// Three scratch numbers a sample: two sides of a pair and their ratio.
pub const SCRATCH_PER_SAMPLE: usize = 3;

/// Writes the summary. `samples` are sorted in place; `scratch` needs
/// [`SCRATCH_PER_SAMPLE`] numbers for each.
///
/// # Errors
/// See [`SummaryError`].
pub fn write<S: Sink>(
    sink: &mut S,
    heading: &Heading<'_>,
    samples: &mut [Sample],
    scratch: &mut [u64],
) -> Result<(), SummaryError<S::Error>> {
    sort_by(samples, &|a, b| a.sort_key() < b.sort_key());
    let mut out = Lines { sink };
    out.line(&head(heading, samples))?;
    words::split_pages(&mut out, samples)?;
    if heading.emulated {
        return out.text("\nAn emulated machine: its timings are in the rows, and mean nothing.");
    }
    words::comparisons(&mut out, samples, scratch)?;
    words::first_writes(&mut out, samples, heading.page_bytes, scratch)?;
    blocks::recommended(&mut out, samples, scratch)?;
    table::distributions(&mut out, samples, scratch)
}

fn head(heading: &Heading<'_>, samples: &[Sample]) -> Text {
    let count = |outcome| {
        let cases = samples.iter().filter(|one| one.outcome == outcome);
        cases.count() as u64
    };
    let mut line = Text::new();
    line.add("cowitness bench: Linux ").add(heading.kernel);
    line.add(", ").add(heading.arch).add(", ");
    add_bytes(&mut line, heading.page_bytes);
    line.add(" pages: ").number(count(Outcome::Ok));
    line.add(" of ").number(heading.intended).add(" cases ok");
    for (outcome, name) in Outcome::FAILURES {
        match count(outcome) {
            0 => {}
            failed => {
                line.add(", ").number(failed).add(" ").add(name);
            }
        }
    }
    line
}

/// A sink that takes lines.
struct Lines<'s, S> {
    sink: &'s mut S,
}

impl<S: Sink> Lines<'_, S> {
    fn line(&mut self, line: &Text) -> Result<(), SummaryError<S::Error>> {
        self.text(line.read()?)
    }

    fn text(&mut self, text: &str) -> Result<(), SummaryError<S::Error>> {
        let mut write = |part: &str| self.sink.write_all(part.as_bytes());
        write(text)
            .and_then(|()| write("\n"))
            .map_err(SummaryError::Sink)
    }
}

/// A number of bytes in the largest binary unit that divides it.
fn add_bytes(line: &mut Text, count: u64) {
    let units = [(1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB")];
    let whole = |(size, _): &&(u64, &str)| count >= *size && count.is_multiple_of(*size);
    let (size, unit) = units.iter().find(whole).copied().unwrap_or((1, " B"));
    line.number(count / size).add(unit);
}

/// `part` of `whole` as a percentage with two decimals, rounded down so that 100.00 is
/// only ever all of it, and 0.00 none of it; nothing if `whole` is 0.
fn add_percent(line: &mut Text, part: u64, whole: u64) {
    if whole > 0 {
        let centi = u128::from(part) * 10_000 / u128::from(whole);
        if centi == 0 && part > 0 {
            line.add("< 0.01 %");
            return;
        }
        line.hundredths(u64::try_from(centi).unwrap_or(u64::MAX))
            .add(" %");
    }
}

#[cfg(test)]
mod tests;
