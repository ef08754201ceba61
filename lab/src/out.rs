//! Standard output that fails where it cannot be written to.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Standard output. The library's own takes a write to a descriptor that is only open for
/// reading for done (`EBADF` is passed over); a file of the same descriptor does not. What was
/// closed before the program began cannot be told: the library opens /dev/null in its place.
///
/// # Errors
/// The system's.
pub(crate) fn stdout() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}
