//! The whole program on one screen: argv becomes a request, the request text on standard
//! output, and what went wrong an exit status with a line that says it.

use crate::answer::Answer;
use crate::cli::{self, Request};
use crate::failure::Failure;
use crate::{compare, kernels, matrix, out, report, sizes, summary};
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
    let warn = |line: &str| say("warning", &line);
    let answer = match cli::parse(parser)? {
        Request::Help(topic) => done(cli::help(topic)),
        Request::Version => done(format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"))),
        Request::Summary(options) => done(summary::run(&options, terminal_width(), &warn)?),
        Request::Report(options) => report::run(&options, &warn)?,
        Request::Compare(options) => compare::run(&options, terminal_width(), &warn)?,
        Request::Matrix(options) => matrix::run(&options, &note)?,
        Request::Kernels(options) => kernels::run(&options, &note)?,
        Request::Sizes(options) => {
            sizes::run(&options, &note)?;
            done(String::new())
        }
    };
    let written = out::stdout().and_then(|mut out| out.write_all(answer.text.as_bytes()));
    written.map_err(Failure::Output)?;
    answer.failure.map_or(Ok(()), Err)
}

/// Columns of the terminal that standard output is, if it is one.
fn terminal_width() -> Option<usize> {
    let terminal = console::Term::stdout();
    let (_, columns) = terminal.size_checked().filter(|_| terminal.is_term())?;
    Some(usize::from(columns)).filter(|columns| *columns > 0)
}

fn say(kind: &str, what: &dyn std::fmt::Display) {
    // Nobody is left to tell if standard error is gone; the exit status is right.
    let _ = writeln!(io::stderr(), "{NAME}: {kind}: {what}");
}
