//! `summary` on sound inputs and on truncated ones.

mod common;
mod seal;

use common::{Ran, lab};
use seal::resealed;

const BENCH: &str = include_str!("data/bench.csv");
const BENCH_SAID: &str = include_str!("data/bench.txt");

fn fine(arguments: &[&str], input: &str) -> String {
    let ran = lab(arguments, input.as_bytes());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{arguments:?}");
    ran.stdout
}

#[test]
fn one_run() {
    assert_eq!(fine(&["summary", "bench.csv"], ""), BENCH_SAID);
    assert_eq!(fine(&["summary", "-"], BENCH), BENCH_SAID);
    assert_eq!(
        fine(&["summary", "-"], &BENCH.replace('\n', "\r\n")),
        BENCH_SAID
    );
    assert_eq!(fine(&["summary", "--partial", "bench.csv"], ""), BENCH_SAID);
}

#[test]
fn machines_are_summarised_one_by_one() {
    let said = fine(&["summary", "console.log"], "");
    let parts: Vec<&str> = said.split("\n\n==").collect();
    let [first, second] = *parts else {
        panic!("{said}");
    };
    let heading = "== rack 4, \"left\": console.log\n\
                   cowitness bench: Linux 6.1.0-test, x86_64, 4 KiB pages: 2 of 2 cases ok\n";
    assert!(first.starts_with(heading), "{first}");
    let heading = " console.log\n\
                   cowitness bench: Linux 6.18.44, aarch64, 16 KiB pages: 2 of 2 cases ok\n";
    assert!(second.starts_with(heading), "{second}");
}

#[test]
fn runs_of_one_machine_are_summarised_together() {
    let together = fine(&["summary", "bench.csv", "again.csv"], "");
    for want in [
        "4 KiB pages: 20 of 20 cases ok\n",
        "proc                   0 of 2560 tracked pages",
        "warm  vmread 1.25x faster than proc [1.25, 1.25], in 10 of 10 pairs\n",
    ] {
        assert!(together.contains(want), "{want}\nnot in\n{together}");
    }
    let concatenated = BENCH.to_owned() + include_str!("data/again.csv");
    assert_eq!(fine(&["summary", "-"], &concatenated), together);
}

#[test]
fn runs_that_were_not_measured_alike_are_not() {
    let refused = |problem: &str, hint| Ran {
        status: Some(3),
        stdout: String::new(),
        stderr: format!("cowitness-lab: error: {problem}\ncowitness-lab: hint: {hint}\n"),
    };
    assert_eq!(
        lab(&["summary", "bench.csv", "larger.csv"], b""),
        refused(
            "mismatched settings: 'option_mb' is '2' in larger.csv, stream 1 and '1' in \
             bench.csv, stream 1; label and kernel are the same",
            "summarise them one by one, or give each run its --label",
        )
    );
    assert_eq!(
        lab(&["summary", "bench.csv", "-"], BENCH.as_bytes()),
        refused(
            "standard input, stream 1 has the same rows as bench.csv, stream 1",
            "give every run once",
        )
    );
}

#[test]
fn truncated_streams_are_taken_when_asked_for() {
    let cut = BENCH.find("vmread,65536,6").unwrap();
    let ran = lab(&["summary", "--partial", "-"], &BENCH.as_bytes()[..cut]);
    assert_eq!(ran.status, Some(0));
    assert_eq!(
        ran.stderr,
        "cowitness-lab: warning: standard input, stream 1, line 19: truncated: no whole '#end' \
         line, so no checksum; 11 of 12 rows are there; taken as far as it goes\n"
    );
    let mut lines = ran.stdout.lines();
    assert_eq!(
        lines.next(),
        Some("partial: the input is truncated or damaged; these are only the rows that are there")
    );
    assert!(
        lines.next().unwrap().ends_with("11 of 12 cases ok"),
        "{}",
        ran.stdout
    );
}

#[test]
fn more_split_than_there_are_is_no_summary() {
    let many = resealed(&BENCH.replacen(",256,256,0,256,", ",256,256,0,999999,", 1));
    let ran = lab(&["summary", "-"], many.as_bytes());
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    let wanted = "the row contradicts itself: 999999 pages split of 256 tracked";
    assert!(ran.stderr.contains(wanted), "{}", ran.stderr);
}

#[test]
fn a_truncated_stream_does_not_hide_the_next() {
    let cut = BENCH.find("vmread,65536,6").unwrap();
    for glue in ["", "\n", "\nBUG: kernel NULL pointer dereference\n\n"] {
        // Another run: it began a second later.
        let next = include_str!("data/console.log").replace("=1764439200", "=1764439201");
        let input = [&BENCH[..cut], glue, &next].concat();
        let ran = lab(&["summary", "--partial", "-"], input.as_bytes());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
        assert!(
            ran.stdout
                .contains("x86_64, 4 KiB pages: 13 of 14 cases ok"),
            "{}",
            ran.stdout
        );
        assert!(
            ran.stdout
                .contains("aarch64, 16 KiB pages: 2 of 2 cases ok"),
            "{}",
            ran.stdout
        );
    }
}

#[test]
fn a_stream_cut_before_its_first_row_says_so() {
    let cut = BENCH.find("bench,").unwrap();
    let ran = lab(&["summary", "--partial", "-"], &BENCH.as_bytes()[..cut]);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert_eq!(
        ran.stderr,
        "cowitness-lab: warning: standard input, stream 1, line 7: truncated: no whole '#end' \
         line, so no checksum; 0 of 12 rows are there; taken as far as it goes\n\
         cowitness-lab: error: no row to summarise\n"
    );
}

/// Nothing tells which machine its rows were to be of, so the whole output says so.
#[test]
fn rows_that_never_came_are_counted_beside_a_whole_stream() {
    let cut = BENCH.find("bench,").unwrap();
    let input = [BENCH, &BENCH[..cut]].concat();
    let ran = lab(&["summary", "--partial", "-"], input.as_bytes());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let want = "partial: 12 rows of streams without a row are missing\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

/// Its rows would count twice.
#[test]
fn another_cut_of_the_same_run_is_refused() {
    let cut = BENCH.find("vmread,65536,6").unwrap();
    for input in [[BENCH, &BENCH[..cut]], [&BENCH[..cut], BENCH]] {
        let ran = lab(&["summary", "--partial", "-"], input.concat().as_bytes());
        assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("has the same rows as"),
            "{}",
            ran.stderr
        );
    }
}

/// By what it holds, not by its name.
#[test]
fn a_matrix_table_is_passed_over_whatever_it_is_called() {
    let table = b"record,machine,kernel\nmatrix,6.1-x86_64,6.1.0\n";
    let ran = lab(&["summary", "-", "bench.csv"], table);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("passed over"), "{}", ran.stderr);
    let folder = std::env::temp_dir().join(format!("cowitness-named-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("matrix.csv");
    std::fs::write(&file, include_str!("data/bench.csv")).unwrap();
    let ran = lab(&["summary", file.to_str().unwrap()], b"");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    assert_eq!(ran.stdout, include_str!("data/bench.txt"));
}
