//! What is not compared is listed.

use super::common::lab;
use super::seal::resealed;
use super::{PROBE, SLOW, changed};

/// What nobody knows of a side is no change of it.
#[test]
fn what_is_unknown_is_not_compared_and_listed() {
    let lost = changed(SLOW, "500.00,3125.00,pfn", "500.00,3125.00,none");
    let ran = lab(&["compare", "slow.csv", "-"], lost.as_bytes());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let want = "  no change; compared: 1 settings' split pages, 0 answers\n  not compared: \
                contiguous 64 KiB vmread: split pages unknown in B\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);

    let skipped = PROBE.replace(
        "proc,page,4096,4096,,ok,pfn,1,0,,,,,,,,,,,,,,,,,ok",
        "proc,page,4096,,,,none,,,,,,,,,,,,,,,,,,,skipped:no-proc",
    );
    let skipped = resealed(&skipped).replace("=1764439500", "=1764439501");
    let ran = lab(&["compare", "probe.csv", "-"], skipped.as_bytes());
    assert_eq!(ran.status, Some(0), "{}{}", ran.stdout, ran.stderr);
    let want = "  not compared: prot-none, page, proc: unknown in B\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

#[test]
fn no_line_is_dropped_in_silence() {
    let cold = changed(
        SLOW,
        ",5,2000000,1600000,320000,320000,500.00,3125.00,",
        ",0,2000000,,,,500.00,,",
    );
    let ran = lab(&["compare", "slow.csv", "-"], cold.as_bytes());
    let want = "  not compared: contiguous 64 KiB warm vmread: no rate in B\n";
    assert!(ran.stdout.contains(want), "{}{}", ran.stdout, ran.stderr);

    let fewer: Vec<&str> = PROBE
        .lines()
        .filter(|line| !line.contains("hole,proc"))
        .collect();
    let fewer = resealed(&(fewer.join("\n") + "\n")).replace("=1764439500", "=1764439501");
    for (files, side) in [(["probe.csv", "-"], "A"), (["-", "probe.csv"], "B")] {
        let ran = lab(&["compare", files[0], files[1]], fewer.as_bytes());
        let want = format!("  not compared: hole, cross, proc only in {side}\n");
        assert!(ran.stdout.contains(&want), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn what_is_cut_is_said_on_standard_output() {
    let cut: Vec<&str> = SLOW.lines().take(11).collect();
    let ran = lab(
        &["compare", "--partial", "slow.csv", "-"],
        (cut.join("\n") + "\n").as_bytes(),
    );
    let want = "partial: B: standard input, stream 1: cut after 3 of 20 rows\n";
    assert!(ran.stdout.contains(want), "{}{}", ran.stdout, ran.stderr);
}
