//! Options of `probe`.

use super::{CommandSpec, Common, HasCommon, OptionSpec, OptionWord, Refused, Topic, Word, value};
use crate::fixture::kinds::Kinds;
use crate::measure::plan::List;
use crate::reader::Method;

/// What `probe` was asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// Readers; the control comes on top.
    pub methods: List<Method>,
    /// Kinds of memory.
    pub kinds: Kinds,
    /// Whether the machine may be set up for more kinds.
    pub setup: bool,
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
    about: "For each kind of memory and each reader, a child is forked, the state of its memory\n\
            is proved, and one range of it is read once: a page, a range that starts readable\n\
            and runs into it (cross), or all of it. One CSV row each goes to stdout: the bytes\n\
            that came or the errno, and the frames, RSS, PSS and faults that changed. Rows of\n\
            method none read nothing; if they show a change, nothing here can be trusted\n\
            (status 3). What this machine, as it is, does not have is a row that is skipped,\n\
            with the reason, and no failure. A read that does not return is killed. Each row has\n\
            fresh memory (but for the kernel's own: vdso, vvar and vsyscall) and a fresh child,\n\
            and the order is always that of the kinds and readers below.\n\
            \n\
            Nothing on the machine is changed unless --setup is given, or this is run by\n\
            cowitness as the first process of a machine. --setup says on standard error what it\n\
            changes and from what, and puts it back, at signals too; one run at a time may.\n\
            What it may not change is needs-privilege, and the status is 3. KSM merges the memory\n\
            of every program that lets it. If it had never run before, all that is taken apart in\n\
            the end (ksm/run 2); else it stays merged, and stderr says how much. SIGKILL leaves\n\
            all: then write those values back (ksm/run, ksm/pages_to_scan, hugepages-64kB/enabled\n\
            and others below /sys/kernel/mm; /proc/sys/vm/nr_hugepages), swapoff the /dev/zramN\n\
            that /proc/swaps shows, and write N to /sys/class/zram-control/hot_remove.\n",
    operand: None,
    options: OPTIONS,
    examples: &[
        ("cowitness probe > probe.csv", "every kind, every reader"),
        (
            "cowitness probe --method proc,vmread -q > probe.csv",
            "two readers, no table",
        ),
        (
            "cowitness probe --kind thp,swapped,ksm --setup > probe.csv",
            "kinds that need something set up (root)",
        ),
    ],
};

const OPTIONS: &[OptionSpec<Options>] = &[
    OptionSpec {
        word: OptionWord {
            name: "--method",
            short: "",
            value: "LIST",
            default: "all",
            allowed: "all, or names of proc, proc-seek, vmread, vmread-batch, ptrace, kcore, \
                      map-files, hybrid, none twice",
            help: "readers",
        },
        set: |options, word| {
            options.methods = methods(word)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--kind",
            short: "",
            value: "LIST",
            default: "all",
            allowed: "all, or names of kinds as in cowitness probe --help, none twice",
            help: "kinds of memory",
        },
        set: |options, word| {
            options.kinds = kinds(word)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--setup",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "as root: allow and reserve huge pages, run KSM, swap to a new zram device; put \
                   back at the end and at signals",
        },
        set: |options, _| {
            options.setup = true;
            Ok(())
        },
    },
];

fn kinds(word: Word) -> Result<Kinds, Refused> {
    if word == b"all" {
        return Ok(Kinds::ALL);
    }
    let mut kinds = Kinds::default();
    let mut names = word.split(|&byte| byte == b',');
    names
        .try_for_each(|name| kinds.add(name))
        .map_err(|_| Refused)?;
    Ok(kinds)
}

fn methods(word: Word) -> Result<List<Method>, Refused> {
    let other = |method: &Method| Method::remote().contains(method);
    match word {
        b"all" => List::from_slice(Method::remote()).map_err(|_| Refused),
        names => value::list(names, |name| {
            Method::from_name(name).filter(other).ok_or(Refused)
        }),
    }
}
