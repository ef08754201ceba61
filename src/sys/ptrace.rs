//! The words of ptrace(2) that a reader needs: attach, stop, peek, let go.

use super::arch::{nr, syscall6};
use super::process::wait_for_stop;
use super::{Errno, RemoteAddr, check};

const PTRACE_PEEKDATA: usize = 2;
const PTRACE_DETACH: usize = 17;
const PTRACE_SEIZE: usize = 0x4206;
const PTRACE_INTERRUPT: usize = 0x4207;

/// A process held in a ptrace stop; let go when the value goes.
pub struct Stopped {
    pid: i32,
    /// A signal that was on its way when the process stopped, to be handed over when it is
    /// let go; 0: none.
    signal: i32,
}

impl Stopped {
    /// Attaches without a signal and stops the process.
    ///
    /// # Errors
    /// `EPERM` (another tracer, Yama, missing capability), `ESRCH` (it is gone).
    pub fn seize(pid: i32) -> Result<Self, Errno> {
        request(PTRACE_SEIZE, pid, 0, 0)?;
        let mut stopped = Self { pid, signal: 0 };
        request(PTRACE_INTERRUPT, pid, 0, 0)?;
        stopped.signal = wait_for_stop(pid)?;
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
        request(PTRACE_PEEKDATA, self.pid, address.0 as usize, at)?;
        Ok(word)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // ESRCH: the process is gone, or never stopped; then there is nothing to undo. Who
        // dies without coming here lets go as well: the kernel detaches (ptrace(2)).
        let signal = self.signal.cast_unsigned() as usize;
        let _ = request(PTRACE_DETACH, self.pid, 0, signal);
    }
}

#[inline]
fn request(request: usize, pid: i32, address: usize, data: usize) -> Result<(), Errno> {
    let pid = pid.cast_unsigned() as usize;
    // SAFETY: SYSCALL; only PEEKDATA writes, one word, through `data`, which `peek` owns.
    check(unsafe { syscall6(nr::PTRACE, request, pid, address, data, 0, 0) }).map(|_| ())
}
