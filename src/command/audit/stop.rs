//! `--stop`: the process holds still while it is read.

use crate::error::Error;
use crate::sys::halt::{Halted, no_thread_runs};
use crate::sys::{Errno, process};

/// Stops it if that was asked for and it runs; whether it stands still now.
///
/// # Errors
/// `EPERM`; a thread that does not stop.
pub(super) fn still(pid: i32, asked: bool) -> Result<(Option<Halted>, bool), Error> {
    if stands(pid) {
        // Stopped by somebody else, who also lets it go.
        return Ok((None, true));
    }
    if !asked {
        return Ok((None, false));
    }
    if process::own_id() == pid {
        return Err(Error::Invalid(
            "--stop of this very process would never end",
        ));
    }
    match Halted::stop(pid) {
        Ok(held) => Ok((Some(held), true)),
        Err(Errno::AGAIN) => Err(Error::Invalid(
            "the process does not stop: a thread is in an uninterruptible sleep (state D); \
             try again, or without --stop",
        )),
        Err(errno) => Err(Error::kernel("stop the process (SIGSTOP)")(errno)),
    }
}

/// Whether none of its threads runs; unknown is no.
pub(super) fn stands(pid: i32) -> bool {
    no_thread_runs(pid) == Ok(true)
}
