//! What one command has written to the console, and whether that is what the command
//! writes: one stream of rows with its name, options and program; the environment; the
//! lines of selftest; or a text.

use super::findings::{Findings, Seen};
use crate::asked::Task;
use crate::console::{self, Section};
use crate::stream::StreamError;
use cowitness::emit::stream::MAGIC;

/// Commands that write one stream of rows.
const FRAMED: [&str; 4] = ["bench", "probe", "survey", "audit"];
/// Commands whose rows are followed by a stream of what comes of them.
const WITH_RESULT: [&str; 2] = ["sharing", "startup"];

/// A command's output, read.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    csv: Option<String>,
    streams: Vec<Seen>,
    /// Why its stream cannot be trusted.
    pub(super) damage: Option<String>,
    /// What it wrote if that is no stream of rows, under its name.
    pub(super) text: Option<String>,
    /// Why it comes to nothing although it is whole.
    pub(super) nothing: Option<String>,
    /// The checks that selftest has skipped.
    pub(super) skips: Vec<String>,
    /// The known fields that smaps_rollup lacks, if selftest says it.
    pub(super) rollup_lacks: Option<Vec<String>>,
}

impl Read {
    /// Its whole stream, to the byte as it was written.
    pub(super) fn csv(&self) -> Option<&str> {
        self.csv.as_deref()
    }
}

/// Reads what a command has written.
pub(super) fn read(name: &str, section: &Section) -> Read {
    let has_stream = section.text.contains(MAGIC);
    if has_stream && section.name() != "env" {
        return match whole(name, section) {
            Ok((csv, streams)) => Read {
                csv: Some(csv),
                streams,
                ..Read::default()
            },
            Err(error) => Read {
                damage: Some(error.to_string()),
                ..Read::default()
            },
        };
    }
    let plain = section.text.replace('\r', "");
    let found = console::selftest(&section.text);
    let passed = found.closing.is_none_or(|[passed, ..]| passed > 0);
    Read {
        text: Some(format!("$ {}\n{plain}", section.command)),
        nothing: (!passed).then(|| "selftest: no check has passed".to_owned()),
        rollup_lacks: found.rollup_lacks(),
        skips: found.skips,
        ..Read::default()
    }
}

/// What contradicts that `task` has ended well.
pub(super) fn contradiction(
    section: &Section,
    read: &Read,
    task: &Task,
    exe_crc32: Option<u32>,
) -> Option<String> {
    let (name, streams) = (task.name(), read.streams.len());
    if task.explains() {
        return match (streams, section.text.trim().is_empty()) {
            (0, false) => None,
            (0, true) => Some(format!("'{}' says nothing", task.line())),
            _ => Some(format!("'{}' has rows", task.line())),
        };
    }
    match name {
        "selftest" if streams == 0 => miscounted(section),
        "env" => unlike_env(section),
        "memmap" if streams == 0 => uncounted(section, task),
        _ if WITH_RESULT.contains(&name) && streams == 2 => {
            let mut streams = read.streams.iter();
            streams.find_map(|seen| unlike(name, seen, task, exe_crc32))
        }
        _ if WITH_RESULT.contains(&name) && streams == 1 => {
            Some(format!("{name} has rows and no result"))
        }
        _ if streams == 1 => unlike(name, &read.streams[0], task, exe_crc32),
        "selftest" => Some("selftest has rows".to_owned()),
        _ if streams == 0 && !FRAMED.contains(&name) => None,
        _ => Some(format!("{name} has {streams} streams")),
    }
}

/// How a stream differs from that which `task` writes.
fn unlike(name: &str, seen: &Seen, task: &Task, exe_crc32: Option<u32>) -> Option<String> {
    let differs = |key: &str, wanted: &str| {
        let found = seen.note(key).unwrap_or("missing");
        (!is_same(key, found, wanted))
            .then(|| format!("{name}: its note '{key}' is {found}, not {wanted}"))
    };
    let options: Vec<(&str, &str)> = task.options().collect();
    // The last of an option counts.
    let last = |at: &usize| {
        options[at + 1..]
            .iter()
            .all(|(key, _)| *key != options[*at].0)
    };
    let mut options = (0..options.len()).filter(last).map(|at| options[at]);
    differs("command", name)
        .or_else(|| differs("exe_crc32", &format!("{:08x}", exe_crc32?)))
        .or_else(|| options.find_map(|(key, value)| differs(&note_of(key), noted(key, value))))
}

/// As text, or as numbers: `--seed=007` is noted as 7. A label and a checksum are texts.
fn is_same(key: &str, found: &str, wanted: &str) -> bool {
    let is_text = matches!(key, "label" | "exe_crc32");
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| !is_text);
    let numbers = number(found).zip(number(wanted));
    found == wanted || numbers.is_some_and(|(found, wanted)| found == wanted)
}

/// The note that tells the value of an option.
fn note_of(option: &str) -> String {
    match option {
        "label" | "seed" => option.to_owned(),
        _ => format!("option_{}", option.replace('-', "_")),
    }
}

/// How a note shows the value of an option.
fn noted<'v>(option: &str, value: &'v str) -> &'v str {
    match (option, value) {
        ("label", "") => "none",
        _ => value,
    }
}

/// The record of `env` has neither rows nor an end: its notes are all there is.
fn unlike_env(section: &Section) -> Option<String> {
    let mut lines = section.text.lines().map(|line| line.trim_end_matches('\r'));
    if !lines.next().is_some_and(|line| line.ends_with(MAGIC)) {
        return Some(format!("env does not begin with '{MAGIC}'"));
    }
    if lines.next() != Some("#command=env") {
        return Some("env does not say that it is env".to_owned());
    }
    let is_note = |line: &str| line.starts_with('#') && line.contains('=');
    let other = lines.find(|line| !is_note(line));
    other.map(|line| format!("env: '{}' is no note", crate::text::shown(line.as_bytes())))
}

fn miscounted(section: &Section) -> Option<String> {
    let found = console::selftest(&section.text);
    let failed = found.closing.is_some_and(|[_, failed, _]| failed > 0);
    let failed = failed.then(|| "verdict pass, but checks of selftest failed".to_owned());
    found.doubt().or(failed)
}

/// Without rows, memmap writes lines: the last of its contract counts the faults.
fn uncounted(section: &Section, task: &Task) -> Option<String> {
    let mut lines = section.text.lines();
    let counted = lines.any(|line| line.starts_with("memmap: faults minor="));
    (!counted).then(|| format!("'{}' counts no faults", task.line()))
}

/// The streams of a command, without what came around them.
fn whole(name: &str, section: &Section) -> Result<(String, Vec<Seen>), StreamError> {
    // Lines in front, so that places are lines of the console.
    let placed = "\n".repeat(section.line) + &section.text;
    let found = Findings::read(name, placed.as_bytes())?;
    let (mut csv, mut within) = (String::new(), false);
    for line in section.text.split_inclusive('\n') {
        let line = line.replace('\r', "");
        // Something may have been left on the first line before it.
        let begin = line.rfind(MAGIC).filter(|_| !within);
        within |= begin.is_some();
        if within {
            csv += &line[begin.unwrap_or(0)..];
        }
        within &= !line.starts_with("#end ");
    }
    Ok((csv, found.streams))
}
