//! SIGINT and SIGTERM end the program at once, in their handler; a closed pipe becomes
//! EPIPE, a file that may not grow EFBIG. A signal that was ignored when the program was
//! started stays ignored (nohup(1)).
//!
//! Ending there is safe at any point: a row, or a line, leaves in one write(2), so none is
//! cut; a child is killed when its parent dies (PR_SET_PDEATHSIG); the one file there may be
//! is removed by the handler ([`doomed`]), and so is what else a command leaves
//! ([`undo_when_stopped`]). A flag that is looked at between cases would let a long pass, or a
//! full pipe, keep the program alive.

use super::arch::{nr, syscall6};
use super::process::{Child, exit};
use super::{Errno, check, doomed, stdio};
use crate::text::Text;
use core::mem::transmute;
use core::ptr::{null_mut, with_exposed_provenance};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
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
const SIGILL: usize = 4;
const SIGTRAP: usize = 5;
const SIGABRT: usize = 6;
const SIGBUS: usize = 7;
const SIGFPE: usize = 8;
const SIGUSR1: usize = 10;
const SIGSEGV: usize = 11;
const SIGUSR2: usize = 12;
const SIGPIPE: usize = 13;
const SIGALRM: usize = 14;
const SIGTERM: usize = 15;
const SIGSTKFLT: usize = 16;
const SIGCHLD: usize = 17;
const SIGXCPU: usize = 24;
const SIGXFSZ: usize = 25;
const SIGVTALRM: usize = 26;
const SIGPROF: usize = 27;
const SIGIO: usize = 29;
const SIGPWR: usize = 30;
const SIGSYS: usize = 31;
/// The first and the last of the real-time signals, as the kernel counts them.
const SIGRTMIN: usize = 32;
const SIGRTMAX: usize = 64;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SA_RESTORER: usize = 0x0400_0000;

/// The leader of the process group that ends with this process; 0 if there is none.
static GROUP: AtomicI32 = AtomicI32::new(0);

/// From now on a signal that ends this process ends the group that `leader` leads as well:
/// children of children, which do not notice that their parent's parent is gone.
pub fn end_group_too(leader: Option<&Child>) {
    end_numbered_group_too(leader.map_or(0, Child::pid));
}

/// As [`end_group_too`], by the number of the group; 0 for none. Whoever says a number
/// takes it back before its leader is reaped: then it may be another's.
pub(super) fn end_numbered_group_too(leader: i32) {
    GROUP.store(leader, Ordering::Relaxed);
}

/// What [`undo_when_stopped`] was given; null: nothing.
static UNDO: AtomicPtr<()> = AtomicPtr::new(null_mut());

/// From now on a signal that ends this process calls `undo` first, once, in the handler: it
/// may run in the middle of anything, so it makes system calls and looks at nothing else.
pub fn undo_when_stopped(undo: fn()) {
    UNDO.store(undo as *mut (), Ordering::Relaxed);
}

/// Whether a child runs in this memory, so that who handles a signal is that child.
static IS_LENT: AtomicBool = AtomicBool::new(false);

/// Says that a child is to run in this memory, or does so no longer, while signals of its
/// parent are held: one that comes to the child then ends it alone.
pub(super) fn lend_memory(is_lent: bool) {
    IS_LENT.store(is_lent, Ordering::Relaxed);
}

extern "C" fn stop(signal: i32) {
    if IS_LENT.load(Ordering::Relaxed) {
        exit(128 + signal)
    }
    let removed = doomed::remove();
    if let Some(leader) = Pid::from_raw(GROUP.load(Ordering::Relaxed)) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
    // Not swapped: this CPU and nobody else looks at it, and aarch64 would want a library for it.
    let undo = UNDO.load(Ordering::Relaxed);
    if !undo.is_null() {
        UNDO.store(null_mut(), Ordering::Relaxed);
        // SAFETY: `undo_when_stopped`, which alone writes it, was given such a function.
        let undo = unsafe { transmute::<*mut (), fn()>(undo) };
        undo();
    }
    let mut line = Text::new();
    line.add("\n")
        .add(name())
        .add(": error: stopped by signal ");
    line.signed(signal.into());
    if removed.is_err() {
        line.add("; a file of its own could not be removed");
    }
    line.add("\n");
    let _ = stdio::stderr().write_all(line.read().unwrap_or_default().as_bytes());
    exit(128 + signal)
}

/// Installs the handlers, and takes back an inherited SIG_IGN for SIGCHLD, under which a
/// child that died would not wait to be reaped. sigaction(2).
///
/// # Errors
/// None that the man page names for these arguments.
pub fn install() -> Result<(), Errno> {
    [SIGINT, SIGTERM].into_iter().try_for_each(end_on)?;
    [(SIGPIPE, SIG_IGN), (SIGXFSZ, SIG_IGN), (SIGCHLD, SIG_DFL)]
        .into_iter()
        .try_for_each(|(signal, handler)| set(signal, handler))
}

/// Lets a signal end the program in [`stop`], unless it is ignored.
fn end_on(signal: usize) -> Result<(), Errno> {
    match current(signal)? {
        SIG_IGN => Ok(()),
        _ => set(signal, stop as *const () as usize),
    }
}

/// A static text that a handler says: where it is, how long.
struct Words([AtomicUsize; 2]);

impl Words {
    const fn new() -> Self {
        Self([AtomicUsize::new(0), AtomicUsize::new(0)])
    }

    fn set(&self, text: &'static str) {
        self.0[1].store(0, Ordering::Release);
        self.0[0].store(text.as_ptr().expose_provenance(), Ordering::Release);
        self.0[1].store(text.len(), Ordering::Release);
    }

    /// `otherwise` if nothing was set.
    fn get(&self, otherwise: &'static [u8]) -> &'static [u8] {
        let [at, len] = [0, 1].map(|which: usize| self.0[which].load(Ordering::Acquire));
        if len == 0 {
            return otherwise;
        }
        // SAFETY: `set` has put the parts of a static text there, the length last.
        unsafe { core::slice::from_raw_parts(with_exposed_provenance(at), len) }
    }
}

/// What [`on_bus_error`] was given.
static BUS_ERROR: Words = Words::new();
/// What [`speak_as`] was given.
static NAME: Words = Words::new();

/// From now on this is the name with which errors begin, that of a signal included.
pub fn speak_as(name: &'static str) {
    NAME.set(name);
}

/// The name with which errors begin.
#[must_use]
pub fn name() -> &'static str {
    str::from_utf8(NAME.get(b"cowitness")).unwrap_or_default()
}

extern "C" fn unreadable(_signal: i32) {
    let _ = doomed::remove();
    let _ = stdio::stderr().write_all(BUS_ERROR.get(b""));
    exit(1)
}

/// Makes a mapped file's page that cannot be read an error like any other: `line` on standard
/// error, and exit status 1.
///
/// # Errors
/// As [`install`].
pub fn on_bus_error(line: &'static str) -> Result<(), Errno> {
    BUS_ERROR.set(line);
    set(SIGBUS, unreadable as *const () as usize)
}

/// From now on such a page ends the program by SIGBUS again.
///
/// # Errors
/// As [`install`].
pub fn end_on_bus_error() -> Result<(), Errno> {
    set(SIGBUS, SIG_DFL)
}

/// What else people, limits and timers end a program with; so do real-time signals.
const OTHERS: [usize; 12] = [
    SIGHUP, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGSTKFLT, SIGXCPU, SIGVTALRM, SIGPROF,
    SIGIO, SIGPWR,
];

/// Other signals end the program like SIGINT, unless they are ignored.
///
/// # Errors
/// As [`install`].
pub fn stop_on_others() -> Result<(), Errno> {
    let mut others = OTHERS.into_iter().chain(SIGRTMIN..=SIGRTMAX);
    others.try_for_each(end_on)
}

/// While it lives, signals that would end this process wait, for who has something to undo.
pub struct Held(u64);

/// What a defect raises, and anybody may send. While one is held back a defect ends the process
/// all the same (`force_sig_info_to_task`, kernel/signal.c).
const FAULTS: [usize; 6] = [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];

/// All that end a process and can be held back, as the kernel takes a set: bit n-1 is signal n.
pub(super) static ENDING: u64 = {
    let real_time = u64::MAX << (SIGRTMIN - 1);
    let others = bits(&OTHERS) | bits(&FAULTS);
    bits(&[SIGINT, SIGTERM]) | others | real_time
};

/// SIGKILL, in the same form. A signal that ends a process, and leaves no core, becomes this one as
/// it is sent (`complete_signal`, kernel/signal.c).
pub(super) const KILL: u64 = 1 << 8;

const fn bits(signals: &[usize]) -> u64 {
    let (mut bits, mut next) = (0, 0);
    while next < signals.len() {
        bits |= 1 << (signals[next] - 1);
        next += 1;
    }
    bits
}

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

/// SIGINT and SIGTERM end the program as if it knew nothing of them, unless they are ignored: at
/// once, and also out of a wait in the kernel that only a fatal signal ends (`fatal_signal_pending`:
/// for a file server that does not answer). No handler runs there.
///
/// # Errors
/// As [`install`].
pub fn end_out_of_the_kernel() -> Result<(), Errno> {
    [SIGINT, SIGTERM]
        .into_iter()
        .try_for_each(|signal| match current(signal)? {
            SIG_IGN => Ok(()),
            _ => set(signal, SIG_DFL),
        })
}

/// For a helper that must outlive us: what ends us from the keyboard does not end it.
///
/// # Errors
/// As [`install`].
pub(super) fn ignore_stopping() -> Result<(), Errno> {
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
