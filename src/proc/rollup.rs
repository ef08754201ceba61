//! /proc/PID/smaps_rollup, by exact field name.
//!
//! A field that is not listed here is an error, not something to pass over: the kernel
//! moves memory from one field to another when it adds one, and a sum that lacks the new
//! field would be wrong in silence.
//!
//! Source: proc_pid_smaps_rollup(5); `__show_smap` in fs/proc/task_mmu.c, from Linux 4.14,
//! which brought the file, to 7.3.

use super::maps::MapsLine;
use super::number::{kib, split_once};

/// How many fields are known.
pub const FIELD_COUNT: usize = 22;

/// Major and minor number of a kernel's version.
pub type Version = (u32, u32);

/// A field, the kernel that brought it into this file, and the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its exact name.
    pub name: &'static str,
    /// The first version that has it. It is there whatever the configuration.
    pub since: Version,
    /// What added it to `__show_smap`.
    pub commit: &'static str,
}

const fn first(name: &'static str) -> Field {
    since((4, 14), "493b0e9d945f", name)
}

const fn since(since: Version, commit: &'static str, name: &'static str) -> Field {
    Field {
        name,
        since,
        commit,
    }
}

/// Every field that some kernel has, in the order of the file. Version and commit are for who
/// compares kernels; a file is read by [`FIELDS`] alone, whatever kernel wrote it.
pub const HISTORY: [Field; FIELD_COUNT] = [
    first("Rss"),
    first("Pss"),
    since((6, 0), "30934843002c", "Pss_Dirty"),
    since((5, 3), "ee2ad71b0756", "Pss_Anon"),
    since((5, 3), "ee2ad71b0756", "Pss_File"),
    since((5, 3), "ee2ad71b0756", "Pss_Shmem"),
    first("Shared_Clean"),
    first("Shared_Dirty"),
    first("Private_Clean"),
    first("Private_Dirty"),
    first("Referenced"),
    first("Anonymous"),
    since((6, 7), "8b47933544a6", "KSM"),
    first("LazyFree"),
    first("AnonHugePages"),
    first("ShmemPmdMapped"),
    since((5, 4), "60fbf0ab5da1", "FilePmdMapped"),
    first("Shared_Hugetlb"),
    first("Private_Hugetlb"),
    first("Swap"),
    first("SwapPss"),
    first("Locked"),
];

/// Their names.
pub const FIELDS: [&str; FIELD_COUNT] = names();

const fn names() -> [&'static str; FIELD_COUNT] {
    let mut names = [""; FIELD_COUNT];
    let mut index = 0;
    while index < FIELD_COUNT {
        names[index] = HISTORY[index].name;
        index += 1;
    }
    names
}

/// The known fields that a kernel of this version does not have, in the order of the file.
pub fn lacking(version: Version) -> impl Iterator<Item = &'static str> {
    let later = HISTORY
        .into_iter()
        .filter(move |field| version < field.since);
    later.map(|field| field.name)
}

/// The values of one file, KiB, in the order of [`FIELDS`]; `None` where this kernel does
/// not have the field.
pub type Rollup = [Option<u64>; FIELD_COUNT];

/// The longest field name that is kept of one that is not known.
const NAME_BYTES: usize = 32;

/// A field as the kernel called it, cut to its first 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName {
    bytes: [u8; NAME_BYTES],
    len: usize,
}

impl FieldName {
    fn of(name: &[u8]) -> Self {
        let mut bytes = [0; NAME_BYTES];
        let len = name.len().min(NAME_BYTES);
        bytes[..len].copy_from_slice(&name[..len]);
        // Only ASCII goes on to a message.
        for byte in &mut bytes[..len] {
            if !byte.is_ascii_graphic() {
                *byte = b'?';
            }
        }
        Self { bytes, len }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("?")
    }
}

/// Why a file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RollupError {
    /// A field that is not in [`FIELDS`].
    Unknown(FieldName),
    /// A field that stands there twice.
    Repeated(FieldName),
    /// A field whose value is not a number of kB.
    BadValue(FieldName),
    /// The first line is no header, or a line has no colon or no line feed.
    NotRollup,
}

impl RollupError {
    /// What is wrong, in words that go before the field's name.
    #[must_use]
    pub const fn problem(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "unknown field ",
            Self::Repeated(_) => "repeated field ",
            Self::BadValue(_) => "not a number of kB in field ",
            Self::NotRollup => "text of another form",
        }
    }

    /// The field's name; empty if it is not about one.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            Self::Unknown(name) | Self::Repeated(name) | Self::BadValue(name) => name.as_str(),
            Self::NotRollup => "",
        }
    }
}

/// Reads the whole file. All that can be read is in `values`, also after an error.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse(text: &[u8], values: &mut Rollup) -> Result<(), RollupError> {
    *values = [None; FIELD_COUNT];
    let whole = text.strip_suffix(b"\n").ok_or(RollupError::NotRollup)?;
    let mut lines = whole.split(|byte| *byte == b'\n');
    let header = lines.next().and_then(MapsLine::parse);
    header.ok_or(RollupError::NotRollup)?;
    let mut result = Ok(());
    for line in lines {
        result = result.and(take(line, values));
    }
    result
}

fn take(line: &[u8], values: &mut Rollup) -> Result<(), RollupError> {
    let (name, value) = split_once(line, b':').ok_or(RollupError::NotRollup)?;
    let known = FIELDS.iter().position(|field| field.as_bytes() == name);
    let index = known.ok_or_else(|| RollupError::Unknown(FieldName::of(name)))?;
    if values[index].is_some() {
        return Err(RollupError::Repeated(FieldName::of(name)));
    }
    let kib = kib(value).ok_or_else(|| RollupError::BadValue(FieldName::of(name)))?;
    values[index] = Some(kib);
    Ok(())
}

/// The place of a field in [`FIELDS`]; for names that stand in the program's text.
#[must_use]
pub const fn place(name: &str) -> usize {
    let mut index = 0;
    while index < FIELD_COUNT {
        if same(FIELDS[index].as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("no such field")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::samples::ROLLUP;
    use std::string::String;
    use std::vec::Vec;

    fn parsed(text: &str) -> (Result<(), RollupError>, Rollup) {
        let mut values = [None; FIELD_COUNT];
        let result = parse(text.as_bytes(), &mut values);
        (result, values)
    }

    /// The problem, and the field that is named.
    fn refused(text: &str) -> (&'static str, String) {
        let error = parsed(text).0.unwrap_err();
        (error.problem(), error.field().into())
    }

    #[test]
    fn the_sample_reads() {
        let (result, values) = parsed(ROLLUP);
        assert_eq!(result, Ok(()));
        assert_eq!(values[place("Rss")], Some(1656));
        assert_eq!(values[place("Pss")], Some(518));
        assert_eq!(values[place("Private_Dirty")], Some(112));
    }

    #[test]
    fn a_version_has_what_came_until_then() {
        let lacks = |version| lacking(version).collect::<Vec<_>>();
        let dirty_and_ksm = ["Pss_Dirty", "KSM"];
        assert_eq!(lacks((5, 10)), dirty_and_ksm);
        assert_eq!(lacks((5, 19)), dirty_and_ksm);
        assert_eq!(lacks((6, 1)), ["KSM"]);
        assert_eq!(lacks((6, 12)), [""; 0]);
        assert_eq!(lacks((4, 19)).len(), 6);
        // Before the file itself.
        assert_eq!(lacks((4, 13)).len(), FIELD_COUNT);
    }

    #[test]
    fn what_a_kernel_does_not_have_is_unknown_not_0() {
        let old =
            "1000-2000 ---p 00000000 00:00 0                  [rollup]\nRss:  8 kB\nPss: 4 kB\n";
        let (result, values) = parsed(old);
        assert_eq!(result, Ok(()));
        assert_eq!(values[place("Pss")], Some(4));
        assert_eq!(values.iter().filter(|value| value.is_some()).count(), 2);
    }

    #[test]
    fn fields_of_the_future_twice_or_in_other_units_are_refused_and_the_rest_is_kept() {
        let with = |line: &str| std::format!("{}{line}\nLocked: 0 kB\n", without("Locked:"));
        let unknown = with("Pss_Moon:  12 kB");
        assert_eq!(refused(&unknown), ("unknown field ", "Pss_Moon".into()));
        assert_eq!(parsed(&unknown).1[place("Locked")], Some(0));
        assert_eq!(
            refused(&with("Pss:  12 kB")),
            ("repeated field ", "Pss".into())
        );
        let unit = without("Swap:") + "Swap:  0 MB\n";
        assert_eq!(
            refused(&unit),
            ("not a number of kB in field ", "Swap".into())
        );
        // Exact names: neither another case nor a part.
        assert_eq!(refused(&with("pss: 1 kB")).1, "pss");
        assert_eq!(refused(&with("Pss_: 1 kB")).1, "Pss_");
        assert_eq!(refused(&with("a\x1bb: 1 kB")).1, "a?b");
        let long = "x".repeat(40);
        assert_eq!(refused(&with(&std::format!("{long}: 1 kB"))).1, &long[..32]);
    }

    #[test]
    fn a_text_that_was_cut_is_refused() {
        for text in [
            "",
            "\n",
            "Rss: 8 kB\n",
            &ROLLUP[..ROLLUP.len() - 1],
            "1000-2000 ---p 00000000 00:00 0  [rollup]\nRss\n",
        ] {
            assert_eq!(parsed(text).0, Err(RollupError::NotRollup), "{text:?}");
        }
    }

    fn without(name: &str) -> String {
        let lines = ROLLUP.split_inclusive('\n');
        lines.filter(|line| !line.starts_with(name)).collect()
    }
}
