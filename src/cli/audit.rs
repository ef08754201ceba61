//! Options of `audit`.

use super::survey::pid;
use super::{
    CommandSpec, Common, HasCommon, Operand, OptionSpec, OptionWord, Refused, Topic, Word, value,
};
use crate::measure::plan::List;
use crate::reader::Method;

/// What `audit` was asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// The process; 0 until it is given.
    pub pid: i32,
    /// Readers, in the order given.
    pub methods: List<Method>,
    /// Bytes asked for by one read.
    pub block: u64,
    /// Warm passes after the cold one.
    pub warm: u64,
    /// Whether the process is stopped meanwhile.
    pub stop: bool,
    /// Whether `hybrid` brings in swapped pages.
    pub allow_swap_in: bool,
    /// Whether `hybrid` leaves pages of files unread that the target has not mapped.
    pub strict: bool,
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// The smallest and the largest block in bytes.
const BLOCK: core::ops::RangeInclusive<u64> = 16..=1 << 30;

/// The command.
pub const SPEC: CommandSpec<Options> = CommandSpec {
    topic: Topic::Audit,
    name: "audit",
    purpose: "read a live process's memory, discard it, and report rate, footprint and splits",
    about: "Reads every readable mapping of a process once with each reader, in the order\n\
            given, and throws the data away. Before a reader begins, the page table says\n\
            what it should split and bring in; around each 8,192 pages read it says what was split,\n\
            faulted in and swapped in. RSS, PSS, private memory and faults are taken\n\
            before and after. One CSV row a pass goes to stdout.\n\
            This CHANGES the process's memory where the reader does: vmread copies what\n\
            fork shared; proc, vmread and ptrace bring in what was absent or swapped out.\n\
            What vmread copies is charged to the process's memory cgroup: near its limit\n\
            the kernel kills processes there. Of private hugetlb memory shared by fork,\n\
            vmread takes pages from the other process where none is free, and that one\n\
            dies of SIGBUS.\n\
            What one reader has split, the next finds split: for a fair comparison give\n\
            each a fresh process, or put the harmless ones first.\n\
            Memory of devices, of userfaultfd, and reserves never touched are left out (of\n\
            the latter the page table is looked at: terabytes take their time).\n\n\
            Needs the same user and a dumpable process, as Yama allows it, or root, or\n\
            CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH (and CAP_KILL for --stop). Without\n\
            CAP_SYS_ADMIN frames are hidden: what vmread has split then mostly stays unknown\n\
            (an empty field, exit status 3).\n\
            --stop makes epoll_wait(2) and its like in the process return EINTR (signal(7)),\n\
            a handler of SIGCONT runs in it, an interactive shell takes the terminal from it,\n\
            and its parent gets SIGCHLD.\n",
    operand: Some(Operand {
        name: "PID",
        allowed: "a process id, 1 to 4194304",
        set: |options, word| {
            options.pid = pid(word)?;
            Ok(())
        },
        is_set: |options| options.pid > 0,
    }),
    options: OPTIONS,
    examples: &[
        (
            "cowitness audit 1234 --stop > audit.csv",
            "the default reader, hybrid, which changes no memory, on a process that holds still",
        ),
        (
            "cowitness audit 1234 --method hybrid,proc,vmread --warm 3 > audit.csv",
            "three readers, the one that splits last, three warm passes each",
        ),
        (
            "cowitness audit 1234 --stop --strict > audit.csv",
            "hybrid, and only what the process itself has in memory",
        ),
    ],
};

const OPTIONS: &[OptionSpec<Options>] = &[
    OptionSpec {
        word: OptionWord {
            name: "--method",
            short: "",
            value: "LIST",
            default: "hybrid",
            allowed: "all, or names of proc, proc-seek, vmread, vmread-batch, ptrace, kcore, \
                      map-files, hybrid, none twice",
            help: "readers, one after the other; all: all but kcore and map-files",
        },
        set: |options, word| {
            options.methods = methods(word)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--block",
            short: "",
            value: "SIZE",
            default: "1M",
            allowed: "a size like 64K or 1M, 16 bytes to 1G",
            help: "bytes asked for by one read; a mapping's end cuts it short",
        },
        set: |options, word| {
            let size = value::size(word)?;
            options.block = Some(size)
                .filter(|size| BLOCK.contains(size))
                .ok_or(Refused)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--warm",
            short: "",
            value: "N",
            default: "0",
            allowed: "0 to 1000",
            help: "warm passes of each reader after its cold one",
        },
        set: |options, word| {
            options.warm = value::number(word, 0, 1000)?;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--stop",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "stop the process meanwhile (SIGSTOP); it goes on however this ends",
        },
        set: |options, _| {
            options.stop = true;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--allow-swap-in",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "hybrid reads swapped-out pages, too, which brings them in; else it leaves them",
        },
        set: |options, _| {
            options.allow_swap_in = true;
            Ok(())
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--strict",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "hybrid leaves pages of files that the process has not mapped, else it takes \
                   them from the page cache",
        },
        set: |options, _| {
            options.strict = true;
            Ok(())
        },
    },
];

fn methods(word: Word) -> Result<List<Method>, Refused> {
    let remote = Method::remote().iter().copied();
    match word {
        b"all" => Ok(remote.filter(|method| method.is_general()).collect()),
        names => value::list(names, |name| {
            Method::from_name(name)
                .filter(|method| Method::remote().contains(method))
                .ok_or(Refused)
        }),
    }
}
