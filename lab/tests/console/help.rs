//! Consoles, and their judgement.

use cowitness_lab::asked::Asked;
use cowitness_lab::guest::Ending;
use cowitness_lab::matrix::judge::{Case, Judged, judge};
use cowitness_lab::matrix::outcome::Outcome;

pub const COMMANDS: [&str; 3] = [
    "bench --mb=1 --layout=contiguous --block=64K --repeats=1 --warm=1 -q",
    "probe --kind=anon-fork-shared,prot-none,prot-none-untouched,hole -q",
    "selftest",
];
pub const OLD: &str = include_str!("../data/consoles/5.10-aarch64.log");
pub const NEW: &str = include_str!("../data/consoles/6.12-x86_64.log");

/// As the appliance on the console of `OLD` says it of itself.
pub const EXE_CRC32: u32 = 0x9e14_c77a;

pub fn asked(line: &str) -> Asked {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Asked::of(&words)
}

pub fn judged_as(console: &str, ending: &Ending, line: &str, exe_crc32: Option<u32>) -> Judged {
    judge(&Case {
        name: "a.log",
        console: console.as_bytes(),
        ending,
        asked: &asked(line),
        exe_crc32,
    })
}

pub fn judged(console: &[u8], ending: &Ending) -> Judged {
    judge(&Case {
        name: "a.log",
        console,
        ending,
        asked: &asked(&COMMANDS.join(" then ")),
        exe_crc32: None,
    })
}

pub fn outcome(console: &str, ending: &Ending) -> Outcome {
    judged(console.as_bytes(), ending).outcome
}

pub fn is_damaged(found: &Outcome, wanted: &str) {
    let Outcome::Damaged(told) = found else {
        panic!("{wanted}: {found:?}");
    };
    assert!(told.contains(wanted), "{told}");
}
