//! `compare`: what differs between two runs.

#[path = "../common/mod.rs"]
mod common;
mod effects;
mod emulated;
mod left_out;
mod pages;
mod rates;
#[path = "../seal/mod.rs"]
mod seal;
mod sides;

use common::{Ran, lab};
use cowitness_lab::scratch::Scratch;
use seal::resealed;

const BENCH: &str = include_str!("../data/bench.csv");
const PROBE: &str = include_str!("../data/probe.csv");
const SLOW: &str = include_str!("../data/slow.csv");

/// A run with these two as its sides.
fn compared(before: &str, after: &str) -> Ran {
    let folder = Scratch::new().unwrap();
    let file = folder.path().join("before.csv");
    std::fs::write(&file, before).unwrap();
    lab(&["compare", file.to_str().unwrap(), "-"], after.as_bytes())
}

/// `text` with one change, its checksum right, a moment later.
fn changed(text: &str, from: &str, to: &str) -> String {
    let other = text.replace(from, to);
    assert_ne!(other, text, "{from}");
    resealed(&other).replace("=17644394", "=17644395")
}

#[test]
fn a_file_is_the_same_as_itself() {
    for file in ["bench.csv", "published.csv", "probe.csv", "small.csv"] {
        let ran = lab(&["compare", "--threshold", "0", file, file], b"");
        assert_eq!(
            (ran.status, &*ran.stderr),
            (Some(0), ""),
            "{file}: {}",
            ran.stdout
        );
        assert!(ran.stdout.contains("\n  no change; "), "{}", ran.stdout);
        for word in ["| faster", "| slower", "| unresolved"] {
            assert!(!ran.stdout.contains(word), "{file}: {}", ran.stdout);
        }
    }
}

#[test]
fn an_answer_that_is_another_counts() {
    let ran = lab(&["compare", "probe.csv", "probe-refused.csv"], b"");
    assert_eq!(ran.status, Some(4));
    let want = "  changed: prot-none, page, proc: read in A, EIO in B\n  1 changed; compared: 0 \
                settings' split pages, 4 answers\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

/// As the appliance writes them: bytes came, and the row is no measurement.
#[test]
fn wrong_bytes_are_another_answer_than_the_right_ones() {
    let right = "proc,page,4096,4096,,ok,pfn,1,0,,,,,,,,,,,,,,,,,ok";
    for (row, want) in [
        (
            "proc,page,4096,4096,,wrong,pfn,1,0,,,,,,,,,,,,,,,,,skipped:wrong-bytes",
            "read in A, wrong bytes in B",
        ),
        (
            "proc,page,4096,4096,,zero,pfn,1,0,,,,,,,,,,,,,,,,,skipped:false-zeros",
            "read in A, false-zeros in B",
        ),
        (
            "proc,page,4096,0,EIO,,pfn,1,0,,,,,,,,,,,,,,,,,errno:EIO",
            "read in A, EIO in B",
        ),
    ] {
        let other = changed(PROBE, right, row).replace("=1764439500", "=1764439501");
        let ran = lab(&["compare", "probe.csv", "-"], other.as_bytes());
        let want = format!("changed: prot-none, page, proc: {want}\n");
        assert!(ran.stdout.contains(&want), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.status, Some(4), "{row}");
    }
    let skipped = |line: &str| match line.contains(",vmread,") {
        true => line.replace(",,ok", ",,skipped:wrong-bytes"),
        false => line.to_owned(),
    };
    let lines: Vec<String> = SLOW.lines().map(skipped).collect();
    let wrong = resealed(&(lines.join("\n") + "\n")).replace("=17644394", "=17644395");
    assert!(wrong.contains("skipped:wrong-bytes"), "{wrong}");
    for (files, side) in [(["slow.csv", "-"], "B"), (["-", "slow.csv"], "A")] {
        let ran = lab(&["compare", files[0], files[1]], wrong.as_bytes());
        assert_eq!(ran.status, Some(4), "{}{}", ran.stdout, ran.stderr);
        let want = format!(" cases gave wrong bytes in {side}");
        assert!(ran.stdout.contains(&want), "{}", ran.stdout);
    }
}
