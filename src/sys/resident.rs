//! How much of a file the kernel holds in memory.
//!
//! # Safety
//! The mapping is made and removed here and never read, so that no page of it can be
//! missing, and none is brought in.

use super::arch::{nr, syscall6};
use super::{Errno, check};
use core::ptr::null_mut;
use rustix::fd::BorrowedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Pages that are asked for at once.
const PAGES: usize = 1024;

/// How many pages of a file of so many bytes are in the page cache. mmap(2), mincore(2).
///
/// # Errors
/// As mmap(2): `ENODEV` (its file system maps nothing), `ENOMEM`. Since Linux 5.2 every page
/// counts as held unless this process owns the file or may write to it (`can_do_mincore`,
/// mm/mincore.c).
pub fn resident_pages(file: BorrowedFd<'_>, bytes: u64, page_bytes: usize) -> Result<u64, Errno> {
    let window = PAGES * page_bytes;
    let mut found = 0;
    for start in (0..bytes).step_by(window) {
        let len = (bytes - start).min(window as u64) as usize;
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let at = unsafe {
            mmap(
                null_mut(),
                len,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                start,
            )
        }?;
        let mut pages = [0_u8; PAGES];
        let vector = pages.as_mut_ptr() as usize;
        // SAFETY: SYSCALL; the kernel writes a byte for each page of `len`, at most PAGES.
        let asked = check(unsafe { syscall6(nr::MINCORE, at as usize, len, vector, 0, 0, 0) });
        // SAFETY: the mapping from above; nothing refers into it.
        unsafe { munmap(at, len) }?;
        asked?;
        found += pages.iter().map(|page| u64::from(page & 1)).sum::<u64>();
    }
    Ok(found)
}
