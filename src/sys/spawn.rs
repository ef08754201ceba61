//! One exec of another program, timed: from before the clone until the kernel lets the
//! parent go on (the program has replaced the child's memory), and until its end was reaped.
//!
//! The child shares memory with its parent until then (CLONE_VM|CLONE_VFORK, clone(2)), so
//! that no page table is copied and the cost does not depend on the size of this process.
//! There is no shell and no helper between: the child does a dozen system calls of a table
//! and the last one is the exec. What it runs in is always the same: no environment, /dev/null
//! on all three standard descriptors, default signals, a process group of its own.

use super::arch::{clone_and_call, nr, syscall6};
use super::process::{Ending, Usage};
use super::signal;
use super::system::program_in_memory;
use super::table::Table;
use super::{Clock, Errno, Region, check};
use crate::text::Text;
use core::ffi::{CStr, c_char};
use core::ptr::null;
use core::sync::atomic::AtomicI32;
use heapless::Vec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{retry_on_intr, write};
use rustix::process::{Signal, pidfd_send_signal};

/// A program with its command line, ready to be started any number of times.
#[derive(Debug)]
pub struct Program {
    /// Pointers to the words and a null, as execve(2) takes them.
    arguments: Table<*const c_char>,
    source: Source,
}

/// What the kernel is handed.
#[derive(Debug)]
pub enum Source {
    /// The path that is the first word.
    Path,
    /// A file in memory that is made before each exec, of so many bytes of these.
    Memory(Region, usize),
    /// The same, executed by its name below /proc: TOMOYO looks for /dev/fd/N otherwise,
    /// which a bare /dev lacks (security/tomoyo/domain.c, `tomoyo_find_next_domain`).
    NamedMemory(Region, usize),
    /// This program itself, with the file as descriptor [`HANDED`].
    Loader(OwnedFd),
}

/// The number of the descriptor that a loader finds its program at.
pub const HANDED: &CStr = c"100";
const HANDED_NUMBER: usize = 100;

impl Program {
    /// A command line of `first` and `words`; nothing is looked up.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(
        first: &[&'static CStr],
        words: &mut dyn ExactSizeIterator<Item = &'static CStr>,
        source: Source,
    ) -> Result<Self, Errno> {
        let mut arguments = Table::new(first.len() + words.len() + 1)?;
        let pointers = first.iter().copied().chain(words).map(CStr::as_ptr);
        for pointer in pointers.chain(core::iter::once(null())) {
            arguments.push(pointer).map_err(|_| Errno::TOOBIG)?;
        }
        Ok(Self { arguments, source })
    }
}

impl Program {
    /// Makes a program from memory one that is executed by its name; whether it was none.
    pub fn name_memory(&mut self) -> bool {
        let source = core::mem::replace(&mut self.source, Source::Path);
        let (source, is_new) = match source {
            Source::Memory(bytes, len) => (Source::NamedMemory(bytes, len), true),
            other => (other, false),
        };
        self.source = source;
        is_new
    }
}

/// What one exec gave.
#[derive(Clone, Copy, Debug)]
pub struct Execed {
    /// From before the clone (with a program from memory: before its file is made) until the
    /// kernel let the parent go on, in nanoseconds.
    pub exec_ns: u64,
    /// How it ended; `None` if it did not in time and was killed.
    pub end: Option<End>,
    /// It did not end in time and lives on: its number, and why it cannot be killed.
    pub survivor: Option<(i32, Errno)>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub struct End {
    /// From the same start until the end was reaped, in nanoseconds.
    pub total_ns: u64,
    /// With what.
    pub ending: Ending,
    /// Minor faults, of its own and of what it waited for.
    pub minor_faults: u64,
    /// Major faults, likewise.
    pub major_faults: u64,
    /// Times that it lost its CPU to another, likewise.
    pub involuntary_switches: u64,
}

/// `struct` of a system call: number and arguments.
type Call = [usize; 6];

/// Starts `program`, waits for its end and kills what is left of its process group. After
/// `patience_ns` without an end the program, wherever it went, and its group are killed. A
/// signal that ends this process ends the group; SIGKILL ends the program alone.
/// An exec that hangs is killed after the same time, if the kernel can; a signal waits for that.
///
/// C form: `clone(CLONE_VM|CLONE_VFORK|CLONE_PIDFD|SIGCHLD)`, in the child `execve`, or
/// `execveat(fd, "", …, AT_EMPTY_PATH)`; then `poll(pidfd)`, `wait4`; clone(2), execveat(2),
/// pidfd_open(2), wait4(2). Needs Linux 5.3.
///
/// # Errors
/// What the kernel says to the exec, or to the clone before it: `ENOENT`, `EACCES`,
/// `ENOEXEC`, `EAGAIN`; nothing is left running.
pub fn exec(
    program: &mut Program,
    null: &OwnedFd,
    clock: Clock,
    patience_ns: u64,
) -> Result<Execed, Errno> {
    let limit = [
        0,
        0,
        patience_ns / 1_000_000_000,
        patience_ns % 1_000_000_000,
    ];
    let mut calls = calls(program, null, &limit);
    // The child begins with this program's handlers, and one of them could run in memory that
    // both share.
    let held = signal::hold()?;
    let start = clock.now_ns();
    let image = match &mut program.source {
        Source::Memory(bytes, len) | Source::NamedMemory(bytes, len) => {
            Some(in_memory(&bytes.bytes_mut()[..*len])?)
        }
        Source::Path | Source::Loader(_) => None,
    };
    let mut name = Text::new();
    if let (Some(file), Some(last)) = (&image, calls.last_mut()) {
        let number = number(file);
        name.add("/proc/self/fd/").number(number as u64).add("\0");
        let name = name.read().map_err(|_| Errno::NAMETOOLONG)?;
        last[1] = match program.source {
            Source::NamedMemory(..) => name.as_ptr() as usize,
            _ => number,
        };
    }
    signal::lend_memory(true);
    let cloned = Running::clone(&calls);
    let executed = clock.now_ns();
    signal::lend_memory(false);
    if let Ok(running) = &cloned {
        signal::end_numbered_group_too(running.pid);
    }
    drop(held);
    let mut running = cloned?;
    // A child that its timer killed has ended, and has run no program.
    let end = match patience_ns.saturating_sub(executed.saturating_sub(start)) {
        0 => None,
        left => running.wait(left)?,
    };
    let ended = clock.now_ns();
    let survivor = match &end {
        Some(_) => None,
        None => running.kill().err().map(|errno| (running.pid, errno)),
    };
    drop(image);
    Ok(Execed {
        survivor,
        exec_ns: executed.saturating_sub(start),
        end: end.map(|(ending, usage)| End {
            total_ns: ended.saturating_sub(start),
            ending,
            minor_faults: usage.minor,
            major_faults: usage.major,
            involuntary_switches: usage.involuntary_switches,
        }),
    })
}

/// A file in memory with these bytes.
fn in_memory(mut bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = program_in_memory(c"held")?;
    while !bytes.is_empty() {
        let written = retry_on_intr(|| write(&file, bytes))?;
        bytes = bytes.get(written..).ok_or(Errno::IO)?;
    }
    Ok(file)
}

/// The calls of a child; the last is the exec.
type Calls = Vec<Call, 14>;
const CLOCK_MONOTONIC: usize = 1;
/// `struct sigevent`: a value, then signal and way (SIGEV_SIGNAL, 0) in a word; sigevent(7).
static KILLS: [u64; 8] = [0, SIGKILL as u64, 0, 0, 0, 0, 0, 0];
/// Where the kernel says the number of the child's timer.
static TIMER: AtomicI32 = AtomicI32::new(0);
/// `sizeof(sigset_t)` of the kernel.
const MASK_BYTES: usize = 8;
const SIG_SETMASK: usize = 2;
static NO_SIGNALS: u64 = 0;
static DEFAULT_ACTION: signal::Action = signal::DEFAULT;
static NO_ENVIRONMENT: [usize; 1] = [0];

/// What the child does between clone and exec. An exec that hangs (its file is on a server
/// that does not answer, or waits for a permission of fanotify(7)) would hold the parent, which
/// hears no signal until then; so the child kills itself by a timer, which the exec deletes once
/// it is done (timer_create(2)). The first timer of a process is number 0 (`posix_timer_add`,
/// kernel/time/posix-timers.c).
fn calls(program: &mut Program, null: &OwnedFd, limit: &[u64; 4]) -> Calls {
    const PR_SET_PDEATHSIG: usize = 1;
    const AT_EMPTY_PATH: usize = 0x1000;
    let null = number(null);
    let action = |signal| {
        let default = (&raw const DEFAULT_ACTION) as usize;
        [nr::RT_SIGACTION, signal, default, 0, MASK_BYTES, 0]
    };
    let no_signals = (&raw const NO_SIGNALS) as usize;
    let environment = (&raw const NO_ENVIRONMENT) as usize;
    let arguments = program.arguments.as_mut_slice();
    let path = arguments[0] as usize;
    let arguments = arguments.as_ptr() as usize;
    let text = |text: &'static CStr| text.as_ptr() as usize;
    let mut calls = Calls::from([
        [nr::PRCTL, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0],
        [nr::SETPGID, 0, 0, 0, 0, 0],
        [nr::DUP3, null, 0, 0, 0, 0],
        [nr::DUP3, null, 1, 0, 0, 0],
        [nr::DUP3, null, 2, 0, 0, 0],
        [
            nr::TIMER_CREATE,
            CLOCK_MONOTONIC,
            (&raw const KILLS) as usize,
            TIMER.as_ptr() as usize,
            0,
            0,
        ],
        [nr::TIMER_SETTIME, 0, 0, limit.as_ptr() as usize, 0, 0],
    ]);
    // There is room for all.
    calls.extend(signal::TAKEN.into_iter().map(action));
    let unmask = [
        nr::RT_SIGPROCMASK,
        SIG_SETMASK,
        no_signals,
        0,
        MASK_BYTES,
        0,
    ];
    let _ = calls.push(unmask);
    let exec = |path| [nr::EXECVE, path, arguments, environment, 0, 0];
    // There is room for both.
    let _ = match &program.source {
        Source::Path => calls.push(exec(path)),
        // The name, or the descriptor, is filled in once there is one.
        Source::NamedMemory(..) => calls.push(exec(0)),
        Source::Memory(..) => calls.push([
            nr::EXECVEAT,
            0,
            text(c""),
            arguments,
            environment,
            AT_EMPTY_PATH,
        ]),
        Source::Loader(file) => calls
            .push([nr::DUP3, number(file), HANDED_NUMBER, 0, 0, 0])
            .and_then(|()| calls.push(exec(text(c"/proc/self/exe")))),
    };
    calls
}

fn number(file: &OwnedFd) -> usize {
    file.as_raw_fd().cast_unsigned() as usize
}

/// Opens /dev/null for reading and writing. Its descriptor is above the standard ones.
///
/// # Errors
/// As open(2).
pub fn open_null() -> Result<OwnedFd, Errno> {
    super::file::open_as(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC)
}

/// A child that runs another program; it is killed and reaped if this value goes, unless it
/// cannot be killed.
struct Running {
    pid: i32,
    pidfd: OwnedFd,
    is_done: bool,
}

const SIGKILL: usize = 9;
/// How long a program that was killed may take to end: longer than any that the kernel does
/// not keep from ending.
const LAST_WAIT_S: i64 = 5;

impl Running {
    /// Comes back once the exec is done.
    fn clone(calls: &Calls) -> Result<Self, Errno> {
        const CLONE_VM: usize = 0x100;
        const CLONE_PIDFD: usize = 0x1000;
        const CLONE_VFORK: usize = 0x4000;
        const SIGCHLD: usize = 17;
        let flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD;
        let (mut pidfd, mut failed) = (-1, 0);
        // SAFETY: SYSCALL; SINGLE: the only thread stands still until the child has left this
        // memory, by exec or exit, and all that the calls name lives longer: statics, the
        // words of argv, and the program, which is borrowed by the caller. The last of the
        // calls is an exec.
        let pid = check(unsafe {
            clone_and_call(flags, &raw mut pidfd, calls.as_ptr(), &raw mut failed)
        })?;
        // SAFETY: fresh from the kernel, so nobody else owns it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd & i32::MAX) };
        let running = Self {
            // Process numbers are below 2^22 (PID_MAX_LIMIT, include/linux/threads.h).
            pid: pid as i32,
            pidfd,
            is_done: false,
        };
        // A child that failed has ended or is about to: dropping reaps it.
        check(failed).map(|_| running)
    }

    /// Waits for the end; `None` if it takes longer than `patience_ns`.
    fn wait(&mut self, patience_ns: u64) -> Result<Option<(Ending, Usage)>, Errno> {
        let timeout = Timespec {
            tv_sec: (patience_ns / 1_000_000_000).cast_signed(),
            tv_nsec: (patience_ns % 1_000_000_000).cast_signed(),
        };
        match self.has_ended(timeout)? {
            true => self.reap().map(Some),
            false => Ok(None),
        }
    }

    /// Whether it ends within this time. poll(2) on a pidfd.
    fn has_ended(&self, timeout: Timespec) -> Result<bool, Errno> {
        let mut wait = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // Every signal that has a handler ends this process in it.
        Ok(retry_on_intr(|| poll(&mut wait, Some(&timeout)))? > 0)
    }

    /// Kills it and its group, and reaps it. By its pidfd as well: it may have left the
    /// group. pidfd_send_signal(2).
    ///
    /// # Errors
    /// Then it lives: `EPERM` (it has other rights, by a set-user-ID file), `ETIMEDOUT` (it
    /// does not end: it waits for a device, or is stopped by a debugger).
    fn kill(&mut self) -> Result<(), Errno> {
        self.kill_group();
        let killed = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let last_wait = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
        let patience = if killed.is_ok() { LAST_WAIT_S } else { 0 };
        let outcome = match self.has_ended(last_wait(patience)) {
            Ok(true) => return self.reap().map(|_| ()),
            Ok(false) => killed.err().unwrap_or(Errno::TIMEDOUT),
            Err(errno) => errno,
        };
        self.is_done = true;
        signal::end_numbered_group_too(0);
        Err(outcome)
    }

    /// ESRCH: it did not get as far as to have a group, or has left it.
    fn kill_group(&self) {
        let group = (self.pid as isize).wrapping_neg().cast_unsigned();
        // SAFETY: SYSCALL; only numbers.
        let _ = unsafe { syscall6(nr::KILL, group, SIGKILL, 0, 0, 0, 0) };
    }

    /// Kills what is left of the group, then reaps; in this order, because until then
    /// nobody else can have the number. It has ended, or the wait is without end.
    fn reap(&mut self) -> Result<(Ending, Usage), Errno> {
        self.kill_group();
        signal::end_numbered_group_too(0);
        let (mut status, mut usage) = (0i32, Usage::default());
        let (at, usage_at) = ((&raw mut status) as usize, (&raw mut usage) as usize);
        let pid = self.pid.cast_unsigned() as usize;
        // SAFETY: SYSCALL; the kernel writes an int and one `struct rusage`.
        let wait = || check(unsafe { syscall6(nr::WAIT4, pid, at, 0, usage_at, 0, 0) });
        let waited = retry_on_intr(wait);
        self.is_done = true;
        waited?;
        // wait(2): the low seven bits are the signal, the next byte is the status.
        let ending = match status & 0x7f {
            0 => Ending::Exited(status >> 8 & 0xff),
            signal => Ending::Killed(signal),
        };
        Ok((ending, usage))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_done {
            // One that failed before its exec is this program still, and can be killed.
            let _ = self.kill();
        }
    }
}
