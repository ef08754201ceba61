//! What reading a live process cost and changed, against what was expected.

use super::many::{ROWS_MAX, cut, losses};
use super::throughput::class;
use crate::figures;
use crate::runs::Run;
use crate::runs::others::Audit as Pass;
use crate::text::shown;

/// The most bars.
const BARS_MAX: usize = 60;

/// The most sentences.
const SAID_MAX: usize = 4;

/// The section of one run.
pub struct Audit {
    /// First passes: what each split.
    pub bars: Vec<Bar>,
    pub rows: Vec<Row>,
    pub remarks: Vec<String>,
    /// The same in a sentence for each first pass, the first ones.
    pub said: Vec<String>,
}

/// One reader on one process.
pub struct Bar {
    pub name: String,
    pub words: String,
    pub width: String,
    /// Place of what was expected; empty: unknown.
    pub expected: String,
    pub class: &'static str,
}

/// One pass.
pub struct Row {
    pub pid: u64,
    pub method: String,
    pub pass: String,
    pub rate: String,
    /// Bytes that came, did not come, and were not to be read.
    pub bytes: Vec<(Option<u64>, String)>,
    /// Shared, split, expected; faulted in, swapped in, changed by others; Rss, Pss, USS.
    pub counts: Vec<String>,
    pub errno: String,
    pub why: String,
}

impl Audit {
    /// Of a run; `None` if no process was read. `timed`: whether its times say anything.
    pub fn of(run: &Run, timed: bool) -> Option<Self> {
        let passes = &run.others.audits;
        if passes.is_empty() {
            return None;
        }
        let first = || passes.iter().filter(|pass| pass.pass == 1);
        let most = first().filter_map(|pass| pass.pages[0]).max().unwrap_or(0);
        let mut bars: Vec<Bar> = first().map(|pass| Bar::of(pass, most)).collect();
        let mut rows: Vec<Row> = passes.iter().map(|pass| Row::of(pass, timed)).collect();
        let mut remarks = vec![
            cut(&mut bars, BARS_MAX, "first passes"),
            cut(&mut rows, ROWS_MAX, "passes"),
        ];
        remarks.extend(losses(
            passes.iter().map(|pass| pass.why.as_deref()),
            "passes",
        ));
        if !timed {
            remarks.push(super::TIMELESS.to_owned());
        }
        remarks.retain(|remark| !remark.is_empty());
        Some(Self {
            said: first().filter_map(said).take(SAID_MAX).collect(),
            bars,
            rows,
            remarks,
        })
    }
}

impl Bar {
    fn of(pass: &Pass, most: u64) -> Self {
        let [tracked, split, expected] = pass.pages;
        let words = match (split, tracked) {
            (Some(split), Some(tracked)) => format!("{split} of {tracked}"),
            _ => "unknown".to_owned(),
        };
        let place =
            |pages: Option<u64>| pages.map_or_else(String::new, |n| figures::place(n, most));
        Self {
            name: format!("{}, process {}", pass.method, pass.pid),
            words,
            width: place(split),
            expected: place(expected),
            class: class(&pass.method),
        }
    }
}

impl Row {
    fn of(pass: &Pass, timed: bool) -> Self {
        let count = |pages: &Option<u64>| pages.map_or_else(String::new, |n| n.to_string());
        let gained = |kib: &Option<i64>| kib.map_or_else(String::new, |kib| format!("{kib:+}"));
        let bytes = |bytes: &Option<u64>| (*bytes, bytes.map_or_else(String::new, figures::bytes));
        let counts = pass.pages.iter().chain(&pass.moved).map(count);
        Self {
            pid: pass.pid,
            method: pass.method.clone(),
            pass: match pass.pass {
                1 => "cold".to_owned(),
                pass => format!("warm {}", pass - 1),
            },
            rate: pass
                .rate
                .filter(|_| timed)
                .map_or_else(String::new, |rate| figures::exact(figures::parts(rate))),
            bytes: pass.bytes.iter().map(bytes).collect(),
            counts: counts.chain(pass.gained_kib.iter().map(gained)).collect(),
            errno: pass.errno.clone(),
            why: pass.why.clone().unwrap_or_default(),
        }
    }
}

fn said(pass: &Pass) -> Option<String> {
    let [Some(tracked), Some(split), expected] = pass.pages else {
        return None;
    };
    let expected = expected.map_or_else(String::new, |n| format!("; {n} were expected"));
    let method = shown(pass.method.as_bytes());
    (pass.why.is_none()).then(|| {
        let pid = pass.pid;
        format!(
            "Reading process {pid} with {method} split {split} of {tracked} shared pages{expected}."
        )
    })
}
