//! Rates: faster, slower, and what noise may have made.

use super::common::lab;
use super::seal::resealed;
use super::{SLOW, compared};

/// Times of 500 us become `cold_ns`, those of the warm passes in proportion, and so the rates.
fn timed(text: &str, cold_ns: u64) -> String {
    let rate = |mib: u64, ns: u64| {
        let centi = (mib * 100_000_000_000 + ns / 2) / ns;
        format!("{}.{:02}", centi / 100, centi % 100)
    };
    let (warm_ns, pass) = (4 * cold_ns, cold_ns * 4 / 5);
    let rates = format!("{},{}", rate(1, cold_ns), rate(5, warm_ns));
    let times = format!(",{cold_ns},{warm_ns},{pass},{pass},{rates},");
    text.replace(",500000,2000000,400000,400000,2000.00,2500.00,", &times)
}

/// Each time of proc is 1.3 times as long; split pages are as they were.
fn slower_proc() -> String {
    resealed(&timed(SLOW, 650_000))
}

#[test]
fn the_threshold_makes_a_change_of_rate_a_failure() {
    let slower = slower_proc().replace("=1764439400", "=1764439401");
    let status = |threshold: &[&str]| {
        let arguments = [&["compare"], threshold, &["slow.csv", "-"]].concat();
        let ran = lab(&arguments, slower.as_bytes());
        assert!(
            ran.stdout
                .contains("0 faster, 2 slower, 2 same, 0 unresolved; "),
            "{}",
            ran.stdout
        );
        ran.status
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--threshold", "5"]), Some(4));
    assert_eq!(status(&["--threshold=40"]), Some(0));
}

/// What is not called faster or slower is beyond no threshold.
#[test]
fn what_noise_may_have_made_is_no_failure() {
    let slower = slower_proc().replace("=1764439400", "=1764439401");
    let ran = lab(
        &["compare", "--noise=50", "--threshold=5", "slow.csv", "-"],
        slower.as_bytes(),
    );
    assert!(
        ran.stdout.contains("0 faster, 0 slower, 4 same"),
        "{}",
        ran.stdout
    );
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
}

#[test]
fn a_threshold_within_the_noise_is_said_to_be() {
    let said = "The threshold of 5 % lies within the noise: what counts has to be faster or \
                slower, beyond 10 %\n";
    for (threshold, wanted) in [("5", true), ("10", false), ("40", false)] {
        let ran = lab(
            &["compare", "--threshold", threshold, "slow.csv", "slow.csv"],
            b"",
        );
        assert_eq!(ran.stdout.contains(said), wanted, "{}", ran.stdout);
    }
}

/// So many cold passes of 1 MiB by one reader, `ns` each and up to 4 % more; one in a hundred
/// takes twenty times as long.
fn quiet(cases: u64, ns: u64) -> String {
    let header = SLOW
        .lines()
        .find(|line| line.starts_with("record,"))
        .unwrap();
    let mut text = format!("#cowitness 1\n#command=bench\n#label=none\n#rows=0\n{header}\n");
    for case in 1..=cases {
        let longer = if case % 100 == 7 {
            2000
        } else {
            100 + case * 7919 % 5
        };
        let cold_ns = ns * longer / 100;
        let centi = (100_000_000_000 + cold_ns / 2) / cold_ns;
        text += &format!(
            "bench,,6.1.0,x86_64,4096,contiguous,small,,1,1048576,proc,65536,{case},1,1048576,0,\
             {cold_ns},,,,{}.{:02},,pfn,256,256,256,0,,,,,,,,,,,ok\n",
            centi / 100,
            centi % 100
        );
    }
    resealed(&(text + "#end rows=0 crc32=00000000\n"))
}

/// More cases tell more, not less, and rare outliers are no noise.
#[test]
fn half_the_speed_is_slower_however_many_cases_there_are() {
    for cases in [10, 1000] {
        let before = quiet(cases, 500_000);
        for (ns, want) in [
            (1_000_000, "\n0 faster, 1 slower, 0 same, 0 unresolved; "),
            (250_000, "\n1 faster, 0 slower, 0 same, 0 unresolved; "),
            (510_000, "\n0 faster, 0 slower, 1 same, 0 unresolved; "),
        ] {
            let found = compared(&before, &quiet(cases, ns)).stdout;
            assert!(found.contains(want), "{cases} cases of {ns} ns: {found}");
        }
    }
}
