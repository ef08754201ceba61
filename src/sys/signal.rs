//! SIGINT and SIGTERM become a flag that is looked at between cases, so that children
//! are gone and rows are whole before the appliance ends; a closed pipe becomes EPIPE.
//!
//! SA_RESTART keeps slow calls going; poll(2) is never restarted, so waiting at a
//! barrier still notices at once (signal(7)).

use super::arch::{nr, signal_return, syscall6};
use super::{Errno, check};
use core::sync::atomic::{AtomicI32, Ordering};

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
const SIG_IGN: usize = 1;
const SA_RESTORER: usize = 0x0400_0000;
const SA_RESTART: usize = 0x1000_0000;

static CAUGHT: AtomicI32 = AtomicI32::new(0);

extern "C" fn catch(signal: i32) {
    CAUGHT.store(signal, Ordering::Relaxed);
}

/// The signal that asked us to stop, if one did.
#[must_use]
pub fn caught() -> Option<i32> {
    match CAUGHT.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// Installs the handlers. Children inherit them. sigaction(2).
///
/// # Errors
/// None that the man page names for these arguments.
pub fn install() -> Result<(), Errno> {
    let handler = catch as *const () as usize;
    for (signal, handler) in [(SIGINT, handler), (SIGTERM, handler), (SIGPIPE, SIG_IGN)] {
        set(signal, handler)?;
    }
    Ok(())
}

fn set(signal: usize, handler: usize) -> Result<(), Errno> {
    let restorer = signal_return();
    let action = Action {
        handler,
        flags: SA_RESTART | if restorer == 0 { 0 } else { SA_RESTORER },
        restorer,
        mask: 0,
    };
    let at = (&raw const action) as usize;
    // SAFETY: SYSCALL; the kernel reads `action`; the mask is 8 bytes. The handler only
    // stores to an atomic, which is safe at any point of the program.
    check(unsafe { syscall6(nr::RT_SIGACTION, signal, at, 0, 8, 0, 0) }).map(|_| ())
}
