//! What reading changed: pages split by each reader, and what the target then pays.

use crate::figures;
use crate::groups::{Arm, Group, is_unshared, methods, percent, split};
use crate::matrix::split::Split;
use crate::runs::Run;
use cowitness::emit::summary::{Outcome, Sample};
use cowitness::stats::Summary;

/// The section of one run.
pub struct Changes {
    /// The readers, in their order.
    pub methods: Vec<String>,
    /// A row for each layout and block.
    pub rows: Vec<Row>,
    /// All of them together, by reader.
    pub total: Vec<Cell>,
    /// How it is known, and what else is to be said.
    pub remarks: Vec<String>,
    /// The target's own first write, where it was measured.
    pub writes: Vec<Write>,
    /// The same in a sentence.
    pub paid: String,
}

/// One layout and block.
pub struct Row {
    pub layout: String,
    pub block_bytes: u64,
    pub block: String,
    pub cells: Vec<Cell>,
}

/// What one reader split.
pub struct Cell {
    /// Per cent, never rounded to none or all; or that nothing is known.
    pub percent: String,
    /// `25.00%`, for the bar.
    pub width: String,
    /// How many pages of how many.
    pub pages: String,
    /// `none`, `some`, `all` or `unknown`.
    pub class: &'static str,
}

/// First-write times, ns a page.
pub struct Write {
    pub layout: String,
    pub block_bytes: u64,
    pub block: String,
    pub method: String,
    pub median: u64,
    pub p25: u64,
    pub p75: u64,
    pub width: String,
    pub class: &'static str,
}

impl Changes {
    /// Of a run and its sorted groups; `None` if it has no case.
    pub fn of(run: &Run, groups: &[Group<'_>]) -> Option<Self> {
        let methods = methods(&run.samples);
        if methods.is_empty() {
            return None;
        }
        // Every row of bench has it.
        let page_bytes = run.machine.page_bytes.unwrap_or(0);
        let row = |group: &Group<'_>| Row {
            layout: group.layout.clone(),
            block_bytes: group.block_bytes,
            block: group.block(),
            cells: methods
                .iter()
                .map(|method| cell(group.arm(method), method))
                .collect(),
        };
        let total = |method: &String| Cell::of(&split(method, run.samples.iter()));
        Some(Self {
            rows: groups.iter().map(row).collect(),
            total: methods.iter().map(total).collect(),
            remarks: remarks(&run.samples),
            writes: writes(groups, page_bytes),
            paid: paid(&methods, groups, page_bytes),
            methods,
        })
    }
}

fn cell(arm: Option<Arm<'_>>, method: &str) -> Cell {
    Cell::of(&split(method, arm.iter().flat_map(|arm| arm.0)))
}

impl Cell {
    fn of(split: &Split) -> Self {
        let class = match (split.tracked, split.split) {
            _ if is_unshared(split) => "none",
            (0, _) => "unknown",
            (_, 0) => "none",
            (tracked, pages) if tracked == pages => "all",
            _ => "some",
        };
        let percent = match (split.ok, split.not_ok) {
            (0, 0) => "not measured".to_owned(),
            _ => percent(split),
        };
        Self {
            percent,
            width: figures::place(split.split, split.tracked),
            pages: format!("{} of {} pages", split.split, split.tracked),
            class,
        }
    }
}

/// How sharing was decided, and whether warm passes were as they should be.
fn remarks(samples: &[Sample]) -> Vec<String> {
    let kinds = [
        ("pfn", "frame numbers of parent and child were compared"),
        (
            "exclusive",
            "pagemap bit 56, exclusively mapped; frame numbers need CAP_SYS_ADMIN",
        ),
        ("none", "none: what reading changed is unknown"),
    ];
    let ok = || samples.iter().filter(|one| one.outcome == Outcome::Ok);
    let mut remarks = Vec::new();
    for (name, meaning) in kinds {
        let count = ok().filter(|one| one.evidence.as_str() == name).count();
        if count > 0 {
            remarks.push(format!("Evidence in {count} cases: {meaning}."));
        }
    }
    let warm: Vec<Option<u64>> = ok()
        .filter(|one| one.warm_passes > 0)
        .map(|one| one.reader_minflt_warm)
        .collect();
    remarks.extend(warm_faults(&warm));
    remarks
}

/// Of the cases that had warm passes, each with its page faults if they are known.
fn warm_faults(cases: &[Option<u64>]) -> Option<String> {
    let known = cases.iter().flatten().count();
    let faulted = cases.iter().flatten().filter(|&&faults| faults > 0).count();
    let of = match cases.len() {
        all if all == known => String::new(),
        all => format!(" (known of {known} of {all} cases)"),
    };
    match (cases.len(), known, faulted) {
        (0, ..) => None,
        (_, 0, _) => Some("Whether warm passes caused page faults is unknown.".to_owned()),
        (_, _, 0) => Some(format!("No warm pass caused a page fault{of}.")),
        (_, _, count) => Some(format!("{count} cases had page faults in warm passes{of}.")),
    }
}

/// The median first write of all settings, by reader; empty if none was measured.
fn paid(methods: &[String], groups: &[Group<'_>], page_bytes: u64) -> String {
    let median = |method: &String| {
        let arms = groups.iter().filter_map(|group| group.arm(method));
        let mut times: Vec<u64> = arms.flat_map(|arm| arm.first_writes(page_bytes)).collect();
        let median = Summary::new(&mut times)?.median;
        Some(format!("{median} ns a page after {method}"))
    };
    let medians: Vec<String> = methods.iter().filter_map(median).collect();
    if medians.is_empty() {
        return String::new();
    }
    format!(
        "All settings together, the median is {}.",
        figures::list(&medians)
    )
}

fn writes(groups: &[Group<'_>], page_bytes: u64) -> Vec<Write> {
    let mut found = Vec::new();
    for group in groups {
        for arm in group.readers() {
            let summary = Summary::new(&mut arm.first_writes(page_bytes));
            found.extend(summary.map(|summary| (group, arm.method(), summary)));
        }
    }
    let most = found
        .iter()
        .map(|(_, _, summary)| summary.median)
        .max()
        .unwrap_or(0);
    let write = |(group, method, summary): (&Group<'_>, &str, Summary)| Write {
        layout: group.layout.clone(),
        block_bytes: group.block_bytes,
        block: group.block(),
        method: method.to_owned(),
        median: summary.median,
        p25: summary.p25,
        p75: summary.p75,
        width: figures::place(summary.median, most),
        class: super::throughput::class(method),
    };
    found.into_iter().map(write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fault_is_said_only_of_passes_that_were_watched() {
        for (cases, want) in [
            (&[][..], None),
            (&[None, None], Some("is unknown.")),
            (&[Some(0), None], Some("fault (known of 1 of 2 cases).")),
            (
                &[Some(0), Some(0)],
                Some("No warm pass caused a page fault."),
            ),
            (
                &[Some(3), Some(0)],
                Some("1 cases had page faults in warm passes."),
            ),
        ] {
            let said = warm_faults(cases);
            let fits = match (&said, want) {
                (Some(said), Some(want)) => said.ends_with(want),
                (said, want) => said.is_none() && want.is_none(),
            };
            assert!(fits, "{said:?}, not {want:?}");
        }
    }
}
