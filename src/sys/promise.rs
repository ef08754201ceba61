//! Memory as the kernel promises it: a range that nobody has paid for yet, and the touching
//! that makes the kernel pay.
//!
//! No reference to the bytes is ever given out, and what they are does not matter. So every
//! piece of advice is safe here, also those that discard data.

use super::arch::{nr, syscall6};
use super::plot::Heap;
use super::{Errno, check, stack};
use core::ops::Range;
use core::ptr::{null_mut, with_exposed_provenance, with_exposed_provenance_mut};
use rustix::fd::BorrowedFd;
use rustix::mm::{Advice, MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

pub use super::stack::{STACK_MIB_MAX, can_grow, grow_stack};

/// A range of memory; given back when dropped. A stack is not: it stays grown, and some advice
/// about it cannot be taken back (MADV_HUGEPAGE), so each is for a process of its own.
#[derive(Debug)]
pub struct Promise {
    range: Range<usize>,
    source: Source,
    page_bytes: usize,
}

/// What it was promised as.
#[derive(Debug)]
enum Source {
    /// mmap(2), private and anonymous.
    Anonymous,
    /// mmap(2) of a file, private, for reading.
    File,
    /// brk(2), undone when this is dropped.
    Break(#[expect(dead_code, reason = "kept to be dropped")] Heap),
    /// A frame of so many MiB, or none. The range is empty until something tells where it is.
    Stack(usize),
}

impl Promise {
    /// An anonymous private mapping of `len` bytes. mmap(2).
    ///
    /// # Errors
    /// `ENOMEM` (no address space, a limit, or overcommit refuses).
    pub fn anonymous(len: usize, page_bytes: usize) -> Result<Self, Errno> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let at = unsafe { mmap_anonymous(null_mut(), len, prot, MapFlags::PRIVATE) }?;
        Ok(Self::at(at.addr(), len, Source::Anonymous, page_bytes))
    }

    /// The first `len` bytes of a file, private, for reading. mmap(2).
    ///
    /// # Errors
    /// `ENODEV` (not a file that can be mapped), `EINVAL` (no bytes), `EACCES`, `ENOMEM`.
    pub fn file(file: BorrowedFd<'_>, len: usize, page_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: as in `anonymous`; nobody ever holds a reference to what may change.
        let at = unsafe { mmap(null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, file, 0) }?;
        Ok(Self::at(at.addr(), len, Source::File, page_bytes))
    }

    /// `len` bytes of the program break, from the next page boundary on. brk(2).
    ///
    /// # Errors
    /// As [`Heap::grow`].
    pub fn program_break(len: usize, page_bytes: usize) -> Result<Self, Errno> {
        let heap = Heap::grow(len, page_bytes)?;
        let start = heap.plot.range().start.0 as usize;
        Ok(Self::at(start, len, Source::Break(heap), page_bytes))
    }

    /// A frame of `mib` MiB on the stack, at most [`STACK_MIB_MAX`]; 0 is none, only what is
    /// around it.
    #[must_use]
    pub fn stack(mib: usize, page_bytes: usize) -> Self {
        Self::at(0, 0, Source::Stack(mib.min(STACK_MIB_MAX)), page_bytes)
    }

    /// An anonymous page that is read as one of a file is.
    ///
    /// # Errors
    /// As [`Promise::anonymous`].
    pub fn like_file(page_bytes: usize) -> Result<Self, Errno> {
        let mut page = Self::anonymous(page_bytes, page_bytes)?;
        page.source = Source::File;
        Ok(page)
    }

    fn at(start: usize, len: usize, source: Source, page_bytes: usize) -> Self {
        Self {
            range: start..start + len,
            source,
            page_bytes,
        }
    }

    /// Where it is; a stack's is known once it was touched or advised about.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Touches one byte of each page that begins in `part`, counted in bytes from the start:
    /// a file is read, all else is written. A stack is always touched as a whole; what calls
    /// that are over have used of it is given back before the first time, so that every page
    /// is paid for.
    ///
    /// # Errors
    /// Of a stack: `EINVAL` or `EPERM` if that cannot be given back; nothing was touched.
    ///
    /// # Panics
    /// If `part` reaches beyond the end.
    #[inline(never)]
    pub fn touch(&mut self, part: Range<usize>) -> Result<(), Errno> {
        if let Source::Stack(mib) = self.source {
            let start = stack::touch_frame(mib, self.page_bytes, self.range.is_empty())?;
            self.range = start..start + (mib << 20);
            return Ok(());
        }
        assert!(part.start <= part.end && part.end <= self.range.len());
        let (at, len) = (self.range.start + part.start, part.len());
        if matches!(self.source, Source::File) {
            // SAFETY: OWNED, mapped for reading, and the assertion keeps it within. A page
            // beyond the end of a file that was cut is SIGBUS, which ends the program.
            unsafe { read_each(with_exposed_provenance(at), len, self.page_bytes) }
        } else {
            // SAFETY: OWNED, writable, and the assertion keeps it within.
            unsafe { write_each(with_exposed_provenance_mut(at), len, self.page_bytes) }
        }
        Ok(())
    }

    /// Gives advice about all of it; about a stack, the whole pages of its frame. If it was
    /// not touched yet, it is grown for that, which is charged a fault. madvise(2).
    ///
    /// # Errors
    /// `EINVAL` (not for this kind of memory, or this kernel does not know it), `EFAULT`
    /// (the stack cannot grow), `ENOMEM`.
    #[inline(never)]
    pub fn advise(&mut self, advice: Advice) -> Result<(), Errno> {
        let mut range = self.range();
        if let Source::Stack(mib) = self.source {
            if range.is_empty() {
                range = stack::grow(mib << 20, self.page_bytes)?;
            }
            // Below the frame lies nothing else; above it does.
            range.start &= !(self.page_bytes - 1);
            range.end &= !(self.page_bytes - 1);
            range = stack::dead_part(range, self.page_bytes);
        }
        let (at, len) = (range.start, range.len());
        // SAFETY: SYSCALL; OWNED or, of a stack, in no frame. Nobody relies on the contents.
        let advised = unsafe { syscall6(nr::MADVISE, at, len, advice as usize, 0, 0, 0) };
        check(advised).map(|_| ())
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        let at = with_exposed_provenance_mut(self.range.start);
        match self.source {
            // SAFETY: OWNED; no reference into it exists.
            Source::Anonymous | Source::File => drop(unsafe { munmap(at, self.range.len()) }),
            Source::Break(_) | Source::Stack(_) => {}
        }
    }
}

/// Writes a byte to each page. The stores are volatile: nobody reads them, yet they must
/// happen.
///
/// # Safety
/// `at` is writable for `len` bytes, and nobody relies on what is there.
#[inline(never)]
pub(super) unsafe fn write_each(at: *mut u8, len: usize, page_bytes: usize) {
    for offset in (0..len).step_by(page_bytes) {
        // SAFETY: the caller's contract.
        unsafe { at.add(offset).write_volatile(1) };
    }
}

/// Reads a byte of each page; volatile for the same reason.
///
/// # Safety
/// `at` is readable for `len` bytes.
#[inline(never)]
unsafe fn read_each(at: *const u8, len: usize, page_bytes: usize) {
    for offset in (0..len).step_by(page_bytes) {
        // SAFETY: the caller's contract.
        unsafe { at.add(offset).read_volatile() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::string::String;
    use std::vec::Vec;

    const PAGE: usize = 4096;

    /// The lines of maps that overlap a range.
    fn mapped(range: &Range<usize>) -> Vec<String> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let (start, end) = (range.start as u64, range.end as u64);
        maps.lines()
            .filter(|line| {
                crate::proc::maps::MapsLine::parse(line.as_bytes())
                    .is_some_and(|vma| vma.overlaps(start, end))
            })
            .map(String::from)
            .collect()
    }

    #[test]
    fn a_mapping_is_there_until_it_is_dropped() {
        let mut promise = Promise::anonymous(16 * PAGE, PAGE).unwrap();
        let range = promise.range();
        promise.touch(0..16 * PAGE).unwrap();
        promise.advise(Advice::LinuxDontNeed).unwrap();
        promise.touch(PAGE..3 * PAGE).unwrap();
        assert_eq!(mapped(&range).len(), 1);
    }

    #[test]
    fn a_file_is_read_not_written() {
        let file = crate::sys::file::open(c"/proc/self/exe").unwrap();
        let mut promise = Promise::file(file.as_fd(), 3 * PAGE, PAGE).unwrap();
        promise.touch(0..3 * PAGE).unwrap();
        let lines = mapped(&promise.range());
        assert!(lines.len() == 1 && lines[0].contains(" r--p "), "{lines:?}");
        assert_eq!(promise.advise(Advice::LinuxFree), Err(Errno::INVAL));
    }

    #[test]
    fn too_much_is_refused() {
        assert_eq!(Promise::anonymous(1 << 60, PAGE).err(), Some(Errno::NOMEM));
        assert_eq!(
            Promise::program_break(1 << 60, PAGE).err(),
            Some(Errno::NOMEM)
        );
    }

    #[test]
    #[should_panic(expected = "part.end")]
    fn touching_stays_within() {
        let mut promise = Promise::anonymous(PAGE, PAGE).unwrap();
        let _ = promise.touch(0..2 * PAGE);
    }
}
