//! Options of `startup ab` and `startup slope`, and the programs they start.
//!
//! The programs stand among the options, with words that may look like some; so they are
//! found first, and the table of options gets what is left.

use super::bench::Pin;
use super::{
    CommandSpec, Common, Effective, HasCommon, OptionSpec, OptionWord, Problem, Refused, Request,
    Topic, UsageError, Word, bench, options, value,
};
use crate::measure::rounds::ARMS_MAX;
use crate::proc::number;
use heapless::Vec;

/// Fewest numbers of objects that a line is drawn through.
const OBJECTS_MIN: usize = 4;

/// What `startup` was asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The options every command has.
    pub common: Common,
    /// What is started, as given.
    pub arms: Vec<Arm, ARMS_MAX>,
    /// Times that each arm is started.
    pub rounds: u64,
    /// Times before that, which are not recorded.
    pub warmup: u64,
    /// Seconds that a program may take.
    pub timeout_s: u64,
    /// Where everything runs.
    pub pin: Pin,
    /// How the program of arm A is reached.
    pub a_via: Via,
    /// How the program of arm B is reached.
    pub b_via: Via,
    /// Drop what the kernel keeps of files before each exec.
    pub cold: bool,
    /// A command that fails counts like any other.
    pub allow_failure: bool,
}

impl HasCommon for Options {
    fn common(&mut self) -> &mut Common {
        &mut self.common
    }
}

/// A program, as words of argv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// Which.
    pub side: Side,
    /// Number of its first word in argv.
    pub first: usize,
    /// Number past its last word.
    pub end: usize,
    /// Bytes of the first word that are not the path's.
    pub skip: usize,
    /// Words around it that belong to no other.
    taken: (usize, usize),
}

/// Which arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `--a`.
    A,
    /// `--b`.
    B,
    /// `N=PATH`.
    Objects(u64),
    /// `static=PATH`.
    Static,
}

/// How a program is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Via {
    /// execve of its path.
    #[default]
    Execve,
    /// execveat of a file in memory, made before each exec.
    Memfd,
    /// This program's own loader, which copies the file's segments.
    Native,
}

const ROUNDS: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--rounds",
        short: "",
        value: "N",
        default: "200",
        allowed: "1 to 100000",
        help: "each round starts every arm once, in a shuffled order",
    },
    set: |options, word| {
        options.rounds = value::number(word, 1, 100_000)?;
        Ok(())
    },
};

/// Rounds of a slope if none are given, but for what is missing to whole blocks.
const ROUNDS_LEAST: u64 = 200;

const ROUNDS_OF_SLOPE: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        default: "balanced",
        allowed: "1 to 100000, or balanced",
        ..ROUNDS.word
    },
    set: |options, word| {
        // Told by `parse`, which knows how many programs there are.
        options.rounds = match word {
            b"balanced" => 0,
            word => value::number(word, 1, 100_000)?,
        };
        Ok(())
    },
};

const WARMUP: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--warmup",
        short: "",
        value: "N",
        default: "5",
        allowed: "1 to 1000",
        help: "times to start each arm before that, not recorded",
    },
    set: |options, word| {
        options.warmup = value::number(word, 1, 1000)?;
        Ok(())
    },
};

const TIMEOUT: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--timeout",
        short: "",
        value: "SECONDS",
        default: "10",
        allowed: "1 to 3600",
        help: "after which a program, or an exec, is killed; its arm is not started again",
    },
    set: |options, word| {
        options.timeout_s = value::number(word, 1, 3600)?;
        Ok(())
    },
};

const CPU: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--cpu",
        short: "",
        value: "N",
        default: "current",
        allowed: "a CPU number, current, or none",
        help: "keep this program, and what it starts, on one CPU",
    },
    set: |options, word| {
        options.pin = bench::pin(word)?;
        Ok(())
    },
};

const COLD: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--cold",
        short: "",
        value: "",
        default: "",
        allowed: "no value",
        help: "drop the page cache of the whole machine before each exec (root); refuses\n                        programs of which something stays in memory",
    },
    set: |options, _| {
        options.cold = true;
        Ok(())
    },
};

const ALLOW_FAILURE: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--allow-failure",
        short: "",
        value: "",
        default: "",
        allowed: "no value",
        help: "a program that ends with another status than 0 counts like any other",
    },
    set: |options, _| {
        options.allow_failure = true;
        Ok(())
    },
};

const A_VIA: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--a-via",
        short: "",
        value: "HOW",
        default: "execve",
        allowed: "execve, memfd or native",
        help: "how A's program is reached; memfd: copied into memory and executed there;\n                        native: its segments copied by the loader of this program",
    },
    set: |options, word| {
        options.a_via = via(word)?;
        Ok(())
    },
};

const B_VIA: OptionSpec<Options> = OptionSpec {
    word: OptionWord {
        name: "--b-via",
        short: "",
        value: "HOW",
        default: "execve",
        allowed: "execve, memfd or native",
        help: "how B's program is reached",
    },
    set: |options, word| {
        options.b_via = via(word)?;
        Ok(())
    },
};

fn via(word: Word) -> Result<Via, Refused> {
    match word {
        b"execve" => Ok(Via::Execve),
        b"memfd" => Ok(Via::Memfd),
        b"native" => Ok(Via::Native),
        _ => Err(Refused),
    }
}

/// The usage line of both modes.
pub const USAGE: &str = "usage: cowitness startup ab [options] --a CMD... -- --b CMD...\n\
    \x20      cowitness startup slope [options] N=PATH... static=PATH";

/// `startup ab`.
pub const AB: CommandSpec<Options> = CommandSpec {
    topic: Topic::StartupAb,
    name: "startup ab",
    purpose: "time the exec of two programs that should differ in one thing, in pairs",
    about: "Each round starts A and B twice each (arms a and null, b and null-b: what runs more\n\
            often is faster for that) in an order that is shuffled and balanced over 8 rounds,\n\
            and times each from before the clone until the exec is done (exec_ns) and until\n\
            its end was reaped (total_ns). A word -- ends the words of --a and of --b (where there\n\
            is none behind --a, --b does); the first is a path. Nothing stands between: no shell,\n\
            no helper, no environment, a process group of its own, /dev/null for all three\n\
            standard streams. What is left of the group when the program has ended is killed.\n\
            One CSV row an exec goes to stdout; a second stream holds the median difference\n\
            a - b of the pairs with its interval, which is `resolved` only if that excludes 0\n\
            and the difference is over three times that of a - null, A against itself.\n",
    operand: None,
    options: &[
        ROUNDS,
        WARMUP,
        TIMEOUT,
        CPU,
        A_VIA,
        B_VIA,
        COLD,
        ALLOW_FAILURE,
    ],
    examples: &[
        (
            "cowitness startup ab --a ./dynamic -- --b ./static > ab.csv",
            "what does the dynamic loader take?",
        ),
        (
            "cowitness startup ab --rounds 1000 --a /bin/true -- --b /bin/sh -c :",
            "a thousand pairs; options stand before --a, between, or behind a last --",
        ),
        (
            "cowitness startup ab --b-via memfd --a ./static -- --b ./static",
            "what does starting from memory take?",
        ),
    ],
};

/// `startup slope`.
pub const SLOPE: CommandSpec<Options> = CommandSpec {
    topic: Topic::StartupSlope,
    name: "startup slope",
    purpose: "time the exec of one program linked from more and more objects; a line through it",
    about: "Starts every program once a round, in a balanced shuffled order, as `startup ab`\n\
            does, and draws a straight line through the medians over N, the number of shared\n\
            objects: what one object takes, and what is left at N = 0. Needs at least four\n\
            different N, which are taken as given, and a control without dynamic loader. The\n\
            programs get no arguments. Of k programs 2k rounds are a balanced block;\n\
            `balanced` takes whole ones, at least 200 rounds.\n\
            One CSV row an exec goes to stdout; a second stream holds the line: intercept,\n\
            slope, R2, and for each program how far its median lies above it.\n",
    operand: None,
    options: &[ROUNDS_OF_SLOPE, WARMUP, TIMEOUT, CPU, COLD, ALLOW_FAILURE],
    examples: &[(
        "cowitness startup slope 1=./n1 2=./n2 4=./n4 8=./n8 static=./s > slope.csv",
        "what does one more shared object take?",
    )],
};

/// Reads the words behind `startup`.
pub(super) fn parse(
    word: &dyn Fn(usize) -> Option<Word>,
    asked: &mut Options,
    effective: &mut Effective,
) -> Result<Request, UsageError> {
    const MODES: &str = "ab or slope";
    let spec = match word(2) {
        Some(b"ab") => &AB,
        Some(b"slope") => &SLOPE,
        Some(b"-h" | b"--help") => return Ok(Request::Help(Topic::Startup)),
        Some(other) => {
            return Err(fail(
                Topic::Startup,
                other,
                "mode",
                Problem::BadValue(MODES),
            ));
        }
        None => return Err(missing(Topic::Startup, b"mode", MODES)),
    };
    let arms = find_arms(spec, word)?;
    let covered = |index: &usize| {
        let within = |arm: &Arm| (arm.taken.0..arm.taken.1).contains(index);
        arms.iter().any(within)
    };
    let mut rest = (3..).filter(|index| !covered(index)).map_while(word);
    let request = options(spec, &mut rest, asked, effective)?;
    if matches!(request, Request::Run(_)) {
        check(spec.topic, &arms)?;
        check_cold(spec.topic, asked)?;
    }
    if asked.rounds == 0 {
        let block = 2 * arms.len().max(1) as u64;
        asked.rounds = ROUNDS_LEAST.next_multiple_of(block);
    }
    asked.arms = arms;
    Ok(request)
}

/// What is started, by its place in argv.
fn find_arms(
    spec: &'static CommandSpec<Options>,
    word: &dyn Fn(usize) -> Option<Word>,
) -> Result<Vec<Arm, ARMS_MAX>, UsageError> {
    let mut arms = Vec::<Arm, ARMS_MAX>::new();
    let mut index = 3;
    while let Some(here) = word(index) {
        let found = match spec.topic {
            Topic::StartupAb => command(here, index, word)?,
            _ => program(here, index)?,
        };
        index = found.map_or_else(|| after_option(spec, here, index), |arm| arm.taken.1);
        let Some(arm) = found else { continue };
        let twice = arms.iter().any(|known| known.side == arm.side);
        if twice || arms.push(arm).is_err() {
            let once = Problem::BadValue("given once, and one of at most sixteen");
            return Err(fail(spec.topic, here, "program", once));
        }
    }
    Ok(arms)
}

/// `--a CMD…` or `--b CMD…`.
fn command(
    here: Word,
    index: usize,
    word: &dyn Fn(usize) -> Option<Word>,
) -> Result<Option<Arm>, UsageError> {
    let side = match here {
        b"--a" => Side::A,
        b"--b" => Side::B,
        _ => return Ok(None),
    };
    let first = index + 1;
    let ends = |what: &dyn Fn(Word) -> bool| {
        let mut words = (first..).map_while(|index| word(index).map(|word| (index, word)));
        words.find(|(_, word)| what(word)).map(|(index, _)| index)
    };
    // The first process gets no second -- from the kernel (parse_args, kernel/params.c).
    let (end, past) = match ends(&|word| word == b"--") {
        Some(end) => (end, end + 1),
        None => {
            let end = ends(&|word| matches!(word, b"--a" | b"--b"));
            let end = end.unwrap_or_else(|| {
                first + (first..).take_while(|&index| word(index).is_some()).count()
            });
            (end, end)
        }
    };
    if first == end {
        let kind = "CMD: a path and the words behind it, up to --";
        return Err(fail(
            Topic::StartupAb,
            here,
            "",
            Problem::MissingValue(kind),
        ));
    }
    Ok(Some(Arm {
        side,
        first,
        end,
        skip: 0,
        taken: (index, past),
    }))
}

/// `N=PATH` or `static=PATH`.
fn program(here: Word, index: usize) -> Result<Option<Arm>, UsageError> {
    let equals = here.iter().position(|&byte| byte == b'=');
    let Some(at) = equals.filter(|_| !here.starts_with(b"-")) else {
        return Ok(None);
    };
    let side = match &here[..at] {
        b"static" => Some(Side::Static),
        digits => number::decimal(digits)
            .filter(|objects| (1..=OBJECTS_MAX).contains(objects))
            .map(Side::Objects),
    };
    let arm = |side| Arm {
        side,
        first: index,
        end: index + 1,
        skip: at + 1,
        taken: (index, index + 1),
    };
    let allowed = Problem::BadValue("N=PATH with N from 1 to 100000, or static=PATH");
    side.map(|side| Some(arm(side)))
        .ok_or(fail(Topic::StartupSlope, here, "program", allowed))
}

/// Most objects of one program.
const OBJECTS_MAX: u64 = 100_000;

/// The number of the word behind an option and its value.
fn after_option(spec: &'static CommandSpec<Options>, here: Word, index: usize) -> usize {
    let mut table = (0..).map_while(|index| spec.word(index));
    let takes_next = table.any(|word| word.is_named(here) && !word.value.is_empty());
    index + 1 + usize::from(takes_next)
}

/// Whether what is to be cold is run from its file: the others begin with bytes that this
/// program has in memory.
fn check_cold(topic: Topic, asked: &Options) -> Result<(), UsageError> {
    const ONLY: &str = "execve with --cold: memfd and native start from what is in memory";
    for (option, via) in [("--a-via", asked.a_via), ("--b-via", asked.b_via)] {
        let word: Word = match via {
            Via::Memfd => b"memfd",
            Via::Native => b"native",
            Via::Execve => continue,
        };
        if asked.cold {
            return Err(fail(topic, word, option, Problem::BadValue(ONLY)));
        }
    }
    Ok(())
}

/// Whether all are there.
fn check(topic: Topic, arms: &[Arm]) -> Result<(), UsageError> {
    let has = |side| arms.iter().any(|arm| arm.side == side);
    let objects = arms
        .iter()
        .filter(|arm| matches!(arm.side, Side::Objects(_)));
    // The trap: `--a x --b y -- --rounds 9` gives A the words of B.
    const A: &str = "a path and the words behind it, up to --; an --a before the -- that ends \
                     B's words is one of these";
    const B: &str = "a path and the words behind it, up to --; a --b before the -- that ends \
                     A's words is one of these";
    match topic {
        Topic::StartupAb if !has(Side::A) => Err(missing(topic, b"--a CMD", A)),
        Topic::StartupAb if !has(Side::B) => Err(missing(topic, b"--b CMD", B)),
        Topic::StartupSlope if objects.count() < OBJECTS_MIN => Err(missing(
            topic,
            b"fourth N=PATH",
            "at least four different numbers of objects; fewer make no line",
        )),
        Topic::StartupSlope if !has(Side::Static) => Err(missing(
            topic,
            b"static=PATH",
            "the same program without shared objects, as control",
        )),
        _ => Ok(()),
    }
}

const fn missing(topic: Topic, what: Word, allowed: &'static str) -> UsageError {
    fail(topic, what, "", Problem::MissingOperand(allowed))
}

const fn fail(topic: Topic, word: Word, option: &'static str, problem: Problem) -> UsageError {
    UsageError {
        word,
        option,
        problem,
        topic,
    }
}
