//! Processes: fork without a libc, children that cannot outlive us, fault counters.

use super::arch::{nr, syscall6};
use super::file::read_link;
use super::{Errno, check};
use crate::text::Text;
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getppid, kill_process,
    kill_process_group, set_child_subreaper, set_parent_process_death_signal, setpgid, wait,
    waitid, waitpid,
};
use rustix::thread::{Timespec, nanosleep};

/// Which side of [`fork`] we are on.
pub enum Side {
    /// The process that called.
    Parent(Child),
    /// The new process.
    Child,
}

/// A copy of this process that is killed when its parent dies.
///
/// C form: `clone(SIGCHLD)` and, in the child, `prctl(PR_SET_PDEATHSIG, SIGKILL)`;
/// clone(2), prctl(2). The child comes back only if its parent is still the one that
/// forked it, so the gap between the two calls is closed.
///
/// # Errors
/// `EAGAIN` (process limit), `ENOMEM`.
pub fn fork() -> Result<Side, Errno> {
    Ok(match copy(0, Some(getpid()))? {
        Some(pid) => Side::Parent(Child { pid }),
        None => Side::Child,
    })
}

/// A copy of this process whose parent is this one's own, as if it had been forked by that: it
/// outlives this process, and not its parent. Only the copy comes back; this process exits.
///
/// C form: `clone(CLONE_PARENT | SIGCHLD)`, else as [`fork`].
///
/// # Errors
/// As [`fork`].
pub fn become_a_copy() -> Result<(), Errno> {
    const CLONE_PARENT: usize = 0x8000;
    match copy(CLONE_PARENT, getppid())? {
        Some(_) => exit(0),
        None => Ok(()),
    }
}

/// The process id of the copy; `None` in the copy itself, which is `parent`'s child.
fn copy(flags: usize, parent: Option<Pid>) -> Result<Option<Pid>, Errno> {
    const SIGCHLD: usize = 17;
    // SAFETY: SYSCALL; without CLONE_VM the child has its own copy of everything, and
    // SINGLE: no lock can be held by a thread that the child does not have.
    let raw = check(unsafe { syscall6(nr::CLONE, flags | SIGCHLD, 0, 0, 0, 0, 0) })?;
    let copy = i32::try_from(raw).ok().and_then(Pid::from_raw);
    let dies_with_parent =
        || set_parent_process_death_signal(Some(Signal::KILL)).is_ok() && getppid() == parent;
    if copy.is_none() && !dies_with_parent() {
        exit(1);
    }
    Ok(copy)
}

/// A child that is killed and reaped when this value goes.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
}

impl Child {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Waits for its own end, and gives the child that it has left in its place; `pid` is that of
    /// [`become_a_copy`] in it.
    ///
    /// # Errors
    /// `ESRCH`: it was to be given up.
    pub fn succeeded_by(self, pid: i32, given_up: &mut dyn FnMut() -> bool) -> Result<Self, Errno> {
        let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
        let child = Self { pid };
        self.end_unless(given_up)?.ok_or(Errno::SRCH)?;
        Ok(child)
    }

    /// A child's child, which is this process's once that has ended, if it adopts orphans
    /// ([`adopt_orphans`]): to be dropped after it.
    #[must_use]
    pub fn heir(pid: i32) -> Option<Self> {
        Pid::from_raw(pid).map(|pid| Self { pid })
    }

    /// How it ended, if it has; it can be asked again. waitid(2) with WNOWAIT.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // ECHILD cannot be: only dropping this value reaps it.
        let status = retry_on_intr(|| waitid(WaitId::Pid(self.pid), options)).ok()??;
        let exited = status.exit_status().map(Ending::Exited);
        exited.or(status.terminating_signal().map(Ending::Killed))
    }

    /// Makes it the leader of a process group of its own. setpgid(2).
    ///
    /// # Errors
    /// `ESRCH`, `EPERM`.
    pub fn lead_group(&self) -> Result<(), Errno> {
        setpgid(Some(self.pid), Some(self.pid))
    }

    /// Sends SIGKILL to every process of the group that it leads. kill(2).
    pub fn kill_group(&self) {
        // ESRCH: none is left.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    fn wait(&self, options: WaitOptions) -> Result<WaitStatus, Errno> {
        let (_, status) =
            retry_on_intr(|| waitpid(Some(self.pid), options))?.ok_or(Errno::CHILD)?;
        Ok(status)
    }
}

/// Waits until a child or tracee is in a stop; gives the signal that would be lost if it were
/// let go without one: 0 for the stop that PTRACE_INTERRUPT asked for, and for a job-control
/// stop, which lasts by itself.
///
/// # Errors
/// `ESRCH` if it ended instead; as waitpid(2).
pub(super) fn wait_for_stop(pid: i32) -> Result<i32, Errno> {
    // ptrace(2), "Stopped states": PTRACE_EVENT_STOP in the third byte of the status.
    const EVENT_STOP: u32 = 128;
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    let (_, status) =
        retry_on_intr(|| waitpid(Some(pid), WaitOptions::UNTRACED))?.ok_or(Errno::CHILD)?;
    let raw = status.as_raw().cast_unsigned();
    match status.stopping_signal() {
        Some(_) if raw >> 16 == EVENT_STOP => Ok(0),
        Some(signal) => Ok(signal),
        None => Err(Errno::SRCH),
    }
}

/// How long a child that may not be killed has to end by itself.
pub const DENIED_PATIENCE_MS: u32 = 2000;

impl Child {
    /// Kills and reaps it. One that has become a program of another user (setuid) may not be
    /// killed; it has so many milliseconds to end by itself. kill(2), waitpid(2).
    ///
    /// # Errors
    /// What kill(2) gave, `EPERM` mostly: it is still there.
    fn end(&self, patience_ms: u32) -> Result<(), Errno> {
        let denied = match kill_process(self.pid, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {
                // ECHILD: it is reaped already.
                while self.wait(WaitOptions::empty()).is_ok_and(goes_on) {}
                return Ok(());
            }
            // A filter may deny the call with any error.
            Err(errno) => errno,
        };
        for _ in 0..patience_ms {
            if self.ended() != Ok(None) {
                return Ok(());
            }
            sleep_ms(1);
        }
        Err(denied)
    }

    /// Ends it, as dropping it does, and tells if that cannot be.
    ///
    /// # Errors
    /// `EPERM`: it has become a program of another user, and goes on. What else denies kill(2).
    pub fn finish(self, patience_ms: u32) -> Result<(), Errno> {
        let ended = self.end(patience_ms);
        core::mem::forget(self);
        ended
    }
}

/// Whether it was only stopped or continued.
fn goes_on(status: WaitStatus) -> bool {
    !status.exited() && !status.signaled()
}

impl Drop for Child {
    fn drop(&mut self) {
        // Who wants to know asks `finish`.
        let _ = self.end(DENIED_PATIENCE_MS);
    }
}

/// Sends a signal to a child of ours. kill(2).
pub fn send(pid: i32, signal: i32) {
    if let (Some(pid), Some(signal)) = (Pid::from_raw(pid), Signal::from_named_raw(signal)) {
        // ESRCH: it has ended by itself.
        let _ = kill_process(pid, signal);
    }
}

/// Kills a process whose id nobody else can have got: a child of ours that we alone wait
/// for, or a child of one that has not reaped it. kill(2).
pub fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // ESRCH: it has ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Child {
    /// How it ended, if it has; the value must not be dropped afterwards, but forgotten.
    fn ended(&self) -> Result<Option<Ending>, Errno> {
        let waited = retry_on_intr(|| waitpid(Some(self.pid), WaitOptions::NOHANG))?;
        Ok(waited.and_then(|(_, status)| {
            let exited = status.exit_status().map(Ending::Exited);
            exited.or(status.terminating_signal().map(Ending::Killed))
        }))
    }

    /// Waits for its end, until `given_up` says that it is to be killed.
    ///
    /// # Errors
    /// `ECHILD` if somebody else has reaped it.
    pub fn end_unless(self, given_up: &mut dyn FnMut() -> bool) -> Result<Option<Ending>, Errno> {
        loop {
            if let Some(ending) = self.ended()? {
                // Reaped: the number may be another process's by now.
                core::mem::forget(self);
                return Ok(Some(ending));
            }
            if given_up() {
                return Ok(None);
            }
        }
    }

    /// For the first process, which inherits every orphan: waits for the child's end and
    /// reaps whatever else ends meanwhile.
    ///
    /// # Errors
    /// `ECHILD` if somebody else has reaped it.
    pub fn end_as_init(self) -> Result<Ending, Errno> {
        let ending = loop {
            let Some((pid, status)) = retry_on_intr(|| wait(WaitOptions::empty()))? else {
                continue;
            };
            let exited = status.exit_status().map(Ending::Exited);
            let ending = exited.or(status.terminating_signal().map(Ending::Killed));
            if let Some(ending) = ending.filter(|_| pid == self.pid) {
                break ending;
            }
        };
        // Reaped: the number may be another process's by now.
        core::mem::forget(self);
        while let Ok(Some(_)) = retry_on_intr(|| wait(WaitOptions::NOHANG)) {}
        Ok(ending)
    }
}

/// Makes orphans among the descendants children of this process. prctl(2),
/// PR_SET_CHILD_SUBREAPER.
///
/// # Errors
/// None that the man page names.
pub fn adopt_orphans() -> Result<(), Errno> {
    set_child_subreaper(Some(Pid::INIT))
}

/// Reaps every child that has ended and whose number is asked for nowhere. Returns whether
/// some child is left.
#[must_use]
pub fn reap_ended() -> bool {
    loop {
        match retry_on_intr(|| wait(WaitOptions::NOHANG)) {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Moves this process into the process group of this number. setpgid(2).
///
/// # Errors
/// `EPERM`: there is none in this session.
pub fn join_group(group: i32) -> Result<(), Errno> {
    setpgid(None, Pid::from_raw(group))
}

/// The number of read(2) on this CPU, as /proc/PID/syscall shows it.
pub const READ_CALL: u64 = nr::READ as u64;

/// This process's own id. getpid(2).
#[must_use]
pub fn own_id() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// Sleeps until a signal ends this process.
pub fn sleep_forever() -> ! {
    loop {
        sleep_ms(1_000_000);
    }
}

/// Sleeps for so many milliseconds, or until a signal. nanosleep(2).
pub fn sleep_ms(milliseconds: u32) {
    let _ = nanosleep(&Timespec {
        tv_sec: i64::from(milliseconds / 1000),
        tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
    });
}

/// Whether this is process number 1 of its PID namespace.
#[must_use]
pub fn is_first() -> bool {
    getpid() == Pid::INIT
}

/// Whether this is the first PID namespace of the machine, not a container's: its file has a
/// fixed number (PROC_PID_INIT_INO, include/linux/proc_ns.h).
///
/// # Errors
/// `ENOENT`: /proc is not mounted, or the kernel has no PID namespaces.
pub fn is_in_first_namespace() -> Result<bool, Errno> {
    const FIRST: &[u8] = b"pid:[4026531836]";
    let mut buffer = [0; 32];
    read_link(c"/proc/self/ns/pid", &mut buffer).map(|namespace| namespace == FIRST)
}

/// Whether /proc is there and of our own PID namespace. In another's, `/proc/self` leads
/// nowhere and a process id names somebody else.
#[must_use]
pub fn proc_is_ours() -> bool {
    let mut buffer = [0; 32];
    let mut own = Text::new();
    let own = own.signed(own_id().into()).read();
    let link = read_link(c"/proc/self", &mut buffer);
    link.is_ok_and(|link| own.map(str::as_bytes) == Ok(link))
}

/// Whether this process, or who started it, has switched transparent huge pages off: 0 not,
/// 1 all of them, 3 those that are not advised about (PR_THP_DISABLE_EXCEPT_ADVISED, since
/// Linux 6.18). prctl(2), PR_GET_THP_DISABLE.
///
/// # Errors
/// `EPERM` (seccomp).
pub fn huge_pages_off() -> Result<usize, Errno> {
    const PR_GET_THP_DISABLE: usize = 42;
    // SAFETY: SYSCALL; only numbers.
    check(unsafe { syscall6(nr::PRCTL, PR_GET_THP_DISABLE, 0, 0, 0, 0, 0) })
}

/// Ends this process at once. _exit(2).
pub fn exit(status: i32) -> ! {
    loop {
        // SAFETY: SYSCALL; does not return.
        unsafe {
            syscall6(
                nr::EXIT_GROUP,
                status.cast_unsigned() as usize,
                0,
                0,
                0,
                0,
                0,
            );
        }
    }
}

/// Page faults charged to a process since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Faults served without I/O.
    pub minor: u64,
    /// Faults that waited for I/O.
    pub major: u64,
}

/// `struct rusage`: two timevals and four sizes, then ten longs (getrusage(2)).
#[repr(C)]
#[derive(Default)]
pub(super) struct Usage {
    times_and_sizes: [u64; 8],
    pub(super) minor: u64,
    pub(super) major: u64,
    swaps_to_voluntary_switches: [u64; 7],
    pub(super) involuntary_switches: u64,
}

/// Faults that are not to be told, see [`discount`].
static DISCOUNTED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Takes faults that this process caused in a mapping of its own, made to read what it holds, out
/// of what [`own_faults`] will say.
pub(super) fn discount(faults: Faults) {
    for (sum, more) in DISCOUNTED.iter().zip([faults.minor, faults.major]) {
        // SINGLE: nobody adds meanwhile.
        sum.store(sum.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

/// What has been charged to this process, but for what was discounted. C form:
/// `getrusage(RUSAGE_SELF, &usage)`, getrusage(2). `None` if a filter denies the call.
#[must_use]
pub fn own_faults() -> Option<Faults> {
    const RUSAGE_SELF: usize = 0;
    // Before the reading: the first write after a fork, whenever it comes, is a fault.
    discount(Faults::default());
    let [minor, major] = [0, 1].map(|place: usize| DISCOUNTED[place].load(Ordering::Relaxed));
    let faults = charged_to(RUSAGE_SELF)?;
    Some(Faults {
        minor: faults.minor.wrapping_sub(minor),
        major: faults.major.wrapping_sub(major),
    })
}

/// All that has been charged to this thread, minor and major together: half the price of
/// [`own_faults`] (some 230 ns against 500 here). `getrusage(RUSAGE_THREAD, &usage)`.
#[inline(never)]
pub(super) fn thread_faults() -> Option<u64> {
    const RUSAGE_THREAD: usize = 1;
    let faults = charged_to(RUSAGE_THREAD)?;
    Some(faults.minor + faults.major)
}

fn charged_to(whom: usize) -> Option<Faults> {
    let mut usage = Usage::default();
    let at = (&raw mut usage) as usize;
    // SAFETY: SYSCALL; the kernel writes one `struct rusage` (18 words) into `usage`.
    let result = check(unsafe { syscall6(nr::GETRUSAGE, whom, at, 0, 0, 0, 0) });
    result.ok().map(|_| Faults {
        minor: usage.minor,
        major: usage.major,
    })
}

impl Faults {
    /// How many more than at an earlier reading.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            minor: self.minor.saturating_sub(before.minor),
            major: self.major.saturating_sub(before.major),
        }
    }
}
