//! SIGINT and SIGTERM end the program at once, in their handler; a closed pipe becomes
//! EPIPE, a file that may not grow EFBIG.
//!
//! Ending there is safe at any point: a row leaves in one write(2), so none is cut; a
//! child is killed when its parent dies (PR_SET_PDEATHSIG); the one file there may be is
//! removed by the handler ([`doomed`]); there is nothing else to undo. A flag that is looked at between cases would let a long pass, or a full pipe,
//! keep the program alive.

use super::arch::{nr, syscall6};
use super::process::{Child, exit};
use super::{Errno, check, doomed, stdio};
use crate::text::Text;
use core::sync::atomic::{AtomicI32, Ordering};
use rustix::process::{Pid, Signal, kill_process_group};

/// What [`install`] sets, for a child that gives it back before it becomes another program.
pub(super) const TAKEN: [usize; 4] = [SIGINT, SIGTERM, SIGPIPE, SIGXFSZ];

/// SIG_DFL, as rt_sigaction(2) takes it.
pub(super) const DEFAULT: Action = Action {
    handler: SIG_DFL,
    flags: 0,
    restorer: 0,
    mask: 0,
};

/// `struct sigaction` as the kernel takes it, the same on both CPUs
/// (include/uapi/asm-generic/signal.h with SA_RESTORER defined).
#[repr(C)]
pub(super) struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

const SIGHUP: usize = 1;
const SIGINT: usize = 2;
const SIGQUIT: usize = 3;
const SIGBUS: usize = 7;
const SIGUSR1: usize = 10;
const SIGUSR2: usize = 12;
const SIGPIPE: usize = 13;
const SIGALRM: usize = 14;
const SIGTERM: usize = 15;
const SIGCHLD: usize = 17;
const SIGXCPU: usize = 24;
const SIGXFSZ: usize = 25;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SA_RESTORER: usize = 0x0400_0000;

/// The leader of the process group that ends with this process; 0 if there is none.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// From now on a signal that ends this process ends the group that `leader` leads as well:
/// children of children, which do not notice that their parent's parent is gone.
pub fn end_group_too(leader: Option<&Child>) {
    GROUP.store(leader.map_or(0, Child::pid), Ordering::Relaxed);
}

extern "C" fn stop(signal: i32) {
    doomed::remove();
    if let Some(leader) = Pid::from_raw(GROUP.load(Ordering::Relaxed)) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
    let mut line = Text::new();
    line.add("\ncowitness: error: stopped by signal ");
    line.signed(signal.into()).add("\n");
    let _ = stdio::stderr().write_all(line.read().unwrap_or_default().as_bytes());
    exit(128 + signal)
}

/// Installs the handlers, and takes back an inherited SIG_IGN for SIGCHLD, under which a
/// child that died would not wait to be reaped. sigaction(2).
///
/// # Errors
/// None that the man page names for these arguments.
pub fn install() -> Result<(), Errno> {
    let stop = stop as *const () as usize;
    let actions = [
        (SIGINT, stop),
        (SIGTERM, stop),
        (SIGPIPE, SIG_IGN),
        (SIGXFSZ, SIG_IGN),
        (SIGCHLD, SIG_DFL),
    ];
    actions
        .into_iter()
        .try_for_each(|(signal, handler)| set(signal, handler))
}

extern "C" fn unreadable(_signal: i32) {
    doomed::remove();
    let _ = stdio::stderr().write_all(
        b"memmap: error: a page of the file cannot be read: it was cut meanwhile, its file \
          system is full, or its device has failed (SIGBUS)\n",
    );
    exit(1)
}

/// Makes a mapped file's page that cannot be read an error like any other.
///
/// # Errors
/// As [`install`].
pub fn report_bus_errors() -> Result<(), Errno> {
    set(SIGBUS, unreadable as *const () as usize)
}

/// What else people and limits end a program with.
const OTHERS: [usize; 6] = [SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU];

/// Other signals end the program like SIGINT, unless they are ignored (nohup(1)).
///
/// # Errors
/// As [`install`].
pub fn stop_on_others() -> Result<(), Errno> {
    let stop = stop as *const () as usize;
    for signal in OTHERS {
        if current(signal)? != SIG_IGN {
            set(signal, stop)?;
        }
    }
    Ok(())
}

/// While it lives, signals that [`stop`] handles wait, for who has something to undo.
pub struct Held(u64);

/// These signals, as the kernel takes a set: bit n-1 is signal n.
static ENDING: u64 = {
    let mut bits = 1 << (SIGINT - 1) | 1 << (SIGTERM - 1);
    let mut next = 0;
    while next < OTHERS.len() {
        bits |= 1 << (OTHERS[next] - 1);
        next += 1;
    }
    bits
};

/// Keeps signals waiting. sigprocmask(2).
///
/// # Errors
/// None that the man page names for these arguments.
pub fn hold() -> Result<Held, Errno> {
    mask(SIG_BLOCK, ENDING).map(Held)
}

impl Held {
    /// What waits comes now, and what comes later is not held.
    pub fn let_through(&self) {
        let _ = mask(SIG_SETMASK, self.0);
    }

    /// Waits up to `millis` for one of them; its number. rt_sigtimedwait(2).
    #[must_use]
    pub fn next(&self, millis: u64) -> Option<i32> {
        let timeout = [millis / 1000, millis % 1000 * 1_000_000];
        let (set, timeout) = (&raw const ENDING, &raw const timeout);
        // SAFETY: SYSCALL; the kernel reads a set of eight bytes and a timespec.
        let came = unsafe {
            let (set, timeout) = (set as usize, timeout as usize);
            syscall6(nr::RT_SIGTIMEDWAIT, set, 0, timeout, 8, 0, 0)
        };
        // EAGAIN: none came; EINTR: another signal did.
        check(came).ok().map(|signal| signal as i32)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_through();
    }
}

const SIG_BLOCK: usize = 0;
const SIG_SETMASK: usize = 2;

/// Changes the mask of blocked signals; gives what it was.
fn mask(how: usize, new: u64) -> Result<u64, Errno> {
    let mut old = 0_u64;
    let (new, at) = ((&raw const new) as usize, (&raw mut old) as usize);
    // SAFETY: SYSCALL; the kernel reads 8 bytes of `new` and writes 8 of `old`.
    check(unsafe { syscall6(nr::RT_SIGPROCMASK, how, new, at, 8, 0, 0) })?;
    Ok(old)
}

/// For a child: it ends without a word.
///
/// # Errors
/// As [`install`].
pub fn restore_defaults() -> Result<(), Errno> {
    set(SIGINT, SIG_DFL)?;
    set(SIGTERM, SIG_DFL)
}

/// For a helper that must outlive us: what ends us from the keyboard does not end it.
///
/// # Errors
/// As [`install`].
pub(super) fn ignore_stopping() -> Result<(), Errno> {
    const SIGHUP: usize = 1;
    const SIGQUIT: usize = 3;
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
        .into_iter()
        .try_for_each(|signal| set(signal, SIG_IGN))
}

/// What handles a signal now.
fn current(signal: usize) -> Result<usize, Errno> {
    let mut action = Action {
        handler: SIG_DFL,
        flags: 0,
        restorer: 0,
        mask: 0,
    };
    let at = (&raw mut action) as usize;
    // SAFETY: SYSCALL; the kernel writes `action`; the mask is 8 bytes.
    check(unsafe { syscall6(nr::RT_SIGACTION, signal, 0, at, 8, 0, 0) })?;
    Ok(action.handler)
}

/// For a child that becomes another program: what is ignored would stay so.
///
/// # Errors
/// As [`install`].
pub fn restore_for_program() -> Result<(), Errno> {
    restore_defaults()?;
    set(SIGPIPE, SIG_DFL)?;
    set(SIGXFSZ, SIG_DFL)
}

fn set(signal: usize, handler: usize) -> Result<(), Errno> {
    let action = Action {
        handler,
        // x86_64 kernels insist on a place to return to. The handler never returns, so
        // any will do.
        flags: SA_RESTORER,
        restorer: handler,
        mask: 0,
    };
    let at = (&raw const action) as usize;
    // SAFETY: SYSCALL; the kernel reads `action`; the mask is 8 bytes. The handler makes
    // system calls and uses its own stack only (signal-safety(7)), and ends the process.
    check(unsafe { syscall6(nr::RT_SIGACTION, signal, at, 0, 8, 0, 0) }).map(|_| ())
}
