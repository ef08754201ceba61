//! The record under construction: one value at a time, or why there is none.

use super::Context;
use super::files::Files;
use super::parse::{add, halves};
use crate::sys::Errno;
use crate::sys::errno::name_or_unknown;
use crate::text::{TEXT_MAX, Text};
use core::slice::from_ref;

/// The longest value in bytes; the rest of a line is for its key.
const VALUE_MAX: usize = TEXT_MAX - 64;

/// Whether a value was added to a text, or why there is none.
pub type Finding = Result<(), Missing>;

/// Finds a value in the text of a file, perhaps by a name.
pub type Parse = fn(&mut Text, &[u8], &[u8]) -> Finding;

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// What the kernel said. `ENOENT` is that it has no such thing; anything else, that it
    /// has and does not show it.
    Refused(Errno),
    /// There is no telling.
    Unknown(Why),
}

impl Missing {
    /// The kernel here has no such thing.
    pub const ABSENT: Self = Self::Refused(Errno::NOENT);
}

/// Why there is no telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// procfs is not mounted.
    NoProc,
    /// sysfs is not mounted.
    NoSys,
    /// securityfs is not mounted.
    NoSecurityfs,
    /// There is more than any that was expected.
    TooLong,
    /// The file does not look as it should.
    OtherForm,
    /// No instruction of this CPU tells.
    NoInstruction,
    /// The machine's maker is not a known one of virtual machines.
    NotVirtual,
    /// No source of the configuration exists.
    NoConfig,
    /// The end of the configuration was not seen.
    ConfigCut,
    /// /proc/config.gz does not begin as it should.
    NotGzip,
    /// /proc/config.gz ends too early.
    GzipCut,
    /// /proc/config.gz is not what was compressed.
    GzipCorrupt,
}

impl Why {
    const fn text(self) -> &'static str {
        match self {
            Self::NoProc => "no /proc",
            Self::NoSys => "no /sys",
            Self::NoSecurityfs => "no securityfs",
            Self::TooLong => "longer than expected",
            Self::OtherForm => "the file has another form",
            Self::NoInstruction => "this CPU has no instruction that tells",
            Self::NotVirtual => "not a virtual machine it knows",
            Self::NoConfig => "no /proc/config.gz or /boot/config-<release>",
            Self::ConfigCut => "the configuration may be cut",
            Self::NotGzip => "/proc/config.gz is not gzip",
            Self::GzipCut => "/proc/config.gz is cut short",
            Self::GzipCorrupt => "/proc/config.gz is corrupt",
        }
    }
}

impl From<Errno> for Missing {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

impl From<Why> for Missing {
    fn from(why: Why) -> Self {
        Self::Unknown(why)
    }
}

/// The record, and what its sources share.
pub struct Record<'r> {
    note: &'r mut dyn FnMut(&str, &str),
    /// This run.
    pub context: &'r Context<'r>,
    /// The value under construction.
    pub value: Text,
    /// Where the kernel's answers are read.
    pub files: Files,
}

impl<'r> Record<'r> {
    /// Empty; `note` is given each key with its value.
    pub fn new(context: &'r Context, note: &'r mut dyn FnMut(&str, &str)) -> Self {
        Self {
            context,
            files: Files::new(context.cpu.unwrap_or(0)),
            value: Text::new(),
            note,
        }
    }

    /// Notes a value that is known.
    pub fn text(&mut self, key: &str, value: &str) {
        self.value.add(value);
        self.note(key, Ok(()));
    }

    /// Notes a number.
    pub fn number(&mut self, key: &str, value: u64) {
        self.value.number(value);
        self.note(key, Ok(()));
    }

    /// Notes what `parse` finds: a key, a path and a name, with a blank between.
    pub fn note_file(&mut self, parse: Parse, line: &'static [u8]) {
        let (key, argument) = halves(line, b' ');
        let (path, name) = halves(argument, b' ');
        let found = match self.files.head(path) {
            Ok(text) => parse(&mut self.value, text, name),
            Err(missing) => Err(missing),
        };
        self.note_as("", key, found);
    }

    /// Notes the value, or why there is none.
    pub fn note(&mut self, key: &str, found: Finding) {
        self.note_as(key, b"", found);
    }

    /// As [`note`](Self::note). The key is `prefix` and behind it `name`, in small letters
    /// and with `_` for `-`.
    pub fn note_as(&mut self, prefix: &str, name: &[u8], found: Finding) {
        let mut key = Text::new();
        key.add(prefix);
        for byte in name {
            let byte = if *byte == b'-' {
                b'_'
            } else {
                byte.to_ascii_lowercase()
            };
            add(&mut key, from_ref(&byte));
        }
        if let Err(missing) = found {
            // What stands there may be half a value.
            self.value = Text::new();
            match missing {
                Missing::ABSENT => self.value.add("absent"),
                Missing::Refused(errno) => {
                    self.value.add("unreadable:").add(name_or_unknown(errno))
                }
                Missing::Unknown(why) => self.value.add("unknown:").add(why.text()),
            };
        }
        let value = match self.value.read() {
            Ok("") => "empty",
            Ok(value) if value.len() <= VALUE_MAX => value,
            _ => "unknown:longer than expected",
        };
        (self.note)(key.read().unwrap_or(prefix), value);
        self.value = Text::new();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::recorded;
    use super::*;

    fn noted(write: impl FnOnce(&mut Text) -> Finding) -> std::string::String {
        let noted = recorded(|record| {
            let found = write(&mut record.value);
            record.note("key", found);
        });
        assert_eq!(noted[0].0, "key");
        noted[0].1.clone()
    }

    #[test]
    fn a_line_says_what_is_known_or_why_nothing_is() {
        let cases: [(Finding, &str); 6] = [
            (Ok(()), "half"),
            (Err(Errno::NOENT.into()), "absent"),
            (Err(Errno::ACCESS.into()), "unreadable:EACCES"),
            (Err(Errno::from_raw_os_error(4095).into()), "unreadable:E?"),
            (Err(Why::NoProc.into()), "unknown:no /proc"),
            (Err(Why::TooLong.into()), "unknown:longer than expected"),
        ];
        for (found, want) in cases {
            let value = noted(|value| {
                value.add("half");
                found
            });
            assert_eq!(value, want);
        }
        assert_eq!(noted(|_| Ok(())), "empty");
    }

    #[test]
    fn a_value_leaves_room_for_its_key() {
        for (len, fits) in [
            (VALUE_MAX, true),
            (VALUE_MAX + 1, false),
            (TEXT_MAX + 1, false),
        ] {
            let value = noted(|value| {
                (0..len).for_each(|_| {
                    value.add("x");
                });
                Ok(())
            });
            let want = if fits {
                "x".repeat(len)
            } else {
                "unknown:longer than expected".into()
            };
            assert_eq!(value, want);
        }
    }

    #[test]
    fn a_value_does_not_reach_into_the_next_line() {
        let noted = recorded(|record| {
            record.text("first", "1");
            record.value.add("half");
            record.note("second", Err(Missing::ABSENT));
            record.number("third", 3);
        });
        let values: std::vec::Vec<_> = noted.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["1", "absent", "3"]);
    }

    #[test]
    fn names_become_keys() {
        let noted = recorded(|record| {
            record.note_as("option", b"-segment-pages", Ok(()));
            record.note_as("", b"CONFIG_HZ", Ok(()));
        });
        assert_eq!(noted[0].0, "option_segment_pages");
        assert_eq!(noted[1].0, "config_hz");
    }
}
