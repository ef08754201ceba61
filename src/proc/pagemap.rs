//! Entries of /proc/PID/pagemap: one 64-bit word a virtual page.
//!
//! Source: Documentation/admin-guide/mm/pagemap.rst; `pagemap_read` in
//! fs/proc/task_mmu.c. The bits have had these meanings since Linux 4.2; a kernel older
//! than a bit leaves it 0, so 0 alone is not evidence that a page is not guarded,
//! write-protected or soft-dirty.

use core::num::NonZeroU64;

/// Size of an entry in the file.
pub const ENTRY_BYTES: u64 = 8;

const FRAME_BITS: u64 = (1 << 55) - 1;

/// What pagemap says about one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// Bit 63: a physical page is mapped here.
    #[must_use]
    pub const fn present(self) -> bool {
        self.bit(63)
    }

    /// Bit 62: the page table holds an entry that is not a page. Swapped-out memory is
    /// one kind; a guard region (see [`guard`](Self::guard)), a page under migration, a
    /// poisoned page and a userfaultfd marker read as swapped too; see [`mark`](Self::mark).
    #[must_use]
    pub const fn swapped(self) -> bool {
        self.bit(62)
    }

    /// Bit 61: page of a file or of shared anonymous memory (since 3.5).
    #[must_use]
    pub const fn file_or_shared_anon(self) -> bool {
        self.bit(61)
    }

    /// What an entry is that is neither a page nor in swap, by its swap type (bits 0–4), which who
    /// sees no frames does not see. The last types are no swap space (include/linux/swap.h,
    /// `MAX_SWAPFILES`: 23 at least), the very last, since 5.19, is a marker, of which bit 0 of
    /// the offset (bits 5–54) stands for write protection and bit 1 for poison
    /// (include/linux/swapops.h, `PTE_MARKER_POISONED`).
    #[must_use]
    pub const fn mark(self) -> Option<Mark> {
        match (self.swapped(), self.0 & 31) {
            (false, _) | (true, 0..23) => None,
            (true, 31) if self.bit(6) && !self.bit(5) => Some(Mark::Poison),
            _ => Some(Mark::Other),
        }
    }

    /// Whether it may be a page that the kernel is about to move, and that is present again soon: by
    /// [`mark`](Self::mark), as a device's is. Its offset is its frame's number, while a marker has the lowest
    /// bits alone (include/linux/swapops.h, `PTE_MARKER_MASK`).
    #[must_use]
    pub const fn under_migration(self) -> bool {
        matches!(self.mark(), Some(Mark::Other)) && (self.0 & FRAME_BITS) >> 5 > 7
    }

    /// Bit 58: guard region, MADV_GUARD_INSTALL (since 6.15; guard regions came with
    /// 6.13 and look just swapped in between). Bit 62 is set as well.
    #[must_use]
    pub const fn guard(self) -> bool {
        self.bit(58)
    }

    /// Bit 57: write-protected through userfaultfd (since 5.13).
    #[must_use]
    pub const fn uffd_wp(self) -> bool {
        self.bit(57)
    }

    /// Bit 56: mapped by nobody else (since 4.2). Needs no privilege. On large folios it
    /// is conservative: it may stay 0 after the page became exclusive.
    #[must_use]
    pub const fn exclusive(self) -> bool {
        self.bit(56)
    }

    /// Without bit 56.
    #[must_use]
    pub const fn not_exclusive(self) -> Self {
        Self(self.0 & !(1 << 56))
    }

    /// Bit 55: written since the soft-dirty bits were last cleared
    /// (CONFIG_MEM_SOFT_DIRTY, see soft-dirty.rst).
    #[must_use]
    pub const fn soft_dirty(self) -> bool {
        self.bit(55)
    }

    /// The physical frame of a present page, or `None` if it is hidden: without
    /// CAP_SYS_ADMIN in the initial user namespace bits 0–54 read as 0. (A frame 0 may
    /// exist, but is not given to processes.)
    #[must_use]
    pub const fn frame(self) -> Option<Frame> {
        if !self.present() {
            return None;
        }
        match NonZeroU64::new(self.0 & FRAME_BITS) {
            Some(number) => Some(Frame(number)),
            None => None,
        }
    }

    /// Whether it may be the page number `page` of its process by way of one entry for a whole huge
    /// page of `huge_pages` pages, a power of two: such a page and its frame lie at the same place in
    /// theirs. Who sees no frames does not know.
    #[must_use]
    pub const fn may_be_of_a_whole(self, page: u64, huge_pages: u64) -> bool {
        match self.frame() {
            Some(frame) => (frame.number() ^ page) & (huge_pages - 1) == 0,
            None => self.present(),
        }
    }

    /// Whether bits 55 to 63 are the same.
    #[must_use]
    pub const fn has_flags_of(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FRAME_BITS == 0
    }

    /// A page is present, but who asks may not know where.
    #[must_use]
    pub const fn frames_hidden(self) -> bool {
        self.present() && self.frame().is_none()
    }

    /// Whether it is a page of anonymous memory, the zero page included.
    #[must_use]
    pub const fn anonymous(self) -> bool {
        self.present() && !self.file_or_shared_anon()
    }

    const fn bit(self, number: u32) -> bool {
        self.0 >> number & 1 == 1
    }
}

/// See [`Entry::mark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Whoever touches it gets SIGBUS.
    Poison,
    /// Write protection of a page that is not there, a page under migration, or a device's.
    Other,
}

/// A page frame number: physical address over page size. Two mappings with the same
/// frame share their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame(NonZeroU64);

impl Frame {
    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// Where the entry of the page at `address` stands in the file, in bytes. A page size
/// of 0 gives the largest offset, which pread refuses with EINVAL.
#[must_use]
pub const fn file_offset(address: u64, page_bytes: u64) -> u64 {
    match address.checked_div(page_bytes) {
        Some(page) => page.saturating_mul(ENTRY_BYTES),
        None => u64::MAX,
    }
}

/// What the tests of others make entries of.
#[cfg(test)]
pub(crate) mod bits {
    pub const PRESENT: u64 = 1 << 63;
    pub const SWAPPED: u64 = 1 << 62;
    pub const FILE: u64 = 1 << 61;
    pub const GUARD: u64 = 1 << 58;
    pub const EXCLUSIVE: u64 = 1 << 56;
    pub const SOFT_DIRTY: u64 = 1 << 55;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_its_own_bit() {
        type Flag = fn(Entry) -> bool;
        let flags: [(u32, Flag); 7] = [
            (63, Entry::present),
            (62, Entry::swapped),
            (61, Entry::file_or_shared_anon),
            (58, Entry::guard),
            (57, Entry::uffd_wp),
            (56, Entry::exclusive),
            (55, Entry::soft_dirty),
        ];
        for (bit, flag) in flags {
            for other in 0..64 {
                assert_eq!(flag(Entry(1 << other)), bit == other, "{bit} {other}");
            }
        }
    }

    /// Seen on Linux 6.18: UFFDIO_POISON, and UFFDIO_WRITEPROTECT of pages that are not there.
    #[test]
    fn a_mark_is_told_from_what_is_in_swap() {
        for (entry, want) in [
            (0x4000_0000_0000_005f, Some(Mark::Poison)),
            (0x4200_0000_0000_003f, Some(Mark::Other)),
            // The type of a page under migration, then swap space, then frames are hidden.
            (0x4000_0000_0000_0379, Some(Mark::Other)),
            (0x4000_0000_0000_0360, None),
            (0x4000_0000_0000_0376, None),
            (0x4200_0000_0000_0000, None),
            (0x8000_0000_0000_005f, None),
            (0, None),
        ] {
            assert_eq!(Entry(entry).mark(), want, "{entry:x}");
            let under_migration = Entry(entry).under_migration();
            assert_eq!(under_migration, entry == 0x4000_0000_0000_0379, "{entry:x}");
        }
        // A guard region before Linux 6.15.
        assert!(!Entry(0x4000_0000_0000_009f).under_migration());
    }

    #[test]
    fn a_frame_needs_a_present_page_and_privilege() {
        // (entry, frame, hidden)
        let cases = [
            (0x8000_0000_0001_2345, Some(0x1_2345), false),
            (0x8180_0000_0001_2345, Some(0x1_2345), false),
            (0x807f_ffff_ffff_ffff, Some(0x7f_ffff_ffff_ffff), false),
            (0x8100_0000_0000_0000, None, true),
            (0xa000_0000_0000_0000, None, true),
            (0x4000_0000_0001_2345, None, false),
            (0x0000_0000_0001_2345, None, false),
            (0, None, false),
        ];
        for (bits, number, hidden) in cases {
            let entry = Entry(bits);
            assert_eq!(entry.frame().map(Frame::number), number, "{bits:x}");
            assert_eq!(entry.frames_hidden(), hidden, "{bits:x}");
        }
    }

    #[test]
    fn a_page_of_a_huge_page_lies_in_it_where_its_frame_does() {
        let of = |bits, page| Entry(bits).may_be_of_a_whole(page, 512);
        assert!(of(0x8000_0000_0001_2345, 0x7_8945));
        assert!(!of(0x8000_0000_0001_2345, 0x7_8946));
        assert!(!of(0x8000_0000_0001_2345, 0x7_8845));
        // The frame is hidden; there is none.
        assert!(of(0x8000_0000_0000_0000, 0x7_8945));
        assert!(!of(0x0000_0000_0001_2345, 0x7_8945));
    }

    #[test]
    fn offsets_count_eight_bytes_a_page() {
        assert_eq!(file_offset(0, 4096), 0);
        assert_eq!(file_offset(0x5000, 4096), 40);
        assert_eq!(file_offset(0x5fff, 4096), 40);
        assert_eq!(file_offset(0x8000, 16384), 16);
        assert_eq!(file_offset(u64::MAX, 4096), ((1 << 52) - 1) * 8);
        assert_eq!(file_offset(u64::MAX, 1), u64::MAX);
        assert_eq!(file_offset(4096, 0), u64::MAX);
    }
}
