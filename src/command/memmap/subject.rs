//! What is allocated and touched, with everything that comes before: the file is opened or
//! written, and that there is room is looked at.

use super::super::room::available_bytes;
use super::path::Path;
use super::problem::{Problem, both};
use crate::cli::memmap::{Mode, Options};
use crate::error::Error;
use crate::sys::doomed::Doomed;
use crate::sys::file::{
    HUGETLBFS_MAGIC, file_system, open_any, read_next, regular_bytes, unpaid_bytes,
};
use crate::sys::promise::{Promise, STACK_MIB_MAX, can_grow};
use crate::sys::{Errno, Region};
use core::ops::Range;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, getrlimit};

/// Steps of a fault-walk.
pub(super) const STEPS: usize = 8;
/// Bytes of one write(2) of the walk file.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Frames of the calls around the one that is touched, and what is between.
const STACK_MARGIN_BYTES: usize = 256 << 10;

/// Whether it counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Rehearsal,
    Real,
}

/// One allocation to be.
pub(super) struct Subject<'p> {
    pub(super) mode: Mode,
    /// Bytes asked for.
    pub(super) bytes: usize,
    pub(super) page_bytes: usize,
    pub(super) path: &'p Path,
    file: File,
    brk: bool,
}

/// The file that is mapped.
enum File {
    None,
    Given(OwnedFd),
    Made(Doomed),
}

impl<'p> Subject<'p> {
    /// Looks that there is room, opens or writes the file.
    #[inline(never)]
    pub(super) fn prepare(
        mode: Mode,
        options: &Options,
        path: &'p Path,
        page_bytes: usize,
    ) -> Result<Self, Problem<'p>> {
        let asked = (options.mb as usize) << 20;
        let refused = |errno| Problem::Kernel(path.bytes(), errno);
        let (bytes, file) = match mode {
            Mode::Stack => (asked.min(STACK_MIB_MAX << 20), File::None),
            Mode::Heap | Mode::MmapAnon => (asked, File::None),
            Mode::MmapFile => {
                let file = open_any(path.as_c_str()).map_err(refused)?;
                (file_bytes(&file, path)?, File::Given(file))
            }
            Mode::FaultWalk => (asked, File::None),
        };
        let mut subject = Self {
            mode,
            bytes,
            page_bytes,
            path,
            file,
            brk: options.brk,
        };
        subject.check_room()?;
        if mode == Mode::FaultWalk {
            subject.file = File::Made(written(path, asked)?);
        }
        Ok(subject)
    }

    /// Removes the walk file, if there is one.
    pub(super) fn finish(self) -> Result<(), Problem<'p>> {
        match self.file {
            File::Made(file) => removed(file, self.path),
            File::None | File::Given(_) => Ok(()),
        }
    }

    fn check_room(&self) -> Result<(), Problem<'p>> {
        // A page table of one page maps page_bytes / 8 pages.
        let tables = 8 * self.pages() as u64;
        let needed = match &self.file {
            // The walk file is to be in the page cache, too.
            File::None | File::Made(_) => (self.bytes + STACK_MARGIN_BYTES) as u64 + tables,
            File::Given(file) => {
                let unpaid = unpaid_bytes(file.as_fd());
                unpaid.map_err(|errno| Problem::Kernel(self.path.bytes(), errno))? + tables
            }
        };
        let available = available_bytes()?;
        if needed > available {
            return Err(Problem::NoMemory(needed.div_ceil(1 << 20), available >> 20));
        }
        if self.mode != Mode::Stack {
            return Ok(());
        }
        match can_grow(self.bytes + STACK_MARGIN_BYTES, self.page_bytes) {
            Ok(()) => Ok(()),
            Err(Errno::FAULT) => {
                let limit = getrlimit(Resource::Stack).current;
                Err(Problem::Stack(
                    self.bytes >> 20,
                    limit.map(|bytes| bytes >> 10),
                ))
            }
            Err(errno) => Err(Error::Kernel(
                "try in a child how far the stack grows (fork, getrusage)",
                errno,
            )
            .into()),
        }
    }

    /// Pages, rounded up.
    pub(super) fn pages(&self) -> usize {
        self.bytes.div_ceil(self.page_bytes)
    }

    /// Bytes that are allocated: what malloc takes for a large request is a header's page
    /// more than asked.
    fn allocated_bytes(&self) -> usize {
        match (self.mode, self.brk) {
            (Mode::Heap, false) => self.bytes + self.page_bytes,
            _ => self.bytes,
        }
    }

    /// The allocation; nothing of it is touched. To rehearse, the same as far as code is
    /// concerned: one page, and of a stack no frame. It is no page of a file then: of a cold
    /// one the first fault, and what the kernel reads ahead with it, belong to the measurement.
    #[inline(never)]
    pub(super) fn promise(&self, run: Run) -> Result<Promise, Problem<'p>> {
        let bytes = match run {
            Run::Real => self.allocated_bytes(),
            Run::Rehearsal if self.mode == Mode::Stack || self.file().is_some() => 0,
            Run::Rehearsal => self.page_bytes,
        };
        let promised = self.promised(bytes);
        match self.file() {
            // A mapping of no bytes of a file is refused.
            Some(_) if run == Run::Rehearsal => Promise::like_file(self.page_bytes)
                .map_err(|errno| Problem::Refused("map anonymous memory", errno)),
            _ => promised,
        }
    }

    fn promised(&self, bytes: usize) -> Result<Promise, Problem<'p>> {
        match (self.mode, self.brk) {
            (Mode::Stack, _) => Ok(Promise::stack(bytes >> 20, self.page_bytes)),
            (Mode::Heap, true) => Promise::program_break(bytes, self.page_bytes)
                .map_err(|errno| Problem::Refused("grow the program break", errno)),
            _ => self.mapped(bytes),
        }
    }

    fn mapped(&self, bytes: usize) -> Result<Promise, Problem<'p>> {
        match self.file() {
            Some(file) => Promise::file(file, bytes, self.page_bytes)
                .map_err(|errno| Problem::Kernel(self.path.bytes(), errno)),
            None => Promise::anonymous(bytes, self.page_bytes)
                .map_err(|errno| Problem::Refused("map anonymous memory", errno)),
        }
    }

    /// The file that is mapped.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.file {
            File::None => None,
            File::Given(file) => Some(file.as_fd()),
            File::Made(file) => Some(file.as_fd()),
        }
    }

    /// Pages of step `index` of a fault-walk; the last takes the remainder.
    pub(super) fn step_pages(&self, index: usize) -> usize {
        let each = self.pages() / STEPS;
        match index + 1 {
            STEPS => self.pages() - each * (STEPS - 1),
            _ => each,
        }
    }

    /// What is touched at once, in bytes of the allocation: a step, or all in the first. To
    /// rehearse, the first page.
    pub(super) fn part(&self, index: usize, run: Run) -> Range<usize> {
        match run {
            Run::Real => self.step(index),
            Run::Rehearsal => 0..self.step(index).len().min(self.page_bytes),
        }
    }

    fn step(&self, index: usize) -> Range<usize> {
        if self.mode != Mode::FaultWalk {
            let all = self.allocated_bytes();
            return if index == 0 { 0..all } else { all..all };
        }
        let start = index * (self.pages() / STEPS) * self.page_bytes;
        start..start + self.step_pages(index) * self.page_bytes
    }
}

fn file_bytes<'p>(file: &OwnedFd, path: &'p Path) -> Result<usize, Problem<'p>> {
    let refused = |errno| Problem::Kernel(path.bytes(), errno);
    if file_system(file.as_fd()).map_err(refused)? == HUGETLBFS_MAGIC {
        return Err(Problem::File(
            path.bytes(),
            "a file of hugetlbfs, whose pages are in no VmRSS or Rss; take another file",
        ));
    }
    match regular_bytes(file.as_fd()).map_err(refused)? {
        None => Err(Problem::File(path.bytes(), "not a regular file")),
        // A file of /proc says so and yet can be read.
        Some(0) if has_no_size(file) => Err(Problem::File(
            path.bytes(),
            "a file without a size, of a kernel's file system; it cannot be mapped",
        )),
        Some(0) => Err(Problem::File(path.bytes(), "file is empty")),
        Some(bytes) => Ok(bytes as usize),
    }
}

/// Whether a file that says it has no bytes has some, or cannot be read from its start
/// (/proc/self/mem). read(2).
fn has_no_size(file: &OwnedFd) -> bool {
    read_next(file.as_fd(), &mut [0]) != Ok(0)
}

/// The walk file, with bytes that no file system can leave out.
fn written(path: &Path, bytes: usize) -> Result<Doomed, Problem<'_>> {
    let mut chunk =
        Region::new(CHUNK_BYTES).map_err(Error::kernel("map memory for a chunk of the file"))?;
    let refused = |errno| Problem::Kernel(path.bytes(), errno);
    let mut file = Doomed::create(path.as_c_str()).map_err(refused)?;
    let filled = (0..bytes).step_by(CHUNK_BYTES).try_for_each(|start| {
        let words = chunk.words_mut().iter_mut().zip(start as u64..);
        words.for_each(|(word, number)| *word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        file.append(chunk.bytes_mut())
    });
    if let Err(errno) = filled {
        both(Mode::FaultWalk, Err(refused(errno)), removed(file, path))?;
        return Err(refused(errno));
    }
    Ok(file)
}

/// Removes the walk file.
fn removed<'p>(file: Doomed, path: &'p Path) -> Result<(), Problem<'p>> {
    file.remove()
        .map_err(|errno| Problem::Left(path.bytes(), errno))
}
