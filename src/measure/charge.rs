//! What the faults that a reader was charged say of the pages that changed meanwhile: of each page
//! that it copies the kernel charges it one, and of what the process, its relatives or the kernel
//! have moved none.

use super::census::CHUNK_PAGES;
use super::fate::Traces;

/// Whether a kernel charges a reader with each fault of another process's memory that it causes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charges {
    /// Of usual pages, those that a huge one was broken into among them.
    pub usual: bool,
    /// Of hugetlb pages.
    pub hugetlb: bool,
}

/// A window of a mapping, as far as faults go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Charged to the reader; `None`: they are not counted, or not charged to it.
    pub(super) faults: Option<u64>,
    /// Pages that one fault copies or brings in.
    pub(super) each: u64,
    /// Pages that were absent before, and those that were swapped out.
    pub(super) came: (u64, u64),
    /// Whether a fault brought no more than that in.
    pub(super) is_sharp: bool,
    /// Whether the process stood still: it brought nothing in itself, and gave nothing back.
    pub(super) stands: bool,
    /// How many of its pages may have been clean before, so that one that the kernel moves looks like a copy.
    pub(super) clean: u64,
    /// Whether it was told what each page was.
    pub(super) is_told: bool,
    /// How many of its pages KSM may join.
    pub(super) mergeable: u64,
}

/// Pages for whose copies there were faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// By all faults but one for each page, or huge page, that came in.
    pub(super) beside: u64,
    /// By all but those that certainly brought something in.
    pub(super) most: u64,
    /// By all.
    pub(super) all: u64,
}

impl Window {
    /// Pages that the reader brought in at most: with each fault one, or what `together` come at most.
    /// `None`: that cannot be told.
    pub(super) fn most_came(&self, together: u64) -> Option<u64> {
        let each = if self.is_sharp { 1 } else { together };
        Some(self.faults?.saturating_mul(each.max(self.each)))
    }

    /// `None`: that cannot be told.
    pub(super) fn room(&self) -> Option<Room> {
        let faults = self.faults?;
        let (absent, swapped) = self.came;
        let came = (absent + swapped).div_ceil(self.each);
        let beside = faults.saturating_sub(came) * self.each;
        let is_exact = self.is_sharp && (self.stands || came == 0);
        let all = faults * self.each;
        Some(Room {
            beside,
            most: if is_exact { beside } else { all },
            all,
        })
    }

    /// Of hugetlb pages, of which so many lie in another frame, or are the process's own now where
    /// frames are hidden. Of a page that is larger than a window, other windows show the rest.
    pub(super) fn of_huge_pages(&self, replaced: u64, traces: &Traces) -> Bounds {
        let came = self.came.0 + self.came.1;
        let in_part = self.each > CHUNK_PAGES;
        let Some(Room { beside, all, .. }) = self.room() else {
            return Bounds {
                least_if_quiet: if in_part { 0 } else { replaced },
                most: replaced.next_multiple_of(if in_part { self.each } else { 1 }),
                least_came_if_quiet: if in_part { 0 } else { came },
                unproven: replaced,
                ..Bounds::default()
            };
        };
        let others = replaced > if self.stands { beside } else { all } || came > all;
        let hidden = traces.unseen > 0;
        let seen = if in_part {
            all
        } else {
            replaced.max(traces.unseen)
        };
        Bounds {
            least_if_quiet: if others || hidden || in_part {
                0
            } else {
                replaced
            },
            most: all.min(seen),
            least_came_if_quiet: if others || in_part { 0 } else { came },
            others,
            unproven: replaced,
            ..Bounds::default()
        }
    }

    /// Of usual pages of a process that stood still. Each page that the reader copies, makes the process's
    /// own in place or brings in is one fault, but for what one fault brings in `together` at most: pages
    /// of a file, the huge zero page; the zero page comes alone (mm/memory.c, `do_anonymous_page`). So what
    /// is split are at most the pages whose copy is seen, or cannot be, and at most as many as there
    /// were faults; and at least the faults that nothing else can have had. Each change that no fault is
    /// there for may have cost the reader one for nothing: that came second, and found the page changed
    /// (mm/memory.c, `do_wp_page`).
    pub(super) fn of_usual_pages(&self, traces: &Traces, together: u64) -> Bounds {
        let replaced = traces.replaced;
        let copied = replaced + traces.lost + traces.unseen + traces.moved;
        let (unproven, cached) = match self.is_told {
            true => (replaced.min(self.clean), traces.cached),
            false => (replaced, replaced),
        };
        let (joined, mergeable) = (traces.joined, self.mergeable);
        let came = self.came.0 + self.came.1;
        let Some(faults) = self.faults else {
            return Bounds {
                least_if_quiet: replaced,
                most: copied,
                lost: traces.lost,
                least_came_if_quiet: came,
                unproven,
                cached,
                joined,
                mergeable,
                ..Bounds::default()
            };
        };
        let fewest = match self.is_sharp {
            true => came,
            false => traces.zeros + came.saturating_sub(traces.zeros).div_ceil(together),
        };
        let known = traces.in_place + fewest;
        let by_others = (replaced + known).saturating_sub(faults);
        let elsewhere = traces.in_place + came + traces.lost + traces.untold + by_others;
        // If nobody else did anything, there is a fault for each of these.
        let changed = replaced + traces.in_place + traces.became_own;
        let suffice = changed + fewest <= faults;
        let least_came = faults.saturating_sub(changed + traces.lost + traces.untold + by_others);
        // Frames are hidden: what brought a page in copied none.
        let copies = match traces.unseen > 0 && self.is_sharp && suffice {
            true => faults - came,
            false => faults,
        };
        Bounds {
            least: faults.saturating_sub(elsewhere).min(replaced),
            least_if_quiet: faults.saturating_sub(known + traces.untold).min(replaced),
            least_came: least_came.min(came),
            least_came_if_quiet: if suffice { came } else { least_came.min(came) },
            most: copies.min(copied),
            lost: traces.lost,
            others: by_others > 0,
            unproven,
            cached,
            joined,
            mergeable,
        }
    }
}

/// How many pages a reader has split of a process that stood still, as far as that is certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// At least, whatever others did.
    pub least: u64,
    /// At least, if others did nothing.
    pub least_if_quiet: u64,
    /// At most.
    pub most: u64,
    /// Pages that went meanwhile.
    pub lost: u64,
    /// Pages that the reader brought in at least, whatever others did.
    pub least_came: u64,
    /// The same, if others did nothing.
    pub least_came_if_quiet: u64,
    /// Whether somebody else certainly did something: more has changed than the faults account for.
    pub others: bool,
    /// Pages in another frame that look like copies, and like pages that the kernel has moved as well.
    pub unproven: u64,
    /// Those that may have had a copy in swap before.
    pub cached: u64,
    /// Those that KSM had joined before.
    pub joined: u64,
    /// All pages that KSM may join.
    pub mergeable: u64,
}

impl Bounds {
    /// Whether somebody else did something, as far as that is seen.
    #[must_use]
    pub const fn others_were_there(&self) -> bool {
        self.others || self.lost > 0
    }

    /// Adds another window's.
    pub(super) fn add(&mut self, other: &Self) {
        self.least += other.least;
        self.least_if_quiet += other.least_if_quiet;
        self.most += other.most;
        self.lost += other.lost;
        self.least_came += other.least_came;
        self.least_came_if_quiet += other.least_came_if_quiet;
        self.others |= other.others;
        self.unproven += other.unproven;
        self.cached += other.cached;
        self.joined += other.joined;
        self.mergeable += other.mergeable;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of a window, and its faults.
    const QUIET: (Window, Traces) = (
        Window {
            faults: Some(16),
            each: 1,
            came: (4, 0),
            is_sharp: true,
            stands: true,
            clean: 0,
            is_told: true,
            mergeable: 0,
        },
        Traces {
            replaced: 10,
            in_place: 2,
            lost: 0,
            untold: 0,
            zeros: 0,
            unseen: 0,
            became_own: 0,
            moved: 0,
            cached: 0,
            joined: 0,
        },
    );

    /// At least; if others did nothing; at most; whether they did something.
    fn told(change: impl Fn(&mut Window, &mut Traces)) -> (u64, u64, u64, bool) {
        let (mut window, mut traces) = QUIET;
        change(&mut window, &mut traces);
        let bounds = window.of_usual_pages(&traces, 512);
        assert_eq!(bounds.lost, traces.lost);
        (
            bounds.least,
            bounds.least_if_quiet,
            bounds.most,
            bounds.others,
        )
    }

    #[test]
    fn where_every_fault_has_its_page_the_number_is_exact() {
        assert_eq!(told(|_, _| ()), (10, 10, 10, false));
        // One that a huge page broken up takes.
        assert_eq!(
            told(|window, _| window.faults = Some(17)),
            (10, 10, 10, false)
        );
        let nothing = |window: &mut Window, traces: &mut Traces| {
            (window.faults, window.came) = (Some(0), (0, 0));
            (traces.replaced, traces.in_place) = (0, 0);
        };
        assert_eq!(told(nothing), (0, 0, 0, false));
    }

    #[test]
    fn what_others_did_has_no_fault() {
        // Another reader was there first with four of them: copies, or what else, nobody knows.
        let others = |window: &mut Window, _: &mut Traces| window.faults = Some(12);
        assert_eq!(told(others), (2, 6, 10, true));
        let all = |window: &mut Window, _: &mut Traces| window.faults = Some(0);
        assert_eq!(told(all), (0, 0, 0, true));
    }

    /// Four faults left no trace: copies that went, or others that did.
    #[test]
    fn what_went_may_have_been_copied_before() {
        let lost = |window: &mut Window, traces: &mut Traces| {
            window.faults = Some(20);
            traces.lost = 4;
        };
        assert_eq!(told(lost), (10, 10, 14, false));
        let before = |_: &mut Window, traces: &mut Traces| traces.lost = 4;
        assert_eq!(told(before), (6, 10, 14, false));
    }

    /// As is a copy that somebody else has written to: no more than there were faults.
    #[test]
    fn what_looks_moved_may_have_been_copied() {
        let moved = |pages| move |_: &mut Window, traces: &mut Traces| traces.moved = pages;
        assert_eq!(told(moved(4)), (10, 10, 14, false));
        assert_eq!(told(moved(400)), (10, 10, 16, false));
    }

    /// By what they were: clean; with a copy in swap, perhaps; joined.
    #[test]
    fn what_is_not_proven_by_what_each_page_was() {
        let unproven = |is_told, mergeable| {
            let (mut window, mut traces) = QUIET;
            (window.clean, window.is_told, window.mergeable) = (3, is_told, mergeable);
            (traces.cached, traces.joined) = (4, 2);
            [Some(16), None].map(|faults| {
                window.faults = faults;
                let bounds = window.of_usual_pages(&traces, 512);
                assert_eq!((bounds.joined, bounds.mergeable), (2, mergeable));
                (bounds.unproven, bounds.cached)
            })
        };
        assert_eq!(unproven(true, 0), [(3, 4); 2]);
        assert_eq!(unproven(true, 99), [(3, 4); 2]);
        assert_eq!(unproven(false, 99), [(10, 10); 2]);
    }

    #[test]
    fn pages_that_nothing_is_known_of_may_have_had_the_faults() {
        let untold = |_: &mut Window, traces: &mut Traces| traces.untold = 7;
        assert_eq!(told(untold), (3, 3, 10, false));
        // Several pages may have come in with one fault.
        let together = |window: &mut Window, _: &mut Traces| {
            (window.came, window.is_sharp) = ((64, 0), false);
        };
        assert_eq!(told(together), (0, 10, 10, false));
        let few = |window: &mut Window, traces: &mut Traces| {
            together(window, traces);
            window.faults = Some(11);
        };
        // One at least.
        assert_eq!(told(few), (0, 8, 10, true));
        let many = |faults| {
            move |window: &mut Window, _: &mut Traces| {
                (window.came, window.is_sharp) = ((1025, 0), false);
                window.faults = Some(faults);
            }
        };
        assert_eq!(told(many(15)), (0, 10, 10, false));
        assert_eq!(told(many(14)), (0, 9, 10, true));
        // The zero page comes alone: another reader has split what these faults brought in.
        let zeros = |faults| {
            move |window: &mut Window, traces: &mut Traces| {
                many(faults)(window, traces);
                traces.zeros = 1024;
            }
        };
        assert_eq!(told(zeros(1037)), (10, 10, 10, false));
        assert_eq!(told(zeros(1036)), (8, 9, 10, true));
        assert_eq!(told(zeros(1025)), (0, 0, 10, true));
        // Nobody counts them.
        assert_eq!(told(|window, _| window.faults = None), (0, 10, 10, false));
    }

    /// A page that the others let go looks like a copy, and a copy of the process's own like itself; and
    /// what came in others may have brought.
    #[test]
    fn without_frames_there_is_only_a_most() {
        let hidden = |faults, unseen, became_own| {
            let (mut window, mut traces) = QUIET;
            (traces.replaced, traces.in_place) = (0, 0);
            (traces.unseen, traces.became_own) = (unseen, became_own);
            window.faults = Some(faults);
            let bounds = window.of_usual_pages(&traces, 512);
            assert_eq!((bounds.least, bounds.least_if_quiet), (0, 0));
            (bounds.most, bounds.least_came_if_quiet, bounds.others)
        };
        // Each has its fault.
        assert_eq!(hidden(16, 12, 12), (12, 4, false));
        assert_eq!(hidden(4, 0, 0), (0, 4, false));
        // Some of the process's own may have had one.
        assert_eq!(hidden(16, 30, 7), (12, 4, false));
        assert_eq!(hidden(4, 30, 0), (0, 4, false));
        // Others let pages go, or have brought some in: then all faults may have been copies.
        assert_eq!(hidden(15, 30, 12), (15, 3, false));
        assert_eq!(hidden(15, 12, 12), (12, 3, false));
        assert_eq!(hidden(4, 30, 30), (4, 0, false));
        assert_eq!(hidden(3, 2, 1), (2, 1, true));
        assert_eq!(hidden(3, 2, 0), (2, 2, true));
    }

    #[test]
    fn a_reader_brings_in_no_more_than_it_had_faults_for() {
        let most = |faults, is_sharp| {
            let window = Window {
                faults,
                is_sharp,
                ..QUIET.0
            };
            window.most_came(512)
        };
        assert_eq!(most(Some(0), false), Some(0));
        assert_eq!(most(Some(7), true), Some(7));
        assert_eq!(most(Some(7), false), Some(7 * 512));
        assert_eq!(most(None, true), None);
    }

    /// Its faults may all have been for pages unshared in place, and the others' for those that came in.
    #[test]
    fn who_brought_a_page_in_is_not_known_of_each_where_two_did() {
        let told = |faults, in_place, came| {
            let (mut window, mut traces) = QUIET;
            (window.faults, window.came) = (Some(faults), (came, 0));
            (traces.replaced, traces.in_place) = (0, in_place);
            let bounds = window.of_usual_pages(&traces, 512);
            let least = (bounds.least_came, bounds.least_came_if_quiet);
            (least, bounds.others)
        };
        assert_eq!(told(4400, 4000, 400), ((400, 400), false));
        assert_eq!(told(4500, 4000, 400), ((400, 400), false));
        assert_eq!(told(4265, 4000, 400), ((130, 130), true));
        assert_eq!(told(3000, 4000, 400), ((0, 0), true));
        // One of its faults may have come second.
        assert_eq!(told(399, 0, 400), ((398, 398), true));
        // Pages that went may have had some of the faults; who was alone has had all.
        let (window, mut traces) = QUIET;
        traces.lost = 3;
        let bounds = window.of_usual_pages(&traces, 512);
        assert_eq!((bounds.least_came, bounds.least_came_if_quiet), (1, 4));
        // Of a file one fault brings several in.
        let (mut window, traces) = QUIET;
        (window.came, window.is_sharp) = ((64, 0), false);
        let bounds = window.of_usual_pages(&traces, 512);
        assert_eq!((bounds.least_came, bounds.least_came_if_quiet), (4, 64));
    }

    /// Of 2 MiB.
    #[test]
    fn huge_pages_are_copied_at_once() {
        let told = |faults, replaced, came, stands| {
            let window = Window {
                faults,
                each: 512,
                came: (came, 0),
                is_sharp: true,
                stands,
                clean: 0,
                is_told: true,
                mergeable: 0,
            };
            let bounds = window.of_huge_pages(replaced, &Traces::default());
            let came = came.min(window.most_came(512).unwrap_or(came));
            let known = if bounds.others { 0 } else { came };
            assert!(bounds.least_came == 0 && bounds.least_came_if_quiet == known);
            (bounds.least_if_quiet, bounds.most, bounds.others)
        };
        assert_eq!(told(Some(2), 1024, 0, true), (1024, 1024, false));
        assert_eq!(told(Some(2), 1024, 512, true), (0, 1024, true));
        assert_eq!(told(Some(2), 1024, 512, false), (1024, 1024, false));
        assert_eq!(told(Some(1), 1024, 0, true), (0, 512, true));
        assert_eq!(told(None, 1024, 0, true), (1024, 1024, false));
        // A page of 1 GiB, of which a window shows 32 MiB.
        let giant = |faults, replaced| {
            let window = Window {
                faults,
                each: 1 << 18,
                came: (CHUNK_PAGES, 0),
                is_sharp: false,
                stands: true,
                clean: 0,
                is_told: true,
                mergeable: 0,
            };
            let bounds = window.of_huge_pages(replaced, &Traces::default());
            (
                bounds.least_if_quiet,
                bounds.most,
                bounds.least_came_if_quiet,
            )
        };
        assert_eq!(giant(Some(1), 0), (0, 1 << 18, 0));
        assert_eq!(giant(Some(0), 0), (0, 0, 0));
        // Before Linux 6.5 nobody is charged.
        assert_eq!(giant(None, CHUNK_PAGES), (0, 1 << 18, 0));
        assert_eq!(giant(None, 0), (0, 0, 0));
        // More came than there were faults: another reader's.
        assert_eq!(told(Some(1), 0, 512, true), (0, 0, false));
        assert_eq!(told(Some(1), 0, 1024, true), (0, 0, true));
    }

    #[test]
    fn no_more_is_copied_than_there_were_faults_for() {
        let room = |faults, each, came, is_sharp, stands| {
            let window = Window {
                faults: Some(faults),
                each,
                came,
                is_sharp,
                stands,
                clean: 0,
                is_told: true,
                mergeable: 0,
            };
            window.room().map(|room| (room.beside, room.most, room.all))
        };
        assert_eq!(room(0, 1, (0, 0), true, false), Some((0, 0, 0)));
        assert_eq!(room(7, 1, (0, 0), true, false), Some((7, 7, 7)));
        // Of what a running process has brought in itself, nobody was charged.
        assert_eq!(room(7, 1, (5, 0), true, false), Some((2, 7, 7)));
        assert_eq!(room(7, 1, (5, 0), true, true), Some((2, 2, 7)));
        assert_eq!(room(7, 1, (9, 0), true, true), Some((0, 0, 7)));
        assert_eq!(room(7, 1, (4, 1), false, true), Some((2, 7, 7)));
        // Two huge pages of 512, of which one came in.
        assert_eq!(room(2, 512, (512, 0), true, true), Some((512, 512, 1024)));
        assert_eq!(room(1, 512, (512, 0), true, true), Some((0, 0, 512)));
        let unknown = Window {
            faults: None,
            ..QUIET.0
        };
        assert_eq!(unknown.room(), None);
    }
}
