//! Nothing is counted twice, and no command is given that does not run.

mod common;
mod seal;

use common::{Ran, lab};
use seal::resealed;

const BENCH: &str = include_str!("data/bench.csv");
const PROBE: &str = include_str!("data/probe.csv");

/// What all three commands say of an input: `report`, `compare` with another file, `summary`.
fn said(text: &str) -> [Ran; 3] {
    let commands: [&[&str]; 3] = [
        &["report", "-o", "-", "-"],
        &["compare", "bench.csv", "-"],
        &["summary", "-"],
    ];
    commands.map(|arguments| lab(arguments, text.as_bytes()))
}

fn refused(text: &str, why: &str) {
    for ran in said(text) {
        assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
        assert!(ran.stderr.contains(why), "{}", ran.stderr);
    }
}

#[test]
fn the_same_rows_are_refused_whatever_their_notes_say() {
    let other = BENCH.replace("#started_unix=1764439200", "#started_unix=1764439299");
    assert_ne!(other, BENCH);
    for twice in [BENCH.repeat(2), format!("{BENCH}{other}")] {
        refused(
            &twice,
            "standard input, stream 2 has the same rows as standard input, stream 1",
        );
    }
}

#[test]
fn a_case_that_a_stream_repeats_is_refused() {
    let row = BENCH
        .lines()
        .find(|line| line.starts_with("bench,"))
        .unwrap();
    let exact = resealed(&BENCH.replacen(row, &format!("{row}\n{row}"), 1));
    refused(&exact, "the same case for the second time");
    // Another time does not make another case of it.
    let edited = row
        .replace(",500000,", ",500001,")
        .replace(",2000.00,", ",1999.99,");
    let edited = edited.replacen(",1999.99,", ",2000.00,", 1);
    let slower = resealed(&BENCH.replacen(row, &format!("{row}\n{edited}"), 1));
    refused(&slower, "the same case for the second time");
}

/// Two machines may well give the same answers, which nobody adds up.
#[test]
fn answers_that_are_the_same_are_no_second_count() {
    let other = PROBE.replace("#started_unix=1764439500", "#started_unix=1764439599");
    assert_ne!(other, PROBE);
    let ran = lab(
        &["report", "-o", "-", "-"],
        format!("{PROBE}{other}").as_bytes(),
    );
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
}

#[test]
fn rows_of_another_machine_than_their_notes_are_refused() {
    let noted = BENCH.replace("#command=", "#kernel=6.2.0\n#command=");
    refused(
        &noted,
        "'kernel' is '6.1.0-test' here, and noted as '6.2.0'",
    );
}

#[test]
fn rates_and_times_that_do_not_belong_together_are_refused() {
    for (from, to, why) in [
        (",2000.00,", ",2000.01,", "are 2000.00 MiB/s, not 2000.01"),
        (",400000,400000,", ",400001,400000,", "for the fastest pass"),
        (
            ",2000000,400000,400000,",
            ",2000000,400000,2000001,",
            "for the slowest pass",
        ),
        (
            ",pfn,256,256,",
            ",pfn,256,255,",
            "256 pages tracked, 255 shared",
        ),
    ] {
        assert!(BENCH.contains(from), "{from}");
        refused(&resealed(&BENCH.replace(from, to)), why);
    }
}

#[test]
fn a_boot_line_that_speaks_of_streams_is_noise() {
    let log = format!("boot: waiting for #cowitness noise\n#cowitness stream follows\n{BENCH}");
    let ran = lab(&["summary", "-"], log.as_bytes());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    assert_eq!(ran.stdout, lab(&["summary", "bench.csv"], b"").stdout);
}
