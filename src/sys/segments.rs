//! Memory cut into readable segments with gaps between them.
//!
//! The gaps are alternately PROT_NONE and unmapped, beginning with PROT_NONE; a sealed
//! margin on either side keeps the kernel from merging the first or last segment with a
//! neighbour's VMA. Safe code reaches the segments only, never a gap.

use super::remote::RemoteSpan;
use super::{Errno, Region, RemoteAddr};
use core::mem::ManuallyDrop;
use core::ops::Range;
use rustix::mm::Advice;

/// How an arena is cut. All sizes are multiples of the page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Readable segments; at least one.
    pub segments: usize,
    /// Bytes in each.
    pub segment_bytes: usize,
    /// Bytes between two of them; 0 if there is only one.
    pub gap_bytes: usize,
}

impl Shape {
    /// Bytes that can be read.
    #[must_use]
    pub const fn readable_bytes(&self) -> usize {
        self.segments * self.segment_bytes
    }

    /// From the first byte of the first segment to the last byte of the last.
    #[must_use]
    pub const fn span_bytes(&self) -> usize {
        self.readable_bytes() + (self.segments - 1) * self.gap_bytes
    }

    /// VMAs it makes: the segments and the PROT_NONE gaps.
    #[must_use]
    pub const fn vmas(&self) -> usize {
        self.segments + self.segments / 2
    }

    /// Where segment `index` lies, from the first byte of the first segment.
    #[must_use]
    pub const fn segment(&self, index: usize) -> Range<usize> {
        let start = index * (self.segment_bytes + self.gap_bytes);
        start..start + self.segment_bytes
    }
}

/// What backs the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Single pages only (MADV_NOHUGEPAGE).
    Small,
    /// Huge pages of this many bytes where the kernel gives them (MADV_HUGEPAGE); the
    /// first segment is aligned to it.
    Huge(usize),
}

/// Private anonymous memory of a certain [`Shape`].
#[derive(Debug)]
pub struct Segments {
    /// Dropped piece by piece: what was punched is no longer ours.
    region: ManuallyDrop<Region>,
    /// Offset of the first segment in the region.
    first: usize,
    shape: Shape,
}

impl Segments {
    /// Maps and cuts; nothing is populated yet.
    ///
    /// # Errors
    /// `ENOMEM`: no address space, overcommit refuses, or vm.max_map_count is reached;
    /// `EINVAL`: this kernel has no transparent huge pages to advise for.
    pub fn map(shape: Shape, backing: Backing, page_bytes: usize) -> Result<Self, Errno> {
        let align = match backing {
            Backing::Small => page_bytes,
            Backing::Huge(bytes) => bytes,
        };
        let span = shape.span_bytes();
        let len = span
            .checked_add(2 * page_bytes + align)
            .ok_or(Errno::NOMEM)?;
        let region = Region::new(len)?;
        let first = (region.address() + page_bytes).next_multiple_of(align) - region.address();
        match backing {
            Backing::Huge(_) => region.advise(0..len, Advice::LinuxHugepage)?,
            // EINVAL: a kernel without huge pages has only small ones.
            Backing::Small => match region.advise(0..len, Advice::LinuxNoHugepage) {
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            },
        }
        // A launcher may have made all memory mergeable (PR_SET_MEMORY_MERGE); KSM would
        // join again what a read has split. EINVAL: a kernel without KSM.
        let _ = region.advise(0..len, Advice::LinuxUnmergeable);
        let segments = Self {
            region: ManuallyDrop::new(region),
            first,
            shape,
        };
        segments.cut(len)?;
        Ok(segments)
    }

    fn cut(&self, len: usize) -> Result<(), Errno> {
        let margins = [0..self.first, self.first + self.shape.span_bytes()..len];
        let sealed = (1..self.shape.segments).step_by(2);
        for part in margins
            .into_iter()
            .chain(sealed.map(|index| self.gap_before(index)))
        {
            // SAFETY: this module makes references into segments only.
            unsafe { self.region.seal(part) }?;
        }
        for index in (2..self.shape.segments).step_by(2) {
            // SAFETY: as above; the region is in `ManuallyDrop`.
            unsafe { self.region.punch(self.gap_before(index)) }?;
        }
        Ok(())
    }

    /// The gap between segment `index - 1` and segment `index`: sealed if `index` is odd.
    fn gap_before(&self, index: usize) -> Range<usize> {
        let end = self.first + self.shape.segment(index).start;
        end - self.shape.gap_bytes..end
    }

    /// How it is cut.
    #[must_use]
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Addresses from the first byte of the first segment to past the last.
    #[must_use]
    pub fn range(&self) -> Range<RemoteAddr> {
        let start = self.address(0);
        start..start.plus(self.shape.span_bytes() as u64)
    }

    /// Where segment `index` starts, here and in every child forked since.
    #[must_use]
    pub fn address(&self, index: usize) -> RemoteAddr {
        let offset = self.first + self.shape.segment(index).start;
        RemoteAddr((self.region.address() + offset) as u64)
    }

    /// The bytes of segment `index`.
    #[must_use]
    pub fn segment(&self, index: usize) -> &[u8] {
        // SAFETY: a segment is neither sealed nor punched.
        unsafe { self.region.slice(self.within(index)) }
    }

    /// The bytes of segment `index`, to be written.
    #[must_use]
    pub fn segment_mut(&mut self, index: usize) -> &mut [u8] {
        let range = self.within(index);
        // SAFETY: a segment is neither sealed nor punched.
        unsafe { self.region.slice_mut(range) }
    }

    /// Gives all pages back (MADV_DONTNEED), a page a call and the last first. The kernel hands out
    /// first what it got last, so whoever next takes as many pages, going up, gets the frames
    /// in the order that they have here.
    ///
    /// # Errors
    /// As [`Region::discard`].
    pub fn discard_backwards(&mut self, page_bytes: usize) -> Result<(), Errno> {
        for index in (0..self.shape.segments).rev() {
            for start in self.within(index).step_by(page_bytes).rev() {
                self.region.discard(start..start + page_bytes)?;
            }
        }
        Ok(())
    }

    /// The segments as spans, in order of address.
    pub fn spans(&self) -> impl Iterator<Item = RemoteSpan> + Clone {
        (0..self.shape.segments).map(|index| RemoteSpan {
            start: self.address(index),
            len: self.shape.segment_bytes as u64,
        })
    }

    /// `len` bytes at `start`, if they lie within one segment.
    #[inline]
    #[must_use]
    pub fn bytes_at(&self, start: RemoteAddr, len: usize) -> Option<&[u8]> {
        let offset = start.0.checked_sub(self.address(0).0)? as usize;
        let index = if self.shape.segments == 1 {
            0
        } else {
            offset / (self.shape.segment_bytes + self.shape.gap_bytes)
        };
        if index >= self.shape.segments {
            return None;
        }
        let within = offset - self.shape.segment(index).start;
        self.segment(index).get(within..within.checked_add(len)?)
    }

    fn within(&self, index: usize) -> Range<usize> {
        assert!(index < self.shape.segments);
        let segment = self.shape.segment(index);
        self.first + segment.start..self.first + segment.end
    }
}

impl Drop for Segments {
    /// From one hole to the next: what lies in a hole by now belongs to others.
    fn drop(&mut self) {
        let mut start = 0;
        for index in (2..self.shape.segments).step_by(2) {
            let hole = self.gap_before(index);
            // SAFETY: OWNED, no reference outlives `self`, and nothing is used after this.
            let _ = unsafe { self.region.punch(start..hole.start) };
            start = hole.end;
        }
        // SAFETY: as above.
        let _ = unsafe { self.region.punch(start..self.region.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec::Vec;

    const PAGE: usize = 4096;

    /// (start, end, perms) of the VMAs in a range, from /proc/self/maps.
    fn vmas(range: &Range<RemoteAddr>) -> Vec<(u64, u64, String)> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let parse = |line: &str| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            Some((start, end, rest[..4].into()))
        };
        let all = maps.lines().filter_map(parse);
        all.filter(|vma| vma.0 < range.end.0 && vma.1 > range.start.0)
            .collect()
    }

    #[test]
    fn gaps_are_sealed_and_unmapped_in_turn() {
        let shape = Shape {
            segments: 4,
            segment_bytes: 16 * PAGE,
            gap_bytes: 4 * PAGE,
        };
        let arena = Segments::map(shape, Backing::Small, PAGE).unwrap();
        let at = |pages: u64| arena.address(0).0 + pages * PAGE as u64;
        let want = [
            (at(0), at(16), "rw-p".into()),
            (at(16), at(20), "---p".into()),
            (at(20), at(36), "rw-p".into()),
            // 36..40 is a hole
            (at(40), at(56), "rw-p".into()),
            (at(56), at(60), "---p".into()),
            (at(60), at(76), "rw-p".into()),
        ];
        assert_eq!(vmas(&arena.range()), want);
        assert_eq!(shape.vmas(), want.len());
    }

    #[test]
    fn a_single_segment_is_one_vma_aligned_as_asked() {
        let shape = Shape {
            segments: 1,
            segment_bytes: 1 << 22,
            gap_bytes: 0,
        };
        let arena = Segments::map(shape, Backing::Huge(1 << 21), PAGE).unwrap();
        assert_eq!(arena.address(0).0 % (1 << 21), 0);
        let range = arena.range();
        assert_eq!(vmas(&range), [(range.start.0, range.end.0, "rw-p".into())]);
    }

    #[test]
    fn segments_hold_what_is_written_to_them() {
        let shape = Shape {
            segments: 3,
            segment_bytes: PAGE,
            gap_bytes: PAGE,
        };
        let mut arena = Segments::map(shape, Backing::Small, PAGE).unwrap();
        for index in 0..3 {
            arena.segment_mut(index).fill(index as u8 + 1);
        }
        for index in 0..3 {
            assert!(
                arena
                    .segment(index)
                    .iter()
                    .all(|&byte| byte == index as u8 + 1)
            );
        }
    }

    #[test]
    fn bytes_are_found_by_address_and_never_in_a_gap() {
        let shape = Shape {
            segments: 3,
            segment_bytes: 2 * PAGE,
            gap_bytes: PAGE,
        };
        let mut arena = Segments::map(shape, Backing::Small, PAGE).unwrap();
        arena.segment_mut(1).fill(9);
        let first = arena.address(0);
        let at = |bytes: usize| first.plus(bytes as u64);
        assert_eq!(arena.bytes_at(at(3 * PAGE + 5), 4), Some(&[9; 4][..]));
        assert!(arena.bytes_at(at(5 * PAGE - 4), 4).is_some());
        for (offset, len) in [
            (5 * PAGE - 4, 5),
            (2 * PAGE, 1),
            (8 * PAGE, 1),
            (99 * PAGE, 1),
        ] {
            assert_eq!(arena.bytes_at(at(offset), len), None, "{offset}");
        }
        assert_eq!(arena.bytes_at(RemoteAddr(first.0 - 1), 1), None);
        assert_eq!(arena.bytes_at(first, usize::MAX), None);
    }

    /// What the kernel puts into a hole is not unmapped with the arena.
    #[test]
    fn a_hole_belongs_to_whoever_got_it() {
        let shape = Shape {
            segments: 3,
            segment_bytes: 4 * PAGE,
            gap_bytes: 4 * PAGE,
        };
        // Where another test's thread was given the hole, the next arena has one.
        let found = (0..100).find_map(|_| {
            let arena = Segments::map(shape, Backing::Small, PAGE).unwrap();
            let hole = arena.address(2).0 as usize - shape.gap_bytes;
            Region::in_hole(hole, shape.gap_bytes).map(|other| (arena, other))
        });
        let (arena, mut other) = found.expect("a hole is free");
        other.bytes_mut().fill(7);
        drop(arena);
        assert!(other.bytes_mut().iter().all(|&byte| byte == 7));
    }
}
