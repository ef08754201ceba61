//! A file that goes with the program that made it: when its value is dropped, and when a
//! signal ends the program.

use super::arch::{nr, syscall6};
use super::{Errno, file, signal};
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;

/// Longest path with its NUL (include/uapi/linux/limits.h).
pub const PATH_MAX: usize = 4096;

/// The path, for the handler of a signal; meaningful while `ARMED`.
struct Path(UnsafeCell<[u8; PATH_MAX]>);

// SAFETY: SINGLE; the handler only looks at it while `ARMED`, and it is only written while
// that is not so.
unsafe impl Sync for Path {}

static PATH: Path = Path(UnsafeCell::new([0; PATH_MAX]));
static ARMED: AtomicBool = AtomicBool::new(false);

/// The file.
#[derive(Debug)]
pub struct Doomed(OwnedFd);

impl Doomed {
    /// Makes a file that was not there, for this user only, and opens it for reading and
    /// writing. Signals that end the program remove it from then on, SIGKILL excepted. One at a time.
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
        let held = signal::hold()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = file::open_as(path, flags);
        ARMED.store(made.is_ok(), Ordering::Release);
        drop(held);
        made.map(Self)
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
        remove();
    }
}

/// Removes the file, if there is one, where nothing is dropped any more: after a panic, in
/// the handler of a signal.
pub fn remove() {
    const AT_FDCWD: usize = (-100isize).cast_unsigned();
    if !ARMED.load(Ordering::Acquire) {
        return;
    }
    // SAFETY: SYSCALL; the kernel reads the C string that `create` has put there. If it is
    // gone already, so much the better.
    let _ = unsafe { syscall6(nr::UNLINKAT, AT_FDCWD, PATH.0.get() as usize, 0, 0, 0, 0) };
    ARMED.store(false, Ordering::Release);
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
        drop(doomed);
        assert!(!path.exists());
        std::fs::write(&path, b"another's").unwrap();
        assert_eq!(Doomed::create(&name).err(), Some(Errno::EXIST));
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
        std::fs::remove_file(&path).unwrap();
    }
}
