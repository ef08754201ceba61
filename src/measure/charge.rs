//! What the faults that a reader was charged say of the pages that changed meanwhile: of each page
//! that it copies the kernel charges it one, and of what the process, its relatives or the kernel
//! have moved none.

use crate::sys::process::Faults;

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
    pub(super) faults: Option<Faults>,
    /// Pages that one fault copies or brings in.
    pub(super) each: u64,
    /// Pages that were absent before, and those that were swapped out.
    pub(super) came: (u64, u64),
    /// Whether a fault brought no more than that in: nothing else did, and the process stood still.
    pub(super) is_one_by_one: bool,
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
    /// `None`: that cannot be told.
    pub(super) fn room(&self) -> Option<Room> {
        let faults = self.faults?;
        let faults = faults.minor + faults.major;
        let (absent, swapped) = self.came;
        let came = (absent + swapped).div_ceil(self.each);
        let beside = faults.saturating_sub(came) * self.each;
        // A fault may bring in more pages out of swap than one (large folios).
        let is_exact = came == 0 || self.is_one_by_one && swapped == 0;
        let most = match is_exact {
            true => beside,
            false => faults * self.each,
        };
        Some(Room {
            beside,
            most,
            all: faults * self.each,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_copied_than_there_were_faults_for() {
        let room = |faults: u64, each, came, is_one_by_one| {
            let window = Window {
                faults: Some(Faults {
                    minor: faults,
                    major: 0,
                }),
                each,
                came,
                is_one_by_one,
            };
            window.room().map(|room| (room.beside, room.most))
        };
        assert_eq!(room(0, 1, (0, 0), false), Some((0, 0)));
        assert_eq!(room(7, 1, (0, 0), false), Some((7, 7)));
        // Of what a running process has brought in itself, nobody was charged.
        assert_eq!(room(7, 1, (5, 0), false), Some((2, 7)));
        assert_eq!(room(7, 1, (5, 0), true), Some((2, 2)));
        assert_eq!(room(7, 1, (9, 0), true), Some((0, 0)));
        assert_eq!(room(7, 1, (4, 1), true), Some((2, 7)));
        // Two huge pages of 512, of which one came in.
        assert_eq!(room(2, 512, (512, 0), true), Some((512, 512)));
        assert_eq!(room(1, 512, (512, 0), true), Some((0, 0)));
        let unknown = Window {
            faults: None,
            each: 1,
            came: (0, 0),
            is_one_by_one: true,
        };
        assert_eq!(unknown.room(), None);
    }
}
