//! Which way a page is read so that reading changes nothing: the decision, without a system
//! call in it. Free to be taken over; METHOD.md has it as a table.

use crate::proc::pagemap::Entry;
use crate::reader::vma::Vma;

/// How a page is got at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// process_vm_readv: pins the page. Harmless, since a page of a file is not unshared.
    PinFile,
    /// The same of an anonymous page, of which pagemap says that it is the target's own. A pin finds
    /// out if it is not, and unshares it; so it is asked for little by little, see METHOD.md.
    PinOwn,
    /// /proc/PID/mem: takes a plain reference. Harmless wherever the page is present.
    Copy,
    /// Not in memory: what it holds follows from what is mapped there, see [`absent`].
    Absent,
    /// Never written by anybody: zeros, by definition; the target is not asked.
    Zeros,
    /// The file has it: read from there, not through the target.
    File,
    /// It is left unread.
    Leave(Why),
}

/// Why a page is left unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Swapped out, or something else that pagemap shows so.
    Swapped,
    /// A guard region: whoever touches it gets SIGSEGV.
    Guard,
    /// Another process serves its faults (userfaultfd): nobody knows what it would give.
    Served,
    /// Nothing is mapped here.
    Unmapped,
    /// A page of a file, or the kernel's own, which only a fault of the target would bring.
    NotInMemory,
    /// A page of a file that cannot be opened, or was not to be: it may be in memory.
    FileNotOpened,
    /// A mark in the page table, neither a page nor in swap: poison, write protection by
    /// userfaultfd of what is not there; or a page that has been under migration for long.
    Marked,
}

impl Why {
    /// All of them, in the order of the counts.
    pub const ALL: [Self; 7] = [
        Self::Swapped,
        Self::Guard,
        Self::Served,
        Self::Unmapped,
        Self::NotInMemory,
        Self::FileNotOpened,
        Self::Marked,
    ];

    /// In words, for a status or a summary.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Swapped => "swapped-out",
            Self::Guard => "guard-region",
            Self::Served => "served-by-userfaultfd",
            Self::Unmapped => "unmapped",
            Self::NotInMemory => "not-in-memory",
            Self::FileNotOpened => "file-not-opened",
            Self::Marked => "marked",
        }
    }
}

/// What is known of the target as a whole, and what was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether bit 56 means that a pin has nothing to unshare: not where KSM may have joined
    /// pages (a pin takes them apart, whoever maps them), nor where a page that is in memory
    /// may still be in swap for another process.
    pub exclusive_is_safe: bool,
    /// Whether an anonymous page may be part of a large folio. Of such a one bit 56 errs both
    /// ways: mapped as a whole, its first page answers for all (fs/proc/task_mmu.c,
    /// `pagemap_pmd_range`), whatever the others' mappings are; and a page that only one process
    /// maps is copied by a pin all the same while another maps any page of the folio
    /// (mm/memory.c, `wp_can_reuse_anon_folio`). Nothing else tells such a page: a VMA that gets
    /// no huge page any more may still hold what one was broken into. Not so where all there are
    /// are mapped as a whole ([`Large::Whole`](super::large::Large)): then [`doubt_wholes`] comes first.
    pub large_folios_possible: bool,
    /// Whether swapped pages may be brought in.
    pub swap_in: bool,
    /// A shorter run of pages to pin, next to pages to copy, is copied with them.
    pub pin_pages_min: usize,
}

/// The default of [`Rules::pin_pages_min`]: a second call costs more than the second copy of
/// so few pages (measured, see METHOD.md).
pub const PIN_PAGES_MIN: usize = 3;

/// Takes bit 56 from what may be mapped by one entry for a whole huge page of so many pages, a power
/// of two: who copies it has nothing to fear. `first`: the number of the first page.
pub fn doubt_wholes(entries: &mut [u64], first: u64, huge_pages: u64) {
    for (page, word) in (first..).zip(entries) {
        let entry = Entry(*word);
        if !entry.file_or_shared_anon() && entry.may_be_of_a_whole(page, huge_pages) {
            *word = entry.not_exclusive().0;
        }
    }
}

/// By the pagemap entry alone.
#[must_use]
pub const fn way(entry: Entry, rules: Rules) -> Way {
    match entry.present() {
        true if entry.file_or_shared_anon() => Way::PinFile,
        true if entry.exclusive() && rules.exclusive_is_safe && !rules.large_folios_possible => {
            Way::PinOwn
        }
        // Shared by fork, the zero page, a large folio that bit 56 is not sure of: all are
        // copied without harm.
        true => Way::Copy,
        false if entry.guard() => Way::Leave(Why::Guard),
        // Only who sees frames sees that it is one.
        false if entry.mark().is_some() => Way::Leave(Why::Marked),
        false if entry.swapped() && rules.swap_in => Way::Copy,
        false if entry.swapped() => Way::Leave(Why::Swapped),
        false => Way::Absent,
    }
}

/// What [`Way::Absent`] comes to, by what is mapped there.
#[must_use]
pub const fn absent(vma: Option<&Vma>) -> Way {
    match vma {
        None => Way::Leave(Why::Unmapped),
        Some(vma) if vma.is_served => Way::Leave(Why::Served),
        Some(vma) if vma.has_file => Way::File,
        Some(vma) if vma.is_special => Way::Leave(Why::NotInMemory),
        Some(_) => Way::Zeros,
    }
}

/// Neighbouring pages that go the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which way.
    pub way: Way,
    /// Number of the first page.
    pub first: usize,
    /// How many.
    pub pages: usize,
}

/// The runs of some pages, in order: short runs to pin that lie next to pages to copy are
/// copied with them.
pub struct Runs<'e> {
    entries: &'e [u64],
    rules: Rules,
    next: usize,
    held: Option<Run>,
}

impl<'e> Runs<'e> {
    /// Of these pagemap entries.
    #[must_use]
    pub const fn new(entries: &'e [u64], rules: Rules) -> Self {
        Self {
            entries,
            rules,
            next: 0,
            held: None,
        }
    }

    /// The next pages that pagemap alone sends the same way.
    fn plain(&mut self) -> Option<Run> {
        let rest = self.entries.get(self.next..)?;
        let first = *rest.first()?;
        let run_way = way(Entry(first), self.rules);
        // Mostly the flags are the same, and there are many pages.
        let same = |word: &&u64| {
            Entry(**word).has_flags_of(Entry(first)) || way(Entry(**word), self.rules) == run_way
        };
        let run = Run {
            way: run_way,
            first: self.next,
            pages: rest.iter().take_while(same).count(),
        };
        self.next += run.pages;
        Some(run)
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut held = self.held.take().or_else(|| self.plain())?;
        while let Some(run) = self.plain() {
            match join(held, run, self.rules.pin_pages_min) {
                Some(joined) => held = joined,
                None => {
                    self.held = Some(run);
                    break;
                }
            }
        }
        Some(held)
    }
}

/// Two neighbouring runs as one, if that is cheaper.
fn join(before: Run, run: Run, pin_pages_min: usize) -> Option<Run> {
    let together = match (before.way, run.way) {
        (Way::Copy, Way::Copy) => true,
        (Way::Copy, Way::PinOwn | Way::PinFile) => run.pages < pin_pages_min,
        (Way::PinOwn | Way::PinFile, Way::Copy) => before.pages < pin_pages_min,
        _ => false,
    };
    together.then_some(Run {
        way: Way::Copy,
        first: before.first,
        pages: before.pages + run.pages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::maps::MapsLine;
    use crate::proc::pagemap::bits::{EXCLUSIVE, FILE, GUARD, PRESENT, SOFT_DIRTY, SWAPPED};
    use std::vec::Vec;

    const SAFE: Rules = Rules {
        exclusive_is_safe: true,
        large_folios_possible: false,
        swap_in: false,
        pin_pages_min: 4,
    };
    const UNSAFE: Rules = Rules {
        exclusive_is_safe: false,
        ..SAFE
    };
    const LARGE: Rules = Rules {
        large_folios_possible: true,
        ..SAFE
    };
    const SWAP_IN: Rules = Rules {
        swap_in: true,
        ..SAFE
    };

    #[test]
    fn every_entry_has_its_way() {
        let cases = [
            (PRESENT | EXCLUSIVE | 7, SAFE, Way::PinOwn),
            (PRESENT | EXCLUSIVE | SOFT_DIRTY, SAFE, Way::PinOwn),
            (PRESENT | EXCLUSIVE | 7, UNSAFE, Way::Copy),
            (PRESENT | EXCLUSIVE | 7, LARGE, Way::Copy),
            (PRESENT | FILE | EXCLUSIVE, LARGE, Way::PinFile),
            (PRESENT | 7, LARGE, Way::Copy),
            (PRESENT | 7, SAFE, Way::Copy),
            (PRESENT, SAFE, Way::Copy),
            (PRESENT | FILE, UNSAFE, Way::PinFile),
            (PRESENT | FILE | EXCLUSIVE, SAFE, Way::PinFile),
            (SWAPPED | 7, SAFE, Way::Leave(Why::Swapped)),
            (SWAPPED | EXCLUSIVE, SAFE, Way::Leave(Why::Swapped)),
            (SWAPPED | 7, SWAP_IN, Way::Copy),
            (SWAPPED | GUARD, SAFE, Way::Leave(Why::Guard)),
            (SWAPPED | GUARD, SWAP_IN, Way::Leave(Why::Guard)),
            (0, SWAP_IN, Way::Absent),
            (FILE, SAFE, Way::Absent),
            (EXCLUSIVE | SOFT_DIRTY, SAFE, Way::Absent),
        ];
        for (entry, rules, want) in cases {
            assert_eq!(way(Entry(entry), rules), want, "{entry:x} {rules:?}");
        }
    }

    /// Nothing that another process may share is ever pinned, whatever else the entry says.
    #[test]
    fn a_pin_needs_a_file_or_the_exclusive_bit() {
        for high in 0..1u64 << 9 {
            let entry = Entry(high << 55 | 7);
            for rules in [SAFE, UNSAFE, SWAP_IN, LARGE] {
                let harmless = entry.present()
                    && (entry.file_or_shared_anon()
                        || entry.exclusive()
                            && rules.exclusive_is_safe
                            && !rules.large_folios_possible);
                let pinned = matches!(way(entry, rules), Way::PinOwn | Way::PinFile);
                assert_eq!(pinned, harmless, "{entry:?}");
            }
        }
    }

    #[test]
    fn what_may_be_of_a_huge_page_is_not_believed_to_be_the_targets_own() {
        let own = PRESENT | EXCLUSIVE | SOFT_DIRTY;
        let mut entries = [
            // Where its frame lies in a huge page, there the page does; and not.
            own | 0x1203,
            own | 0x1205,
            // A frame that is hidden; a page of a file, of a huge one, too; none.
            own,
            own | FILE | 0x1206,
            EXCLUSIVE | 0x1207,
            own | 0x1208,
        ];
        doubt_wholes(&mut entries, 0x7_0003, 512);
        let shared = PRESENT | SOFT_DIRTY;
        let want = [
            shared | 0x1203,
            own | 0x1205,
            shared,
            own | FILE | 0x1206,
            EXCLUSIVE | 0x1207,
            shared | 0x1208,
        ];
        assert_eq!(entries, want);
        let ways = want.map(|word| way(Entry(word), SAFE));
        use Way::{Absent, Copy, PinFile, PinOwn};
        assert_eq!(ways, [Copy, PinOwn, Copy, PinFile, Absent, Copy]);
    }

    #[test]
    fn what_is_absent_is_known_by_its_mapping_only() {
        let vma = |has_file, is_special, is_served| Vma {
            has_file,
            is_special,
            is_served,
            ..Vma::of(&MapsLine::parse(b"0-1000 rw-p 00000000 00:00 0 ").unwrap())
        };
        let cases = [
            (vma(false, false, false), Way::Zeros),
            (vma(true, false, false), Way::File),
            (vma(false, true, false), Way::Leave(Why::NotInMemory)),
            (vma(false, false, true), Way::Leave(Why::Served)),
            (vma(true, false, true), Way::Leave(Why::Served)),
        ];
        for (vma, want) in cases {
            assert_eq!(absent(Some(&vma)), want, "{vma:?}");
        }
        assert_eq!(absent(None), Way::Leave(Why::Unmapped));
    }

    /// `x`: exclusive, `s`: shared, `.`: absent.
    fn cut(pages: &str, min: usize) -> Vec<(Way, usize)> {
        let words: Vec<u64> = pages
            .bytes()
            .map(|letter| match letter {
                b'x' => PRESENT | EXCLUSIVE,
                b's' => PRESENT,
                _ => 0,
            })
            .collect();
        let rules = Rules {
            pin_pages_min: min,
            ..SAFE
        };
        let found: Vec<Run> = Runs::new(&words, rules).collect();
        let mut next = 0;
        for run in &found {
            assert_eq!(run.first, next);
            next += run.pages;
        }
        assert_eq!(next, words.len());
        found.iter().map(|run| (run.way, run.pages)).collect()
    }

    #[test]
    fn short_runs_between_shared_pages_are_left_to_the_copy() {
        use Way::{Absent, Copy, PinOwn as Pin};
        assert_eq!(cut("", 4), []);
        assert_eq!(cut("xxxxx", 9), [(Pin, 5)]);
        assert_eq!(cut("xsxsxsxs", 2), [(Copy, 8)]);
        assert_eq!(cut("xxxxssss", 4), [(Pin, 4), (Copy, 4)]);
        assert_eq!(cut("xxxssssxxxx", 4), [(Copy, 7), (Pin, 4)]);
        assert_eq!(cut("ssxssxxxxs", 4), [(Copy, 5), (Pin, 4), (Copy, 1)]);
        // Next to what is not copied, a short run stays one to pin.
        assert_eq!(cut("x.x", 4), [(Pin, 1), (Absent, 1), (Pin, 1)]);
        assert_eq!(
            cut("xsxsxs", 1),
            [
                (Pin, 1),
                (Copy, 1),
                (Pin, 1),
                (Copy, 1),
                (Pin, 1),
                (Copy, 1)
            ]
        );
    }
}
