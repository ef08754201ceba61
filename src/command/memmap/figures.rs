//! What the kernel says of this process and of the machine, before and after.

use super::problem::Problem;
use crate::error::Error;
use crate::measure::footprint::{self, each_line};
use crate::proc::lines::Line;
use crate::proc::maps::MapsLine;
use crate::proc::smaps::Usage;
use crate::proc::status::kib_field;
use crate::sys::file::{Process, read_proc, read_whole};
use crate::sys::{Errno, RemoteAddr};
use core::ops::Range;

/// Of the whole process, and what the machine has promised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    /// VmRSS. May lag: up to Linux 6.1 a task adds its share in batches of 64 faults
    /// (SPLIT_RSS_COUNTING, mm/memory.c), later ones keep it per CPU (lib/percpu_counter.c).
    pub(super) rss_kib: u64,
    /// The rest, if it was asked for.
    pub(super) report: Option<Report>,
}

/// What `--report` shows; `None` is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    /// VmSize.
    pub(super) vsz_kib: Option<u64>,
    pub(super) pss_kib: Option<u64>,
    /// Private_Clean and Private_Dirty.
    pub(super) uss_kib: Option<u64>,
    pub(super) swap_kib: Option<u64>,
    /// Committed_AS of the machine.
    pub(super) committed_kib: Option<u64>,
    pub(super) commit_limit_kib: Option<u64>,
}

impl Figures {
    /// As they are now.
    pub(super) fn now(report: bool) -> Result<Self, Problem<'static>> {
        let mut buffer = [0; 4096];
        let status = read_proc(Process::Myself, "status", &mut buffer);
        let status = status.map_err(Error::kernel("read /proc/self/status"))?;
        let rss_kib = kib_field(status, b"VmRSS").ok_or(Error::Kernel(
            "find VmRSS in /proc/self/status",
            Errno::NODATA,
        ))?;
        let report = report.then(|| Report::now(status));
        Ok(Self { rss_kib, report })
    }
}

impl Report {
    #[inline(never)]
    fn now(status: &[u8]) -> Self {
        // `None` before Linux 4.14, which has no such file.
        let rollup = footprint::whole(Process::Myself).ok();
        let mut buffer = [0; 8192];
        let meminfo = read_whole(c"/proc/meminfo", &mut buffer).unwrap_or_default();
        Self {
            vsz_kib: kib_field(status, b"VmSize"),
            pss_kib: rollup.map(|usage| usage.pss_kib),
            uss_kib: rollup.map(|usage| usage.private_kib()),
            swap_kib: kib_field(status, b"VmSwap"),
            committed_kib: kib_field(meminfo, b"Committed_AS"),
            commit_limit_kib: kib_field(meminfo, b"CommitLimit"),
        }
    }
}

/// The VMAs that overlap the target.
#[derive(Clone, Debug, Default)]
pub(super) struct Vmas {
    pub(super) count: u64,
    /// From the first to the last.
    range: Range<u64>,
}

impl Vmas {
    /// Looks for them and gives `take` each line.
    pub(super) fn each<'p>(
        target: &Range<usize>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Problem<'p>>,
    ) -> Result<Self, Problem<'p>> {
        let mut found = Self::default();
        let mut ended = Ok(());
        let read = each_line(Process::Myself, "maps", &mut |line| {
            ended = found.add(target, line, take);
            ended.is_ok()
        });
        read.map_err(Error::kernel("read /proc/self/maps"))?;
        ended.map(|()| found)
    }

    fn add<'p>(
        &mut self,
        target: &Range<usize>,
        line: Line<'_>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), Problem<'p>>,
    ) -> Result<(), Problem<'p>> {
        let vma = MapsLine::parse(line.bytes).filter(|_| !line.truncated);
        let vma = vma.ok_or(NOT_MAPS)?;
        if !vma.overlaps(target.start as u64, target.end as u64) {
            return Ok(());
        }
        if self.count == 0 {
            self.range.start = vma.start;
        }
        self.range.end = vma.end;
        self.count += 1;
        take(line.bytes)
    }

    /// What they hold, by smaps; `None` if that cannot be read.
    pub(super) fn usage(&self) -> Option<Usage> {
        let Range { start, end } = self.range;
        footprint::usage(Process::Myself, &(RemoteAddr(start)..RemoteAddr(end))).ok()
    }
}

const NOT_MAPS: Error = Error::Invalid("a line of /proc/self/maps is not understood");
