//! Options of `probe`.

use super::{CommandSpec, Common, HasCommon, OptionSpec, OptionWord, Refused, Topic, Word, value};
use crate::measure::plan::List;
use crate::reader::Method;

/// What `probe` was asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// Readers; the control comes on top.
    pub methods: List<Method>,
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// The command.
pub const SPEC: CommandSpec<Options> = CommandSpec {
    topic: Topic::Probe,
    name: "probe",
    purpose: "ask each reader what it gets from each kind of memory, and see what that changes",
    about: "For each kind of memory and each reader, a child is forked and one range of it\n\
            is read once: a page, a range that starts readable and runs into it (cross),\n\
            or all of it. One CSV row each goes to stdout: the bytes that came or the\n\
            errno, and the frames, RSS, PSS and faults that changed. Rows of method none\n\
            read nothing; if they show a change, nothing here can be trusted (status 3).\n\
            Kinds so far: anonymous memory shared by fork, PROT_NONE with and without\n\
            pages, a hole.\n",
    operand: None,
    options: OPTIONS,
    examples: &[
        ("cowitness probe > probe.csv", "every kind, every reader"),
        (
            "cowitness probe --method proc,vmread -q > probe.csv",
            "two readers, no table",
        ),
    ],
};

const OPTIONS: &[OptionSpec<Options>] = &[OptionSpec {
    word: OptionWord {
        name: "--method",
        short: "",
        value: "LIST",
        default: "all",
        allowed: "all, or names of proc, proc-seek, vmread, vmread-batch, ptrace, kcore, \
                  map-files",
        help: "readers",
    },
    set: |options, word| {
        options.methods = methods(word)?;
        Ok(())
    },
}];

fn methods(word: Word) -> Result<List<Method>, Refused> {
    let other = |method: &Method| Method::remote().contains(method) && *method != Method::Hybrid;
    match word {
        b"all" => List::from_slice(Method::remote()).map_err(|_| Refused),
        names => value::list(names, |name| {
            Method::from_name(name).filter(other).ok_or(Refused)
        }),
    }
}
