//! What a range of memory uses, summed over the VMAs of /proc/PID/smaps; also
//! /proc/PID/smaps_rollup, which has one header and the same fields.
//!
//! Source: proc_pid_smaps(5); Documentation/filesystems/proc.rst; `__show_smap` in
//! fs/proc/task_mmu.c. The first ten fields read here have been in every kernel since 2.6.38;
//! the two of hugetlb came with 4.4 (25ee01a2fca0), and may be missing. Others are passed over.

use super::maps::MapsLine;
use super::number::{kib, split_once};
use super::usage::MAX_KIB;
pub use super::usage::{Counters, Usage, UsageDelta};

/// A line `Name:   8 kB` and where its value goes.
struct Field {
    name: &'static str,
    slot: fn(&mut Usage) -> &mut u64,
}

/// Those that every kernel has come first.
static FIELDS: [Field; 12] = [
    Field::new("Rss", |usage| &mut usage.rss_kib),
    Field::new("Pss", |usage| &mut usage.pss_kib),
    Field::new("Shared_Clean", |usage| &mut usage.shared_clean_kib),
    Field::new("Shared_Dirty", |usage| &mut usage.shared_dirty_kib),
    Field::new("Private_Clean", |usage| &mut usage.private_clean_kib),
    Field::new("Private_Dirty", |usage| &mut usage.private_dirty_kib),
    Field::new("Referenced", |usage| &mut usage.referenced_kib),
    Field::new("Anonymous", |usage| &mut usage.anonymous_kib),
    Field::new("AnonHugePages", |usage| &mut usage.anon_huge_kib),
    Field::new("Swap", |usage| &mut usage.swap_kib),
    Field::new("Shared_Hugetlb", |usage| &mut usage.shared_hugetlb_kib),
    Field::new("Private_Hugetlb", |usage| &mut usage.private_hugetlb_kib),
];

/// How many of [`FIELDS`] every VMA must have.
const NEEDED: usize = 10;

impl Field {
    const fn new(name: &'static str, slot: fn(&mut Usage) -> &mut u64) -> Self {
        Self { name, slot }
    }

    fn add(&self, usage: &mut Usage, value: &[u8]) -> Result<(), SmapsError> {
        let slot = (self.slot)(usage);
        let sum = kib(value).and_then(|kib| slot.checked_add(kib));
        *slot = sum
            .filter(|sum| *sum <= MAX_KIB)
            .ok_or(SmapsError::BadValue(self.name))?;
        Ok(())
    }
}

/// Why there is no sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmapsError {
    /// A VMA lies partly inside the range: its numbers cannot be divided.
    PartlyInside {
        /// First address of the VMA.
        start: u64,
        /// First address behind it.
        end: u64,
    },
    /// The kernel did not print this field for a VMA in the range, or the text was cut.
    Missing(&'static str),
    /// This field stands twice in one VMA.
    Repeated(&'static str),
    /// This field's value is not a number of kB, or too large to be summed.
    BadValue(&'static str),
    /// A line that is neither a header nor a field of one.
    NotSmaps,
    /// No VMA lies in the range. (An exited process has an empty smaps.)
    NoVma,
}

/// Sums smaps, line by line, over the VMAs inside a range. After an error the sum is
/// worthless.
#[derive(Debug)]
pub struct UsageSum {
    start: u64,
    end: u64,
    usage: Usage,
    section: Section,
}

impl UsageSum {
    /// Counts what lies in `start..end`. A VMA across one of its edges is an error.
    #[must_use]
    pub fn within(start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            usage: Usage::default(),
            section: Section::BeforeFirst,
        }
    }

    /// Counts the whole process; the only choice for smaps_rollup.
    #[must_use]
    pub fn whole() -> Self {
        Self::within(0, u64::MAX)
    }

    /// Takes the next line, without its line feed.
    ///
    /// # Errors
    ///
    /// Everything in [`SmapsError`] but `NoVma`; `Missing` once the VMA is over.
    pub fn line(&mut self, line: &[u8]) -> Result<(), SmapsError> {
        match MapsLine::parse(line) {
            Some(vma) => self.header(&vma),
            None => self.field(line),
        }
    }

    /// The sum, at the end of the file.
    ///
    /// # Errors
    ///
    /// `Missing` if the last VMA lacks a field, `NoVma` if there was none in the range.
    pub fn finish(self) -> Result<Usage, SmapsError> {
        self.section.end()?;
        match self.usage.vmas {
            0 => Err(SmapsError::NoVma),
            _ => Ok(self.usage),
        }
    }

    fn header(&mut self, vma: &MapsLine<'_>) -> Result<(), SmapsError> {
        self.section.end()?;
        if vma.lies_within(self.start, self.end) {
            self.usage.vmas += 1;
            self.section = Section::Counted { seen: 0 };
            return Ok(());
        }
        self.section = Section::Outside;
        if vma.overlaps(self.start, self.end) {
            let (start, end) = (vma.start, vma.end);
            return Err(SmapsError::PartlyInside { start, end });
        }
        Ok(())
    }

    fn field(&mut self, line: &[u8]) -> Result<(), SmapsError> {
        let (name, value) = split_once(line, b':').ok_or(SmapsError::NotSmaps)?;
        // A damaged header has colons as well; passed over, it would hide a VMA.
        if !name.iter().all(is_name_byte) {
            return Err(SmapsError::NotSmaps);
        }
        match &mut self.section {
            Section::BeforeFirst => Err(SmapsError::NotSmaps),
            Section::Outside => Ok(()),
            Section::Counted { seen } => match mark(seen, name)? {
                Some(field) => field.add(&mut self.usage, value),
                None => Ok(()),
            },
        }
    }
}

fn is_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// Notes in `seen` that the field `name` was there, if it is one of ours.
fn mark(seen: &mut u16, name: &[u8]) -> Result<Option<&'static Field>, SmapsError> {
    let mut numbered = FIELDS.iter().zip(0..);
    let Some((field, bit)) = numbered.find(|(field, _)| field.name.as_bytes() == name) else {
        return Ok(None);
    };
    if *seen >> bit & 1 == 1 {
        return Err(SmapsError::Repeated(field.name));
    }
    *seen |= 1 << bit;
    Ok(Some(field))
}

/// Which header the lines now belong to.
#[derive(Debug)]
enum Section {
    BeforeFirst,
    Outside,
    /// Bit n: `FIELDS[n]` was there.
    Counted {
        seen: u16,
    },
}

impl Section {
    fn end(&self) -> Result<(), SmapsError> {
        let Self::Counted { seen } = *self else {
            return Ok(());
        };
        let mut needed = FIELDS[..NEEDED].iter().zip(0..);
        match needed.find(|(_, bit)| seen >> bit & 1 == 0) {
            Some((field, _)) => Err(SmapsError::Missing(field.name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::samples::{ROLLUP, SMAPS, SMAPS_2_6_38};
    use std::string::{String, ToString};

    fn sum(mut sum: UsageSum, text: &str) -> Result<Usage, SmapsError> {
        for line in text.lines() {
            sum.line(line.as_bytes())?;
        }
        sum.finish()
    }

    /// The arena of [`SMAPS`]: its second and its third VMA.
    const ARENA: (u64, u64) = (0x7f5a_4000_0000, 0x7f5a_4002_5000);

    fn arena() -> UsageSum {
        UsageSum::within(ARENA.0, ARENA.1)
    }

    fn arena_usage() -> Usage {
        Usage {
            vmas: 2,
            rss_kib: 64 + 64,
            pss_kib: 32 + 48,
            shared_clean_kib: 0,
            shared_dirty_kib: 64 + 32,
            private_clean_kib: 20,
            private_dirty_kib: 12,
            referenced_kib: 64 + 60,
            anonymous_kib: 64 + 64,
            anon_huge_kib: 0,
            swap_kib: 4,
            ..Usage::default()
        }
    }

    #[test]
    fn only_the_range_is_summed() {
        assert_eq!(sum(arena(), SMAPS), Ok(arena_usage()));
        assert_eq!(arena_usage().private_kib(), 32);
        let second = UsageSum::within(0x7f5a_4001_4000, ARENA.1);
        assert_eq!(
            sum(second, SMAPS).map(|usage| (usage.vmas, usage.rss_kib)),
            Ok((1, 64))
        );
    }

    #[test]
    fn the_whole_process_is_summed() {
        let usage = sum(UsageSum::whole(), SMAPS).unwrap();
        assert_eq!(
            (usage.vmas, usage.rss_kib, usage.pss_kib),
            (4, 8 + 128, 8 + 80)
        );
    }

    #[test]
    fn old_kernels_have_fewer_fields_and_rollups_more() {
        let old = sum(UsageSum::whole(), SMAPS_2_6_38).unwrap();
        let expected = Usage {
            vmas: 1,
            rss_kib: 100,
            pss_kib: 60,
            shared_clean_kib: 80,
            private_dirty_kib: 20,
            referenced_kib: 100,
            anonymous_kib: 20,
            ..Usage::default()
        };
        assert_eq!(old, expected);
        let rollup = sum(UsageSum::whole(), ROLLUP).unwrap();
        let expected = Usage {
            vmas: 1,
            rss_kib: 1656,
            pss_kib: 518,
            shared_clean_kib: 1468,
            private_clean_kib: 76,
            private_dirty_kib: 112,
            referenced_kib: 1656,
            anonymous_kib: 112,
            ..Usage::default()
        };
        assert_eq!(rollup, expected);
        assert_eq!(rollup.private_kib(), 188);
    }

    #[test]
    fn a_vma_across_an_edge_is_an_error() {
        let (start, end) = (0x7f5a_4000_0000, 0x7f5a_4001_0000);
        let expected = Err(SmapsError::PartlyInside { start, end });
        assert_eq!(
            sum(UsageSum::within(start + 4096, ARENA.1), SMAPS),
            expected
        );
        assert_eq!(sum(UsageSum::within(start, end - 4096), SMAPS), expected);
        assert_eq!(
            sum(UsageSum::within(start + 4096, end - 4096), SMAPS),
            expected
        );
        assert!(sum(arena(), ROLLUP).is_err());
    }

    #[test]
    fn no_vma_is_not_0() {
        assert_eq!(sum(arena(), ""), Err(SmapsError::NoVma));
        assert_eq!(sum(UsageSum::whole(), ""), Err(SmapsError::NoVma));
        assert_eq!(
            sum(UsageSum::within(0x1000, 0x1000), SMAPS),
            Err(SmapsError::NoVma)
        );
        assert_eq!(
            sum(UsageSum::within(ARENA.1, ARENA.0), SMAPS),
            Err(SmapsError::NoVma)
        );
    }

    #[test]
    fn a_field_that_never_came_is_named() {
        for field in &FIELDS[..NEEDED] {
            let cut = without(SMAPS, field.name);
            assert_eq!(sum(arena(), &cut), Err(SmapsError::Missing(field.name)));
        }
    }

    /// `text` without the last line that begins with `name:`, which is not in the arena,
    /// and without the last but one, which is.
    fn without(text: &str, name: &str) -> String {
        let mut text = text.to_string();
        for _ in 0..2 {
            let at = text.rfind(&std::format!("\n{name}:")).unwrap();
            let end = at + 1 + text[at + 1..].find('\n').unwrap();
            text.replace_range(at..end, "");
        }
        text
    }

    /// smaps_hugetlb_range (fs/proc/task_mmu.c) adds to these two fields alone.
    #[test]
    fn a_hugetlb_page_of_ones_own_is_private_memory() {
        let none = "Private_Hugetlb:       0 kB";
        assert!(SMAPS.contains(none));
        let text = SMAPS.replace(none, "Private_Hugetlb:    2048 kB");
        let usage = sum(arena(), &text).unwrap();
        assert_eq!(usage.private_hugetlb_kib, 2 * 2048);
        assert_eq!(usage.private_kib(), arena_usage().private_kib() + 2 * 2048);
    }

    #[test]
    fn bad_lines_are_errors_inside_the_range() {
        let cases = [
            ("Rss: 4 kB\nRss: 4 kB", SmapsError::Repeated("Rss")),
            ("Rss: 4", SmapsError::BadValue("Rss")),
            ("Rss:", SmapsError::BadValue("Rss")),
            ("Rss: -4 kB", SmapsError::BadValue("Rss")),
            (
                "Swap: 111111111111111111111 kB",
                SmapsError::BadValue("Swap"),
            ),
            ("Swap: 9223372036854775808 kB", SmapsError::BadValue("Swap")),
            ("Rs", SmapsError::NotSmaps),
            ("", SmapsError::NotSmaps),
            ("Swap_Later: many\nVmFlags: rd", SmapsError::Missing("Rss")),
        ];
        for (lines, error) in cases {
            let text = std::format!("1000-2000 rw-p 00000000 00:00 0 \n{lines}\n");
            assert_eq!(sum(UsageSum::whole(), &text), Err(error), "{lines}");
        }
        let damaged = b"3000-4000 rw-p 00000000 00:00 0";
        assert_eq!(outside().line(damaged), Err(SmapsError::NotSmaps));
        assert_eq!(outside().line(b"Rss: many"), Ok(()));
        assert_eq!(
            UsageSum::whole().line(b"Rss: 4 kB"),
            Err(SmapsError::NotSmaps)
        );
        assert_eq!(
            UsageSum::whole().line(b"\xff\xfe"),
            Err(SmapsError::NotSmaps)
        );
    }

    fn outside() -> UsageSum {
        let mut sum = arena();
        sum.line(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap();
        sum
    }

    #[test]
    fn a_sum_that_overflows_is_an_error() {
        let max = "Swap: 9223372036854775807 kB";
        let mut sum = UsageSum::whole();
        sum.line(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!(sum.line(max.as_bytes()), Ok(()));
        sum.section = Section::Counted { seen: 0 };
        assert_eq!(sum.line(b"Swap: 1 kB"), Err(SmapsError::BadValue("Swap")));
    }
}
