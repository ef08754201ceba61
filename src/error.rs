//! Everything that ends a run early, with its exit status and its one line.

use crate::cli::{COMMANDS, Problem, Topic, UsageError, Word, memmap, usage_line};
use crate::command::env::Kernel;
use crate::fixture::FixtureError;
use crate::proc::rollup::RollupError;
use crate::sys::stdio::Output;
use crate::sys::{Errno, errno, signal};
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
    /// A program cannot be run: its path, and what the kernel says.
    CannotRun(Word, Errno),
    /// A program that did not end in time and cannot be killed: its path, its number, why.
    Survives(Word, i32, Errno),
    /// A program that stays in memory although the cache was dropped: its path, and how many
    /// of how many pages.
    StaysCached(Word, u64, u64),
    /// A program cannot be run from a file in memory: its path, and what the kernel says.
    CannotRunFromMemory(Word, Errno),
    /// The page cache cannot be dropped.
    CannotDropCaches(Errno),
    /// A program is not what it was at the start: its path, and what became of it.
    Changed(Word, &'static str),
    /// A file of a live process cannot be opened, and the likely cause.
    Process(i32, &'static str, Errno, Option<Denial>),
    /// A reader may not or cannot read a live process: its name, the process, and the likely cause.
    Reader(&'static str, i32, Errno, Option<Denial>),
    /// A live process ended, or became another program, while it was read.
    Ended(i32),
    /// An option whose value does not fit the others: its name, the value, the problem,
    /// and the most there may be.
    Setting(&'static str, u64, &'static str, u64),
    /// Options of `bench` that exclude each other, and why.
    Conflict(&'static str),
    /// A program that cannot be measured: its name, what about it, and the errno.
    Subject(&'static str, &'static str, Errno),
    /// A program of a kind that cannot be measured, and why.
    Unsuited(&'static str, &'static str),
    /// smaps_rollup of this kernel has something that is not known.
    Rollup(RollupError),
    /// Somebody holds the lock of who sets this machine up: the process, if it can be told.
    Locked(Option<u64>),
    /// The measurement is not valid or not possible here.
    Invalid(&'static str),
    /// A child has said it, and ended with this status.
    Reported(i32),
    /// RLIMIT_STACK, and what is needed, in KiB.
    SmallStack(u64, u64),
    /// The stack does not grow by so many KiB.
    NoStack(u64),
    /// So many checks of `selftest` failed.
    Checks(u64),
    /// A runtime error of which the command has said itself what it was.
    Said,
}

/// Why a process cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// It does not exist.
    NoSuch,
    /// It exists, and /proc does not show it.
    Hidden,
    /// It has ended and was not reaped.
    Zombie,
    /// Its first thread has ended, others have not.
    DeadLeader,
    /// A thread of the kernel.
    NoMemory,
    /// Another user's or group's, and no CAP_SYS_PTRACE here.
    OtherOwner,
    /// It may do what we may not.
    MoreCapable,
    /// It is ours, and yet may not be looked at.
    NotDumpable,
    /// Yama 1: only one's own descendants.
    YamaRelatives,
    /// Yama 2 or 3.
    YamaForAll,
    /// CAP_SYS_PTRACE is there, but the file's mode keeps others out.
    NotItsFiles,
    /// CAP_SYS_PTRACE is there.
    DespitePrivilege,
    /// Somebody traces it already.
    Traced,
    /// The links of map_files may not be followed.
    MappedFiles,
    /// /proc/kcore, or frame numbers.
    KernelMemory,
    /// No more files may be opened here; no matter of the process.
    Descriptors,
    /// None of these.
    Unknown,
}

impl Denial {
    /// Cause and remedy.
    const fn words(self) -> &'static str {
        match self {
            Self::NoSuch => "there is no such process",
            Self::Hidden => {
                "it exists, but /proc hides it (mount option hidepid): use its owner, root, \
                 or the group that gid= names"
            }
            Self::Zombie => "it is a zombie: it has ended and has no memory",
            Self::DeadLeader => {
                "its first thread has ended, others live: give the id of one of those \
                 (ls /proc/PID/task)"
            }
            Self::NoMemory => "it is a kernel thread: it has no memory of its own",
            Self::OtherOwner => {
                "it belongs to another user or group: use its owner, root, or give \
                 CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (setcap \
                 cap_sys_ptrace,cap_dac_read_search=ep)"
            }
            Self::MoreCapable => {
                "it has capabilities that this program lacks: use root, or CAP_SYS_PTRACE and \
                 CAP_DAC_READ_SEARCH"
            }
            Self::NotDumpable => {
                "it is yours but not dumpable (it changed its user, was not readable, or said \
                 PR_SET_DUMPABLE 0) or in another user namespace: use root, or CAP_SYS_PTRACE and \
                 CAP_DAC_READ_SEARCH"
            }
            Self::YamaRelatives => {
                "Yama allows only descendants (kernel.yama.ptrace_scope is 1): use root or \
                 CAP_SYS_PTRACE, or sysctl -w kernel.yama.ptrace_scope=0"
            }
            Self::YamaForAll => {
                "Yama forbids it (kernel.yama.ptrace_scope is 2 or 3): 2 needs CAP_SYS_PTRACE, \
                 3 stays until the next boot"
            }
            Self::NotItsFiles => {
                "CAP_SYS_PTRACE is there, but pagemap and mem open to their owner only (root, if \
                 it is not dumpable): give CAP_DAC_READ_SEARCH, too"
            }
            Self::DespitePrivilege => {
                "CAP_SYS_PTRACE is there, so a security module, a seccomp filter or another \
                 user namespace refuses"
            }
            Self::Traced => {
                "a debugger or strace traces it already (TracerPid in its status), and there can \
                 be one only"
            }
            Self::MappedFiles => {
                "map_files takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE of the machine, not of \
                 a user namespace: use root"
            }
            Self::KernelMemory => {
                "kcore takes root with CAP_SYS_RAWIO and CAP_SYS_ADMIN, and a kernel that is not \
                 locked down"
            }
            Self::Descriptors => {
                "no more files can be opened: raise ulimit -n (of the machine: fs.file-max)"
            }
            Self::Unknown => {
                "a security module (SELinux, AppArmor, Landlock), a seccomp filter or another \
                 user namespace refuses"
            }
        }
    }
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
            Self::Usage(_) | Self::Setting(..) | Self::Conflict(_) | Self::Cpu(..) => 2,
            Self::Invalid(_)
            | Self::Locked(_)
            | Self::Changed(..)
            | Self::StaysCached(..)
            | Self::CannotDropCaches(_)
            | Self::Rollup(_) => INVALID,
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
        match self {
            Self::Said => return,
            Self::Usage(usage) if memmap::is_terse(usage) => {}
            _ => {
                line.add(match self {
                    Self::Usage(usage) if usage.topic == Topic::Memmap => "memmap",
                    _ => signal::name(),
                });
                line.add(": error: ");
                self.describe(&mut line);
                line.add("\n");
            }
        }
        let topic = match self {
            Self::Usage(usage) => Some(usage.topic),
            Self::Setting(..) | Self::Conflict(_) => Some(Topic::Bench),
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
            Self::NoStack(needed) => {
                line.add("the stack cannot grow by ").number(needed);
                line.add(" KiB: raise RLIMIT_AS (ulimit -v)");
            }
            Self::SmallStack(limit, needed) => {
                line.add("the stack is too small: RLIMIT_STACK (ulimit -s) is ");
                line.number(limit).add(" KiB, ").number(needed);
                line.add(" KiB are needed; raise it");
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
            Self::CannotRun(path, errno) => {
                line.add("cannot run '");
                add_word(line, path);
                line.add("': ").add(errno::name_or_unknown(errno));
                line.add(match errno {
                    Errno::NOENT => {
                        ": no such file, or its interpreter is missing; give the path: \
                         neither a shell nor PATH is used"
                    }
                    Errno::ACCESS => {
                        ": it must be a file with permission to execute, and not on a noexec mount"
                    }
                    Errno::NOEXEC => {
                        ": neither a program of this CPU nor registered with binfmt_misc"
                    }
                    errno => limit(errno),
                });
            }
            Self::Survives(path, pid, errno) => {
                line.add("'");
                add_word(line, path);
                line.add("' did not end in time and lives on as process ");
                line.signed(pid.into()).add(": ");
                line.add(errno::name_or_unknown(errno));
                line.add(match errno {
                    Errno::PERM => {
                        ": it has another user's rights (a set-user-ID file), so this one may \
                         not kill it: kill it as root, and measure it as root"
                    }
                    Errno::TIMEDOUT => {
                        ": it was killed and does not end: it waits for a device or a file \
                         server that does not answer"
                    }
                    _ => ": it cannot be killed",
                });
            }
            Self::CannotDropCaches(errno) => {
                line.add("--cold cannot write /proc/sys/vm/drop_caches: ");
                line.add(errno::name_or_unknown(errno));
                line.add(": it takes root of the machine, and a /proc that is mounted writable");
            }
            Self::StaysCached(path, held, of) => {
                line.add("--cold: ").number(held).add(" of ").number(of);
                line.add(" pages of '");
                add_word(line, path);
                line.add(
                    "' stay in memory although the cache was dropped: a process maps it, or its \
                     file system has no other place (tmpfs); give a copy on a disk that nobody \
                     runs",
                );
            }
            Self::CannotRunFromMemory(path, errno) => {
                line.add("cannot run '");
                add_word(line, path);
                line.add("' from a file in memory: ");
                line.add(errno::name_or_unknown(errno));
                line.add(match errno {
                    Errno::ACCESS | Errno::PERM => {
                        ": vm.memfd_noexec is 2 (sysctl -w vm.memfd_noexec=1), or a security \
                         module refuses"
                    }
                    Errno::NOENT => ": its interpreter is missing, or /proc is not mounted",
                    Errno::NOEXEC => ": it is no program of this CPU",
                    errno => limit(errno),
                });
            }
            Self::Changed(path, what) => {
                line.add("'");
                add_word(line, path);
                line.add("' ").add(what);
            }
            Self::Process(pid, file, errno, denial) => {
                line.add("cannot read /proc/").signed(pid.into()).add("/");
                line.add(file);
                add_denial(line, errno, denial);
            }
            Self::Reader(method, pid, errno, denial) => {
                line.add("cannot read process ").signed(pid.into());
                line.add(" with ").add(method);
                add_denial(line, errno, denial);
            }
            Self::Ended(pid) => {
                line.add("process ").signed(pid.into());
                line.add(" ended, or became another program, while it was looked at; ");
                line.add("the rows tell what was seen until then");
            }
            Self::Subject(name, doing, errno) => {
                line.add("cannot ").add(doing).add(" '");
                line.add_printable(name).add("': ");
                line.add(errno::name_or_unknown(errno));
            }
            Self::Unsuited(name, why) => {
                line.add("cannot use '").add_printable(name).add("': ");
                line.add(why);
            }
            Self::Rollup(ref error) => {
                line.add("smaps_rollup of Linux ");
                line.add_printable(Kernel::read().release()).add(" has ");
                line.add(error.problem()).add(error.field());
                line.add(": rows with it are no figures; this version knows kernels up to 7.3");
            }
            Self::Locked(process) => {
                match process {
                    Some(process) => line.add("process ").number(process),
                    None => line.add("another process"),
                };
                line.add(" holds the lock (flock) on /sys/kernel/mm, which keeps two runs from ");
                line.add("setting this machine up at once: wait for its end, then start again");
            }
            Self::Invalid(what) | Self::Conflict(what) => {
                line.add(what);
            }
            Self::Said => {}
            Self::Reported(status) => {
                line.add("a child ended with status ").signed(status.into());
            }
            Self::Checks(failed) => {
                line.add("checks failed: ").number(failed);
            }
        }
    }
}

/// Which limit keeps a program from being started, and the remedy.
const fn limit(errno: Errno) -> &'static str {
    match errno {
        Errno::AGAIN => ": too many processes: raise ulimit -u or pids.max",
        Errno::BADF | Errno::MFILE => ": raise ulimit -n to 101 or more",
        Errno::FBIG => ": it is over 1 GiB, or over ulimit -f: raise that",
        _ => "",
    }
}

fn add_denial(line: &mut Text, errno: Errno, denial: Option<Denial>) {
    line.add(": ").add(errno::name_or_unknown(errno));
    if let Some(denial) = denial {
        line.add(": ").add(denial.words());
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
    add_word(line, usage.word);
    line.add(after).add(allowed);
    if matches!(usage.problem, Problem::NoCommand | Problem::UnknownCommand) {
        let mut separator = "; commands are ";
        for (name, ..) in COMMANDS {
            line.add(separator).add(name);
            separator = ", ";
        }
    }
}

fn add_word(line: &mut Text, word: Word) {
    for byte in word.escape_ascii().take(WORD_SHOWN) {
        line.add(char::from(byte).encode_utf8(&mut [0; 4]));
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
            FixtureError::Stopped => Self::Invalid("somebody else has stopped the child"),
        }
    }
}
