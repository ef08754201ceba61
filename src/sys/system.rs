//! What only the first process of a machine does: mount, load modules, quiet the kernel's
//! messages, become another program, end the machine.

use super::arch::{nr, syscall6};
use super::{Errno, check};
use core::ffi::CStr;
use core::ptr::null;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{CWD, MemfdFlags, Mode, mkdirat};
use rustix::io::retry_on_intr;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use rustix::stdio::dup2_stderr;
use rustix::system::RebootCommand;

/// Mounts a file system of the kernel's own on `target`, which is made if it is missing.
///
/// C form: `mkdir(target, 0755); mount(kind, target, kind, 0, NULL)`; mount(2).
///
/// # Errors
/// `ENODEV` (this kernel has no such file system), `EBUSY` (it is mounted there),
/// `EPERM`, `ENOENT`.
pub fn mount(kind: &CStr, target: &CStr) -> Result<(), Errno> {
    // EEXIST is what is hoped for; whatever else fails, mount tells.
    let _ = mkdirat(CWD, target, Mode::from_raw_mode(0o755));
    rustix::mount::mount(kind, target, kind, MountFlags::empty(), None)
}

/// Gives this process mounts of its own, which nobody else sees. unshare(2), mount(2).
///
/// # Errors
/// `EPERM`.
pub fn own_mounts() -> Result<(), Errno> {
    const CLONE_NEWNS: usize = 0x2_0000;
    // SAFETY: SYSCALL; only a number.
    check(unsafe { syscall6(nr::UNSHARE, CLONE_NEWNS, 0, 0, 0, 0, 0) })?;
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change(c"/", flags)
}

/// Mounts a file system with options over what is at `target`. mount(2).
///
/// # Errors
/// `ENODEV` (this kernel has no such file system), `EPERM`, `EINVAL`.
pub fn mount_over(kind: &CStr, target: &CStr, options: &CStr) -> Result<(), Errno> {
    rustix::mount::mount(kind, target, kind, MountFlags::empty(), Some(options))
}

/// Takes away what [`mount`] has mounted. umount2(2).
///
/// # Errors
/// `EPERM`, `EBUSY`, `EINVAL` (nothing is mounted there).
pub fn unmount(target: &CStr) -> Result<(), Errno> {
    rustix::mount::unmount(target, UnmountFlags::empty())
}

/// Swaps to a device or file. swapon(2).
///
/// # Errors
/// `EPERM`, `EINVAL` (no swap signature there, or no such file can be swapped to), `EBUSY`.
pub fn swap_on(path: &CStr) -> Result<(), Errno> {
    // SAFETY: SYSCALL; the kernel reads the path.
    check(unsafe { syscall6(nr::SWAPON, path.as_ptr() as usize, 0, 0, 0, 0, 0) }).map(|_| ())
}

/// Stops that. swapoff(2).
///
/// # Errors
/// `EPERM`, `EINVAL` (it is not swapped to), `ENOMEM` (what is there has no room elsewhere).
pub fn swap_off(path: &CStr) -> Result<(), Errno> {
    // SAFETY: SYSCALL; the kernel reads the path.
    check(unsafe { syscall6(nr::SWAPOFF, path.as_ptr() as usize, 0, 0, 0, 0, 0) }).map(|_| ())
}

/// Loads a kernel module without parameters, which is done with once its own init has run.
/// C form: `finit_module(open(path, O_RDONLY), "", 0)`; finit_module(2).
///
/// # Errors
/// As open(2); `ENOEXEC` (no module, or one for another kernel), `ENOENT` (it needs what no
/// loaded module has), `EEXIST` (it is loaded), `ENOKEY` or `EKEYREJECTED` (this kernel takes
/// only modules signed with a key it knows), `EPERM` (lockdown, or kernel.modules_disabled),
/// `ENOSYS` (a kernel without modules); what its init gives.
pub fn load_module(path: &CStr) -> Result<(), Errno> {
    let file = super::file::open(path)?;
    let module = file.as_raw_fd().cast_unsigned() as usize;
    let options = c"".as_ptr() as usize;
    // SAFETY: SYSCALL; the kernel reads the options, which are static and end with a zero.
    check(unsafe { syscall6(nr::FINIT_MODULE, module, options, 0, 0, 0, 0) }).map(|_| ())
}

/// Whether messages of the kernel go to the console. Taking them off keeps the level that
/// was set, putting them back restores it. C form: `klogctl(6 or 7, NULL, 0)`, syslog(2);
/// SYSLOG_ACTION_CONSOLE_OFF and _ON, include/linux/syslog.h.
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

/// Gives up what the kernel keeps of files: page cache, directory entries, inodes. What is
/// mapped or dirty stays, so sync(2) comes first. C form: `sync(); write(open(
/// "/proc/sys/vm/drop_caches", O_WRONLY), "3", 1)`; Documentation/admin-guide/sysctl/vm.rst.
///
/// # Errors
/// `EACCES` (not root), `ENOENT` (no /proc), `EROFS` (a container's /proc).
pub fn drop_caches() -> Result<(), Errno> {
    rustix::fs::sync();
    super::file::write_whole(c"/proc/sys/vm/drop_caches", b"3")
}

/// As [`file_in_memory`], for a program. Since Linux 6.3 a file in memory may have to be
/// asked for as one that can be executed (vm.memfd_noexec); before, there is no such flag.
///
/// # Errors
/// As [`file_in_memory`]; `EACCES` if vm.memfd_noexec is 2.
pub fn program_in_memory(name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::EXEC;
    match rustix::fs::memfd_create(name, flags) {
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC),
        result => result,
    }
}

/// Makes standard error another name of `file`. dup2(2).
///
/// # Errors
/// `EBUSY` (another open is under way, of a thread that we do not have).
pub fn make_stderr(file: &OwnedFd) -> Result<(), Errno> {
    retry_on_intr(|| dup2_stderr(file))
}

/// Turns this process into another program without arguments or environment; comes back
/// only with why it cannot. execve(2).
///
/// # Errors
/// That is what it returns: `ENOENT`, `EACCES`, `ENOEXEC`, `ENOMEM`.
pub fn become_program(path: &CStr) -> Errno {
    let arguments = [path.as_ptr(), null()];
    let (path, arguments) = (path.as_ptr() as usize, (&raw const arguments) as usize);
    // SAFETY: SYSCALL; the kernel reads the path and the list, which a null ends.
    let result = check(unsafe { syscall6(nr::EXECVE, path, arguments, 0, 0, 0, 0) });
    result.err().unwrap_or(Errno::NOSYS)
}

/// How a machine ends.
pub use rustix::system::RebootCommand as End;

/// Ends the machine; comes back only with why it cannot. sync(2), reboot(2).
///
/// # Errors
/// That is what it returns: `EPERM`.
pub fn end_machine(end: RebootCommand) -> Errno {
    rustix::fs::sync();
    rustix::system::reboot(end).err().unwrap_or(Errno::NOSYS)
}
