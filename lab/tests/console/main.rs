//! Consoles of real guests, whole, cut and damaged: nothing but a whole one passes.
//!
//! `5.10-aarch64` and `6.12-x86_64` ran the commands below. The others are of guests that
//! were given another CPU's appliance, `init=/nowhere rdinit=/nowhere panic=0`, an option
//! that bench does not have, and 26 seconds of SIGSTOP.

mod forged;
mod help;
#[path = "../seal/mod.rs"]
mod seal;
mod verdict;

use cowitness_lab::guest::Ending;
use cowitness_lab::matrix::outcome::Outcome;
use help::{NEW, OLD, judged, outcome};

/// `judged` after `from` has become `to`, once.
fn with(from: &str, to: &str) -> Outcome {
    assert!(OLD.contains(from), "{from}");
    outcome(&OLD.replacen(from, to, 1), &Ending::Off)
}

#[test]
fn a_whole_console_passes_and_its_streams_are_kept_to_the_byte() {
    for (console, kernel, split) in [
        (OLD, "5.10.0-32-cloud-arm64", 0),
        (NEW, "6.12.117+deb13-cloud-amd64", 256),
    ] {
        let judged = judged(console.as_bytes(), &Ending::Off);
        assert_eq!(judged.outcome, Outcome::Pass);
        let mut wanted = String::new();
        for part in console.split("#cowitness 1\r\n").skip(1) {
            let end = part.find("#end ").unwrap();
            let end = end + part[end..].find('\n').unwrap() + 1;
            wanted += &("#cowitness 1\n".to_owned() + &part[..end].replace('\r', ""));
        }
        assert_eq!(judged.csv, wanted);
        let found = judged.findings;
        assert_eq!((&*found.kernel, found.page_bytes), (kernel, 4096));
        let vmread = found.split("vmread").unwrap();
        assert_eq!((vmread.tracked, vmread.split), (256, split));
        assert_eq!(found.split("proc").unwrap().split, 0);
        assert_eq!(found.says("prot-none", "proc"), Some("read"));
        assert_eq!(found.says("hole", "proc"), Some("EIO"));
        assert_eq!(found.says("hole", "vmread-batch"), Some("EFAULT"));
        assert_eq!(found.says("hole", "none"), None);
    }
}

#[test]
fn every_other_console_has_an_outcome_of_its_own() {
    let cases = [
        (
            include_str!("../data/consoles/wrong-cpu.log"),
            "no-init: the kernel could not execute /init (error -8); ENOEXEC: it is for another \
             CPU, or no program",
        ),
        (
            include_str!("../data/consoles/no-root.log"),
            "panic: VFS: Unable to mount root fs on unknown-block(0,0)",
        ),
        (
            include_str!("../data/consoles/stalled.log"),
            "stalled: watchdog: BUG: soft lockup - CPU#0 stuck for 25s! [init:71]",
        ),
        (
            include_str!("../data/consoles/usage.log"),
            "error: bench: status 2: cowitness: error: unknown option '--nonsense'; --help lists \
             the options",
        ),
    ];
    for (console, wanted) in cases {
        for ending in [Ending::Off, Ending::Dead] {
            let found = outcome(console, &ending);
            assert_eq!(format!("{}: {}", found.word(), found.detail()), wanted);
        }
    }
}

#[test]
fn a_console_without_a_verdict_tells_how_it_ended() {
    let cut = &OLD[..OLD.find("ok hole").unwrap()];
    let last = cut.lines().last().unwrap().trim_end();
    let cases = [
        (Ending::Off, "no-verdict: last on the console: "),
        (
            Ending::Lost("signal 9".into()),
            "lost-qemu: signal 9; last on the console: ",
        ),
        (
            Ending::Deadline(7),
            "deadline: no verdict within 7 s; last on the console: ",
        ),
    ];
    for (ending, wanted) in cases {
        let found = outcome(cut, &ending);
        let told = format!("{}: {}", found.word(), found.detail());
        let rest = told
            .strip_prefix(wanted)
            .unwrap_or_else(|| panic!("{told}"));
        assert!(last.starts_with(rest.trim_end_matches("...")), "{rest}");
    }
    assert_eq!(outcome(cut, &Ending::Interrupted), Outcome::Interrupted);
    assert_eq!(outcome(OLD, &Ending::StillUp), Outcome::StillUp);
    let empty = outcome("", &Ending::Deadline(7));
    assert_eq!(
        empty.detail(),
        "no verdict within 7 s; the console is empty (too little memory for this kernel?)"
    );
}

#[test]
fn no_prefix_passes() {
    let verdict = "cowitness: verdict: pass\r\n";
    let whole = OLD.find(verdict).unwrap() + verdict.len();
    let lines = OLD.match_indices('\n').map(|(at, _)| at + 1);
    // Each end of a line, and each byte of the last ones.
    for length in lines.filter(|&at| at < whole).chain(whole - 300..whole) {
        let found = judged(&OLD.as_bytes()[..length], &Ending::Off).outcome;
        assert!(
            matches!(found, Outcome::NoVerdict(_)),
            "{length}: {found:?}"
        );
    }
}

/// Lines that nothing covers: notes of a stream, what probe says of what it sets up, and what comes
/// after the verdict.
fn unnoticed(line: &str) -> bool {
    if line.starts_with("cowitness: setup: ") {
        return true;
    }
    let note = line.starts_with('#') && line.contains('=');
    note && !line.starts_with("#rows=") && !line.starts_with("#end ") || line.starts_with('[')
}

#[test]
fn no_line_is_lost_unnoticed() {
    let lines: Vec<&str> = OLD.split_inclusive('\n').collect();
    let mut tried = 0;
    for lost in (0..lines.len()).filter(|&lost| !unnoticed(lines[lost])) {
        let console: String = [&lines[..lost], &lines[lost + 1..]].concat().concat();
        assert_ne!(
            outcome(&console, &Ending::Off),
            Outcome::Pass,
            "{}",
            lines[lost]
        );
        tried += 1;
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn no_changed_byte_of_a_row_is_unnoticed() {
    let mut at = 0;
    let mut tried = 0;
    for line in OLD.split_inclusive('\n') {
        let places = at..at + line.trim_end().len();
        at += line.len();
        if !["record,", "bench,", "probe,", "#end "]
            .iter()
            .any(|start| line.starts_with(start))
        {
            continue;
        }
        // Every fifth: each takes the whole console to be judged.
        for place in places.step_by(5) {
            let mut console = OLD.as_bytes().to_vec();
            console[place] ^= 1;
            let found = judged(&console, &Ending::Off).outcome;
            assert!(matches!(found, Outcome::Damaged(_)), "{place}: {found:?}");
            tried += 1;
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn damage_is_told_with_its_place() {
    let end = OLD
        .lines()
        .position(|line| line.starts_with("#end "))
        .unwrap()
        + 1;
    let Outcome::Damaged(told) = with(",proc,65536,", ",proc,65537,") else {
        panic!();
    };
    let place = format!("a.log, stream 1, line {end}: bad checksum: ");
    assert!(told.starts_with(&place), "{told}");
    let row = OLD
        .lines()
        .position(|line| line.starts_with("bench,"))
        .unwrap()
        + 1;
    let Outcome::Damaged(told) = with("\r\nbench,", "\r\n[    9.9] random: crng\r\nbench,") else {
        panic!();
    };
    let place = format!("a.log, stream 1, line {row} (row 1): field count 1, ");
    assert!(told.starts_with(&place), "{told}");
}

#[test]
fn a_verdict_of_pass_must_not_be_contradicted() {
    let cases = [
        ("18 passed", "17 passed", "selftest counts 17 passed"),
        (
            "0 failed",
            "1 failed",
            "selftest counts 18 passed, 1 failed",
        ),
        (
            "0 skipped\r\n",
            "0 skippe\r\n",
            "selftest has no closing count",
        ),
        (
            "end: status 0",
            "end: status 4",
            "verdict pass, but bench ended with status 4",
        ),
        ("run: probe", "run: prob", "the console shows 'bench "),
        (
            "init: end: ",
            "init: ende: ",
            "verdict pass, but bench has no end",
        ),
    ];
    for (from, to, wanted) in cases {
        let found = with(from, to);
        let Outcome::Damaged(told) = &found else {
            panic!("{from}: {found:?}");
        };
        assert!(told.starts_with(wanted), "{told}");
    }
}

#[test]
fn a_verdict_other_than_pass_names_who_is_to_blame() {
    let failed = OLD
        .replacen("ok hole: ", "fail hole: ", 1)
        .replacen("18 passed, 0 failed", "17 passed, 1 failed", 1)
        .replacen(
            "status 0\r\ncowitness: verdict: pass",
            "status 4\r\ncowitness: verdict: fail",
            1,
        );
    let Outcome::Fail(told) = outcome(&failed, &Ending::Off) else {
        panic!();
    };
    assert!(told.starts_with("selftest: hole: "), "{told}");
    let invalid = OLD.replacen("end: status 0", "end: status 3", 1).replacen(
        "verdict: pass",
        "verdict: invalid",
        1,
    );
    let told = outcome(&invalid, &Ending::Off);
    assert_eq!(told, Outcome::Invalid("bench: status 3".to_owned()));
    let killed = OLD.replacen("end: status 0", "end: signal 11", 1).replacen(
        "verdict: pass",
        "verdict: error",
        1,
    );
    let told = outcome(&killed, &Ending::Off);
    assert_eq!(told, Outcome::Error("bench: signal 11".to_owned()));
}
