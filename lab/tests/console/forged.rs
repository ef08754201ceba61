//! Consoles that were changed, with counts and checksums made right again: what no checksum
//! shows.

use super::help::{COMMANDS, EXE_CRC32, OLD, is_damaged, judged_as};
use super::seal::resealed;
use cowitness_lab::guest::Ending;
use cowitness_lab::matrix::outcome::Outcome;

/// What is found of `OLD` after `change`, with counts and checksums made right again.
fn forged(change: impl Fn(&str) -> String) -> Outcome {
    let console = resealed(&change(OLD));
    let line = COMMANDS.join(" then ");
    judged_as(&console, &Ending::Off, &line, Some(EXE_CRC32)).outcome
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
fn a_number_is_the_same_with_zeros_in_front() {
    let found = |option: &str| {
        let asked = format!("{} {option}", COMMANDS[0]);
        let console = OLD.replacen(COMMANDS[0], &asked, 1);
        let line = COMMANDS.join(" then ").replacen(COMMANDS[0], &asked, 1);
        judged_as(&console, &Ending::Off, &line, Some(EXE_CRC32)).outcome
    };
    assert!(OLD.contains("#option_mb=1\r\n"));
    assert_eq!(found("--mb=001"), Outcome::Pass);
    is_damaged(&found("--mb=002"), "its note 'option_mb' is 1, not 002");
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
    let foreign = |console: &str| console.replacen("#exe_crc32=9e14c77a", "#exe_crc32=9e14c77b", 1);
    is_damaged(
        &forged(foreign),
        "bench: its note 'exe_crc32' is 9e14c77b, not 9e14c77a",
    );
    let other = |console: &str| console.replacen("#option_mb=1", "#option_mb=2", 1);
    is_damaged(&forged(other), "bench: its note 'option_mb' is 2, not 1");
}

#[test]
fn an_empty_label_is_none() {
    let line = COMMANDS.join(" then ").replacen("-q", "-q --label=", 1);
    let console = OLD.replacen(COMMANDS[0], &format!("{} --label=", COMMANDS[0]), 1);
    assert_eq!(
        judged_as(&console, &Ending::Off, &line, None).outcome,
        Outcome::Pass
    );
    let named = line.replacen("--label=", "--label=rack", 1);
    let console = console.replacen("--label=", "--label=rack", 1);
    let found = judged_as(&console, &Ending::Off, &named, None).outcome;
    is_damaged(&found, "bench: its note 'label' is none, not rack");
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
            "stream 2: 71 rows, where 8 questions to 9 readers make 72",
        ),
        (",none,", "stream 2: 8 readers, its options speak of 9"),
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
    let lost = "2 of 74 rows lost, the first is proc's, without evidence of sharing";
    assert_eq!(none.outcome, Outcome::Invalid(lost.to_owned()));
}
