//! What each reader would split in a live process, that was looked at and not read.

use super::many::cut;
use crate::figures;
use crate::runs::Run;
use crate::runs::others::{Survey as Process, Vma};
use crate::text::shown;

/// The most mappings of one process that are listed.
const VMAS_MAX: usize = 200;

/// The most processes that are shown.
const PROCESSES_MAX: usize = 100;

/// The most sentences.
const SAID_MAX: usize = 3;

/// The readers, in the order of the columns.
const READERS: [&str; 3] = ["proc", "vmread", "hybrid"];

/// The section of one run.
pub struct Survey {
    pub processes: Vec<Shown>,
    pub remarks: Vec<String>,
    /// The same in a sentence for each process, the first ones.
    pub said: Vec<String>,
}

/// One process.
pub struct Shown {
    pub pid: u64,
    /// `None`: the rows are cut before it.
    pub total: Option<Line>,
    /// Present pages that each reader would split.
    pub bars: Vec<Bar>,
    /// Mappings, those that would be split most first.
    pub vmas: Vec<Line>,
    pub remarks: Vec<String>,
}

/// One reader.
pub struct Bar {
    pub reader: &'static str,
    pub words: String,
    pub width: String,
}

/// One mapping, or all.
pub struct Line {
    pub range: String,
    pub perms: String,
    pub name: String,
    /// Present, exclusive, shared anonymous, file, swapped, absent.
    pub pages: Vec<String>,
    /// By reader, with `none`, `some` or `unknown`.
    pub splits: Vec<(String, &'static str)>,
    pub extra_kib: String,
    pub why: String,
}

impl Survey {
    /// Of a run; `None` if no process was looked at.
    pub fn of(run: &Run) -> Option<Self> {
        let surveys = &run.others.surveys;
        let processes: Vec<Shown> = surveys.iter().take(PROCESSES_MAX).map(Shown::of).collect();
        let mut remarks = Vec::new();
        if surveys.len() > processes.len() {
            remarks.push(format!(
                "The first {PROCESSES_MAX} of {} processes are shown.",
                surveys.len()
            ));
        }
        (!processes.is_empty()).then(|| Self {
            said: surveys.iter().take(SAID_MAX).map(said).collect(),
            processes,
            remarks,
        })
    }
}

impl Shown {
    fn of(process: &Process) -> Self {
        let mut vmas: Vec<&Vma> = process.vmas.iter().collect();
        vmas.sort_by_key(|vma| std::cmp::Reverse((vma.splits.iter().max(), vma.pages[0])));
        let mut remarks = vec![cut(&mut vmas, VMAS_MAX, "mappings")];
        match &process.total {
            None => remarks
                .push("The row of the whole process is missing: the input is cut.".to_owned()),
            Some(Vma { why: Some(why), .. }) => {
                remarks.push(format!("The sum does not hold: {}.", shown(why.as_bytes())));
            }
            Some(_) => {}
        }
        remarks.retain(|remark| !remark.is_empty());
        Self {
            pid: process.pid,
            bars: process.total.as_ref().map(bars).unwrap_or_default(),
            total: process.total.as_ref().map(Line::of),
            vmas: vmas.into_iter().map(Line::of).collect(),
            remarks,
        }
    }
}

fn bars(total: &Vma) -> Vec<Bar> {
    let present = total.pages[0];
    let bar = |(reader, split): (&'static str, Option<u64>)| {
        let known = split.zip(present);
        Bar {
            reader,
            words: known.map_or_else(
                || "unknown".to_owned(),
                |(split, present)| format!("{split} of {present}"),
            ),
            width: known.map_or_else(String::new, |(split, present)| {
                figures::place(split, present)
            }),
        }
    };
    READERS.into_iter().zip(total.splits).map(bar).collect()
}

impl Line {
    fn of(vma: &Vma) -> Self {
        let count = |pages: Option<u64>| pages.map_or_else(String::new, |pages| pages.to_string());
        let split = |pages: Option<u64>| match pages {
            None => (String::new(), "unknown"),
            Some(0) => ("0".to_owned(), "none"),
            Some(pages) => (pages.to_string(), "some"),
        };
        Self {
            range: vma.range.clone(),
            perms: vma.perms.clone(),
            name: match &*vma.name {
                "" => "[anonymous]".to_owned(),
                name => name.to_owned(),
            },
            pages: vma.pages.map(count).to_vec(),
            splits: vma.splits.map(split).to_vec(),
            extra_kib: count(vma.extra_kib),
            why: vma.why.clone().unwrap_or_default(),
        }
    }
}

fn said(process: &Process) -> String {
    let Some(total) = process.total.as_ref().filter(|total| total.why.is_none()) else {
        return format!(
            "What readers would split in process {} is not known.",
            process.pid
        );
    };
    let clause = |(reader, split): (&str, Option<u64>)| Some(format!("{} with {reader}", split?));
    let clauses: Vec<String> = READERS
        .into_iter()
        .zip(total.splits)
        .filter_map(clause)
        .collect();
    let present =
        total.pages[0].map_or_else(|| "an unknown number of".to_owned(), |n| n.to_string());
    let splits = if clauses.is_empty() {
        "an unknown number".to_owned()
    } else {
        figures::list(&clauses)
    };
    format!(
        "Reading process {} would split {splits}, of {present} pages present.",
        process.pid
    )
}
