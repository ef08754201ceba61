//! Everything that ends a run early, with its exit status and its one line.

use crate::cli::{COMMANDS, Problem, Topic, UsageError, usage_line};
use crate::fixture::FixtureError;
use crate::sys::stdio::Output;
use crate::sys::{Errno, errno};
use crate::text::Text;

/// Exit status of a measurement that is not valid or not possible here.
pub const INVALID: i32 = 3;
/// Exit status of `selftest` when a check failed.
pub const CHECK_FAILED: i32 = 4;

/// Why a run ended.
#[derive(Clone, Copy, Debug)]
pub enum Error {
    /// The command line makes no sense.
    Usage(UsageError),
    /// A system call failed: what was attempted, and the errno.
    Kernel(&'static str, Errno),
    /// Standard output takes no more.
    Output(Errno),
    /// A row or line longer than its buffer: a defect of this program.
    TooLong,
    /// The CPU that was asked for.
    Cpu(usize, Errno),
    /// The arena does not fit: MiB needed and available.
    Memory {
        /// Arena, its full split, tables and buffers.
        needed_mib: u64,
        /// MemAvailable, or a container's limit if that is less.
        available_mib: u64,
    },
    /// The layout has more VMAs than the kernel allows a process.
    Vmas {
        /// Segments, PROT_NONE gaps and what the program has anyway.
        needed: u64,
        /// vm.max_map_count.
        limit: u64,
    },
    /// A file of a live process cannot be opened.
    Process(i32, &'static str, Errno),
    /// An option whose value does not fit the others: its name, the value, the problem,
    /// and the most there may be.
    Setting(&'static str, u64, &'static str, u64),
    /// The measurement is not valid or not possible here.
    Invalid(&'static str),
    /// A child has said it, and ended with this status.
    Reported(i32),
    /// So many checks of `selftest` failed.
    Checks(u64),
}

impl Error {
    /// No process can be looked at.
    pub const NO_PROC: Self = Self::Invalid(
        "/proc is not mounted or is of another PID namespace; mount one: mount -t proc proc /proc",
    );
    /// No clock gives a time.
    pub const NO_CLOCK: Self =
        Self::Invalid("the clock cannot be read here: clock_gettime gives nothing");

    /// For `map_err`: a kernel error with what was attempted.
    pub const fn kernel(doing: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self::Kernel(doing, errno)
    }

    /// The exit status, as the interface fixes them.
    #[must_use]
    pub const fn status(&self) -> i32 {
        match self {
            Self::Usage(_) | Self::Setting(..) | Self::Cpu(..) => 2,
            Self::Invalid(_) => INVALID,
            Self::Checks(_) => CHECK_FAILED,
            Self::Reported(status) => *status,
            _ => 1,
        }
    }

    /// Writes what happened as one line, and a usage line where it helps.
    pub fn report(&self, out: Output) {
        if matches!(self, Self::Reported(_)) {
            return;
        }
        let mut line = Text::new();
        line.add("cowitness: error: ");
        self.describe(&mut line);
        line.add("\n");
        let topic = match self {
            Self::Usage(usage) => Some(usage.topic),
            Self::Setting(..) | Self::Cpu(..) => Some(Topic::Bench),
            _ => None,
        };
        if let Some(topic) = topic {
            line.add(usage_line(topic)).add("\n");
        }
        // If it cannot be said, the status still tells.
        let _ = out.write_all(line.read().unwrap_or("cowitness: error\n").as_bytes());
    }

    /// Adds what happened, without a line feed.
    pub fn describe(&self, line: &mut Text) {
        match *self {
            Self::Usage(usage) => describe_usage(line, &usage),
            Self::Kernel(doing, errno) => {
                line.add("cannot ")
                    .add(doing)
                    .add(": ")
                    .add(errno::name_or_unknown(errno));
            }
            Self::Output(errno) => {
                line.add("cannot write to standard output: ");
                line.add(errno::name_or_unknown(errno));
            }
            Self::TooLong => {
                line.add("a line is too long for its buffer: a defect of cowitness");
            }
            Self::Cpu(cpu, errno) => {
                line.add("cannot pin to CPU ").number(cpu as u64).add(": ");
                line.add(errno::name_or_unknown(errno));
                line.add(": it must exist, be online and be in this process's cpuset;");
                line.add(" --cpu none does not pin");
            }
            Self::Memory {
                needed_mib,
                available_mib,
            } => {
                line.add("not enough memory: the arena and a full split of it need ");
                line.number(needed_mib).add(" MiB, ").number(available_mib);
                line.add(" MiB are available; lower --mb");
            }
            Self::Vmas { needed, limit } => {
                line.add("too many VMAs: this layout needs ").number(needed);
                line.add(", the kernel allows ").number(limit);
                line.add("; raise it (sysctl -w vm.max_map_count=")
                    .number(needed);
                line.add(") or choose larger --segment-pages or smaller --mb");
            }
            Self::Setting(option, value, problem, most) => {
                line.add(option)
                    .add(" ")
                    .number(value)
                    .add(": ")
                    .add(problem)
                    .number(most);
            }
            Self::Process(pid, file, errno) => {
                line.add("cannot open /proc/").signed(pid.into()).add("/");
                line.add(file).add(": ").add(errno::name_or_unknown(errno));
                line.add(match errno {
                    Errno::NOENT | Errno::SRCH => {
                        ": there is no such process, or /proc hides it (hidepid)"
                    }
                    _ => {
                        ": it must be yours and dumpable, or you need CAP_SYS_PTRACE \
                         (Yama and other security modules may still refuse)"
                    }
                });
            }
            Self::Invalid(what) => {
                line.add(what);
            }
            Self::Reported(status) => {
                line.add("a child ended with status ").signed(status.into());
            }
            Self::Checks(failed) => {
                line.add("checks failed: ").number(failed);
            }
        }
    }
}

/// The longest part of an offending word that is shown.
const WORD_SHOWN: usize = 120;

fn describe_usage(line: &mut Text, usage: &UsageError) {
    let (before, after, allowed) = match usage.problem {
        Problem::NoCommand => ("no command given", "", ""),
        Problem::UnknownCommand => ("unknown command '", "'", ""),
        Problem::UnknownOption => ("unknown option '", "'; --help lists the options", ""),
        Problem::MissingValue(kind) => ("", " needs a value: ", kind),
        Problem::NoValueTaken => ("'", "': this option takes no value", ""),
        Problem::BadValue(allowed) => (" '", "': must be ", allowed),
        Problem::MissingOperand(allowed) => ("no ", " given: must be ", allowed),
        Problem::StrayWord => ("stray word '", "'; options start with --", ""),
    };
    line.add(usage.option).add(before);
    for byte in usage.word.escape_ascii().take(WORD_SHOWN) {
        line.add(char::from(byte).encode_utf8(&mut [0; 4]));
    }
    line.add(after).add(allowed);
    if matches!(usage.problem, Problem::NoCommand | Problem::UnknownCommand) {
        let mut separator = "; commands are ";
        for (name, ..) in COMMANDS {
            line.add(separator).add(name);
            separator = ", ";
        }
    }
}

impl From<UsageError> for Error {
    fn from(usage: UsageError) -> Self {
        Self::Usage(usage)
    }
}

impl From<FixtureError> for Error {
    fn from(error: FixtureError) -> Self {
        match error {
            FixtureError::Kernel(doing, errno) => Self::Kernel(doing, errno),
            FixtureError::Barrier(what) => Self::Invalid(what),
            FixtureError::Lost => Self::Invalid("the child was lost"),
        }
    }
}
