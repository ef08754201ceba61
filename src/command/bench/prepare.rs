//! Everything that can go wrong before a page is populated: settings that do not fit
//! each other, too little memory, too many VMAs.

use super::super::room;
use crate::cli::bench::{Cut, Options, Pages, Pin};
use crate::error::Error;
use crate::fixture::{Arena, Exclusive, Layout, kept_bytes};
use crate::measure::case::Bench;
use crate::measure::evidence::Memory;
use crate::measure::plan::{LIST_MAX, List, Plan};
use crate::sys::file::read_number;
use crate::sys::process::proc_is_ours;
use crate::sys::segments::Backing;
use crate::sys::{Clock, Region, Shape, cpu};
use core::ffi::CStr;
use heapless::Vec;

/// A layout with its sizes worked out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Laid {
    pub(super) layout: Layout,
    pub(super) shape: Shape,
}

/// Options made concrete for this machine's page size.
pub(super) struct Prepared {
    pub(super) layouts: Vec<Laid, { LIST_MAX + 1 }>,
    pub(super) plan: Plan,
    pub(super) page_bytes: usize,
    backing: Backing,
    buffer_bytes: usize,
}

/// What the machine has to offer.
pub(super) struct Room {
    available_bytes: u64,
    /// vm.max_map_count; `None` where it cannot be read.
    map_count_max: Option<u64>,
}

/// VMAs of the program itself (text, stack, vDSO, tables, buffer) and the two sealed
/// margins of an arena, with room to spare.
const OWN_VMAS: u64 = 64;
/// Memory of the program besides arena, tables and buffer, page tables of small
/// mappings included.
const OWN_BYTES: u64 = 4 << 20;

/// Pins to the CPU asked for; gives its number.
pub(in crate::command) fn pin(pin: Pin) -> Result<Option<usize>, Error> {
    let cpu = match pin {
        Pin::None => return Ok(None),
        Pin::Cpu(cpu) => cpu,
        Pin::Current => cpu::current().map_err(Error::kernel("ask for the current CPU"))?,
    };
    cpu::pin(cpu).map_err(|errno| Error::Cpu(cpu, errno))?;
    Ok(Some(cpu))
}

impl Prepared {
    pub(super) fn new(options: &Options, page_bytes: usize) -> Result<Self, Error> {
        let mut blocks = List::new();
        for &block in &options.blocks {
            if block > options.mb << 20 {
                return Err(Error::Setting(
                    "--block",
                    block,
                    "must be at most the arena of --mb, in bytes ",
                    options.mb << 20,
                ));
            }
            // Both lists have the same capacity.
            let _ = blocks.push(block as usize);
        }
        if options.pages == Pages::Thp && options.exclusive != Exclusive::None {
            return Err(Error::Conflict(
                "--exclusive takes --pages small: a child that writes to a shared huge page gets \
                 single pages of its own",
            ));
        }
        let pages = (options.mb << 20) / page_bytes as u64;
        if let Exclusive::Runs(run) = options.exclusive
            && run as u64 > pages
        {
            return Err(Error::Setting(
                "--exclusive",
                run as u64,
                "must be at most the pages of the arena of --mb, ",
                pages,
            ));
        }
        let largest = blocks.iter().copied().max().unwrap_or(0).max(page_bytes);
        let need = options
            .methods
            .iter()
            .map(|method| method.buffer_bytes(largest));
        Ok(Self {
            layouts: layouts(options, page_bytes)?,
            page_bytes,
            backing: backing(options.pages)?,
            buffer_bytes: need.max().unwrap_or(largest),
            plan: Plan {
                methods: options.methods.clone(),
                blocks,
                repeats: options.repeats,
                order: options.order,
                seed: options.common.seed,
            },
        })
    }

    /// Whether the largest layout fits, with every page of it split, and how many bytes it
    /// leaves.
    pub(super) fn check_room(&self, room: &Room) -> Result<u64, Error> {
        let shapes = || self.layouts.iter().map(|laid| laid.shape);
        let needed = shapes().map(|shape| self.needed_bytes(&shape)).max();
        let needed = needed.unwrap_or(0);
        if needed > room.available_bytes {
            return Err(Error::Memory {
                needed_mib: needed.div_ceil(1 << 20),
                available_mib: room.available_bytes >> 20,
            });
        }
        let vmas = shapes().map(|shape| shape.vmas() as u64 + OWN_VMAS).max();
        match (vmas, room.map_count_max) {
            (Some(needed), Some(limit)) if needed > limit => Err(Error::Vmas { needed, limit }),
            _ => Ok(room.available_bytes - needed),
        }
    }

    /// Arena and its full split, what the reserve keeps, page tables of parent, child and
    /// reserve, which has a word for each page, buffer, tables.
    fn needed_bytes(&self, shape: &Shape) -> u64 {
        let readable = shape.readable_bytes() as u64;
        // A last-level table of one page maps page_bytes / 8 pages.
        let page_tables = 4 * 8 * (shape.span_bytes() / self.page_bytes) as u64;
        let kept = kept_bytes(readable, self.page_bytes as u64);
        2 * readable + kept + page_tables + self.buffer_bytes as u64 + OWN_BYTES
    }

    /// The memory and settings all cases share; `charges_faults`: the kernel is one that charges
    /// them to who reads.
    pub(super) fn bench(
        &self,
        options: &Options,
        clock: Clock,
        charges_faults: bool,
    ) -> Result<Bench, Error> {
        let map = Error::kernel("map memory for tables and buffer");
        let mut buffer = Region::not_inherited(self.buffer_bytes).map_err(&map)?;
        buffer.touch(self.page_bytes);
        let pages = self
            .layouts
            .iter()
            .map(|laid| laid.shape.span_bytes() / self.page_bytes);
        let one_page = Shape {
            segments: 1,
            segment_bytes: self.page_bytes,
            gap_bytes: 0,
        };
        Ok(Bench {
            clock,
            buffer,
            memory: Memory::new(pages.max().unwrap_or(0)).map_err(&map)?,
            rehearsal: Arena::populate(one_page, Backing::Small, self.page_bytes).map_err(&map)?,
            warm_passes: options.warm,
            first_write: options.first_write,
            exclusive: options.exclusive,
            backing: self.backing,
            faults_are_charged: self.backing == Backing::Small && charges_faults,
        })
    }
}

fn layouts(options: &Options, page_bytes: usize) -> Result<Vec<Laid, { LIST_MAX + 1 }>, Error> {
    let mut layouts = Vec::new();
    let mut add = |layout: Layout, segment_pages| {
        let shape = layout.shape(options.mb, page_bytes).ok_or(Error::Setting(
            "--segment-pages",
            segment_pages,
            "must be at most the pages of the arena of --mb, ",
            (options.mb << 20) / page_bytes as u64,
        ))?;
        // At most one contiguous layout and one for each of LIST_MAX segment sizes.
        let _ = layouts.push(Laid { layout, shape });
        Ok::<(), Error>(())
    };
    for cut in &options.cuts {
        match cut {
            Cut::Contiguous => add(Layout::Contiguous, 0)?,
            Cut::Vma => {
                for &segment_pages in &options.segment_pages {
                    add(Layout::Vma { segment_pages }, segment_pages)?;
                }
            }
        }
    }
    Ok(layouts)
}

fn backing(pages: Pages) -> Result<Backing, Error> {
    const HUGE_BYTES: &CStr = c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    match pages {
        Pages::Small => Ok(Backing::Small),
        Pages::Thp => match read_number(HUGE_BYTES) {
            Ok(bytes) => Ok(Backing::Huge(bytes as usize)),
            Err(errno) => Err(Error::Kernel(
                "read the size of huge pages (hpage_pmd_size)",
                errno,
            )),
        },
    }
}

impl Room {
    pub(super) fn now() -> Result<Self, Error> {
        if !proc_is_ours() {
            return Err(Error::NO_PROC);
        }
        let available_bytes = room::available_bytes()?;
        Ok(Self {
            available_bytes,
            map_count_max: read_number(c"/proc/sys/vm/max_map_count").ok(),
        })
    }
}
