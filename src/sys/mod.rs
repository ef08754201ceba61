//! Assembly, the system calls rustix lacks, and every `unsafe` block of the library.
//!
//! Nothing here knows what is being measured. Callers above get types that cannot be
//! misused from safe code: a [`Region`] owns its pages, a [`RemoteAddr`] can never be
//! dereferenced, a [`Clock`] is read, not configured.
//!
//! # Safety
//!
//! Three facts recur in the SAFETY comments below and are cited by name:
//!
//! - **SYSCALL**: the kernel touches only memory that the argument list of that call
//!   names, and preserves every register but the result (on x86_64 also `rcx` and
//!   `r11`). Source: syscall(2), "Architecture calling conventions".
//! - **OWNED**: the mapping was made by this value, nobody else knows its address, and
//!   it is unmapped only when the value is dropped.
//! - **SINGLE**: the appliance has exactly one thread per process.
#![allow(
    unsafe_code,
    reason = "the one module of the library that may use it; see # Safety"
)]

mod arch;
pub mod auxv;
pub mod clock;
pub mod cpu;
pub mod doomed;
pub mod errno;
pub mod exec;
pub mod file;
pub mod halt;
pub mod identity;
pub mod image;
pub mod machine;
pub mod opening;
pub mod page_lists;
pub mod plot;
pub mod process;
pub mod promise;
pub mod ptrace;
pub mod region;
pub mod remote;
pub mod resident;
pub mod segments;
pub mod signal;
pub mod spawn;
mod stack;
pub mod stdio;
pub mod system;
pub mod table;
pub mod template;

pub use clock::Clock;
pub use errno::Errno;
pub use plot::Plot;
pub use region::Region;
pub use remote::RemoteAddr;
pub use segments::{Segments, Shape};
pub use table::Table;

/// Addresses, sizes and counts of the kernel are cast to `usize` and back throughout:
/// both CPUs of the appliance are 64-bit.
const _: () = assert!(usize::BITS == 64);

/// Turns a raw system-call result into the value or the errno.
///
/// The kernel reports errors as -4095..=-1 (syscall(2)); everything else is a value.
#[inline(always)]
fn check(result: isize) -> Result<usize, Errno> {
    match result {
        -4095..=-1 => Err(Errno::from_raw_os_error(-(result as i32))),
        #[allow(
            clippy::cast_sign_loss,
            reason = "an address or a count: the bits are the value"
        )]
        value => Ok(value as usize),
    }
}
