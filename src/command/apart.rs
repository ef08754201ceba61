//! Work in a child, so that this process has only to wait, to hand on signals, and to undo.

use crate::error::Error;
use crate::sys::Errno;
use crate::sys::process::{Child, Ending, Side, exit, fork, send};
use crate::sys::signal::Held;
use crate::sys::stdio::stderr;

/// How often a signal is looked for.
const LOOK_MS: u64 = 20;
/// How many looks the child has, after a signal, to end by itself.
const LOOKS_TO_END: u32 = 100;

/// Runs `work` in a child that says itself what went wrong, and ends as it does. Signals that
/// are held back here go to the child, which may have something to end first.
///
/// # Errors
/// [`Error::Reported`] with the child's status; as fork(2).
pub(super) fn apart(held: &Held, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
    match fork().map_err(Error::kernel("fork"))? {
        Side::Child => {
            held.let_through();
            end_as(work())
        }
        Side::Parent(child) => match wait(held, child)? {
            Ending::Exited(0) => Ok(()),
            Ending::Exited(status) => Err(Error::Reported(status)),
            Ending::Killed(signal) => Err(Error::Reported(128 + signal)),
        },
    }
}

/// As [`apart`], for work that leaves nothing to undo: a signal that ends this process takes the
/// child with it.
///
/// # Errors
/// As [`apart`]; `ECHILD` if the child was killed.
pub(super) fn alone(work: &mut dyn FnMut() -> Result<(), Error>) -> Result<(), Error> {
    match fork().map_err(Error::kernel("fork"))? {
        Side::Child => end_as(work()),
        Side::Parent(child) => match child.end_as_init().map_err(Error::kernel(WAIT))? {
            Ending::Exited(0) => Ok(()),
            Ending::Exited(status) => Err(Error::Reported(status)),
            Ending::Killed(_) => Err(Error::Kernel(
                "wait for the child, which was killed",
                Errno::CHILD,
            )),
        },
    }
}

fn end_as(result: Result<(), Error>) -> ! {
    exit(match result {
        Ok(()) => 0,
        Err(error) => {
            error.report(stderr());
            error.status()
        }
    })
}

const WAIT: &str = "wait for the child";

fn wait(held: &Held, child: Child) -> Result<Ending, Error> {
    let pid = child.pid();
    let (mut came, mut looks_left) = (0, LOOKS_TO_END);
    let ended = child.end_unless(&mut || {
        match held.next(LOOK_MS) {
            Some(signal) => {
                came = signal;
                send(pid, signal);
            }
            None if came != 0 => looks_left -= 1,
            None => {}
        }
        looks_left == 0
    });
    let ended = ended.map_err(Error::kernel(WAIT))?;
    Ok(ended.unwrap_or(Ending::Killed(came)))
}
