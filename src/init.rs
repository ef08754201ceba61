//! The first process of a machine: the appliance as `/init` of an initramfs.
//!
//! Mounts what measuring needs, loads the kernel modules that lie beside it, runs the commands that stand on the kernel's command
//! line after `--` ([`boot_line`]), each as a child of its own, and ends the machine.
//!
//! The console shows, in this order: a line that names the command, what it wrote to
//! standard output as it came, what it wrote to standard error once it has ended, and
//! how it ended. Last comes one verdict over all commands. The kernel's own messages are
//! kept away meanwhile, so that a stream of rows stays whole.

mod modules;

use crate::boot_line::{self, Command, DEFAULT, OnDone};
use crate::error::{CHECK_FAILED, INVALID};
use crate::proc::number::decimal;
use crate::sys::process::{self, Ending, Side, exit, fork};
use crate::sys::stdio::{self, stdout};
use crate::sys::system::{
    End, become_program, end_machine, file_in_memory, make_stderr, mount, print_kernel_messages,
    unmount,
};
use crate::sys::{Errno, errno, file};
use crate::text::Text;
use core::ffi::CStr;
use rustix::fd::{AsFd, OwnedFd};

/// What is mounted, in this order: file system, target, whether nothing works without.
const MOUNTS: &[(&CStr, &CStr, bool)] = &[
    (c"devtmpfs", c"/dev", false),
    (c"proc", PROC, true),
    (c"sysfs", c"/sys", true),
    (c"tmpfs", c"/tmp", false),
    (c"securityfs", c"/sys/kernel/security", false),
    (c"debugfs", c"/sys/kernel/debug", false),
    (c"tracefs", c"/sys/kernel/tracing", false),
];

const PROC: &CStr = c"/proc";

/// How everything went: the worst of the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Pass,
    Fail,
    Invalid,
    Error,
}

impl Verdict {
    const fn of(ending: Ending) -> Self {
        match ending {
            Ending::Exited(0) => Self::Pass,
            Ending::Exited(CHECK_FAILED) => Self::Fail,
            Ending::Exited(INVALID) => Self::Invalid,
            _ => Self::Error,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Invalid => "invalid",
            Self::Error => "error",
        }
    }
}

/// Word of argv by its number; `None` past the last.
pub type Argument<'a> = &'a dyn Fn(usize) -> Option<&'static CStr>;

/// What runs one command, given its argv, and gives its exit status.
pub type Runner<'a> = &'a dyn Fn(Argument<'_>) -> i32;

/// Whether this is the first process of a machine. Before /proc is mounted only a look at
/// one of its own tells: a container without /proc has a first process, too.
#[must_use]
pub fn is_init() -> bool {
    if !process::is_first() {
        return false;
    }
    match process::is_in_first_namespace() {
        Ok(first) => return first,
        Err(Errno::NOENT) => {}
        Err(_) => return false,
    }
    match mount(c"proc", PROC) {
        Ok(()) => {}
        // It was there all the time: a kernel without PID namespaces, so without containers.
        Err(Errno::BUSY) => return true,
        // The first process of a machine may mount.
        Err(_) => return false,
    }
    let is_container = process::is_in_first_namespace() == Ok(false);
    if is_container {
        // Where none was mounted, none stays mounted.
        let _ = unmount(PROC);
    }
    !is_container
}

/// Runs everything; comes back only if the machine cannot be ended.
pub fn run(argument: Argument<'_>, runner: Runner<'_>) -> i32 {
    let mounted = mount_all();
    // Without a console nobody is listening; the descriptors must be taken all the same.
    let _ = stdio::use_console().or_else(|_| stdio::fill_missing());
    let mut verdict = Verdict::Pass;
    if let Err((target, errno)) = mounted {
        verdict = complain(&["cannot mount ", printable(target), ": ", name(errno)]);
    }
    let word = |index: usize| argument(index + 1).map(CStr::to_bytes);
    let (on_done, first) = match boot_line::on_done(&word) {
        Ok(found) => found,
        Err(bad) => {
            let word = argument(bad.0 + 1).unwrap_or_default();
            complain(&[
                "--on-done '",
                printable(word),
                "': must be poweroff, reboot, halt or shell PATH",
            ]);
            return conclude(Verdict::Error, End::PowerOff);
        }
    };
    let before = tainted();
    // ENOSYS, EPERM: if the kernel's messages come among the rows, the checksum tells.
    let _ = print_kernel_messages(false);
    modules::load_all();
    let mut next = Some(first);
    while let Some(first) = next {
        let command = Command::at(&word, first);
        let words = |index| command_word(argument, &command, index);
        verdict = verdict.max(run_one(&words, runner));
        next = command.next;
    }
    verdict = verdict.max(taint(before, tainted()));
    match on_done {
        OnDone::PowerOff => conclude(verdict, End::PowerOff),
        OnDone::Reboot => conclude(verdict, End::Restart),
        OnDone::Halt => conclude(verdict, End::Halt),
        OnDone::Become(index) => hand_over(verdict, argument(index + 1).unwrap_or_default()),
    }
}

/// The kernel's own marks of what went wrong with it; `None` where they cannot be read.
/// Documentation/admin-guide/tainted-kernels.rst.
fn tainted() -> Option<u64> {
    /// Bits 12 and 13: a module was built elsewhere, or is not signed. That is what it is,
    /// nothing that went wrong.
    const OF_MODULES: u64 = 3 << 12;
    let mut text = [0; 32];
    let text = file::read_whole(c"/proc/sys/kernel/tainted", &mut text).ok()?;
    Some(decimal(text.trim_ascii())? & !OF_MODULES)
}

/// A kernel that warned, oopsed or found a bad page meanwhile measures nothing.
fn taint(before: Option<u64>, after: Option<u64>) -> Verdict {
    match after {
        Some(marks) if after != before => {
            let mut line = Text::new();
            line.add("kernel tainted: ").number(marks);
            say(&[line.read().unwrap_or("kernel tainted")]);
            Verdict::Invalid
        }
        _ => Verdict::Pass,
    }
}

/// A panic of the first process itself would be one of the kernel.
pub fn give_up() -> i32 {
    conclude(Verdict::Error, End::PowerOff)
}

/// The first failure of those that matter.
fn mount_all() -> Result<(), (&'static CStr, Errno)> {
    let mut result = Ok(());
    for &(kind, target, needed) in MOUNTS {
        match mount(kind, target) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(errno) if needed => result = result.and(Err((target, errno))),
            // A kernel without it; what needs it says so.
            Err(_) => {}
        }
    }
    result
}

/// Word of a command's own argv.
fn command_word(argument: Argument<'_>, command: &Command, index: usize) -> Option<&'static CStr> {
    const DEFAULT_WORD: &CStr = c"selftest";
    const _: () = assert!(DEFAULT_WORD.count_bytes() == DEFAULT.len());
    match index {
        0 => argument(0),
        1 if command.is_default() => Some(DEFAULT_WORD),
        _ => argument(command.word(index - 1)? + 1),
    }
}

fn run_one(argument: Argument<'_>, runner: Runner<'_>) -> Verdict {
    let mut line = Text::new();
    line.add("run:");
    for word in (1..).map_while(argument) {
        line.add(" ").add_printable(printable(word));
    }
    say(&[line
        .read()
        .unwrap_or("run: a command that is too long to show")]);
    // ENOSYS, ENOMEM: then both streams come as they come.
    let held = file_in_memory().ok();
    let child = match fork() {
        Ok(Side::Parent(child)) => child,
        Ok(Side::Child) => {
            if let Some(held) = &held {
                // If it cannot be, errors come among the rows, and the checksum tells.
                let _ = make_stderr(held);
            }
            exit(runner(argument))
        }
        Err(errno) => return complain(&["cannot fork: ", name(errno)]),
    };
    let ending = child.end_as_init();
    if let Some(held) = &held {
        // What cannot be shown is missed by whoever reads it; the verdict stands.
        let _ = show(held);
    }
    say_ending(ending)
}

/// Copies what was held back to the console.
fn show(held: &OwnedFd) -> Result<(), Errno> {
    let mut buffer = [0; 1024];
    let mut offset = 0;
    loop {
        match file::read_at(held.as_fd(), &mut buffer, offset)? {
            0 => return Ok(()),
            count => stdout().write_all(&buffer[..count])?,
        }
        offset += buffer.len() as u64;
    }
}

fn say_ending(ending: Result<Ending, Errno>) -> Verdict {
    let (word, number) = match ending {
        Ok(Ending::Exited(status)) => ("end: status ", status),
        Ok(Ending::Killed(signal)) => {
            // It may have been cut in the middle of a line.
            write("\n");
            ("end: signal ", signal)
        }
        Err(errno) => return complain(&["cannot wait for the command: ", name(errno)]),
    };
    let mut line = Text::new();
    line.add(word).signed(number.into());
    say(&[line.read().unwrap_or(word)]);
    ending.map_or(Verdict::Error, Verdict::of)
}

/// Gives the verdict and ends the machine; comes back only if it cannot.
fn conclude(verdict: Verdict, end: End) -> i32 {
    give(verdict);
    let errno = end_machine(end);
    complain(&["cannot end the machine: ", name(errno)]);
    1
}

/// Gives the verdict and becomes `path`. That it is there is looked at before the verdict.
fn hand_over(verdict: Verdict, path: &CStr) -> i32 {
    let refused = |errno| complain(&["cannot become ", printable(path), ": ", name(errno)]);
    if let Err(errno) = file::open(path) {
        return conclude(refused(errno), End::PowerOff);
    }
    give(verdict);
    // Not executable: a verdict that stands already is followed by the worse one.
    conclude(refused(become_program(path)), End::PowerOff)
}

/// The last line of ours, at once; then the kernel may speak again.
fn give(verdict: Verdict) {
    let mut line = Text::new();
    line.add("cowitness: verdict: ")
        .add(verdict.name())
        .add("\n");
    write(line.read().unwrap_or("cowitness: verdict: error\n"));
    // As when they were taken off.
    let _ = print_kernel_messages(true);
}

/// Says what went wrong.
fn complain(parts: &[&str]) -> Verdict {
    let mut line = Text::new();
    line.add("error: ");
    for part in parts {
        line.add(part);
    }
    say(&[line.read().unwrap_or("error: a word is too long to show")]);
    Verdict::Error
}

/// A line of the first process.
fn say(parts: &[&str]) {
    let mut line = Text::new();
    line.add("cowitness: init: ");
    for part in parts {
        line.add_printable(part);
    }
    let line = line.add("\n").read();
    write(line.unwrap_or("cowitness: init: a line that is too long to show\n"));
}

/// To the console; there is nobody to tell if that fails.
fn write(text: &str) {
    let _ = stdout().write_all(text.as_bytes());
}

fn printable(word: &CStr) -> &str {
    word.to_str().unwrap_or("?")
}

fn name(errno: Errno) -> &'static str {
    errno::name_or_unknown(errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_command_has_an_argv_of_its_own() {
        let words = [c"/init", c"env", c"-q", c"then", c"probe", c"then"];
        let argument = |index: usize| words.get(index).copied();
        let argv = |first, end| {
            let command = Command {
                first,
                end,
                next: None,
            };
            let word = |index| command_word(&argument, &command, index);
            (0..).map_while(word).collect::<Vec<_>>()
        };
        assert_eq!(argv(0, 2), [c"/init", c"env", c"-q"]);
        assert_eq!(argv(3, 4), [c"/init", c"probe"]);
        assert_eq!(argv(5, 5), [c"/init", c"selftest"]);
    }

    #[test]
    fn the_worst_ending_is_the_verdict() {
        let of = |ending| Verdict::of(ending).name();
        assert_eq!(of(Ending::Exited(0)), "pass");
        assert_eq!(of(Ending::Exited(4)), "fail");
        assert_eq!(of(Ending::Exited(3)), "invalid");
        for error in [
            Ending::Exited(1),
            Ending::Exited(2),
            Ending::Exited(134),
            Ending::Killed(9),
        ] {
            assert_eq!(of(error), "error");
        }
        assert!(Verdict::Pass < Verdict::Fail && Verdict::Fail < Verdict::Invalid);
        assert!(Verdict::Invalid < Verdict::Error);
    }
}
