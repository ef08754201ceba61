//! What runs are called on the page.

use super::kernels;
use crate::runs::Run;
use crate::text::shown;

/// So many files are named; of more it is said how many.
const FILES_NAMED: usize = 2;

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

/// A run's heading: its name and its machine.
pub fn heading(run: &Run, name: &str, all: &[Run]) -> String {
    let real = match kernels::kind(run, all) {
        "real" => String::new(),
        kind => format!(", {kind}"),
    };
    format!("{name}: {}{real}", run.machine.words())
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
