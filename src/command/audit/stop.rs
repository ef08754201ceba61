//! `--stop`: the process holds still while it is read.

use crate::error::Error;
use crate::proc::stat::Stat;
use crate::sys::file::{Process, each_thread, read_proc};
use crate::sys::halt::Halted;
use crate::sys::{Clock, Errno, process};

/// Longest time that the threads may take to stop: one in an uninterruptible sleep does not.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Stops it if that was asked for and it runs; whether it stands still now.
///
/// # Errors
/// `EPERM`; a thread that does not stop.
pub(super) fn still(pid: i32, asked: bool, clock: Clock) -> Result<(Option<Halted>, bool), Error> {
    if is_stopped(pid) {
        // By somebody else, who also lets it go.
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
    let held = Halted::stop(pid).map_err(Error::kernel("stop the process (SIGSTOP)"))?;
    let start_ns = clock.now_ns();
    while !is_stopped(pid) {
        if clock.now_ns() - start_ns > PATIENCE_NS {
            return Err(Error::Invalid(
                "the process does not stop: a thread is in an uninterruptible sleep (state D); \
                 try again, or without --stop",
            ));
        }
        process::sleep_ms(1);
    }
    Ok((Some(held), true))
}

/// Whether no thread of it runs. One that has ended does not.
fn is_stopped(pid: i32) -> bool {
    let mut all = true;
    let listed = each_thread(pid, &mut |thread| {
        let mut text = [0; 1024];
        let stat = read_proc(Process::Id(thread), "stat", &mut text);
        let state = match stat {
            Ok(stat) => Stat::parse(stat).map(|stat| stat.state),
            Err(Errno::NOENT | Errno::SRCH) => Some(b'X'),
            Err(_) => None,
        };
        all &= matches!(state, Some(b'T' | b't' | b'Z' | b'X'));
    });
    listed.is_ok() && all
}
