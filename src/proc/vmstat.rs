//! /proc/vmstat: events since the machine started, and what there is now.
//!
//! Source: proc_vmstat(5); mm/vmstat.c, which sums an event over all processors when it is read.

use super::number::decimal;

/// A count.
#[must_use]
pub fn value(text: &[u8], name: &str) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.find_map(|line| decimal(line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?))
}

/// Pages that the kernel has put into other frames, without a fault of who reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Moved: by compaction, between nodes, by who asked for it (mm/migrate.c). A kernel that cannot
    /// does not count them.
    pub migrated: u64,
    /// Read from swap, or from what stands before it (zswap).
    pub swapped_in: u64,
}

impl Moves {
    /// `None` if this kernel counts no events.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let count = |name| value(text, name).unwrap_or(0);
        value(text, "pgfault").map(|_| Self {
            migrated: count("pgmigrate_success"),
            swapped_in: count("pswpin").saturating_add(count("zswpin")),
        })
    }

    /// How many more than at an earlier reading.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            migrated: self.migrated.saturating_sub(before.migrated),
            swapped_in: self.swapped_in.saturating_sub(before.swapped_in),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_cannot_do_it_does_not_count_but_faults_all_count() {
        let text = b"nr_free 9\npswpin 3\npswpout 5\npgfault 70\npgmigrate_success 12\nzswpin 4\n";
        let moves = Moves {
            migrated: 12,
            swapped_in: 7,
        };
        assert_eq!(Moves::parse(text), Some(moves));
        assert_eq!(Moves::parse(b"pgfault 7\n"), Some(Moves::default()));
        assert_eq!(Moves::parse(b"nr_free 9\n"), None);
        assert_eq!(Moves::parse(b""), None);
        let before = Moves {
            migrated: 2,
            swapped_in: 7,
        };
        let since = Moves {
            migrated: 10,
            swapped_in: 0,
        };
        assert_eq!(moves.since(before), since);
    }
}
