//! The notes before a stream's header: which may differ between streams that belong
//! together, and which make two.

use super::Machine;
use crate::stream::{Note, Problem, Row, StreamError, Told, told};
use crate::text::shown;

/// Notes that may differ between streams of one setting: they tell of the moment, or of
/// which cases were measured, which every row says for itself.
const MAY_DIFFER: [&str; 14] = [
    "seed",
    "started_unix",
    "pinned_cpu",
    // What firmware and kernel keep for themselves varies from boot to boot.
    "ram_kib",
    "ram_available_kib",
    "loadavg",
    "tasks_runnable",
    "option_quiet",
    "option_layout",
    "option_segment_pages",
    "option_pages",
    "option_block",
    "option_method",
    "option_repeats",
];

/// What notes begin with that name the program of an arm.
pub const ARM: &str = "arm_";

/// A note that is not the same in two streams; `None`: it is not noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'n> {
    /// The key.
    pub key: &'n str,
    /// Its value in the first.
    pub first: Option<&'n str>,
    /// Its value in the second.
    pub second: Option<&'n str>,
}

/// The value of a note.
#[must_use]
pub fn value<'n>(notes: &'n [Note], key: &str) -> Option<&'n str> {
    let note = notes.iter().find(|note| note.key == key);
    note.map(|note| &*note.value)
}

/// The notes in which two streams of one record differ and may not.
pub fn differences<'n>(
    first: &'n [Note],
    second: &'n [Note],
) -> impl Iterator<Item = Difference<'n>> {
    let only_second = second
        .iter()
        .filter(|note| value(first, &note.key).is_none());
    let keys = first.iter().chain(only_second).map(|note| &*note.key);
    keys.filter(|key| !MAY_DIFFER.contains(key))
        .filter_map(|key| {
            let (first, second) = (value(first, key), value(second, key));
            (first != second).then_some(Difference { key, first, second })
        })
}

/// The first of them.
#[must_use]
pub fn difference<'n>(first: &'n [Note], second: &'n [Note]) -> Option<Difference<'n>> {
    differences(first, second).next()
}

/// A row that is of another machine than the stream's notes is none of theirs.
///
/// # Errors
/// [`Problem::Noted`].
pub fn agree(notes: &[Note], row: &Row<'_>, machine: &Machine) -> Result<(), StreamError> {
    let page_bytes = machine.page_bytes.map(|bytes| bytes.to_string());
    let said = [
        ("kernel", Some(&*machine.kernel)),
        ("arch", Some(&*machine.arch)),
        ("page_bytes", page_bytes.as_deref()),
    ];
    for (column, found) in said {
        let Told::Value(noted) = told(notes, column) else {
            continue;
        };
        if let Some(found) = found.filter(|found| *found != noted) {
            return Err(row.error(Problem::Noted {
                column,
                found: shown(found.as_bytes()),
                noted: shown(noted.as_bytes()),
            }));
        }
    }
    Ok(())
}

/// What tells two streams, perhaps of different records, apart as of different machines or states
/// of one: what was asked of it may differ. The first such note.
#[must_use]
pub fn environment_difference<'n>(first: &'n [Note], second: &'n [Note]) -> Option<Difference<'n>> {
    // The size of pages is the machine's, by its rows or by this note. Under emulation even
    // the clock source changes from one command to the next.
    let beside = ["command", "clock", "clocksource", "page_bytes"];
    let words = ["option_", "target_", "binfmt_", ARM];
    let asked = |key: &str| beside.contains(&key) || words.iter().any(|word| key.starts_with(word));
    differences(first, second).find(|found| !asked(found.key))
}
