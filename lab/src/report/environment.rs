//! Where the figures come from: every note, what of it is not as a measurement wants it, and
//! the command that asks the same again.

use crate::runs::notes::value;
use crate::runs::{Run, Source};
use crate::stream::Note;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::record::Record;
use cowitness::emit::sizes_row::SizesRow;

/// The section of one run.
pub struct Environment {
    /// What is not as recommended.
    pub remarks: Vec<Remark>,
    /// Its streams.
    pub streams: Vec<Stream>,
}

/// A note that is not as recommended.
pub struct Remark {
    pub key: &'static str,
    pub value: String,
    pub why: &'static str,
}

/// One stream.
pub struct Stream {
    pub place: String,
    pub record: String,
    /// What asks the same again; empty if the notes do not say.
    pub command: String,
    pub rows: u64,
    pub checksum: String,
    pub partial: bool,
    pub notes: Vec<Noted>,
}

/// A note, and whether a remark is about it.
pub struct Noted {
    pub key: String,
    pub value: String,
    pub marked: bool,
}

/// What a note should say.
struct Check {
    key: &'static str,
    /// Whether a value is as recommended, or nothing is known.
    fine: fn(&str) -> bool,
    why: &'static str,
}

const CHECKS: [Check; 14] = [
    Check {
        key: "governor",
        fine: |value| value == "performance",
        why: "set the CPU's governor to performance; where the guest has no cpufreq, the host decides",
    },
    Check {
        key: "turbo",
        fine: |value| matches!(value, "off" | "0"),
        why: "with turbo the clock depends on heat and on the neighbours: turn it off, or say that it is on",
    },
    Check {
        key: "aslr",
        fine: |value| value == "0",
        why: "addresses differ from start to start, as in production; setarch -R keeps them still",
    },
    Check {
        key: "smt",
        fine: |value| {
            matches!(
                value,
                "off" | "notsupported" | "notimplemented" | "forceoff"
            )
        },
        why: "a sibling thread takes part of the core: keep it idle or turn SMT off",
    },
    Check {
        key: "thp_enabled",
        fine: |value| value != "always",
        why: "always gives huge pages to everybody; madvise gives them to those who ask",
    },
    Check {
        key: "ksm_run",
        fine: |value| value != "1",
        why: "KSM joins pages while they are counted",
    },
    Check {
        key: "numa_balancing",
        fine: |value| value != "1",
        why: "pages may be moved, and unmapped for sampling, during a pass",
    },
    Check {
        key: "swap_kib",
        fine: |value| value == "0" || value.parse::<u64>().is_err(),
        why: "pages may be swapped out between filling and reading",
    },
    Check {
        key: "loadavg",
        fine: |value| !value.split(' ').next().is_some_and(is_busy),
        why: "other load widens every interval",
    },
    Check {
        key: "clock",
        fine: |value| value == "vdso",
        why: "each reading of the clock is a system call",
    },
    Check {
        key: "pinned_cpu",
        fine: |value| value != "none",
        why: "without a CPU of its own a pass may move in the middle",
    },
    Check {
        key: "euid",
        fine: |value| value == "0",
        why: "frame numbers need CAP_SYS_ADMIN; sharing was decided by pagemap's bit 56",
    },
    Check {
        key: "hypervisor",
        fine: |value| matches!(value, "none" | "absent") || value.starts_with("unknown"),
        why: "a virtual machine: the host's scheduling and memory are part of each figure",
    },
    Check {
        key: "config_page_mapcount",
        fine: |value| value != "n",
        why: "PSS is an estimate on this kernel",
    },
];

/// A load of one half and more.
fn is_busy(load: &str) -> bool {
    load.parse::<f32>().is_ok_and(|load| load >= 0.5)
}

impl Environment {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let mut remarks: Vec<Remark> = Vec::new();
        for source in &run.sources {
            let known = |found: &Remark| remarks.iter().any(|one| one.key == found.key);
            let fresh: Vec<Remark> = checked(&source.notes)
                .filter(|found| !known(found))
                .collect();
            remarks.extend(fresh);
        }
        Self {
            streams: run.sources.iter().map(Stream::of).collect(),
            remarks,
        }
    }
}

fn checked(notes: &[Note]) -> impl Iterator<Item = Remark> {
    CHECKS.iter().filter_map(|check| {
        let value = value(notes, check.key)?;
        (!(check.fine)(value)).then(|| Remark {
            key: check.key,
            value: crate::text::printable(value.as_bytes()),
            why: check.why,
        })
    })
}

impl Stream {
    /// Of a source.
    pub fn of(source: &Source) -> Self {
        let marked: Vec<&str> = checked(&source.notes).map(|remark| remark.key).collect();
        let noted = |note: &Note| Noted {
            key: note.key.clone(),
            value: crate::text::printable(note.value.as_bytes()),
            marked: marked.contains(&&*note.key),
        };
        Self {
            place: source.place.clone(),
            record: source.record.clone(),
            command: command(&source.record, &source.notes),
            rows: source.intended,
            checksum: format!("{:08x}", source.checksum),
            partial: source.partial,
            notes: source.notes.iter().map(noted).collect(),
        }
    }
}

/// What asks the same again, by the notes.
fn command(record: &str, notes: &[Note]) -> String {
    let Some(command) = value(notes, "command") else {
        return String::new();
    };
    let program = match record {
        SizesRow::NAME => "cowitness-lab",
        _ => "cowitness",
    };
    // The one command that takes no `=`.
    let equals = if record == MemmapRow::NAME { ' ' } else { '=' };
    let mut words = vec![program.to_owned(), quoted(command)];
    for note in notes {
        let Some(option) = note.key.strip_prefix("option_") else {
            continue;
        };
        let option = option.replace('_', "-");
        words.push(match &*note.value {
            // Its one operand.
            file if equals == ' ' && option == "file" => quoted(file),
            "on" => format!("--{option}"),
            value if equals == ' ' => format!("--{option} {}", quoted(value)),
            value => quoted(&format!("--{option}={value}")),
        });
    }
    let kept = |key: &str| value(notes, key).filter(|value| *value != "none");
    for name in ["seed", "label"] {
        words.extend(kept(name).map(|value| match equals {
            ' ' => format!("--{name} {}", quoted(value)),
            _ => quoted(&format!("--{name}={value}")),
        }));
    }
    words.join(" ")
}

/// For a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=,./:+%@".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!(
        "'{}'",
        crate::text::printable(word.replace('\'', "'\\''").as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notes(pairs: &[(&str, &str)]) -> Vec<Note> {
        let note = |(key, value): &(&str, &str)| Note {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(note).collect()
    }

    #[test]
    fn the_command_can_be_given_to_a_shell() {
        let notes = notes(&[
            ("command", "bench"),
            ("label", "it's; rm"),
            ("seed", "7"),
            ("option_segment_pages", "16,64"),
            ("option_first_write", "on"),
        ]);
        assert_eq!(
            command("bench", &notes),
            "cowitness bench --segment-pages=16,64 --first-write --seed=7 '--label=it'\\''s; rm'"
        );
        assert_eq!(command("bench", &[]), "");
    }

    #[test]
    fn what_is_not_as_recommended_is_marked() {
        let notes = notes(&[
            ("governor", "powersave"),
            ("loadavg", "0.10 2.00 9.00"),
            ("clock", "vdso"),
        ]);
        let keys: Vec<&str> = checked(&notes).map(|remark| remark.key).collect();
        assert_eq!(keys, ["governor"]);
    }
}
