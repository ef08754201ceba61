//! Becoming another program: which file, with which words, at which addresses.

use super::arch::{nr, syscall6};
use super::{Errno, check};
use core::ffi::{CStr, c_char};
use core::ptr::null;
use heapless::Vec;
use rustix::fd::{AsRawFd, BorrowedFd};

/// The most words a program is started with, and the most of its environment.
pub const WORDS_MAX: usize = 128;

/// Words for a program: argv or envp.
pub type Words<'w> = Vec<&'w CStr, WORDS_MAX>;

/// What is executed.
#[derive(Clone, Copy, Debug)]
pub enum Program<'p> {
    /// The file at this path.
    Path(&'p CStr),
    /// The file that this descriptor is of.
    File(BorrowedFd<'p>),
}

/// Turns this process into another program; comes back only with why it cannot.
///
/// C form: `execveat(AT_FDCWD, path, argv, envp, 0)` or
/// `execveat(fd, "", argv, envp, AT_EMPTY_PATH)`; execveat(2), since Linux 3.19.
///
/// # Errors
/// That is what it returns: `ENOENT`, `EACCES`, `ENOEXEC`, `ENOMEM`, `ETXTBSY`, …
pub fn execute(program: Program<'_>, arguments: &Words<'_>, environment: &Words<'_>) -> Errno {
    const AT_FDCWD: usize = (-100isize).cast_unsigned();
    const AT_EMPTY_PATH: usize = 0x1000;
    let (folder, path, flags) = match program {
        Program::Path(path) => (AT_FDCWD, path, 0),
        Program::File(file) => (
            file.as_raw_fd().cast_unsigned() as usize,
            c"",
            AT_EMPTY_PATH,
        ),
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    let (path, argv, envp) = (
        path.as_ptr() as usize,
        arguments.as_ptr() as usize,
        environment.as_ptr() as usize,
    );
    // SAFETY: SYSCALL; the kernel reads the path and the lists, which a null ends.
    let result = check(unsafe { syscall6(nr::EXECVEAT, folder, path, argv, envp, flags, 0) });
    result.err().unwrap_or(Errno::NOSYS)
}

fn pointers(words: &Words<'_>) -> [*const c_char; WORDS_MAX + 1] {
    let mut list = [null(); WORDS_MAX + 1];
    for (slot, word) in list.iter_mut().zip(words) {
        *slot = word.as_ptr();
    }
    list
}

/// Whether programs that this process becomes get their addresses at random, as far as the
/// kernel does that. C form: `personality(old | ADDR_NO_RANDOMIZE)`, personality(2).
///
/// # Errors
/// None that the man page names.
pub fn randomize_addresses(yes: bool) -> Result<(), Errno> {
    const ASK: usize = 0xffff_ffff;
    const ADDR_NO_RANDOMIZE: usize = 0x004_0000;
    // SAFETY: SYSCALL; only numbers.
    let now = check(unsafe { syscall6(nr::PERSONALITY, ASK, 0, 0, 0, 0, 0) })?;
    let wanted = match yes {
        true => now & !ADDR_NO_RANDOMIZE,
        false => now | ADDR_NO_RANDOMIZE,
    };
    // SAFETY: as above.
    check(unsafe { syscall6(nr::PERSONALITY, wanted, 0, 0, 0, 0, 0) }).map(|_| ())
}
