//! One exec of another program, timed: from before the clone until the kernel lets the
//! parent go on (the program has replaced the child's memory), and until its end was reaped.
//!
//! The child shares memory with its parent until then (CLONE_VM|CLONE_VFORK, clone(2)), so
//! that no page table is copied and the cost does not depend on the size of this process.
//! There is no shell and no helper between: the child does eleven system calls of a table
//! and the last one is the exec. What it runs in is always the same: no environment, /dev/null
//! on all three standard descriptors, default signals, a process group of its own.

use super::arch::{clone_and_call, nr, syscall6};
use super::process::{Ending, Usage};
use super::signal;
use super::system::file_in_memory;
use super::table::Table;
use super::{Clock, Errno, Region, check};
use core::ffi::{CStr, c_char};
use core::ptr::null;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{retry_on_intr, write};

/// A program with its command line, ready to be started any number of times.
#[derive(Debug)]
pub struct Program {
    /// Pointers to the words and a null, as execve(2) takes them.
    arguments: Table<*const c_char>,
    /// Its bytes, if it is started from memory, and how many.
    bytes: Option<(Region, usize)>,
}

impl Program {
    /// The program at the path that is the first of `words`; nothing is looked up.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(words: &mut dyn ExactSizeIterator<Item = &'static CStr>) -> Result<Self, Errno> {
        let mut arguments = Table::new(words.len() + 1)?;
        let pointers = words.map(CStr::as_ptr);
        for pointer in pointers.chain(core::iter::once(null())) {
            arguments.push(pointer).map_err(|_| Errno::TOOBIG)?;
        }
        Ok(Self {
            arguments,
            bytes: None,
        })
    }

    /// The same from memory: before each exec a file in memory is made of `bytes`.
    #[must_use]
    pub fn from_memory(self, bytes: Region, len: usize) -> Self {
        Self {
            bytes: Some((bytes, len)),
            ..self
        }
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
/// `patience_ns` without an end the group is killed.
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
    let mut calls = calls(program, null);
    let all_signals = Mask::block_all()?;
    let start = clock.now_ns();
    let image = match &mut program.bytes {
        None => None,
        Some((bytes, len)) => Some(in_memory(&bytes.bytes_mut()[..*len])?),
    };
    if let Some(file) = &image {
        calls[LAST][1] = file.as_raw_fd().cast_unsigned() as usize;
    }
    let cloned = Running::clone(&calls);
    let executed = clock.now_ns();
    drop(all_signals);
    let running = cloned?;
    let end = running.wait(patience_ns)?;
    let ended = clock.now_ns();
    drop(image);
    Ok(Execed {
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
    let file = file_in_memory()?;
    while !bytes.is_empty() {
        let written = retry_on_intr(|| write(&file, bytes))?;
        bytes = bytes.get(written..).ok_or(Errno::IO)?;
    }
    Ok(file)
}

/// The number of calls of a child, and the place of the exec among them.
const CALLS: usize = 11;
const LAST: usize = CALLS - 1;
/// `sizeof(sigset_t)` of the kernel.
const MASK_BYTES: usize = 8;
const SIG_SETMASK: usize = 2;
static NO_SIGNALS: u64 = 0;
static DEFAULT_ACTION: signal::Action = signal::DEFAULT;
static NO_ENVIRONMENT: [usize; 1] = [0];

/// What the child does between clone and exec.
fn calls(program: &mut Program, null: &OwnedFd) -> [Call; CALLS] {
    const PR_SET_PDEATHSIG: usize = 1;
    const SIGKILL: usize = 9;
    const AT_EMPTY_PATH: usize = 0x1000;
    let null = null.as_raw_fd().cast_unsigned() as usize;
    let action = |signal| {
        let default = (&raw const DEFAULT_ACTION) as usize;
        [nr::RT_SIGACTION, signal, default, 0, MASK_BYTES, 0]
    };
    let [interrupt, terminate, pipe, size] = signal::TAKEN.map(action);
    let no_signals = (&raw const NO_SIGNALS) as usize;
    let environment = (&raw const NO_ENVIRONMENT) as usize;
    let arguments = program.arguments.as_mut_slice();
    let path = arguments[0] as usize;
    let arguments = arguments.as_ptr() as usize;
    let last = match &program.bytes {
        None => [nr::EXECVE, path, arguments, environment, 0, 0],
        // The descriptor is filled in once there is one.
        Some(_) => {
            let nothing = c"".as_ptr() as usize;
            [
                nr::EXECVEAT,
                0,
                nothing,
                arguments,
                environment,
                AT_EMPTY_PATH,
            ]
        }
    };
    [
        [nr::PRCTL, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0],
        [nr::SETPGID, 0, 0, 0, 0, 0],
        interrupt,
        terminate,
        pipe,
        size,
        [
            nr::RT_SIGPROCMASK,
            SIG_SETMASK,
            no_signals,
            0,
            MASK_BYTES,
            0,
        ],
        [nr::DUP3, null, 0, 0, 0, 0],
        [nr::DUP3, null, 1, 0, 0, 0],
        [nr::DUP3, null, 2, 0, 0, 0],
        last,
    ]
}

/// Opens /dev/null for reading and writing. Its descriptor is above the standard ones.
///
/// # Errors
/// As open(2).
pub fn open_null() -> Result<OwnedFd, Errno> {
    super::file::open_as(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC)
}

/// A child that runs another program; it is killed and reaped if this value goes.
struct Running {
    pid: usize,
    pidfd: OwnedFd,
    is_reaped: bool,
}

impl Running {
    /// Comes back once the exec is done.
    fn clone(calls: &[Call; CALLS]) -> Result<Self, Errno> {
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
            pid,
            pidfd,
            is_reaped: false,
        };
        // A child that failed has ended or is about to: dropping reaps it.
        check(failed).map(|_| running)
    }

    /// Waits for the end; `None` if it takes longer than `patience_ns`.
    fn wait(mut self, patience_ns: u64) -> Result<Option<(Ending, Usage)>, Errno> {
        let timeout = Timespec {
            tv_sec: (patience_ns / 1_000_000_000).cast_signed(),
            tv_nsec: (patience_ns % 1_000_000_000).cast_signed(),
        };
        let mut wait = [PollFd::new(&self.pidfd, PollFlags::IN)];
        // Every signal that has a handler ends this process in it.
        match retry_on_intr(|| poll(&mut wait, Some(&timeout)))? {
            // Dropping kills it.
            0 => Ok(None),
            _ => self.reap().map(Some),
        }
    }

    /// Kills what is left of the group, then reaps; in this order, because until then
    /// nobody else can have the number.
    fn reap(&mut self) -> Result<(Ending, Usage), Errno> {
        const SIGKILL: usize = 9;
        let group = self.pid.cast_signed().wrapping_neg().cast_unsigned();
        // ESRCH: it did not get as far as to have a group.
        // SAFETY: SYSCALL; only numbers.
        let _ = unsafe { syscall6(nr::KILL, group, SIGKILL, 0, 0, 0, 0) };
        let (mut status, mut usage) = (0i32, Usage::default());
        let (at, usage_at) = ((&raw mut status) as usize, (&raw mut usage) as usize);
        // SAFETY: SYSCALL; the kernel writes an int and one `struct rusage`.
        let wait = || check(unsafe { syscall6(nr::WAIT4, self.pid, at, 0, usage_at, 0, 0) });
        let waited = retry_on_intr(wait);
        self.is_reaped = true;
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
        if !self.is_reaped {
            let _ = self.reap();
        }
    }
}

/// No signal is delivered while this lives: the child begins with its parent's handlers,
/// and one of them could run in memory that both share.
struct Mask(u64);

impl Mask {
    fn block_all() -> Result<Self, Errno> {
        let mut before = 0;
        set_mask(&u64::MAX, &raw mut before)?;
        Ok(Self(before))
    }
}

impl Drop for Mask {
    fn drop(&mut self) {
        let set = set_mask(&self.0, core::ptr::null_mut());
        debug_assert_eq!(set, Ok(()));
    }
}

fn set_mask(mask: &u64, before: *mut u64) -> Result<(), Errno> {
    let (at, before) = (core::ptr::from_ref(mask) as usize, before as usize);
    // SAFETY: SYSCALL; the kernel reads eight bytes at `mask`, and writes as many at
    // `before` unless it is null.
    let set = unsafe {
        syscall6(
            nr::RT_SIGPROCMASK,
            SIG_SETMASK,
            at,
            before,
            MASK_BYTES,
            0,
            0,
        )
    };
    check(set).map(|_| ())
}
