//! /proc/vmstat: events since the machine started, and what there is now.
//!
//! Source: proc_vmstat(5); mm/vmstat.c, which sums an event over all processors when it is read.

use super::number::decimal;
use core::ffi::CStr;

/// The file.
pub const PATH: &CStr = c"/proc/vmstat";
/// Room for all of it: some 200 lines.
pub const BYTES: usize = 16 << 10;

/// The number behind `name`; `None`: this kernel has no such line, or no number there.
#[must_use]
pub fn value(text: &[u8], name: &str) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.find_map(|line| decimal(line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?))
}

/// Pages that the kernel has put into other frames, without a fault of who reads them. A line that there is
/// not counts as 0: of what a kernel cannot do, and of KSM before 5.19.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Moved: by compaction, between nodes, by who asked for it (mm/migrate.c).
    pub migrated: u64,
    /// Written to swap, or to what stands before it: zswap, and the zeros that are only noted (since 6.12).
    pub swapped_out: u64,
    /// Read from there.
    pub swapped_in: u64,
    /// Copied from what KSM had joined, one by one or all of it (since 5.19; mm/memory.c, `do_wp_page`).
    pub taken_apart: u64,
}

/// What each of these is the sum of.
const EVENTS: [&str; 4] = [
    "pgmigrate_success",
    "pswpout zswpout swpout_zero",
    "pswpin zswpin swpin_zero",
    "cow_ksm ksm_swpin_copy",
];

impl Moves {
    /// `None` if this kernel counts no events.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        value(text, "pgfault")?;
        let [migrated, swapped_out, swapped_in, taken_apart] = EVENTS.map(|names| {
            let counts = names.split(' ').filter_map(|name| value(text, name));
            counts.fold(0, u64::saturating_add)
        });
        Some(Self {
            migrated,
            swapped_out,
            swapped_in,
            taken_apart,
        })
    }

    /// How many more than at an earlier reading. `None`: fewer, since a processor went offline meanwhile, whose
    /// events are not in the sum for a moment.
    #[must_use]
    pub fn since(self, before: Self) -> Option<Self> {
        Some(Self {
            migrated: self.migrated.checked_sub(before.migrated)?,
            swapped_out: self.swapped_out.checked_sub(before.swapped_out)?,
            swapped_in: self.swapped_in.checked_sub(before.swapped_in)?,
            taken_apart: self.taken_apart.checked_sub(before.taken_apart)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_cannot_do_it_does_not_count_but_faults_all_count() {
        let text = b"nr_free 9\npswpin 3\npswpout 5\npgfault 70\npgmigrate_success 12\nzswpin 4\nzswpout 6\n\
            swpin_zero 20\nswpout_zero 50\nksm_swpin_copy 100\ncow_ksm 5\n";
        let moves = Moves {
            migrated: 12,
            swapped_out: 61,
            swapped_in: 27,
            taken_apart: 105,
        };
        assert_eq!(Moves::parse(text), Some(moves));
        assert_eq!(Moves::parse(b"pgfault 7\n"), Some(Moves::default()));
        assert_eq!(Moves::parse(b"nr_free 9\n"), None);
        assert_eq!(Moves::parse(b""), None);
        let before = Moves {
            migrated: 2,
            swapped_out: 1,
            swapped_in: 27,
            taken_apart: 5,
        };
        let since = Moves {
            migrated: 10,
            swapped_out: 60,
            swapped_in: 0,
            taken_apart: 100,
        };
        assert_eq!(moves.since(before), Some(since));
        assert_eq!(before.since(moves), None);
    }
}
