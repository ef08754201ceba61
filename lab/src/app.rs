//! The whole program on one screen: argv becomes a request, the request text on standard
//! output, and what went wrong an exit status with a line that says it.

use crate::answer::Answer;
use crate::cli::{self, Request};
use crate::failure::Failure;
use crate::{compare, kernels, matrix, report, summary};
use std::io::{self, Write};
use std::process::ExitCode;

/// What every message starts with.
const NAME: &str = "cowitness-lab";

/// Runs the program on the words that `parser` holds and gives its exit status.
#[must_use]
pub fn main(parser: lexopt::Parser) -> ExitCode {
    match run(parser) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say("error", &failure);
            if let Failure::Usage(error) = &failure {
                let _ = writeln!(io::stderr(), "{}", error.usage);
            }
            if let Some(remedy) = failure.remedy() {
                say("hint", &remedy);
            }
            ExitCode::from(failure.status())
        }
    }
}

fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let done = |text| Answer {
        text,
        failure: None,
    };
    let note = |line: &str| say("note", &line);
    let answer = match cli::parse(parser)? {
        Request::Help(topic) => done(cli::help(topic)),
        Request::Version => done(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))),
        Request::Summary(options) => done(summary::run(&options, &|line| say("warning", &line))?),
        Request::Report(options) => report::run(&options, &|line| say("warning", &line))?,
        Request::Compare(options) => compare::run(&options, &|line| say("warning", &line))?,
        Request::Matrix(options) => matrix::run(&options, &note)?,
        Request::Kernels(options) => kernels::run(&options, &note)?,
    };
    let mut out = io::stdout().lock();
    let written = out.write_all(answer.text.as_bytes());
    written
        .and_then(|()| out.flush())
        .map_err(Failure::Output)?;
    answer.failure.map_or(Ok(()), Err)
}

fn say(kind: &str, what: &dyn std::fmt::Display) {
    // Nobody is left to tell if standard error is gone; the exit status is right.
    let _ = writeln!(io::stderr(), "{NAME}: {kind}: {what}");
}
