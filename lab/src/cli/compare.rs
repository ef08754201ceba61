//! The command line of `compare`.

use super::{Command, Request, Topic, UsageError, Word, quoted};
use crate::stream::Tolerance;
use lexopt::{Arg, Parser};
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    topic: Topic::Compare,
    name: "compare",
    purpose: "what differs between two runs, and how sure that is",
    usage: "usage: cowitness-lab compare [options] A B",
    help: include_str!("compare.txt"),
    options: "--threshold, --noise, --allow-mismatch, --partial, -h, --help, -V, --version",
    parse,
};

/// More is no noise any more.
const PERCENT_MAX: u64 = 1000;

/// What `compare` is to read, and how strictly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompareOptions {
    /// A and B; one of them may be `-`, standard input.
    pub files: [OsString; 2],
    /// A change of rate by more per cent is a failure; `None`: none is.
    pub threshold_percent: Option<u64>,
    /// What two starts may differ by; `None`: what the rows themselves tell.
    pub noise_percent: Option<u64>,
    /// Whether sides that were not measured alike are compared.
    pub allow_mismatch: bool,
    /// With `--partial`, truncated streams are taken.
    pub tolerance: Tolerance,
}

fn parse(parser: &mut Parser) -> Result<Request, UsageError> {
    let mut files = Vec::new();
    let mut options = CompareOptions {
        files: Default::default(),
        threshold_percent: None,
        noise_percent: None,
        allow_mismatch: false,
        tolerance: Tolerance::Whole,
    };
    while let Some(word) = COMMAND.next(parser)? {
        match word {
            Word::Answer(request) => return Ok(request),
            Word::Other(Arg::Long("threshold")) => {
                options.threshold_percent = Some(percent(parser, "--threshold")?);
            }
            Word::Other(Arg::Long("noise")) => {
                options.noise_percent = Some(percent(parser, "--noise")?);
            }
            Word::Other(Arg::Long("allow-mismatch")) => options.allow_mismatch = true,
            Word::Other(Arg::Long("partial")) => options.tolerance = Tolerance::Partial,
            Word::Other(Arg::Value(file)) => files.push(file),
            Word::Other(option) => return Err(COMMAND.unknown(&option)),
        }
    }
    let given = files.len();
    options.files = files
        .try_into()
        .map_err(|_| COMMAND.error(format!("{given} files given; two are compared, A and B")))?;
    Ok(Request::Compare(options))
}

fn percent(parser: &mut Parser, option: &str) -> Result<u64, UsageError> {
    let text = COMMAND.text(parser)?;
    let number = text.parse().ok().filter(|number| *number <= PERCENT_MAX);
    number.ok_or_else(|| {
        let text = quoted(text.as_ref());
        COMMAND.error(format!(
            "'{text}' for {option} is no number from 0 to {PERCENT_MAX}"
        ))
    })
}
