//! What only the first process of a machine does: mount, quiet the kernel's messages,
//! become another program, end the machine.

use super::arch::{nr, syscall6};
use super::file::AT_FDCWD;
use super::{Errno, check};
use core::ffi::CStr;
use core::ptr::null;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::MemfdFlags;

/// Mounts a file system of the kernel's own on `target`, which is made if it is missing.
///
/// C form: `mkdir(target, 0755); mount(kind, target, kind, 0, NULL)`; mount(2).
///
/// # Errors
/// `ENODEV` (this kernel has no such file system), `EBUSY` (it is mounted there),
/// `EPERM`, `ENOENT`.
pub fn mount(kind: &CStr, target: &CStr) -> Result<(), Errno> {
    let (kind, target) = (kind.as_ptr() as usize, target.as_ptr() as usize);
    // EEXIST is what is hoped for; whatever else fails, mount tells.
    // SAFETY: SYSCALL; the kernel reads the C string.
    let _ = unsafe { syscall6(nr::MKDIRAT, AT_FDCWD, target, 0o755, 0, 0, 0) };
    // SAFETY: SYSCALL; the kernel reads the C strings; these file systems need no data.
    check(unsafe { syscall6(nr::MOUNT, kind, target, kind, 0, 0, 0) }).map(|_| ())
}

/// Whether messages of the kernel go to the console. Taking them off keeps the level that
/// was set, putting them back restores it. C form: `klogctl(6 or 7, NULL, 0)`, syslog(2).
///
/// # Errors
/// `EPERM`; `ENOSYS` (a kernel without printk).
pub fn print_kernel_messages(on: bool) -> Result<(), Errno> {
    const CONSOLE_OFF: usize = 6;
    let action = CONSOLE_OFF + usize::from(on);
    // SAFETY: SYSCALL; no memory is named.
    check(unsafe { syscall6(nr::SYSLOG, action, 0, 0, 0, 0, 0) }).map(|_| ())
}

/// A file in memory, empty, not to be inherited over exec. memfd_create(2).
///
/// # Errors
/// `ENOSYS` (before Linux 3.17, or not configured), `ENOMEM`.
pub fn file_in_memory() -> Result<OwnedFd, Errno> {
    rustix::fs::memfd_create(c"held", MemfdFlags::CLOEXEC)
}

/// Makes standard descriptor `number` another name of `file`. dup3(2).
///
/// # Errors
/// None that the man page names for these arguments.
pub fn make_standard(number: u8, file: &OwnedFd) -> Result<(), Errno> {
    let from = file.as_raw_fd().cast_unsigned() as usize;
    // SAFETY: SYSCALL; whoever writes to the standard descriptor means whatever it is.
    check(unsafe { syscall6(nr::DUP3, from, number.into(), 0, 0, 0, 0) }).map(|_| ())
}

/// Turns this process into another program without arguments or environment. execve(2).
pub fn become_program(path: &CStr) -> Errno {
    let arguments = [path.as_ptr(), null()];
    let (path, arguments) = (path.as_ptr() as usize, (&raw const arguments) as usize);
    // SAFETY: SYSCALL; the kernel reads the path and the list, which a null ends.
    let result = check(unsafe { syscall6(nr::EXECVE, path, arguments, 0, 0, 0, 0) });
    result.err().unwrap_or(Errno::NOSYS)
}

/// How a machine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Power off.
    PowerOff,
    /// Start again.
    Reboot,
    /// Stop, powered on.
    Halt,
}

/// Ends the machine; comes back only if that fails. sync(2), reboot(2).
pub fn end_machine(end: End) -> Errno {
    const MAGIC: usize = 0xfee1_dead;
    const MAGIC_2: usize = 0x2812_1969;
    let command = match end {
        End::PowerOff => 0x4321_fedc,
        End::Reboot => 0x0123_4567,
        End::Halt => 0xcdef_0123,
    };
    // SAFETY: SYSCALL; no memory is named.
    unsafe { syscall6(nr::SYNC, 0, 0, 0, 0, 0, 0) };
    // SAFETY: SYSCALL; no memory is named.
    let result = check(unsafe { syscall6(nr::REBOOT, MAGIC, MAGIC_2, command, 0, 0, 0) });
    result.err().unwrap_or(Errno::NOSYS)
}
