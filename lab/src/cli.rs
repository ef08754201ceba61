//! From argv to the options of one command. What each command takes stands in a table;
//! the walk through argv is lexopt's.

use crate::stream::Tolerance;
use crate::text::printable;
use lexopt::{Arg, Parser};
use std::ffi::{OsStr, OsString};
use thiserror::Error;

/// A command: its name, what it is for, how it is called.
struct Command {
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

const COMMANDS: &[Command] = &[SUMMARY];

const SUMMARY: Command = Command {
    name: "summary",
    purpose: "what the rows of bench say, as the appliance says it",
    usage: "usage: cowitness-lab summary [options] FILE...",
    help: include_str!("cli/summary.txt"),
    options: "--partial, -h, --help, -V, --version",
    parse: summary,
};

/// What argv asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// `summary` with its options.
    Summary(SummaryOptions),
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
}

/// What `summary` is to read, and how strictly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryOptions {
    /// The inputs, at least one; `-` is standard input.
    pub files: Vec<OsString>,
    /// With `--partial`, truncated streams are taken.
    pub tolerance: Tolerance,
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

fn summary(parser: &mut Parser) -> Result<Request, UsageError> {
    let fail = |problem| UsageError {
        problem,
        usage: SUMMARY.usage,
    };
    let mut options = SummaryOptions {
        files: Vec::new(),
        tolerance: Tolerance::Whole,
    };
    while let Some(word) = parser
        .next()
        .map_err(|error| fail(lexopt_problem(&error)))?
    {
        match word {
            Arg::Short('h') | Arg::Long("help") => return Ok(Request::Help(Topic::Summary)),
            Arg::Short('V') | Arg::Long("version") => return Ok(Request::Version),
            Arg::Long("partial") => options.tolerance = Tolerance::Partial,
            Arg::Value(file) => options.files.push(file),
            option => return Err(fail(unknown_option(&option, SUMMARY.options))),
        }
    }
    if options.files.is_empty() {
        return Err(fail("no FILE given; '-' is standard input".to_owned()));
    }
    Ok(Request::Summary(options))
}

fn unknown_option(option: &Arg<'_>, allowed: &str) -> String {
    let name = match option {
        Arg::Short(letter) => format!("-{letter}"),
        Arg::Long(name) => format!("--{name}"),
        Arg::Value(word) => quoted(word),
    };
    let name = printable(name.as_bytes());
    format!("unknown option '{name}'; options are {allowed}")
}

/// No option of ours takes a value, so this is the only thing lexopt can complain of.
fn lexopt_problem(error: &lexopt::Error) -> String {
    match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            format!("'{}' takes no value", printable(option.as_bytes()))
        }
        other => printable(other.to_string().as_bytes()),
    }
}

fn quoted(word: &OsStr) -> String {
    printable(word.as_encoded_bytes())
}

/// The help text of a topic.
#[must_use]
pub fn help(topic: Topic) -> String {
    match topic {
        Topic::Program => program_help(),
        Topic::Summary => {
            let Command {
                name,
                purpose,
                usage,
                help,
                ..
            } = SUMMARY;
            format!("{name}: {purpose}\n\n{usage}\n\n{help}")
        }
    }
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
