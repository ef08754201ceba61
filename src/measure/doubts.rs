//! What makes bit 56 of pagemap err, and which pages it concerns, by the flags of their frames.

use super::census::Census;
use super::flags::{self, LARGE};
use crate::proc::pagemap::Entry;
use crate::reader::hybrid::large::Large;
use crate::sys::file::read_words_at;
use rustix::fd::{AsFd, OwnedFd};

/// What makes bit 56 of an anonymous page err.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// What a frame may be: bits of /proc/kpageflags (include/uapi/linux/kernel-page-flags.h).
    flags: u64,
    /// A huge page of so many bytes, mapped as a whole.
    huge_bytes: Option<u64>,
}

impl Doubts {
    /// Joined by KSM: a pin takes such a page apart even where only one process maps it.
    pub const JOINED: Self = Self::frame(1 << 21);
    /// SWAPCACHE: one process maps it, and another has it in swap still.
    pub const HALF_SWAPPED: Self = Self::frame(1 << 13);

    /// Those of large folios.
    #[must_use]
    pub const fn of(large: Large) -> Self {
        match large {
            Large::None => Self::frame(0),
            Large::Whole(bytes) => Self {
                flags: 0,
                huge_bytes: Some(bytes),
            },
            Large::Any => Self::frame(LARGE),
        }
    }

    const fn frame(flags: u64) -> Self {
        Self {
            flags,
            huge_bytes: None,
        }
    }

    /// These, and `more` of frames if `there_are`.
    #[must_use]
    pub const fn and_if(self, there_are: bool, more: Self) -> Self {
        match there_are {
            true => Self {
                flags: self.flags | more.flags,
                ..self
            },
            false => self,
        }
    }

    /// These, where no huge page is mapped as a whole.
    #[must_use]
    pub const fn without_huge_pages(self) -> Self {
        Self::frame(self.flags)
    }

    /// Whether all of `others` are among them.
    #[must_use]
    pub fn has(self, others: Self) -> bool {
        let any_large = self.flags & LARGE == LARGE;
        let huge = others.huge_bytes.is_none() || others.huge_bytes == self.huge_bytes;
        self.flags & others.flags == others.flags && (any_large || huge)
    }

    /// Pages that these can concern: of a page that bit 56 calls shared, only a large folio makes
    /// something else.
    #[must_use]
    pub const fn concern(self, census: &Census) -> u64 {
        match (self.flags, self.flags & LARGE, self.huge_bytes) {
            (0, _, None) => 0,
            (_, 0, None) => census.exclusive,
            _ => census.anonymous(),
        }
    }

    /// Whether none of the anonymous pages from address `at` on is in doubt, by the `flags` of frames.
    /// Unknown is no.
    pub(super) fn are_ruled_out(
        self,
        words: &[u64],
        at: u64,
        page_bytes: u64,
        flags: &OwnedFd,
    ) -> bool {
        let by_frame = self.flags != 0 && any_doubtful(words, flags, self) != Some(false);
        let of_a_whole = |bytes: u64| {
            let huge_pages = (bytes / page_bytes).max(1);
            any_of_a_whole(words, flags, at / page_bytes, huge_pages) != Some(false)
        };
        !by_frame && !self.huge_bytes.is_some_and(of_a_whole)
    }

    /// Whether the flags of a frame are one of these.
    const fn are_in(self, flags: u64, exclusive: bool) -> bool {
        let concerned = match exclusive {
            true => self.flags,
            false => self.flags & LARGE,
        };
        flags & concerned != 0
    }
}

/// Whether bit 56 of one of the anonymous pages is in doubt; `None`: it cannot be told.
fn any_doubtful(words: &[u64], flags: &OwnedFd, doubts: Doubts) -> Option<bool> {
    let is_hidden = |entry: Entry| entry.anonymous() && entry.frames_hidden();
    if words.iter().any(|&word| is_hidden(Entry(word))) {
        return None;
    }
    let mut found = false;
    flags::each(flags, flags::anonymous(words), &mut |place, word| {
        found |= doubts.are_in(word, Entry(words[place]).exclusive());
        !found
    })?;
    Some(found)
}

/// Whether one of the anonymous pages, the first of which is number `first`, may be mapped by way of
/// one entry for a whole huge page, by the flags of the frame that this would begin with; `None`: it
/// cannot be told.
fn any_of_a_whole(words: &[u64], flags: &OwnedFd, first: u64, huge_pages: u64) -> Option<bool> {
    let mut known = None;
    for (page, word) in (first..).zip(words) {
        let entry = Entry(*word);
        if entry.file_or_shared_anon() || !entry.may_be_of_a_whole(page, huge_pages) {
            continue;
        }
        let frame = entry.frame()?.number();
        let head = frame - frame % huge_pages;
        if known == Some(head) {
            continue;
        }
        let mut found = [0];
        if read_words_at(flags.as_fd(), &mut found, head * 8) != Ok(1) {
            return None;
        }
        if found[0] & LARGE != 0 {
            return Some(true);
        }
        known = Some(head);
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, FILE, PRESENT};

    /// Flags of frames as /proc/kpageflags has them: at whole huge pages of 512 those given, between
    /// them all of large folios, which nobody is to ask for.
    fn flags(heads: &[u64]) -> OwnedFd {
        let words = heads
            .iter()
            .flat_map(|&head| core::iter::once(head).chain(core::iter::repeat_n(LARGE, 511)));
        let bytes: std::vec::Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        let file = rustix::fs::memfd_create("flags", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(rustix::io::write(&file, &bytes), Ok(bytes.len()));
        file
    }

    #[test]
    fn of_pages_in_step_with_their_frames_the_head_is_asked_and_of_others_nothing() {
        let own = PRESENT | EXCLUSIVE;
        let of =
            |heads: &[u64], first, words: &[u64]| any_of_a_whole(words, &flags(heads), first, 512);
        // Not in step, of a file, absent: whatever lies there.
        let elsewhere = [own | 6, own | FILE | 9, EXCLUSIVE | 10, PRESENT | 5];
        assert_eq!(of(&[LARGE, LARGE], 0x7008, &elsewhere), Some(false));
        // In step, and small.
        let in_step = [own | 0x208, PRESENT | 0x209];
        assert_eq!(of(&[LARGE, 0], 0x7008, &in_step), Some(false));
        // Shared or not, at its beginning or not, behind another that is small.
        for word in [own | 0x20a, PRESENT | 0x20a] {
            let words = [own | 8, own | 9, word];
            assert_eq!(of(&[0, LARGE], 0x7008, &words), Some(true));
            assert_eq!(of(&[0, 0], 0x7008, &words), Some(false));
        }
        assert_eq!(of(&[0, LARGE], 0x7000, &[own | 0x200]), Some(true));
        // Frames that are hidden, and flags that cannot be read.
        assert_eq!(of(&[0], 0x7008, &[own]), None);
        assert_eq!(of(&[0], 0x7008, &[own | 0x208]), None);
    }

    #[test]
    fn large_folios_in_any_state_are_more_than_huge_pages_that_are_whole_and_these_more_than_none()
    {
        let [none, whole, any] = [Large::None, Large::Whole(2 << 20), Large::Any].map(Doubts::of);
        for (doubts, others, has) in [
            (none, none, true),
            (none, whole, false),
            (none, any, false),
            (whole, none, true),
            (whole, whole, true),
            (whole, Doubts::of(Large::Whole(4 << 20)), false),
            (whole, any, false),
            (any, none, true),
            (any, whole, true),
            (any, any, true),
            (any, Doubts::JOINED, false),
            (any.and_if(true, Doubts::JOINED), Doubts::JOINED, true),
            (
                whole.and_if(true, Doubts::HALF_SWAPPED),
                Doubts::HALF_SWAPPED,
                true,
            ),
            (whole, whole.and_if(true, Doubts::HALF_SWAPPED), false),
        ] {
            assert_eq!(doubts.has(others), has, "{doubts:?} {others:?}");
        }
    }

    #[test]
    fn huge_pages_that_are_whole_concern_shared_pages_too_and_only_where_there_are_some() {
        let census = Census {
            exclusive: 5,
            shared_anon: 7,
            ..Census::default()
        };
        let whole = Doubts::of(Large::Whole(2 << 20));
        let joined = |doubts: Doubts| doubts.and_if(true, Doubts::JOINED);
        for (doubts, pages) in [
            (Doubts::of(Large::None), 0),
            (whole, 12),
            (Doubts::of(Large::Any), 12),
            (whole.without_huge_pages(), 0),
            (Doubts::of(Large::Any).without_huge_pages(), 12),
            (joined(whole).without_huge_pages(), 5),
            (joined(whole), 12),
        ] {
            assert_eq!(doubts.concern(&census), pages, "{doubts:?}");
        }
    }
}
