//! Records beside `bench` and `probe`: all of them in one page, and what is refused of any.

use super::common::lab;
use super::seal::resealed;
use super::{BENCH, has, page, section, sections};

const FILES: [&str; 8] = [
    "bench.csv",
    "survey.csv",
    "audit.csv",
    "memmap.csv",
    "sharing.csv",
    "startup.csv",
    "slope.csv",
    "sizes.csv",
];

#[test]
fn every_record_has_its_section_and_machines_stand_together() {
    let html = page(&FILES, "");
    let wanted = [
        "verdict",
        "throughput",
        "copy-on-write",
        "survey",
        "audit",
        "memmap",
        "sharing",
        "startup",
        "sizes",
        "method",
    ];
    assert_eq!(sections(&html), wanted);
    assert!(!html.contains("<select"), "one machine");
    for id in &wanted[3..9] {
        assert!(html.contains(&format!("href=\"#{id}\"")), "{id}");
    }
}

/// One or two sentences, of what says most; each section has its own.
#[test]
fn the_verdict_is_short_and_sections_say_their_own() {
    let html = page(&FILES, "");
    assert_eq!(html.matches("<p class=\"verdict\">").count(), 2);
    let text = section(&html, "verdict");
    has(&text, &["reading with proc left every shared page shared"]);
    for (id, says) in [
        ("survey", "Reading process 4711 would split 0 with proc"),
        ("audit", "Reading process 4711 with vmread split 250 of 250"),
        ("memmap", "Touching 64 MiB of heap"),
        ("sharing", "Of the arms of sharing, "),
        ("startup", "Each further object takes 5000 ns until exec"),
        ("sizes", "private closures are "),
    ] {
        has(&section(&html, id), &[says]);
        assert!(!text.contains(says), "{text}");
        let alone = page(
            &[FILES
                .iter()
                .find(|file| {
                    file.contains(match id {
                        "startup" => "slope",
                        id => id,
                    })
                })
                .unwrap()],
            "",
        );
        assert!(alone.matches("<p class=\"verdict\">").count() <= 2, "{id}");
        let verdict = section(&alone, "verdict");
        has(&verdict, &[says]);
        // Files are of no kernel.
        let kernel = "Linux 6.1.0-test (x86_64, 4 KiB pages): ";
        assert_eq!(verdict.contains(kernel), id != "sizes", "{verdict}");
    }
}

#[test]
fn everything_from_these_records_is_escaped() {
    let html = page(&["markup-others.csv"], "");
    for bad in ["<script>alert", "<img", "<b>6.1", "\"'>"] {
        assert_eq!(html.matches(bad).count(), 0, "{bad}");
    }
    assert_eq!(html.matches("<script").count(), 1);
    for id in ["sharing", "startup", "sizes", "memmap", "survey", "audit"] {
        has(
            &section(&html, id),
            &["&#60;script&#62;alert(1)&#60;/script&#62;"],
        );
    }
}

/// A file, a change of it, and what is then said to be wrong: columns that bound each other, in
/// each record.
const CONTRADICTIONS: [(&str, &str, &str, &str); 7] = [
    (
        "sharing",
        ",5300,5200,",
        ",5300,5301,",
        "5301 KiB of PSS of 5300 of RSS",
    ),
    (
        "sharing",
        ",elf,1,1,1,",
        ",elf,1,1,2,",
        "process 2 of 1 in repetition 1",
    ),
    (
        "sharing",
        ",12.000,1.000,",
        ",12.000,1.001,",
        "a share of 1001/1000 of the variance",
    ),
    (
        "startup",
        ",540000,840000,",
        ",540000,539999,",
        "540000 ns until exec of 539999 in all",
    ),
    (
        "sizes",
        "programs,2,10,5,",
        "programs,2,10,11,",
        "11 distinct objects of 10 objects",
    ),
    (
        "memmap",
        ",67108864,16384,",
        ",67108864,16385,",
        "67108864 bytes are 16384 pages, not 16385",
    ),
    (
        "survey",
        "[heap],300,50,250,",
        "[heap],300,50,301,",
        "301 shared anonymous of 300 pages present",
    ),
];

#[test]
fn rows_that_contradict_themselves_are_refused() {
    for (file, from, to, problem) in CONTRADICTIONS {
        let path = format!("{}/tests/data/{file}.csv", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        let odd = resealed(&text.replacen(from, to, 1));
        for command in [
            &["report", "-o", "-", "-"][..],
            &["summary", "-"],
            &["compare", "-", "bench.csv"],
        ] {
            let ran = lab(command, odd.as_bytes());
            assert_eq!(
                (ran.status, &*ran.stdout),
                (Some(3), ""),
                "{file}: {}",
                ran.stderr
            );
            has(&ran.stderr, &[problem]);
        }
    }
}

/// Beside rows of bench other records do no harm, and a file of theirs alone is told from them.
#[test]
fn summary_and_compare_pass_over_what_they_do_not_know() {
    for file in &FILES[1..] {
        let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let both = format!("{text}{BENCH}");
        let summary = lab(&["summary", "-"], both.as_bytes());
        assert_eq!(
            summary.stdout,
            include_str!("../data/bench.txt"),
            "{file}: {}",
            summary.stderr
        );
        let compared = lab(&["compare", "-", "slow.csv"], both.as_bytes());
        let plain = lab(&["compare", "-", "slow.csv"], BENCH.as_bytes());
        assert_eq!(
            (compared.status, &compared.stderr),
            (plain.status, &plain.stderr),
            "{file}"
        );
        let told = |line: &&str| !line.starts_with("  not compared: rows of ");
        let rest: Vec<&str> = compared.stdout.lines().filter(told).collect();
        assert_eq!(rest, plain.stdout.lines().collect::<Vec<_>>(), "{file}");
        // Files are no machine's, and no side of a comparison.
        let passed_over = compared.stdout.lines().count() > rest.len();
        assert_eq!(passed_over, *file != "sizes.csv", "{file}");
        let alone = lab(&["summary", "-"], text.as_bytes());
        assert_eq!((alone.status, &*alone.stdout), (Some(3), ""), "{file}");
    }
}
