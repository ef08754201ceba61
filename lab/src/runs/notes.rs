//! The notes before a stream's header: which may differ between streams that belong
//! together, and which make two.

use super::Machine;
use crate::stream::{Note, Problem, Row, StreamError, Told, told};
use crate::text::shown;

/// Notes that may differ between streams of one setting: they tell of the moment, or of
/// which cases were measured, which every row says for itself.
const MAY_DIFFER: [&str; 17] = [
    "seed",
    "started_unix",
    "pinned_cpu",
    // What firmware and kernel keep for themselves varies from boot to boot.
    "ram_kib",
    "ram_available_kib",
    "loadavg",
    "tasks_runnable",
    // How much there was to be held, and how long that took.
    "fragments_kib",
    "fragments_left_kib",
    "fragments_us",
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
    // What startup makes of its options.
    let made = ["rounds", "rounds_in_a_block", "compared"];
    let words = ["option_", "target_", "binfmt_", ARM];
    let asked = |key: &str| {
        beside.contains(&key)
            || made.contains(&key)
            || words.iter().any(|word| key.starts_with(word))
    };
    let is_probe = |notes| value(notes, "command") == Some(PROBE);
    let [by_first, by_second] = [is_probe(first), is_probe(second)];
    differences(first, second).find(|found| {
        let Difference { key, first, second } = *found;
        let set_up = match (by_first, by_second) {
            (true, false) => is_set_up(key, second, first),
            (false, true) => is_set_up(key, first, second),
            _ => false,
        };
        !asked(key) && !set_up
    })
}

/// The command that sets up the machine for its questions, and puts everything back.
const PROBE: &str = "probe";

/// Whether `probe` has made `then` of what a note said before. What it notes is what it reads,
/// after `--setup` or the first process of a machine had it switch on what kinds need.
fn is_set_up(key: &str, before: Option<&str>, then: Option<&str>) -> bool {
    let (Some(before), Some(then)) = (before, then) else {
        return false;
    };
    match key {
        "ksm_run" => then == "1",
        "thp_enabled" => (before, then) == ("never", "madvise"),
        "mthp_enabled" => switched(before).eq(then.split(' ')),
        // A zram device, where there was no swap.
        "swap_kib" => before == "0" && then.parse::<u64>().is_ok(),
        _ => false,
    }
}

/// Modes of huge pages by size, those of 64 KiB given to who asks for them.
fn switched(modes: &str) -> impl Iterator<Item = &str> {
    let switched = |mode| match mode {
        "64kB:never" => "64kB:madvise",
        mode => mode,
    };
    modes.split(' ').map(switched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_probe_switches_on_makes_no_other_machine() {
        let notes = |command: &str, key: &str, value: &str| {
            let note = |(key, value): (&str, &str)| Note {
                key: key.to_owned(),
                value: value.to_owned(),
            };
            [("command", command), (key, value)].map(note)
        };
        for (key, before, then, wanted) in [
            ("ksm_run", "0", "1", true),
            ("ksm_run", "1", "0", false),
            ("thp_enabled", "never", "madvise", true),
            ("thp_enabled", "never", "always", false),
            (
                "mthp_enabled",
                "16kB:never 64kB:never",
                "16kB:never 64kB:madvise",
                true,
            ),
            ("mthp_enabled", "64kB:never", "64kB:madvise", true),
            (
                "mthp_enabled",
                "16kB:never 64kB:never",
                "16kB:always 64kB:madvise",
                false,
            ),
            (
                "mthp_enabled",
                "32kB:never 64kB:always",
                "32kB:never 64kB:never",
                false,
            ),
            ("swap_kib", "0", "4096", true),
            ("swap_kib", "4096", "0", false),
            ("aslr", "0", "1", false),
        ] {
            let (bench, probe) = (notes("bench", key, before), notes("probe", key, then));
            for [one, two] in [[&bench, &probe], [&probe, &bench]] {
                let alike = environment_difference(one, two).is_none();
                assert_eq!(alike, wanted, "{key}: {before}, {then}");
            }
            let audit = notes("audit", key, then);
            assert!(environment_difference(&bench, &audit).is_some(), "{key}");
        }
    }
}
