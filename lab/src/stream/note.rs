//! A note, and what it tells.

/// A line `#key=value` before the header: a piece of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it is about; printable ASCII.
    pub key: String,
    /// What it says; may be empty.
    pub value: String,
}

/// What a note of the environment tells. The one place that knows how the appliance writes that
/// there is nothing to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told<'n> {
    /// There is no such note.
    NotNoted,
    /// The machine has no such thing.
    Absent,
    /// There is no telling: nothing says, what says it may not be read, or it was empty.
    Unknown,
    /// What its source says.
    Value(&'n str),
}

impl Note {
    /// What it tells.
    #[must_use]
    pub fn told(&self) -> Told<'_> {
        let is = |word: &str| {
            let rest = self.value.strip_prefix(word);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        match &*self.value {
            "absent" => Told::Absent,
            "" | "empty" => Told::Unknown,
            _ if is("unknown") || is("unreadable") => Told::Unknown,
            value => Told::Value(value),
        }
    }
}

/// What the notes tell of `key`.
#[must_use]
pub fn told<'n>(notes: &'n [Note], key: &str) -> Told<'n> {
    let note = notes.iter().find(|note| note.key == key);
    note.map_or(Told::NotNoted, Note::told)
}

/// Whether a machine's times mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Real {
    /// Nothing speaks of an emulator.
    Yes,
    /// It may be one: nothing tells.
    Perhaps,
    /// It is emulated.
    No,
}

impl Real {
    /// What notes say: the lab's own word, handed to each guest on its command line, or CPUID's
    /// signature of QEMU without hardware acceleration. On aarch64 no instruction tells of an
    /// emulator, and the usual board of emulators is that of virtual machines, too.
    #[must_use]
    pub fn of(notes: &[Note]) -> Self {
        let [emulated, hypervisor, board] =
            ["emulated", "hypervisor", "devicetree"].map(|key| told(notes, key));
        let is_board = |value: &str| value.contains("linux,dummy-virt");
        match (emulated, hypervisor, board) {
            (Told::Value(_), ..) | (_, Told::Value("TCGTCGTCGTCG"), _) => Self::No,
            (Told::Unknown, ..) => Self::Perhaps,
            // What the CPU would say settles it.
            (_, Told::Value(_) | Told::Absent, Told::Unknown) => Self::Yes,
            (_, _, Told::Unknown) => Self::Perhaps,
            (_, _, Told::Value(board)) if is_board(board) => Self::Perhaps,
            _ => Self::Yes,
        }
    }

    /// What is to be known before times are looked at; `None`: nothing.
    #[must_use]
    pub const fn doubt(self) -> Option<&'static str> {
        match self {
            Self::Perhaps => Some(
                "Nothing tells whether this machine is emulated; if it is, its times say nothing.",
            ),
            _ => None,
        }
    }
}

/// Notes for tests.
#[cfg(test)]
pub(crate) fn notes(pairs: &[(&str, &str)]) -> Vec<Note> {
    let note = |(key, value): &(&str, &str)| Note {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    };
    pairs.iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_neither_a_value_nor_absent() {
        for (value, want) in [
            ("absent", Told::Absent),
            ("unknown:no /proc", Told::Unknown),
            ("unreadable:EACCES", Told::Unknown),
            ("empty", Told::Unknown),
            ("", Told::Unknown),
            ("unknowns", Told::Value("unknowns")),
            ("0", Told::Value("0")),
        ] {
            assert_eq!(told(&notes(&[("key", value)]), "key"), want, "{value}");
        }
        assert_eq!(told(&[], "key"), Told::NotNoted);
    }

    #[test]
    fn only_proof_makes_an_emulator() {
        for (pairs, want) in [
            (&[("emulated", "qemu-tcg")][..], Real::No),
            (&[("hypervisor", "TCGTCGTCGTCG")], Real::No),
            (
                &[("emulated", "absent"), ("hypervisor", "KVMKVMKVM")],
                Real::Yes,
            ),
            (&[("emulated", "unreadable:EACCES")], Real::Perhaps),
            (
                &[("emulated", "empty"), ("hypervisor", "absent")],
                Real::Perhaps,
            ),
            (&[("emulated", "unknown:no /proc")], Real::Perhaps),
            (
                &[("emulated", "absent"), ("devicetree", "linux,dummy-virt")],
                Real::Perhaps,
            ),
            (
                &[("emulated", "absent"), ("devicetree", "unreadable:EACCES")],
                Real::Perhaps,
            ),
            (
                &[("emulated", "absent"), ("devicetree", "absent")],
                Real::Yes,
            ),
            (&[], Real::Yes),
        ] {
            assert_eq!(Real::of(&notes(pairs)), want, "{pairs:?}");
        }
    }
}
