//! From what was measured of an arm to a word.

use crate::stats::ratio_milli;
use core::cmp::Ordering;

/// Why an arm is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// A process of it, or of the reference, was not measured.
    NotMeasured,
    /// Pages were swapped out, and so in no PSS.
    Swapped,
    /// The kernel's count of Shmem can be behind by too much.
    Lag,
    /// Others took or gave back shared memory meanwhile.
    Company,
}

/// What decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// There is no [`Doubt`] about this arm and the one it is compared with.
    pub(super) is_valid: bool,
    /// Size of the program's file, KiB.
    pub(super) file_kb: u64,
    /// The most `Shared_Dirty` of a process, KiB.
    pub(super) shared_dirty_kb: Option<u64>,
    /// The most private dirty memory of a process that is neither anonymous nor shmem, KiB.
    pub(super) file_dirty_kb: Option<u64>,
    /// Growth of the machine's Shmem per process, thousandths of a KiB.
    pub(super) shmem_milli: Option<i64>,
    /// How much more of the load segments is private than in `elf`.
    pub(super) private: Option<Share>,
}

/// A part of the load segments, exact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) part: i128,
    /// In the same unit; above 0.
    pub(super) whole: i128,
}

impl Share {
    /// In thousandths, rounded: to be printed, not to be decided on.
    pub(super) fn milli(self) -> Option<i64> {
        ratio_milli(self.part, self.whole)
    }

    /// How it compares with so many thousandths.
    fn against(self, milli: u64) -> Ordering {
        (self.part * 1000).cmp(&(self.whole * i128::from(milli)))
    }

    /// Whether both are the same but for what counts as nothing.
    pub(super) fn agrees_with(self, other: Self) -> bool {
        let part = (self.part - other.part).abs();
        Self { part, ..self }.against(MUCH_LESS).is_le()
    }
}

/// The verdict: the first that applies.
pub(super) fn verdict(facts: &Facts) -> &'static str {
    let (Some(shared_dirty), Some(file_dirty), Some(shmem), Some(private)) = (
        facts.shared_dirty_kb,
        facts.file_dirty_kb,
        facts.shmem_milli,
        facts.private,
    ) else {
        return "invalid";
    };
    // Both sides times 1000; a file of no size cannot have been executed.
    let dirty = shared_dirty.max(file_dirty).saturating_mul(1000);
    let of_file = |milli: u64| facts.file_kb.saturating_mul(milli);
    let shmem = i128::from(shmem);
    if !facts.is_valid {
        "invalid"
    } else if dirty > of_file(MUCH_LESS) {
        "dirty-cache"
    } else if shmem >= i128::from(of_file(NEARLY_ALL)) {
        "copied-shmem"
    } else if private.against(NEARLY_ALL).is_ge() {
        "copied-anon"
    } else if private.against(MUCH_LESS).is_le() && shmem <= i128::from(of_file(MUCH_LESS)) {
        "shared"
    } else {
        "mixed"
    }
}

/// Thousandths from which on it counts as all of it.
const NEARLY_ALL: u64 = 950;
/// Thousandths up to which it counts as nothing.
const MUCH_LESS: u64 = 50;

#[cfg(test)]
mod tests {
    use super::*;

    const SHARED: Facts = Facts {
        is_valid: true,
        file_kb: 1000,
        shared_dirty_kb: Some(0),
        file_dirty_kb: Some(0),
        shmem_milli: Some(0),
        private: Some(milli(0)),
    };

    const fn milli(milli: i128) -> Share {
        Share {
            part: milli * 10,
            whole: 10_000,
        }
    }

    /// Each rule at its threshold, and just off it.
    #[test]
    fn the_first_that_applies() {
        let facts = |shared_dirty, file_dirty, shmem_kb: i64, private| Facts {
            shared_dirty_kb: Some(shared_dirty),
            file_dirty_kb: Some(file_dirty),
            shmem_milli: Some(shmem_kb * 1000),
            private: Some(milli(private)),
            ..SHARED
        };
        let cases = [
            (facts(0, 0, 0, 0), "shared"),
            (facts(50, 50, 50, 50), "shared"),
            (facts(51, 0, 0, 0), "dirty-cache"),
            (facts(0, 51, 950, 1000), "dirty-cache"),
            (facts(0, 0, 950, 1000), "copied-shmem"),
            (facts(0, 0, 949, 1000), "copied-anon"),
            (facts(0, 0, 0, 950), "copied-anon"),
            (facts(0, 0, 0, 949), "mixed"),
            (facts(0, 0, 0, 51), "mixed"),
            (facts(0, 0, 51, 0), "mixed"),
            (facts(0, 0, -300, -200), "shared"),
        ];
        for (facts, want) in cases {
            assert_eq!(verdict(&facts), want, "{facts:?}");
        }
    }

    /// Both are printed as 0.950 and as 0.050.
    #[test]
    fn what_is_printed_rounded_is_decided_exactly() {
        for (part, want) in [
            (9500, "copied-anon"),
            (9496, "mixed"),
            (504, "mixed"),
            (500, "shared"),
        ] {
            let share = Share {
                part,
                whole: 10_000,
            };
            let facts = Facts {
                private: Some(share),
                ..SHARED
            };
            assert_eq!(verdict(&facts), want, "{part}");
            assert!([Some(950), Some(50)].contains(&share.milli()));
        }
        assert!(milli(100).agrees_with(milli(150)) && milli(150).agrees_with(milli(100)));
        assert!(!milli(100).agrees_with(milli(151)));
    }

    #[test]
    fn what_is_not_known_is_not_shared() {
        let invalid = [
            Facts {
                is_valid: false,
                ..SHARED
            },
            Facts {
                shmem_milli: None,
                ..SHARED
            },
            Facts {
                private: None,
                ..SHARED
            },
            Facts {
                shared_dirty_kb: None,
                ..SHARED
            },
            Facts {
                file_dirty_kb: None,
                ..SHARED
            },
        ];
        for facts in invalid {
            assert_eq!(verdict(&facts), "invalid", "{facts:?}");
        }
    }
}
