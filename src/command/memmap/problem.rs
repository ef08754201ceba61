//! What ends `memmap` early, in one line that begins with its name.

use super::lines::{Shown, write_line};
use crate::cli::memmap::Mode;
use crate::emit::stream::StreamError;
use crate::error::Error;
use crate::sys::stdio::{Output, stderr};
use crate::sys::{Errno, errno};
use crate::text::Text;

/// Why it ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Problem<'p> {
    /// Something is wrong with a file.
    File(&'p [u8], &'static str),
    /// A system call on a file failed.
    Kernel(&'p [u8], Errno),
    /// madvise(2) refused this advice.
    Advice(&'static str, Errno),
    /// The stack cannot grow by so many MiB; RLIMIT_STACK in KiB, if there is one.
    Stack(usize, Option<u64>),
    /// The kernel does not promise the memory.
    Refused(&'static str, Errno),
    /// MiB needed and available.
    NoMemory(u64, u64),
    /// The walk file is still there.
    Left(&'p [u8], Errno),
    /// Something that the counts rely on failed: what, and the errno.
    Spoilt(&'static str, Errno),
    /// What ends other commands, too.
    Other(Error),
}

/// What else to ask for.
#[derive(Clone, Copy)]
enum Hint {
    None,
    /// Fewer bytes.
    Less,
    /// Another place.
    Elsewhere,
    /// Either.
    LessOrElsewhere,
}

impl Hint {
    /// In words; a file that was given has the size that it has.
    const fn of(self, mode: Mode) -> &'static str {
        match (self, mode) {
            (Self::None, _) => "",
            (Self::Less, Mode::MmapFile) => "; take a smaller file",
            (Self::Less, _) => "; lower --mb",
            (_, Mode::MmapFile) => "; take another file",
            (Self::Elsewhere, _) => "; set TMPDIR to another folder",
            (Self::LessOrElsewhere, _) => "; lower --mb, or set TMPDIR to another folder",
        }
    }
}

/// What helps against an errno of a file.
const REMEDIES: [(Errno, &str, Hint); 11] = [
    (
        Errno::ACCESS,
        ": may not be opened or made by this user",
        Hint::Elsewhere,
    ),
    (Errno::ROFS, ": a read-only file system", Hint::Elsewhere),
    (
        Errno::MFILE,
        ": too many open files; close some, or raise ulimit -n",
        Hint::None,
    ),
    (
        Errno::NFILE,
        ": the machine has too many open files",
        Hint::None,
    ),
    (
        Errno::NOMEM,
        ": the kernel does not map so much; see ulimit -v",
        Hint::Less,
    ),
    (Errno::NOSPC, ": no room there", Hint::LessOrElsewhere),
    (Errno::DQUOT, ": no room there", Hint::LessOrElsewhere),
    (
        Errno::FBIG,
        ": larger than a file may be here (ulimit -f)",
        Hint::Less,
    ),
    (
        Errno::EXIST,
        ": left by a run that was killed, or somebody else's; remove it",
        Hint::None,
    ),
    (
        Errno::NOENT,
        ": there is no such file or folder",
        Hint::None,
    ),
    (Errno::NODEV, ": it cannot be mapped", Hint::None),
];

impl Problem<'_> {
    /// Writes the line. If it cannot be said, the exit status still tells.
    #[inline(never)]
    pub(super) fn say(&self, mode: Mode, out: Output) {
        let mut rest = Text::new();
        let file = match *self {
            Self::File(file, what) => {
                rest.add(": ").add(what);
                file
            }
            Self::Kernel(file, errno) => {
                rest.add(": ").add(errno::name_or_unknown(errno));
                if let Some((_, remedy, hint)) = REMEDIES.iter().find(|one| one.0 == errno) {
                    rest.add(remedy).add(hint.of(mode));
                }
                file
            }
            Self::Left(file, errno) => {
                rest.add(": ").add(errno::name_or_unknown(errno));
                rest.add(": the walk file cannot be removed; remove it");
                file
            }
            _ => {
                self.describe(mode, &mut rest);
                b""
            }
        };
        let rest = rest.read().unwrap_or_default().as_bytes();
        let _ = write_line(out, &[b"memmap: error: ", file, rest], Shown::Printable);
    }

    fn describe(&self, mode: Mode, line: &mut Text) {
        match *self {
            Self::Advice(name, errno) => {
                line.add("cannot advise ").add(name).add(": ");
                line.add(errno::name_or_unknown(errno));
                line.add(match errno {
                    Errno::PERM => ": denied here (seccomp)",
                    Errno::NOMEM => ": no memory",
                    Errno::FAULT => ": the stack cannot grow",
                    _ => ": this kernel, or this kind of memory, does not take it",
                });
            }
            Self::NoMemory(needed, available) => {
                line.add("not enough memory: ").number(needed);
                line.add(" MiB are needed, ").number(available);
                line.add(" MiB are available").add(Hint::Less.of(mode));
            }
            Self::Stack(mib, limit) => {
                line.add("the stack cannot grow by ").number(mib as u64);
                line.add(" MiB: RLIMIT_STACK (ulimit -s) is ");
                match limit {
                    Some(kib) => line.number(kib).add(" KiB"),
                    None => line.add("unlimited"),
                };
                line.add("; RLIMIT_AS (ulimit -v) and vm.overcommit_memory limit it, too; ");
                line.add("raise what is too low or lower --mb");
            }
            Self::Refused(doing, errno) => {
                line.add("cannot ").add(doing).add(": ");
                line.add(errno::name_or_unknown(errno));
                line.add(match errno {
                    Errno::PERM | Errno::ACCESS | Errno::NOSYS => ": denied here (seccomp)",
                    _ => ": see ulimit -v, ulimit -d and vm.overcommit_memory, or lower --mb",
                });
            }
            Self::Spoilt(doing, errno) => {
                line.add("cannot ").add(doing).add(": ");
                line.add(errno::name_or_unknown(errno));
                line.add(": denied here (seccomp), or memory is locked; the count would be wrong");
            }
            Self::Other(error) => error.describe(line),
            Self::File(..) | Self::Kernel(..) | Self::Left(..) => {}
        }
    }

    /// For a row: the errno, or none.
    pub(super) const fn errno(&self) -> Option<Errno> {
        match *self {
            Self::Kernel(_, errno)
            | Self::Advice(_, errno)
            | Self::Refused(_, errno)
            | Self::Left(_, errno)
            | Self::Spoilt(_, errno)
            | Self::Other(Error::Kernel(_, errno) | Error::Output(errno)) => Some(errno),
            _ => None,
        }
    }
}

/// The first of two that went wrong; the other is said at once.
pub(super) fn both<'p>(
    mode: Mode,
    first: Result<(), Problem<'p>>,
    second: Result<(), Problem<'p>>,
) -> Result<(), Problem<'p>> {
    if let (Err(_), Err(problem)) = (&first, &second) {
        problem.say(mode, stderr());
    }
    first.and(second)
}

impl From<Error> for Problem<'_> {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<StreamError<Errno>> for Problem<'_> {
    fn from(error: StreamError<Errno>) -> Self {
        Self::Other(error.into())
    }
}
