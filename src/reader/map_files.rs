//! /proc/PID/map_files: the file that a mapping has behind it, read as a file. The target's
//! page table is not touched; what it has not faulted in comes from the page cache or the disk.
//!
//! Source: proc_pid_map_files(5); following the links needs CAP_SYS_ADMIN or
//! CAP_CHECKPOINT_RESTORE in the initial user namespace. Only regular files are opened: opening
//! a device may do anything.

use super::files::{Files, Late, Shut};
use super::vma::{Vma, Vmas};
use super::{BlockReader, Learned, Target, may_refuse};
use crate::proc::pagemap::{Entry, file_offset};
use crate::sys::file::{
    HUGETLBFS_MAGIC, OVERLAYFS_MAGIC, Process, RAMFS_MAGIC, TMPFS_MAGIC, open_proc, pread_once,
    read_words_at, regular_bytes,
};
use crate::sys::resident::read_resident;
use crate::sys::{Errno, RemoteAddr};
use rustix::fd::{AsFd, OwnedFd};

/// Anonymous memory, or a mapping of something that is no regular file.
pub(super) const NO_FILE: Errno = Errno::NODEV;
/// A page of a private mapping that has been written, or a hole in the mappings: the file
/// does not have what lies there.
pub(super) const NOT_THE_FILES: Errno = Errno::NODATA;

/// Pages that one call asks pagemap about.
const PAGES: usize = 512;

/// `map-files`.
pub struct MapFiles {
    vmas: Vmas,
    behind: Behind,
    /// Whether the last answer came from a file, or its file system, and not from /proc.
    of_file: bool,
}

impl MapFiles {
    /// For a process; files are opened as they are come to.
    ///
    /// # Errors
    /// As open(2) of /proc/PID/pagemap.
    pub fn open(target: &Target<'_>) -> Result<Self, Errno> {
        let behind = Behind::open(target, false)?;
        Ok(Self {
            vmas: Vmas::of(target.pid),
            behind,
            of_file: false,
        })
    }
}

/// What is behind mappings that are known.
pub(super) struct Behind {
    page_bytes: u64,
    pagemap: OwnedFd,
    files: Files,
    swap_in: bool,
}

impl Behind {
    /// `cached_only`: for [`held`](Self::held).
    ///
    /// # Errors
    /// As open(2) of /proc/PID/pagemap.
    pub(super) fn open(target: &Target<'_>, cached_only: bool) -> Result<Self, Errno> {
        Ok(Self {
            page_bytes: target.page_bytes as u64,
            pagemap: open_proc(Process::Id(target.pid), "pagemap")?,
            files: Files::of(target.pid, cached_only, target.learned.late),
            swap_in: target.manners.swap_in,
        })
    }

    /// Files that could not be opened in time.
    pub(super) const fn late(&self) -> Late {
        self.files.late
    }

    /// As [`read`](BlockReader::read) of [`MapFiles`], but only what is in memory already: bytes
    /// that came, and bytes behind them that did not. Nothing is brought in, and nobody is waited
    /// for longer than [`open_within`](crate::sys::opening::open_within) does.
    ///
    /// # Errors
    /// See [`Shut`].
    pub(super) fn held(
        &mut self,
        vma: &Vma,
        start: RemoteAddr,
        block: &mut [u8],
    ) -> Result<(usize, usize), Shut> {
        let want = self.unwritten(start, block.len() as u64, !vma.perms.shared)? as usize;
        let (page_bytes, swap_in) = (self.page_bytes, self.swap_in);
        let (file, magic) = self.files.of_mapping(vma)?;
        let (offset, block) = (vma.offset + (start.0 - vma.start), &mut block[..want]);
        match magic {
            // A page in the swap cache is held, too, says mincore(2), and reading takes it out.
            TMPFS_MAGIC if vma.may_be_swapped() && !swap_in => Err(Shut::Swapped),
            OVERLAYFS_MAGIC if vma.may_be_swapped() => Err(Shut::Absent),
            TMPFS_MAGIC | RAMFS_MAGIC | HUGETLBFS_MAGIC => {
                let (got, tail) = contents(file, block, offset, page_bytes)?;
                // What is neither in memory nor in swap is a hole. Else the page is left as a whole.
                block[got..got + tail].fill(0);
                let end = offset + got as u64;
                let page = tail + got.min((end % page_bytes) as usize);
                let missing = if tail > 0 && vma.may_be_swapped() {
                    page
                } else {
                    0
                };
                Ok((got + tail - missing, missing))
            }
            _ => Ok(read_resident(
                file.as_fd(),
                offset,
                block,
                page_bytes as usize,
            )?),
        }
    }

    /// Bytes from `start` on that are the file's own: all of a shared mapping's; of a private
    /// one those up to the first page that it has a copy of.
    fn unwritten(&self, start: RemoteAddr, want: u64, private: bool) -> Result<u64, Errno> {
        if !private {
            return Ok(want);
        }
        let into = start.0 % self.page_bytes;
        let pages = ((into + want).div_ceil(self.page_bytes) as usize).min(PAGES);
        let mut words = [0; PAGES];
        let words = &mut words[..pages];
        let offset = file_offset(start.0, self.page_bytes);
        if read_words_at(self.pagemap.as_fd(), words, offset)? != pages {
            return Err(Errno::SRCH);
        }
        let clean = words.iter().take_while(|word| is_the_files(Entry(**word)));
        let clean = clean.count() as u64;
        match (clean * self.page_bytes).saturating_sub(into) {
            0 => Err(NOT_THE_FILES),
            bytes => Ok(bytes.min(want)),
        }
    }
}

/// What a file has at an offset: bytes that came, and bytes behind them in its last page that did
/// not, since that is not in memory. Behind the file's end the rest of that page is what is in
/// memory, which is not zeros if somebody has written there through a mapping; reading the file does
/// not give it. Further pages are [`Shut::Absent`]; they would be a SIGBUS.
fn contents(
    file: &OwnedFd,
    block: &mut [u8],
    offset: u64,
    page_bytes: u64,
) -> Result<(usize, usize), Shut> {
    let got = pread_once(file, block, offset)?;
    let end = offset + got as u64;
    let rest = (end.next_multiple_of(page_bytes) - end) as usize;
    let all = block.len().min(got + rest);
    if all == 0 {
        return Err(Shut::Absent);
    }
    let is_end = got < all && regular_bytes(file.as_fd())?.is_some_and(|bytes| bytes <= end);
    if !is_end {
        return Ok((got, 0));
    }
    let tail = &mut block[got..all];
    let (more, _) = read_resident(file.as_fd(), end, tail, page_bytes as usize).unwrap_or((0, 0));
    Ok((got + more, all - got - more))
}

/// How a reader of files says it.
const fn errno_of(shut: Shut) -> Errno {
    match shut {
        Shut::Says(errno) => errno,
        Shut::Zeros | Shut::Swapped => NO_FILE,
        Shut::Absent => Errno::IO,
        Shut::Denied => Errno::PERM,
    }
}

/// Whether a page of a private mapping is the file's, not a copy of its own.
const fn is_the_files(entry: Entry) -> bool {
    match entry.present() {
        true => entry.file_or_shared_anon(),
        false => !entry.swapped(),
    }
}

impl BlockReader for MapFiles {
    /// Reads within one mapping. See [`contents`] for what lies behind the file's end.
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        self.of_file = false;
        let vma = self.vmas.at(start)?.ok_or(Errno::FAULT)?;
        if !vma.has_file {
            return Err(NO_FILE);
        }
        let want = (block.len() as u64).min(vma.end - start.0);
        let behind = &mut self.behind;
        let want = behind.unwritten(start, want, !vma.perms.shared);
        let opened = behind.files.of_mapping(&vma);
        self.of_file = !matches!(opened, Err(Shut::Denied));
        let (file, _) = opened.map_err(errno_of)?;
        let block = &mut block[..want? as usize];
        let offset = vma.offset + (start.0 - vma.start);
        match contents(file, block, offset, behind.page_bytes).map_err(errno_of)? {
            (0, _) => Err(NOT_THE_FILES),
            (got, _) => Ok(got),
        }
    }

    fn learned(&self) -> Learned {
        Learned {
            late: self.behind.late(),
            ..Learned::default()
        }
    }

    fn is_refusal(&self, errno: Errno) -> bool {
        !self.of_file && may_refuse(errno)
    }
}
