//! Whether two runs may be compared at all.

use crate::runs::notes::{self, Difference};
use crate::runs::{Run, Source};
use crate::text::shown;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Record;

/// What differs is in one of these.
const SIDES: [&str; 2] = ["A", "B"];
const STREAMS: [&str; 2] = ["the first", "the second"];

/// Notes in which two sides may differ: what a comparison is about.
const SUBJECT: [&str; 6] = [
    "label",
    "version",
    "target",
    "exe_crc32",
    "kernel",
    "kernel_version",
];

/// What differs and may not, in words: page size, CPU, the series of the kernel, every setting.
pub(super) fn differences(a: &Run, b: &Run) -> Vec<String> {
    let machine = [
        ("page size", pages(a), pages(b)),
        ("CPU", a.machine.arch.clone(), b.machine.arch.clone()),
        (
            "kernel series",
            series(&a.machine.kernel),
            series(&b.machine.kernel),
        ),
    ];
    let machine = machine.iter().filter(|(_, a, b)| a != b);
    let mut found: Vec<String> = machine
        .map(|(key, a, b)| words(key, SIDES, Some(a), Some(b)))
        .collect();
    // Other records are not compared: what was asked of them does no harm.
    let compared = |source: &&Source| [BenchRow::NAME, ProbeRow::NAME].contains(&&*source.record);
    for first in a.sources.iter().filter(compared) {
        let same = b
            .sources
            .iter()
            .find(|second| second.record == first.record);
        let Some(second) = same else { continue };
        for Difference { key, first, second } in notes::differences(&first.notes, &second.notes) {
            let line = words(key, SIDES, first, second);
            // Said above.
            let machine = ["arch", "page_bytes"].contains(&key);
            if !machine && !SUBJECT.contains(&key) && !found.contains(&line) {
                found.push(line);
            }
        }
    }
    found
}

fn pages(run: &Run) -> String {
    let size = run.machine.page_bytes;
    size.map_or_else(|| "unknown".to_owned(), |size| size.to_string())
}

/// What makes two runs of the streams of one side, as the end of a sentence; empty if that is
/// their machines.
pub(super) fn difference(one: &Run, two: &Run) -> String {
    let found = two.sources.iter().find_map(|source| one.differs(source));
    found.map_or_else(String::new, |Difference { key, first, second }| {
        format!(": {}", words(key, STREAMS, first, second))
    })
}

/// The first two numbers of a release: what is called a kernel's series.
fn series(release: &str) -> String {
    let mut numbers = release.splitn(3, '.');
    let major = numbers.next().unwrap_or("");
    let minor = numbers.next().unwrap_or("");
    let digits = minor
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(minor.len());
    format!("{major}.{}", &minor[..digits])
}

fn words(key: &str, places: [&str; 2], a: Option<&str>, b: Option<&str>) -> String {
    let value = |value: Option<&str>| shown(value.unwrap_or("not noted").as_bytes());
    let [first, second] = places;
    format!(
        "{key} is '{}' in {first} and '{}' in {second}",
        value(a),
        value(b)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_two_numbers() {
        for (release, want) in [
            ("6.18.44-fc-v657", "6.18"),
            ("7.2-rc1", "7.2"),
            ("6", "6."),
            ("", "."),
        ] {
            assert_eq!(series(release), want);
        }
    }
}
