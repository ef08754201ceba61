//! What makes a side: one machine, measured as the other was.

use super::common::lab;
use super::{BENCH, PROBE};

/// As the first process of a machine, probe switches on what its kinds need, and notes that: the
/// default streams of the matrix are of one machine.
#[test]
fn streams_of_one_machine_are_compared_whatever_probe_has_set_up() {
    for console in ["consoles/6.12-x86_64.log", "consoles/5.10-aarch64.log"] {
        let ran = lab(&["compare", console, console], b"");
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{console}");
        assert!(ran.stdout.contains("\n  no change; "), "{}", ran.stdout);
        let both = "compared: 2 settings' split pages, ";
        assert!(ran.stdout.contains(both), "{}", ran.stdout);
        assert!(!ran.stdout.contains(" 0 answers"), "{}", ran.stdout);
    }
    // What probe does not switch on makes another machine all the same.
    let text = include_str!("../data/consoles/6.12-x86_64.log");
    let bench = text.find("#aslr=2").unwrap();
    let other = format!("{}#aslr=0{}", &text[..bench], &text[bench + 7..]);
    let ran = lab(
        &["compare", "-", "consoles/6.12-x86_64.log"],
        other.as_bytes(),
    );
    assert_eq!(ran.status, Some(3), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("settings: aslr is '0' in "),
        "{}",
        ran.stderr
    );
}

#[test]
fn sides_that_were_not_measured_alike_are_refused_and_what_differs_is_named() {
    let ran = lab(&["compare", "bench.csv", "larger.csv"], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert_eq!(
        ran.stderr,
        "cowitness-lab: error: mismatched settings: option_mb is '1' in A and '2' in B\n\
         cowitness-lab: hint: measure both alike, or say --allow-mismatch\n"
    );
    let ran = lab(
        &["compare", "--allow-mismatch", "bench.csv", "larger.csv"],
        b"",
    );
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    assert!(
        ran.stdout
            .contains("\ndiffers: option_mb is '1' in A and '2' in B\n"),
        "{}",
        ran.stdout
    );
    // One pair has no interval.
    assert!(
        ran.stdout.contains("| too few cases | unresolved |"),
        "{}",
        ran.stdout
    );

    let other = lab(&["compare", "bench.csv", "published.csv"], b"");
    assert_eq!(other.status, Some(3));
    for want in [
        "CPU is 'x86_64' in A and 'aarch64' in B",
        "kernel series is '6.1' in A and '6.17' in B",
    ] {
        assert!(other.stderr.contains(want), "{}", other.stderr);
    }
    let pages = BENCH.replace("x86_64,4096,", "x86_64,16384,");
    let pages = pages.replace("crc32=", "crc32=0");
    let damaged = lab(&["compare", "bench.csv", "-"], pages.as_bytes());
    assert_eq!((damaged.status, &*damaged.stdout), (Some(3), ""));
}

#[test]
fn a_side_is_one_machine() {
    let ran = lab(&["compare", "console.log", "bench.csv"], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert!(
        ran.stderr
            .contains("console.log, stream 1 and console.log, stream 2 are of different machines"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_makes_two_of_one_side_is_named_and_is_no_command() {
    let machine = "#kernel=6.1.0-test\n#thp_enabled=";
    let bench = BENCH.replace("#command=", &format!("{machine}always\n#command="));
    let probe = PROBE.replace("#command=", &format!("{machine}never\n#command="));
    let ran = lab(&["compare", "-", "bench.csv"], (bench + &probe).as_bytes());
    assert_eq!(ran.status, Some(3));
    let want = "thp_enabled is 'always' in the first and 'never' in the second";
    assert!(ran.stderr.contains(want), "{}", ran.stderr);
}

#[test]
fn sides_without_anything_in_common_are_no_comparison() {
    let ran = lab(&["compare", "bench.csv", "probe.csv"], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert!(ran.stderr.contains("nothing to compare"), "{}", ran.stderr);
}
