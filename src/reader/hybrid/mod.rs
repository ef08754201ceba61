//! `hybrid`: reads without changing anything. For each run of pages, pagemap decides the way
//! ([`decide`]): what has nothing to unshare is pinned by process_vm_readv(2), as many runs a
//! call as there are; what fork may share is copied through /proc/PID/mem; what is not in
//! memory is not asked for.
//!
//! What is exclusive by the look may not be so for a pin: the target can fork in between, and bit 56
//! does not say all ([`trust`]). A pin splits such a page then, or unshares it in place. The kernel
//! charges each to the reader as a fault (since Linux 5.9), [`Care::pin_faults`]; after the first
//! call with one, no anonymous page is pinned any more.

pub mod decide;
mod hands;
mod joined;
pub mod large;
mod look;
mod swap;
mod trust;
mod window;

use super::files::Late;
use super::map_files::Behind;
use super::own_page::own_entry;
use super::{End, Pass, Reader, Seen, Target};
use crate::proc::status;
use crate::sys::Errno;
use crate::sys::file::{Process, open_proc, read_proc};
use crate::sys::page_lists;
use crate::sys::process::own_faults;
use crate::sys::remote::RemoteSpan;
use decide::{PIN_PAGES_MIN, Rules, Runs, Way, Why};
use hands::{Hands, Io};
pub use joined::{merging_was_never_used, nothing_is_joined};
use large::Large;
use look::Look;
pub use swap::nothing_is_half_swapped;

/// Bytes that are gathered before a call, unless one block is larger. More would leave the
/// cache that the source has to pass through as well (measured: 1 MiB is slower in small VMAs).
pub const WINDOW_BYTES: usize = 256 << 10;

/// Nothing at all could be read: every page was left alone.
pub(super) const LEFT_UNREAD: Errno = Errno::NODATA;

/// What the reader may do to the target; nothing, unless said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// Bring in swapped pages: changes the target's RSS.
    pub swap_in: bool,
    /// Leave pages of files that the target has not faulted in, instead of reading the file.
    pub no_files: bool,
    /// One walk over the target's mappings for all passes, which go up through its addresses:
    /// for who reads a process in many passes, of which each would begin the walk anew. What the
    /// page table showed ahead of one pass is not looked at again for the next, and what no reader
    /// gets does not end a pass.
    pub one_walk: bool,
}

/// What the passes over a process have shown, for the reader of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// A pin was charged a fault: no anonymous page is pinned any more.
    pub(super) charged: bool,
    /// Files that could not be opened in time.
    pub(super) late: Late,
}

/// Why anonymous pages are copied that pagemap calls the target's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The machine has large folios of anonymous memory, or may have.
    LargeFolios,
    /// KSM may have joined pages of the target, or the machine's swap is in use.
    KsmOrSwap,
    /// A pin was charged a fault, or faults cannot be counted.
    Fault,
}

impl Obstacle {
    /// In a word, for a row.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LargeFolios => "large-folios",
            Self::KsmOrSwap => "ksm-or-swap",
            Self::Fault => "fault",
        }
    }
}

/// Pages by the way they went, over all passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Care {
    /// Pinned by process_vm_readv.
    pub pinned: u64,
    /// Copied through /proc/PID/mem.
    pub copied: u64,
    /// Zeros by definition.
    pub zeros: u64,
    /// Read from the file behind the mapping.
    pub filed: u64,
    /// Left unread, in the order of [`Why::ALL`].
    pub left: [u64; Why::ALL.len()],
    /// Page faults charged to the reader within its calls that pin: pages that were not the
    /// target's own, or no longer, and were split, or unshared in place; pages that went after the
    /// look, too. All of one call, the last that pinned anonymous pages. `None`: the counter cannot be
    /// read, and none were pinned.
    pub pin_faults: Option<u64>,
    /// Why no anonymous page is pinned, if none is, or none any more.
    pub not_pinned: Option<Obstacle>,
    /// Pages that may be of a huge page mapped as a whole are copied, whosever they are.
    pub wholes_copied: bool,
}

impl Care {
    /// Pages that were left unread.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.left.iter().sum()
    }

    fn count_faults(&mut self, faults: Option<u64>) {
        self.pin_faults = self.pin_faults.zip(faults).map(|(sum, more)| sum + more);
    }

    fn count(&mut self, way: Way, pages: u64) {
        let place = match way {
            Way::PinOwn | Way::PinFile => &mut self.pinned,
            Way::Copy => &mut self.copied,
            Way::Zeros => &mut self.zeros,
            Way::File => &mut self.filed,
            Way::Leave(why) => &mut self.left[why as usize],
            // Resolved before it is counted.
            Way::Absent => return,
        };
        *place += pages;
    }
}

/// `hybrid`.
pub struct Hybrid {
    look: Look,
    rules: Rules,
    hands: Hands,
    one_walk: bool,
}

impl Hybrid {
    /// Opens the target's memory and page table.
    ///
    /// # Errors
    /// As open(2) of /proc/PID/mem and pagemap; `ENOMEM`.
    pub fn open(target: &Target<'_>) -> Result<Self, Errno> {
        let pid = target.pid;
        let pagemap = open_proc(Process::Id(pid), "pagemap")?;
        let large = large_folios(pid, target.page_bytes as u64);
        let huge_pages = match large {
            Large::Whole(bytes) => Some((bytes / target.page_bytes as u64).max(1)),
            Large::None | Large::Any => None,
        };
        let rules = Rules {
            exclusive_is_safe: nothing_is_joined(pid) && nothing_is_half_swapped(),
            large_folios_possible: large == Large::Any,
            swap_in: target.manners.swap_in,
            pin_pages_min: PIN_PAGES_MIN,
        };
        let files = match target.manners.no_files {
            true => None,
            false => Some(Behind::open(target, true)?),
        };
        let mem = open_proc(Process::Id(pid), "mem")?;
        let counted = own_faults().map(|_| 0);
        let may_pin = counted.is_some() && !target.learned.charged;
        let obstacle = match (rules.large_folios_possible, rules.exclusive_is_safe) {
            (true, _) => Some(Obstacle::LargeFolios),
            (false, false) => Some(Obstacle::KsmOrSwap),
            (false, true) => (!may_pin).then_some(Obstacle::Fault),
        };
        // What one of those lists refers to would be copied by a pin. Where they cannot be emptied,
        // the first page that is ends the pinning. One walk of many passes empties them itself.
        if obstacle.is_none() && !target.manners.one_walk {
            let _ = page_lists::drain();
        }
        let care = Care {
            pin_faults: counted,
            not_pinned: obstacle,
            wholes_copied: huge_pages.is_some(),
            ..Care::default()
        };
        // Last, and whole: what is made in parts is copied together.
        Ok(Self {
            look: Look::new(pid, target.page_bytes as u64, huge_pages, pagemap),
            rules,
            hands: Hands::new(target, mem, files, care),
            one_walk: target.manners.one_walk,
        })
    }

    fn every_span(
        &mut self,
        spans: &mut dyn Iterator<Item = RemoteSpan>,
        io: &mut Io<'_, '_>,
    ) -> Result<(), End> {
        for span in spans {
            let end = span.start.plus(span.len);
            let mut start = span.start;
            while start < end {
                let room = self.hands.room(io)?;
                let seen = self.look.at(start, end).map_err(End::Failed)?;
                let len = (end.0 - start.0).min(room).min(seen);
                self.part(RemoteSpan { start, len }, io)?;
                start = start.plus(len);
            }
        }
        Ok(())
    }

    /// Memory that was looked at and that the buffer has room for.
    #[inline]
    fn part(&mut self, part: RemoteSpan, io: &mut Io<'_, '_>) -> Result<(), End> {
        let page_bytes = self.hands.page_bytes;
        let base = part.start.0 - part.start.0 % page_bytes;
        let end = part.start.plus(part.len);
        let rules = Rules {
            exclusive_is_safe: self.rules.exclusive_is_safe && self.hands.pins(),
            ..self.rules
        };
        for run in Runs::new(self.look.entries(part), rules) {
            let first = RemoteSpan {
                start: crate::sys::RemoteAddr(base + run.first as u64 * page_bytes),
                len: run.pages as u64 * page_bytes,
            };
            // The first and the last page may belong to the part by half.
            let start = first.start.max(part.start);
            let len = first.start.plus(first.len).min(end).0 - start.0;
            self.hands.run(run.way, RemoteSpan { start, len }, io)?;
        }
        Ok(())
    }
}

impl Reader for Hybrid {
    fn passed_over(&self) -> u64 {
        self.hands.care.unread() * self.hands.page_bytes
    }

    fn care(&self) -> Option<&Care> {
        Some(&self.hands.care)
    }

    fn learned(&self) -> Learned {
        self.hands.learned()
    }

    fn pass(
        &mut self,
        spans: &mut dyn Iterator<Item = RemoteSpan>,
        block_bytes: usize,
        buffer: &mut [u8],
        seen: Seen<'_>,
    ) -> Pass {
        let left = self.hands.care.unread();
        self.hands.begin();
        if !self.one_walk {
            self.look.forget();
            self.hands.forget();
        }
        let mut io = Io {
            buffer: &mut buffer[..block_bytes.max(WINDOW_BYTES)],
            seen,
            pass: Pass::NOTHING,
        };
        let ended = self.every_span(spans, &mut io);
        // What was gathered comes before what failed.
        let ended = self.hands.flush(&mut io).and(ended);
        let mut pass = io.pass;
        pass.end = match ended {
            Ok(()) if pass.bytes == 0 && self.hands.care.unread() > left => {
                End::Failed(LEFT_UNREAD)
            }
            Ok(()) => End::Complete,
            Err(end) => end,
        };
        pass
    }
}

/// What large folios concern that process. Who sees no frames cannot tell pages of a huge page from
/// others, unless the process has none (`AnonHugePages` of smaps_rollup: those mapped as a whole).
fn large_folios(pid: i32, page_bytes: u64) -> Large {
    match large::now() {
        Large::Whole(_) if !sees_frames(page_bytes) => {
            let mut buffer = [0; 4096];
            let rollup = read_proc(Process::Id(pid), "smaps_rollup", &mut buffer);
            match rollup.map(|text| status::kib_field(text, b"AnonHugePages")) {
                Ok(Some(0)) => Large::None,
                _ => Large::Any,
            }
        }
        large => large,
    }
}

/// Whether pagemap shows the frame of a page that is surely in memory: of the stack.
fn sees_frames(page_bytes: u64) -> bool {
    let word = 0_u64;
    let entry = own_entry((&raw const word).addr() as u64, page_bytes);
    entry.is_ok_and(|entry| entry.frame().is_some())
}
