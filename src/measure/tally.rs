//! What a pass did, window by window: pages by what became of them, held against the faults that the
//! reader was charged meanwhile.

use super::charge::{Bounds, Charges, Room, Window};
use super::fate::{Fate, Known, Traces, is_let_go};
use super::flags::{CACHED, JOINED, Marks};
use crate::proc::pagemap::{Entry, Frame};
use crate::reader::vma::Vma;
use crate::sys::Errno;
use crate::sys::process::Faults;

/// What one pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// VMAs that were read.
    pub vmas: u64,
    /// Their bytes, but for those left out.
    pub readable: u64,
    /// Bytes that came.
    pub bytes: u64,
    /// Bytes that did not.
    pub unread: u64,
    /// Runs of such.
    pub unread_runs: u64,
    /// What the first of them gave; [`Errno::NODATA`]: it was left alone, or nothing came.
    pub errno: Option<Errno>,
    /// Bytes of readable VMAs that nobody should read, or that are a mere reserve.
    pub left_out: u64,
    /// Between the clock readings around the reader's calls.
    pub ns: u64,
    /// Charged to the tool meanwhile; `None` where a filter denies the counters.
    pub faults: Option<Faults>,
    /// Of these, in windows that were looked at again: those beyond the pages that were seen to be
    /// split or brought in.
    pub unexplained: u64,
    /// Pages split by the reader, as far as that is certain.
    pub bounds: Bounds,
    /// Whether there was hugetlb memory, of which one fault copies many pages.
    pub hugetlb: bool,
    /// Pages of hugetlb memory that the reader may have taken from other processes, or they let go.
    pub maybe_taken: u64,
    /// Pages.
    pub fate: Fate,
}

/// What is the same for all pages of a window.
pub(super) struct Ground {
    pub(super) zero: Option<Frame>,
    pub(super) page_bytes: u64,
    pub(super) charges: Charges,
    pub(super) stands: bool,
    /// Whether none of the mapping is in swap.
    pub(super) no_swap: bool,
    /// How many pages of the mapping may have been clean.
    pub(super) clean: u64,
    /// Whether it was told what each page was.
    pub(super) is_told: bool,
}

impl Ground {
    /// Fewer pages of anonymous memory than a huge page has came in one by one; those of a file do
    /// not (fault-around).
    const fn one_by_one(&self) -> u64 {
        self.page_bytes / size_of::<u64>() as u64
    }
}

impl Tally {
    /// Takes a window over: its entries, and what the kernel knew of their pages, before and after;
    /// `was` is from before it.
    pub(super) fn compare(
        &mut self,
        was: &Self,
        (before, after): (&[u64], &[u64]),
        (marks_before, marks_after): (&Marks, &Marks),
        vma: &Vma,
        ground: &Ground,
    ) {
        let mut traces = Traces::default();
        let mut let_go = 0;
        for (page, (&before, &after)) in before.iter().zip(after).enumerate() {
            let known = Known {
                zero: ground.zero,
                no_swap: ground.no_swap,
                was_own: marks_before.is_own(page),
                is_own: marks_after.is_own(page),
                was_joined: marks_before.is(JOINED, page),
                was_cached: marks_before.is(CACHED, page),
                origin: marks_after.origin(page),
            };
            let (before, after) = (Entry(before), Entry(after));
            self.fate.page(before, after, &known);
            traces.page(before, after, &known);
            let_go += u64::from(is_let_go(before, after));
        }
        let window = self.window(was, before.len(), vma, ground);
        let bounds = match vma.is_hugetlb {
            true => window.of_huge_pages(self.fate.split - was.fate.split, &traces),
            false => window.of_usual_pages(&traces, ground.one_by_one()),
        };
        self.bounds.add(&bounds);
        self.fate.bound(&was.fate, bounds.most);
        if let Some(most) = window.most_came(ground.one_by_one()) {
            self.fate.bound_came(&was.fate, most);
        }
        self.hugetlb |= vma.is_hugetlb;
        if vma.is_hugetlb {
            self.take(was, let_go, window.room(), ground.zero.is_none());
        }
        self.explain(was);
    }

    /// What is known of a window's faults; `was` is from before it.
    fn window(&self, was: &Self, pages: usize, vma: &Vma, ground: &Ground) -> Window {
        let came = (
            self.fate.faulted_in - was.fate.faulted_in,
            self.fate.swapped_in - was.fate.swapped_in,
        );
        let (each, charged, alone) = match vma.is_hugetlb {
            true => (vma.huge_kib, ground.charges.hugetlb, true),
            false => (
                None,
                ground.charges.usual,
                !vma.has_file && came.0 < ground.one_by_one(),
            ),
        };
        let each = each.map_or(1, |kib| (kib << 10) / ground.page_bytes);
        let counted = charged && (each > 1 || !vma.is_hugetlb);
        let faults = self.faults.zip(was.faults).filter(|_| counted);
        Window {
            faults: faults.map(|(now, before)| {
                let faults = now.since(before);
                faults.minor + faults.major
            }),
            each,
            came,
            // A fault may bring in more pages out of swap than one (large folios).
            is_sharp: came == (0, 0) || alone && came.1 == 0,
            stands: ground.stands,
            clean: ground.clean,
            is_told: ground.is_told,
            mergeable: if vma.is_mergeable { pages as u64 } else { 0 },
        }
    }

    /// Of hugetlb pages, `let_go` were shared before and are the process's own now, in the same
    /// frame: a fault of the reader has taken them, where there was one left, or the other
    /// processes let them go. Where frames are `hidden`, a copy looks the same.
    fn take(&mut self, was: &Self, let_go: u64, room: Option<Room>, hidden: bool) {
        let copied = self.fate.split - was.fate.split;
        let Some(Room { beside, most, .. }) = room else {
            self.maybe_taken += let_go;
            return;
        };
        let taken = match hidden {
            true => copied.min(beside),
            false => let_go.min(beside.saturating_sub(copied)),
        };
        self.maybe_taken +=
            let_go.min(most.saturating_sub(if hidden { 0 } else { copied })) - taken;
        self.fate.take(taken, hidden);
    }

    /// Sets the faults of a window against what was seen of its pages; `was` is from before it.
    fn explain(&mut self, was: &Self) {
        let Some((now, before)) = self.faults.zip(was.faults) else {
            return;
        };
        let seen = |fate: &Fate| fate.split + fate.taken + fate.faulted_in + fate.swapped_in;
        let faults = now.since(before);
        let more = seen(&self.fate) - seen(&was.fate);
        self.unexplained += (faults.minor + faults.major).saturating_sub(more);
    }

    /// Bytes that did not come; `joined`: right behind those before.
    pub(super) fn miss(&mut self, bytes: u64, joined: Option<bool>, errno: Errno) {
        if bytes == 0 {
            return;
        }
        self.unread += bytes;
        self.unread_runs += u64::from(joined != Some(true));
        self.errno = self.errno.or(Some(errno));
    }
}

/// Private memory without a file, or with one.
#[cfg(test)]
pub(super) fn vma(start: u64, end: u64, file: &str) -> Vma {
    let mut line = crate::text::Text::new();
    line.address(start).add("-").address(end);
    line.add(" rw-p 00000000 ").add(file);
    let line = line.read().unwrap();
    let mut vma = Vma::of(&crate::proc::maps::MapsLine::parse(line.as_bytes()).unwrap());
    vma.swap_kib = Some(0);
    vma
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, FILE, PRESENT};

    /// Pages lie elsewhere, shared ones and the process's own, and an absent one comes in.
    const BEFORE: [u64; 4] = [PRESENT | 1, PRESENT | 2, PRESENT | EXCLUSIVE | 3, 0];
    const AFTER: [u64; 4] = [
        PRESENT | EXCLUSIVE | 11,
        PRESENT | EXCLUSIVE | 12,
        PRESENT | EXCLUSIVE | 13,
        PRESENT | FILE | 4,
    ];

    const PAGE: u64 = 4096;

    /// What is known of a kernel that charges who reads.
    fn ground(stands: bool, hidden: bool) -> Ground {
        Ground {
            zero: Entry(PRESENT | 99).frame().filter(|_| !hidden),
            page_bytes: PAGE,
            charges: Charges {
                usual: true,
                hugetlb: true,
            },
            stands,
            no_swap: true,
            clean: 0,
            is_told: true,
        }
    }

    /// A window after so many faults.
    fn compared(
        faults: Option<u64>,
        entries: (&[u64], &[u64]),
        vma: &Vma,
        ground: &Ground,
    ) -> Tally {
        let was = Tally {
            faults: faults.map(|_| Faults::default()),
            ..Tally::default()
        };
        let mut tally = was;
        tally.faults = faults.map(|minor| Faults { minor, major: 0 });
        tally.compare(&was, entries, (&Marks::NONE, &Marks::NONE), vma, ground);
        tally
    }

    #[test]
    fn what_no_fault_was_charged_for_is_raced() {
        let told = |faults, file, charged| {
            let mut ground = ground(true, false);
            ground.charges.usual = charged;
            let vma = vma(0, 4 * PAGE, file);
            let tally = compared(faults, (&BEFORE, &AFTER), &vma, &ground);
            let fate = tally.fate;
            assert_eq!(fate.tracked, 2 + fate.split_exclusive);
            assert_eq!(fate.is_mixed, fate.split_exclusive == 0);
            (fate.split, fate.raced, fate.faulted_in, tally.unexplained)
        };
        let (plain, file) = ("00:00 0 ", "08:01 5 /file");
        for of in [plain, file] {
            assert_eq!(told(Some(0), of, true), (0, 4, 0, 0));
            assert_eq!(told(Some(1), of, true), (1, 2, 1, 0));
            assert_eq!(told(Some(3), of, true), (3, 0, 1, 0));
            assert_eq!(told(Some(4), of, true), (3, 0, 1, 0));
            assert_eq!(told(Some(6), of, true), (3, 0, 1, 2));
            // Faults that are not charged, or not counted, say nothing.
            assert_eq!(told(Some(0), of, false), (3, 0, 1, 0));
            assert_eq!(told(None, of, true), (3, 0, 1, 0));
        }
    }

    /// Huge pages of two small ones: one is copied, one let go, one comes in.
    #[test]
    fn hugetlb_pages_are_taken_by_faults_that_brought_nothing_in() {
        let shared = [1, 2, 3, 4, 0, 0].map(|frame| (PRESENT * u64::from(frame > 0)) | frame);
        let after = [11, 12, 3, 4, 5, 6].map(|frame| PRESENT | EXCLUSIVE | frame);
        let mut vma = vma(0, 6 * PAGE, "00:0f 5 /anon_hugepage");
        (vma.is_hugetlb, vma.huge_kib) = (true, Some(8));
        let told = |faults, stands, charged, hidden: bool| {
            let mut ground = ground(stands, hidden);
            ground.charges.hugetlb = charged;
            let strip = |word: u64| if hidden { word & !0xff } else { word };
            let (before, after) = (shared.map(strip), after.map(strip));
            let tally = compared(Some(faults), (&before, &after), &vma, &ground);
            let fate = tally.fate;
            (fate.split, fate.taken, fate.raced, tally.maybe_taken)
        };
        assert_eq!(told(3, true, true, false), (2, 2, 0, 0));
        assert_eq!(told(2, true, true, false), (2, 0, 2, 0));
        // The one has brought a page in, or copied one, and somebody else did the other.
        assert_eq!(told(1, true, true, false), (2, 0, 2, 0));
        // The process may have brought the one in itself.
        assert_eq!(told(2, false, true, false), (2, 0, 2, 2));
        // Nobody was charged: who knows.
        assert_eq!(told(0, true, false, false), (2, 0, 2, 2));
        // Without frames both look the same.
        assert_eq!(told(3, true, true, true), (0, 4, 0, 0));
        assert_eq!(told(1, true, true, true), (2, 0, 2, 0));
    }
}
