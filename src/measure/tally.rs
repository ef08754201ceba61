//! What a pass did, window by window: pages by what became of them, held against the faults that the
//! reader was charged meanwhile.

use super::charge::{Charges, Room, Window};
use super::fate::{Fate, Known, is_let_go, is_own};
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
    /// Where frames are hidden, the most pages that may have been copied without being seen: the
    /// window's faults that nothing accounts for for certain, no more than it had pages whose copy
    /// cannot be told from them.
    pub unseen: u64,
    /// Of the pages split, those that somebody else may have replaced: in their windows more pages
    /// were replaced, or came in, than there were faults for.
    pub unsure: u64,
    /// Whether there was hugetlb memory, of which one fault copies many pages.
    pub hugetlb: bool,
    /// Pages of hugetlb memory that the reader may have taken from other processes, or they let go.
    pub maybe_taken: u64,
    /// Pages.
    pub fate: Fate,
}

/// What is the same in all windows.
pub(super) struct Ground {
    pub(super) zero: Option<Frame>,
    pub(super) page_bytes: u64,
    pub(super) charges: Charges,
    pub(super) stands: bool,
}

impl Ground {
    /// Fewer pages of anonymous memory than a huge page has came in one by one; those of a file do
    /// not (fault-around).
    const fn one_by_one(&self) -> u64 {
        self.page_bytes / size_of::<u64>() as u64
    }
}

impl Tally {
    /// Takes a window over: its entries before and after; `was` is from before it.
    pub(super) fn compare(
        &mut self,
        was: &Self,
        (before, after): (&[u64], &[u64]),
        vma: &Vma,
        ground: &Ground,
    ) {
        let known = Known {
            zero: ground.zero,
            no_swap: !vma.may_be_swapped(),
        };
        let pages = before.iter().zip(after);
        let pages = pages.map(|(&before, &after)| (Entry(before), Entry(after)));
        for (before, after) in pages.clone() {
            self.fate.page(before, after, known);
        }
        let window = self.window(was, vma, ground);
        let room = window.room();
        if let Some(Room { beside, all, .. }) = room {
            let replaced = self.fate.split - was.fate.split;
            self.fate.bound(&was.fate, all);
            // With fewer faults than that, somebody else has replaced pages, or brought some in: any
            // of these may be his.
            if replaced > if window.is_one_by_one { beside } else { all } {
                self.unsure += self.fate.split - was.fate.split;
            }
        }
        self.hugetlb |= vma.is_hugetlb;
        if vma.is_hugetlb {
            let let_go = pages.filter(|&(before, after)| is_let_go(before, after));
            self.take(was, let_go.count() as u64, room, ground.zero.is_none());
        }
        let own = before.iter().filter(|&&entry| is_own(Entry(entry)));
        let own = own.count() as u64;
        // One fault copies all pages of a huge one.
        let at_once = vma.is_hugetlb && room.is_none_or(|room| room.most > 0);
        let one_by_one = if vma.has_file { 0 } else { ground.one_by_one() };
        self.explain(was, if at_once { 0 } else { own }, one_by_one);
        self.unseen += if at_once { own } else { 0 };
    }

    /// What is known of a window's faults; `was` is from before it.
    fn window(&self, was: &Self, vma: &Vma, ground: &Ground) -> Window {
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
            faults: faults.map(|(now, before)| now.since(before)),
            each,
            came,
            is_one_by_one: ground.stands && alone,
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
    /// Of its pages, `own` could be copied and look the same, but for the frame. Less than
    /// `one_by_one` pages came in with a fault each; of more a fault may have brought several
    /// (the huge zero page, or what lies around it in a file: mm/memory.c, `do_fault_around`).
    fn explain(&mut self, was: &Self, own: u64, one_by_one: u64) {
        let Some((now, before)) = self.faults.zip(was.faults) else {
            return;
        };
        let seen = |fate: &Fate| fate.split + fate.taken;
        let came = |fate: &Fate| fate.faulted_in + fate.swapped_in;
        let came = came(&self.fate) - came(&was.fate);
        let more = now.since(before);
        let more = (more.minor + more.major).saturating_sub(seen(&self.fate) - seen(&was.fate));
        self.unexplained += more.saturating_sub(came);
        let explained = if came < one_by_one { came } else { 0 };
        self.unseen += own.min(more.saturating_sub(explained));
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

    /// Faults, pages split, pages that came in, pages whose copy would not show.
    #[test]
    fn a_fault_that_brings_several_pages_in_hides_no_copy() {
        let explain = |faults: u64, split: u64, came: u64, own: u64, one_by_one: u64| {
            let was = Tally {
                faults: Some(Faults { minor: 7, major: 1 }),
                fate: Fate {
                    split: 5,
                    faulted_in: 5,
                    ..Fate::default()
                },
                ..Tally::default()
            };
            let mut tally = was;
            tally.faults = Some(Faults {
                minor: 7 + faults,
                major: 1,
            });
            tally.fate.split += split;
            tally.fate.faulted_in += came;
            tally.explain(&was, own, one_by_one);
            (tally.unexplained, tally.unseen)
        };
        // A thousand copies behind what a file's mapping brought in.
        assert_eq!(explain(1100, 0, 1600, 1000, 0), (0, 1000));
        assert_eq!(explain(100, 0, 1600, 1000, 0), (0, 100));
        assert_eq!(explain(100, 0, 1600, 0, 0), (0, 0));
        assert_eq!(explain(100, 0, 1600, 30, 0), (0, 30));
        // Anonymous memory, page by page, and by huge pages.
        assert_eq!(explain(400, 0, 400, 1000, 512), (0, 0));
        assert_eq!(explain(410, 4, 400, 1000, 512), (6, 6));
        assert_eq!(explain(600, 0, 600, 1000, 512), (0, 600));
        assert_eq!(explain(10, 10, 0, 1000, 512), (0, 0));
    }

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
        tally.compare(&was, entries, vma, ground);
        tally
    }

    #[test]
    fn what_no_fault_was_charged_for_is_raced() {
        let told = |faults, file, stands, charged| {
            let mut ground = ground(stands, false);
            ground.charges.usual = charged;
            let vma = vma(0, 4 * PAGE, file);
            let tally = compared(faults, (&BEFORE, &AFTER), &vma, &ground);
            let fate = tally.fate;
            assert_eq!(fate.tracked, 2 + fate.split_exclusive);
            (fate.split, fate.split_exclusive, fate.raced, tally.unsure)
        };
        let (plain, file) = ("00:00 0 ", "08:01 5 /file");
        assert_eq!(told(Some(0), plain, true, true), (0, 0, 3, 0));
        // One of the faults has brought the absent page in.
        assert_eq!(told(Some(4), plain, true, true), (3, 1, 0, 0));
        // Or nobody's: it came by somebody else, or one of those that lie elsewhere is his.
        assert_eq!(told(Some(3), plain, true, true), (3, 1, 0, 3));
        assert_eq!(told(Some(1), plain, true, true), (1, 0, 2, 1));
        // Pages of a file may have come with one fault.
        assert_eq!(told(Some(4), file, true, true), (3, 1, 0, 0));
        assert_eq!(told(Some(3), file, true, true), (3, 1, 0, 0));
        assert_eq!(told(Some(1), file, true, true), (1, 0, 2, 1));
        // A running process brings in its own.
        assert_eq!(told(Some(3), plain, false, true), (3, 1, 0, 0));
        assert_eq!(told(Some(1), plain, false, true), (1, 0, 2, 1));
        assert_eq!(told(Some(0), plain, false, true), (0, 0, 3, 0));
        // Faults that are not charged, or not counted, say nothing.
        assert_eq!(told(Some(0), plain, true, false), (3, 1, 0, 0));
        assert_eq!(told(None, plain, true, true), (3, 1, 0, 0));
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
