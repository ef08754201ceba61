//! Standard output and standard error.

use super::Errno;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::OFlags;
use rustix::io::{fcntl_getfd, retry_on_intr};
use rustix::termios::tcgetwinsize;

/// One of the two standard streams we write to.
#[derive(Clone, Copy, Debug)]
pub struct Output(BorrowedFd<'static>);

/// Standard output: CSV and nothing else, but for the lines of `selftest`.
#[must_use]
pub fn stdout() -> Output {
    // SAFETY: `fill_missing` or `use_console` ran first, so descriptor 1 is open; nothing
    // closes it.
    Output(unsafe { rustix::stdio::stdout() })
}

/// Standard error: progress, summary, messages.
#[must_use]
pub fn stderr() -> Output {
    // SAFETY: as `stdout`, for descriptor 2.
    Output(unsafe { rustix::stdio::stderr() })
}

impl Output {
    /// Writes all of `bytes`. write(2).
    ///
    /// # Errors
    /// `EPIPE` (the reader is gone), `ENOSPC` (disk full), `EBADF` (closed at start), `EIO`.
    pub fn write_all(self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match retry_on_intr(|| rustix::io::write(self.0, bytes)) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => bytes = &bytes[written..],
                // Somebody made the descriptor non-blocking: wait until it takes more.
                Err(Errno::AGAIN) => self.wait_writable()?,
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Whether a terminal is on the other end.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        tcgetwinsize(self.0).is_ok()
    }

    fn wait_writable(self) -> Result<(), Errno> {
        let mut wait = [PollFd::from_borrowed_fd(self.0, PollFlags::OUT)];
        retry_on_intr(|| poll(&mut wait, None)).map(|_| ())
    }
}

/// Opens /dev/console on every standard descriptor that is closed: the kernel found none
/// when it started the first process.
///
/// # Errors
/// As open(2) of /dev/console.
pub fn use_console() -> Result<(), Errno> {
    for number in 0..3 {
        if !is_open(number) {
            // The lowest free descriptor is `number`: all below it are open by now.
            core::mem::forget(super::file::open_as(c"/dev/console", OFlags::RDWR)?);
        }
    }
    Ok(())
}

fn is_open(number: i32) -> bool {
    // SAFETY: only used for this one query, which is what finds out if it is open.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_getfd(descriptor.as_fd()) != Err(Errno::BADF)
}

/// Opens /dev/null, for reading only, on every standard descriptor that was closed.
///
/// Without this the next file opened would become descriptor 1 and receive our CSV;
/// with it, writing to a stream that was closed fails with `EBADF`.
///
/// # Errors
/// As open(2) of /dev/null.
pub fn fill_missing() -> Result<(), Errno> {
    for number in 0..3 {
        if !is_open(number) {
            // As above.
            core::mem::forget(super::file::open(c"/dev/null")?);
        }
    }
    Ok(())
}
