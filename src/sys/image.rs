//! The pieces of a loader: memory for another program's image, the initial stack it will
//! find, and the step from which nothing of this program is left.

use super::arch::{self, nr};
use super::template::last_steps;
use super::{Errno, Region, file};
use core::ffi::{CStr, c_char};
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::ptr::null_mut;
use core::slice;
use rustix::fd::BorrowedFd;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};

/// What code of a segment may do with its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Read it.
    pub readable: bool,
    /// Write to it.
    pub writable: bool,
    /// Run it.
    pub executable: bool,
}

impl Access {
    fn flags(self) -> MprotectFlags {
        let when = |yes, flag| if yes { flag } else { MprotectFlags::empty() };
        when(self.readable, MprotectFlags::READ)
            | when(self.writable, MprotectFlags::WRITE)
            | when(self.executable, MprotectFlags::EXEC)
    }
}

/// Private anonymous memory for an image; never unmapped by this program.
#[derive(Debug)]
pub struct ImageMemory {
    base: usize,
    len: usize,
}

impl ImageMemory {
    /// Reserves `len` bytes, inaccessible as yet, at a multiple of `align`. mmap(2).
    ///
    /// # Errors
    /// `ENOMEM`, `EINVAL` if `len` is 0.
    pub fn reserve(len: usize, align: usize) -> Result<Self, Errno> {
        let room = len.checked_add(align).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
        let at = unsafe { mmap_anonymous(null_mut(), room, ProtFlags::empty(), flags) }?;
        let base = (at as usize).next_multiple_of(align);
        Ok(Self { base, len })
    }

    /// Where it begins.
    #[must_use]
    pub const fn base(&self) -> usize {
        self.base
    }

    /// Makes `pages`, a range of whole pages, memory with this access, and copies `bytes`
    /// bytes of `file` from `offset` on to `into`, which lies in it. mprotect(2), pread(2).
    ///
    /// # Errors
    /// `ENOMEM`; `EINVAL` if a range does not lie within the other or the image; `ENODATA`
    /// if the file is shorter.
    pub fn fill(
        &self,
        pages: Range<usize>,
        into: usize,
        (file, offset, bytes): (BorrowedFd<'_>, u64, usize),
        access: Access,
    ) -> Result<(), Errno> {
        let copied_to = into.checked_add(bytes).ok_or(Errno::INVAL)?;
        if pages.is_empty() || pages.end > self.len || into < pages.start || copied_to > pages.end {
            return Err(Errno::INVAL);
        }
        let at = (self.base + pages.start) as *mut _;
        let open = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: within the memory reserved above, which nothing else refers to.
        unsafe { mprotect(at, pages.len(), open) }?;
        // SAFETY: as above, and writable by now; the slice ends before the access changes.
        let target = unsafe { slice::from_raw_parts_mut((self.base + into) as *mut u8, bytes) };
        if file::read_at(file, target, offset)? < bytes {
            return Err(Errno::NODATA);
        }
        // SAFETY: as above. The kernel makes instruction caches see a page before it
        // becomes executable (__sync_icache_dcache, arch/arm64/mm/flush.c).
        unsafe { mprotect(at, pages.len(), access.flags()) }
    }
}

/// The initial stack of this process: argc, argv, a null, envp, a null, the auxiliary
/// vector (System V ABI, "Initial Process Stack").
#[derive(Debug)]
pub struct InitialStack(*mut usize);

impl InitialStack {
    /// # Safety
    /// `at` is the stack pointer that the kernel started this process with, and nobody uses
    /// argc, argv or the vector any more.
    #[must_use]
    pub const unsafe fn new(at: *mut usize) -> Self {
        Self(at)
    }

    /// Where it begins.
    #[must_use]
    pub fn address(&self) -> usize {
        self.0 as usize
    }

    /// Word of argv by its number.
    #[must_use]
    pub fn argument(&self, index: usize) -> Option<&'static CStr> {
        // SAFETY: the constructor's contract: argc pointers to C strings follow argc, and
        // live as long as the process.
        unsafe {
            let within = index < *self.0;
            within.then(|| CStr::from_ptr(*self.0.add(1 + index).cast::<*const c_char>()))
        }
    }

    /// Takes the first `count` words of argv away; `count` must be even, because the ABI of
    /// both CPUs wants the stack at a multiple of 16.
    ///
    /// # Errors
    /// `EINVAL` if it is odd or there are not as many.
    pub fn drop_arguments(&mut self, count: usize) -> Result<(), Errno> {
        // SAFETY: the constructor's contract; the words below the new argc are given up.
        unsafe {
            let argc = *self.0;
            if count > argc || !count.is_multiple_of(2) {
                return Err(Errno::INVAL);
            }
            self.0 = self.0.add(count);
            *self.0 = argc - count;
        }
        Ok(())
    }

    /// Changes an entry of the auxiliary vector. getauxval(3).
    ///
    /// # Errors
    /// `ENODATA` if it has none of this type.
    pub fn set(&mut self, kind: usize, value: usize) -> Result<(), Errno> {
        // SAFETY: the constructor's contract; AT_NULL (0) ends the vector.
        unsafe {
            let mut at = self.0.add(1 + *self.0 + 1);
            while *at != 0 {
                at = at.add(1);
            }
            at = at.add(1);
            while *at != 0 {
                if *at == kind {
                    *at.add(1) = value;
                    return Ok(());
                }
                at = at.add(2);
            }
        }
        Err(Errno::NODATA)
    }
}

/// System calls that are made when nothing of this program is needed any more, from a page
/// of their own, which is all that stays of it.
#[derive(Debug)]
pub struct LastSteps {
    page: Region,
    /// Words of the page in use.
    used: usize,
}

/// What a process ends with if one of its last steps fails.
pub const LAST_STEP_FAILED: i32 = 125;

/// A number and six arguments.
const CALL_WORDS: usize = 7;

impl LastSteps {
    /// None yet.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(page_bytes: usize) -> Result<Self, Errno> {
        let code = last_steps();
        let mut page = Region::new(page_bytes)?;
        page.bytes_mut()[..code.len()].copy_from_slice(code);
        let used = code.len().div_ceil(8);
        Ok(Self { page, used })
    }

    /// Unmaps a range. munmap(2).
    ///
    /// # Errors
    /// `ENOSPC`: the page is full.
    pub fn unmap(&mut self, range: Range<usize>) -> Result<(), Errno> {
        self.add([nr::MUNMAP, range.start, range.len(), 0, 0, 0, 0])
    }

    /// Moves a range, which is one VMA, to `to`; what was there is unmapped. mremap(2).
    ///
    /// # Errors
    /// As [`unmap`](Self::unmap).
    pub fn relocate(&mut self, range: Range<usize>, to: usize) -> Result<(), Errno> {
        const MAYMOVE_FIXED: usize = 3;
        let len = range.len();
        self.add([nr::MREMAP, range.start, len, len, MAYMOVE_FIXED, to, 0])
    }

    /// Gives the pages of a range back. madvise(2), MADV_DONTNEED.
    ///
    /// # Errors
    /// As [`unmap`](Self::unmap).
    pub fn discard(&mut self, range: Range<usize>) -> Result<(), Errno> {
        const DONTNEED: usize = 4;
        self.add([nr::MADVISE, range.start, range.len(), DONTNEED, 0, 0, 0])
    }

    fn add(&mut self, call: [usize; CALL_WORDS]) -> Result<(), Errno> {
        let words = self.page.words_mut();
        // One word more, for the end of the list.
        if self.used + CALL_WORDS >= words.len() {
            return Err(Errno::NOSPC);
        }
        let space = &mut words[self.used..][..CALL_WORDS];
        space.copy_from_slice(&call.map(|word| word as u64));
        self.used += CALL_WORDS;
        Ok(())
    }

    /// Where the page lies.
    #[must_use]
    pub fn address(&self) -> usize {
        self.page.address()
    }

    /// Makes the calls and goes to `entry` with `stack`: this program is over. If a call
    /// fails, the process ends with [`LAST_STEP_FAILED`].
    ///
    /// # Errors
    /// `EACCES`: the page cannot be made executable.
    pub fn take(
        self,
        stack: &InitialStack,
        entry: usize,
    ) -> Result<core::convert::Infallible, Errno> {
        let mut page = ManuallyDrop::new(self.page);
        page.words_mut()[self.used] = u64::MAX;
        let code = page.address();
        let list = code + last_steps().len().div_ceil(8) * 8;
        let access = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: OWNED, and nothing writes to it from here on.
        unsafe { mprotect(code as *mut _, page.len(), access) }?;
        // SAFETY: the page holds the code and, behind it, the list with its end; this
        // program is over, so it does not matter what the calls unmap.
        unsafe { arch::leave(code, list, stack.address(), entry) }
    }
}
