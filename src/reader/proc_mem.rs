//! /proc/PID/mem: the kernel looks each page up with plain references and copies through
//! a bounce page (fs/proc/base.c, `mem_rw`; mm/memory.c, `access_remote_vm`).

use super::BlockReader;
use crate::sys::file::{Process, open_proc, pread_once, seek_and_read};
use crate::sys::{Errno, RemoteAddr};
use rustix::fd::OwnedFd;

/// `proc`: one pread(2) a block.
pub struct ProcMem(OwnedFd);

impl ProcMem {
    /// Opens the target's memory for reading.
    ///
    /// # Errors
    /// `EACCES` (another owner, Yama, not dumpable), `ENOENT` or `ESRCH` (gone).
    pub fn open(pid: i32) -> Result<Self, Errno> {
        open_proc(Process::Id(pid), "mem").map(Self)
    }
}

impl BlockReader for ProcMem {
    #[inline]
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        pread_once(&self.0, block, start.0)
    }
}

/// `proc-seek`: one lseek(2) and one read(2) a block.
pub struct ProcSeek(OwnedFd);

impl ProcSeek {
    /// As [`ProcMem::open`].
    ///
    /// # Errors
    /// As [`ProcMem::open`].
    pub fn open(pid: i32) -> Result<Self, Errno> {
        open_proc(Process::Id(pid), "mem").map(Self)
    }
}

impl BlockReader for ProcSeek {
    #[inline]
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        seek_and_read(&self.0, block, start.0)
    }
}
