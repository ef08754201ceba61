//! Packed inputs that are not whole: what is lost is said, and nothing is taken unproved.

mod common;
mod seal;

use common::lab;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const BENCH: &str = include_str!("data/bench.csv");
const SLOW: &str = include_str!("data/slow.csv");

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A stream of another machine than that of `bench.csv`.
fn other() -> String {
    let other = SLOW.replace("rack 4, ", "rack 5, ");
    seal::resealed(&other)
}

fn two() -> (Vec<u8>, usize) {
    let first = packed(BENCH);
    let end = first.len();
    ([first, packed(&other())].concat(), end)
}

fn lost(input: &[u8], what: &str, hint: &str) {
    let ran = lab(&["summary", "-"], input);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{what}");
    assert!(ran.stderr.contains(what), "{what}: {}", ran.stderr);
    assert!(ran.stderr.contains(hint), "{what}: {}", ran.stderr);
    for command in [
        &["summary", "--partial", "-"][..],
        &["report", "--partial", "-o", "-", "-"],
    ] {
        let ran = lab(command, input);
        assert_eq!(ran.status, Some(0), "{what}: {}", ran.stderr);
        let said = format!("standard input: {what}; what may have followed is missing");
        assert!(ran.stdout.contains(&said), "{said}: {}", ran.stdout);
        assert!(ran.stderr.contains(&said), "{said}: {}", ran.stderr);
        assert!(ran.stdout.contains("Linux 6.1.0"), "{what}: {}", ran.stdout);
    }
}

#[test]
fn members_follow_each_other_and_zeros_are_padding() {
    let (mut both, _) = two();
    for _ in 0..2 {
        let ran = lab(&["summary", "-"], &both);
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
        assert!(ran.stdout.contains("rack 5"), "{}", ran.stdout);
        both.extend([0; 100_000]);
    }
}

/// Cut in the second member's header, and in its data before its stream begins.
#[test]
fn a_member_that_is_cut_is_missed() {
    let (both, end) = two();
    for keep in [1, 9, 12] {
        lost(
            &both[..end + keep],
            "the packed data ends too early",
            "hint: measure or copy it again; --partial",
        );
    }
    // Its checksum and its length come last.
    let first = packed(BENCH);
    lost(
        &first[..first.len() - 3],
        "the packed data ends too early",
        "--partial takes the whole rows",
    );
}

#[test]
fn what_lies_behind_is_neither_taken_nor_passed_over() {
    let first = packed(BENCH);
    for tail in [
        &b"garbage"[..],
        b"\x1f\x8c, and more than a header",
        b"\0\0\0x",
    ] {
        lost(
            &[&first, tail].concat(),
            "behind the packed data lies something that is neither packed nor padding",
            "take what lies behind it off",
        );
    }
}

/// Of what is damaged the streams are kept that were whole before it; rows without the checksum
/// that would prove them are not.
#[test]
fn damage_keeps_the_streams_that_were_whole() {
    let (mut both, end) = two();
    let last = both.len() - 8;
    both[last] ^= 1;
    lost(
        &both,
        "the checksum of the packed data does not match",
        "--partial takes the streams that end before the damage",
    );
    let (mut both, _) = two();
    for byte in &mut both[end + 12..end + 60] {
        *byte = 0xff;
    }
    let ran = lab(&["summary", "--partial", "-"], &both);
    assert!(!ran.stdout.contains("rack 5"), "{}", ran.stdout);
    lost(&both, "the packed data are damaged", "the damage");

    let mut alone = packed(&other());
    for byte in &mut alone[12..60] {
        *byte = 0xff;
    }
    let ran = lab(&["summary", "--partial", "-"], &alone);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{}", ran.stderr);
}
