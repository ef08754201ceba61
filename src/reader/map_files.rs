//! /proc/PID/map_files: the file that a mapping has behind it, read as a file. The target's
//! page table is not touched; what it has not faulted in comes from the page cache or the disk.
//!
//! Source: proc_pid_map_files(5); following the links needs CAP_SYS_ADMIN or
//! CAP_CHECKPOINT_RESTORE in the initial user namespace. Only regular files are opened: opening
//! a device may do anything.

use super::vma::{Vma, Vmas};
use super::{BlockReader, Target};
use crate::proc::lines::LineBuffer;
use crate::proc::mountinfo;
use crate::proc::pagemap::{ENTRY_BYTES, Entry, file_offset};
use crate::sys::file::{
    Process, open_mapped, open_proc, pread_cached, pread_once, read_at, read_next,
};
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
    pid: i32,
    page_bytes: u64,
    pagemap: OwnedFd,
    vmas: Vmas,
    open: Option<(Vma, OwnedFd)>,
    /// Whether only what is in memory already is read.
    cached_only: bool,
    /// The last device that was asked about, and whether its files are another process's or
    /// machine's to give.
    served: Option<((u32, u32), bool)>,
}

impl MapFiles {
    /// For a process; files are opened as they are come to.
    ///
    /// # Errors
    /// As open(2) of /proc/PID/pagemap.
    pub fn open(target: &Target<'_>) -> Result<Self, Errno> {
        Ok(Self {
            pid: target.pid,
            page_bytes: target.page_bytes as u64,
            pagemap: open_proc(Process::Id(target.pid), "pagemap")?,
            vmas: Vmas::of(target.pid),
            open: None,
            cached_only: false,
            served: None,
        })
    }

    /// As [`open`](Self::open); what is not in the page cache is `EAGAIN`, and nobody is waited
    /// for.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(super) fn of_page_cache(target: &Target<'_>) -> Result<Self, Errno> {
        let files = Self::open(target)?;
        Ok(Self {
            cached_only: true,
            ..files
        })
    }

    /// Whether opening a file of that device waits for another process or machine; unknown is
    /// yes. A device that is not mounted is the kernel's own (memfd, shared memory).
    fn is_served(&mut self, device: (u32, u32)) -> bool {
        if let Some((known, served)) = self.served
            && known == device
        {
            return served;
        }
        let served = mounted(self.pid, device).unwrap_or(true);
        self.served = Some((device, served));
        served
    }

    /// The mapping at an address and its file.
    fn file_at(&mut self, start: RemoteAddr) -> Result<(&Vma, &OwnedFd), Errno> {
        if !self
            .open
            .as_ref()
            .is_some_and(|(vma, _)| vma.contains(start))
        {
            let vma = self.vmas.at(start)?.ok_or(Errno::FAULT)?;
            if !vma.has_file {
                return Err(NO_FILE);
            }
            if self.cached_only && self.is_served(vma.device) {
                return Err(Errno::AGAIN);
            }
            let file = open_mapped(self.pid, vma.start, vma.end)?.ok_or(NO_FILE)?;
            self.open = Some((vma, file));
        }
        let open = self.open.as_ref().ok_or(NO_FILE)?;
        Ok((&open.0, &open.1))
    }

    /// Bytes from `start` on that are the file's own: all of a shared mapping's; of a private
    /// one those up to the first page that it has a copy of.
    fn unwritten(&self, start: RemoteAddr, want: u64, private: bool) -> Result<u64, Errno> {
        if !private {
            return Ok(want);
        }
        let into = start.0 % self.page_bytes;
        let pages = ((into + want).div_ceil(self.page_bytes) as usize).min(PAGES);
        let mut words = [0; PAGES * ENTRY_BYTES as usize];
        let words = &mut words[..pages * ENTRY_BYTES as usize];
        let offset = file_offset(start.0, self.page_bytes);
        if read_at(self.pagemap.as_fd(), words, offset)? != words.len() {
            return Err(Errno::SRCH);
        }
        let (words, _) = words.as_chunks();
        let entries = words.iter().map(|word| Entry(u64::from_ne_bytes(*word)));
        let clean = entries.take_while(|entry| is_the_files(*entry)).count() as u64;
        match (clean * self.page_bytes).saturating_sub(into) {
            0 => Err(NOT_THE_FILES),
            bytes => Ok(bytes.min(want)),
        }
    }
}

/// What a file has at an offset: how many bytes, and whether it ends behind them.
fn contents(
    file: &OwnedFd,
    block: &mut [u8],
    offset: u64,
    cached_only: bool,
) -> Result<(usize, bool), Errno> {
    let mut got = 0;
    while cached_only && got < block.len() {
        match pread_cached(file, &mut block[got..], offset + got as u64) {
            Ok(0) => return Ok((got, true)),
            Ok(more) => got += more,
            Err(Errno::AGAIN) if got > 0 => return Ok((got, false)),
            // An old tmpfs, say, which waits for nobody.
            Err(Errno::OPNOTSUPP) => break,
            Err(errno) => return Err(errno),
        }
    }
    if got == block.len() {
        return Ok((got, false));
    }
    let got = pread_once(file, block, offset)?;
    Ok((got, got < block.len()))
}

/// Whether a mounted file system's files are served, see [`mountinfo::is_served`].
fn mounted(pid: i32, device: (u32, u32)) -> Result<bool, Errno> {
    let file = open_proc(Process::Id(pid), "mountinfo")?;
    let mut lines = LineBuffer::<4096>::new();
    while let Some(line) = lines.read_line(|space| read_next(file.as_fd(), space))? {
        if let Some((found, name)) = mountinfo::file_system(line.bytes)
            && found == device
        {
            return Ok(mountinfo::is_served(name));
        }
    }
    Ok(false)
}

/// Whether a page of a private mapping is the file's, not a copy of its own.
const fn is_the_files(entry: Entry) -> bool {
    match entry.present() {
        true => entry.file_or_shared_anon(),
        false => !entry.swapped(),
    }
}

impl BlockReader for MapFiles {
    /// Reads within one mapping. Behind the end of the file, the rest of its last page is
    /// zeros, as it is in memory; further pages are `EIO`, as they would be a SIGBUS.
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        let page_bytes = self.page_bytes;
        let (vma, _) = self.file_at(start)?;
        let (vma, want) = (*vma, (block.len() as u64).min(vma.end - start.0));
        let want = self.unwritten(start, want, !vma.perms.shared)? as usize;
        let cached_only = self.cached_only;
        let (_, file) = self.file_at(start)?;
        let offset = vma.offset + (start.0 - vma.start);
        let block = &mut block[..want];
        match contents(file, block, offset, cached_only)? {
            (got, false) => Ok(got),
            (got, true) => {
                let end = offset + got as u64;
                let rest = end.next_multiple_of(page_bytes) - end;
                let end = want.min(got + rest as usize);
                block[got..end].fill(0);
                if end == 0 { Err(Errno::IO) } else { Ok(end) }
            }
        }
    }
}
