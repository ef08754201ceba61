//! What a range of a live process holds, by its page table alone: nothing is read, nothing
//! is touched.

use super::doubts::Doubts;
use crate::emit::crc::Crc32;
use crate::proc::pagemap::{ENTRY_BYTES, Entry, Frame, Mark, file_offset};
use crate::reader::own_page::own_entry;
use crate::sys::file::{Process, open, open_proc, read_proc, read_words_at};
use crate::sys::{Errno, Region};
use rustix::fd::{AsFd, OwnedFd};
use rustix::thread::sched_yield;

/// Pages by what pagemap says of them. Documentation/admin-guide/mm/pagemap.rst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Anonymous, mapped by nobody else (bit 56).
    pub exclusive: u64,
    /// Anonymous, perhaps mapped by others. On large folios bit 56 is conservative.
    pub shared_anon: u64,
    /// The zero page, as far as frame numbers tell; no reader splits it.
    pub zero: u64,
    /// Of a file or of shared anonymous memory (bit 61).
    pub file: u64,
    /// Swapped out, or another entry that is no page (bit 62) and not known for what it is; see
    /// [`know_swap`](Self::know_swap).
    pub swapped: u64,
    /// Of shared memory, in swap: pagemap shows nothing there.
    pub swapped_shared: u64,
    /// Poisoned: whoever touches one gets SIGBUS.
    pub poisoned: u64,
    /// Guard regions (bit 58): whoever touches one gets SIGSEGV.
    pub guard: u64,
    /// None of these.
    pub absent: u64,
    /// Of the absent, those that no reader brings in: whole windows of nothing, see
    /// [`is_reserve`], unless the caller knows better.
    pub out_of_reach: u64,
}

impl Census {
    fn count(&mut self, entry: Entry, zero_frame: Option<Frame>) {
        let place = match (entry.present(), entry.swapped()) {
            (true, _) if entry.file_or_shared_anon() => &mut self.file,
            (true, _) if entry.exclusive() => &mut self.exclusive,
            (true, _) if zero_frame.is_some() && entry.frame() == zero_frame => &mut self.zero,
            (true, _) => &mut self.shared_anon,
            (false, _) if entry.guard() => &mut self.guard,
            (false, true) => match entry.mark() {
                None => &mut self.swapped,
                Some(Mark::Poison) => &mut self.poisoned,
                Some(Mark::Other) => &mut self.absent,
            },
            (false, false) => &mut self.absent,
        };
        *place += 1;
    }

    /// Adds another range's.
    pub fn add(&mut self, other: &Self) {
        self.exclusive += other.exclusive;
        self.shared_anon += other.shared_anon;
        self.zero += other.zero;
        self.file += other.file;
        self.swapped += other.swapped;
        self.swapped_shared += other.swapped_shared;
        self.poisoned += other.poisoned;
        self.guard += other.guard;
        self.absent += other.absent;
        self.out_of_reach += other.out_of_reach;
    }

    /// Tells zero pages from shared ones by the number of anonymous pages that smaps gives,
    /// which has no zero page among them.
    pub fn know_anonymous(&mut self, pages: u64) {
        let shared = pages.saturating_sub(self.exclusive).min(self.shared_anon);
        self.zero += self.shared_anon - shared;
        self.shared_anon = shared;
    }

    /// Tells what is in swap by the number of such pages that smaps gives: other entries with bit
    /// 62 are no pages and not in swap, and shared memory in swap has no entry.
    pub fn know_swap(&mut self, pages: u64) {
        let no_swap = self.swapped.saturating_sub(pages);
        self.swapped -= no_swap;
        self.swapped_shared = (pages - self.swapped).min(self.absent);
        self.absent = self.absent - self.swapped_shared + no_swap;
    }

    /// Pages in swap.
    #[must_use]
    pub const fn in_swap(&self) -> u64 {
        self.swapped + self.swapped_shared
    }

    /// Anonymous ones that hold something.
    #[must_use]
    pub const fn anonymous(&self) -> u64 {
        self.exclusive + self.shared_anon
    }

    /// Pages that are mapped.
    #[must_use]
    pub const fn present(&self) -> u64 {
        self.exclusive + self.shared_anon + self.zero + self.file
    }
}

/// Why a range could not be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CensusError {
    /// pagemap cannot be read.
    Kernel(Errno),
    /// The process has no memory any more, or other memory than before.
    Gone,
}

/// Bytes of entries that one call reads: 8,192 pages.
const CHUNK_BYTES: usize = 64 << 10;
/// Pages that one look can see.
pub const CHUNK_PAGES: u64 = CHUNK_BYTES as u64 / ENTRY_BYTES;
/// Looks at what is under migration.
const LOOKS_MAX: u32 = 16;

/// The page table of one process.
pub struct Pagemap {
    file: OwnedFd,
    page_bytes: u64,
}

/// Entries of one look.
pub struct Entries(Region);

impl Entries {
    /// Room for [`CHUNK_PAGES`].
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> Result<Self, Errno> {
        Region::not_inherited(CHUNK_BYTES).map(Self)
    }
}

impl Pagemap {
    /// Of that process; it stays that process's, whatever becomes of its number.
    ///
    /// # Errors
    /// `EACCES`, `ESRCH`, `ENOENT` (a kernel without CONFIG_PROC_PAGE_MONITOR).
    pub fn open(pid: i32, page_bytes: usize) -> Result<Self, Errno> {
        Ok(Self {
            file: open_proc(Process::Id(pid), "pagemap")?,
            page_bytes: page_bytes as u64,
        })
    }

    /// The entries of the pages from `start` on, up to `end` or as many as there is room for. Looks again
    /// while some are under migration, as far as that is to be seen and soon over.
    ///
    /// # Errors
    /// See [`CensusError`].
    pub fn look<'e>(
        &self,
        start: u64,
        end: u64,
        entries: &'e mut Entries,
    ) -> Result<&'e [u64], CensusError> {
        let pages = (end - start).div_ceil(self.page_bytes).min(CHUNK_PAGES);
        let words = &mut entries.0.words_mut()[..pages as usize];
        let offset = file_offset(start, self.page_bytes);
        for _ in 0..LOOKS_MAX {
            let read = read_words_at(self.file.as_fd(), words, offset);
            if read.map_err(CensusError::Kernel)? < words.len() {
                return Err(CensusError::Gone);
            }
            // Mostly nothing is, and there are many pages.
            let all = words.iter().fold(0, |all, word| all | word);
            if !Entry(all).swapped() || !words.iter().any(|&word| Entry(word).under_migration()) {
                break;
            }
            sched_yield();
        }
        Ok(words)
    }
}

/// Whether these entries, of private memory without a file, are a mere reserve: a whole window
/// of nothing, of which a reader would only get zeros.
#[must_use]
pub fn is_reserve(entries: &[u64]) -> bool {
    let is_nothing = |word: &u64| !Entry(*word).present() && !Entry(*word).swapped();
    entries.len() as u64 == CHUNK_PAGES && entries.iter().all(is_nothing)
}

/// Where the window ends that `at` is in, or the range. Edges lie at whole multiples: the kernel
/// maps absent file pages in aligned groups.
#[must_use]
pub fn window_end(at: u64, end: u64, page_bytes: u64) -> u64 {
    let window = CHUNK_PAGES * page_bytes;
    (at - at % window).saturating_add(window).min(end)
}

/// Checksum of /proc/PID/auxv, which is a program's own: where the kernel has put its code, its
/// stack and the vdso (fs/binfmt_elf.c, `create_elf_tables`). Another one is another program.
fn program(pid: i32) -> Result<u32, Errno> {
    let mut buffer = [0; 1024];
    let mut crc = Crc32::new();
    crc.update(read_proc(Process::Id(pid), "auxv", &mut buffer)?);
    Ok(crc.value())
}

/// Counts the pages of one process. Its memory does not grow with the target's.
pub struct Counter {
    /// The process's.
    pub pagemap: Pagemap,
    /// The zero page, if frame numbers are to be seen.
    pub zero_frame: Option<Frame>,
    /// /proc/kpageflags, a word a frame, if it is to be read.
    page_flags: Option<OwnedFd>,
    entries: Entries,
    pid: i32,
    program: u32,
}

impl Counter {
    /// For that process.
    ///
    /// # Errors
    /// As [`Pagemap::open`].
    pub fn open(pid: i32, page_bytes: usize) -> Result<Self, Errno> {
        Ok(Self {
            pagemap: Pagemap::open(pid, page_bytes)?,
            entries: Entries::new()?,
            zero_frame: zero_frame(page_bytes)?,
            page_flags: open(c"/proc/kpageflags").ok(),
            pid,
            program: program(pid)?,
        })
    }

    /// The process.
    #[must_use]
    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// KiB in a page.
    #[must_use]
    pub const fn page_kib(&self) -> u64 {
        self.pagemap.page_bytes / 1024
    }

    /// Whether the zero page cannot be told from others by its frame.
    #[must_use]
    pub const fn frames_are_hidden(&self) -> bool {
        self.zero_frame.is_none()
    }

    /// Whether the process is still the one that was opened. That its page table is there is not
    /// enough: after an exec, who was forked with vfork(2) may still hold it.
    ///
    /// # Errors
    /// [`CensusError::Gone`].
    pub fn is_alive(&mut self) -> Result<(), CensusError> {
        let first = self.pagemap.page_bytes;
        self.pagemap.look(0, first, &mut self.entries)?;
        match program(self.pid) {
            Ok(program) if program == self.program => Ok(()),
            _ => Err(CensusError::Gone),
        }
    }

    /// Counts the pages of `start..end` in windows; `seen` is told the bytes of each.
    ///
    /// # Errors
    /// See [`CensusError`].
    pub fn count(
        &mut self,
        start: u64,
        end: u64,
        seen: &mut dyn FnMut(u64),
    ) -> Result<Census, CensusError> {
        let mut census = Census::default();
        let mut at = start;
        while at < end {
            let next = window_end(at, end, self.pagemap.page_bytes);
            let words = self.pagemap.look(at, next, &mut self.entries)?;
            for &word in words {
                census.count(Entry(word), self.zero_frame);
            }
            if is_reserve(words) {
                census.out_of_reach += CHUNK_PAGES;
            }
            seen(next - at);
            at = next;
        }
        Ok(census)
    }

    /// Whether bit 56 says the truth of every anonymous page of `start..end`, whatever of `doubts`
    /// there is on this machine, by the flags of frames: only root is told. Unknown is no.
    pub fn is_sure(&mut self, start: u64, end: u64, doubts: Doubts) -> bool {
        let Some(flags) = &self.page_flags else {
            return false;
        };
        let page_bytes = self.pagemap.page_bytes;
        let mut at = start;
        while at < end {
            let Ok(words) = self.pagemap.look(at, end, &mut self.entries) else {
                return false;
            };
            if !doubts.are_ruled_out(words, at, page_bytes, flags) {
                return false;
            }
            at += words.len() as u64 * page_bytes;
        }
        true
    }
}

/// The frame of the zero page, by a page of our own that was read and never written; `None`
/// where frame numbers are hidden.
fn zero_frame(page_bytes: usize) -> Result<Option<Frame>, Errno> {
    let mut page = Region::not_inherited(page_bytes)?;
    page.small_pages();
    core::hint::black_box(page.words_mut().iter().fold(0, |sum, word| sum | word));
    Ok(own_entry(page.address() as u64, page_bytes as u64)?.frame())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::pagemap::bits::{EXCLUSIVE, FILE, GUARD, PRESENT, SWAPPED};

    #[test]
    fn each_page_is_one_thing() {
        let zero = Entry(PRESENT | 3).frame();
        let mut census = Census::default();
        for word in [
            PRESENT | EXCLUSIVE | 7,
            PRESENT | 8,
            PRESENT | 3,
            PRESENT | FILE | EXCLUSIVE | 9,
            PRESENT | FILE | 9,
            SWAPPED | 3,
            SWAPPED | GUARD,
            0,
            EXCLUSIVE,
        ] {
            census.count(Entry(word), zero);
        }
        let want = Census {
            exclusive: 1,
            shared_anon: 1,
            zero: 1,
            file: 2,
            swapped: 1,
            guard: 1,
            absent: 2,
            ..Census::default()
        };
        assert_eq!(census, want);
        assert_eq!(census.present(), 5);
    }

    #[test]
    fn without_frames_a_zero_page_may_be_shared() {
        let mut census = Census::default();
        census.count(Entry(PRESENT), None);
        assert_eq!((census.zero, census.shared_anon), (0, 1));
    }

    #[test]
    fn smaps_tells_zero_pages_from_shared_ones() {
        let known = |pages| {
            let mut census = Census {
                exclusive: 4,
                shared_anon: 10,
                ..Census::default()
            };
            census.know_anonymous(pages);
            (census.shared_anon, census.zero)
        };
        assert_eq!(known(14), (10, 0));
        assert_eq!(known(9), (5, 5));
        assert_eq!(known(4), (0, 10));
        assert_eq!(known(20), (10, 0));
    }

    #[test]
    fn smaps_tells_what_is_in_swap() {
        let known = |pages| {
            let mut census = Census {
                swapped: 4,
                absent: 10,
                ..Census::default()
            };
            census.know_swap(pages);
            assert_eq!(census.in_swap() + census.absent, 14);
            (census.swapped, census.swapped_shared)
        };
        assert_eq!(known(4), (4, 0));
        assert_eq!(known(7), (4, 3));
        assert_eq!(known(1), (1, 0));
        assert_eq!(known(0), (0, 0));
        assert_eq!(known(99), (4, 10));
    }

    /// Three pages written, one only read, one never touched, in this very process.
    #[test]
    fn what_is_done_to_pages_is_what_is_counted() {
        const PAGE: usize = 4096;
        let mut region = Region::new(5 * PAGE).unwrap();
        region.small_pages();
        for page in 0..3 {
            region.bytes_mut()[page * PAGE] = 1;
        }
        core::hint::black_box(region.bytes_mut()[3 * PAGE]);
        let start = region.address() as u64;
        let mut counter = Counter::open(std::process::id().cast_signed(), PAGE).unwrap();
        let census = counter
            .count(start, start + 5 * PAGE as u64, &mut |_| ())
            .unwrap();
        assert_eq!((census.exclusive, census.absent), (3, 1));
        assert_eq!(census.zero + census.shared_anon, 1);
    }
}
