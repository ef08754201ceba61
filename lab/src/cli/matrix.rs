//! The command line of `matrix`.

use super::{Command, Request, Topic, UsageError, Word, quoted};
use crate::kernels::table::Arch;
use crate::readers::{self, READERS};
use cowitness::boot_line::WORDS_MAX;
use lexopt::{Arg, Parser};
use std::ffi::OsString;
use std::thread;

pub(super) const COMMAND: Command = Command {
    topic: Topic::Matrix,
    name: "matrix",
    purpose: "boots the appliance on many kernels and compares what they do",
    usage: "usage: cowitness-lab matrix [options] [-- APPLIANCE ARGS...]",
    help: include_str!("matrix.txt"),
    options: "--kernel, --arch, --vmlinuz, --appliance, --append, --memory, --deadline, --jobs, \
              --cache, --collect, -o, -h, --help, -V, --version; words for the appliance come \
              after --",
    parse,
};

/// What the appliance does if nothing else is asked for: every reader that the table shows,
/// every answer that it shows, and its own checks. Small, as emulated machines are slow. Each
/// machine's rows bear its name, so that the files of all are fit for one summary.
fn default_words(machine: &str) -> String {
    let methods = readers::names(READERS.iter().filter(|reader| reader.in_bench), ",");
    let label = label(machine);
    format!(
        "bench --mb=8 --segment-pages=16 --block=64K --repeats=2 --warm=1 --method={methods} -q \
         --label={label} then probe -q --label={label} then selftest"
    )
}

/// A machine's name as a label that passes through a kernel's command line.
fn label(machine: &str) -> String {
    let fit = |letter: char| letter.is_ascii_graphic() && letter != '"';
    let letters = machine
        .chars()
        .map(|letter| if fit(letter) { letter } else { '_' });
    // The appliance takes 64 bytes.
    letters.take(64).collect()
}

/// The most memory of a guest in MiB: 1 TiB.
const MEMORY_MAX: u64 = 1 << 20;

/// The longest day.
const DEADLINE_MAX: u64 = 86_400;

/// What `matrix` is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixOptions {
    /// Kernels of this CPU; `None`: of any.
    pub arch: Option<Arch>,
    /// These kernels; empty: all.
    pub kernels: Vec<String>,
    /// A kernel of the user's own, for `arch`.
    pub vmlinuz: Option<OsString>,
    /// The appliance; `None`: as built for each CPU.
    pub appliance: Option<OsString>,
    /// Where consoles, rows and `matrix.csv` are left.
    pub out: OsString,
    /// Seconds to a verdict; `None`: the table's.
    pub deadline_s: Option<u64>,
    /// Words added to each kernel's command line.
    pub append: String,
    /// Memory of each guest in MiB; `None`: the table's.
    pub memory_mib: Option<u64>,
    /// Guests at a time; `None`: one.
    pub jobs: Option<usize>,
    /// Where the cache is; `None`: where the user's caches are.
    pub cache: Option<OsString>,
    /// A folder of rows to be read; nothing is booted.
    pub collect: Option<OsString>,
    /// For the appliance; `None`: what asks every question of the table.
    pub arguments: Option<Vec<String>>,
}

impl Default for MatrixOptions {
    fn default() -> Self {
        Self {
            arch: None,
            kernels: Vec::new(),
            vmlinuz: None,
            appliance: None,
            out: "out".into(),
            deadline_s: None,
            append: String::new(),
            memory_mib: None,
            jobs: None,
            cache: None,
            collect: None,
            arguments: None,
        }
    }
}

fn parse(parser: &mut Parser) -> Result<Request, UsageError> {
    let mut options = MatrixOptions::default();
    loop {
        if let Some(arguments) = after_dashes(parser)? {
            options.arguments = Some(arguments);
        }
        let name = match COMMAND.next(parser)? {
            None => break,
            Some(Word::Answer(request)) => return Ok(request),
            Some(Word::Other(Arg::Long(name))) => name.to_owned(),
            Some(Word::Other(Arg::Short('o'))) => "out".to_owned(),
            Some(Word::Other(other)) => return Err(COMMAND.unknown(&other)),
        };
        options.set(&name, parser)?;
    }
    options.checked().map(Box::new).map(Request::Matrix)
}

/// If argv goes on with `--`, everything behind it.
fn after_dashes(parser: &mut Parser) -> Result<Option<Vec<String>>, UsageError> {
    let Some(mut rest) = parser.try_raw_args() else {
        return Ok(None);
    };
    if rest.next_if(|word| word == "--").is_none() {
        return Ok(None);
    }
    rest.map(appliance_word).collect::<Result<_, _>>().map(Some)
}

/// A word that passes through a kernel's command line as it is.
fn appliance_word(word: OsString) -> Result<String, UsageError> {
    let fit = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    let word = word.into_string().unwrap_or_else(|word| quoted(&word));
    if fit(&word) && !word.contains('"') {
        return Ok(word);
    }
    let word = quoted(word.as_ref());
    Err(COMMAND.error(format!(
        "'{word}' cannot pass through a kernel's command line: no spaces, quotes or control \
         characters, ASCII only"
    )))
}

impl MatrixOptions {
    /// The words for the appliance on `machine`.
    #[must_use]
    pub fn words(&self, machine: &str) -> Vec<String> {
        let default = || {
            default_words(machine)
                .split(' ')
                .map(str::to_owned)
                .collect()
        };
        self.arguments.clone().unwrap_or_else(default)
    }

    /// Whether these ask every question of the table.
    #[must_use]
    pub fn asks_everything(&self) -> bool {
        self.arguments.is_none()
    }

    fn set(&mut self, name: &str, parser: &mut Parser) -> Result<(), UsageError> {
        match name {
            "out" => self.out = COMMAND.value(parser)?,
            "kernel" => COMMAND.names(parser, &mut self.kernels)?,
            "arch" => self.arch = Some(COMMAND.arch(parser)?),
            "vmlinuz" => self.vmlinuz = Some(COMMAND.value(parser)?),
            "appliance" => self.appliance = Some(COMMAND.value(parser)?),
            "append" => self.append = COMMAND.text(parser)?,
            "deadline" => {
                self.deadline_s = Some(COMMAND.number(parser, "--deadline", DEADLINE_MAX)?);
            }
            "memory" => self.memory_mib = Some(COMMAND.number(parser, "--memory", MEMORY_MAX)?),
            "jobs" => self.jobs = Some(jobs(parser)?),
            "cache" => self.cache = Some(COMMAND.value(parser)?),
            "collect" => self.collect = Some(COMMAND.value(parser)?),
            other => return Err(COMMAND.unknown(&Arg::Long(other))),
        }
        Ok(())
    }

    /// The first option given that is about booting.
    fn of_booting(&self) -> Option<&'static str> {
        let given = [
            (!self.kernels.is_empty(), "--kernel"),
            (self.arch.is_some(), "--arch"),
            (self.vmlinuz.is_some(), "--vmlinuz"),
            (self.appliance.is_some(), "--appliance"),
            (!self.append.is_empty(), "--append"),
            (self.memory_mib.is_some(), "--memory"),
            (self.deadline_s.is_some(), "--deadline"),
            (self.jobs.is_some(), "--jobs"),
            (self.cache.is_some(), "--cache"),
            (self.arguments.is_some(), "--"),
        ];
        let mut given = given.into_iter();
        given.find_map(|(given, name)| given.then_some(name))
    }

    fn checked(self) -> Result<Self, UsageError> {
        let words = self.arguments.as_ref().map_or(0, Vec::len);
        let of_booting = self.of_booting().filter(|_| self.collect.is_some());
        let problem = if let Some(option) = of_booting {
            format!("--collect boots nothing, so that '{option}' means nothing with it")
        } else if words > WORDS_MAX {
            format!(
                "{words} words for the appliance; a kernel passes at most {WORDS_MAX} to its init"
            )
        } else if self.vmlinuz.is_some() && self.arch.is_none() {
            "--vmlinuz needs --arch: an image does not say what it is for".to_owned()
        } else if self.vmlinuz.is_some() && !self.kernels.is_empty() {
            "--vmlinuz and --kernel name different kernels; give one of them".to_owned()
        } else if self.appliance.is_some() && self.arch.is_none() {
            "--appliance needs --arch: a binary is for one CPU".to_owned()
        } else if self.append.split_whitespace().any(|word| word == "--") {
            "'--' in --append would end the kernel's own words; give them after -- here".to_owned()
        } else {
            return Ok(self);
        };
        Err(COMMAND.error(problem))
    }
}

/// At most one guest a core: more starve each other's timers.
fn jobs(parser: &mut Parser) -> Result<usize, UsageError> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = COMMAND.number(parser, "--jobs", cores as u64)?;
    Ok(usize::try_from(jobs).unwrap_or(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(words: &[&str]) -> Result<MatrixOptions, String> {
        let words = ["cowitness-lab", "matrix"].iter().chain(words);
        match crate::cli::parse(Parser::from_iter(words)) {
            Ok(Request::Matrix(options)) => Ok(*options),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.problem),
        }
    }

    #[test]
    fn words_behind_the_dashes_are_the_appliances() {
        let plain = matrix(&["--arch=x86_64", "-o", "somewhere"]).unwrap();
        assert!(plain.asks_everything());
        assert_eq!(
            (plain.arch, &*plain.out),
            (Some(Arch::X86), "somewhere".as_ref())
        );
        let own = matrix(&["--kernel", "a,b", "--", "bench", "-q", "--", "--help"]).unwrap();
        assert_eq!(own.kernels, ["a", "b"]);
        let words = own.words("a");
        assert_eq!(words, ["bench", "-q", "--", "--help"]);
        assert!(!own.asks_everything());
    }

    #[test]
    fn what_cannot_reach_the_appliance_is_refused() {
        let spaced = matrix(&["--", "bench", "--label=rack 4"]).unwrap_err();
        assert!(
            spaced.starts_with("'--label=rack 4' cannot pass"),
            "{spaced}"
        );
        let many = vec!["x"; WORDS_MAX + 1];
        let words: Vec<&str> = ["--"].into_iter().chain(many).collect();
        assert!(matrix(&words).unwrap_err().starts_with("33 words"));
        assert!(matrix(&words[..words.len() - 1]).is_ok());
    }

    #[test]
    fn the_help_shows_the_default_words() {
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let help = words(include_str!("matrix.txt")).join(" ");
        let default = default_words("NAME");
        assert!(help.contains(&default), "{default}");
        assert!(help.contains(&format!("at most {WORDS_MAX}, ")));
        assert!(words(&default).len() <= WORDS_MAX);
        assert_eq!(label("my kernel\"é-aarch64"), "my_kernel__-aarch64");
    }
}
