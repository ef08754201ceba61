//! A process that is stopped while it is looked at, and goes on whatever becomes of us.
//!
//! A guard, a child of ours, sends SIGSTOP and then waits. When this process ends, even by
//! SIGKILL, the kernel sends the guard SIGTERM (PR_SET_PDEATHSIG), and it sends SIGCONT. What
//! no program can undo is both being killed at once.

use super::process::{Child, Side, exit, fork};
use super::{Errno, signal};
use core::sync::atomic::{AtomicI32, Ordering};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Signal, WaitOptions, getppid, kill_process, set_parent_process_death_signal,
    test_kill_process, waitpid,
};

/// The process that is held; 0: none.
static HELD: AtomicI32 = AtomicI32::new(0);
/// Its guard; 0: none, or this is the guard.
static GUARD: AtomicI32 = AtomicI32::new(0);

/// A process on its way into, or in, a stop. It goes on when this value goes.
#[derive(Debug)]
pub struct Held {
    guard: Option<Child>,
}

impl Held {
    /// Sends SIGSTOP, by the guard. It takes effect later.
    ///
    /// # Errors
    /// `EPERM`, `ESRCH`; as [`fork`]; `EINVAL` for no process id.
    pub fn stop(pid: i32) -> Result<Self, Errno> {
        let target = Pid::from_raw(pid).ok_or(Errno::INVAL)?;
        test_kill_process(target)?;
        // From here on every way out sends SIGCONT.
        HELD.store(pid, Ordering::Relaxed);
        signal::handle_every_ending()?;
        match fork()? {
            Side::Parent(guard) => {
                GUARD.store(guard.pid(), Ordering::Relaxed);
                Ok(Self { guard: Some(guard) })
            }
            Side::Child => guard(target),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Killed and reaped here, not by number.
        GUARD.store(0, Ordering::Relaxed);
        drop(self.guard.take());
        let_go();
    }
}

/// Lets the held process go on, if there is one. Safe in a signal handler.
pub fn let_go() {
    // First, so that it neither stops the process again nor lets it go when somebody else
    // has stopped it by then.
    if let Some(guard) = Pid::from_raw(GUARD.swap(0, Ordering::Relaxed)) {
        let _ = kill_process(guard, Signal::KILL);
        // ECHILD: it is reaped already.
        let _ = retry_on_intr(|| waitpid(Some(guard), WaitOptions::empty()));
    }
    if let Some(pid) = Pid::from_raw(HELD.swap(0, Ordering::Relaxed)) {
        // ESRCH: it has ended.
        let _ = kill_process(pid, Signal::CONT);
    }
}

fn guard(target: Pid) -> ! {
    let parent = getppid();
    let ready = signal::end_quietly()
        .and_then(|()| set_parent_process_death_signal(Some(Signal::TERM)))
        .is_ok_and(|()| getppid() == parent);
    if ready && kill_process(target, Signal::STOP).is_ok() {
        loop {
            signal::wait();
        }
    }
    exit(1)
}
