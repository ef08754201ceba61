//! The whole program on one screen: argv becomes a request, the request text on standard
//! output, and what went wrong an exit status with a line that says it.

use crate::cli::{self, Request};
use crate::failure::Failure;
use crate::summary;
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
    let text = match cli::parse(parser)? {
        Request::Help(topic) => cli::help(topic),
        Request::Version => format!("{NAME} {}\n", env!("CARGO_PKG_VERSION")),
        Request::Summary(options) => summary::run(&options, &|line| say("warning", &line))?,
    };
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(Failure::Output)
}

fn say(kind: &str, what: &dyn std::fmt::Display) {
    // Nobody is left to tell if standard error is gone; the exit status is right.
    let _ = writeln!(io::stderr(), "{NAME}: {kind}: {what}");
}
