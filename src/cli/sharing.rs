//! Options of `sharing`.

use super::{CommandSpec, Common, HasCommon, OptionSpec, OptionWord, Refused, Topic, Word, value};
use crate::fixture::builtin::ALIGN;
use crate::measure::plan::List;
use core::str::from_utf8;

/// How a program gets into memory.
#[derive(Clone, Copy, Debug)]
pub enum Arm {
    /// As it is.
    Elf,
    /// Its segments copied into private anonymous memory.
    Native,
    /// From a file in memory of its own.
    Memfd,
    /// A program without interpreter at this path; empty: a second file of the built-in one.
    Static(&'static str),
}

impl Arm {
    /// As the `arm` column has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::Native => "native",
            Self::Memfd => "memfd",
            Self::Static(_) => "static",
        }
    }
}

/// Of each kind there is one arm.
impl PartialEq for Arm {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// How the subjects are let go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// Standard input ends.
    #[default]
    End,
    /// A byte for each.
    Byte,
}

/// What `sharing` was asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// In this order; `elf` is always among them.
    pub arms: List<Arm>,
    /// How many processes at a time.
    pub n: List<u64>,
    /// Batches for each arm and number.
    pub reps: u64,
    /// Whether addresses are random.
    pub randomize: bool,
    /// Whether the built-in subject touches its text.
    pub touches_text: bool,
    /// How they are let go.
    pub release: Release,
    /// Longest time to come to the barrier, and to end.
    pub settle_s: u64,
    /// Text of the built-in subject.
    pub text_bytes: u64,
    /// Data of the built-in subject.
    pub data_bytes: u64,
    /// Where the built-in subject's file is made.
    pub folder: &'static str,
    /// Where in argv the program stands; `None`: the built-in subject.
    pub program: Option<usize>,
    /// How often an option of the built-in subject was set; each has a default.
    builtin_settings: usize,
}

/// Where the built-in subject's file is made unless another folder is asked for.
pub const FOLDER: &str = "/var/tmp";

/// Options of the built-in subject only; with a program they are not in effect.
pub(super) const OF_BUILT_IN: [&str; 4] = ["--touch", "--text", "--data", "--dir"];

impl Options {
    /// Whether an option was given that decides nothing.
    #[must_use]
    pub fn has_idle_option(&self) -> bool {
        self.program.is_some() && self.builtin_settings > OF_BUILT_IN.len()
    }
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// The most processes at a time.
pub const N_MAX: usize = 1024;
/// The most batches for each arm and number.
pub const REPS_MAX: usize = 100;

/// The command.
pub const SPEC: CommandSpec<Options> = CommandSpec {
    topic: Topic::Sharing,
    name: "sharing",
    purpose: "run N of a program at once and fit PSS(N) = a + b/N: who shares its memory?",
    about: "Starts N processes of a program in each arm, waits until all of them are known to\n\
            wait for standard input, reads /proc/PID/smaps_rollup once each, lets them go.\n\
            One CSV row a process goes to stdout, then a second stream with the fit and the\n\
            verdict of each arm: a is what a process has for itself, b what all share.\n\
            Arms: elf runs the program as it is and is always measured, because the others\n\
            are compared with it; native copies its load segments, and its interpreter's,\n\
            into private memory; memfd executes a file in memory, one for each process;\n\
            static=PATH is a control without interpreter (static alone: a second file of\n\
            the built-in subject).\n\
            The order of the batches is shuffled; over twice as many rounds (a number in a\n\
            repetition) as there are arms, each arm stands first twice.\n\
            Verdicts, the first that applies: invalid, dirty-cache, copied-shmem,\n\
            copied-anon, shared, mixed. If an arm is invalid the exit status is 3.\n\n\
            Without PROGRAM a built-in subject is used: a static program with text and data\n\
            of a chosen size, in a file without a name. PROGRAM must be an ELF\n\
            program that reads standard input and ends when that does (cat, python3); it\n\
            is looked for in /usr/local/bin, /usr/bin and /bin, its environment is\n\
            PATH and LC_ALL=C, its standard output is dropped, its errors are not.\n\
            --touch, --text, --data and --dir are for the built-in subject only.\n",
    operand: None,
    options: OPTIONS,
    examples: &[
        (
            "cowitness sharing > sharing.csv",
            "elf, native and memfd with the built-in subject",
        ),
        (
            "cowitness sharing --arm elf,static --n 1,4,16 --reps 5 > control.csv",
            "does a second file of the same program share as well?",
        ),
        (
            "cowitness sharing --arm elf,native,static=/bin/busybox -- cat > cat.csv",
            "a real program; busybox gets the same words and so is cat, too",
        ),
    ],
};

const OPTIONS: &[OptionSpec<Options>] = &[
    OptionSpec {
        word: OptionWord {
            name: "--arm",
            short: "",
            value: "LIST",
            default: "elf,native,memfd",
            allowed: "one of each of elf, native, memfd, static=PATH",
            help: "how the program gets into memory",
        },
        set: |options, word| {
            options.arms = value::list(word, arm)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--n",
            short: "",
            value: "LIST",
            default: "1,2,4,8,16,32",
            allowed: "2 to 16 numbers from 1 to 1024",
            help: "processes at a time",
        },
        set: |options, word| {
            let n = value::list(word, |word| value::number(word, 1, N_MAX as u64))?;
            options.n = Some(n).filter(|n| n.len() > 1).ok_or(Refused)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--reps",
            short: "",
            value: "N",
            default: "3",
            allowed: "1 to 100",
            help: "batches for each arm and number; medians are fitted",
        },
        set: |options, word| {
            options.reps = value::number(word, 1, REPS_MAX as u64)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--aslr",
            short: "",
            value: "on|off",
            default: "on",
            allowed: "on, off",
            help: "random addresses, as far as the kernel's setting goes",
        },
        set: |options, word| {
            options.randomize = one_of(word, &[("on", true), ("off", false)])?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--touch",
            short: "",
            value: "PERCENT",
            default: "100",
            allowed: "0, 100",
            help: "text that the built-in subject touches; all of its data always",
        },
        set: |options, word| {
            options.builtin_settings += 1;
            options.touches_text = one_of(word, &[("0", false), ("100", true)])?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--release",
            short: "",
            value: "byte|eof",
            default: "eof",
            allowed: "byte, eof",
            help: "what lets a subject go: the end of its input, or a byte of its own (it reads one and ends)",
        },
        set: |options, word| {
            options.release = one_of(word, &[("byte", Release::Byte), ("eof", Release::End)])?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--settle",
            short: "",
            value: "SECONDS",
            default: "30",
            allowed: "1 to 3600",
            help: "longest wait for a batch to come to the barrier, and to end",
        },
        set: |options, word| {
            options.settle_s = value::number(word, 1, 3600)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--text",
            short: "",
            value: "SIZE",
            default: "5M",
            allowed: "a multiple of 64K up to 1G",
            help: "text of the built-in subject",
        },
        set: |options, word| {
            options.builtin_settings += 1;
            options.text_bytes = segment(word)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--data",
            short: "",
            value: "SIZE",
            default: "64K",
            allowed: "a multiple of 64K up to 1G",
            help: "data of the built-in subject",
        },
        set: |options, word| {
            options.builtin_settings += 1;
            options.data_bytes = segment(word)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--dir",
            short: "",
            value: "FOLDER",
            default: FOLDER,
            allowed: "a path of at most 200 bytes of UTF-8",
            help: "where its file is made (/tmp if there is no /var/tmp); on a disk: pages of a tmpfs are always dirty",
        },
        set: |options, word| {
            options.builtin_settings += 1;
            options.folder = path(word)?;
            Ok(())
        },
    },
];

fn arm(word: Word) -> Result<Arm, Refused> {
    match word {
        b"elf" => Ok(Arm::Elf),
        b"native" => Ok(Arm::Native),
        b"memfd" => Ok(Arm::Memfd),
        b"static" => Ok(Arm::Static("")),
        other => {
            let file = other.strip_prefix(b"static=").ok_or(Refused)?;
            path(file).map(Arm::Static)
        }
    }
}

fn path(word: Word) -> Result<&'static str, Refused> {
    let path = from_utf8(word).map_err(|_| Refused)?;
    Some(path)
        .filter(|path| (1..=200).contains(&path.len()))
        .ok_or(Refused)
}

fn segment(word: Word) -> Result<u64, Refused> {
    let size = value::size(word)?;
    let fits = size.is_multiple_of(ALIGN) && (ALIGN..=1 << 30).contains(&size);
    fits.then_some(size).ok_or(Refused)
}

fn one_of<T: Copy>(word: Word, known: &[(&str, T)]) -> Result<T, Refused> {
    let found = known.iter().find(|(name, _)| name.as_bytes() == word);
    found.map(|(_, value)| *value).ok_or(Refused)
}
