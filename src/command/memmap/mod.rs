//! `memmap`: one kind of allocation, touched, then what the kernel says.
//!
//! What is measured is what lies between two readings of getrusage(2): the allocation, the
//! advice, the touching; nothing is read, formatted or written there. All of it has run once
//! before, on something else, so that no page of the program itself is paid for meanwhile.

mod figures;
mod force;
mod lines;
mod measured;
mod path;
mod problem;
mod row;
mod subject;

use super::apart::alone;
use crate::app::Start;
use crate::cli::Effective;
use crate::cli::memmap::{Mode, Options};
use crate::error::Error;
use crate::sys::process::proc_is_ours;
use crate::sys::signal;
use crate::sys::stdio::stderr;
use force::Force;
use measured::measure;
use path::Path;
use problem::{Problem, both};
use subject::Subject;

/// Runs it.
///
/// # Errors
/// Anything that goes wrong was said, as [`Error::Said`].
#[inline(never)]
pub fn run(options: &Options, effective: &Effective, start: &Start<'_>) -> Result<(), Error> {
    let mode = options.mode.ok_or(Error::Invalid("no --mode was given"))?;
    let mut work = || run_mode(mode, options, effective, start);
    match mode {
        // A stack keeps its size, and advice about it, as long as its process lives.
        Mode::Stack => alone(&mut work),
        _ => work(),
    }
}

fn run_mode(
    mode: Mode,
    options: &Options,
    effective: &Effective,
    start: &Start<'_>,
) -> Result<(), Error> {
    let path = Path::of(mode, options, start.variable);
    let attempted = match &path {
        Ok(path) => attempt(mode, options, effective, start, path),
        Err(problem) => Err(*problem),
    };
    attempted.map_err(|problem| {
        problem.say(mode, stderr());
        Error::Said
    })
}

fn attempt<'p>(
    mode: Mode,
    options: &Options,
    effective: &Effective,
    start: &Start<'_>,
    path: &'p Path,
) -> Result<(), Problem<'p>> {
    if !proc_is_ours() {
        return Err(Error::NO_PROC.into());
    }
    let subject = Subject::prepare(mode, options, path, start.auxv.page_bytes())?;
    let install = Error::kernel("install signal handlers");
    if subject.file().is_some() {
        signal::on_bus_error(UNREADABLE).map_err(&install)?;
    }
    let shown = show(&subject, options, effective, start);
    signal::end_on_bus_error().map_err(&install)?;
    both(mode, shown, subject.finish())
}

/// Of a page of a mapped file.
const UNREADABLE: &str = "memmap: error: a page of the file cannot be read: it was cut meanwhile, \
    its file system is full, or its device has failed (SIGBUS)\n";

/// Measures, and shows what was found.
fn show<'p>(
    subject: &Subject<'p>,
    options: &Options,
    effective: &Effective,
    start: &Start<'_>,
) -> Result<(), Problem<'p>> {
    let force = Force::now(subject);
    if !options.csv {
        lines::head(subject)?;
    }
    let measured = measure(subject, options);
    let shown = match &measured {
        _ if options.csv => row::write(subject, options, effective, &start.auxv, &force, &measured),
        Ok(measured) => lines::body(subject, options, measured),
        Err(_) => Ok(()),
    };
    if !options.common.quiet {
        // A courtesy of standard error.
        let _ = force.say(stderr());
    }
    both(subject.mode, measured.map(|_| ()), shown)
}
