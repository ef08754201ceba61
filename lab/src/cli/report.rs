//! The command line of `report`.

use super::{Command, Request, Topic, UsageError, Word};
use crate::stream::Tolerance;
use lexopt::{Arg, Parser};
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    topic: Topic::Report,
    name: "report",
    purpose: "one page of everything that rows say, to look at",
    usage: "usage: cowitness-lab report [options] FILE...",
    help: include_str!("report.txt"),
    options: "-o, --partial, -h, --help, -V, --version",
    parse,
};

/// What `report` is to read, and where the page goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The inputs, at least one; `-` is standard input.
    pub files: Vec<OsString>,
    /// The page; `-` is standard output.
    pub out: OsString,
    /// With `--partial`, truncated streams are taken.
    pub tolerance: Tolerance,
}

fn parse(parser: &mut Parser) -> Result<Request, UsageError> {
    let mut options = ReportOptions {
        files: Vec::new(),
        out: "report.html".into(),
        tolerance: Tolerance::Whole,
    };
    while let Some(word) = COMMAND.next(parser)? {
        match word {
            Word::Answer(request) => return Ok(request),
            Word::Other(Arg::Long("partial")) => options.tolerance = Tolerance::Partial,
            Word::Other(Arg::Short('o')) => options.out = COMMAND.value(parser)?,
            Word::Other(Arg::Value(file)) => options.files.push(file),
            Word::Other(option) => return Err(COMMAND.unknown(&option)),
        }
    }
    if options.files.is_empty() {
        return Err(COMMAND.error("no FILE given; '-' is standard input".to_owned()));
    }
    Ok(Request::Report(options))
}
