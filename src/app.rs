//! The whole appliance on one screen: argv becomes a request, the request a command, and
//! what went wrong an exit status with one line that says it.

use crate::boot_line::Command;
use crate::cli::{self, Asked, Request, Topic};
use crate::command;
use crate::error::Error;
use crate::init;
use crate::sys::auxv::Auxv;
use crate::sys::{Errno, cpu, doomed, promise, signal, stdio};
use crate::text::{Full, Text};
use crate::{TARGET, VERSION};
use core::ffi::CStr;
use core::panic::Location;
use rustix::process::{Resource, getrlimit};

/// What the entry code found on the initial stack.
pub struct Start<'s> {
    /// Word of argv by its number; `None` past the last.
    pub argument: &'s dyn Fn(usize) -> Option<&'static CStr>,
    /// Variable of the environment, `NAME=value`, by its number; `None` past the last.
    pub variable: &'s dyn Fn(usize) -> Option<&'static CStr>,
    /// What the kernel told at exec.
    pub auxv: Auxv,
}

/// Runs the program and gives its exit status.
#[must_use]
pub fn main(start: &Start<'_>) -> i32 {
    if is_interpreter(start) {
        return 0;
    }
    if init::is_init() {
        return init::run(start.argument, &|argument| {
            run_commands(&start.with(argument))
        });
    }
    match is_memmap(start) {
        true => run_as_memmap(start),
        false => run_commands(start),
    }
}

impl<'s> Start<'s> {
    /// The same with other words.
    const fn with<'a>(&self, argument: &'a dyn Fn(usize) -> Option<&'static CStr>) -> Start<'a>
    where
        's: 'a,
    {
        Start {
            argument,
            variable: self.variable,
            auxv: self.auxv,
        }
    }
}

/// Whether the program was started under the name `memmap`.
fn is_memmap(start: &Start<'_>) -> bool {
    let name = (start.argument)(0).map(CStr::to_bytes).unwrap_or_default();
    name.rsplit(|&byte| byte == b'/').next() == Some(b"memmap")
}

/// All words are those of `memmap`; `then` is no exception.
fn run_as_memmap(start: &Start<'_>) -> i32 {
    let argument = |index: usize| match index {
        0 => (start.argument)(0),
        1 => Some(c"memmap"),
        _ => (start.argument)(index - 1),
    };
    let start = start.with(&argument);
    match status(prepare(&start)) {
        0 => status(run(&start)),
        status => status,
    }
}

/// Whether this is the interpreter of `scripts/binfmt-experiment`: a program that ends at once
/// whatever it is handed, by the name that the script gives a copy.
fn is_interpreter(start: &Start<'_>) -> bool {
    let name = (start.argument)(0).map_or(&b""[..], CStr::to_bytes);
    name.ends_with(b"/cowitness-interpreter")
}

/// Runs the commands that argv asks for, one after the other, and gives the first exit
/// status that is not 0. Nothing is run if one of them makes no sense.
#[must_use]
pub fn run_commands(start: &Start<'_>) -> i32 {
    match status(prepare(start)) {
        0 => match each_command(start, &parsed) {
            0 => each_command(start, &run),
            status => status,
        },
        status => status,
    }
}

fn each_command(start: &Start<'_>, run: &dyn Fn(&Start<'_>) -> Result<(), Error>) -> i32 {
    let words = |index: usize| (start.argument)(index + 1).map(CStr::to_bytes);
    let (mut worst, mut next) = (0, Some(0));
    while let Some(first) = next {
        let command = Command::at(&words, first);
        let argument = |index: usize| match index {
            0 => (start.argument)(0),
            _ => (start.argument)(command.word(index - 1)? + 1),
        };
        let ended = status(run(&start.with(&argument)));
        worst = if worst == 0 { ended } else { worst };
        next = command.next;
    }
    worst
}

fn status(result: Result<(), Error>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            error.report(stdio::stderr());
            error.status()
        }
    }
}

/// What a command takes of the stack at most, in KiB, and as much again for the words and
/// variables that the kernel puts there. Without that room it would end in SIGSEGV.
const fn stack_kib(request: Request) -> u64 {
    match request {
        Request::Help(_) | Request::Version => 128,
        Request::Run(Topic::Memmap | Topic::Env | Topic::Program) => 256,
        Request::Run(_) => 1024,
    }
}

/// Looks at RLIMIT_STACK; and grows the stack before anything else is mapped, which with a small
/// RLIMIT_AS (`ulimit -v`) may leave no room for it. `memmap` counts what its own frames take.
fn check_room(request: Request, page_bytes: usize) -> Result<(), Error> {
    let kib = stack_kib(request);
    check_stack(kib)?;
    if request == Request::Run(Topic::Memmap) {
        return Ok(());
    }
    match promise::grow_stack(kib as usize * 512, page_bytes) {
        Err(Errno::FAULT) => Err(Error::NoStack(kib / 2)),
        _ => Ok(()),
    }
}

fn check_stack(needed_kib: u64) -> Result<(), Error> {
    match getrlimit(Resource::Stack).current {
        // 0: it is not told (seccomp); no program could be started with that.
        Some(bytes @ 1..) if bytes < needed_kib << 10 => {
            Err(Error::SmallStack(bytes >> 10, needed_kib))
        }
        _ => Ok(()),
    }
}

/// From now on errors begin with the name of the command that has one of its own.
fn speak_for(start: &Start<'_>) {
    let memmap = (start.argument)(1) == Some(c"memmap");
    signal::speak_as(if memmap { "memmap" } else { "cowitness" });
}

fn prepare(start: &Start<'_>) -> Result<(), Error> {
    speak_for(start);
    check_stack(stack_kib(Request::Version))?;
    stdio::fill_missing().map_err(Error::kernel("open /dev/null"))?;
    signal::install().map_err(Error::kernel("install signal handlers"))
}

#[inline(never)]
fn parsed(start: &Start<'_>) -> Result<(), Error> {
    cli::parse(start.argument, &mut Asked::default())?;
    Ok(())
}

/// A command's `run` is never inlined here: this function would take the stack of all.
fn run(start: &Start<'_>) -> Result<(), Error> {
    speak_for(start);
    let mut asked = Asked::default();
    let request = cli::parse(start.argument, &mut asked)?;
    check_room(request, start.auxv.page_bytes())?;
    match request {
        Request::Help(topic) => cli::print_help(topic, stdio::stdout()).map_err(Error::Output),
        Request::Run(Topic::Bench) => {
            command::bench::run(&asked.bench, &asked.effective, &start.auxv)
        }
        Request::Run(Topic::Memmap) => command::memmap::run(&asked.memmap, &asked.effective, start),
        Request::Run(Topic::Probe) => {
            command::probe::run(&asked.probe, &asked.effective, &start.auxv)
        }
        Request::Run(Topic::Survey) => {
            command::survey::run(&asked.survey, &asked.effective, &start.auxv)
        }
        Request::Run(Topic::StartupAb | Topic::StartupSlope) => {
            let (startup, effective) = (&asked.startup, &asked.effective);
            command::startup::run(startup, effective, start.argument, &start.auxv)
        }
        Request::Run(Topic::Sharing) => {
            let (sharing, effective) = (&asked.sharing, &asked.effective);
            command::sharing::run(sharing, effective, start.argument, &start.auxv)
        }
        Request::Run(Topic::Audit) => {
            command::audit::run(&asked.audit, &asked.effective, &start.auxv)
        }
        Request::Run(Topic::Selftest) => command::selftest::run(&start.auxv),
        Request::Run(Topic::Env) => command::env::run(&asked.env, &asked.effective, &start.auxv),
        Request::Run(Topic::Program | Topic::Startup) | Request::Version => print_version(),
    }
}

fn print_version() -> Result<(), Error> {
    let mut line = Text::new();
    line.add("cowitness ")
        .add(VERSION)
        .add(" (")
        .add(TARGET)
        .add(", ")
        .add(cpu::ARCH)
        .add(")\n");
    let line = line.read().map_err(|Full| Error::TooLong)?;
    stdio::stdout()
        .write_all(line.as_bytes())
        .map_err(Error::Output)
}

/// One line for a panic; called by the entry code's handler. The first process then ends
/// the machine: if it died, the kernel would panic.
pub fn report_panic(location: Option<&Location<'_>>) {
    let _ = doomed::remove();
    let mut line = Text::new();
    line.add("cowitness: error: a defect of cowitness: panic");
    if let Some(at) = location {
        line.add(" at ")
            .add(at.file())
            .add(":")
            .number(at.line().into());
    }
    let _ = stdio::stderr().write_all(line.add("\n").read().unwrap_or("panic\n").as_bytes());
    if init::is_init() {
        init::give_up();
    }
}
