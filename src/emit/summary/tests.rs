//! The summary of hand-made rows, whose figures can be checked by head.

use super::*;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

impl Sink for Vec<u8> {
    type Error = core::convert::Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Self::Error> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

const MIB: u64 = 1 << 20;

/// A case that reads 1 MiB cold in `cold_us` and 5 times warm in `warm_us` each.
fn case(method: &str, repeat: u64, cold_us: u64, warm_us: u64, split: u64) -> Sample {
    let name = |text| Name::new(text).unwrap();
    Sample {
        source: 0,
        layout: name("contiguous"),
        pages: name("small"),
        segment_pages: None,
        block_bytes: 65536,
        method: name(method),
        repeat,
        bytes_per_pass: Some(MIB),
        cold_ns: Some(cold_us * 1000),
        warm_ns: Some(5 * warm_us * 1000),
        warm_passes: 5,
        evidence: name("pfn"),
        tracked_pages: Some(256),
        split_pages: Some(split),
        reader_minflt_warm: Some(0),
        first_write_ns: None,
        not_pinned: Name::default(),
        outcome: Outcome::Ok,
    }
}

fn summary(samples: &mut [Sample], intended: u64) -> String {
    let heading = Heading {
        emulated: false,
        kernel: "6.1.0",
        arch: "aarch64",
        page_bytes: 4096,
        intended,
    };
    let mut text = Vec::new();
    let mut scratch = vec![0; samples.len() * SCRATCH_PER_SAMPLE];
    write(&mut text, &heading, samples, &mut scratch).unwrap();
    String::from_utf8(text).unwrap()
}

/// 10 pairs: proc 500 us cold and 400 us warm; vmread 2000 us cold and 320 us warm. So
/// cold proc is 4 times as fast, warm vmread 1.25 times; 1 MiB in 500 us is 2000 MiB/s.
fn ten_pairs() -> Vec<Sample> {
    let pairs = (1..=10).flat_map(|repeat| {
        [
            case("vmread", repeat, 2000, 320, 256),
            case("proc", repeat, 500, 400, 0),
        ]
    });
    pairs.collect()
}

#[test]
fn says_who_split_and_who_was_faster() {
    let text = summary(&mut ten_pairs(), 20);
    for want in [
        "cowitness bench: Linux 6.1.0, aarch64, 4 KiB pages: 20 of 20 cases ok\n",
        "  proc                   0 of 2560 tracked pages, 0.00 %, in 10 cases\n",
        "  vmread              2560 of 2560 tracked pages, 100.00 %, in 10 cases\n",
        "  contiguous      64 KiB  cold  proc 4.00x faster than vmread [4.00, 4.00], in 10 of 10 pairs\n",
        "  contiguous      64 KiB  warm  vmread 1.25x faster than proc [1.25, 1.25], in 10 of 10 pairs\n",
        // The exact coverage of the 2nd to the 9th of 10: 1 - 22/1024 = 0.97851.
        "at least 97.85 % confidence",
        "  contiguous      64 KiB  cold  proc          10    2000    2000    2000    2000    2000    2000         0\n",
        "  contiguous      64 KiB  warm  vmread        10    3125    3125    3125    3125    3125    3125         0\n",
    ] {
        assert!(text.contains(want), "{want}\nnot in\n{text}");
    }
}

#[test]
fn a_difference_within_the_noise_is_not_resolved() {
    let mut samples = ten_pairs();
    for one in &mut samples {
        // Half of the pairs one way, half the other.
        let slower = (one.method.as_str() == "proc") == one.repeat.is_multiple_of(2);
        one.cold_ns = Some(if slower { 600_000 } else { 500_000 });
    }
    let text = summary(&mut samples, 20);
    assert!(
        text.contains(
            "cold  vmread against proc: 1.02x [0.83, 1.20], not resolved, in 5 of 10 pairs\n"
        ),
        "{text}"
    );
}

/// 64 KiB at 2500 MiB/s warm, 256 KiB at 2600, 1 MiB at 2604: within 5 % of each other; 4 KiB
/// at 1000.
#[test]
fn the_smallest_block_that_is_about_as_good_is_recommended() {
    let mut samples = Vec::new();
    for (block_bytes, warm_us) in [(4096, 1000), (65536, 400), (262_144, 385), (1 << 20, 384)] {
        let blocks = (1..=3).map(|repeat| Sample {
            block_bytes,
            ..case("vmread", repeat, 2000, warm_us, 0)
        });
        samples.extend(blocks);
    }
    let text = summary(&mut samples, 12);
    let want =
        "  contiguous    vmread            64 KiB  2500 MiB/s; best 2604 at 1 MiB of 4 blocks\n";
    assert!(text.contains(want), "{text}");
    let mut two = samples.split_off(9);
    two.extend(samples.drain(..3));
    let text = summary(&mut two, 6);
    assert!(
        text.contains("1 MiB  2604 MiB/s, the best of 2 blocks\n"),
        "{text}"
    );
    assert!(!summary(&mut ten_pairs(), 20).contains("Block to use"));
}

/// Warm, 1 MiB in 383 us is 2610.97 MiB/s, and in 1.25 s 0.80.
#[test]
fn the_recommended_blocks_rate_is_rounded_as_the_tables() {
    for (warm_us, rate) in [(383, "2611"), (1_250_000, "0.80")] {
        let mut samples = Vec::new();
        for (block_bytes, factor) in [(4096, 2), (65536, 1)] {
            let blocks = (1..=3).map(|repeat| Sample {
                block_bytes,
                ..case("vmread", repeat, 2000, warm_us * factor, 0)
            });
            samples.extend(blocks);
        }
        let text = summary(&mut samples, 6);
        let want = format!("64 KiB  {rate} MiB/s, the best of 2 blocks\n");
        assert!(text.contains(&want), "{text}");
    }
}

/// 1 MiB in 400.081 us is 2499.49 MiB/s, and in 400.080 us 2499.50: their mean is below 2499.5.
#[test]
fn quantiles_are_rounded_once() {
    let mut samples = ten_pairs();
    for one in samples
        .iter_mut()
        .filter(|one| one.method.as_str() == "proc")
    {
        one.cold_ns = Some(if one.repeat <= 5 { 400_081 } else { 400_080 });
    }
    let text = summary(&mut samples, 20);
    assert!(
        text.contains("cold  proc          10    2499    2499    2499    2500    2500    2500 "),
        "{text}"
    );
}

#[test]
fn five_pairs_are_too_few() {
    let mut samples: Vec<Sample> = ten_pairs()
        .into_iter()
        .filter(|one| one.repeat <= 5)
        .collect();
    let text = summary(&mut samples, 10);
    assert!(
        text.contains(
            "proc against vmread: 4.00x, too few pairs for an interval, in 5 of 5 pairs\n"
        ),
        "{text}"
    );
}

#[test]
fn failed_cases_are_named_and_never_counted_as_unchanged() {
    let mut samples = ten_pairs();
    for one in samples
        .iter_mut()
        .filter(|one| one.method.as_str() == "vmread")
    {
        one.outcome = Outcome::Errno;
        one.cold_ns = None;
        one.split_pages = None;
    }
    let text = summary(&mut samples, 21);
    for want in [
        "10 of 21 cases ok, 10 failed with an errno\n",
        "  vmread        unknown: no case ended well, see the status column\n",
        "cold  proc and vmread: no pair of cases\n",
    ] {
        assert!(text.contains(want), "{want}\nnot in\n{text}");
    }
}

#[test]
fn cases_of_different_streams_are_not_paired() {
    let mut samples = ten_pairs();
    for one in samples
        .iter_mut()
        .filter(|one| one.method.as_str() == "vmread")
    {
        one.source = 1;
    }
    assert!(summary(&mut samples, 20).contains("no pair of cases"));
}

#[test]
fn sizes_and_shares() {
    let shown = |write: &dyn Fn(&mut Text)| {
        let mut text = Text::new();
        write(&mut text);
        String::from(text.read().unwrap())
    };
    for (count, want) in [
        (16, "16 B"),
        (1000, "1000 B"),
        (4096, "4 KiB"),
        (3 << 30, "3 GiB"),
    ] {
        assert_eq!(shown(&|text| add_bytes(text, count)), want);
    }
    assert_eq!(shown(&|text| add_percent(text, 0, 0)), "");
    assert_eq!(shown(&|text| add_percent(text, 99_999, 100_000)), "99.99 %");
    assert_eq!(
        shown(&|text| add_percent(text, u64::MAX, u64::MAX)),
        "100.00 %"
    );
}

#[test]
fn cases_in_which_hybrid_copied_everything_are_told() {
    let mut samples: Vec<Sample> = (1..=3).map(|n| case("hybrid", n, 500, 400, 0)).collect();
    assert!(!summary(&mut samples, 3).contains("copied all"));
    samples[1].not_pinned = Name::new("large-folios").unwrap();
    let want =
        "  hybrid copied all anonymous pages in 1 of 3 cases: the machine had huge pages in use";
    let text = summary(&mut samples, 3);
    assert!(text.contains(want), "{text}");
}
