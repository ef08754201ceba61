//! Options of `memmap`, and how strictly they are read.
//!
//! Its contract is older than this program and has rules of its own: a value never stands
//! behind `=`, and what makes no sense is answered with one fixed line.

use super::{
    CommandSpec, Common, Effective, HasCommon, OptionSpec, OptionWord, Problem, Refused, Request,
    Topic, UsageError, Word, note, value,
};
use crate::emit::memmap_row::MODES;
use core::ffi::CStr;
use rustix::mm::Advice;

/// Kinds of allocation, in the order of [`MODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A frame of the main thread's stack.
    Stack,
    /// What malloc does with a large request.
    Heap,
    /// An anonymous private mapping.
    MmapAnon,
    /// A file, mapped for reading.
    MmapFile,
    /// A file of its own making, mapped and read in eight steps.
    FaultWalk,
}

const ALL: [Mode; 5] = [
    Mode::Stack,
    Mode::Heap,
    Mode::MmapAnon,
    Mode::MmapFile,
    Mode::FaultWalk,
];

impl Mode {
    /// The one of that name.
    fn named(word: Word) -> Option<Self> {
        let mut all = ALL.into_iter();
        all.find(|mode| mode.name().as_bytes() == word)
    }

    /// As typed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        MODES[self as usize]
    }
}

/// What madvise(2) is told, and when.
#[derive(Clone, Copy, Debug)]
pub struct Advised {
    /// As typed.
    pub name: &'static str,
    /// For the kernel.
    pub advice: Advice,
    /// Whether it is given after touching: it is about what is there.
    pub afterwards: bool,
}

const ADVICE: [Advised; 7] = [
    Advised::of("hugepage", Advice::LinuxHugepage, false),
    Advised::of("nohugepage", Advice::LinuxNoHugepage, false),
    Advised::of("willneed", Advice::WillNeed, false),
    Advised::of("sequential", Advice::Sequential, false),
    Advised::of("random", Advice::Random, false),
    Advised::of("dontneed", Advice::LinuxDontNeed, true),
    Advised::of("free", Advice::LinuxFree, true),
];

impl Advised {
    const fn of(name: &'static str, advice: Advice, afterwards: bool) -> Self {
        Self {
            name,
            advice,
            afterwards,
        }
    }
}

/// What `memmap` was asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// The kind of allocation; `None` until it is given.
    pub mode: Option<Mode>,
    /// Its size in MiB.
    pub mb: u64,
    /// The file to map.
    pub file: Option<&'static CStr>,
    /// A row instead of lines.
    pub csv: bool,
    /// Advice about it, if any.
    pub advised: Option<Advised>,
    /// Also the whole process, before and after.
    pub report: bool,
    /// The heap is the program break.
    pub brk: bool,
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// The line that answers what makes no sense.
pub const USAGE: &str =
    "usage: memmap --mode stack|heap|mmap-anon|mmap-file <FILE>|fault-walk [--mb N]";

/// The command.
pub const SPEC: CommandSpec<Options> = CommandSpec {
    topic: Topic::Memmap,
    name: "memmap",
    purpose: "touch one kind of allocation and show what the kernel says and charges",
    about: "Makes one allocation, touches one byte of each of its pages, and shows the lines\n\
            of /proc/self/maps that it is in, VmRSS before and after, and the page faults\n\
            that it cost. Also runs as `memmap` if that is the program's name.\n\n\
            stack       a frame on the main thread's stack of a child, 4 MiB at most\n\
            heap        what malloc does with a large request: there is no allocator here,\n\
            \x20           so it is one anonymous mapping, a page longer than asked, and that\n\
            \x20           page, where an allocator has its header, is touched, too; --brk\n\
            \x20           grows the program break instead, as malloc does for small requests\n\
            mmap-anon   an anonymous private mapping\n\
            mmap-file   FILE, mapped private and read; --mb does not count\n\
            fault-walk  a file written to $TMPDIR, or /tmp, in chunks of 64 KiB, mapped and\n\
            \x20           read in eight steps; it is removed, by signals that end the\n\
            \x20           program as well, SIGKILL excepted\n\n\
            Standard error says what the counts depend on: transparent huge pages, the\n\
            kernel's fault-around, the chunks. Values follow their options, never with `=`.\n\
            Exit status: 0 done; 1 what went wrong is said, also if the walk file could not\n\
            be removed; 2 usage. With --csv a row says what failed once the allocation is\n\
            begun; what fails before that (no such file, no room) leaves standard output\n\
            empty.\n",
    operand: None,
    options: OPTIONS,
    examples: &[
        (
            "cowitness memmap --mode heap",
            "64 MiB and a header: 16,385 faults with pages of 4 KiB and no huge ones",
        ),
        (
            "cowitness memmap --mode mmap-file /bin/bash",
            "a file in the page cache: one fault for 16 pages",
        ),
        (
            "cowitness memmap --mode mmap-anon --advise dontneed --report",
            "what is given back, and what that costs when it is touched again",
        ),
        (
            "cowitness memmap --mode fault-walk --mb 16 --csv > walk.csv",
            "the same as a row, with the environment",
        ),
    ],
};

const OPTIONS: &[OptionSpec<Options>] = &[
    OptionSpec {
        word: OptionWord {
            name: "--mode",
            short: "",
            value: "MODE",
            default: "",
            allowed: "stack, heap, mmap-anon, mmap-file or fault-walk",
            help: "stack, heap, mmap-anon, mmap-file FILE or fault-walk; must be given",
        },
        set: |options, word| {
            options.mode = Some(Mode::named(word).ok_or(Refused)?);
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--mb",
            short: "",
            value: "N",
            default: "64",
            allowed: "1 to 1024",
            help: "size in MiB",
        },
        set: |options, word| {
            options.mb = value::number(word, 1, 1024)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--csv",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "one row of CSV with the environment, instead of lines",
        },
        set: |options, _| {
            options.csv = true;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--advise",
            short: "",
            value: "ADVICE",
            default: "none",
            allowed: "none, hugepage, nohugepage, willneed, sequential, random, dontneed or free",
            help: "madvise: before touching, or after it (dontneed, free) and touch again",
        },
        set: |options, word| {
            let named = ADVICE.iter().find(|one| one.name.as_bytes() == word);
            options.advised = match word {
                b"none" => None,
                _ => Some(*named.ok_or(Refused)?),
            };
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--report",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "also VSZ, RSS, PSS, USS, swap and overcommit, before and after",
        },
        set: |options, _| {
            options.report = true;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--brk",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "with --mode heap: grow the program break, [heap] in maps",
        },
        set: |options, _| {
            options.brk = true;
            Ok(())
        },
    },
];

/// Whether the fixed line says all there is to say: the error is one of its contract's.
#[must_use]
pub fn is_terse(error: &UsageError) -> bool {
    error.topic == Topic::Memmap && matches!(error.option, "" | "--mode" | "--mb")
}

/// Reads the words behind `memmap`.
///
/// # Errors
/// The first word that makes no sense.
pub(super) fn parse(
    argument: &dyn Fn(usize) -> Option<&'static CStr>,
    options: &mut Options,
    effective: &mut Effective,
) -> Result<Request, UsageError> {
    let option = |index| Some((index, SPEC.word(index)?));
    for (index, word) in (0..).map_while(option) {
        if !word.default.is_empty() {
            take(index, word.default.as_bytes(), options, effective)?;
        }
    }
    let mut words = (2..).map_while(argument);
    while let Some(operand) = words.next() {
        let name = operand.to_bytes();
        match name {
            b"-h" | b"--help" => return Ok(Request::Help(Topic::Memmap)),
            b"-V" | b"--version" => return Ok(Request::Version),
            _ => {}
        }
        let mut table = (0..).map_while(option);
        let Some((index, word)) = table.find(|(_, word)| word.is_named(name)) else {
            take_file(operand, options)?;
            note(effective, "--file", name);
            continue;
        };
        let value = match word.value {
            "" => b"",
            kind => words.next().map(CStr::to_bytes).ok_or(fail(
                b"",
                word.name,
                Problem::MissingValue(kind),
            ))?,
        };
        take(index, value, options, effective)?;
    }
    whole(options)
}

/// The value of the option of that number.
fn take(
    index: usize,
    value: Word,
    options: &mut Options,
    effective: &mut Effective,
) -> Result<(), UsageError> {
    let name = SPEC.word(index).map_or("", |word| word.name);
    let taken = SPEC.set(index, options, value);
    taken.map_err(|problem| fail(value, name, problem))?;
    note(effective, name, value);
    Ok(())
}

/// A word that is no option.
fn take_file(word: &'static CStr, options: &mut Options) -> Result<(), UsageError> {
    let name = word.to_bytes();
    match options.file {
        _ if name.starts_with(b"-") => Err(fail(name, "", Problem::UnknownOption)),
        Some(_) => Err(fail(name, "", Problem::StrayWord)),
        None => {
            options.file = Some(word);
            Ok(())
        }
    }
}

/// Whether the options fit each other.
fn whole(options: &Options) -> Result<Request, UsageError> {
    match (options.mode, options.file) {
        (None, _) => Err(fail(b"--mode", "", Problem::MissingOperand("given"))),
        (Some(Mode::MmapFile), None) => Err(fail(b"FILE", "", Problem::MissingOperand("a file"))),
        (Some(mode), Some(file)) if mode != Mode::MmapFile => {
            Err(fail(file.to_bytes(), "", Problem::StrayWord))
        }
        (Some(mode), _) if options.brk && mode != Mode::Heap => Err(fail(
            mode.name().as_bytes(),
            "--brk with --mode",
            Problem::BadValue("heap"),
        )),
        _ => Ok(Request::Run(Topic::Memmap)),
    }
}

const fn fail(word: Word, option: &'static str, problem: Problem) -> UsageError {
    UsageError {
        word,
        option,
        problem,
        topic: Topic::Memmap,
    }
}
