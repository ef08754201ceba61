//! Help, version and usage errors, to the byte.

mod common;

use common::{Ran, lab};

const PROGRAM: &str = "usage: cowitness-lab <command> [options]";
const SUMMARY: &str = "usage: cowitness-lab summary [options] FILE...";
const REPORT: &str = "usage: cowitness-lab report [options] FILE...";
const COMPARE: &str = "usage: cowitness-lab compare [options] A B";
const MATRIX: &str = "usage: cowitness-lab matrix [options] [-- APPLIANCE ARGS...]";
const KERNELS: &str = "usage: cowitness-lab kernels [options]";
const SIZES: &str = "usage: cowitness-lab sizes --manifest FILE [options]";

#[test]
fn help_and_version_go_to_stdout() {
    let version = concat!("cowitness-lab ", env!("CARGO_PKG_VERSION"), "\n");
    let program = include_str!("data/help.txt");
    let summary = include_str!("data/help-summary.txt");
    let report = include_str!("data/help-report.txt");
    let compare = include_str!("data/help-compare.txt");
    let matrix = include_str!("data/help-matrix.txt");
    let kernels = include_str!("data/help-kernels.txt");
    let sizes = include_str!("data/help-sizes.txt");
    let cases: [(&[&str], &str); 11] = [
        (&["-h"], program),
        (&["--help"], program),
        (&["summary", "--help"], summary),
        (&["summary", "absent.csv", "-h"], summary),
        (&["report", "-o", "x.html", "-h"], report),
        (&["compare", "absent.csv", "--help"], compare),
        (&["matrix", "--arch=aarch64", "--help"], matrix),
        (&["kernels", "-h"], kernels),
        (&["sizes", "--manifest=absent", "-h"], sizes),
        (&["--version"], version),
        (&["summary", "-V"], version),
    ];
    for (arguments, stdout) in cases {
        let ran = lab(arguments, b"");
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{arguments:?}");
        assert_eq!(ran.stdout, stdout, "{arguments:?}");
    }
}

/// That each of these lines is refused, with one line that names the word and what is allowed.
fn refused(usage: &str, lines: &[(&[&str], &str)]) {
    for (arguments, problem) in lines {
        let want = Ran {
            status: Some(2),
            stdout: String::new(),
            stderr: format!("cowitness-lab: error: {problem}\n{usage}\n"),
        };
        assert_eq!(lab(arguments, b""), want, "{arguments:?}");
    }
}

#[test]
fn the_command_has_to_be_one_there_is() {
    let commands = "commands are summary, report, compare, matrix, kernels, sizes";
    refused(
        PROGRAM,
        &[
            (&[], &format!("no command given; {commands}")),
            (
                &["sumary", "-h"],
                &format!("unknown command 'sumary'; {commands}"),
            ),
            (&["-"], &format!("unknown command '-'; {commands}")),
            (
                &["\x1b[2J"],
                &format!("unknown command '\\u{{1b}}[2J'; {commands}"),
            ),
            (
                &["-x"],
                "unknown option '-x'; options are -h, --help, -V, --version",
            ),
        ],
    );
}

#[test]
fn summary_wants_files() {
    refused(
        SUMMARY,
        &[
            (&["summary"], "no FILE given; '-' is standard input"),
            (
                &["summary", "--partail", "bench.csv"],
                "unknown option '--partail'; options are --partial, -h, --help, -V, --version",
            ),
            (
                &["summary", "bench.csv", "-p"],
                "unknown option '-p'; options are --partial, -h, --help, -V, --version",
            ),
            (
                &["summary", "--partial=yes", "bench.csv"],
                "'--partial' takes no value",
            ),
        ],
    );
}

#[test]
fn report_wants_files_and_a_place_for_the_page() {
    refused(
        REPORT,
        &[
            (&["report"], "no FILE given; '-' is standard input"),
            (&["report", "bench.csv", "-o"], "'-o' needs a value"),
            (
                &["report", "--out", "x"],
                "unknown option '--out'; options are -o, --partial, -h, --help, -V, --version",
            ),
        ],
    );
}

#[test]
fn compare_wants_two_files_and_numbers_in_range() {
    refused(
        COMPARE,
        &[
            (
                &["compare", "bench.csv"],
                "1 files given; two are compared, A and B",
            ),
            (
                &["compare", "a", "b", "--threshold=5%"],
                "'5%' for --threshold is no number from 0 to 1000",
            ),
            (
                &["compare", "a", "b", "--noise", "1001"],
                "'1001' for --noise is no number from 0 to 1000",
            ),
        ],
    );
}

#[test]
fn matrix_wants_options_that_go_together() {
    refused(
        MATRIX,
        &[
            (
                &["matrix", "bench"],
                "stray word 'bench'; options are --kernel, --arch, --vmlinuz, --appliance, --append, \
                 --memory, --deadline, --jobs, --cache, --collect, -o, -h, --help, -V, --version; \
                 words for the appliance come after --",
            ),
            (
                &["matrix", "--arch", "amd64"],
                "unknown CPU 'amd64' for --arch; CPUs are x86_64, aarch64",
            ),
            (&["matrix", "-o"], "'-o' needs a value"),
            (
                &["matrix", "--deadline=0"],
                "'0' for --deadline is no number from 1 to 86400",
            ),
            (
                &["matrix", "--vmlinuz", "bzImage"],
                "--vmlinuz needs --arch: an image does not say what it is for",
            ),
            (
                &["matrix", "--appliance", "cowitness"],
                "--appliance needs --arch: a binary is for one CPU",
            ),
            (
                &["matrix", "--vmlinuz=a", "--arch=x86_64", "--kernel=b"],
                "--vmlinuz and --kernel name different kernels; give one of them",
            ),
            (
                &["matrix", "--append", "quiet -- bench"],
                "'--' in --append would end the kernel's own words; give them after -- here",
            ),
            (
                &["matrix", "--", "bench", "--label=rack 4"],
                "'--label=rack 4' cannot pass through a kernel's command line: no spaces, quotes or \
                 control characters, ASCII only",
            ),
        ],
    );
}

#[test]
fn collect_boots_nothing() {
    refused(
        MATRIX,
        &[
            (
                &["matrix", "--collect=fleet", "--kernel=6.1-x86_64"],
                "--collect boots nothing, so that '--kernel' means nothing with it",
            ),
            (
                &["matrix", "--vmlinuz=a", "--collect=fleet", "--arch=x86_64"],
                "--collect boots nothing, so that '--arch' means nothing with it",
            ),
            (
                &["matrix", "--collect=fleet", "--", "bench"],
                "--collect boots nothing, so that '--' means nothing with it",
            ),
        ],
    );
}

#[test]
fn kernels_wants_names() {
    refused(
        KERNELS,
        &[(&["kernels", "--kernel"], "'--kernel' needs a value")],
    );
}

#[test]
fn sizes_wants_a_manifest_and_powers_of_two() {
    refused(
        SIZES,
        &[
            (&["sizes"], "no --manifest given; '-' is standard input"),
            (
                &["sizes", "--avg=5K"],
                "'5K' for --avg is no power of two from 256 to 4194304 bytes, like 16K",
            ),
        ],
    );
}
