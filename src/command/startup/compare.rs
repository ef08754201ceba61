//! The result of `ab`: the difference of the arms beside that of one with itself.

use super::times::{Metric, Times};
use super::{Run, order};
use crate::emit::fixed::Milli;
use crate::emit::startup_row::StartupAbRow;
use crate::emit::stream::Preamble;
use crate::error::Error;
use crate::stats::{DifferenceInterval, PairedDifference};
use crate::sys::cpu;
use crate::sys::stdio::{Output, stderr};
use crate::text::{Full, Text};

/// Writes a row for each of the two times, and the same in words.
pub(super) fn write(run: &Run<'_>, head: Preamble<Output>, times: &mut Times) -> Result<(), Error> {
    let mut rows = head.header::<StartupAbRow<'_>>(Metric::ALL.len() as u64)?;
    let mut words = Text::new();
    begin(run, &mut words);
    for metric in Metric::ALL {
        let row = row(run, metric, times);
        rows.row(&row)?;
        say(&row, run.options.rounds, &mut words);
    }
    rows.end()?;
    if !run.options.common.quiet {
        let words = words.read().map_err(|Full| Error::TooLong)?;
        // A courtesy of standard error.
        let _ = stderr().write_all(words.as_bytes());
    }
    Ok(())
}

/// The number of an arm: they stand as given, then each once more.
fn place(run: &Run<'_>, name: &str) -> usize {
    let mut names = run.subjects.iter().map(|subject| subject.name.read());
    // `parse` has seen both.
    names.position(|found| found == Ok(name)).unwrap_or(0)
}

fn row<'r>(run: &'r Run<'_>, metric: Metric, times: &mut Times) -> StartupAbRow<'r> {
    let [a, b, null] = ["a", "b", "null"].map(|name| place(run, name));
    let difference = times.difference(metric, a, b);
    let floor = times.difference(metric, a, null);
    let bounds = |of: Option<PairedDifference>| of.and_then(|found| found.interval);
    let (interval, null_interval) = (bounds(difference), bounds(floor));
    let low = |interval: DifferenceInterval| interval.low;
    let high = |interval: DifferenceInterval| interval.high;
    let is_resolved = difference
        .zip(floor)
        .is_some_and(|(difference, floor)| difference.is_resolved(&floor));
    StartupAbRow {
        label: run.options.common.label,
        kernel: run.kernel,
        arch: cpu::ARCH,
        cache: run.cache(),
        metric: metric.name(),
        a_dispatch: run.subjects[a].dispatch,
        b_dispatch: run.subjects[b].dispatch,
        pairs: difference.map_or(0, |found| found.n),
        a_median_ns: times.median(metric, a).1,
        b_median_ns: times.median(metric, b).1,
        difference_ns: difference.map(|found| found.median),
        low_ns: interval.map(low),
        high_ns: interval.map(high),
        // Parts per million to thousandths of a per cent.
        confidence_percent: interval.map(|found| Milli((found.confidence_ppm / 10).cast_signed())),
        null_difference_ns: floor.map(|found| found.median),
        null_low_ns: null_interval.map(low),
        null_high_ns: null_interval.map(high),
        verdict: if is_resolved {
            "resolved"
        } else {
            "unresolved"
        },
    }
}

fn begin(run: &Run<'_>, words: &mut Text) {
    words.add("cowitness startup ab: Linux ").add(run.kernel);
    words.add(", ").number(run.options.rounds).add(" rounds");
    order::say(run.subjects.len(), run.options.rounds, words);
    words.add(", ");
    words.add(run.cache()).add(" cache; a is ");
    words
        .add(run.subjects[place(run, "a")].dispatch)
        .add(", b is ");
    words.add(run.subjects[place(run, "b")].dispatch);
    words.add("; times in us\n");
}

/// One line: `  exec   a 412.310  b 407.420  a - b 4.812 [4.102, 5.523] in 200 of 200 pairs, …`.
fn say(row: &StartupAbRow<'_>, rounds: u64, words: &mut Text) {
    let median = |words: &mut Text, name, ns: Option<u64>| {
        words.add(name);
        micros(words, ns.map(u64::cast_signed));
    };
    words.add("  ").add(row.metric).pad_to(0);
    median(words, " a ", row.a_median_ns);
    median(words, "  b ", row.b_median_ns);
    words.add("  a - b ");
    between(words, row.difference_ns, row.low_ns, row.high_ns);
    // A pair is lost with either of its execs; their rows say why.
    words
        .add(" in ")
        .number(row.pairs)
        .add(" of ")
        .number(rounds);
    words.add(" pairs, a - null ");
    between(
        words,
        row.null_difference_ns,
        row.null_low_ns,
        row.null_high_ns,
    );
    words.add(": ").add(row.verdict).add("\n");
}

fn between(words: &mut Text, middle: Option<i64>, low: Option<i64>, high: Option<i64>) {
    micros(words, middle);
    words.add(" [");
    micros(words, low);
    words.add(", ");
    micros(words, high);
    words.add("]");
}

/// Nanoseconds are thousandths of microseconds.
pub(super) fn micros(words: &mut Text, ns: Option<i64>) {
    match ns {
        Some(ns) => words.thousandths(ns),
        None => words.add("unknown"),
    };
}
