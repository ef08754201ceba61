//! The files behind a process's mappings, opened so that the processes that use them do not notice;
//! who listens for it does (inotify(7), fanotify(7)).

use super::map_files::NO_FILE;
use super::vma::Vma;
use crate::proc::lines::{Line, LineBuffer};
use crate::proc::mountinfo;
use crate::proc::number::decimal;
use crate::sys::Errno;
use crate::sys::errno::is_lack;
use crate::sys::file::{Mapped, Process, is_mapped_at, open, open_mapped, open_proc, read_next};
use rustix::fd::{AsFd, OwnedFd};

/// Why a file is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shut {
    /// A mapping of /dev/zero: a private one holds anonymous memory (drivers/char/mem.c,
    /// `mmap_zero`).
    Zeros,
    /// Some of it is in swap, and nothing says which pages.
    Swapped,
    /// Nothing of it is in memory: it lies behind the file's end; or what is in swap cannot be told.
    Absent,
    /// No file of the process may be opened (map_files takes a capability).
    Denied,
    /// Something else.
    Says(Errno),
}

impl From<Errno> for Shut {
    fn from(errno: Errno) -> Self {
        Self::Says(errno)
    }
}

/// Opening it would break a lease, as open(2) says it.
const LEASED: Errno = Errno::AGAIN;

type Opened = Result<(OwnedFd, u64), Shut>;

/// Opens them one at a time.
pub(super) struct Files {
    pid: i32,
    /// Whether only what is in memory already is read: then a file that another process or machine
    /// serves is not opened, nor one of which mincore(2) does not tell the truth. That takes what
    /// O_NOATIME takes (`inode_owner_or_capable`, in `may_open` of fs/namei.c and `can_do_mincore`
    /// of mm/mincore.c).
    cached_only: bool,
    /// The mapping for which the last file was opened, and what came of it.
    last: Option<(Vma, Opened)>,
    /// The last device that was asked about, and whether its files are another process's or
    /// machine's to give.
    served: Option<((u32, u32), bool)>,
    /// Files that could not be opened in time.
    pub(super) late: Late,
}

/// Files that could not be opened in time, by device and inode as maps has them. If there are as
/// many as this holds no further one is tried: whoever answers for them does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Late([Option<((u32, u32), u64)>; 2]);

impl Late {
    /// Whether a file is one of them, or would be one too many to try.
    fn has(&self, vma: &Vma) -> bool {
        let file = Some((vma.device, vma.inode));
        self.0.contains(&file) || !self.0.contains(&None)
    }

    fn add(&mut self, vma: &Vma) {
        if let Some(free) = self.0.iter_mut().find(|file| file.is_none()) {
            *free = Some((vma.device, vma.inode));
        }
    }
}

impl Files {
    pub(super) const fn of(pid: i32, cached_only: bool, late: Late) -> Self {
        Self {
            pid,
            cached_only,
            last: None,
            served: None,
            late,
        }
    }

    /// The file of a mapping, and the magic number of its file system.
    ///
    /// # Errors
    /// [`Shut::Zeros`], [`Shut::Denied`], [`NO_FILE`], [`LEASED`]; as open(2).
    pub(super) fn of_mapping(&mut self, vma: &Vma) -> Result<(&OwnedFd, u64), Shut> {
        if !self.has(vma) {
            let opened = self.opened(vma);
            self.last = Some((*vma, opened));
        }
        let (_, opened) = self.last.as_ref().ok_or(NO_FILE)?;
        opened
            .as_ref()
            .map(|(file, magic)| (file, *magic))
            .map_err(|shut| *shut)
    }

    /// Whether the last file is that of this mapping. The numbers in maps may be those of two files
    /// (subvolumes of btrfs, layers of overlayfs, snapshots), which stat(2) tells apart; what could
    /// not be opened is asked for again where they may.
    fn has(&self, vma: &Vma) -> bool {
        let Some((last, opened)) = &self.last else {
            return false;
        };
        let file = |vma: &Vma| (vma.device, vma.inode, vma.perms.shared);
        last == vma
            || file(last) == file(vma)
                && match opened {
                    Ok((file, _)) => is_mapped_at(file.as_fd(), self.pid, vma.start, vma.end),
                    // Not a disk's.
                    Err(_) => vma.device.0 != 0,
                }
    }

    fn opened(&mut self, vma: &Vma) -> Opened {
        if self.late.has(vma) {
            return Err(Errno::TIMEDOUT.into());
        }
        if self.cached_only && self.is_served(vma.device)? || is_leased(vma.inode)? {
            return Err(LEASED.into());
        }
        let opened = open_mapped(self.pid, vma.start, vma.end, self.cached_only);
        if matches!(opened, Err(Errno::TIMEDOUT)) {
            self.late.add(vma);
        }
        match opened? {
            Mapped::File(file, magic) => Ok((file, magic)),
            Mapped::Denied => Err(Shut::Denied),
            Mapped::Zero if !vma.perms.shared => Err(Shut::Zeros),
            _ => Err(NO_FILE.into()),
        }
    }

    /// Whether opening a file of that device waits for another process or machine; unknown is
    /// yes. A device that is not mounted is the kernel's own (memfd, shared memory).
    fn is_served(&mut self, device: (u32, u32)) -> Result<bool, Errno> {
        if let Some((known, served)) = self.served
            && known == device
        {
            return Ok(served);
        }
        let served = match mounted(self.pid, device) {
            Err(errno) if is_lack(errno) => return Err(errno),
            served => served.unwrap_or(true),
        };
        self.served = Some((device, served));
        Ok(served)
    }
}

/// Whether one of a file's lines is.
fn any_line(file: &OwnedFd, is: &mut dyn FnMut(&Line<'_>) -> bool) -> Result<bool, Errno> {
    let mut lines = LineBuffer::<4096>::new();
    while let Some(line) = lines.read_line(|space| read_next(file.as_fd(), space))? {
        if is(&line) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a mounted file system's files are served, see [`mountinfo::is_served`].
fn mounted(pid: i32, device: (u32, u32)) -> Result<bool, Errno> {
    let file = open_proc(Process::Id(pid), "mountinfo")?;
    any_line(&file, &mut |line| {
        mountinfo::file_system(line.bytes)
            .is_some_and(|(found, name)| found == device && mountinfo::is_served(name))
    })
}

/// Whether somebody holds a lease (fcntl(2), F_SETLEASE) or a delegation on a file of that inode,
/// on whatever device: of a file of overlayfs, maps and locks may name different ones. Opening it
/// would break that, and the signal that says so ends who does not expect it.
fn is_leased(inode: u64) -> Result<bool, Errno> {
    let file = match open(c"/proc/locks") {
        // A kernel without locks, unless all but processes is hidden (proc(5), subset=pid).
        Err(Errno::NOENT) => return open(c"/proc/meminfo").map(|_| false),
        file => file?,
    };
    any_line(&file, &mut |line| {
        line.truncated || is_lease(line.bytes, inode)
    })
}

/// Whether a line of /proc/locks (proc_locks(5)) is about a lease on that inode, or one that is
/// not told.
fn is_lease(line: &[u8], inode: u64) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace);
    if !words.any(|word| matches!(word, b"LEASE" | b"DELEG")) {
        return false;
    }
    let file = words.find_map(|word| {
        let mut parts = word.split(|&byte| byte == b':');
        parts.nth(2).and_then(decimal)
    });
    file.is_none_or(|found| found == inode)
}

#[cfg(test)]
mod tests {
    use super::is_lease;

    #[test]
    fn a_lease_is_known_by_its_inode_and_other_locks_are_none() {
        let lease: &[u8] = b"12: LEASE  ACTIVE    WRITE 1234 fe:00:99 0 EOF ";
        assert!(is_lease(lease, 99));
        assert!(!is_lease(lease, 9));
        assert!(is_lease(
            b"1: -> DELEG  BREAKER   READ  1234 08:01:7 0 EOF",
            7
        ));
        assert!(is_lease(b"1: LEASE  BREAKING  UNLCK 1234 08:01:7 0 EOF", 7));
        assert!(is_lease(
            b"1: LEASE  ACTIVE    READ  1234 <none>:0 0 EOF",
            7
        ));
        assert!(!is_lease(
            b"1: POSIX  ADVISORY  WRITE 8254 fe:00:99 10 20",
            99
        ));
        assert!(!is_lease(
            b"1: FLOCK  ADVISORY  READ 7477 fe:00:99 0 EOF",
            99
        ));
    }
}
