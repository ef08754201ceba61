//! Reading files of the kernel: small ones whole, large ones in pieces, paths of /proc.

use super::arch::{nr, syscall6};
use super::opening::open_within;
use super::{Errno, check};
use crate::proc::number::decimal;
use crate::text::{Full, Text};
use core::ffi::CStr;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, OFlags, RawDir, Stat, fstat, fstatfs, major, makedev, minor,
    readlinkat_raw, statat,
};
use rustix::io::{fcntl_getfd, pread, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

/// A process, as a path of /proc names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// `/proc/self`.
    Myself,
    /// `/proc/PID`.
    Id(i32),
}

/// Opens `/proc/<process>/<file>` for reading.
///
/// # Errors
/// As open(2); `ENAMETOOLONG` if `file` is longer than the appliance ever needs.
pub fn open_proc(process: Process, file: &str) -> Result<OwnedFd, Errno> {
    in_proc(process, file, &mut |path| open(path))
}

/// The user that `/proc/<process>/<file>` belongs to. stat(2).
///
/// # Errors
/// As stat(2).
pub fn proc_owner(process: Process, file: &str) -> Result<u32, Errno> {
    in_proc(process, file, &mut |path| {
        statat(CWD, path, AtFlags::empty()).map(|found| found.st_uid)
    })
}

/// Does something with such a path.
fn in_proc<T>(
    process: Process,
    file: &str,
    work: &mut dyn FnMut(&CStr) -> Result<T, Errno>,
) -> Result<T, Errno> {
    let mut path = Text::new();
    path.add("/proc/");
    match process {
        Process::Myself => path.add("self"),
        Process::Id(pid) => path.signed(pid.into()),
    };
    let path = path.add("/").add(file).add("\0").read();
    let path = path.map_err(|Full| Errno::NAMETOOLONG)?;
    work(CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?)
}

/// What a process has mapped.
pub enum Mapped {
    /// A regular file, opened, and the magic number of its file system.
    File(OwnedFd, u64),
    /// /dev/zero, by its number and not by its name.
    Zero,
    /// Something else.
    Other,
    /// Nobody knows: its link may not be followed (CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE is
    /// missing).
    Denied,
}

/// Opens the regular file that process `pid` maps at `start..end`, addresses as in maps.
/// proc_pid_map_files(5). Reading it does not mark its time of access where that is permitted: to
/// its owner and with CAP_FOWNER (open(2), O_NOATIME); `owned`: else it is not opened, and leave to
/// read is asked for. Neither waits for ever, see [`open_within`].
///
/// # Errors
/// `EPERM` (CAP_FOWNER is missing), `ENOENT` (no such mapping of a file), `EAGAIN` (a lease that is
/// being given up), `ETIMEDOUT` (it takes long); whatever its file system says.
pub fn open_mapped(pid: i32, start: u64, end: u64, owned: bool) -> Result<Mapped, Errno> {
    // Looked at before it is opened: opening a device can have effects of its own.
    let found = match stat_mapped(pid, start, end) {
        Err(Errno::PERM) => return Ok(Mapped::Denied),
        found => found?,
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {}
        // Documentation/admin-guide/devices.txt.
        FileType::CharacterDevice if found.st_rdev == makedev(1, 5) => return Ok(Mapped::Zero),
        _ => return Ok(Mapped::Other),
    }
    let path = mapped(pid, start, end);
    let path = mapped_path(&path)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = match open_within(path, flags | OFlags::NOATIME, owned) {
        Err(Errno::PERM) if !owned => open_within(path, flags, owned),
        opened => opened,
    };
    opened.map(|(file, magic)| Mapped::File(file, magic))
}

/// Whether a file is the one that process `pid` maps at `start..end`; if it cannot be told it is
/// not: by device, inode and time of change, and it has a name (the numbers of System V's shared
/// memory are others' as well). stat(2), as [`mapped_file`].
#[must_use]
pub fn is_mapped_at(file: BorrowedFd<'_>, pid: i32, start: u64, end: u64) -> bool {
    let there = stat_mapped(pid, start, end).ok();
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let file = statat(file, c"", flags).ok();
    let number = |stat: Stat| (stat.st_dev, stat.st_ino, stat.st_ctime, stat.st_ctime_nsec);
    let has_name = file.is_some_and(|file| file.st_nlink > 0);
    has_name && file.map(number) == there.map(number)
}

/// Opens a file for reading, not to be inherited over exec.
///
/// # Errors
/// As open(2).
pub fn open(path: &CStr) -> Result<OwnedFd, Errno> {
    open_as(path, OFlags::RDONLY | OFlags::CLOEXEC)
}

/// Opens a file of a person's choice for reading, as [`open`], but never waits for whoever
/// is on the other side of a FIFO.
///
/// # Errors
/// As open(2).
pub fn open_any(path: &CStr) -> Result<OwnedFd, Errno> {
    open_as(
        path,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY,
    )
}

/// Bytes in a regular file; `None` if it is of another kind. fstat(2).
///
/// # Errors
/// As fstat(2).
pub fn regular_bytes(file: BorrowedFd<'_>) -> Result<Option<u64>, Errno> {
    let stat = fstat(file)?;
    let regular = FileType::from_raw_mode(stat.st_mode).is_file();
    Ok(regular.then_some(stat.st_size.cast_unsigned()))
}

/// Path of the file that is mapped there, with a NUL.
fn mapped(pid: i32, start: u64, end: u64) -> Text {
    let mut path = Text::new();
    path.add("/proc/").signed(pid.into()).add("/map_files/");
    path.address(start).add("-").address(end).add("\0");
    path
}

/// The same, as the kernel takes it.
fn mapped_path(path: &Text) -> Result<&CStr, Errno> {
    let path = path.read().map_err(|Full| Errno::NAMETOOLONG)?;
    CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)
}

/// stat(2) of it, which neither opens it nor asks a server: AT_STATX_DONT_SYNC (since Linux 4.11;
/// fs/stat.c, `vfs_statx`).
#[inline(never)]
fn stat_mapped(pid: i32, start: u64, end: u64) -> Result<Stat, Errno> {
    let path = mapped(pid, start, end);
    statat(CWD, mapped_path(&path)?, AtFlags::STATX_DONT_SYNC)
}

/// A file that is mapped.
#[derive(Clone, Copy, Debug)]
pub struct MappedFile {
    /// Whether it is a regular one.
    pub is_regular: bool,
    /// Its length.
    pub bytes: u64,
    /// Blocks of 512 bytes that it takes.
    pub blocks: u64,
    /// What it is best read in; of hugetlbfs the size of its pages.
    pub block_bytes: u64,
}

/// The file that process `pid` maps at `start..end`, as [`open_mapped`] finds it, but without
/// opening it, or asking a server.
///
/// # Errors
/// As [`open_mapped`]; `EINVAL` before Linux 4.11.
pub fn mapped_file(pid: i32, start: u64, end: u64) -> Result<MappedFile, Errno> {
    let found = stat_mapped(pid, start, end)?;
    Ok(MappedFile {
        is_regular: FileType::from_raw_mode(found.st_mode).is_file(),
        bytes: found.st_size.cast_unsigned(),
        blocks: found.st_blocks.cast_unsigned(),
        block_bytes: u64::try_from(found.st_blksize).unwrap_or(0),
    })
}

/// include/uapi/linux/magic.h
pub const TMPFS_MAGIC: u64 = 0x0102_1994;
/// The same of hugetlbfs.
pub const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;
/// The same of ramfs.
pub const RAMFS_MAGIC: u64 = 0x8584_58f6;
/// The same of overlayfs, whose files are in another file system.
pub const OVERLAYFS_MAGIC: u64 = 0x794c_7630;

/// The magic number of the file system that a file is on. fstatfs(2).
///
/// # Errors
/// As fstatfs(2).
pub fn file_system(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    Ok(fstatfs(file)?.f_type.cast_unsigned())
}

/// Major and minor number of the device that a file is on, as mountinfo has them. fstat(2).
///
/// # Errors
/// As fstat(2).
pub fn device(file: BorrowedFd<'_>) -> Result<(u64, u64), Errno> {
    let device = fstat(file)?.st_dev;
    Ok((major(device).into(), minor(device).into()))
}

/// Bytes of memory that reading all of a file through a mapping takes for good: those that a
/// sparse file of tmpfs has no pages for yet (mm/shmem.c, `shmem_fault`). 0 elsewhere, where
/// pages of a file can be dropped again. fstatfs(2), fstat(2).
///
/// # Errors
/// As fstatfs(2) and fstat(2).
pub fn unpaid_bytes(file: BorrowedFd<'_>) -> Result<u64, Errno> {
    if file_system(file)? != TMPFS_MAGIC {
        return Ok(0);
    }
    let stat = fstat(file)?;
    let paid = stat.st_blocks.cast_unsigned().saturating_mul(512);
    Ok(stat.st_size.cast_unsigned().saturating_sub(paid))
}

/// A pipe that is not inherited over exec: the end to read from, and the one to write to.
/// pipe2(2).
///
/// # Errors
/// `EMFILE`, `ENFILE`.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    pipe_with(PipeFlags::CLOEXEC)
}

/// Opens a file for writing, not to be inherited over exec.
///
/// # Errors
/// As open(2).
pub fn open_for_writing(path: &CStr) -> Result<OwnedFd, Errno> {
    open_as(path, OFlags::WRONLY | OFlags::CLOEXEC)
}

/// Makes a file that was not there, for writing; its owner may read and run it.
///
/// # Errors
/// As open(2).
pub fn create_program(path: &CStr) -> Result<OwnedFd, Errno> {
    const OWNER_READS_WRITES_RUNS: usize = 0o700;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    open_with(path, flags, OWNER_READS_WRITES_RUNS)
}

/// Writes all of `bytes`. write(2).
///
/// # Errors
/// As write(2), never `EINTR`; `EIO` if nothing is taken.
pub fn write_all(file: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match retry_on_intr(|| write(file, bytes))? {
            0 => return Err(Errno::IO),
            written => bytes = &bytes[written..],
        }
    }
    Ok(())
}

/// Takes over a descriptor that another program left open for this one.
///
/// # Errors
/// `EBADF`: it is not open; `EINVAL`: it is one of the three standard ones.
pub fn take_inherited(number: i32) -> Result<OwnedFd, Errno> {
    if number < 3 {
        return Err(Errno::INVAL);
    }
    // SAFETY: only used for this one query, which is what finds out if it is open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_getfd(descriptor)?;
    // SAFETY: open, as was just seen, and left for this program, so nobody else closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Opens a file for reading and writing, not to be inherited over exec.
///
/// # Errors
/// As open(2).
pub fn open_to_write_too(path: &CStr) -> Result<OwnedFd, Errno> {
    open_as(path, OFlags::RDWR | OFlags::CLOEXEC)
}

/// Opens a file, or makes it for its owner alone, as the flags say.
///
/// # Errors
/// As open(2).
pub(super) fn open_as(path: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    const OWNER_READS_WRITES: usize = 0o600;
    open_with(path, flags, OWNER_READS_WRITES)
}

fn open_with(path: &CStr, flags: OFlags, mode: usize) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| {
        let flags = flags.bits() as usize;
        let at = path.as_ptr() as usize;
        // SAFETY: SYSCALL; the kernel reads the C string at `at`.
        let opened = unsafe { syscall6(nr::OPENAT, AT_FDCWD, at, flags, mode, 0, 0) };
        // A descriptor is never negative. Saying so keeps the compiler from adding the
        // check, and two kilobytes of code for its message, that rustix' own `open` has.
        let descriptor = check(opened)? as i32 & i32::MAX;
        // SAFETY: fresh from the kernel, so nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    })
}

/// Paths are relative to the working folder (include/uapi/linux/fcntl.h).
const AT_FDCWD: usize = (-100isize).cast_unsigned();

/// Where a symbolic link leads, in `buffer`. readlink(2).
///
/// # Errors
/// As readlink(2); `ENAMETOOLONG` if it may not fit.
pub fn read_link<'b>(path: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let len = readlinkat_raw(CWD, path, &mut *buffer)?;
    let whole = buffer.get(..len).filter(|_| len < buffer.len());
    whole.ok_or(Errno::NAMETOOLONG)
}

/// The whole of a small file, in `buffer`.
///
/// # Errors
/// As open(2) and read(2); `EFBIG` if the file is larger than `buffer`, so that a cut
/// is never taken for the whole.
pub fn read_whole<'b>(path: &CStr, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let file = open(path)?;
    read_to_end(file.as_fd(), buffer)
}

/// A file of the kernel's that is one decimal number.
///
/// # Errors
/// As open(2) and read(2); `EINVAL` if it is something else.
pub fn read_number(path: &CStr) -> Result<u64, Errno> {
    let mut buffer = [0; 32];
    let text = read_whole(path, &mut buffer)?;
    decimal(text.trim_ascii()).ok_or(Errno::INVAL)
}

/// Writes `bytes` to a file of the kernel's, in one call.
///
/// # Errors
/// As open(2) and write(2); `EIO` if it takes fewer bytes.
pub fn write_whole(path: &CStr, bytes: &[u8]) -> Result<(), Errno> {
    let file = open_as(path, OFlags::WRONLY | OFlags::CLOEXEC)?;
    match retry_on_intr(|| write(&file, bytes))? {
        written if written == bytes.len() => Ok(()),
        _ => Err(Errno::IO),
    }
}

/// As [`read_whole`], for `/proc/<process>/<file>`.
///
/// # Errors
/// As [`read_whole`].
pub fn read_proc<'b>(
    process: Process,
    file: &str,
    buffer: &'b mut [u8],
) -> Result<&'b [u8], Errno> {
    let file = open_proc(process, file)?;
    read_to_end(file.as_fd(), buffer)
}

fn read_to_end<'b>(file: BorrowedFd<'_>, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
    let mut used = 0;
    loop {
        let Some(space) = buffer.get_mut(used..).filter(|space| !space.is_empty()) else {
            return Err(Errno::FBIG);
        };
        match retry_on_intr(|| read(file, &mut *space))? {
            0 => return Ok(&buffer[..used]),
            count => used += count,
        }
    }
}

/// One pread(2), for timed loops: inlined whatever the size it is optimised for.
///
/// # Errors
/// As pread(2), `EINTR` included.
#[inline(always)]
pub fn pread_once(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let (number, at) = (
        file.as_raw_fd().cast_unsigned() as usize,
        buffer.as_mut_ptr() as usize,
    );
    // SAFETY: SYSCALL; the kernel writes at most `len` bytes into `buffer`.
    check(unsafe { syscall6(nr::PREAD64, number, at, buffer.len(), offset as usize, 0, 0) })
}

/// One lseek(2) to `offset` and one read(2), as [`pread_once`].
///
/// # Errors
/// As lseek(2) and read(2).
#[inline(always)]
pub fn seek_and_read(file: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    const SEEK_SET: usize = 0;
    let (number, at) = (
        file.as_raw_fd().cast_unsigned() as usize,
        buffer.as_mut_ptr() as usize,
    );
    // SAFETY: SYSCALL; only numbers.
    check(unsafe { syscall6(nr::LSEEK, number, offset as usize, SEEK_SET, 0, 0, 0) })?;
    // SAFETY: SYSCALL; the kernel writes at most `len` bytes into `buffer`.
    check(unsafe { syscall6(nr::READ, number, at, buffer.len(), 0, 0, 0) })
}

/// Reads the next piece of a file; 0 at its end.
///
/// # Errors
/// As read(2), never `EINTR`.
pub fn read_next(file: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    retry_on_intr(|| read(file, &mut *buffer))
}

/// Fills `buffer` from `offset` on; fewer bytes only at the end of the file.
///
/// # Errors
/// As pread(2), never `EINTR`.
pub fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut used = 0;
    while used < buffer.len() {
        let space = &mut buffer[used..];
        match retry_on_intr(|| pread(file, &mut *space, offset + used as u64))? {
            0 => break,
            count => used += count,
        }
    }
    Ok(used)
}

/// Gives `take` the id of each thread of a process, from /proc/PID/task.
///
/// # Errors
/// As open(2) and getdents64(2): `ENOENT` if it is gone.
pub fn each_thread(pid: i32, take: &mut dyn FnMut(i32)) -> Result<(), Errno> {
    let folder = open_proc(Process::Id(pid), "task")?;
    each_name(folder, &mut |name| {
        // Others are `.` and `..`.
        if let Some(id) = number(name) {
            take(id);
        }
    })
}

/// Gives `take` each name in a folder, `.` and `..` among them.
///
/// # Errors
/// As getdents64(2).
pub fn each_name(folder: OwnedFd, take: &mut dyn FnMut(&[u8])) -> Result<(), Errno> {
    each_entry(&folder, &mut |name| take(name.to_bytes()))
}

/// As [`each_name`], of a folder that is still needed.
pub(super) fn each_entry(folder: &OwnedFd, take: &mut dyn FnMut(&CStr)) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(folder, &mut space);
    while let Some(entry) = entries.next() {
        take(entry?.file_name());
    }
    Ok(())
}

fn number(name: &[u8]) -> Option<i32> {
    core::str::from_utf8(name).ok()?.parse().ok()
}

/// As [`read_at`], in whole 64-bit words; gives how many.
///
/// # Errors
/// As [`read_at`].
pub fn read_words_at(file: BorrowedFd<'_>, words: &mut [u64], offset: u64) -> Result<usize, Errno> {
    let len = size_of_val(words);
    // SAFETY: the same memory, exclusive like `words`, for which any bytes will do.
    let bytes = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) };
    Ok(read_at(file, bytes, offset)? / size_of::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_the_buffer_is_an_error_not_a_cut() {
        let mut buffer = [0; 4];
        assert_eq!(
            read_proc(Process::Myself, "status", &mut buffer),
            Err(Errno::FBIG)
        );
    }

    #[test]
    fn every_process_has_the_thread_it_began_with() {
        let pid = std::process::id().cast_signed();
        let mut threads = std::vec::Vec::new();
        each_thread(pid, &mut |thread| threads.push(thread)).unwrap();
        assert!(threads.contains(&pid));
        assert_eq!(each_thread(i32::MAX, &mut |_| ()), Err(Errno::NOENT));
    }

    #[test]
    fn a_missing_file_names_its_errno() {
        let mut buffer = [0; 4];
        let missing = read_whole(c"/nonexistent/file", &mut buffer);
        assert_eq!(missing, Err(Errno::NOENT));
    }
}
