//! What runs are called on the page.

use super::kernels;
use crate::figures;
use crate::runs::Run;
use crate::text::shown;

/// So many files are named; of more it is said how many.
const FILES_NAMED: usize = 2;

/// So many settings are named.
const SETTINGS_NAMED: usize = 3;

/// Names for the runs: the label, else the files, made different where they are not.
pub fn names(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        let name = match &*run.machine.label {
            "" => files(run),
            label => shown(label.as_bytes()),
        };
        let mut unique = name.clone();
        let mut number = 2;
        while names.contains(&unique) {
            unique = format!("{name} ({number})");
            number += 1;
        }
        names.push(unique);
    }
    names
}

fn files(run: &Run) -> String {
    let mut stems: Vec<&str> = run
        .sources
        .iter()
        .map(|source| stem(&source.file))
        .collect();
    stems.dedup();
    let more = stems.len().saturating_sub(FILES_NAMED);
    stems.truncate(FILES_NAMED);
    match more {
        0 => stems.join(", "),
        more => format!("{} and {more} more", stems.join(", ")),
    }
}

/// A file's name without its folder and endings. What a fleet brings back is called after
/// its host: `HOST/results.csv`.
fn stem(file: &str) -> &str {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let ends = [".gz", ".csv", ".log"];
    let stem = ends
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    match folder.rsplit('/').next() {
        Some(host) if stem == "results" && !host.is_empty() => host,
        _ => stem,
    }
}

/// A run's heading: its name, its machine, and what sets it apart.
pub fn heading(run: &Run, name: &str, all: &[Run]) -> String {
    let real = match kernels::kind(run, all) {
        "real" => String::new(),
        kind => format!(", {kind}"),
    };
    let settings = settings(run, all.iter());
    let settings: String = settings.iter().map(|mark| format!(", {mark}")).collect();
    format!("{name}: {}{real}{settings}", run.machine.words())
}

/// What sets a run apart from others that are called the same and have its label, or none: notes
/// and their values.
pub fn settings<'r>(run: &Run, all: impl Iterator<Item = &'r Run>) -> Vec<String> {
    let words = run.machine.words();
    let same = all.filter(|other| {
        !std::ptr::eq(*other, run)
            && other.machine.label == run.machine.label
            && other.machine.words() == words
    });
    let mut marks: Vec<String> = Vec::new();
    for other in same {
        let there = other.sources.iter().find_map(|source| {
            let found = run.differs(source)?;
            Some((found.key, found.first))
        });
        let found = there.or_else(|| {
            run.sources.iter().find_map(|source| {
                let found = other.differs(source)?;
                Some((found.key, found.second))
            })
        });
        let mark = found.map(|(key, value)| match value {
            Some(value) => format!("{} '{}'", shown(key.as_bytes()), shown(value.as_bytes())),
            None => format!("no note {}", shown(key.as_bytes())),
        });
        marks.extend(mark.filter(|mark| !marks.contains(mark)));
    }
    marks.truncate(SETTINGS_NAMED);
    marks
}

/// A run among `all`, as sentences call it: its machine; where another is called the same, its
/// label, if theirs differ, and its settings.
pub fn place<'r>(run: &Run, all: impl Iterator<Item = &'r Run> + Clone) -> String {
    let machine = run.machine.words();
    let label = &run.machine.label;
    let has_other_label =
        |other: &Run| other.machine.label != *label && other.machine.words() == machine;
    let mut marks = Vec::new();
    if all.clone().any(has_other_label) {
        marks.push(match &**label {
            "" => "no label".to_owned(),
            label => format!("label '{}'", shown(label.as_bytes())),
        });
    }
    marks.extend(settings(run, all));
    match &*marks {
        [] => machine,
        marks => format!("{machine} with {}", figures::list(marks)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_called_by_what_tells_it_apart() {
        for (file, want) in [
            ("out/6.1-x86_64.csv", "6.1-x86_64"),
            ("fleet/host-a/results.csv", "host-a"),
            ("results.csv", "results"),
            ("a/b.log.gz", "b"),
            ("standard input", "standard input"),
        ] {
            assert_eq!(stem(file), want);
        }
    }
}
