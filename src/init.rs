//! The first process of a machine: the appliance as `/init` of an initramfs.
//!
//! Mounts what measuring needs, runs the commands that stand on the kernel's command
//! line after `--`, each as a child of its own, and ends the machine:
//!
//! ```text
//! [--on-done poweroff|reboot|halt|shell PATH] [COMMAND [OPTIONS]... [then COMMAND...]...]
//! ```
//!
//! The console shows, in this order: a line that names the command, what it wrote to
//! standard output as it came, what it wrote to standard error once it has ended, and
//! how it ended. Last comes one verdict over all commands. The kernel's own messages are
//! kept away meanwhile, so that a stream of rows stays whole.

use crate::app::{self, CHECK_FAILED, INVALID, Start};
use crate::sys::process::{Ending, Side, exit, fork};
use crate::sys::stdio::{stdout, use_console};
use crate::sys::system::{
    End, become_program, end_machine, file_in_memory, make_standard, mount, print_kernel_messages,
};
use crate::sys::{Errno, errno, file};
use crate::text::Text;
use core::ffi::CStr;
use rustix::fd::{AsFd, OwnedFd};

/// What is mounted, in this order: file system, target, whether nothing works without.
const MOUNTS: &[(&CStr, &CStr, bool)] = &[
    (c"devtmpfs", c"/dev", false),
    (c"proc", c"/proc", true),
    (c"sysfs", c"/sys", true),
    (c"tmpfs", c"/tmp", false),
    (c"securityfs", c"/sys/kernel/security", false),
    (c"debugfs", c"/sys/kernel/debug", false),
    (c"tracefs", c"/sys/kernel/tracing", false),
];

/// The word between two commands.
const THEN: &[u8] = b"then";

/// What to run if nothing is said.
const DEFAULT: &CStr = c"selftest";

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

/// What to do when all is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnDone {
    End(End),
    Become(&'static CStr),
}

type Argument<'a> = &'a dyn Fn(usize) -> Option<&'static CStr>;

/// Runs everything; comes back only if the machine cannot be ended.
pub fn run(start: &Start<'_>) -> i32 {
    let mounted = mount_all();
    // Nothing can be said if there is no console, and nothing else is lost.
    let _ = use_console();
    let (on_done, first) = match on_done(start.argument) {
        Ok(found) => found,
        Err(word) => {
            say(&[
                "error: --on-done '",
                printable(word),
                "': must be poweroff, reboot, halt or shell PATH",
            ]);
            return conclude(Verdict::Error, OnDone::End(End::PowerOff));
        }
    };
    let mut verdict = match mounted {
        Ok(()) => Verdict::Pass,
        Err((target, errno)) => {
            say(&[
                "error: cannot mount ",
                printable(target),
                ": ",
                errno::name_or_unknown(errno),
            ]);
            Verdict::Error
        }
    };
    // ENOSYS: a kernel that has no messages.
    let _ = print_kernel_messages(false);
    let mut next = Some(first);
    while let Some(first) = next {
        let words = Words::at(start.argument, first);
        verdict = verdict.max(run_one(start, &words));
        next = words.next;
    }
    let _ = print_kernel_messages(true);
    conclude(verdict, on_done)
}

/// A panic of the first process itself would be one of the kernel.
pub fn give_up() -> i32 {
    conclude(Verdict::Error, OnDone::End(End::PowerOff))
}

fn mount_all() -> Result<(), (&'static CStr, Errno)> {
    let mut result = Ok(());
    for &(kind, target, needed) in MOUNTS {
        match mount(kind, target) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(errno) if needed => result = Err((target, errno)),
            // A kernel without it; what needs it says so.
            Err(_) => {}
        }
    }
    result
}

/// What `--on-done` says, and the first word after it; or the word that makes no sense.
fn on_done(argument: Argument<'_>) -> Result<(OnDone, usize), &'static CStr> {
    const NAME: &[u8] = b"--on-done";
    let word = |index| argument(index).unwrap_or_default();
    let (value, after) = match word(1).to_bytes().strip_prefix(NAME) {
        None => return Ok((OnDone::End(End::PowerOff), 1)),
        Some(b"") => (word(2).to_bytes(), 3),
        Some(rest) => (rest.strip_prefix(b"=").ok_or(word(1))?, 2),
    };
    let end = match value {
        b"poweroff" => End::PowerOff,
        b"reboot" => End::Reboot,
        b"halt" => End::Halt,
        b"shell" => {
            let path = argument(after).ok_or(c"shell")?;
            return Ok((OnDone::Become(path), after + 1));
        }
        _ => return Err(word(after - 1)),
    };
    Ok((OnDone::End(end), after))
}

/// The words of one command.
struct Words {
    first: usize,
    /// Past the last.
    end: usize,
    /// Where the next command begins.
    next: Option<usize>,
}

impl Words {
    fn at(argument: Argument<'_>, first: usize) -> Self {
        let mut end = first;
        loop {
            match argument(end).map(CStr::to_bytes) {
                None => {
                    return Self {
                        first,
                        end,
                        next: None,
                    };
                }
                Some(THEN) => {
                    return Self {
                        first,
                        end,
                        next: Some(end + 1),
                    };
                }
                Some(_) => end += 1,
            }
        }
    }

    /// Word of the command by its number, the program's name being number 0.
    fn get(&self, argument: Argument<'_>, index: usize) -> Option<&'static CStr> {
        match index {
            0 => argument(0),
            1 if self.first == self.end => Some(DEFAULT),
            _ => Some(self.first + index - 1)
                .filter(|&index| index < self.end)
                .and_then(argument),
        }
    }
}

fn run_one(start: &Start<'_>, words: &Words) -> Verdict {
    let argument = |index| words.get(start.argument, index);
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
        Ok(Side::Child) => exit(run_in_child(&argument, start, held.as_ref())),
        Err(errno) => {
            say(&["error: cannot fork: ", errno::name_or_unknown(errno)]);
            return Verdict::Error;
        }
    };
    let ending = child.end_as_init();
    if let Some(held) = &held {
        // What cannot be shown is missed by whoever reads it; the verdict stands.
        let _ = show(held);
    }
    say_ending(ending)
}

fn run_in_child(argument: Argument<'_>, start: &Start<'_>, held: Option<&OwnedFd>) -> i32 {
    if let Some(held) = held {
        // If that fails, errors come among the rows, and the checksum will tell.
        let _ = make_standard(2, held);
    }
    app::run_command(&Start {
        argument,
        auxv: start.auxv,
    })
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
            let _ = stdout().write_all(b"\n");
            ("end: signal ", signal)
        }
        Err(errno) => {
            say(&[
                "error: cannot wait for the command: ",
                errno::name_or_unknown(errno),
            ]);
            return Verdict::Error;
        }
    };
    let mut line = Text::new();
    line.add(word).signed(number.into());
    say(&[line.read().unwrap_or(word)]);
    ending.map_or(Verdict::Error, Verdict::of)
}

fn conclude(verdict: Verdict, on_done: OnDone) -> i32 {
    let mut line = Text::new();
    line.add("cowitness: verdict: ").add(verdict.name());
    write(&line);
    let end = match on_done {
        OnDone::End(end) => end,
        OnDone::Become(path) => {
            let errno = become_program(path);
            say(&[
                "error: cannot become ",
                printable(path),
                ": ",
                errno::name_or_unknown(errno),
            ]);
            End::PowerOff
        }
    };
    let errno = end_machine(end);
    say(&[
        "error: cannot end the machine: ",
        errno::name_or_unknown(errno),
    ]);
    1
}

/// A line of the first process.
fn say(parts: &[&str]) {
    let mut line = Text::new();
    line.add("cowitness: init: ");
    for part in parts {
        line.add_printable(part);
    }
    write(&line);
}

/// To the console; there is nobody to tell if that fails.
fn write(line: &Text) {
    let line = line.read().unwrap_or("cowitness: init: a line is too long");
    let _ = stdout().write_all(line.as_bytes());
    let _ = stdout().write_all(b"\n");
}

fn printable(word: &CStr) -> &str {
    word.to_str().unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn argument(words: &'static [&'static CStr]) -> impl Fn(usize) -> Option<&'static CStr> {
        |index| words.get(index).copied()
    }

    /// The commands that the words ask for, each from its program name on.
    fn commands(words: &'static [&'static CStr]) -> Vec<Vec<&'static CStr>> {
        let argument = argument(words);
        let (_, mut first) = on_done(&argument).unwrap();
        let mut commands = Vec::new();
        loop {
            let words = Words::at(&argument, first);
            commands.push(
                (0..)
                    .map_while(|index| words.get(&argument, index))
                    .collect(),
            );
            match words.next {
                Some(next) => first = next,
                None => return commands,
            }
        }
    }

    #[test]
    fn commands_are_divided_and_the_default_fills_in() {
        assert_eq!(commands(&[c"/init"]), [vec![c"/init", c"selftest"]]);
        assert_eq!(
            commands(&[c"/init", c"bench", c"--mb=4", c"then", c"probe", c"-q"]),
            [
                vec![c"/init", c"bench", c"--mb=4"],
                vec![c"/init", c"probe", c"-q"]
            ]
        );
        assert_eq!(
            commands(&[c"/init", c"--on-done", c"reboot", c"env", c"then"]),
            [vec![c"/init", c"env"], vec![c"/init", c"selftest"]]
        );
        assert_eq!(
            commands(&[c"/init", c"--on-done=halt"]),
            [vec![c"/init", c"selftest"]]
        );
    }

    #[test]
    fn what_comes_last_is_chosen_or_refused() {
        let found = |words| on_done(&argument(words)).map_err(CStr::to_bytes);
        let end = |end, first| Ok((OnDone::End(end), first));
        assert_eq!(found(&[c"/init"]), end(End::PowerOff, 1));
        assert_eq!(
            found(&[c"/init", c"--on-done", c"reboot"]),
            end(End::Reboot, 3)
        );
        assert_eq!(
            found(&[c"/init", c"--on-done=halt", c"env"]),
            end(End::Halt, 2)
        );
        assert_eq!(
            found(&[c"/init", c"--on-done", c"shell", c"/bin/sh", c"env"]),
            Ok((OnDone::Become(c"/bin/sh"), 4))
        );
        assert_eq!(
            found(&[c"/init", c"--on-done=shell", c"/sh"]),
            Ok((OnDone::Become(c"/sh"), 3))
        );
        for (words, word) in [
            (&[c"/init", c"--on-done", c"sleep"][..], &b"sleep"[..]),
            (&[c"/init", c"--on-done"], b""),
            (&[c"/init", c"--on-done=shell"], b"shell"),
            (&[c"/init", c"--on-doneX"], b"--on-doneX"),
            (&[c"/init", c"--on-done=x"], b"--on-done=x"),
        ] {
            assert_eq!(found(words), Err(word));
        }
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
