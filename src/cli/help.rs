//! Help texts, laid out from the tables of options.

use super::{
    COMMANDS, CommandSpec, HasCommon, OptionWord, Topic, audit, bench, env, memmap, probe,
    selftest, sharing, startup, survey, usage_line,
};
use crate::fixture::kinds::KINDS;
use crate::sys::Errno;
use crate::sys::stdio::Output;
use crate::text::{Full, Text};

/// Width of the first column: the longest `--option VALUE` and two spaces.
const COLUMN: usize = 24;

#[inline(never)]
pub(super) fn print(topic: Topic, out: Output) -> Result<(), Errno> {
    match topic {
        Topic::Program => program(out),
        Topic::Audit => command(&audit::SPEC, topic, out),
        Topic::Bench => command(&bench::SPEC, topic, out),
        Topic::Env => command(&env::SPEC, topic, out),
        Topic::Memmap => command(&memmap::SPEC, topic, out),
        Topic::Probe => command(&probe::SPEC, topic, out),
        Topic::Selftest => command(&selftest::SPEC, topic, out),
        Topic::Startup => startup(out),
        Topic::StartupAb => command(&startup::AB, topic, out),
        Topic::StartupSlope => command(&startup::SLOPE, topic, out),
        Topic::Sharing => command(&sharing::SPEC, topic, out),
        Topic::Survey => command(&survey::SPEC, topic, out),
    }
}

fn program(out: Output) -> Result<(), Errno> {
    out.write_all(
        b"cowitness: what does reading another process's memory cost, and what does it change?\n\n",
    )?;
    line(out, &[usage_line(Topic::Program)])?;
    out.write_all(b"\ncommands:\n")?;
    for (name, purpose, _) in COMMANDS {
        two_columns(out, &[name], &[purpose])?;
    }
    out.write_all(b"\noptions:\n")?;
    closing_options(out)?;
    out.write_all(
        b"\nSeveral commands can be given, with the word `then` between them; each has its own stream.\n\
          CSV goes to stdout; progress, summary and messages go to stderr.\n\
          `cowitness <command> --help` shows a command's options and examples.\n\
          exit status: 0 done; 1 runtime error; 2 usage; 3 not valid or not possible here;\n\
          4 a check of selftest failed\n",
    )
}

/// Of a command with two modes: what each is for.
fn startup(out: Output) -> Result<(), Errno> {
    line(out, &["startup: what starting a program takes\n"])?;
    line(out, &[usage_line(Topic::Startup)])?;
    out.write_all(b"\nmodes:\n")?;
    let modes = [
        (startup::AB.name, startup::AB.purpose),
        (startup::SLOPE.name, startup::SLOPE.purpose),
    ];
    for (name, purpose) in modes {
        two_columns(out, &[name], &[purpose])?;
    }
    out.write_all(
        b"\n`cowitness startup ab --help` and `cowitness startup slope --help` show the options and\n\
          examples of each.\n",
    )
}

/// Of whichever command.
fn command<T: HasCommon>(
    spec: &'static CommandSpec<T>,
    topic: Topic,
    out: Output,
) -> Result<(), Errno> {
    let texts = [spec.name, spec.purpose, spec.about];
    layout(out, topic, texts, &|index| spec.word(index), spec.examples)
}

#[inline(never)]
fn layout(
    out: Output,
    topic: Topic,
    [name, purpose, about]: [&str; 3],
    option: &dyn Fn(usize) -> Option<&'static OptionWord>,
    examples: &[(&str, &str)],
) -> Result<(), Errno> {
    line(out, &[name, ": ", purpose])?;
    line(out, &["\n", usage_line(topic)])?;
    line(out, &["\n", about])?;
    if topic == Topic::Probe {
        kinds(out)?;
    }
    out.write_all(b"options:\n")?;
    for word in (0..).map_while(option) {
        describe(out, word, help_of(topic, word))?;
    }
    closing_options(out)?;
    out.write_all(b"\nexamples:\n")?;
    for (example, meaning) in examples {
        line(out, &["  ", example])?;
        line(out, &["      ", meaning])?;
    }
    Ok(())
}

/// What `--kind` of `probe` takes.
fn kinds(out: Output) -> Result<(), Errno> {
    let (mut separator, mut width) = ("Kinds: ", 0);
    for kind in KINDS {
        out.write_all(separator.as_bytes())?;
        out.write_all(kind.name.as_bytes())?;
        width += kind.name.len();
        separator = if width > 64 { ",\n" } else { ", " };
        width *= usize::from(width <= 64);
    }
    out.write_all(b".\n\n")
}

/// What an option does; of a common one, what it does here.
const fn help_of(topic: Topic, word: &OptionWord) -> &'static str {
    match (topic, word.name.as_bytes()) {
        (Topic::Memmap, b"--quiet") => "no line on stderr about what is in force",
        (Topic::Bench | Topic::Sharing | Topic::StartupAb | Topic::StartupSlope, b"--seed") => {
            word.help
        }
        (_, b"--seed") => "noted in the environment; nothing is shuffled here",
        _ => word.help,
    }
}

fn describe(out: Output, option: &OptionWord, help: &str) -> Result<(), Errno> {
    let comma = if option.short.is_empty() { "" } else { ", " };
    let space = if option.value.is_empty() { "" } else { " " };
    let left = [option.short, comma, option.name, space, option.value];
    two_columns(out, &left, &[help])?;
    if option.default.is_empty() {
        return Ok(());
    }
    let detail = [
        "[default: ",
        option.default,
        "; takes ",
        option.allowed,
        "]",
    ];
    two_columns(out, &[], &detail)
}

fn closing_options(out: Output) -> Result<(), Errno> {
    two_columns(out, &["-h, --help"], &["this text"])?;
    two_columns(out, &["-V, --version"], &["version and target"])
}

fn two_columns(out: Output, left: &[&str], right: &[&str]) -> Result<(), Errno> {
    let mut text = Text::new();
    text.add("  ");
    for part in left {
        text.add(part);
    }
    text.pad_to(COLUMN);
    for part in right {
        text.add(part);
    }
    let text = text.add("\n").read().map_err(|Full| Errno::FBIG)?;
    out.write_all(text.as_bytes())
}

fn line(out: Output, parts: &[&str]) -> Result<(), Errno> {
    for part in parts {
        out.write_all(part.as_bytes())?;
    }
    out.write_all(b"\n")
}
