//! Which programs the arms run, and with which words.

use super::Argument;
use super::chosen::Chosen;
use crate::cli::sharing::{Arm, Options};
use crate::cli::{Problem, Topic, UsageError, Word};
use crate::command::command_line::joined;
use crate::emit::stream::Preamble;
use crate::error::Error;
use crate::fixture::builtin::Builtin;
use crate::fixture::subject::Form;
use crate::sys::exec::Words;
use crate::sys::stdio::Output;

/// The programs of a run and the words they all get, argv[0] included.
pub(super) struct Programs {
    main: Chosen,
    control: Option<Chosen>,
    words: Words<'static>,
}

impl Programs {
    /// Finds, or makes, and reads them.
    ///
    /// # Errors
    /// A command line that makes no sense; a program that cannot be measured.
    pub(super) fn choose(
        options: &Options,
        argument: Argument<'_>,
        page: usize,
    ) -> Result<Self, Error> {
        let mut words = Words::new();
        let first = options.program.into_iter().flat_map(|first| first..);
        for word in first.map_while(argument) {
            let fits = words.push(word);
            let problem = Problem::BadValue("the last: no more fit");
            fits.map_err(|word| usage(word.to_bytes(), "argument of PROGRAM", problem))?;
        }
        let builtin = Builtin {
            text_bytes: options.text_bytes,
            data_bytes: options.data_bytes,
            touches_text: options.touches_text,
        };
        let name = options.program.map(|_| program(options, &words));
        let name = name.transpose()?;
        let choose = |name: Option<&'static str>| match name {
            Some(name) => Chosen::named(name),
            None => Chosen::builtin(&builtin, options.folder, page),
        };
        let main = choose(name)?;
        if name.is_none() {
            words.extend([c"cowitness-subject"]);
        }
        let control = options.arms.iter().find_map(|arm| match arm {
            Arm::Static(path) => Some(*path),
            _ => None,
        });
        let control = match control {
            None => None,
            Some("") if name.is_none() => Some(choose(None)?),
            Some("") => {
                let problem = Problem::BadValue("static=PATH if there is a PROGRAM");
                return Err(usage(b"static", "--arm", problem));
            }
            Some(path) => Some(static_program(path)?),
        };
        Ok(Self {
            main,
            control,
            words,
        })
    }

    /// Notes the program's arguments.
    ///
    /// # Errors
    /// The sink's.
    pub(super) fn note(&self, preamble: &mut Preamble<Output>) -> Result<(), Error> {
        let words = joined(&mut self.words.iter().skip(1).map(|word| word.to_bytes()));
        Ok(preamble.note("option_arguments", words.read().unwrap_or("[cut]"))?)
    }

    /// What an arm runs, and how.
    pub(super) fn of(&self, arm: &Arm) -> (&Chosen, &Words<'static>, Form) {
        let main = |form| (&self.main, &self.words, form);
        match (arm, &self.control) {
            (Arm::Static(_), Some(control)) => (control, &self.words, Form::Mapped),
            (Arm::Elf | Arm::Static(_), _) => main(Form::Mapped),
            (Arm::Native, _) => main(Form::Copied),
            (Arm::Memfd, _) => main(Form::InMemory),
        }
    }
}

/// The name of the program.
fn program(options: &Options, words: &Words<'static>) -> Result<&'static str, Error> {
    let problem = Problem::MissingOperand("an ELF program, and its arguments");
    let word = words.first().ok_or(usage(b"PROGRAM", "", problem))?;
    let name = word.to_str().ok().filter(|name| name.len() <= NAME_MAX);
    let (option, problem) = match name {
        Some(name) if !options.has_idle_option() => return Ok(name),
        Some(_) => (
            "--touch, --text, --data or --dir with PROGRAM",
            Problem::BadValue("the built-in subject"),
        ),
        None => ("PROGRAM", Problem::BadValue("UTF-8 of at most 960 bytes")),
    };
    Err(usage(word.to_bytes(), option, problem))
}

/// Most bytes of a program's name: with a folder before it, it is a text.
const NAME_MAX: usize = 960;

/// What does not fit together on the command line.
fn usage(word: Word, option: &'static str, problem: Problem) -> Error {
    Error::Usage(UsageError {
        word,
        option,
        problem,
        topic: Topic::Sharing,
    })
}

/// The control: without interpreter, or it would be none.
fn static_program(path: &'static str) -> Result<Chosen, Error> {
    let chosen = Chosen::named(path)?;
    if chosen.interpreter_bytes > 0 {
        let why = "it has an interpreter, so it is not static";
        return Err(Error::Unsuited(path, why));
    }
    Ok(chosen)
}
