//! Help, version and usage errors, to the byte.

mod common;

use common::{Ran, lab};

const PROGRAM: &str = "usage: cowitness-lab <command> [options]";
const SUMMARY: &str = "usage: cowitness-lab summary [options] FILE...";

#[test]
fn help_and_version_go_to_stdout() {
    let version = concat!("cowitness-lab ", env!("CARGO_PKG_VERSION"), "\n");
    let program = include_str!("data/help.txt");
    let summary = include_str!("data/help-summary.txt");
    let cases: [(&[&str], &str); 6] = [
        (&["-h"], program),
        (&["--help"], program),
        (&["summary", "--help"], summary),
        (&["summary", "absent.csv", "-h"], summary),
        (&["--version"], version),
        (&["summary", "-V"], version),
    ];
    for (arguments, stdout) in cases {
        let ran = lab(arguments, b"");
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{arguments:?}");
        assert_eq!(ran.stdout, stdout, "{arguments:?}");
    }
}

#[test]
fn usage_errors_name_the_word_and_what_is_allowed() {
    let cases: [(&[&str], &str, &str); 9] = [
        (&[], "no command given; commands are summary", PROGRAM),
        (
            &["sumary", "-h"],
            "unknown command 'sumary'; commands are summary",
            PROGRAM,
        ),
        (&["-"], "unknown command '-'; commands are summary", PROGRAM),
        (
            &["\x1b[2J"],
            "unknown command '\\u{1b}[2J'; commands are summary",
            PROGRAM,
        ),
        (
            &["-x"],
            "unknown option '-x'; options are -h, --help, -V, --version",
            PROGRAM,
        ),
        (
            &["summary"],
            "no FILE given; '-' is standard input",
            SUMMARY,
        ),
        (
            &["summary", "--partail", "bench.csv"],
            "unknown option '--partail'; options are --partial, -h, --help, -V, --version",
            SUMMARY,
        ),
        (
            &["summary", "bench.csv", "-p"],
            "unknown option '-p'; options are --partial, -h, --help, -V, --version",
            SUMMARY,
        ),
        (
            &["summary", "--partial=yes", "bench.csv"],
            "'--partial' takes no value",
            SUMMARY,
        ),
    ];
    for (arguments, problem, usage) in cases {
        let want = Ran {
            status: Some(2),
            stdout: String::new(),
            stderr: format!("cowitness-lab: error: {problem}\n{usage}\n"),
        };
        assert_eq!(lab(arguments, b""), want, "{arguments:?}");
    }
}
