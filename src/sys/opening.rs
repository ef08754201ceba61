//! Opening a file that may keep who opens it waiting for ever: for whoever listens to that
//! (fanotify(7), FAN_OPEN_PERM), for the server of its file system.
//!
//! A child does it and hands the descriptor over (unix(7), SCM_RIGHTS). It shares this process's
//! memory, so that no page table is copied and nobody's pages are shared by one more, and does
//! the system calls of a table and nothing else. It has its own descriptors, of which it closes
//! all: where even SIGKILL cannot end its waiting, it keeps nothing open.

use super::arch::{clone_and_call, nr, syscall6};
use super::file::open_as;
use super::process::{discount, own_faults};
use super::{Errno, Region, check, signal};
use core::ffi::CStr;
use core::mem::offset_of;
use core::ptr::null_mut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::{OFlags, fstatfs};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::sched_yield;

/// How long an opening may take.
const PATIENCE: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};
/// Looks at a child that has been killed, or is about to end. It is left alone after that.
const LOOKS_MAX: u32 = 10_000;

/// A file, and the magic number of its file system (statfs(2)).
pub type Opened = (OwnedFd, u64);

/// What the child's calls name. It may be left behind in one of them, so this is never given back
/// then.
#[repr(C)]
struct Space {
    calls: [[usize; 6]; 8],
    failed: isize,
    /// `struct statfs`, of which the first word is the magic number.
    file_system: [u64; 16],
    path: [u8; 128],
    part: [usize; 2],
    message: Message,
    rights: Rights,
}

impl Space {
    /// What the child is to do, for a space at an address.
    ///
    /// # Errors
    /// `ENAMETOOLONG`.
    fn filled(
        at: usize,
        path: &CStr,
        socket: usize,
        flags: usize,
        read: bool,
    ) -> Result<Self, Errno> {
        const PR_SET_PDEATHSIG: usize = 1;
        const SIGKILL: usize = 9;
        const AT_FDCWD: usize = (-100isize).cast_unsigned();
        const ALL: usize = u32::MAX as usize;
        const MSG_NOSIGNAL: usize = 0x4000;
        // Behind every end: tmpfs brings the page at an offset in even if none of it is asked for
        // (mm/shmem.c, `shmem_file_read_iter`).
        const FAR: usize = 1 << 62;
        // The first that is free once all are closed but the socket, which is 0.
        const FILE: usize = 1;
        let words = path.to_bytes_with_nul();
        let mut copy = [0; 128];
        let place = copy.get_mut(..words.len()).ok_or(Errno::NAMETOOLONG)?;
        place.copy_from_slice(words);
        let path = at + offset_of!(Self, path);
        let file_system = at + offset_of!(Self, file_system);
        let part = at + offset_of!(Self, part);
        let message = at + offset_of!(Self, message);
        let rights = at + offset_of!(Self, rights);
        let read = match read {
            true => [nr::PREAD64, FILE, file_system, 0, FAR, 0],
            false => [nr::LSEEK, FILE, 0, 0, 0, 0],
        };
        Ok(Self {
            calls: [
                [nr::PRCTL, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0],
                [nr::DUP3, socket, 0, 0, 0, 0],
                [nr::CLOSE_RANGE, FILE, ALL, 0, 0, 0],
                [nr::OPENAT, AT_FDCWD, path, flags, 0, 0],
                [nr::FSTATFS, FILE, file_system, 0, 0, 0],
                read,
                [nr::SENDMSG, 0, message, MSG_NOSIGNAL, 0, 0],
                [nr::EXIT_GROUP, 0, 0, 0, 0, 0],
            ],
            failed: 0,
            file_system: [0; 16],
            path: copy,
            // One byte, since a descriptor does not travel alone.
            part: [path, 1],
            message: Message::new(part, rights),
            rights: Rights {
                len: RIGHTS_LEN,
                level: SOL_SOCKET,
                kind: SCM_RIGHTS,
                descriptor: FILE as i32,
                padding: 0,
            },
        })
    }
}

/// `struct msghdr`, sendmsg(2).
#[repr(C)]
struct Message {
    name: [usize; 2],
    parts: usize,
    parts_len: usize,
    control: usize,
    control_len: usize,
    flags: usize,
}

impl Message {
    /// Of one part, and one descriptor.
    const fn new(part: usize, rights: usize) -> Self {
        Self {
            name: [0; 2],
            parts: part,
            parts_len: 1,
            control: rights,
            control_len: size_of::<Rights>(),
            flags: 0,
        }
    }
}

/// `struct cmsghdr` and one descriptor, cmsg(3).
#[repr(C)]
#[derive(Default)]
struct Rights {
    len: usize,
    level: i32,
    kind: i32,
    descriptor: i32,
    padding: i32,
}

const SOL_SOCKET: i32 = 1;
const SCM_RIGHTS: i32 = 1;
/// `CMSG_LEN(sizeof(int))`.
const RIGHTS_LEN: usize = 20;

/// Opens a file as [`open_as`] does, but waits for it no longer than two seconds. `read`: the same
/// goes for leave to read from it (FAN_ACCESS_PERM), which is asked for by reading
/// nothing far behind its end.
///
/// C form: `clone(CLONE_VM | SIGCHLD)`; in the child `prctl(PR_SET_PDEATHSIG, SIGKILL)`,
/// `dup3(socket, 0, 0)`, `close_range(1, ~0U, 0)`, `openat`, `fstatfs`, `pread`, `sendmsg`; here
/// `poll` and `recvmsg`. A kernel before 5.9 has no close_range(2): there it is opened here.
///
/// # Errors
/// `ETIMEDOUT`; `ECHILD` (somebody has killed the child); as open(2), fstatfs(2), clone(2) (but `ENOMEM` where a limit of processes is reached)
/// and socketpair(2). What it takes of this process's
/// own memory is not among [`own_faults`].
pub fn open_within(path: &CStr, flags: OFlags, read: bool) -> Result<Opened, Errno> {
    let before = own_faults();
    let opened = open_by_child(path, flags, read);
    if let Some((after, before)) = own_faults().zip(before) {
        discount(after.since(before));
    }
    opened
}

fn open_by_child(path: &CStr, flags: OFlags, read: bool) -> Result<Opened, Errno> {
    if lacks_close_range() {
        let file = open_as(path, flags)?;
        let magic = fstatfs(&file)?.f_type.cast_unsigned();
        return Ok((file, magic));
    }
    let (mine, theirs) = pair()?;
    let mut region = Region::not_inherited(size_of::<Space>())?;
    let space = region.words_mut().as_mut_ptr().cast::<Space>();
    let socket = theirs.as_raw_fd().cast_unsigned() as usize;
    let flags_bits = flags.bits() as usize;
    let filled = Space::filled(space as usize, path, socket, flags_bits, read)?;
    // SAFETY: the region is as large, aligned to a page, and nobody else knows of it yet.
    unsafe { space.write(filled) };
    let child = start(space)?;
    drop(theirs);
    let answer = receive(&mine);
    if matches!(answer, Err(Errno::TIMEDOUT)) {
        // ESRCH cannot be: only this function reaps it.
        let _ = kill_process(child, Signal::KILL);
    }
    // SAFETY: the region is still there; the child writes to these words no more once it has
    // answered or ended, and one that is late is not believed.
    let told = || unsafe {
        let failed = (&raw const (*space).failed).read_volatile();
        let magic = (&raw const (*space).file_system[0]).read_volatile();
        (failed, magic)
    };
    let ended = has_ended(child);
    let (failed, magic) = told();
    if !ended {
        core::mem::forget(region);
    }
    match (answer?, check(failed)) {
        (Some(file), _) => Ok((file, magic)),
        (None, Err(errno)) => Err(errno),
        // It was killed by somebody else.
        (None, Ok(_)) => Err(Errno::CHILD),
    }
}

/// Closing the descriptor of the highest number, which nobody can have, tells.
fn lacks_close_range() -> bool {
    const LAST: usize = u32::MAX as usize;
    // SAFETY: SYSCALL; only numbers, and no descriptor is as high (NR_OPEN_MAX).
    let closed = unsafe { syscall6(nr::CLOSE_RANGE, LAST, LAST, 0, 0, 0, 0) };
    check(closed) == Err(Errno::NOSYS)
}

/// Starts the child.
fn start(space: *mut Space) -> Result<Pid, Errno> {
    const CLONE_VM: usize = 0x100;
    const SIGCHLD: usize = 17;
    // The child begins with this program's handlers, and none of them may run in it: it keeps
    // this mask.
    let held = signal::hold()?;
    // SAFETY: SYSCALL; the child uses no stack, and all that the calls name is in the space, which
    // is given back only once the child has ended. The last of the calls does not come back.
    let pid = unsafe {
        let calls = (&raw const (*space).calls).cast();
        let failed = &raw mut (*space).failed;
        clone_and_call(CLONE_VM | SIGCHLD, null_mut(), calls, failed)
    };
    drop(held);
    // A limit of processes (clone(2)): there is no room for one more, and `EAGAIN` is what open(2)
    // says of a lease.
    let no_room = |errno| {
        if errno == Errno::AGAIN {
            Errno::NOMEM
        } else {
            errno
        }
    };
    let pid = i32::try_from(check(pid).map_err(no_room)?).ok();
    pid.and_then(Pid::from_raw).ok_or(Errno::CHILD)
}

/// Two sockets that are joined. socketpair(2), AF_UNIX, SOCK_SEQPACKET.
fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    const AF_UNIX: usize = 1;
    const SEQPACKET_CLOEXEC: usize = 5 | 0o2_000_000;
    let mut both = [0i32; 2];
    let at = (&raw mut both) as usize;
    // SAFETY: SYSCALL; the kernel writes two descriptors.
    check(unsafe { syscall6(nr::SOCKETPAIR, AF_UNIX, SEQPACKET_CLOEXEC, 0, at, 0, 0) })?;
    // SAFETY: fresh from the kernel, so nobody else owns them.
    let [mine, theirs] = both.map(|one| unsafe { OwnedFd::from_raw_fd(one & i32::MAX) });
    Ok((mine, theirs))
}

/// The descriptor that comes; `None` if the other side is closed before.
///
/// # Errors
/// `ETIMEDOUT`; `EMFILE` (a descriptor came, and there is no room for it); as recvmsg(2).
fn receive(socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    const MSG_CMSG_CLOEXEC: usize = 0x4000_0000;
    let mut wait = [PollFd::new(socket, PollFlags::IN)];
    if retry_on_intr(|| poll(&mut wait, Some(&PATIENCE)))? == 0 {
        return Err(Errno::TIMEDOUT);
    }
    let mut byte = 0u8;
    let part = [(&raw mut byte) as usize, 1];
    let mut rights = Rights::default();
    let mut message = Message::new((&raw const part) as usize, (&raw mut rights) as usize);
    let number = socket.as_raw_fd().cast_unsigned() as usize;
    let at = (&raw mut message) as usize;
    // SAFETY: SYSCALL; the kernel writes to the message and what it names: one byte, and one
    // control message with one descriptor.
    let bytes = check(unsafe { syscall6(nr::RECVMSG, number, at, MSG_CMSG_CLOEXEC, 0, 0, 0) })?;
    if (rights.len, rights.level, rights.kind) == (RIGHTS_LEN, SOL_SOCKET, SCM_RIGHTS) {
        // SAFETY: fresh from the kernel, so nobody else owns it.
        return Ok(Some(unsafe {
            OwnedFd::from_raw_fd(rights.descriptor & i32::MAX)
        }));
    }
    if bytes > 0 {
        Err(Errno::MFILE)
    } else {
        Ok(None)
    }
}

/// Waits a moment for the end of a child that is about to end, and reaps it. One that has not is
/// killed and left to whoever this process leaves it to.
fn has_ended(child: Pid) -> bool {
    for look in 0..LOOKS_MAX {
        match waitpid(Some(child), WaitOptions::NOHANG) {
            Ok(None) => sched_yield(),
            Err(Errno::INTR) => {}
            // ECHILD: somebody else has reaped it.
            _ => return true,
        }
        if look == LOOKS_MAX / 2 {
            let _ = kill_process(child, Signal::KILL);
        }
    }
    false
}
