//! The result of `slope`: a line through the medians over the number of objects.

use super::compare::micros;
use super::subject::Subject;
use super::times::{Metric, Times};
use super::{Run, order};
use crate::emit::fixed::Milli;
use crate::emit::startup_row::StartupFitRow;
use crate::emit::stream::Preamble;
use crate::error::Error;
use crate::measure::rounds::ARMS_MAX;
use crate::stats::Line;
use crate::sys::cpu;
use crate::sys::stdio::{Output, stderr};
use crate::text::{Full, Text};
use heapless::Vec;

/// Writes a row for each arm and each of the two times, and the lines in words.
pub(super) fn write(run: &Run<'_>, head: Preamble<Output>, times: &mut Times) -> Result<(), Error> {
    let count = Metric::ALL.len() * run.subjects.len();
    let mut rows = head.header::<StartupFitRow<'_>>(count as u64)?;
    for metric in Metric::ALL {
        let line = line(run, metric, times);
        let mut words = Text::new();
        say(run, metric, line.as_ref(), &mut words);
        for (arm, subject) in run.subjects.iter().enumerate() {
            let measured = times.median(metric, arm);
            let row = row(run, metric, subject, measured, line.as_ref())?;
            rows.row(&row)?;
            say_arm(&row, &mut words);
        }
        if !run.options.common.quiet {
            let words = words.read().map_err(|Full| Error::TooLong)?;
            // A courtesy of standard error.
            let _ = stderr().write_all(words.as_bytes());
        }
    }
    rows.end()?;
    Ok(())
}

/// Through all medians; `None` if one is missing, because then the line is another.
fn line(run: &Run<'_>, metric: Metric, times: &mut Times) -> Option<Line> {
    let mut points = Vec::<(u64, u64), ARMS_MAX>::new();
    for (arm, subject) in run.subjects.iter().enumerate() {
        if let Some(objects) = subject.objects {
            // As many as there are arms.
            let _ = points.push((objects, times.median(metric, arm).1?));
        }
    }
    Line::through(&points).ok()
}

fn row<'r>(
    run: &'r Run<'_>,
    metric: Metric,
    subject: &'r Subject,
    (samples, median_ns): (u64, Option<u64>),
    line: Option<&Line>,
) -> Result<StartupFitRow<'r>, Error> {
    let above = |line: &Line| Some(line.residual_milli(subject.objects.unwrap_or(0), median_ns?));
    Ok(StartupFitRow {
        label: run.options.common.label,
        kernel: run.kernel,
        arch: cpu::ARCH,
        cache: run.cache(),
        metric: metric.name(),
        arm: subject.name.read().map_err(|Full| Error::TooLong)?,
        n_objects: subject.objects,
        samples,
        median_ns,
        intercept_ns: line.map(|line| Milli(line.intercept_milli)),
        slope_ns: line.map(|line| Milli(line.slope_milli)),
        r2: line.and_then(|line| line.r2_milli).map(Milli),
        residual_ns: line.and_then(above).map(Milli),
    })
}

fn say(run: &Run<'_>, metric: Metric, line: Option<&Line>, words: &mut Text) {
    words.add("cowitness startup slope: ").add(metric.name());
    words.add(", ").number(run.options.rounds).add(" rounds");
    order::say(run.subjects.len(), run.options.rounds, words);
    words.add(", ");
    words.add(run.cache()).add(" cache, times in us: ");
    match line {
        Some(line) => {
            micros(words, Some(line.intercept_milli / 1000));
            words.add(" + n * ");
            micros(words, Some(line.slope_milli / 1000));
            words.add(", R2 ");
            match line.r2_milli {
                Some(r2) => words.thousandths(r2),
                None => words.add("unknown"),
            };
            words.add("\n")
        }
        None => words.add("no line: not every program was measured\n"),
    };
}

/// `  n=8     540.777  above the line by 1.204`
fn say_arm(row: &StartupFitRow<'_>, words: &mut Text) {
    words.add("  ").add(row.arm).add("  ");
    micros(words, row.median_ns.map(u64::cast_signed));
    words.add("  above the line by ");
    micros(words, row.residual_ns.map(|Milli(ns)| ns / 1000));
    words.add("\n");
}
