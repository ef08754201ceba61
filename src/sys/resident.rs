//! How much of a file the kernel holds in memory, and only that read.
//!
//! # Safety
//! Mappings are made and removed here and never dereferenced, so that no page of one can be
//! missing: what is read is copied by the kernel, and that it is not there is an errno.

use super::arch::{nr, syscall6};
use super::process::{discount, own_faults, own_id};
use super::remote::{RemoteSpan, process_vm_readv};
use super::{Errno, RemoteAddr, check};
use core::ffi::c_void;
use core::ptr::null_mut;
use rustix::fd::BorrowedFd;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Pages that are asked for at once.
const PAGES: usize = 1024;

/// A part of a file.
struct Window {
    at: *mut c_void,
    len: usize,
}

impl Window {
    fn map(file: BorrowedFd<'_>, start: u64, len: usize) -> Result<Self, Errno> {
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
        Ok(Self { at, len })
    }

    /// For each page whether it is held; none behind the window is.
    fn held(&self) -> Result<[u8; PAGES], Errno> {
        let mut pages = [0_u8; PAGES];
        let (at, vector) = (self.at as usize, pages.as_mut_ptr() as usize);
        // SAFETY: SYSCALL; the kernel writes a byte for each page of `len`, at most PAGES.
        check(unsafe { syscall6(nr::MINCORE, at, self.len, vector, 0, 0, 0) })?;
        Ok(pages)
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the mapping from above; nothing refers into it.
        let _ = unsafe { munmap(self.at, self.len) };
    }
}

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
        let pages = Window::map(file, start, len)?.held()?;
        found += pages.iter().map(|page| u64::from(page & 1)).sum::<u64>();
    }
    Ok(found)
}

/// Reads what of a file is in the page cache: gives how many bytes came, and how many of those
/// asked for lie in pages behind them that are not there; it stops where that changes. Nothing is
/// brought in, nor read ahead: read(2) reads ahead even if it is not to wait (RWF_NOWAIT), also
/// from a page that is there and has the mark for it (`filemap_readahead`, mm/filemap.c); a fault
/// in a mapping with MADV_RANDOM does not (`do_async_mmap_readahead`). These faults are the
/// tool's own and not among [`own_faults`].
///
/// # Errors
/// As [`resident_pages`], with the same condition; `EFAULT` if the file has become shorter.
pub fn read_resident(
    file: BorrowedFd<'_>,
    offset: u64,
    buffer: &mut [u8],
    page_bytes: usize,
) -> Result<(usize, usize), Errno> {
    let into = (offset % page_bytes as u64) as usize;
    let wanted = (into + buffer.len()).min(PAGES * page_bytes);
    let window = Window::map(file, offset - into as u64, wanted)?;
    let pages = window.held()?;
    let mut run = pages[..wanted.div_ceil(page_bytes)].chunk_by(|one, next| (one ^ next) & 1 == 0);
    let run = run.next().unwrap_or(&[]);
    let bytes = (run.len() * page_bytes).min(wanted) - into;
    if run.first().is_none_or(|page| page & 1 == 0) {
        return Ok((0, bytes));
    }
    // SAFETY: the window's own; this advice changes no content.
    unsafe { madvise(window.at, window.len, Advice::Random) }?;
    let span = RemoteSpan {
        start: RemoteAddr((window.at as usize + into) as u64),
        len: bytes as u64,
    };
    let before = own_faults();
    let read = process_vm_readv(own_id(), &mut buffer[..bytes], &[span]);
    if let Some((after, before)) = own_faults().zip(before) {
        discount(after.since(before));
    }
    match read? {
        0 => Err(Errno::FAULT),
        got => Ok((got, 0)),
    }
}
