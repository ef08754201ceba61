//! Machines side by side: what each reader splits and gets. Rates only of machines that are
//! known to be real.

use super::many::{ROWS_MAX, cut, grouped};
use super::names::settings;
use crate::figures;
use crate::groups::{groups, is_unshared, methods as readers, percent, split};
use crate::runs::probes::{Cell, Gave};
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
    /// Machines that answered questions of `probe`.
    pub asked: Vec<String>,
    /// Questions that machines answered differently.
    pub differences: Vec<Difference>,
    /// How many questions were asked of several machines, and what is left out.
    pub compared: String,
}

/// A question that was not answered alike.
pub struct Difference {
    pub kind: String,
    pub op: String,
    pub method: String,
    /// By machine: the words, and their class.
    pub answers: Vec<(String, &'static str)>,
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
    let (asked, (differences, compared)) = differences(runs, names);
    Some(Kernels {
        asked,
        differences,
        compared,
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
            _ if is_unshared(&split) => (percent(&split), "none"),
            (_, 0, _) => (split.percent(), "unknown"),
            (_, _, 0) => (percent(&split), "none"),
            (_, tracked, pages) if tracked == pages => (percent(&split), "all"),
            _ => (percent(&split), "some"),
        }
    };
    let settings = settings(run, all.iter());
    let settings: String = settings.iter().map(|mark| format!(", {mark}")).collect();
    Row {
        name: format!("{name}{settings}"),
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

/// Side effects that are compared between machines, as there or not: the others follow from these.
const MARKS: [&str; 7] = ["S", "F", "W", "V", "G", "P", "D"];

/// A cell and the size of its machine's pages.
type Asked<'r> = (usize, &'r Cell, Option<u64>);

/// The machines that were asked, and what they did not answer alike. What nobody could answer on
/// a machine is shown, and is no difference.
fn differences(runs: &[Run], names: &[String]) -> (Vec<String>, (Vec<Difference>, String)) {
    let asked = || {
        runs.iter()
            .zip(names)
            .filter(|(run, _)| !run.probes.cells.is_empty())
    };
    let machines: Vec<String> = asked().map(|(_, name)| name.clone()).collect();
    let cells = asked().enumerate().flat_map(|(at, (run, _))| {
        let key = |cell: &Cell| [&cell.kind, &cell.op, &cell.method].map(String::clone);
        let page_bytes = run.machine.page_bytes;
        run.probes
            .cells
            .iter()
            .map(move |cell| (key(cell), (at, cell, page_bytes)))
    });
    let several = grouped(cells)
        .into_iter()
        .filter(|(_, cells)| cells.len() > 1);
    let questions: Vec<_> = several.collect();
    let mut found: Vec<Difference> = questions
        .iter()
        .filter_map(|(key, cells)| Difference::of(key, cells, machines.len()))
        .collect();
    let words = format!(
        "{} of {} questions of probe that several machines were asked have different answers.",
        found.len(),
        questions.len()
    );
    let note = cut(&mut found, ROWS_MAX, "differences");
    (
        machines,
        (found, format!("{words} {note}").trim_end().to_owned()),
    )
}

impl Difference {
    /// `None` if all that is known agrees.
    fn of([kind, op, method]: &[String; 3], cells: &[Asked<'_>], machines: usize) -> Option<Self> {
        let known = || {
            cells
                .iter()
                .filter(|(_, cell, _)| cell.class() != "unknown")
        };
        let unknown = |mark: &str| {
            let mut answers = known().flat_map(|(_, cell, _)| &cell.answers);
            answers.any(|answer| answer.unknown().any(|one| one == mark))
        };
        let marks: Vec<&str> = MARKS.into_iter().filter(|mark| !unknown(mark)).collect();
        let words = |(_, cell, page_bytes): &Asked<'_>| words(cell, *page_bytes, &marks);
        let first = words(known().next()?);
        if known().all(|asked| words(asked) == first) {
            return None;
        }
        let mut answers = vec![(String::new(), "unknown"); machines];
        for asked in cells {
            answers[asked.0] = (words(asked), asked.1.class());
        }
        Some(Self {
            kind: kind.clone(),
            op: op.clone(),
            method: method.clone(),
            answers,
        })
    }
}

/// What came, in pages where it is whole ones, and what it changed, uncounted.
fn words(cell: &Cell, page_bytes: Option<u64>, marks: &[&str]) -> String {
    let mut words: Vec<String> = Vec::new();
    for answer in &cell.answers {
        let came = match (&answer.gave, page_bytes.filter(|size| *size > 0)) {
            (Gave::Part(bytes, errno), Some(size)) if bytes.is_multiple_of(size) => {
                let pages = bytes / size;
                let plural = if pages == 1 { "" } else { "s" };
                format!("{pages} page{plural}, {errno}")
                    .trim_end_matches(", ")
                    .to_owned()
            }
            _ => answer.words(None),
        };
        let changed = answer
            .changes
            .iter()
            .map(|(mark, _)| *mark)
            .filter(|mark| marks.contains(mark));
        let found = std::iter::once(&*came)
            .chain(changed)
            .collect::<Vec<_>>()
            .join(" ");
        if !words.contains(&found) {
            words.push(found);
        }
    }
    words.sort_unstable();
    words.join(" or ")
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
