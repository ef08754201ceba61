//! What the kernel charged for touching an allocation: counts.

use super::many::{ROWS_MAX, cut, grouped, losses};
use crate::figures;
use crate::runs::Run;
use crate::runs::others::Touch;

/// The section of one run.
pub struct Memmap {
    /// A row for each allocation that was asked for.
    pub rows: Vec<Row>,
    pub remarks: Vec<String>,
    /// The same in a sentence; none: no fault is known.
    pub said: Vec<String>,
}

/// The same allocation, touched once or several times.
pub struct Row {
    /// With the file that was mapped, or `--brk`.
    pub mode: String,
    pub advise: String,
    pub bytes: u64,
    pub size: String,
    pub pages: u64,
    /// Huge pages, fault-around, bytes per write.
    pub settings: [String; 3],
    /// How often it was done.
    pub n: usize,
    /// VMAs, minor and major faults, RSS gained, huge KiB, RSS after advice: `31` or `30 to 32`.
    pub counts: Vec<String>,
    /// Pages for each minor fault.
    pub per_fault: String,
    /// Share of the pages that took a minor fault, for the bar.
    pub width: String,
}

impl Memmap {
    /// Of a run; `None` if nothing was touched.
    pub fn of(run: &Run) -> Option<Self> {
        let touched = &run.others.memmap;
        if touched.is_empty() {
            return None;
        }
        let sound = touched.iter().filter(|one| one.why.is_none());
        let groups = grouped(sound.map(|one| (Asked::of(one), one)));
        let mut rows: Vec<Row> = groups.iter().map(|(_, same)| Row::of(same)).collect();
        let mut remarks: Vec<String> =
            losses(touched.iter().map(|one| one.why.as_deref()), "allocations")
                .into_iter()
                .collect();
        let said = said(&rows);
        let note = cut(&mut rows, ROWS_MAX, "allocations");
        remarks.extend(Some(note).filter(|note| !note.is_empty()));
        Some(Self {
            rows,
            remarks,
            said,
        })
    }
}

/// What was asked for, and under which settings.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Asked {
    mode: String,
    brk: String,
    file: String,
    advise: String,
    size: [u64; 2],
    thp: String,
    settings: [Option<u64>; 2],
}

impl Asked {
    fn of(one: &Touch) -> Self {
        Self {
            mode: one.mode.clone(),
            brk: one.brk.clone(),
            file: one.file.clone(),
            advise: one.advise.clone(),
            size: [one.bytes, one.pages],
            thp: one.thp.clone(),
            settings: [one.fault_around, one.write],
        }
    }
}

impl Row {
    /// At least one, all of the same.
    fn of(same: &[&Touch]) -> Self {
        let first = same[0];
        let size = |size: Option<u64>| size.map_or_else(String::new, figures::bytes);
        let count = |which: usize| range(same.iter().map(|one| one.counts[which]));
        let faults: Option<Vec<i64>> = same.iter().map(|one| one.counts[1]).collect();
        let most = faults.and_then(|faults| faults.into_iter().max());
        let most = most.and_then(|most| u64::try_from(most).ok());
        Self {
            mode: asked(first),
            advise: first.advise.clone(),
            bytes: first.bytes,
            size: figures::bytes(first.bytes),
            pages: first.pages,
            settings: [
                first.thp.clone(),
                size(first.fault_around),
                size(first.write),
            ],
            n: same.len(),
            counts: (0..6).map(count).collect(),
            per_fault: most
                .filter(|most| *most > 0)
                .map_or_else(String::new, |most| {
                    format!("{:.2}", first.pages as f64 / most as f64)
                }),
            width: most.map_or_else(String::new, |most| figures::place(most, first.pages)),
        }
    }
}

/// The mode, and what more was asked.
fn asked(one: &Touch) -> String {
    let brk = if one.brk == "yes" { "--brk" } else { "" };
    [&*one.mode, brk, &*one.file]
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// `31`, or `30 to 32`; empty if one of them is unknown.
fn range(values: impl Iterator<Item = Option<i64>>) -> String {
    let Some(values) = values.collect::<Option<Vec<i64>>>() else {
        return String::new();
    };
    match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
        (Some(least), _) => least.to_string(),
        _ => String::new(),
    }
}

fn said(rows: &[Row]) -> Vec<String> {
    let clause = |row: &Row| {
        let mode = crate::text::shown(row.mode.as_bytes());
        let faults = &row.counts[1];
        (!faults.is_empty()).then(|| {
            format!(
                "{} of {mode} ({} pages) took {faults} minor faults",
                row.size, row.pages
            )
        })
    };
    let clauses: Vec<String> = rows.iter().filter_map(clause).take(3).collect();
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!("Touching {}.", clauses.join("; "))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_of_one_is_unknown_of_all() {
        assert_eq!(range([Some(3), Some(3)].into_iter()), "3");
        assert_eq!(range([Some(5), Some(-3)].into_iter()), "-3 to 5");
        assert_eq!(range([Some(5), None].into_iter()), "");
        assert_eq!(range([].into_iter()), "");
    }
}
