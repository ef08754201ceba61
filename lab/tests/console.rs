//! Consoles of real guests, whole, cut and damaged: nothing but a whole one passes.
//!
//! `5.10-aarch64` and `6.12-x86_64` ran the commands below. The others are of guests that
//! were given another CPU's appliance, `init=/nowhere rdinit=/nowhere panic=0`, an option
//! that bench does not have, and 26 seconds of SIGSTOP.

mod seal;
use cowitness_lab::asked::Asked;
use cowitness_lab::guest::Ending;
use cowitness_lab::matrix::judge::{Case, Judged, judge};
use cowitness_lab::matrix::outcome::Outcome;
use seal::resealed;

const COMMANDS: [&str; 3] = [
    "bench --mb=1 --layout=contiguous --block=64K --repeats=1 --warm=1 -q",
    "probe -q",
    "selftest",
];
const OLD: &str = include_str!("data/consoles/5.10-aarch64.log");
const NEW: &str = include_str!("data/consoles/6.12-x86_64.log");

/// As the appliance on the console of `OLD` says it of itself.
const EXE_CRC32: u32 = 0xa6ba_7d30;

fn asked(line: &str) -> Asked {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Asked::of(&words)
}

fn judged_as(console: &str, ending: &Ending, line: &str, exe_crc32: Option<u32>) -> Judged {
    judge(&Case {
        name: "a.log",
        console: console.as_bytes(),
        ending,
        asked: &asked(line),
        exe_crc32,
    })
}

fn judged(console: &[u8], ending: &Ending) -> Judged {
    judge(&Case {
        name: "a.log",
        console,
        ending,
        asked: &asked(&COMMANDS.join(" then ")),
        exe_crc32: None,
    })
}

fn outcome(console: &str, ending: &Ending) -> Outcome {
    judged(console.as_bytes(), ending).outcome
}

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
            include_str!("data/consoles/wrong-cpu.log"),
            "no-init: the kernel could not execute /init (error -8); ENOEXEC: it is for another \
             CPU, or no program",
        ),
        (
            include_str!("data/consoles/no-root.log"),
            "panic: VFS: Unable to mount root fs on unknown-block(0,0)",
        ),
        (
            include_str!("data/consoles/stalled.log"),
            "stalled: watchdog: BUG: soft lockup - CPU#0 stuck for 25s! [init:71]",
        ),
        (
            include_str!("data/consoles/usage.log"),
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
        "no verdict within 7 s; the console is empty"
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

/// Lines that nothing covers: notes of a stream, and what comes after the verdict.
fn unnoticed(line: &str) -> bool {
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
        ("15 passed", "14 passed", "selftest counts 14 passed"),
        (
            "0 failed",
            "1 failed",
            "selftest counts 15 passed, 1 failed",
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
        .replacen("15 passed, 0 failed", "14 passed, 1 failed", 1)
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

/// What is found of `OLD` after `change`, with counts and checksums made right again.
fn forged(change: impl Fn(&str) -> String) -> Outcome {
    let console = resealed(&change(OLD));
    let line = COMMANDS.join(" then ");
    judged_as(&console, &Ending::Off, &line, Some(EXE_CRC32)).outcome
}

fn is_damaged(found: &Outcome, wanted: &str) {
    let Outcome::Damaged(told) = found else {
        panic!("{wanted}: {found:?}");
    };
    assert!(told.contains(wanted), "{told}");
}

/// The section of a command, from its first line to its end.
fn section(command: &str) -> &'static str {
    let start = OLD
        .find(&format!("cowitness: init: run: {command}"))
        .unwrap();
    let end = OLD[start..].find("cowitness: init: end:").unwrap();
    let line = OLD[start + end..].find('\n').unwrap() + 1;
    &OLD[start..start + end + line]
}

fn body(command: &str) -> &'static str {
    let section = section(command);
    let start = section.find('\n').unwrap() + 1;
    &section[start..section.find("cowitness: init: end:").unwrap()]
}

#[test]
fn a_console_that_was_not_changed_still_passes_when_resealed() {
    assert_eq!(forged(str::to_owned), Outcome::Pass);
    assert_eq!(resealed(OLD), OLD);
}

#[test]
fn rows_must_be_of_the_machine_that_their_notes_name() {
    let cases = [
        (
            "#kernel=5.10.0-32-cloud-arm64",
            "#kernel=6.1.0",
            "its note 'kernel' is 6.1.0",
        ),
        ("#arch=aarch64", "#arch=x86_64", "its note 'arch' is x86_64"),
        (
            "#page_bytes=4096",
            "#page_bytes=16384",
            "its note 'page_bytes' is 16384",
        ),
        (
            "#kernel=5.10.0-32-cloud-arm64\r\n",
            "",
            "its note 'kernel' is missing",
        ),
    ];
    for (from, to, wanted) in cases {
        is_damaged(&forged(|console| console.replacen(from, to, 1)), wanted);
    }
}

#[test]
fn a_stream_belongs_to_its_command_and_to_this_appliance() {
    let (bench, probe) = (body("bench"), body("probe"));
    let swapped = |console: &str| {
        let without = console.replacen(bench, "@", 1).replacen(probe, bench, 1);
        without.replacen('@', probe, 1)
    };
    is_damaged(
        &forged(swapped),
        "bench: its note 'command' is probe, not bench",
    );
    let twice = |console: &str| console.replacen(bench, &format!("{bench}{bench}"), 1);
    is_damaged(&forged(twice), "streams 1 and 2 are the same");
    let more = |console: &str| {
        let later = bench.replacen("#started_unix=", "#started_unix=1", 1);
        console.replacen(bench, &format!("{bench}{later}"), 1)
    };
    is_damaged(&forged(more), "bench has 2 streams");
    let gone = |console: &str| console.replacen(probe, "", 1);
    is_damaged(&forged(gone), "probe has 0 streams");
    let foreign = |console: &str| console.replacen("#exe_crc32=a6ba7d30", "#exe_crc32=a6ba7d31", 1);
    is_damaged(
        &forged(foreign),
        "bench: its note 'exe_crc32' is a6ba7d31, not a6ba7d30",
    );
    let other = |console: &str| console.replacen("#option_mb=1", "#option_mb=2", 1);
    is_damaged(&forged(other), "bench: its note 'option_mb' is 2, not 1");
}

#[test]
fn a_stream_that_was_cut_down_is_not_whole() {
    let without = |part: &'static str| {
        move |console: &str| {
            let lines = console.split_inclusive('\n');
            lines
                .filter(|line| !line.contains(part))
                .collect::<String>()
        }
    };
    for (part, wanted) in [
        (
            ",1,1048576,vmread,",
            "stream 1: 1 readers, its options speak of 2",
        ),
        (
            "hole,vmread,page",
            "stream 2: 47 rows, where 8 questions to 6 readers make 48",
        ),
        (",none,", "stream 2: 5 readers, its options speak of 6"),
        ("bench,,5", "stream 1: 0 readers, its options speak of 2"),
    ] {
        is_damaged(&forged(without(part)), wanted);
    }
    let repeats = |console: &str| console.replacen("#option_repeats=1", "#option_repeats=2", 1);
    is_damaged(
        &forged(repeats),
        "stream 1: 1 questions, its options speak of 2",
    );
}

#[test]
fn a_selftest_that_passed_nothing_does_not_pass() {
    let selftest = |text: &str| {
        format!(
            "cowitness: init: run: selftest\r\n{text}cowitness: init: end: status 0\r\n\
             cowitness: verdict: pass\r\n"
        )
    };
    let found = |text: &str| judged_as(&selftest(text), &Ending::Off, "", None);
    let skipped = found("skip proc: no\r\n0 passed, 0 failed, 1 skipped\r\n");
    let nothing = Outcome::Empty("selftest: no check has passed".to_owned());
    assert_eq!(skipped.outcome, nothing);
    assert_eq!(found("0 passed, 0 failed, 0 skipped\r\n").outcome, nothing);
    let one = found("ok a\r\nskip proc: no\r\n1 passed, 0 failed, 1 skipped\r\n");
    assert_eq!(
        (one.outcome, &*one.skips),
        (Outcome::Pass, &["proc: no".to_owned()][..])
    );
    assert!(one.text.starts_with("$ selftest\nok a\n"), "{}", one.text);
}

#[test]
fn there_is_one_verdict_and_nothing_but_the_kernel_after_it() {
    let verdict = "cowitness: verdict: pass\r\n";
    let after = |text: &str| OLD.replacen(verdict, &format!("{verdict}{text}"), 1);
    is_damaged(&outcome(&after(verdict), &Ending::Off), "2 verdicts");
    is_damaged(
        &outcome(&after("bench,late\r\n"), &Ending::Off),
        "after the verdict: bench,late",
    );
    let worse =
        after("cowitness: init: error: cannot become /sh: EACCES\r\ncowitness: verdict: error\r\n");
    let wanted = Outcome::Error("init: cannot become /sh: EACCES".to_owned());
    assert_eq!(outcome(&worse, &Ending::Off), wanted);
    for kernels in [
        "[    2.0] reboot: Power down\r\n",
        "reboot: System halted\r\n",
    ] {
        assert_eq!(outcome(&after(kernels), &Ending::Off), Outcome::Pass);
    }
    // A program that init became says what it likes.
    let line = format!("--on-done=shell /sh {}", COMMANDS.join(" then "));
    let shell = judged_as(&after("# _\r\n"), &Ending::Ended, &line, None);
    assert_eq!(shell.outcome, Outcome::Pass);
}

#[test]
fn an_error_of_init_is_told() {
    let console = "cowitness: init: error: --on-done 'sleep': must be poweroff\r\n\
                   cowitness: verdict: error\r\n";
    let found = judged_as(console, &Ending::Off, "--on-done=sleep", None).outcome;
    assert_eq!(found.detail(), "init: --on-done 'sleep': must be poweroff");
}

#[test]
fn an_emulator_that_dies_after_the_verdict_is_lost() {
    let found = outcome(OLD, &Ending::Lost("status 139".into()));
    assert_eq!(
        found,
        Outcome::LostQemu("after the verdict: status 139".to_owned())
    );
    assert_eq!(outcome(OLD, &Ending::Interrupted), Outcome::Interrupted);
    assert_eq!(outcome(OLD, &Ending::Ended), Outcome::Pass);
}

#[test]
fn a_kernel_that_is_broken_measures_nothing() {
    for (line, wanted) in [
        (
            "[    1.0] BUG: unable to handle page fault for address: 0",
            "BUG: unable to handle",
        ),
        (
            "[    1.0] WARNING: CPU: 0 PID: 1 at mm/gup.c:1 a+0x1/0x2",
            "WARNING: CPU: 0",
        ),
        ("[    1.0] Oops: 0000 [#1] SMP", "Oops: 0000"),
        (
            "[    1.0] BUG: Bad page state in process init  pfn:1",
            "BUG: Bad page state",
        ),
        (
            "[    1.0] Internal error: Oops: 96000004 [#1] SMP",
            "Internal error: ",
        ),
        (
            "cowitness: init: kernel tainted: 512",
            "kernel tainted: 512",
        ),
    ] {
        let console = format!("{line}\r\n{OLD}");
        let judged = judged(console.as_bytes(), &Ending::Off);
        let Outcome::Oops(told) = &judged.outcome else {
            panic!("{line}: {:?}", judged.outcome);
        };
        assert!(told.starts_with(wanted), "{told}");
        assert_eq!(judged.csv, "");
    }
    let harmless = format!("[    1.0] Spectre V2 : WARNING: eBPF is enabled\r\n{OLD}");
    assert_eq!(outcome(&harmless, &Ending::Off), Outcome::Pass);
}

#[test]
fn zeros_are_no_content_and_no_evidence_is_no_split() {
    let line = COMMANDS.join(" then ");
    let found = |from: &str, to: &str| {
        let console = resealed(&OLD.replace(from, to));
        judged_as(&console, &Ending::Off, &line, None)
    };
    let zeros = found(
        ",prot-none,proc,page,4096,4096,,ok,",
        ",prot-none,proc,page,4096,4096,,zero,",
    );
    assert_eq!(zeros.findings.says("prot-none", "proc"), Some("zeros"));
    let none = found(",pfn,256,256,256,0,", ",none,256,256,256,0,");
    let split = none.findings.split("proc").unwrap();
    assert_eq!((split.ok, split.not_ok), (0, 1));
    let lost = "2 of 50 rows lost, the first is proc's, without evidence of sharing";
    assert_eq!(none.outcome, Outcome::Invalid(lost.to_owned()));
}

#[test]
fn what_is_no_stream_is_not_damaged() {
    let said = |line: &str, text: &str| {
        let console = format!(
            "cowitness: init: run: {line}\r\n{text}cowitness: init: end: status 0\r\n\
             cowitness: verdict: pass\r\n"
        );
        judged_as(&console, &Ending::Off, line, None)
    };
    assert_eq!(
        said("bench --help", "bench: time readers\r\n").outcome,
        Outcome::Pass
    );
    assert_eq!(
        said("--version", "cowitness 0.1.0\r\n").outcome,
        Outcome::Pass
    );
    is_damaged(&said("--version", "").outcome, "'--version' says nothing");
    let env = said("env", "#cowitness 1\r\n#command=env\r\n#kernel=6.1\r\n");
    assert_eq!(env.outcome, Outcome::Pass);
    assert_eq!(env.text, "$ env\n#cowitness 1\n#command=env\n#kernel=6.1\n");
    is_damaged(
        &said("env", "#cowitness 1\r\n#command=env\r\nnoise\r\n").outcome,
        "'noise'",
    );
    is_damaged(
        &said("env", "#kernel=6.1\r\n").outcome,
        "env does not begin with",
    );
}

#[test]
fn what_others_said_is_not_cut_before_its_cause() {
    let cause = "x".repeat(200) + ": ENOMEM";
    let failed = OLD
        .replacen("ok hole: ", &format!("fail hole: {cause} "), 1)
        .replacen("verdict: pass", "verdict: fail", 1)
        .replace("status 0", "status 4");
    let found = outcome(&failed, &Ending::Off);
    assert!(found.detail().contains(": ENOMEM"), "{}", found.detail());
}
