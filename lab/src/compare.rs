//! `compare`: what differs between two runs, and how sure that is.
//!
//! Semantics first: a page that is split, or an answer that is another, is a change whatever
//! the clock says. Rates are only told apart beyond the noise.

mod alike;
mod noise;
pub mod ratio;
mod semantics;

use crate::answer::{self, Answer};
use crate::cli::CompareOptions;
use crate::failure::Failure;
use crate::figures;
use crate::groups::{Arm, Group, groups};
use crate::runs::{Real, Run, Runs};
use crate::stream::Tolerance;
use crate::text::wrapped;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Record;
use cowitness::emit::summary::Phase;
use ratio::{Noise, Ratio, Verdict};
use semantics::{Semantics, Side};
use std::ffi::OsString;

/// Columns that a narrow terminal is spared, in this order: the ratio's interval tells more.
const EXPENDABLE: [&str; 3] = ["A MiB/s", "B MiB/s", "B/A"];

/// One setting that both sides have measured, cold or warm.
struct Line {
    cells: [String; 4],
    medians: [String; 2],
    ratio: Ratio,
    /// That of this setting.
    noise: Noise,
}

/// Everything found.
#[derive(Default)]
struct Found {
    semantics: Semantics,
    lines: Vec<Line>,
    /// What only one side has, a line each.
    single: Vec<String>,
    /// That of all settings.
    noise: Noise,
    /// What `--noise` said.
    given: Option<u64>,
    /// What is to be known of the times of a side, a line each.
    doubts: Vec<String>,
}

/// Compares the two inputs. `width` is that of the terminal, if the text goes to one. `warn` is
/// told, a line each, what was taken although it is not
/// whole.
///
/// # Errors
/// [`Failure`]: a side cannot be trusted, or the two cannot be compared. A change is not
/// among them: that is the answer's.
pub fn run(
    options: &CompareOptions,
    width: Option<usize>,
    warn: &dyn Fn(&str),
) -> Result<Answer, Failure> {
    let [a, b] = &options.files;
    let (a, cut_a) = side(a, options.tolerance, warn)?;
    let (b, cut_b) = side(b, options.tolerance, warn)?;
    let cut = [("A", cut_a), ("B", cut_b)];
    let unlike = alike::differences(&a, &b);
    if !unlike.is_empty() && !options.allow_mismatch {
        return Err(Failure::Unlike(unlike.join("; ")));
    }
    let timed = a.real() != Real::No && b.real() != Real::No;
    let found = Found::of(&a, &b, timed, options.noise_percent);
    if found.semantics.splits + found.semantics.answers + found.lines.len() == 0 {
        return Err(Failure::NothingInCommon);
    }
    let mut text = heading(&a, &b, &unlike, &cut);
    text += &found.changes();
    text += &found.rates(timed, options.threshold_percent, width);
    // A table has left out what there is no room for, and cannot be wrapped.
    if let Some(width) = width {
        let fitted = |line: &str| match line.starts_with('|') {
            true => format!("{line}\n"),
            false => wrapped(line, width) + "\n",
        };
        text = text.lines().map(fitted).collect();
    }
    Ok(Answer {
        text,
        failure: found.failure(options.threshold_percent),
    })
}

/// One side: one machine in one setting, and what of it is cut.
fn side(
    file: &OsString,
    tolerance: Tolerance,
    warn: &dyn Fn(&str),
) -> Result<(Run, Vec<String>), Failure> {
    let files = std::slice::from_ref(file);
    let Runs { mut runs, cut, .. } = Runs::read(files, tolerance, warn)?;
    if let [first, other, ..] = &*runs {
        return Err(Failure::Several {
            first_place: first.sources[0].place.clone(),
            place: other.sources[0].place.clone(),
            differs: alike::difference(first, other),
        });
    }
    // There is one: no rows at all are an error of their own.
    let run = runs.pop().ok_or(Failure::NoRows)?;
    Ok((run, cut))
}

fn heading(a: &Run, b: &Run, unlike: &[String], cut: &[(&str, Vec<String>)]) -> String {
    let side = |name, run: &Run| {
        let file = &run.sources[0].file;
        format!("{name}: {file}: {}, {}\n", run.machine.words(), run.cases())
    };
    let mut text = side("A", a) + &side("B", b);
    for difference in unlike {
        text += &format!("differs: {difference}\n");
    }
    for (side, lines) in cut {
        for line in lines {
            text += &format!("partial: {side}: {line}\n");
        }
    }
    text
}

impl Found {
    fn of(a: &Run, b: &Run, timed: bool, noise: Option<u64>) -> Self {
        let (first, second) = (groups(&a.samples), groups(&b.samples));
        let mut found = Self {
            noise: noise::of(&first, &second, noise),
            given: noise,
            ..Self::default()
        };
        for group in &first {
            match second.iter().find(|other| other.is_like(group)) {
                Some(other) => found.group((a, group), (b, other), timed),
                None => found.only("A", group),
            }
        }
        for group in second
            .iter()
            .filter(|group| !first.iter().any(|other| other.is_like(group)))
        {
            found.only("B", group);
        }
        found.semantics.probes(&a.probes, &b.probes);
        for (side, run) in [("A", a), ("B", b)] {
            found.others(side, run);
            let doubt = run.real().doubt().filter(|_| timed);
            found
                .doubts
                .extend(doubt.map(|doubt| format!("doubt: {side}: {doubt}\n")));
        }
        found
    }

    /// Records that are read and not compared.
    fn others(&mut self, side: &str, run: &Run) {
        let known = [BenchRow::NAME, ProbeRow::NAME];
        let mut records: Vec<&str> = run.sources.iter().map(|source| &*source.record).collect();
        records.sort_unstable();
        records.dedup();
        let others = records.into_iter().filter(|record| !known.contains(record));
        self.single
            .extend(others.map(|record| format!("rows of {record} in {side}")));
    }

    fn only(&mut self, side: &str, group: &Group<'_>) {
        self.single
            .push(format!("{} {} only in {side}", group.layout, group.block()));
    }

    fn group(&mut self, a: (&Run, &Group<'_>), b: (&Run, &Group<'_>), timed: bool) {
        let ((run_a, a), (run_b, b)) = (a, b);
        let place = format!("{} {}", a.layout, a.block());
        for first in &a.arms {
            let Some(second) = b.arm(first.method()) else {
                self.single
                    .push(format!("{place} {} only in A", first.method()));
                continue;
            };
            if first.method() != crate::groups::CEILING {
                let side = |run, arm| Side { run, arm };
                let (one, two) = (side(run_a, *first), side(run_b, second));
                self.semantics.split(&place, first.method(), one, two);
            }
            if timed {
                for phase in Phase::BOTH {
                    match line(a, *first, second, phase) {
                        Some(mut line) => {
                            let arms = [*first, second];
                            line.noise = noise::of_setting(self.noise, arms, phase, self.given);
                            self.lines.push(line);
                        }
                        None => self.single.extend(rateless(&place, *first, second, phase)),
                    }
                }
            }
        }
        for second in b.arms.iter().filter(|arm| a.arm(arm.method()).is_none()) {
            self.single
                .push(format!("{place} {} only in B", second.method()));
        }
    }

    fn changes(&self) -> String {
        let Semantics {
            splits, answers, ..
        } = &self.semantics;
        let mut text = "\nPages split and answers\n".to_owned();
        let changed = self
            .semantics
            .changed_splits
            .iter()
            .chain(&self.semantics.changed_answers);
        for line in changed.clone() {
            text += &format!("  changed: {line}\n");
        }
        let changed = changed.count();
        let words = if changed == 0 {
            "no change".to_owned()
        } else {
            format!("{changed} changed")
        };
        text +=
            &format!("  {words}; compared: {splits} settings' split pages, {answers} answers\n");
        for line in &self.semantics.noted {
            text += &format!("  not counted: {line}\n");
        }
        for line in self.single.iter().chain(&self.semantics.unknown) {
            text += &format!("  not compared: {line}\n");
        }
        text
    }

    fn rates(&self, timed: bool, threshold: Option<u64>, width: Option<usize>) -> String {
        if !timed {
            return "\nRates are not compared: a side is emulated, and its times say nothing\n"
                .to_owned();
        }
        if self.lines.is_empty() {
            return String::new();
        }
        let headings = [
            "layout", "block", "pass", "method", "A MiB/s", "B MiB/s", "B/A", "interval", "verdict",
        ];
        let noise = self.noise;
        let rows = self.lines.iter().map(|line| line.cells(noise)).collect();
        let moot = threshold.filter(|percent| *percent < noise.most);
        let moot = moot.map_or_else(String::new, |percent| {
            let most = noise.most;
            format!(
                "The threshold of {percent} % lies within the noise: what counts has to be faster or \
                 slower, beyond {most} %\n"
            )
        });
        let counts = Verdict::ALL.map(|verdict| {
            let lines = self.lines.iter().filter(|line| line.verdict() == verdict);
            format!("{} {}", lines.count(), verdict.word())
        });
        let Noise { least, most } = noise;
        format!(
            "\nRates: ratio of medians, with an interval of at least 95 % confidence\n{}{}\n{}; faster \
             and slower are beyond {most} %, same is within {least} %, with all of the interval\n{}{moot}",
            self.doubts.concat(),
            answer::table_within(&headings, rows, width, &EXPENDABLE),
            counts.join(", "),
            restless(noise)
        )
    }

    fn failure(&self, threshold: Option<u64>) -> Option<Failure> {
        // What the noise may have made is no change, however small the threshold.
        let told = |line: &&Line| matches!(line.verdict(), Verdict::Faster | Verdict::Slower);
        let told = || self.lines.iter().filter(told);
        let beyond = |percent| told().filter(move |line| line.ratio.is_beyond(percent));
        let rates = threshold.map_or(0, |percent| beyond(percent).count());
        let splits = self.semantics.changed_splits.len();
        let answers = self.semantics.changed_answers.len();
        (splits + answers + rates > 0).then(|| Failure::Changed {
            splits,
            answers,
            rates,
            beyond: threshold.map_or_else(String::new, |percent| format!(" beyond {percent} %")),
        })
    }
}

/// Why little is told apart.
fn restless(noise: Noise) -> &'static str {
    if noise.most <= 3 * noise.least {
        return "";
    }
    "Identical cases of one side vary that much: measured on a quieter machine, more is told apart\n"
}

/// Why there is no ratio; `None` if neither side has a rate: nobody measured it.
fn rateless(place: &str, a: Arm<'_>, b: Arm<'_>, phase: Phase) -> Option<String> {
    let why = match [a, b].map(|arm| arm.rates(phase).is_empty()) {
        [true, true] => return None,
        [true, _] => "no rate in A",
        [_, true] => "no rate in B",
        _ => "a median of 0",
    };
    Some(format!("{place} {} {}: {why}", phase.name(), a.method()))
}

fn line(group: &Group<'_>, a: Arm<'_>, b: Arm<'_>, phase: Phase) -> Option<Line> {
    let (mut first, mut second) = (a.rates(phase), b.rates(phase));
    let ratio = Ratio::of(&mut first, &mut second)?;
    let median = |arm: Arm<'_>| arm.summary(phase).map_or(0, |summary| summary.median);
    Some(Line {
        cells: [
            group.layout.clone(),
            group.block(),
            phase.name().to_owned(),
            a.method().to_owned(),
        ],
        medians: [a, b].map(median).map(figures::rate),
        ratio,
        noise: Noise::default(),
    })
}

impl Line {
    fn verdict(&self) -> Verdict {
        self.ratio.verdict(self.noise)
    }

    /// The verdict; and what hides a difference that is beyond the noise of all settings.
    fn words(&self, overall: Noise) -> String {
        let verdict = self.verdict();
        let hidden = verdict == Verdict::Unresolved && self.ratio.verdict(overall) != verdict;
        match hidden {
            true => format!("{}: its noise is {} %", verdict.word(), self.noise.most),
            false => verdict.word().to_owned(),
        }
    }

    fn cells(&self, noise: Noise) -> Vec<String> {
        let interval = self.ratio.interval_ppm.map_or_else(
            || "too few cases".to_owned(),
            |(low, high)| format!("[{}, {}]", figures::ratio(low), figures::ratio(high)),
        );
        let mut cells = self.cells.to_vec();
        cells.extend(self.medians.clone());
        cells.extend([
            figures::ratio(self.ratio.median_ppm),
            interval,
            self.words(noise),
        ]);
        cells
    }
}
