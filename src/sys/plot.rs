//! A piece of address space that is ours, parts of which are mapped in any way that mmap(2)
//! knows: what fixtures of unusual kinds of memory are made of.
//!
//! Everything is addressed by offsets from the start of the plot, so that no call here can
//! touch memory that belongs to something else. Nothing here makes a reference into the
//! plot: a part may be inaccessible at any time, and who touches it then is ended by a signal.

use super::arch::{nr, syscall6};
use super::{Errno, RemoteAddr, check};
use core::ops::Range;
use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Protections, `PROT_*` of mmap(2).
pub mod access {
    /// Nothing.
    pub const NONE: u32 = 0;
    /// `PROT_READ`.
    pub const READ: u32 = 1;
    /// `PROT_WRITE`.
    pub const WRITE: u32 = 2;
    /// `PROT_EXEC`.
    pub const EXECUTE: u32 = 4;
    /// To read and to write.
    pub const BOTH: u32 = READ | WRITE;
}

/// Flags, `MAP_*` of mmap(2).
pub mod flags {
    /// `MAP_SHARED`.
    pub const SHARED: u32 = 1;
    /// `MAP_PRIVATE`.
    pub const PRIVATE: u32 = 2;
    /// `MAP_FIXED`.
    pub(super) const FIXED: u32 = 0x10;
    /// `MAP_ANONYMOUS`.
    pub const ANONYMOUS: u32 = 0x20;
    /// `MAP_GROWSDOWN`.
    pub const GROWS_DOWN: u32 = 0x100;
    /// `MAP_NORESERVE`.
    pub(super) const NO_RESERVE: u32 = 0x4000;
    /// `MAP_HUGETLB`.
    pub const HUGE_TLB: u32 = 0x4_0000;
    /// `MAP_FIXED_NOREPLACE` (since Linux 4.17).
    pub(super) const FIXED_NO_REPLACE: u32 = 0x10_0000;
}

/// Advice, `MADV_*` of madvise(2) and include/uapi/asm-generic/mman-common.h.
pub mod advice {
    /// `MADV_FREE` (since Linux 4.5).
    pub const FREE: u32 = 8;
    /// `MADV_DONTFORK`.
    pub const DONT_FORK: u32 = 10;
    /// `MADV_MERGEABLE`.
    pub const MERGEABLE: u32 = 12;
    /// `MADV_HUGEPAGE`.
    pub const HUGE_PAGE: u32 = 14;
    /// `MADV_NOHUGEPAGE`.
    pub const NO_HUGE_PAGE: u32 = 15;
    /// `MADV_WIPEONFORK` (since Linux 4.14).
    pub const WIPE_ON_FORK: u32 = 18;
    /// `MADV_PAGEOUT` (since Linux 5.4).
    pub const PAGE_OUT: u32 = 21;
    /// `MADV_GUARD_INSTALL` (since Linux 6.13).
    pub const GUARD_INSTALL: u32 = 102;
}

/// Address space that is ours.
#[derive(Debug)]
pub struct Plot {
    base: usize,
    len: usize,
}

impl Plot {
    /// Reserves `len` bytes, inaccessible and without memory.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn reserve(len: usize) -> Result<Self, Errno> {
        let flags = flags::PRIVATE | flags::ANONYMOUS | flags::NO_RESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe { mmap(0, len, access::NONE, flags, None) }?;
        Ok(Self { base, len })
    }

    /// Reserves the last page below one of `ends` that the CPU lets a process have, the
    /// largest first.
    ///
    /// # Errors
    /// `ENOMEM` if it can have none of them, `EEXIST` if something is there.
    pub fn reserve_last(page_bytes: usize, ends: &[u64]) -> Result<Self, Errno> {
        let flags = flags::PRIVATE | flags::ANONYMOUS | flags::FIXED_NO_REPLACE;
        for end in ends {
            let at = *end as usize - page_bytes;
            // SAFETY: it replaces nothing.
            match unsafe { mmap(at, page_bytes, access::NONE, flags, None) } {
                Err(Errno::NOMEM) => {}
                Ok(base) => {
                    return Ok(Self {
                        base,
                        len: page_bytes,
                    });
                }
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::NOMEM)
    }

    /// The address of an offset, here and in every child.
    #[must_use]
    pub const fn address(&self, offset: usize) -> RemoteAddr {
        RemoteAddr((self.base + offset) as u64)
    }

    /// Addresses of all of it.
    #[must_use]
    pub const fn range(&self) -> Range<RemoteAddr> {
        self.address(0)..self.address(self.len)
    }

    /// Maps a part anew. mmap(2) with `MAP_FIXED`.
    ///
    /// # Errors
    /// As mmap(2).
    pub fn map(
        &self,
        part: &Range<usize>,
        access: u32,
        flags: u32,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), Errno> {
        let (at, len) = self.part(part);
        // SAFETY: OWNED, and nobody holds a reference into a plot.
        unsafe { mmap(at, len, access, flags | flags::FIXED, file) }.map(|_| ())
    }

    /// mprotect(2) of a part.
    ///
    /// # Errors
    /// As mprotect(2).
    pub fn protect(&self, part: &Range<usize>, access: u32) -> Result<(), Errno> {
        self.call(nr::MPROTECT, part, access)
    }

    /// madvise(2) of a part.
    ///
    /// # Errors
    /// As madvise(2).
    pub fn advise(&self, part: &Range<usize>, advice: u32) -> Result<(), Errno> {
        self.call(nr::MADVISE, part, advice)
    }

    /// mlock(2) of a part.
    ///
    /// # Errors
    /// As mlock(2).
    pub fn lock(&self, part: &Range<usize>) -> Result<(), Errno> {
        self.call(nr::MLOCK, part, 0)
    }

    /// munmap(2) of a part, for a process that will map nothing more and never drops the
    /// plot: the kernel may give the part to somebody else.
    ///
    /// # Errors
    /// As munmap(2).
    pub fn unmap(&self, part: &Range<usize>) -> Result<(), Errno> {
        self.call(nr::MUNMAP, part, 0)
    }

    fn call(&self, number: usize, part: &Range<usize>, argument: u32) -> Result<(), Errno> {
        let (at, len) = self.part(part);
        // SAFETY: SYSCALL; OWNED, and nobody holds a reference into a plot.
        check(unsafe { syscall6(number, at, len, argument as usize, 0, 0, 0) }).map(|_| ())
    }

    /// Writes `word(address)` to each eight bytes of a part.
    pub fn write(&self, part: &Range<usize>, word: &dyn Fn(RemoteAddr) -> u64) {
        let (at, len) = self.part(part);
        for at in (at..at + len).step_by(8) {
            // SAFETY: OWNED; where the part is inaccessible a signal ends the process.
            unsafe { (at as *mut u64).write_volatile(word(RemoteAddr(at as u64))) };
        }
    }

    /// Reads a byte of each page of a part.
    pub fn touch(&self, part: &Range<usize>, page_bytes: usize) {
        let (at, len) = self.part(part);
        for at in (at..at + len).step_by(page_bytes) {
            // SAFETY: as `write`.
            unsafe { (at as *const u8).read_volatile() };
        }
    }

    /// Hands the faults of a part to a userfaultfd that nobody will ever read; the part
    /// stays so until the descriptor is closed. userfaultfd(2), ioctl_userfaultfd(2).
    ///
    /// # Errors
    /// `ENOSYS` (not configured), `EPERM` (vm.unprivileged_userfaultfd is 0), `EINVAL`.
    pub fn never_serve(&self, part: &Range<usize>) -> Result<OwnedFd, Errno> {
        const CLOEXEC: usize = 0o200_0000;
        /// `_IOWR(0xaa, 0x3f, struct uffdio_api)` and `_IOWR(0xaa, 0, struct uffdio_register)`.
        const API: usize = 0xc018_aa3f;
        const REGISTER: usize = 0xc020_aa00;
        const MODE_MISSING: u64 = 1;
        let (at, len) = self.part(part);
        // SAFETY: SYSCALL; only numbers.
        let opened = check(unsafe { syscall6(nr::USERFAULTFD, CLOEXEC, 0, 0, 0, 0, 0) })?;
        // SAFETY: fresh from the kernel, so nobody else owns it.
        let file = unsafe { OwnedFd::from_raw_fd(opened as i32) };
        let mut api = [0xaa_u64, 0, 0];
        let mut register = [at as u64, len as u64, MODE_MISSING, 0];
        let calls = [(API, api.as_mut_ptr()), (REGISTER, register.as_mut_ptr())];
        for (call, argument) in calls {
            // SAFETY: SYSCALL; the kernel reads and writes the structure of that call, three
            // and four words (include/uapi/linux/userfaultfd.h).
            check(unsafe { syscall6(nr::IOCTL, opened, call, argument as usize, 0, 0, 0) })?;
        }
        Ok(file)
    }

    fn part(&self, part: &Range<usize>) -> (usize, usize) {
        assert!(part.start <= part.end && part.end <= self.len);
        (self.base + part.start, part.len())
    }
}

impl Drop for Plot {
    fn drop(&mut self) {
        // SAFETY: OWNED: who unmaps a part never drops the plot.
        let _ = unsafe { syscall6(nr::MUNMAP, self.base, self.len, 0, 0, 0, 0) };
    }
}

/// mmap(2) from the start of a file, or of no file.
///
/// # Safety
/// What lies at a fixed address may be replaced.
unsafe fn mmap(
    at: usize,
    len: usize,
    access: u32,
    flags: u32,
    file: Option<BorrowedFd<'_>>,
) -> Result<usize, Errno> {
    let file = file.map_or(usize::MAX, |file| file.as_raw_fd().cast_unsigned() as usize);
    // SAFETY: SYSCALL; the caller's contract.
    check(unsafe { syscall6(nr::MMAP, at, len, access as usize, flags as usize, file, 0) })
}

/// Writes one byte of each page of this process's own stack between two addresses of it, with
/// the value that it has: after a fork the pages are its own again.
///
/// # Panics
/// If they are more than 1 MiB apart: that is no part of this stack that is in use.
pub fn rewrite_own(from: &[u8], to: RemoteAddr) {
    const PAGE_LEAST: usize = 4096;
    let (from, to) = (from.as_ptr().addr(), to.0 as usize);
    assert!(to.saturating_sub(from) <= 1 << 20);
    for at in (from..to).step_by(PAGE_LEAST) {
        let at = at as *mut u8;
        // SAFETY: SINGLE, so nobody writes in between, and nothing changes: the byte is written
        // as it was read. Addresses of live frames lie between two arrays of live frames.
        unsafe { at.write_volatile(at.read_volatile()) };
    }
}

/// The largest page of either CPU.
pub const PAGE_MAX: usize = 65536;

/// Gives memory of this process's own stack back: it is zeros from now on, in new frames.
/// madvise(2), `MADV_DONTNEED`.
///
/// # Errors
/// `EINVAL`: no page starts there, or it is locked into memory.
pub fn renew_own(pages: &mut [u8; PAGE_MAX]) -> Result<(), Errno> {
    const DONT_NEED: usize = 4;
    let at = pages.as_mut_ptr() as usize;
    // SAFETY: SYSCALL; zeros are as valid as any bytes, and whole pages of any size end where the
    // exclusively borrowed array does, if one starts where it starts.
    check(unsafe { syscall6(nr::MADVISE, at, PAGE_MAX, DONT_NEED, 0, 0, 0) }).map(|_| ())
}

/// A file that the kernel itself does not map. memfd_secret(2), since Linux 5.14.
///
/// # Errors
/// `ENOSYS` (not configured, or not enabled by `secretmem.enable=1`).
pub fn secret_file() -> Result<OwnedFd, Errno> {
    const CLOEXEC: usize = 0o200_0000;
    // SAFETY: SYSCALL; only numbers.
    let opened = check(unsafe { syscall6(nr::MEMFD_SECRET, CLOEXEC, 0, 0, 0, 0, 0) })?;
    // SAFETY: fresh from the kernel, so nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
}

/// Moves the program break; 0 asks where it is. The kernel's brk, which gives where it is
/// now, whether it moved or not (brk(2), "C library/kernel differences").
///
/// # Safety
/// Nobody uses what is cut off.
unsafe fn brk(end: usize) -> usize {
    // SAFETY: SYSCALL; the caller's contract.
    unsafe { syscall6(nr::BRK, end, 0, 0, 0, 0, 0) }.cast_unsigned()
}

/// The heap, made longer by some pages. Nothing else moves the program break; of several, the
/// last that was made must be dropped first.
#[derive(Debug)]
pub struct Heap {
    /// Its pages.
    pub plot: core::mem::ManuallyDrop<Plot>,
    end: usize,
}

impl Heap {
    /// Adds `len` bytes to the heap, from the next page boundary on.
    ///
    /// # Errors
    /// `ENOMEM` (RLIMIT_DATA, a mapping in the way, or overcommit refuses); `EPERM` (seccomp).
    pub fn grow(len: usize, page_bytes: usize) -> Result<Self, Errno> {
        // SAFETY: only asks. The call itself never fails; a filter makes it.
        let end = check(unsafe { brk(0) }.cast_signed())?;
        let base = end.next_multiple_of(page_bytes);
        let wanted = base.checked_add(len).ok_or(Errno::NOMEM)?;
        // SAFETY: it grows.
        if unsafe { brk(wanted) } != wanted {
            return Err(Errno::NOMEM);
        }
        let plot = core::mem::ManuallyDrop::new(Plot { base, len });
        Ok(Self { plot, end })
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: OWNED; what lies above was made later and is gone.
        unsafe { brk(self.end) };
    }
}
