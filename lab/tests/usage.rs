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

#[test]
fn usage_errors_name_the_word_and_what_is_allowed() {
    let cases: [(&[&str], &str, &str); 30] = [
        (
            &[],
            "no command given; commands are summary, report, compare, matrix, kernels, \
             sizes",
            PROGRAM,
        ),
        (
            &["sumary", "-h"],
            "unknown command 'sumary'; commands are summary, report, compare, matrix, kernels, \
             sizes",
            PROGRAM,
        ),
        (
            &["-"],
            "unknown command '-'; commands are summary, report, compare, matrix, kernels, \
             sizes",
            PROGRAM,
        ),
        (
            &["\x1b[2J"],
            "unknown command '\\u{1b}[2J'; commands are summary, report, compare, matrix, kernels, \
             sizes",
            PROGRAM,
        ),
        (
            &["-x"],
            "unknown option '-x'; options are -h, --help, -V, --version",
            PROGRAM,
        ),
        (
            &["sizes"],
            "no --manifest given; '-' is standard input",
            SIZES,
        ),
        (
            &["sizes", "--avg=5K"],
            "'5K' for --avg is no power of two from 256 to 4194304 bytes, like 16K",
            SIZES,
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
        (&["report"], "no FILE given; '-' is standard input", REPORT),
        (&["report", "bench.csv", "-o"], "'-o' needs a value", REPORT),
        (
            &["report", "--out", "x"],
            "unknown option '--out'; options are -o, --partial, -h, --help, -V, --version",
            REPORT,
        ),
        (
            &["compare", "bench.csv"],
            "1 files given; two are compared, A and B",
            COMPARE,
        ),
        (
            &["compare", "a", "b", "--threshold=5%"],
            "'5%' for --threshold is no number from 0 to 1000",
            COMPARE,
        ),
        (
            &["compare", "a", "b", "--noise", "1001"],
            "'1001' for --noise is no number from 0 to 1000",
            COMPARE,
        ),
        (
            &["matrix", "bench"],
            "stray word 'bench'; options are --kernel, --arch, --vmlinuz, --appliance, --append, \
             --memory, --deadline, --jobs, --cache, --collect, -o, -h, --help, -V, --version; \
             words for the appliance come after --",
            MATRIX,
        ),
        (
            &["matrix", "--arch", "amd64"],
            "unknown CPU 'amd64' for --arch; CPUs are x86_64, aarch64",
            MATRIX,
        ),
        (&["matrix", "-o"], "'-o' needs a value", MATRIX),
        (
            &["matrix", "--deadline=0"],
            "'0' for --deadline is no number from 1 to 86400",
            MATRIX,
        ),
        (
            &["matrix", "--vmlinuz", "bzImage"],
            "--vmlinuz needs --arch: an image does not say what it is for",
            MATRIX,
        ),
        (
            &["matrix", "--appliance", "cowitness"],
            "--appliance needs --arch: a binary is for one CPU",
            MATRIX,
        ),
        (
            &["matrix", "--vmlinuz=a", "--arch=x86_64", "--kernel=b"],
            "--vmlinuz and --kernel name different kernels; give one of them",
            MATRIX,
        ),
        (
            &["matrix", "--append", "quiet -- bench"],
            "'--' in --append would end the kernel's own words; give them after -- here",
            MATRIX,
        ),
        (
            &["matrix", "--", "bench", "--label=rack 4"],
            "'--label=rack 4' cannot pass through a kernel's command line: no spaces, quotes or \
             control characters, ASCII only",
            MATRIX,
        ),
        (
            &["matrix", "--collect=fleet", "--kernel=6.1-x86_64"],
            "--collect boots nothing, so that '--kernel' means nothing with it",
            MATRIX,
        ),
        (
            &["matrix", "--vmlinuz=a", "--collect=fleet", "--arch=x86_64"],
            "--collect boots nothing, so that '--arch' means nothing with it",
            MATRIX,
        ),
        (
            &["matrix", "--collect=fleet", "--", "bench"],
            "--collect boots nothing, so that '--' means nothing with it",
            MATRIX,
        ),
        (
            &["kernels", "--kernel"],
            "'--kernel' needs a value",
            KERNELS,
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
