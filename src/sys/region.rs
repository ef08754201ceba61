//! Private anonymous memory that the appliance owns: tables, buffers, arenas.

use super::Errno;
use core::ffi::c_void;
use core::ops::Range;
use core::ptr::NonNull;
use core::slice;
use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};

/// An anonymous private mapping, readable and writable, zero until written.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    len: usize,
}

impl Region {
    /// Maps `len` bytes (rounded up to pages by the kernel). mmap(2).
    ///
    /// # Errors
    /// `ENOMEM` (no address space, or overcommit refuses), `EINVAL` if `len` is 0.
    pub fn new(len: usize) -> Result<Self, Errno> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap_anonymous(core::ptr::null_mut(), len, prot, MapFlags::PRIVATE) }?;
        let base = NonNull::new(base.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { base, len })
    }

    /// As [`new`](Self::new), but children do not get it (MADV_DONTFORK): what the
    /// measuring side writes after a fork costs no copy-on-write fault. In a child the
    /// value still exists and its memory does not.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn not_inherited(len: usize) -> Result<Self, Errno> {
        let region = Self::new(len)?;
        region.advise(0..len, Advice::LinuxDontFork)?;
        Ok(region)
    }

    /// Maps `len` bytes at an address where nothing is mapped; `None` if something is.
    #[cfg(test)]
    pub(super) fn in_hole(address: usize, len: usize) -> Option<Self> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        let hole = core::ptr::without_provenance_mut(address);
        // SAFETY: FIXED_NOREPLACE replaces nothing; before Linux 4.17, which does not know it, the
        // address is a hint and the mapping a fresh one.
        let base = unsafe { mmap_anonymous(hole, len, prot, flags) }.ok()?;
        let base = NonNull::new(base.cast())?;
        Some(Self { base, len }).filter(|region| region.address() == address)
    }

    /// Bytes in it.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Where it starts in this process.
    #[must_use]
    pub fn address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: OWNED; readable and writable over its whole length: who seals or punches
        // a part has promised never to call this.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Its bytes as 64-bit words; a tail shorter than a word is left out.
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as `bytes_mut`; a mapping is page-aligned, and any bits are a u64.
        unsafe { slice::from_raw_parts_mut(self.base.as_ptr().cast(), self.len / 8) }
    }

    /// Asks for single pages only (MADV_NOHUGEPAGE); a kernel without huge pages has
    /// no others.
    pub fn small_pages(&self) {
        let _ = self.advise(0..self.len, Advice::LinuxNoHugepage);
    }

    /// Gives the pages of a range back to the kernel (MADV_DONTNEED); it reads as zeros
    /// afterwards.
    ///
    /// # Errors
    /// `EINVAL` if the range does not begin at a page.
    pub fn discard(&mut self, range: Range<usize>) -> Result<(), Errno> {
        let (at, len) = self.part(range);
        // SAFETY: OWNED, no part that is punched, and exclusive like `self`: nobody holds a reference to what was
        // there, and zeros are as valid as any bytes.
        unsafe { madvise(at, len, Advice::LinuxDontNeed) }
    }

    /// Writes one byte to each page, so that later use of the region never faults.
    pub fn touch(&mut self, page_bytes: usize) {
        for page in self.bytes_mut().chunks_mut(page_bytes) {
            // A volatile store: nothing reads these zeros, yet they must happen.
            // SAFETY: `page` is a non-empty exclusive slice.
            unsafe { page.as_mut_ptr().write_volatile(0) };
        }
    }

    /// Gives advice about a range, none that discards data. madvise(2).
    pub(super) fn advise(&self, range: Range<usize>, advice: Advice) -> Result<(), Errno> {
        let (at, len) = self.part(range);
        // SAFETY: OWNED, and none of the advice used here discards data.
        unsafe { madvise(at, len, advice) }
    }

    /// Makes a range inaccessible (PROT_NONE).
    ///
    /// # Safety
    /// No reference into the range exists or will be made, by `bytes_mut` neither.
    pub(super) unsafe fn seal(&self, range: Range<usize>) -> Result<(), Errno> {
        let (at, len) = self.part(range);
        // SAFETY: OWNED; the caller's contract.
        unsafe { mprotect(at, len, MprotectFlags::empty()) }
    }

    /// Unmaps a range, which then belongs to whoever the kernel gives it to next.
    ///
    /// # Safety
    /// As [`seal`](Self::seal); the region is never dropped as a whole; and no other call
    /// ever names the range again.
    pub(super) unsafe fn punch(&self, range: Range<usize>) -> Result<(), Errno> {
        let (at, len) = self.part(range);
        // SAFETY: OWNED; the caller's contract.
        unsafe { munmap(at, len) }
    }

    /// A range's bytes.
    ///
    /// # Safety
    /// The range was neither sealed nor punched.
    pub(super) unsafe fn slice(&self, range: Range<usize>) -> &[u8] {
        let (at, len) = self.part(range);
        // SAFETY: OWNED and within the mapping; the caller's contract.
        unsafe { slice::from_raw_parts(at.cast_const().cast(), len) }
    }

    /// As [`slice`](Self::slice), exclusive.
    ///
    /// # Safety
    /// As [`slice`](Self::slice).
    pub(super) unsafe fn slice_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        let (at, len) = self.part(range);
        // SAFETY: as `slice`, and `self` is borrowed exclusively.
        unsafe { slice::from_raw_parts_mut(at.cast(), len) }
    }

    fn part(&self, range: Range<usize>) -> (*mut c_void, usize) {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the assertion keeps the offset within the mapping.
        let at = unsafe { self.base.as_ptr().add(range.start) };
        (at.cast(), range.len())
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: OWNED; no reference into it can outlive `self`.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_as_zeros_and_keeps_what_is_written() {
        let mut region = Region::not_inherited(10_000).unwrap();
        region.touch(4096);
        assert!(region.bytes_mut().iter().all(|&byte| byte == 0));
        region.words_mut()[1249] = 7;
        assert_eq!(region.bytes_mut()[9992..], 7u64.to_le_bytes());
    }

    #[test]
    fn no_bytes_is_an_error() {
        assert_eq!(Region::new(0).err(), Some(Errno::INVAL));
    }
}
