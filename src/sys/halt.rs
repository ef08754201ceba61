//! Holding another process by SIGSTOP, and letting it go on whatever happens to us.
//!
//! A helper of our own waits at a pipe whose other end only we hold. However we end, by a
//! signal, a panic or SIGKILL, that end closes and the helper sends SIGCONT. So it does if a signal
//! that ends us waits, because we wait in the kernel for what no signal ends (a file server that has
//! taken a request and does not answer). Only if the helper is killed as well, by its own process id, does the process stay stopped; `kill -CONT PID`
//! then sets it going.

use super::Errno;
use super::file::{Process, each_thread, pipe, read_proc};
use super::process::{Child, Side, exit, fork, own_id, sleep_ms};
use crate::proc::stat::Stat;
use crate::proc::status::hex_field;
use crate::sys::signal;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_setfl};
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
    /// `ESRCH` (gone), `EPERM` (another's), `ETIMEDOUT` (it does not stop), `ENOSYS` (a kernel
    /// before 5.3 has no pidfd); as fork(2) (`EAGAIN`), pipe(2).
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
        Err(Errno::TIMEDOUT)
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
    let tool = own_id();
    match fork()? {
        Side::Child => {
            drop((mine, ready));
            watch(process, tool, &theirs, &telling);
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
fn watch(process: BorrowedFd<'_>, tool: i32, pipe: &OwnedFd, telling: &OwnedFd) {
    // It must outlive us, and what is sent to our process group: timeout(1) with -s KILL does that.
    let _ = setsid();
    if signal::ignore_stopping().is_err()
        || set_parent_process_death_signal(None).is_err()
        || fcntl_setfl(pipe, OFlags::NONBLOCK).is_err()
    {
        return;
    }
    if retry_on_intr(|| write(telling, b"r")).is_err() {
        return;
    }
    let mut was_ending = false;
    while retry_on_intr(|| read(pipe, &mut [0])) == Err(Errno::AGAIN) {
        let is_ending = is_ending(tool);
        if is_ending && was_ending {
            break;
        }
        was_ending = is_ending;
        sleep_ms(LOOK_MS);
    }
    let _ = pidfd_send_signal(process, Signal::CONT);
}

/// The helper looks for our end so often.
const LOOK_MS: u32 = 100;

/// Whether a signal waits that ends a process and that it does not hold back: proc_pid_status(5).
fn is_ending(pid: i32) -> bool {
    let mut buffer = [0; 4096];
    let Ok(status) = read_proc(Process::Id(pid), "status", &mut buffer) else {
        return false;
    };
    let signals = |name: &[u8]| hex_field(status, name).unwrap_or(0);
    let waiting = signals(b"SigPnd") | signals(b"ShdPnd");
    waiting & !signals(b"SigBlk") & (signal::ENDING | signal::KILL) != 0
}
