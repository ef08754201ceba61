//! /proc/kcore: the kernel's own view of all memory as an ELF core file. A page of the target
//! is read as the frame that pagemap names, through the kernel's direct map; the target is not
//! looked at by address, so nothing is pinned, faulted in or marked.
//!
//! Source: fs/proc/kcore.c. A program header of RAM has the physical address in `p_paddr`,
//! those of other areas have -1 there (since 4.19). Pages that are offline or poisoned read as
//! zeros.
//!
//! The kernel's text is an area of its own with physical addresses, too, which overlaps RAM; what
//! was unmapped of it after booting reads as zeros there (aarch64, `free_initmem` of
//! arch/arm64/mm/init.c), although its frames serve as memory by then. So the larger area counts.

use super::{BlockReader, Target};
use crate::proc::pagemap::{Entry, file_offset};
use crate::sys::file::{Process, open, open_proc, pread_once, read_at, read_words_at};
use crate::sys::{Errno, RemoteAddr};
use core::hint::black_box;
use heapless::Vec;
use rustix::fd::{AsFd, OwnedFd};

/// The page is not in memory: kcore has nothing of it.
pub(super) const NOT_PRESENT: Errno = Errno::NODATA;

/// Pages that one call asks pagemap about.
const PAGES: usize = 512;
/// Areas of memory that are remembered; machines have a few, one with much hot-plugged memory
/// may have hundreds, and what lies in the rest is `ENXIO`.
const AREAS: usize = 128;
/// What makes the words of the proof unlike any others: the digits of e.
const MARK: u64 = 0xb7e1_5162_8aed_2a6a;
/// Readings of a page that moves meanwhile.
const READINGS_MAX: u32 = 8;

/// A range of physical memory and where the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    physical: u64,
    bytes: u64,
    offset: u64,
}

/// `kcore`.
pub struct Kcore {
    file: OwnedFd,
    pagemap: OwnedFd,
    page_bytes: u64,
    areas: Vec<Area, AREAS>,
}

impl Kcore {
    /// Opens the kernel's memory and the target's page table.
    ///
    /// # Errors
    /// `ENOSYS`: the kernel has no /proc/kcore, or one without physical addresses, or one
    /// that does not give the bytes of a page of our own; `EPERM`: no CAP_SYS_RAWIO, or
    /// lockdown, or frame numbers are hidden (CAP_SYS_ADMIN); pagemap's.
    pub fn open(target: &Target<'_>) -> Result<Self, Errno> {
        let file = open(c"/proc/kcore").map_err(|errno| match errno {
            Errno::NOENT => Errno::NOSYS,
            other => other,
        })?;
        let areas = areas(&file)?;
        if areas.is_empty() {
            return Err(Errno::NOSYS);
        }
        let mut kcore = Self {
            file,
            pagemap: open_proc(Process::Myself, "pagemap")?,
            page_bytes: target.page_bytes as u64,
            areas,
        };
        kcore.prove()?;
        kcore.pagemap = open_proc(Process::Id(target.pid), "pagemap")?;
        Ok(kcore)
    }

    /// Reads words of our own that stand nowhere else.
    fn prove(&mut self) -> Result<(), Errno> {
        let mark = (&raw const self.page_bytes as u64) ^ MARK;
        let words = black_box([mark, !mark, mark.rotate_left(17)]);
        let mut found = [0; size_of::<[u64; 3]>()];
        let mut done = 0;
        while done < found.len() {
            let at = RemoteAddr((&raw const words).addr() as u64 + done as u64);
            done += self.read(at, &mut found[done..])?;
        }
        let same = |(word, bytes): (&u64, &[u8])| word.to_ne_bytes() == *bytes;
        match words.iter().zip(found.chunks(8)).all(same) {
            true => Ok(()),
            false => Err(Errno::NOSYS),
        }
    }

    /// Frame numbers of the pages from `start` on, as many as are present; the first page's
    /// state is an error if it is not.
    fn frames(&self, start: RemoteAddr, frames: &mut [u64]) -> Result<usize, Errno> {
        let offset = file_offset(start.0, self.page_bytes);
        if read_words_at(self.pagemap.as_fd(), frames, offset)? != frames.len() {
            return Err(Errno::SRCH);
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            let entry = Entry(*frame);
            match (entry.frame(), entry.present()) {
                (Some(found), _) => *frame = found.number(),
                _ if index > 0 => return Ok(index),
                (None, true) => return Err(Errno::PERM),
                (None, false) => return Err(NOT_PRESENT),
            }
        }
        Ok(frames.len())
    }

    /// Copies out of frames that follow each other in physical memory.
    fn copy(&self, physical: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        let area = place(&self.areas, physical).ok_or(Errno::NXIO)?;
        let within = physical - area.physical;
        let count = bytes.len().min((area.bytes - within) as usize);
        pread_once(&self.file, &mut bytes[..count], area.offset + within)
    }
}

impl BlockReader for Kcore {
    /// Up to [`PAGES`] pages, or up to the first that is not there. The page table is read
    /// again afterwards: a page that has moved meanwhile is read again.
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        let into = start.0 % self.page_bytes;
        let pages = (into + block.len() as u64).div_ceil(self.page_bytes);
        let (mut before, mut after) = ([0; PAGES], [0; PAGES]);
        let wanted = (pages as usize).min(PAGES);
        for _ in 0..READINGS_MAX {
            let there = self.frames(start, &mut before[..wanted])?;
            let bytes = (there as u64 * self.page_bytes - into).min(block.len() as u64);
            let got = self.runs(into, &before[..there], &mut block[..bytes as usize])?;
            let still = self.frames(start, &mut after[..there]).unwrap_or(0);
            let same = (0..still)
                .take_while(|&page| before[page] == after[page])
                .count();
            let sound = (same as u64 * self.page_bytes).saturating_sub(into);
            if sound > 0 {
                return Ok(got.min(sound as usize));
            }
        }
        Err(Errno::AGAIN)
    }
}

impl Kcore {
    /// Copies run by run of neighbouring frames; what came before a failure counts.
    fn runs(&self, into: u64, frames: &[u64], block: &mut [u8]) -> Result<usize, Errno> {
        let (mut done, mut first) = (0, 0);
        while first < frames.len() && done < block.len() {
            let run = (first + 1..frames.len())
                .take_while(|&page| frames[page] == frames[page - 1] + 1)
                .count()
                + 1;
            let skip = if first == 0 { into } else { 0 };
            let bytes = (run as u64 * self.page_bytes - skip) as usize;
            let end = (done + bytes).min(block.len());
            let physical = frames[first] * self.page_bytes + skip;
            match self.copy(physical, &mut block[done..end]) {
                Err(Errno::INTR) => continue,
                Err(errno) if done == 0 => return Err(errno),
                Ok(got) if done + got == end => done = end,
                Ok(got) => return Ok(done + got),
                Err(_) => return Ok(done),
            }
            first += run;
        }
        Ok(done)
    }
}

/// The area to read a physical address from: of several, the largest, which is RAM.
fn place(areas: &[Area], physical: u64) -> Option<&Area> {
    let has = |area: &&Area| {
        let within = physical.checked_sub(area.physical);
        within.is_some_and(|within| within < area.bytes)
    };
    areas.iter().filter(has).max_by_key(|area| area.bytes)
}

/// The areas of physical memory in the file's program headers (elf(5)).
fn areas(file: &OwnedFd) -> Result<Vec<Area, AREAS>, Errno> {
    let mut header = [0; 64];
    if read_at(file.as_fd(), &mut header, 0)? != header.len() || header[..4] != *b"\x7fELF" {
        return Err(Errno::NOSYS);
    }
    let (table, size) = (word(&header, 32), half(&header, 54));
    let mut areas = Vec::new();
    for number in 0..half(&header, 56) {
        let mut program = [0; 56];
        read_at(file.as_fd(), &mut program, table + number * size)?;
        if let Some(area) = area(&program)
            && areas.push(area).is_err()
        {
            break;
        }
    }
    Ok(areas)
}

/// A PT_LOAD header that says where its memory lies physically.
fn area(program: &[u8; 56]) -> Option<Area> {
    const PT_LOAD: u64 = 1;
    let kind = word(program, 0) & u64::from(u32::MAX);
    let area = Area {
        offset: word(program, 8),
        physical: word(program, 24),
        bytes: word(program, 32),
    };
    (kind == PT_LOAD && area.physical != u64::MAX).then_some(area)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let part = bytes.get(at..).and_then(|rest| rest.first_chunk());
    part.map_or(0, |part| u64::from_le_bytes(*part))
}

fn half(bytes: &[u8], at: usize) -> u64 {
    word(bytes, at) & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_within_the_kernels_text_is_read_as_memory() {
        let area = |physical, bytes, offset| Area {
            physical,
            bytes,
            offset,
        };
        let (text, ram) = (area(0x3000, 0x1000, 1), area(0x1000, 0x8000, 2));
        let areas = [text, ram];
        assert_eq!(place(&areas, 0x3800), Some(&ram));
        assert_eq!(place(&areas, 0x1000), Some(&ram));
        assert_eq!(place(&areas, 0x8fff), Some(&ram));
        assert_eq!(place(&areas, 0x9000), None);
        assert_eq!(place(&areas, 0xfff), None);
    }

    /// As `readelf -lW /proc/kcore` shows them: text without a place in memory, then RAM.
    #[test]
    fn only_headers_with_a_physical_address_are_memory() {
        let header = |kind: u32, physical: u64| {
            let mut bytes = [0; 56];
            bytes[..4].copy_from_slice(&kind.to_le_bytes());
            for (at, value) in [
                (8, 0x2000),
                (16, u64::MAX << 47),
                (24, physical),
                (32, 0x9000),
            ] {
                bytes[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            }
            area(&bytes)
        };
        let want = Area {
            physical: 0x1000,
            bytes: 0x9000,
            offset: 0x2000,
        };
        assert_eq!(header(1, 0x1000), Some(want));
        assert_eq!(header(1, u64::MAX), None);
        assert_eq!(header(4, 0x1000), None);
    }
}
