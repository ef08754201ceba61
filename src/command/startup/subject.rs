//! What is started: the arms, out of argv.

use super::registered::FOLDER;
use super::{Argument, handler};
use crate::cli::startup::{Arm, Options, Side, Via};
use crate::command::command_line::joined;
use crate::emit::Sink;
use crate::emit::stream::{Preamble, StreamError};
use crate::error::Error;
use crate::fixture::copied;
use crate::fixture::elf::{Elf, HEAD_BYTES};
use crate::measure::rounds::ARMS_MAX;
use crate::sys::file::{open_any, read_at, regular_bytes};
use crate::sys::identity::{identity, objects_beside};
use crate::sys::resident::resident_pages;
use crate::sys::spawn::{self, Program, Source};
use crate::sys::{Errno, Region};
use crate::text::Text;
use core::ffi::CStr;
use heapless::Vec;
use rustix::fd::{AsFd, OwnedFd};

/// Run by this program's own loader.
pub(super) const NATIVE: &str = "native";
const MEMFD: &str = "memfd";

/// The arms in the order of the first round, before it is shuffled.
pub(super) type Subjects = Vec<Subject, ARMS_MAX>;

/// An arm that can be started.
pub(super) struct Subject {
    /// `a`, `b`, `null`, `null-b`, `n=N`, `static`.
    pub(super) name: Text,
    /// How its program is reached.
    pub(super) dispatch: &'static str,
    /// Shared objects, if it is a slope's.
    pub(super) objects: Option<u64>,
    /// As given, for messages.
    pub(super) path: &'static CStr,
    pub(super) program: Program,
    /// Which file that is.
    identity: u64,
    /// The folder of binfmt_misc, which an entry that goes leaves a new time.
    entries: u64,
    /// What [`objects`] told; 0 if nothing.
    objects_seen: u64,
    via: Via,
    /// It did not end in time, and is not started again.
    pub(super) is_stuck: bool,
}

/// The arms that were asked for; with `ab` each of them once more, last. A program that is
/// run more often than another is faster for that, so both are run equally often.
pub(super) fn all(options: &Options, argument: Argument<'_>) -> Result<Subjects, Error> {
    let mut subjects = Subjects::new();
    for arm in &options.arms {
        // As many as there is room for: the parser counted them.
        let _ = subjects.push(Subject::new(arm, options, argument, None)?);
    }
    for (side, name) in [(Side::A, "null"), (Side::B, "null-b")] {
        if let Some(arm) = options.arms.iter().find(|arm| arm.side == side) {
            let _ = subjects.push(Subject::new(arm, options, argument, Some(name))?);
        }
    }
    Ok(subjects)
}

/// Notes the command lines of the arms.
pub(super) fn note<S: Sink>(
    options: &Options,
    argument: Argument<'_>,
    preamble: &mut Preamble<S>,
) -> Result<(), StreamError<S::Error>> {
    for arm in &options.arms {
        let mut key = Text::new();
        key.add("arm_");
        match arm.side {
            Side::A => key.add("a"),
            Side::B => key.add("b"),
            Side::Objects(objects) => key.number(objects),
            Side::Static => key.add("static"),
        };
        let words = command_line(arm, argument);
        preamble.note(key.read()?, words.read()?)?;
    }
    Ok(())
}

/// Notes what is compared at start and end.
pub(super) fn note_compared<S: Sink>(
    subjects: &Subjects,
    preamble: &mut Preamble<S>,
) -> Result<(), StreamError<S::Error>> {
    let is_all = subjects.iter().all(|subject| subject.objects_seen != 0);
    preamble.note(
        "compared",
        match is_all {
            true => "programs; *.so* beside them; ld.so.cache",
            false => "programs",
        },
    )
}

fn command_line(arm: &Arm, argument: Argument<'_>) -> Text {
    joined(&mut (arm.first..arm.end).map(|index| word(arm, index, argument).to_bytes()))
}

/// A word of an arm, without what stands before the path in the first.
fn word(arm: &Arm, index: usize, argument: Argument<'_>) -> &'static CStr {
    // The parser saw these words.
    let word = argument(index).unwrap_or(c"");
    let skip = if index == arm.first { arm.skip } else { 0 };
    let tail = word.to_bytes_with_nul().get(skip..).unwrap_or(b"\0");
    CStr::from_bytes_with_nul(tail).unwrap_or(c"")
}

impl Subject {
    fn new(
        arm: &Arm,
        options: &Options,
        argument: Argument<'_>,
        name: Option<&str>,
    ) -> Result<Self, Error> {
        let path = word(arm, arm.first, argument);
        let refused = |errno| Error::CannotRun(path.to_bytes(), errno);
        let via = match arm.side {
            Side::A => options.a_via,
            Side::B => options.b_via,
            Side::Objects(_) | Side::Static => Via::Execve,
        };
        let words = &mut (arm.first..arm.end).map(|index| word(arm, index, argument));
        let identity = identity(path).map_err(refused)?;
        if via != Via::Execve {
            check_copied(path, via)?;
        }
        if arm.side == Side::Static {
            check_static(path)?;
        }
        let (dispatch, source) = reach(path, via).map_err(refused)?;
        let own = copied::own_words(spawn::HANDED);
        let first = match via {
            Via::Native => &own[..],
            Via::Execve | Via::Memfd => &[],
        };
        let program = Program::new(first, words, source);
        let program = program.map_err(Error::kernel("map memory for a program"))?;
        Ok(Self {
            name: title(arm.side, name),
            dispatch,
            objects: match arm.side {
                Side::Objects(objects) => Some(objects),
                _ => None,
            },
            path,
            program,
            identity,
            entries: entries(),
            objects_seen: objects(path),
            via,
            is_stuck: false,
        })
    }
}

/// Whether a program that is to be copied can be read, and is what can be copied.
fn check_copied(path: &'static CStr, via: Via) -> Result<(), Error> {
    let name = path.to_str().unwrap_or("?");
    let (file, _) = open_regular(path)
        .map_err(|errno| Error::Subject(name, "copy (it must be a file, and readable)", errno))?;
    let mut head = [0; 2];
    read_at(file.as_fd(), &mut head, 0)
        .map_err(|errno| Error::Subject(name, "read the program", errno))?;
    match via {
        Via::Memfd if head == *b"#!" => Err(Error::Unsuited(
            name,
            "it is a script, whose interpreter could not open a file in memory: name the \
             interpreter",
        )),
        Via::Native => elf(path).map(|_| ()),
        _ => Ok(()),
    }
}

/// Whether the control needs no dynamic loader: whether it names none (PT_INTERP, elf(5)).
fn check_static(path: &'static CStr) -> Result<(), Error> {
    match elf(path)?.interpreter {
        None => Ok(()),
        Some(_) => Err(Error::Unsuited(
            path.to_str().unwrap_or("?"),
            "static= takes the control, and it names a dynamic loader (PT_INTERP): link it \
             with -static",
        )),
    }
}

fn elf(path: &'static CStr) -> Result<Elf, Error> {
    let name = path.to_str().unwrap_or("?");
    let mut head = [0; HEAD_BYTES];
    let len = open_regular(path)
        .and_then(|(file, _)| read_at(file.as_fd(), &mut head, 0))
        .map_err(|errno| Error::Subject(name, "read the program", errno))?;
    Elf::parse(&head[..len]).map_err(|error| Error::Unsuited(name, error.words()))
}

impl Subject {
    /// What is to be said if the kernel refuses it.
    pub(super) fn cannot_run(&self, errno: Errno) -> Error {
        match self.via {
            Via::Memfd => Error::CannotRunFromMemory(self.path.to_bytes(), errno),
            Via::Execve | Via::Native => Error::CannotRun(self.path.to_bytes(), errno),
        }
    }

    /// Whether nothing of its file is in the page cache.
    pub(super) fn check_uncached(&self, page_bytes: usize) -> Result<(), Error> {
        let name = self.path.to_str().unwrap_or("?");
        let asked = open_regular(self.path).and_then(|(file, bytes)| {
            let held = resident_pages(file.as_fd(), bytes, page_bytes)?;
            Ok((held, bytes.div_ceil(page_bytes as u64)))
        });
        match asked {
            Ok((0, _)) => Ok(()),
            Ok((held, of)) => Err(Error::StaysCached(self.path.to_bytes(), held, of)),
            Err(errno) => Err(Error::Subject(name, "tell what is in memory of", errno)),
        }
    }

    /// Whether the shared objects that are looked at are those of the start. Neither their times
    /// nor their folder's can be put back, so that once is enough.
    pub(super) fn check_objects(&self) -> Result<(), Error> {
        match objects(self.path) == self.objects_seen {
            true => Ok(()),
            false => Err(Error::Changed(
                self.path.to_bytes(),
                "may have had another library: a shared object beside it, or /etc/ld.so.cache, was \
                 replaced during the run, or another file made among such objects; leave them alone",
            )),
        }
    }

    /// Whether its file, and what takes it, are still what they were at the start. What was
    /// never known cannot change; that is mounting binfmt_misc meanwhile.
    pub(super) fn check_unchanged(&self) -> Result<(), Error> {
        let changed = |what| Error::Changed(self.path.to_bytes(), what);
        if identity(self.path) != Ok(self.identity) {
            return Err(changed(
                "was replaced or written to during the run (or renamed, linked, given a mode): give \
                 a copy that nobody touches",
            ));
        }
        if self.via != Via::Execve || self.dispatch == handler::UNKNOWN {
            return Ok(());
        }
        match handler::of(self.path) {
            Ok(found) if found == self.dispatch && entries() == self.entries => Ok(()),
            Ok(handler::UNKNOWN) => Err(changed(
                "has no known handler any more: binfmt_misc was loaded or unmounted, or the file \
                 made unreadable",
            )),
            _ => Err(changed(
                "may have had another handler: the entries of binfmt_misc were changed during \
                 the run; leave them alone",
            )),
        }
    }
}

/// What tells of the shared objects that a program may load: those beside it (`DT_RUNPATH` of
/// `$ORIGIN`, ld.so(8)), and the list of the others, which ldconfig(8) makes anew.
fn objects(path: &CStr) -> u64 {
    let list = identity(c"/etc/ld.so.cache").unwrap_or(0);
    objects_beside(path).map_or(0, |beside| beside.wrapping_add(list))
}

fn entries() -> u64 {
    identity(FOLDER).unwrap_or(0)
}

fn title(side: Side, name: Option<&str>) -> Text {
    let mut title = Text::new();
    match (name, side) {
        (Some(name), _) => title.add(name),
        (_, Side::A) => title.add("a"),
        (_, Side::B) => title.add("b"),
        (_, Side::Objects(objects)) => title.add("n=").number(objects),
        (_, Side::Static) => title.add("static"),
    };
    title
}

/// What rows say of a way, and what the kernel is handed.
fn reach(path: &CStr, via: Via) -> Result<(&'static str, Source), Errno> {
    Ok(match via {
        Via::Execve => (handler::of(path)?, Source::Path),
        Via::Memfd => {
            let (bytes, len) = contents(path)?;
            (MEMFD, Source::Memory(bytes, len))
        }
        Via::Native => (NATIVE, Source::Loader(open_regular(path)?.0)),
    })
}

/// The file and its bytes; for what is none, what the exec would say.
fn open_regular(path: &CStr) -> Result<(OwnedFd, u64), Errno> {
    let file = open_any(path)?;
    let bytes = regular_bytes(file.as_fd())?.ok_or(Errno::ACCESS)?;
    Ok((file, bytes))
}

/// Most bytes of a program that is started from memory.
const PROGRAM_BYTES: u64 = 1 << 30;

/// The whole file, and how long it is.
fn contents(path: &CStr) -> Result<(Region, usize), Errno> {
    let (file, len) = open_regular(path)?;
    let len = match len {
        0 => return Err(Errno::NOEXEC),
        1..=PROGRAM_BYTES => len as usize,
        _ => return Err(Errno::FBIG),
    };
    let mut bytes = Region::not_inherited(len)?;
    match read_at(file.as_fd(), &mut bytes.bytes_mut()[..len], 0)? {
        read if read == len => Ok((bytes, len)),
        _ => Err(Errno::IO),
    }
}
