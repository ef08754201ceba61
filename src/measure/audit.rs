//! One pass of a reader over a live process, window by window: look at the page table, read,
//! look again. What must be kept between the two looks is one window's entries, so memory does
//! not grow with the process.

use super::census::{CensusError, Counter, Entries, is_reserve, window_end};
use super::charge::Charges;
use super::flags::{Marks, Owners};
use super::tally::Ground;
pub use super::tally::Tally;
use crate::reader::hybrid::nothing_is_half_swapped;
use crate::reader::vma::Vma;
use crate::reader::{End, Reader};
use crate::sys::errno::is_lack;
use crate::sys::process::{Faults, own_faults};
use crate::sys::remote::RemoteSpan;
use crate::sys::{Clock, Errno, Region, RemoteAddr};

/// Why a pass cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process has ended, or is another program now.
    Gone,
    /// The reader may not.
    Refused(Errno),
    /// The tool lacks descriptors or memory, which says nothing of the process.
    Lacks(Errno),
    /// The page table cannot be read.
    Pagemap(Errno),
}

impl From<CensusError> for Ended {
    fn from(error: CensusError) -> Self {
        match error {
            CensusError::Kernel(errno) => Self::Pagemap(errno),
            CensusError::Gone => Self::Gone,
        }
    }
}

/// What all passes over a process share.
pub struct Auditor {
    /// Times the calls.
    pub clock: Clock,
    /// The process's pages.
    pub counter: Counter,
    /// Where the bytes go, to be overwritten by the next.
    pub buffer: Region,
    /// Bytes asked for by one read; of whole pages if the reader counts what it leaves unread.
    pub block_bytes: usize,
    /// Bytes in a page.
    pub page_bytes: u64,
    /// What the kernel charges the tool; nothing unless said.
    pub charges: Charges,
    /// Whether the process stands still.
    pub stands: bool,
    owners: Owners,
    before: (Entries, Marks),
    after: (Entries, Marks),
    /// Of a look behind that at the flags.
    again: Entries,
}

impl Auditor {
    /// With memory of its own, touched.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(
        clock: Clock,
        counter: Counter,
        block_bytes: usize,
        buffer_bytes: usize,
        page_bytes: usize,
    ) -> Result<Self, Errno> {
        let mut buffer = Region::not_inherited(buffer_bytes)?;
        buffer.touch(page_bytes);
        Ok(Self {
            clock,
            counter,
            buffer,
            block_bytes,
            page_bytes: page_bytes as u64,
            charges: Charges::default(),
            stands: false,
            owners: Owners::open(page_bytes)?,
            before: (Entries::new()?, Marks::NONE),
            after: (Entries::new()?, Marks::NONE),
            again: Entries::new()?,
        })
    }

    /// Readies it for a pass.
    pub fn begin(&mut self) {
        self.owners.begin();
    }

    /// Whether what was told of huge pages in the pass held until its end: else the reader may have copied
    /// pages that were called the process's own.
    #[must_use]
    pub fn told_the_truth(&self) -> bool {
        self.owners.told_the_truth()
    }

    /// Reads a VMA in windows; `seen` is told of each how many bytes it has. Where what is absent of
    /// it was never written, windows of nothing else are left out: to read a reserve of terabytes
    /// would take as long, and make the process's page tables as large.
    ///
    /// # Errors
    /// See [`Ended`]; `tally` holds what was done until then.
    pub fn read(
        &mut self,
        reader: &mut dyn Reader,
        vma: &Vma,
        tally: &mut Tally,
        seen: &mut dyn FnMut(u64),
    ) -> Result<(), Ended> {
        let mut at = vma.start;
        let entries = tally.fate.in_swap;
        while at < vma.end {
            let next = window_end(at, vma.end, self.page_bytes);
            self.window(reader, (at, next), vma, tally)?;
            seen(next - at);
            at = next;
        }
        let entries = tally.fate.in_swap - entries;
        let pages = vma.swap_kib.map(|kib| kib / self.counter.page_kib());
        tally.fate.swap_unseen |= vma.has_file && pages.is_none_or(|pages| pages > entries);
        Ok(())
    }

    fn window(
        &mut self,
        reader: &mut dyn Reader,
        (start, end): (u64, u64),
        vma: &Vma,
        tally: &mut Tally,
    ) -> Result<(), Ended> {
        let pagemap = &self.counter.pagemap;
        let (entries, marks_before) = &mut self.before;
        let before = pagemap.look(start, end, entries)?;
        if !vma.has_file && is_reserve(before) {
            tally.left_out += end - start;
            return Ok(());
        }
        // Who sees frames sees what is in swap. Others ask when they have looked: what was not there when
        // smaps was read may be by now.
        let hidden = self.counter.frames_are_hidden();
        let no_swap = hidden && !vma.may_be_swapped() && nothing_is_half_swapped();
        tally.readable += end - start;
        self.owners.look(before, marks_before);
        if self.owners.tell() {
            marks_before.keep_same(before, pagemap.look(start, end, &mut self.again)?);
        }
        let mut calls = Calls {
            clock: self.clock,
            block_bytes: self.block_bytes,
            buffer: self.buffer.bytes_mut(),
            page_bytes: self.page_bytes,
        };
        let was = *tally;
        let ended = calls.all(reader, start, end, tally);
        let (entries, marks_after) = &mut self.after;
        let after = pagemap.look(start, end, entries)?;
        self.owners.look(after, marks_after);
        if self.owners.tell() {
            marks_after.keep_same(after, pagemap.look(start, end, &mut self.again)?);
        }
        let ground = Ground {
            zero: self.counter.zero_frame,
            page_bytes: self.page_bytes,
            charges: self.charges,
            stands: self.stands,
            no_swap,
            clean: vma
                .in_memory
                .map_or(u64::MAX, |found| found.clean_kib / self.counter.page_kib()),
            is_told: marks_before.complete && marks_after.complete,
        };
        let marks = (&*marks_before, &*marks_after);
        tally.compare(&was, (before, after), marks, vma, &ground);
        ended
    }
}

/// The reader's calls for one window.
struct Calls<'b> {
    clock: Clock,
    block_bytes: usize,
    buffer: &'b mut [u8],
    page_bytes: u64,
}

impl Calls<'_> {
    /// Reads all of it, page by page past what cannot be read.
    fn all(
        &mut self,
        reader: &mut dyn Reader,
        start: u64,
        end: u64,
        tally: &mut Tally,
    ) -> Result<(), Ended> {
        let mut at = start;
        let mut unread_to = None;
        while at < end {
            let (reached, came, ending) = self.timed(reader, at, end, tally);
            // Passed over: a reader may leave pages alone and go on behind them.
            let left = (reached - at).saturating_sub(came);
            let errno = match ending {
                End::Complete => {
                    tally.miss(end - at - came, None, Errno::NODATA);
                    return Ok(());
                }
                End::Failed(Errno::SRCH) => return Err(Ended::Gone),
                End::Failed(errno) if reader.is_refusal(errno) => {
                    return Err(Ended::Refused(errno));
                }
                End::Failed(errno) if is_lack(errno) => return Err(Ended::Lacks(errno)),
                End::Failed(errno) => errno,
                // The second look tells whether the process is gone.
                End::Short => Errno::NODATA,
            };
            tally.miss(left, None, Errno::NODATA);
            let next = match errno {
                // No file behind the mapping, says map-files: nor behind the next page.
                Errno::NODEV => end,
                // All of it was left alone.
                _ if reached == end => end,
                _ => (reached - reached % self.page_bytes + self.page_bytes).min(end),
            };
            tally.miss(next - reached, Some(unread_to == Some(reached)), errno);
            unread_to = Some(next);
            at = next;
        }
        Ok(())
    }

    /// How far the reader came, at most to `end`, how many bytes it brought, and how it ended.
    #[inline(never)]
    fn timed(
        &mut self,
        reader: &mut dyn Reader,
        at: u64,
        end: u64,
        tally: &mut Tally,
    ) -> (u64, u64, End) {
        let span = RemoteSpan {
            start: RemoteAddr(at),
            len: end - at,
        };
        let mut reached = at;
        let mut seen = |start: RemoteAddr, block: &[u8]| reached = start.0 + block.len() as u64;
        let mut spans = core::iter::once(span);
        let passed_over = reader.passed_over();
        let before = own_faults();
        let start_ns = self.clock.now_ns();
        let pass = reader.pass(&mut spans, self.block_bytes, self.buffer, Some(&mut seen));
        let end_ns = self.clock.now_ns();
        let faults = own_faults()
            .zip(before)
            .map(|(after, before)| after.since(before));
        tally.ns += end_ns.saturating_sub(start_ns);
        tally.bytes += pass.bytes;
        tally.faults = tally.faults.zip(faults).map(|(sum, more)| Faults {
            minor: sum.minor + more.minor,
            major: sum.major + more.major,
        });
        // What it has left behind the last block that came does not come with the next call.
        let passed_over = reader.passed_over() - passed_over;
        let reached = reached.max(at + pass.bytes + passed_over);
        debug_assert!(reached <= end, "{at:x} to {end:x}: {reached:x}");
        (reached.min(end), pass.bytes, pass.end)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fate::Fate;
    use super::super::tally::vma;
    use super::*;
    use crate::reader::{BlockReader, Method};

    /// Memory with holes: pages of 16 bytes, of which some cannot be read.
    struct Holes(&'static [u64]);

    impl BlockReader for Holes {
        fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
            let ends = self.0.iter().find(|&&page| page >= start.0 / 16);
            match ends.map(|page| (page * 16).saturating_sub(start.0)) {
                Some(0) => Err(Errno::FAULT),
                Some(left) => Ok(block.len().min(left as usize)),
                None => Ok(block.len()),
            }
        }
    }

    #[test]
    fn behind_what_cannot_be_read_reading_goes_on() {
        let read = |holes| {
            let mut calls = Calls {
                clock: Clock::system_call(),
                block_bytes: 32,
                buffer: &mut [0; 32],
                page_bytes: 16,
            };
            let mut tally = Tally::default();
            calls.all(&mut Holes(holes), 0, 160, &mut tally).unwrap();
            assert_eq!(tally.bytes + tally.unread, 160);
            (tally.bytes, tally.unread_runs, tally.errno)
        };
        assert_eq!(read(&[]), (160, 0, None));
        assert_eq!(read(&[3]), (144, 1, Some(Errno::FAULT)));
        assert_eq!(read(&[0, 4, 5, 9]), (96, 3, Some(Errno::FAULT)));
    }

    /// Leaves the first eight pages of 16 bytes unread, and fails at each one behind them.
    struct Leaves(u64);

    impl Reader for Leaves {
        fn passed_over(&self) -> u64 {
            self.0
        }

        fn pass(
            &mut self,
            spans: &mut dyn Iterator<Item = RemoteSpan>,
            _: usize,
            _: &mut [u8],
            _: crate::reader::Seen<'_>,
        ) -> crate::reader::Pass {
            let span = spans.next().unwrap();
            self.0 += (8 * 16_u64).saturating_sub(span.start.0).min(span.len);
            crate::reader::Pass {
                bytes: 0,
                end: End::Failed(Errno::IO),
                last: span,
            }
        }
    }

    #[test]
    fn what_was_left_in_front_of_an_error_is_not_come_to_again() {
        let mut reader = Leaves(0);
        let mut calls = Calls {
            clock: Clock::system_call(),
            block_bytes: 32,
            buffer: &mut [0; 32],
            page_bytes: 16,
        };
        let mut tally = Tally::default();
        calls.all(&mut reader, 0, 160, &mut tally).unwrap();
        assert_eq!((reader.0, tally.unread), (128, 160));
        // The first of them was left, and did not fail.
        assert_eq!(tally.errno, Some(Errno::NODATA));
    }

    #[test]
    fn refusal_and_end_stop_the_pass() {
        struct Says(Errno);
        impl BlockReader for Says {
            fn read(&mut self, _: RemoteAddr, _: &mut [u8]) -> Result<usize, Errno> {
                Err(self.0)
            }
        }
        for (errno, want) in [
            (Errno::SRCH, Ended::Gone),
            (Errno::PERM, Ended::Refused(Errno::PERM)),
            (Errno::MFILE, Ended::Lacks(Errno::MFILE)),
        ] {
            let mut calls = Calls {
                clock: Clock::system_call(),
                block_bytes: 32,
                buffer: &mut [0; 32],
                page_bytes: 16,
            };
            let mut tally = Tally::default();
            assert_eq!(calls.all(&mut Says(errno), 0, 160, &mut tally), Err(want));
            assert_eq!((tally.bytes, tally.unread), (0, 0));
        }
    }

    /// This very process, which shares nothing that its own reading could change.
    #[test]
    fn reading_oneself_with_proc_changes_nothing() {
        const PAGE: usize = 4096;
        let pid = std::process::id().cast_signed();
        let mut region = Region::new(8 * PAGE).unwrap();
        region.small_pages();
        region.touch(PAGE);
        let counter = Counter::open(pid, PAGE).unwrap();
        let clock = Clock::system_call();
        let block = 2 * PAGE;
        let mut auditor = Auditor::new(
            clock,
            counter,
            block,
            Method::Proc.buffer_bytes(block),
            PAGE,
        )
        .unwrap();
        let start = region.address() as u64;
        let mut tally = Tally {
            faults: Some(Faults::default()),
            ..Tally::default()
        };
        let mut windows = 0;
        let mut reader = crate::reader::ProcMem::open(pid).unwrap();
        auditor
            .read(
                &mut reader,
                &vma(start, start + 8 * PAGE as u64, "00:00 0 "),
                &mut tally,
                &mut |bytes| {
                    windows += bytes;
                },
            )
            .unwrap();
        assert_eq!((tally.bytes, tally.unread, windows), (32768, 0, 32768));
        assert_eq!(tally.fate, Fate::default());
        assert_eq!(
            auditor
                .counter
                .count(start, start + 4096, &mut |_| ())
                .unwrap()
                .exclusive,
            1
        );
    }

    /// Five windows of address space, of which one page was written.
    #[test]
    fn a_mere_reserve_is_left_out() {
        const PAGE: u64 = 4096;
        const WINDOW: u64 = crate::measure::census::CHUNK_PAGES * PAGE;
        let pid = std::process::id().cast_signed();
        let mut region = Region::new(5 * WINDOW as usize).unwrap();
        region.small_pages();
        let first = (region.address() as u64).next_multiple_of(WINDOW);
        let page = first + WINDOW + 7 * PAGE - region.address() as u64;
        region.bytes_mut()[page as usize] = 1;
        let read = |file| {
            let counter = Counter::open(pid, PAGE as usize).unwrap();
            let clock = Clock::system_call();
            let mut auditor = Auditor::new(clock, counter, 1 << 20, 1 << 20, 4096).unwrap();
            let mut reader = crate::reader::ProcMem::open(pid).unwrap();
            let mut tally = Tally::default();
            let vma = vma(first, first + 4 * WINDOW, file);
            let read = auditor.read(&mut reader, &vma, &mut tally, &mut |_| ());
            assert_eq!(read, Ok(()));
            (tally.bytes, tally.readable, tally.left_out)
        };
        assert_eq!(read("00:00 0 "), (WINDOW, WINDOW, 3 * WINDOW));
        assert_eq!(read("08:01 5 /file"), (4 * WINDOW, 4 * WINDOW, 0));
    }
}
