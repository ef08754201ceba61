//! SIGINT and SIGTERM end the program at once, in their handler; a closed pipe becomes
//! EPIPE, a file that may not grow EFBIG.
//!
//! Ending there is safe at any point: a row leaves in one write(2), so none is cut; a
//! child is killed when its parent dies (PR_SET_PDEATHSIG); there is nothing else to
//! undo. A flag that is looked at between cases would let a long pass, or a full pipe,
//! keep the program alive.

use super::arch::{nr, syscall6};
use super::process::exit;
use super::{Errno, check, stdio};
use crate::text::Text;

/// `struct sigaction` as the kernel takes it, the same on both CPUs
/// (include/uapi/asm-generic/signal.h with SA_RESTORER defined).
#[repr(C)]
struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

const SIGINT: usize = 2;
const SIGPIPE: usize = 13;
const SIGTERM: usize = 15;
const SIGCHLD: usize = 17;
const SIGXFSZ: usize = 25;
const SIG_DFL: usize = 0;
const SIG_IGN: usize = 1;
const SA_RESTORER: usize = 0x0400_0000;

extern "C" fn stop(signal: i32) {
    let mut line = Text::new();
    line.add("\ncowitness: error: stopped by signal ");
    line.signed(signal.into()).add("\n");
    let _ = stdio::stderr().write_all(line.read().unwrap_or_default().as_bytes());
    exit(128 + signal)
}

/// Installs the handlers, and takes back an inherited SIG_IGN for SIGCHLD, under which a
/// child that died would not wait to be reaped. sigaction(2).
///
/// # Errors
/// None that the man page names for these arguments.
pub fn install() -> Result<(), Errno> {
    let stop = stop as *const () as usize;
    let actions = [
        (SIGINT, stop),
        (SIGTERM, stop),
        (SIGPIPE, SIG_IGN),
        (SIGXFSZ, SIG_IGN),
        (SIGCHLD, SIG_DFL),
    ];
    actions
        .into_iter()
        .try_for_each(|(signal, handler)| set(signal, handler))
}

/// For a child: it ends without a word.
///
/// # Errors
/// As [`install`].
pub fn restore_defaults() -> Result<(), Errno> {
    set(SIGINT, SIG_DFL)?;
    set(SIGTERM, SIG_DFL)
}

/// For a helper that must outlive us: what ends us from the keyboard does not end it.
///
/// # Errors
/// As [`install`].
pub(super) fn ignore_stopping() -> Result<(), Errno> {
    const SIGHUP: usize = 1;
    const SIGQUIT: usize = 3;
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
        .into_iter()
        .try_for_each(|signal| set(signal, SIG_IGN))
}

fn set(signal: usize, handler: usize) -> Result<(), Errno> {
    let action = Action {
        handler,
        // x86_64 kernels insist on a place to return to. The handler never returns, so
        // any will do.
        flags: SA_RESTORER,
        restorer: handler,
        mask: 0,
    };
    let at = (&raw const action) as usize;
    // SAFETY: SYSCALL; the kernel reads `action`; the mask is 8 bytes. The handler makes
    // system calls and uses its own stack only (signal-safety(7)), and ends the process.
    check(unsafe { syscall6(nr::RT_SIGACTION, signal, at, 0, 8, 0, 0) }).map(|_| ())
}
