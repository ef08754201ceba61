//! Holding another process by SIGSTOP, and letting it go on whatever happens to us.
//!
//! A helper of our own waits at a pipe whose other end only we hold. However we end, by a
//! signal, a panic or SIGKILL, that end closes and the helper sends SIGCONT. Only if the helper
//! is killed as well, by its own process id, does the process stay stopped; `kill -CONT PID`
//! then sets it going.

use super::Errno;
use super::file::{Process, each_thread, pipe, read_proc};
use super::process::{Child, Side, exit, fork};
use crate::proc::stat::Stat;
use crate::sys::signal;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{read, retry_on_intr, write};
use rustix::process::{
    Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, set_parent_process_death_signal, setsid,
};
use rustix::thread::sched_yield;

/// A process that stands still while this lives, unless it was stopped before: then it stays so.
pub struct Halted(Option<Hold>);

struct Hold {
    process: OwnedFd,
    /// Killed and reaped with the value, when the process has gone on already.
    _helper: Child,
    _pipe: OwnedFd,
}

/// Looks at a process that was sent SIGSTOP before it counts as one that does not stop: it
/// hangs in the kernel.
const LOOKS_MAX: u32 = 100_000;

impl Halted {
    /// Stops the process, all of its threads, and waits until it stands.
    ///
    /// # Errors
    /// `ESRCH` (gone), `EPERM` (another's), `EAGAIN` (it does not stop), `ENOSYS` (a kernel
    /// before 5.3 has no pidfd); as fork(2), pipe(2).
    pub fn stop(pid: i32) -> Result<Self, Errno> {
        if no_thread_runs(pid)? {
            return Ok(Self(None));
        }
        let target = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        // The process itself, not whoever gets its number next.
        let process = pidfd_open(target, PidfdFlags::empty())?;
        let (helper, pipe) = helper(process.as_fd())?;
        pidfd_send_signal(&process, Signal::STOP)?;
        let held = Self(Some(Hold {
            process,
            _helper: helper,
            _pipe: pipe,
        }));
        for _ in 0..LOOKS_MAX {
            if no_thread_runs(pid)? {
                return Ok(held);
            }
            sched_yield();
        }
        Err(Errno::AGAIN)
    }
}

impl Drop for Halted {
    fn drop(&mut self) {
        if let Some(hold) = &self.0 {
            // ESRCH: it was killed meanwhile.
            let _ = pidfd_send_signal(&hold.process, Signal::CONT);
        }
    }
}

/// Whether no thread of it runs. One that has ended does not.
///
/// # Errors
/// As open(2) of its task folder; `EIO` for a stat that is not understood.
pub fn no_thread_runs(pid: i32) -> Result<bool, Errno> {
    let (mut all, mut failed) = (true, Ok(()));
    each_thread(pid, &mut |thread| match state(thread) {
        Ok(state) => all &= matches!(state, b'T' | b't' | b'Z' | b'X'),
        Err(errno) => failed = Err(errno),
    })?;
    failed.map(|()| all)
}

fn state(thread: i32) -> Result<u8, Errno> {
    let mut buffer = [0; 1024];
    match read_proc(Process::Id(thread), "stat", &mut buffer) {
        Ok(text) => Stat::parse(text).map(|stat| stat.state).ok_or(Errno::IO),
        Err(Errno::NOENT | Errno::SRCH) => Ok(b'X'),
        Err(errno) => Err(errno),
    }
}

/// Starts the helper; it is ready when this returns.
fn helper(process: BorrowedFd<'_>) -> Result<(Child, OwnedFd), Errno> {
    let (theirs, mine) = pipe()?;
    let (ready, telling) = pipe()?;
    match fork()? {
        Side::Child => {
            drop((mine, ready));
            watch(process, &theirs, &telling);
            exit(0)
        }
        Side::Parent(child) => {
            drop(telling);
            let mut byte = [0];
            match retry_on_intr(|| read(&ready, &mut byte))? {
                1 => Ok((child, mine)),
                _ => Err(Errno::CHILD),
            }
        }
    }
}

/// The helper's life: it ends with us, and then lets the process go on.
fn watch(process: BorrowedFd<'_>, pipe: &OwnedFd, telling: &OwnedFd) {
    // It must outlive us, and what is sent to our process group: timeout(1) with -s KILL does that.
    let _ = setsid();
    if signal::ignore_stopping().is_err() || set_parent_process_death_signal(None).is_err() {
        return;
    }
    if retry_on_intr(|| write(telling, b"r")).is_err() {
        return;
    }
    let mut byte = [0];
    let _ = retry_on_intr(|| read(pipe, &mut byte));
    let _ = pidfd_send_signal(process, Signal::CONT);
}
