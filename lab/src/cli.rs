//! From argv to the options of one command. What each command takes stands in a table;
//! the walk through argv is lexopt's.

mod compare;
mod kernels;
mod matrix;
mod report;
mod sizes;
mod summary;

pub use compare::CompareOptions;
pub use kernels::KernelsOptions;
pub use matrix::MatrixOptions;
pub use report::ReportOptions;
pub use sizes::SizesOptions;
pub use summary::SummaryOptions;

use crate::kernels::table::{ARCHES, Arch};
use crate::text::printable;
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use thiserror::Error;

/// A command: its name, what it is for, how it is called.
struct Command {
    topic: Topic,
    name: &'static str,
    purpose: &'static str,
    usage: &'static str,
    help: &'static str,
    /// Its options, for messages.
    options: &'static str,
    parse: fn(&mut Parser) -> Result<Request, UsageError>,
}

const PROGRAM_USAGE: &str = "usage: cowitness-lab <command> [options]";
const PROGRAM_OPTIONS: &str = "-h, --help, -V, --version";

const COMMANDS: &[Command] = &[
    summary::COMMAND,
    report::COMMAND,
    compare::COMMAND,
    matrix::COMMAND,
    kernels::COMMAND,
    sizes::COMMAND,
];

/// What argv asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `summary` with its options.
    Summary(SummaryOptions),
    /// `report` with its options.
    Report(ReportOptions),
    /// `compare` with its options.
    Compare(CompareOptions),
    /// `matrix` with its options.
    Matrix(Box<MatrixOptions>),
    /// `kernels` with its options.
    Kernels(KernelsOptions),
    /// `sizes` with its options.
    Sizes(SizesOptions),
    /// The help text of a command, or of the program.
    Help(Topic),
    /// `--version`.
    Version,
}

/// What help is wanted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// The program.
    Program,
    /// `summary`.
    Summary,
    /// `report`.
    Report,
    /// `compare`.
    Compare,
    /// `matrix`.
    Matrix,
    /// `kernels`.
    Kernels,
    /// `sizes`.
    Sizes,
}

/// A command line that makes no sense: the word, what is allowed in its place, and the
/// usage line to show.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct UsageError {
    /// One line.
    pub problem: String,
    /// `usage: ...`.
    pub usage: &'static str,
}

/// A word that `matrix` cannot use, found when it looked for its kernels.
#[must_use]
pub fn matrix_usage(problem: String) -> UsageError {
    matrix::COMMAND.error(problem)
}

/// The same of `kernels`.
#[must_use]
pub fn kernels_usage(problem: String) -> UsageError {
    kernels::COMMAND.error(problem)
}

/// Reads argv.
///
/// # Errors
/// The first word that makes no sense, with what is allowed in its place.
pub fn parse(mut parser: Parser) -> Result<Request, UsageError> {
    let fail = |problem| UsageError {
        problem,
        usage: PROGRAM_USAGE,
    };
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let names = names.join(", ");
    let word = parser
        .next()
        .map_err(|error| fail(lexopt_problem(&error)))?;
    match word {
        Some(Arg::Short('h') | Arg::Long("help")) => Ok(Request::Help(Topic::Program)),
        Some(Arg::Short('V') | Arg::Long("version")) => Ok(Request::Version),
        Some(Arg::Value(word)) => {
            let command = COMMANDS.iter().find(|command| word == command.name);
            let unknown = || format!("unknown command '{}'; commands are {names}", quoted(&word));
            (command.ok_or_else(|| fail(unknown()))?.parse)(&mut parser)
        }
        Some(option) => Err(fail(unknown_option(&option, PROGRAM_OPTIONS))),
        None => Err(fail(format!("no command given; commands are {names}"))),
    }
}

impl Command {
    fn error(&self, problem: String) -> UsageError {
        UsageError {
            problem,
            usage: self.usage,
        }
    }

    /// The next word of argv; those that every command knows are answered here.
    fn next<'p>(&self, parser: &'p mut Parser) -> Result<Option<Word<'p>>, UsageError> {
        let word = parser.next();
        Ok(
            match word.map_err(|error| self.error(lexopt_problem(&error)))? {
                None => None,
                Some(Arg::Short('h') | Arg::Long("help")) => {
                    Some(Word::Answer(Request::Help(self.topic)))
                }
                Some(Arg::Short('V') | Arg::Long("version")) => {
                    Some(Word::Answer(Request::Version))
                }
                Some(other) => Some(Word::Other(other)),
            },
        )
    }

    fn unknown(&self, option: &Arg<'_>) -> UsageError {
        self.error(unknown_option(option, self.options))
    }

    /// The value of the option that was read last.
    fn value(&self, parser: &mut Parser) -> Result<OsString, UsageError> {
        let value = parser.value();
        value.map_err(|error| self.error(lexopt_problem(&error)))
    }

    /// The same, as text.
    fn text(&self, parser: &mut Parser) -> Result<String, UsageError> {
        let value = self.value(parser)?;
        let text = value.into_string();
        text.map_err(|value| self.error(format!("'{}' is not UTF-8", quoted(&value))))
    }

    /// The same, as a number from 1 to `most`.
    fn number(&self, parser: &mut Parser, option: &str, most: u64) -> Result<u64, UsageError> {
        let text = self.text(parser)?;
        let number = text
            .parse()
            .ok()
            .filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| {
            let text = quoted(text.as_ref());
            self.error(format!(
                "'{text}' for {option} is no number from 1 to {most}"
            ))
        })
    }

    /// The same, as a CPU.
    fn arch(&self, parser: &mut Parser) -> Result<Arch, UsageError> {
        let text = self.text(parser)?;
        Arch::from_name(&text).ok_or_else(|| {
            let names = ARCHES.map(Arch::name).join(", ");
            let text = quoted(text.as_ref());
            self.error(format!("unknown CPU '{text}' for --arch; CPUs are {names}"))
        })
    }

    /// The same, as names with commas between them, put to `names`.
    fn names(&self, parser: &mut Parser, names: &mut Vec<String>) -> Result<(), UsageError> {
        let text = self.text(parser)?;
        names.extend(text.split(',').map(str::to_owned));
        Ok(())
    }
}

/// A word of argv.
enum Word<'p> {
    /// It decides by itself what is asked for.
    Answer(Request),
    /// It is the command's own.
    Other(Arg<'p>),
}

fn unknown_option(option: &Arg<'_>, allowed: &str) -> String {
    let (what, name) = match option {
        Arg::Short(letter) => ("unknown option", format!("-{letter}")),
        Arg::Long(name) => ("unknown option", format!("--{name}")),
        Arg::Value(word) => ("stray word", quoted(word)),
    };
    let name = printable(name.as_bytes());
    format!("{what} '{name}'; options are {allowed}")
}

fn lexopt_problem(error: &lexopt::Error) -> String {
    match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            format!("'{}' takes no value", printable(option.as_bytes()))
        }
        lexopt::Error::MissingValue {
            option: Some(option),
        } => format!("'{}' needs a value", printable(option.as_bytes())),
        other => printable(other.to_string().as_bytes()),
    }
}

fn quoted(word: &OsStr) -> String {
    printable(word.as_encoded_bytes())
}

/// The help text of a topic.
#[must_use]
pub fn help(topic: Topic) -> String {
    let Some(command) = COMMANDS.iter().find(|command| command.topic == topic) else {
        return program_help();
    };
    let Command {
        name,
        purpose,
        usage,
        help,
        ..
    } = command;
    format!("{name}: {purpose}\n\n{usage}\n\n{help}")
}

fn program_help() -> String {
    let mut commands = String::new();
    for command in COMMANDS {
        commands += &format!("  {:<22}{}\n", command.name, command.purpose);
    }
    format!(
        "cowitness-lab: what do the rows that cowitness measured say?\n\n{PROGRAM_USAGE}\n\n\
         commands:\n{commands}\n{}",
        include_str!("cli/program.txt")
    )
}
