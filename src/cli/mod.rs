//! From the bytes of argv to the options of one command.
//!
//! Each command is a table of options (`bench.rs`, `env.rs`); this module walks argv
//! against the tables. A default is a string in the table and goes through the same
//! parser as what a person types, so help and behaviour cannot differ.

pub mod audit;
pub mod bench;
pub mod env;
mod help;
pub mod memmap;
pub mod probe;
pub mod selftest;
pub mod sharing;
pub mod startup;
pub mod survey;
pub mod value;

use crate::sys::Errno;
use crate::sys::stdio::Output;
use core::ffi::CStr;
use heapless::Vec;

/// One word of argv, as the kernel keeps it for the life of the process.
pub type Word = &'static [u8];

/// An option: how it is written, what it takes, what it means.
pub struct OptionSpec<T: 'static> {
    /// Everything but what it does to the options.
    pub word: OptionWord,
    /// Takes the value over into the options.
    pub set: fn(&mut T, Word) -> Result<(), Refused>,
}

/// How an option is written and explained.
pub struct OptionWord {
    /// With its dashes.
    pub name: &'static str,
    /// A one-letter form, or empty.
    pub short: &'static str,
    /// What help calls its value; empty for a switch.
    pub value: &'static str,
    /// What is in effect when it is not given; empty if that is not a value.
    pub default: &'static str,
    /// What is allowed, for error messages and help.
    pub allowed: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// A value that an option does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// A command: its name, what it is for, its options, examples.
pub struct CommandSpec<T: 'static> {
    /// What its help is filed under.
    pub topic: Topic,
    /// As typed.
    pub name: &'static str,
    /// One line.
    pub purpose: &'static str,
    /// What it does, for its help.
    pub about: &'static str,
    /// The word it needs besides options.
    pub operand: Option<Operand<T>>,
    /// Its own options; the common ones are added to them.
    pub options: &'static [OptionSpec<T>],
    /// Command lines with an explanation each.
    pub examples: &'static [(&'static str, &'static str)],
}

/// A word that is no option, and that its command needs once.
pub struct Operand<T: 'static> {
    /// What help calls it.
    pub name: &'static str,
    /// What is allowed, for error messages and help.
    pub allowed: &'static str,
    /// Takes it over into the options.
    pub set: fn(&mut T, Word) -> Result<(), Refused>,
    /// Whether it was given.
    pub is_set: fn(&T) -> bool,
}

/// Options every command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Common {
    /// No progress, no summary.
    pub quiet: bool,
    /// Copied to the label column and the environment.
    pub label: &'static str,
    /// Where the shuffled order starts from.
    pub seed: u64,
}

/// Options of a command that hold the common ones.
pub trait HasCommon: Default + 'static {
    /// The common part.
    fn common(&mut self) -> &mut Common;
}

/// A command that has no others.
impl HasCommon for Common {
    fn common(&mut self) -> &mut Common {
        self
    }
}

/// Most options a command has, the common ones included.
const OPTIONS_MAX: usize = 24;

/// The value in effect of each option that takes one, in the order of the tables.
pub type Effective = Vec<(&'static str, Word), OPTIONS_MAX>;

/// What argv asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Request {
    /// A command, with the options in [`Asked`].
    Run(Topic),
    /// The help text of a command, or of the program.
    Help(Topic),
    /// `--version`.
    #[default]
    Version,
}

/// The options of whichever command was given; [`parse`] fills the one in.
#[derive(Debug, Default)]
pub struct Asked {
    /// Of `audit`.
    pub audit: audit::Options,
    /// Of `bench`.
    pub bench: bench::Options,
    /// Of `env`.
    pub env: Common,
    /// Of `memmap`.
    pub memmap: memmap::Options,
    /// Of `probe`.
    pub probe: probe::Options,
    /// Of `selftest`.
    pub selftest: Common,
    /// Of `startup ab` and `startup slope`.
    pub startup: startup::Options,
    /// Of `sharing`.
    pub sharing: sharing::Options,
    /// Of `survey`.
    pub survey: survey::Options,
    /// The value in effect of each option.
    pub effective: Effective,
}

/// What help is wanted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The program.
    Program,
    /// `audit`.
    Audit,
    /// `bench`.
    Bench,
    /// `env`.
    Env,
    /// `memmap`.
    Memmap,
    /// `probe`.
    Probe,
    /// `selftest`.
    Selftest,
    /// `startup` without its mode.
    Startup,
    /// `startup ab`.
    StartupAb,
    /// `startup slope`.
    StartupSlope,
    /// `sharing`.
    Sharing,
    /// `survey`.
    Survey,
}

/// A command line that makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// The offending word, or the option whose value is missing; empty if none was given.
    pub word: Word,
    /// The option that the word is a value of, or empty.
    pub option: &'static str,
    /// What is wrong with it.
    pub problem: Problem,
    /// Whose usage line to show.
    pub topic: Topic,
}

/// What is wrong with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No command was given.
    NoCommand,
    /// Not a command.
    UnknownCommand,
    /// Not an option of this command.
    UnknownOption,
    /// An option that needs a value stands last.
    MissingValue(&'static str),
    /// A switch was given a value with `=`.
    NoValueTaken,
    /// Not a value this option takes; what is allowed.
    BadValue(&'static str),
    /// A word that is no option, where none is taken.
    StrayWord,
    /// A word that the command needs is missing; what is allowed.
    MissingOperand(&'static str),
}

/// Name, purpose and topic of each command, in the order of the help.
pub const COMMANDS: [(&str, &str, Topic); 10] = [
    (bench::SPEC.name, bench::SPEC.purpose, Topic::Bench),
    (probe::SPEC.name, probe::SPEC.purpose, Topic::Probe),
    (survey::SPEC.name, survey::SPEC.purpose, Topic::Survey),
    (audit::SPEC.name, audit::SPEC.purpose, Topic::Audit),
    (memmap::SPEC.name, memmap::SPEC.purpose, Topic::Memmap),
    (startup::AB.name, startup::AB.purpose, Topic::StartupAb),
    (
        startup::SLOPE.name,
        startup::SLOPE.purpose,
        Topic::StartupSlope,
    ),
    (sharing::SPEC.name, sharing::SPEC.purpose, Topic::Sharing),
    (env::SPEC.name, env::SPEC.purpose, Topic::Env),
    (selftest::SPEC.name, selftest::SPEC.purpose, Topic::Selftest),
];

/// The options every command takes.
pub static COMMON: [OptionSpec<Common>; 3] = [
    OptionSpec {
        word: OptionWord {
            name: "--quiet",
            short: "-q",
            value: "",
            default: "",
            allowed: "no value",
            help: "no progress line and no summary on stderr",
        },
        set: |options, _| {
            options.quiet = true;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--label",
            short: "",
            value: "TEXT",
            default: "",
            allowed: "at most 64 bytes of UTF-8 without control characters",
            help: "copied to the label column and the environment",
        },
        set: |options, word| {
            options.label = value::label(word)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--seed",
            short: "",
            value: "N",
            default: "1",
            allowed: "0 to 18446744073709551615",
            help: "where the shuffled order starts from; same seed, same order",
        },
        set: |options, word| {
            options.seed = value::number(word, 0, u64::MAX)?;
            Ok(())
        },
    },
];

impl<T: HasCommon> CommandSpec<T> {
    /// How an option is written and explained, by its number: the common ones are the last.
    fn word(&'static self, index: usize) -> Option<&'static OptionWord> {
        match self.options.get(index) {
            Some(own) => Some(&own.word),
            None => Some(&COMMON.get(index - self.options.len())?.word),
        }
    }

    /// Takes over the value of the option of that number.
    fn set(&self, index: usize, options: &mut T, value: Word) -> Result<(), Problem> {
        match self.options.get(index) {
            Some(own) => {
                let taken = (own.set)(options, value);
                taken.map_err(|Refused| Problem::BadValue(own.word.allowed))
            }
            None => set_common(index - self.options.len(), options.common(), value),
        }
    }
}

/// Takes over the value of the common option of that number. Once for all commands.
#[inline(never)]
fn set_common(index: usize, common: &mut Common, value: Word) -> Result<(), Problem> {
    let option = &COMMON[index];
    let taken = (option.set)(common, value);
    taken.map_err(|Refused| Problem::BadValue(option.word.allowed))
}

/// Reads argv, the program's name included, into `asked`.
///
/// # Errors
/// The first word that makes no sense, with what is allowed in its place.
pub fn parse(
    argument: &dyn Fn(usize) -> Option<&'static CStr>,
    asked: &mut Asked,
) -> Result<Request, UsageError> {
    let word = |index| argument(index).map(CStr::to_bytes);
    let words = &mut (2..).map_while(word);
    let fail = |word, problem| UsageError {
        word,
        option: "",
        problem,
        topic: Topic::Program,
    };
    match word(1).ok_or(fail(b"", Problem::NoCommand))? {
        b"-h" | b"--help" => Ok(Request::Help(Topic::Program)),
        b"-V" | b"--version" => Ok(Request::Version),
        b"audit" => options(&audit::SPEC, words, &mut asked.audit, &mut asked.effective),
        b"bench" => options(&bench::SPEC, words, &mut asked.bench, &mut asked.effective),
        b"env" => options(&env::SPEC, words, &mut asked.env, &mut asked.effective),
        b"memmap" => memmap::parse(argument, &mut asked.memmap, &mut asked.effective),
        b"probe" => options(&probe::SPEC, words, &mut asked.probe, &mut asked.effective),
        b"selftest" => options(
            &selftest::SPEC,
            words,
            &mut asked.selftest,
            &mut asked.effective,
        ),
        b"startup" => startup::parse(&word, &mut asked.startup, &mut asked.effective),
        b"sharing" => {
            let is_end = |word: &Word| *word == b"--";
            let end = (2..).map_while(word).position(|word| is_end(&word));
            asked.sharing.program = end.map(|end| 2 + end + 1);
            let program = asked.sharing.program.map(|at| word(at).unwrap_or_default());
            note(
                &mut asked.effective,
                "--program",
                program.unwrap_or(b"built-in"),
            );
            let words = &mut words.take_while(|word| !is_end(word));
            let effective = &mut asked.effective;
            let request = options(&sharing::SPEC, words, &mut asked.sharing, effective);
            if program.is_some() {
                effective.retain(|(name, _)| !sharing::OF_BUILT_IN.contains(name));
            }
            request
        }
        b"survey" => options(
            &survey::SPEC,
            words,
            &mut asked.survey,
            &mut asked.effective,
        ),
        dashed if dashed.starts_with(b"-") => Err(fail(dashed, Problem::UnknownOption)),
        other => Err(fail(other, Problem::UnknownCommand)),
    }
}

/// Reads the words of one command against its table and the common one.
fn options<T: HasCommon>(
    spec: &'static CommandSpec<T>,
    words: &mut dyn Iterator<Item = Word>,
    options: &mut T,
    effective: &mut Effective,
) -> Result<Request, UsageError> {
    let option = |index| spec.word(index);
    let operand = spec.operand.as_ref();
    let mut set = |place: Place, value| match (place, operand) {
        (Place::Option(index), _) => spec.set(index, options, value),
        (Place::Operand, Some(operand)) if !(operand.is_set)(options) => {
            (operand.set)(options, value).map_err(|Refused| Problem::BadValue(operand.allowed))
        }
        (Place::Operand, _) => Err(Problem::StrayWord),
        (Place::End, Some(operand)) if !(operand.is_set)(options) => {
            Err(Problem::MissingOperand(operand.allowed))
        }
        (Place::End, _) => Ok(()),
    };
    let name = operand.map_or("", |operand| operand.name);
    walk(spec.topic, words, &option, name, &mut set, effective)
}

/// What a word is taken over as.
enum Place {
    /// The value of the option of this number.
    Option(usize),
    /// The word that the command needs.
    Operand,
    /// There are no more words.
    End,
}

/// The walk over the words, the same for all commands: `option` is the table by number,
/// `operand` the name of the word that is no option, `set` takes a word over.
fn walk(
    topic: Topic,
    words: &mut dyn Iterator<Item = Word>,
    option: &dyn Fn(usize) -> Option<&'static OptionWord>,
    operand: &'static str,
    set: &mut dyn FnMut(Place, Word) -> Result<(), Problem>,
    effective: &mut Effective,
) -> Result<Request, UsageError> {
    let fail = |word, option, problem| UsageError {
        word,
        option,
        problem,
        topic,
    };
    for (index, spec) in (0..).map_while(option).enumerate() {
        if !spec.default.is_empty() {
            let applied = set(Place::Option(index), spec.default.as_bytes());
            debug_assert_eq!(applied, Ok(()), "{}", spec.name);
            note(effective, spec.name, spec.default.as_bytes());
        }
    }
    while let Some(word) = words.next() {
        let (name, inline) = split_at_equals(word);
        match name {
            b"-h" | b"--help" => return Ok(Request::Help(topic)),
            b"-V" | b"--version" => return Ok(Request::Version),
            _ if !name.starts_with(b"-") => {
                let taken = set(Place::Operand, word);
                taken.map_err(|problem| match problem {
                    Problem::StrayWord => fail(word, "", problem),
                    _ => fail(word, operand, problem),
                })?;
                continue;
            }
            _ => {}
        }
        let mut table = (0..).map_while(|index| Some((index, option(index)?)));
        let (index, spec) = table.find(|(_, spec)| spec.is_named(name)).ok_or(fail(
            name,
            "",
            Problem::UnknownOption,
        ))?;
        let value = match (spec.value, inline) {
            ("", Some(_)) => return Err(fail(word, "", Problem::NoValueTaken)),
            ("", None) => b"",
            (_, Some(inline)) => inline,
            (kind, None) => words
                .next()
                .ok_or(fail(name, "", Problem::MissingValue(kind)))?,
        };
        let taken = set(Place::Option(index), value);
        taken.map_err(|problem| fail(value, spec.name, problem))?;
        note(effective, spec.name, value);
    }
    let complete = set(Place::End, b"");
    complete.map_err(|problem| fail(operand.as_bytes(), "", problem))?;
    Ok(Request::Run(topic))
}

/// Remembers the value in effect of an option; the last one given counts.
fn note(effective: &mut Effective, name: &'static str, value: Word) {
    match effective.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        // `tables_fit` proves that there is room for every option of every table.
        None => drop(effective.push((name, value))),
    }
}

fn split_at_equals(word: Word) -> (Word, Option<Word>) {
    let long = word.starts_with(b"--");
    match word.iter().position(|&byte| byte == b'=').filter(|_| long) {
        Some(at) => (&word[..at], Some(&word[at + 1..])),
        None => (word, None),
    }
}

impl OptionWord {
    fn is_named(&self, name: &[u8]) -> bool {
        self.name.as_bytes() == name || self.short.as_bytes() == name
    }
}

/// Sends a help text to standard output.
///
/// # Errors
/// As [`Output::write_all`].
pub fn print_help(topic: Topic, out: Output) -> Result<(), Errno> {
    help::print(topic, out)
}

/// The one line `usage: …` of a topic.
#[must_use]
pub fn usage_line(topic: Topic) -> &'static str {
    match topic {
        Topic::Program => "usage: cowitness <command> [options]",
        Topic::Audit => "usage: cowitness audit [options] PID",
        Topic::Bench => "usage: cowitness bench [options]",
        Topic::Env => "usage: cowitness env [options]",
        Topic::Memmap => memmap::USAGE,
        Topic::Probe => "usage: cowitness probe [options]",
        Topic::Selftest => "usage: cowitness selftest [options]",
        Topic::Startup => startup::USAGE,
        Topic::StartupAb => "usage: cowitness startup ab [options] --a CMD... -- --b CMD...",
        Topic::StartupSlope => "usage: cowitness startup slope [options] N=PATH... static=PATH",
        Topic::Sharing => "usage: cowitness sharing [options] [-- PROGRAM ARGS...]",
        Topic::Survey => "usage: cowitness survey [options] PID",
    }
}

#[cfg(test)]
mod tests;
