//! The command that asks the same again, as far as a stream's notes hold it.

use crate::runs::Source;
use crate::runs::notes::{ARM, value};
use crate::stream::Note;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::record::Record;
use cowitness::emit::sizes_row::SizesRow;

/// A command, or why there is none.
type Again = Result<String, &'static str>;

/// What stands behind the options: words, or why they are not known.
type Operands = Result<Vec<String>, &'static str>;

/// How a command spells what it was asked.
struct Spelling {
    command: &'static str,
    operands: fn(&Source) -> Operands,
}

/// Commands that take more than options.
const SPELLINGS: [Spelling; 5] = [
    Spelling {
        command: "survey",
        operands: process,
    },
    Spelling {
        command: "audit",
        operands: process,
    },
    Spelling {
        command: "startup",
        operands: arms,
    },
    Spelling {
        command: "memmap",
        operands: mapped,
    },
    Spelling {
        command: "sharing",
        operands: program,
    },
];

/// Notes of what is no option of the command's, but an operand.
const PROGRAM: &str = "option_program";
const ARGUMENTS: &str = "option_arguments";
const FILE: &str = "option_file";

/// What `sharing` runs without a program.
const BUILT_IN: &str = "built-in";

/// How the words of an arm end if not all of them were noted.
const CUT: &str = " [cut]";

const BEGINNING: &str = "The notes hold the beginning of a program's words alone.";

/// Of a stream.
pub fn command(source: &Source) -> Again {
    let notes = &source.notes;
    let command = value(notes, "command").ok_or("The notes do not name the command.")?;
    let program = match &*source.record {
        SizesRow::NAME => "cowitness-lab",
        _ => "cowitness",
    };
    let mut words = vec![program.to_owned(), quoted(command)];
    let mut spellings = SPELLINGS.iter();
    let operands = spellings.find(|one| one.command == command);
    let operands = operands.map_or_else(|| Ok(Vec::new()), |one| (one.operands)(source))?;
    if command == "startup" {
        words.push(
            if value(notes, "arm_a").is_some() {
                "ab"
            } else {
                "slope"
            }
            .to_owned(),
        );
    }
    words.extend(options(notes, command == MemmapRow::NAME));
    words.extend(operands);
    Ok(words.join(" "))
}

/// The options; `apart`: with their values as words of their own.
fn options(notes: &[Note], apart: bool) -> Vec<String> {
    let spelt = |name: &str, value: &str| match apart {
        true => format!("--{name} {}", quoted(value)),
        false => quoted(&format!("--{name}={value}")),
    };
    let option = |note: &Note| {
        let name = note.key.strip_prefix("option_")?.replace('_', "-");
        let is_switch = note.value == "on" && name != "aslr";
        Some(match is_switch {
            true => format!("--{name}"),
            false => spelt(&name, &note.value),
        })
    };
    let own = notes
        .iter()
        .filter(|note| ![PROGRAM, ARGUMENTS, FILE].contains(&&*note.key));
    let mut words: Vec<String> = own.filter_map(option).collect();
    for key in ["seed", "label"] {
        let given = value(notes, key).filter(|value| *value != "none");
        words.extend(given.map(|value| spelt(key, value)));
    }
    words
}

fn process(source: &Source) -> Operands {
    match *source.pids {
        [pid] => Ok(vec![pid.to_string()]),
        _ => Err("The rows are not of one process."),
    }
}

/// `--a CMD -- --b CMD`, or `N=PATH` for each arm of a slope.
fn arms(source: &Source) -> Operands {
    let arms = source.notes.iter();
    let arms: Vec<(&str, &str)> = arms
        .filter_map(|note| Some((note.key.strip_prefix(ARM)?, &*note.value)))
        .collect();
    if arms.iter().any(|(_, words)| words.ends_with(CUT)) {
        return Err(BEGINNING);
    }
    let of = |name: &str| arms.iter().find(|(arm, _)| *arm == name);
    match (of("a"), of("b"), arms.is_empty()) {
        (_, _, true) => Err("The notes do not name the programs."),
        (Some((_, a)), Some((_, b)), _) => Ok(vec![format!(
            "--a {} -- --b {}",
            each_quoted(a),
            each_quoted(b)
        )]),
        _ => {
            let word = |(arm, path): &(&str, &str)| quoted(&format!("{arm}={path}"));
            Ok(arms.iter().map(word).collect())
        }
    }
}

fn mapped(source: &Source) -> Operands {
    match value(&source.notes, "option_mode") {
        Some("mmap-file") => match value(&source.notes, FILE) {
            None => Err("The notes do not name the file that was mapped."),
            Some(file) => Ok(vec![quoted(file)]),
        },
        Some(_) => Ok(Vec::new()),
        None => Err("The notes do not name the mode."),
    }
}

fn program(source: &Source) -> Operands {
    match value(&source.notes, PROGRAM) {
        None => Err("The notes do not name the program."),
        Some(BUILT_IN) => Ok(Vec::new()),
        Some(program) => {
            let mut words = vec!["--".to_owned(), quoted(program)];
            match value(&source.notes, ARGUMENTS) {
                Some(cut) if cut.ends_with("[cut]") => return Err(BEGINNING),
                None | Some("") => {}
                Some(arguments) => words.push(each_quoted(arguments)),
            }
            Ok(words)
        }
    }
}

fn each_quoted(words: &str) -> String {
    words.split(' ').map(quoted).collect::<Vec<_>>().join(" ")
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

    /// Record, processes, notes, and the command wanted.
    type Case<'c> = (&'c str, &'c [u64], &'c [(&'c str, &'c str)], &'c str);

    fn source(record: &str, pids: &[u64], pairs: &[(&str, &str)]) -> Source {
        let note = |(key, value): &(&str, &str)| Note {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        };
        Source {
            place: String::new(),
            file: String::new(),
            record: record.to_owned(),
            checksum: 0,
            notes: pairs.iter().map(note).collect(),
            partial: false,
            rows: 0,
            intended: 0,
            pids: pids.to_vec(),
        }
    }

    #[test]
    fn the_command_can_be_given_to_a_shell() {
        let bench = source(
            "bench",
            &[],
            &[
                ("command", "bench"),
                ("label", "it's; rm"),
                ("seed", "7"),
                ("option_segment_pages", "16,64"),
                ("option_first_write", "on"),
            ],
        );
        assert_eq!(
            command(&bench).unwrap(),
            "cowitness bench --segment-pages=16,64 --first-write --seed=7 '--label=it'\\''s; rm'"
        );
        assert!(command(&source("bench", &[], &[])).is_err());
    }

    #[test]
    fn what_stands_behind_the_options_is_there_or_there_is_no_command() {
        let audit = [("command", "audit"), ("option_stop", "on")];
        let ab = [
            ("command", "startup"),
            ("arm_a", "/a b"),
            ("arm_b", "/b --x;y"),
        ];
        let slope = [
            ("command", "startup"),
            ("arm_1", "/1"),
            ("arm_2", "/2"),
            ("arm_3", "/3"),
            ("arm_4", "/4"),
            ("arm_static", "/s"),
        ];
        let heap = [
            ("command", "memmap"),
            ("option_mode", "heap"),
            ("seed", "1"),
        ];
        let cat = [
            ("command", "sharing"),
            ("option_aslr", "on"),
            ("option_program", "cat"),
            ("option_arguments", "-n a;b"),
        ];
        let cases: [Case<'_>; 5] = [
            ("audit", &[7], &audit, "cowitness audit --stop 7"),
            (
                "startup",
                &[],
                &ab,
                "cowitness startup ab --a /a b -- --b /b '--x;y'",
            ),
            (
                "startup",
                &[],
                &slope,
                "cowitness startup slope 1=/1 2=/2 3=/3 4=/4 static=/s",
            ),
            (
                "memmap",
                &[],
                &heap,
                "cowitness memmap --mode heap --seed 1",
            ),
            (
                "sharing",
                &[],
                &cat,
                "cowitness sharing --aslr=on -- cat -n 'a;b'",
            ),
        ];
        for (record, pids, notes, want) in cases {
            assert_eq!(command(&source(record, pids, notes)).unwrap(), want);
        }
    }

    #[test]
    fn what_the_notes_do_not_hold_is_not_made_up() {
        let file = [
            ("command", "memmap"),
            ("option_mode", "mmap-file"),
            ("option_file", "/a file"),
        ];
        let named = command(&source("memmap", &[], &file)).unwrap();
        assert_eq!(named, "cowitness memmap --mode mmap-file '/a file'");
        let file = &file[..2];
        let cut = [
            ("command", "startup"),
            ("arm_a", "/a [cut]"),
            ("arm_b", "/b"),
        ];
        let audit = [("command", "audit"), ("option_stop", "on")];
        for (record, notes) in [("audit", &audit[..]), ("memmap", file), ("startup", &cut)] {
            assert!(command(&source(record, &[], notes)).is_err(), "{record}");
        }
    }
}
