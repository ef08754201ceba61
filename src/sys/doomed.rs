//! A file that goes with the program that made it: when its value is dropped, and when a
//! signal ends the program.

use super::{Errno, file, signal};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, OFlags, fstat, statat, unlinkat};

/// Longest path with its NUL (include/uapi/linux/limits.h).
pub const PATH_MAX: usize = 4096;

/// The path, for the handler of a signal; meaningful while `ARMED`.
struct Path(UnsafeCell<[u8; PATH_MAX]>);

// SAFETY: SINGLE; the handler only looks at it while `ARMED`, and it is only written while
// that is not so.
unsafe impl Sync for Path {}

static PATH: Path = Path(UnsafeCell::new([0; PATH_MAX]));
static ARMED: AtomicBool = AtomicBool::new(false);

/// Device and inode: what has the path may be another's file by the time it is removed.
static IDENTITY: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// The file.
#[derive(Debug)]
pub struct Doomed(OwnedFd);

impl Doomed {
    /// Makes a file that was not there, for this user only, and opens it for reading and
    /// writing. One at a time. Signals that end the program remove it from then on; those
    /// that were ignored when the program was started stay ignored (nohup(1)). What ends the
    /// program and leaves the file: SIGKILL, and signals of a defect (SIGSEGV, SIGILL, SIGFPE,
    /// SIGTRAP, SIGSYS).
    ///
    /// # Errors
    /// As open(2): `EEXIST`, `ENOENT`, `EACCES`, `EROFS`, `ENOSPC`; `EBUSY` if there is one
    /// already; `ENAMETOOLONG`.
    pub fn create(path: &CStr) -> Result<Self, Errno> {
        let bytes = path.to_bytes_with_nul();
        if ARMED.load(Ordering::Acquire) {
            return Err(Errno::BUSY);
        }
        // SAFETY: SINGLE, and not armed: nobody looks at it.
        let kept = unsafe { &mut *PATH.0.get() };
        kept.get_mut(..bytes.len())
            .ok_or(Errno::NAMETOOLONG)?
            .copy_from_slice(bytes);
        signal::stop_on_others()?;
        // A signal between making it and arming would leave it behind.
        let _held = signal::hold()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = file::open_as(path, flags)?;
        let stat = fstat(&made).inspect_err(|_| {
            // Not armed, so nobody else will.
            let _ = unlinkat(CWD, path, AtFlags::empty());
        })?;
        for (kept, now) in IDENTITY.iter().zip([stat.st_dev, stat.st_ino]) {
            kept.store(now, Ordering::Relaxed);
        }
        ARMED.store(true, Ordering::Release);
        Ok(Self(made))
    }

    /// Removes it.
    ///
    /// # Errors
    /// As unlink(2): `EPERM` (append-only, immutable), `EACCES`, `EROFS`; `ESTALE` if it was
    /// given another name meanwhile. It is still there, and is not tried again.
    pub fn remove(self) -> Result<(), Errno> {
        match remove() {
            Ok(Removal::Done) => Ok(()),
            // Its name is gone, or another's file has it: no loss if nothing has it.
            Ok(Removal::NotThere) => match fstat(&self.0)?.st_nlink {
                0 => Ok(()),
                _ => Err(Errno::STALE),
            },
            Err(errno) => Err(errno),
        }
    }

    /// Writes all of `bytes` behind what is there. write(2).
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EFBIG` (RLIMIT_FSIZE), `EIO`.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        file::write_all(self.0.as_fd(), bytes)
    }
}

impl AsFd for Doomed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let _ = remove();
    }
}

/// What came of removing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is gone, or there was none.
    Done,
    /// It is not where it was made.
    NotThere,
}

/// Removes the file, if there is one, where nothing is dropped any more: after a panic, in
/// the handler of a signal. Somebody else's file that has its path by now is left alone;
/// between looking and unlinking there is still an instant.
///
/// # Errors
/// As unlink(2).
pub fn remove() -> Result<Removal, Errno> {
    if !ARMED.load(Ordering::Acquire) {
        return Ok(Removal::Done);
    }
    // Armed until it is done: a signal meanwhile does the same.
    let removal = remove_armed();
    ARMED.store(false, Ordering::Release);
    removal
}

fn remove_armed() -> Result<Removal, Errno> {
    // SAFETY: armed, so `create` has put a C string there, and writes no other.
    let path = unsafe { CStr::from_ptr(PATH.0.get().cast()) };
    let found = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(Removal::NotThere),
        found => found?,
    };
    let mut same = IDENTITY.iter().zip([found.st_dev, found.st_ino]);
    if !same.all(|(kept, now)| kept.load(Ordering::Relaxed) == now) {
        return Ok(Removal::NotThere);
    }
    match unlinkat(CWD, path, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(Removal::NotThere),
        unlinked => unlinked.map(|()| Removal::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn it_is_there_and_then_it_is_not() {
        let name = std::format!("cowitness-doomed-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let mut doomed = Doomed::create(&name).unwrap();
        doomed.append(b"some").unwrap();
        doomed.append(b"thing").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"something");
        assert_eq!(Doomed::create(&name).err(), Some(Errno::BUSY));
        doomed.remove().unwrap();
        assert!(!path.exists());
        drop(Doomed::create(&name).unwrap());
        assert!(!path.exists());
        let doomed = Doomed::create(&name).unwrap();
        let elsewhere = path.with_extension("moved");
        std::fs::rename(&path, &elsewhere).unwrap();
        std::fs::write(&path, b"another's").unwrap();
        assert_eq!(doomed.remove(), Err(Errno::STALE));
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
        std::fs::remove_file(&elsewhere).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"another's").unwrap();
        assert_eq!(Doomed::create(&name).err(), Some(Errno::EXIST));
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
        std::fs::remove_file(&path).unwrap();
    }
}
