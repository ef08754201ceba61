//! Options of `bench`.

use super::value;
use super::{CommandSpec, Common, HasCommon, OptionSpec, OptionWord, Refused, Topic, Word};
use crate::fixture::Exclusive;
use crate::measure::plan::{List, Order};
use crate::reader::Method;

/// Which way the arena is cut; segment sizes come from `--segment-pages`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// One VMA.
    Contiguous,
    /// Readable segments with gaps between them.
    Vma,
}

/// Which pages back the arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// Single pages.
    #[default]
    Small,
    /// Transparent huge pages.
    Thp,
}

impl Pages {
    /// As written on the command line and in the CSV.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Thp => "thp",
        }
    }
}

/// What happens to the machine's small free blocks of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Held, where single pages are measured and it costs no more than that.
    #[default]
    Hold,
    /// Left: arenas get scattered frames, as processes of a machine in use do.
    Leave,
}

/// The CPU everything is pinned to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// The one the program starts on.
    #[default]
    Current,
    /// This one.
    Cpu(usize),
    /// Not pinned.
    None,
}

/// How the clock is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockPath {
    /// Through the vDSO where there is one.
    #[default]
    Best,
    /// By system call, so that a tracer sees the readings.
    SystemCall,
}

/// What `bench` was asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// Layouts, in the order given.
    pub cuts: List<Cut>,
    /// Size of the arena in MiB, gaps included.
    pub mb: u64,
    /// Pages in a segment, one `vma` layout for each.
    pub segment_pages: List<u64>,
    /// Block sizes in bytes.
    pub blocks: List<u64>,
    /// Readers.
    pub methods: List<Method>,
    /// Warm passes after the cold one.
    pub warm: u64,
    /// Cases of each (layout, block, method).
    pub repeats: u64,
    /// Order of the cases.
    pub order: Order,
    /// Backing of the arena.
    pub pages: Pages,
    /// Pages that the child makes its own first.
    pub exclusive: Exclusive,
    /// Whether the machine's small free blocks are held meanwhile.
    pub fragments: Hold,
    /// Where everything runs.
    pub pin: Pin,
    /// How the clock is read.
    pub clock: ClockPath,
    /// Also time the target's own first write to each page.
    pub first_write: bool,
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// The largest arena, in MiB: 1 TiB.
const MB_MAX: u64 = 1 << 20;
/// The smallest block in bytes.
const BLOCK_MIN: u64 = 16;

/// The command.
pub const SPEC: CommandSpec<Options> = CommandSpec {
    topic: Topic::Bench,
    name: "bench",
    purpose: "time readers on forked memory, cold and warm, and count the pages they split",
    about: "For each layout, block size and method, a child is forked that shares a\n\
            populated arena with its parent; the arena is read once cold and then warm;\n\
            frames, RSS, PSS and faults are taken before and after. One CSV row a case\n\
            goes to stdout, the summary to stderr. The defaults are the published\n\
            experiment: 3 layouts x 3 blocks x 2 methods x 10 repeats = 180 rows.\n",
    operand: None,
    options: OPTIONS,
    examples: &[
        ("cowitness bench > results.csv", "the whole experiment"),
        (
            "cowitness bench --layout contiguous --block 4K --repeats 3 > quick.csv",
            "a quick look",
        ),
        (
            "cowitness bench --method all --block 256K,1M --first-write > all.csv",
            "every reader, and who pays for the split",
        ),
        (
            "cowitness bench --method proc,vmread,hybrid --exclusive half --block 1M > half.csv",
            "a target that has rewritten half of what fork shared",
        ),
    ],
};

const OPTIONS: &[OptionSpec<Options>] = &[
    OptionSpec {
        word: OptionWord {
            name: "--layout",
            short: "",
            value: "LIST",
            default: "contiguous,vma",
            allowed: "contiguous, vma, or both separated by a comma",
            help: "how the arena is cut into VMAs",
        },
        set: |options, word| put(&mut options.cuts, value::list(word, cut)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--mb",
            short: "",
            value: "N",
            default: "32",
            allowed: "1 to 1048576 (MiB)",
            help: "size of the arena in MiB, gaps included as near as whole segments allow",
        },
        set: |options, word| put(&mut options.mb, value::number(word, 1, MB_MAX)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--segment-pages",
            short: "",
            value: "LIST",
            default: "16,64",
            allowed: "numbers from 1 to the pages of the arena, separated by commas, none twice",
            help: "pages in a readable segment of layout vma; the gaps are a quarter of it",
        },
        set: |options, word| {
            let pages = |word| value::number(word, 1, MB_MAX << 8);
            put(&mut options.segment_pages, value::list(word, pages))
        },
    },
    OptionSpec {
        word: OptionWord {
            name: "--block",
            short: "",
            value: "LIST",
            default: "4K,64K,256K",
            allowed: "up to 16 sizes, like 16,4K,1M, from 16 bytes to the arena's, none twice",
            help: "bytes asked for by one read; a segment's end cuts it short",
        },
        set: |options, word| put(&mut options.blocks, value::list(word, block)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--method",
            short: "",
            value: "LIST",
            default: "both",
            allowed: "both, all, or a list of proc, proc-seek, vmread, vmread-batch, ptrace, kcore, \
                      map-files, hybrid, memcpy, none twice",
            help: "readers: both = proc,vmread; all = all but kcore and map-files; or names",
        },
        set: |options, word| put(&mut options.methods, methods(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--warm",
            short: "",
            value: "N",
            default: "5",
            allowed: "0 to 1000",
            help: "warm passes after the cold one",
        },
        set: |options, word| put(&mut options.warm, value::number(word, 0, 1000)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--repeats",
            short: "",
            value: "N",
            default: "10",
            allowed: "1 to 10000",
            help: "cases of each layout, block and method; an interval needs 6",
        },
        set: |options, word| put(&mut options.repeats, value::number(word, 1, 10_000)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--order",
            short: "",
            value: "HOW",
            default: "balanced",
            allowed: "balanced, alternate or fixed",
            help: "balanced: shuffled from the seed, each method equally often at each position",
        },
        set: |options, word| put(&mut options.order, order(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--pages",
            short: "",
            value: "KIND",
            default: "small",
            allowed: "small or thp",
            help: "what backs the arena: single pages or transparent huge pages",
        },
        set: |options, word| put(&mut options.pages, pages(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--exclusive",
            short: "",
            value: "WHICH",
            default: "none",
            allowed: "none, all, half (every second MiB), alternate (every second page), random, or \
                      N: every second run of N pages",
            help: "pages that the child writes to, and so makes its own, before it is read; with \
                   --pages small",
        },
        set: |options, word| put(&mut options.exclusive, exclusive(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--fragments",
            short: "",
            value: "HOW",
            default: "hold",
            allowed: "hold or leave",
            help: "small free blocks of memory: a process holds them meanwhile, so that arenas of \
                   all sizes get whole ones, or not",
        },
        set: |options, word| put(&mut options.fragments, fragments(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--cpu",
            short: "",
            value: "N|none",
            default: "current",
            allowed: "a CPU number below 1024, none, or current",
            help: "the CPU everything is pinned to; current: the one it starts on",
        },
        set: |options, word| put(&mut options.pin, pin(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--clock",
            short: "",
            value: "PATH",
            default: "vdso",
            allowed: "vdso or syscall",
            help: "how the clock is read; syscall lets strace see the readings",
        },
        set: |options, word| put(&mut options.clock, clock(word)),
    },
    OptionSpec {
        word: OptionWord {
            name: "--first-write",
            short: "",
            value: "",
            default: "",
            allowed: "no value",
            help: "also time the target's own first write to each page after the inspection",
        },
        set: |options, _| {
            options.first_write = true;
            Ok(())
        },
    },
];

fn put<T>(place: &mut T, value: Result<T, Refused>) -> Result<(), Refused> {
    *place = value?;
    Ok(())
}

/// The one of `choices` that `word` spells.
fn choose<T: Copy>(word: Word, choices: &[(&str, T)]) -> Result<T, Refused> {
    let found = choices.iter().find(|(name, _)| name.as_bytes() == word);
    found.map(|&(_, choice)| choice).ok_or(Refused)
}

fn cut(word: Word) -> Result<Cut, Refused> {
    choose(word, &[("contiguous", Cut::Contiguous), ("vma", Cut::Vma)])
}

fn block(word: Word) -> Result<u64, Refused> {
    value::size(word).and_then(|bytes| {
        let most = MB_MAX << 20;
        (BLOCK_MIN..=most)
            .contains(&bytes)
            .then_some(bytes)
            .ok_or(Refused)
    })
}

fn methods(word: Word) -> Result<List<Method>, Refused> {
    let collect = |methods: &[Method]| List::from_slice(methods).map_err(|_| Refused);
    match word {
        b"both" => collect(&[Method::Proc, Method::Vmread]),
        b"all" => Ok(Method::ALL
            .into_iter()
            .filter(|method| method.is_general())
            .collect()),
        names => value::list(names, |name| Method::from_name(name).ok_or(Refused)),
    }
}

fn order(word: Word) -> Result<Order, Refused> {
    let choices = [
        ("balanced", Order::Balanced),
        ("alternate", Order::Alternate),
        ("fixed", Order::Fixed),
    ];
    choose(word, &choices)
}

fn pages(word: Word) -> Result<Pages, Refused> {
    choose(word, &[("small", Pages::Small), ("thp", Pages::Thp)])
}

fn fragments(word: Word) -> Result<Hold, Refused> {
    choose(word, &[("hold", Hold::Hold), ("leave", Hold::Leave)])
}

fn exclusive(word: Word) -> Result<Exclusive, Refused> {
    choose(word, &Exclusive::NAMES).or_else(|Refused| {
        let pages = value::number(word, 1, MB_MAX << 8)?;
        Ok(Exclusive::Runs(pages as usize))
    })
}

pub(super) fn pin(word: Word) -> Result<Pin, Refused> {
    choose(word, &[("current", Pin::Current), ("none", Pin::None)]).or_else(|Refused| {
        let cpu = value::number(word, 0, crate::sys::cpu::LIMIT as u64 - 1)?;
        usize::try_from(cpu).map(Pin::Cpu).map_err(|_| Refused)
    })
}

fn clock(word: Word) -> Result<ClockPath, Refused> {
    choose(
        word,
        &[
            ("vdso", ClockPath::Best),
            ("syscall", ClockPath::SystemCall),
        ],
    )
}
