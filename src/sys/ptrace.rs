//! The words of ptrace(2) that a reader needs: attach, stop, peek, let go.

use super::arch::{nr, syscall6};
use super::process::Child;
use super::{Errno, RemoteAddr, check};

const PTRACE_PEEKDATA: usize = 2;
const PTRACE_DETACH: usize = 17;
const PTRACE_SEIZE: usize = 0x4206;
const PTRACE_INTERRUPT: usize = 0x4207;

/// A child held in a ptrace stop; let go when the value goes.
pub struct Stopped<'c> {
    child: &'c Child,
}

impl<'c> Stopped<'c> {
    /// Attaches without a signal and stops the child.
    ///
    /// # Errors
    /// `EPERM` (another tracer, Yama, missing capability), `ESRCH` (it is gone).
    pub fn seize(child: &'c Child) -> Result<Self, Errno> {
        request(PTRACE_SEIZE, child, 0, 0)?;
        let stopped = Self { child };
        request(PTRACE_INTERRUPT, child, 0, 0)?;
        child.wait_for_stop()?;
        Ok(stopped)
    }

    /// The eight bytes at `address`, in memory order.
    ///
    /// # Errors
    /// `EIO` if any of them cannot be read (the man page also names `EFAULT`).
    #[inline]
    pub fn peek(&self, address: RemoteAddr) -> Result<[u8; 8], Errno> {
        let mut word = [0; 8];
        // The system call stores the word through its fourth argument; only the C
        // library's wrapper returns it (ptrace(2), "C library/kernel differences").
        let at = word.as_mut_ptr() as usize;
        request(PTRACE_PEEKDATA, self.child, address.0 as usize, at)?;
        Ok(word)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        // ESRCH: the child is gone, or never stopped; then there is nothing to undo.
        let _ = request(PTRACE_DETACH, self.child, 0, 0);
    }
}

#[inline]
fn request(request: usize, child: &Child, address: usize, data: usize) -> Result<(), Errno> {
    let pid = child.pid().cast_unsigned() as usize;
    // SAFETY: SYSCALL; only PEEKDATA writes, one word, through `data`, which `peek` owns.
    check(unsafe { syscall6(nr::PTRACE, request, pid, address, data, 0, 0) }).map(|_| ())
}
