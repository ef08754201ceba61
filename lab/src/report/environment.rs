//! Where the figures come from: every note, what of it is not as a measurement wants it, and
//! the command that asks the same again.

use super::again;
use crate::runs::notes::value;
use crate::runs::{Run, Source};
use crate::stream::{Note, Told, told};

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
    /// Why there is none.
    pub why: &'static str,
    pub rows: u64,
    /// Its checksum, or that it is cut.
    pub proof: String,
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
    /// Whether a value is as recommended; one that is unknown never is.
    fine: fn(&str) -> bool,
    /// Whether it is as recommended that the machine has no such thing.
    absent: bool,
    why: &'static str,
}

/// Said where a value could not be found out.
const UNKNOWN: &str = "not known, so it may be as recommended or not";

const CHECKS: [Check; 14] = [
    Check {
        key: "governor",
        fine: |value| value == "performance",
        absent: false,
        why: "set the CPU's governor to performance; where the guest has no cpufreq, the host decides",
    },
    Check {
        key: "turbo",
        fine: |value| matches!(value, "off" | "0"),
        absent: false,
        why: "with turbo the clock depends on heat and on the neighbours: turn it off, or say that it is on",
    },
    Check {
        key: "aslr",
        fine: |value| value == "0",
        absent: false,
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
        absent: false,
        why: "a sibling thread takes part of the core: keep it idle or turn SMT off",
    },
    Check {
        key: "thp_enabled",
        fine: |value| value != "always",
        absent: true,
        why: "always gives huge pages to everybody; madvise gives them to those who ask",
    },
    Check {
        key: "ksm_run",
        fine: |value| value != "1",
        absent: true,
        why: "KSM joins pages while they are counted",
    },
    Check {
        key: "numa_balancing",
        fine: |value| value != "1",
        absent: true,
        why: "pages may be moved, and unmapped for sampling, during a pass",
    },
    Check {
        key: "swap_kib",
        fine: |value| value == "0",
        absent: true,
        why: "pages may be swapped out between filling and reading",
    },
    Check {
        key: "loadavg",
        fine: |value| !value.split(' ').next().is_some_and(is_busy),
        absent: true,
        why: "other load widens every interval",
    },
    Check {
        key: "clock",
        fine: |value| value == "vdso",
        absent: false,
        why: "each reading of the clock is a system call",
    },
    Check {
        key: "pinned_cpu",
        fine: |value| value != "none",
        absent: true,
        why: "without a CPU of its own a pass may move in the middle",
    },
    Check {
        key: "euid",
        fine: |value| value == "0",
        absent: false,
        why: "frame numbers need CAP_SYS_ADMIN; sharing was decided by pagemap's bit 56",
    },
    Check {
        key: "hypervisor",
        fine: |value| value == "none",
        absent: true,
        why: "a virtual machine: the host's scheduling and memory are part of each figure",
    },
    Check {
        key: "config_page_mapcount",
        fine: |value| value != "n",
        absent: true,
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
            for found in checked(&source.notes) {
                let one = remarks.iter_mut().find(|one| one.key == found.key);
                match one {
                    // What another of its streams says instead.
                    Some(one) if !one.value.split("; ").any(|value| value == found.value) => {
                        one.value = format!("{}; {}", one.value, found.value);
                    }
                    Some(_) => {}
                    None => remarks.push(found),
                }
            }
        }
        Self {
            streams: run.sources.iter().map(Stream::of).collect(),
            remarks,
        }
    }
}

fn checked(notes: &[Note]) -> impl Iterator<Item = Remark> {
    CHECKS.iter().filter_map(|check| {
        let (fine, why) = match told(notes, check.key) {
            Told::NotNoted => return None,
            Told::Absent => (check.absent, check.why),
            Told::Unknown => (false, UNKNOWN),
            Told::Value(value) => ((check.fine)(value), check.why),
        };
        let value = value(notes, check.key)?;
        (!fine).then(|| Remark {
            key: check.key,
            value: crate::text::printable(value.as_bytes()),
            why,
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
        let command = again::command(source);
        Self {
            place: source.place.clone(),
            record: source.record.clone(),
            why: command.as_ref().err().copied().unwrap_or_default(),
            command: command.unwrap_or_default(),
            rows: source.rows,
            proof: match source.partial {
                true => format!("cut of {}, no crc32", source.intended),
                false => format!("crc32 {:08x}", source.checksum),
            },
            notes: source.notes.iter().map(noted).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::notes;

    #[test]
    fn what_is_not_as_recommended_is_marked() {
        let notes = notes(&[
            ("governor", "powersave"),
            ("loadavg", "0.10 2.00 9.00"),
            ("clock", "vdso"),
            ("smt", "unknown:EACCES"),
            ("thp_enabled", "unreadable:EACCES"),
            ("ksm_run", "unreadable:EACCES"),
            ("numa_balancing", "absent"),
            ("swap_kib", "empty"),
            ("hypervisor", "absent"),
            ("turbo", "absent"),
        ]);
        let found: Vec<(&str, bool)> = checked(&notes)
            .map(|remark| (remark.key, remark.why == UNKNOWN))
            .collect();
        let want = [
            ("governor", false),
            ("turbo", false),
            ("smt", true),
            ("thp_enabled", true),
            ("ksm_run", true),
            ("swap_kib", true),
        ];
        assert_eq!(found, want);
    }
}
