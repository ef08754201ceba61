//! Machines side by side: what each reader splits and gets. Rates only of machines that are
//! known to be real.

use crate::figures;
use crate::groups::{groups, methods as readers, percent, split};
use crate::runs::{Real, Run};
use crate::text::shown;
use cowitness::emit::summary::Phase;

/// The section.
pub struct Kernels {
    /// Readers whose splits are shown.
    pub methods: Vec<String>,
    /// Questions whose answers are shown, as (kind, reader).
    pub questions: Vec<(&'static str, &'static str)>,
    /// A row a machine.
    pub rows: Vec<Row>,
    /// Whether any row has rates.
    pub rates: bool,
}

/// One machine.
pub struct Row {
    pub name: String,
    pub kernel: String,
    pub arch: String,
    pub pages: String,
    pub run: &'static str,
    pub splits: Vec<(String, &'static str)>,
    pub answers: Vec<(String, &'static str)>,
    /// Medians of the largest block, contiguous, in MiB/s, by pass and reader; empty if they mean
    /// nothing.
    pub rates: String,
}

const QUESTIONS: [(&str, &str); 4] = [
    ("prot-none", "proc"),
    ("prot-none", "vmread"),
    ("hole", "proc"),
    ("hole", "vmread"),
];

/// Whether a run's times are shown: what may be emulated counts as real only where no other
/// machine is near.
pub fn is_real(run: &Run, all: &[Run]) -> Real {
    match run.real() {
        Real::Perhaps if all.iter().all(|run| run.real() == Real::Perhaps) => Real::Perhaps,
        Real::Perhaps => Real::No,
        sure => sure,
    }
}

/// How a machine is called in the table.
pub fn kind(run: &Run, all: &[Run]) -> &'static str {
    match (run.real(), is_real(run, all)) {
        (Real::No, _) => "emulated",
        (Real::Perhaps, _) => "may be emulated",
        _ => "real",
    }
}

/// `None` for one machine.
pub fn of(runs: &[Run], names: &[String]) -> Option<Kernels> {
    if runs.len() < 2 {
        return None;
    }
    let mut methods: Vec<String> = Vec::new();
    for method in runs.iter().flat_map(|run| readers(&run.samples)) {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    let asked = |(kind, method): &(&'static str, &'static str)| {
        runs.iter()
            .any(|run| run.probes.cell(kind, "page", method).is_some())
    };
    let questions: Vec<_> = QUESTIONS.into_iter().filter(asked).collect();
    let row = |(run, name): (&Run, &String)| row(run, name, runs, &methods, &questions);
    let rows: Vec<Row> = runs.iter().zip(names).map(row).collect();
    let rates = rows.iter().any(|row| !row.rates.is_empty());
    Some(Kernels {
        methods,
        questions,
        rows,
        rates,
    })
}

fn row(
    run: &Run,
    name: &str,
    all: &[Run],
    methods: &[String],
    questions: &[(&'static str, &'static str)],
) -> Row {
    let share = |method: &String| {
        let split = split(method, run.samples.iter());
        match (split.ok + split.not_ok, split.tracked, split.split) {
            (0, ..) => (String::new(), "unknown"),
            (_, 0, _) => (split.percent(), "unknown"),
            (_, _, 0) => (percent(&split), "none"),
            (_, tracked, pages) if tracked == pages => (percent(&split), "all"),
            _ => (percent(&split), "some"),
        }
    };
    Row {
        name: name.to_owned(),
        kernel: shown(run.machine.kernel.as_bytes()),
        arch: shown(run.machine.arch.as_bytes()),
        pages: run
            .machine
            .page_bytes
            .map_or_else(String::new, figures::bytes),
        run: kind(run, all),
        splits: methods.iter().map(share).collect(),
        answers: questions
            .iter()
            .map(|question| answer(run, question))
            .collect(),
        rates: if is_real(run, all) == Real::Yes {
            rates(run)
        } else {
            String::new()
        },
    }
}

fn answer(run: &Run, (kind, method): &(&str, &str)) -> (String, &'static str) {
    let Some(cell) = run.probes.cell(kind, "page", method) else {
        return (String::new(), "unknown");
    };
    (cell.words(), cell.class())
}

fn rates(run: &Run) -> String {
    let groups = groups(&run.samples);
    let group = groups.iter().filter(|group| group.layout == "contiguous");
    let Some(group) = group.max_by_key(|group| group.block_bytes) else {
        return String::new();
    };
    let phase = |phase: Phase| {
        let readers = group.readers().filter_map(|arm| {
            Some(format!(
                "{} {}",
                arm.method(),
                figures::rate(arm.summary(phase)?.median)
            ))
        });
        let readers: Vec<String> = readers.collect();
        (!readers.is_empty()).then(|| format!("{}: {}", phase.name(), readers.join(", ")))
    };
    let phases: Vec<String> = Phase::BOTH.into_iter().filter_map(phase).collect();
    phases.join("; ")
}
