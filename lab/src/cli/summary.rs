//! The command line of `summary`.

use super::{Command, Request, Topic, UsageError, Word};
use crate::stream::Tolerance;
use lexopt::{Arg, Parser};
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    topic: Topic::Summary,
    name: "summary",
    purpose: "what the rows of bench say, as the appliance says it",
    usage: "usage: cowitness-lab summary [options] FILE...",
    help: include_str!("summary.txt"),
    options: "--partial, -h, --help, -V, --version",
    parse,
};

/// What `summary` is to read, and how strictly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryOptions {
    /// The inputs, at least one; `-` is standard input.
    pub files: Vec<OsString>,
    /// With `--partial`, truncated streams are taken.
    pub tolerance: Tolerance,
}

fn parse(parser: &mut Parser) -> Result<Request, UsageError> {
    let mut options = SummaryOptions {
        files: Vec::new(),
        tolerance: Tolerance::Whole,
    };
    while let Some(word) = COMMAND.next(parser)? {
        match word {
            Word::Answer(request) => return Ok(request),
            Word::Other(Arg::Long("partial")) => options.tolerance = Tolerance::Partial,
            Word::Other(Arg::Value(file)) => options.files.push(file),
            Word::Other(option) => return Err(COMMAND.unknown(&option)),
        }
    }
    if options.files.is_empty() {
        return Err(COMMAND.error("no FILE given; '-' is standard input".to_owned()));
    }
    Ok(Request::Summary(options))
}
