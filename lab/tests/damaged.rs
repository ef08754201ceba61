//! Streams that are damaged beside whole ones: `--partial` leaves them out, and says so.

mod common;
mod seal;

use common::lab;

const BENCH: &str = include_str!("data/bench.csv");
const SLOW: &str = include_str!("data/slow.csv");

/// What in `bench.csv` is damaged to what, and what is said of it.
const DAMAGE: [(&str, &str, &str); 12] = [
    (
        "#cowitness 1",
        "#cowitnesS 1",
        "whose first line, '#cowitness 1', is missing or damaged",
    ),
    (
        "#cowitness 1",
        "#cowitness 7",
        "schema version '7' is unknown",
    ),
    (
        "#option_mb=1",
        "#option_mb",
        "'#option_mb' is neither a note",
    ),
    ("#rows=12", "#rows=1x", "'#rows=1x' announces no number"),
    (
        "#rows=12",
        "#rows=11",
        "'#rows=' says 11, the row count is 12",
    ),
    (
        "record,label",
        "record,lable",
        "column 2 of the header is 'lable'",
    ),
    // A figure that may well be, one that is none, and one that cannot be true.
    (",65536,6,2,", ",65536,7,2,", "bad checksum"),
    (
        ",500000,2000000,",
        ",5o0000,2000000,",
        "'5o0000' is no value of column 'cold_ns'",
    ),
    (
        ",256,256,256,0,",
        ",256,256,256,9,",
        "the row contradicts itself",
    ),
    ("vmread,65536,6", "vmread;65536,6", "field count 37"),
    (
        "\n#end rows=12",
        "\n#end row=12",
        "is not '#end rows=N crc32='",
    ),
    ("\n#end rows=12", "\n#end rows=13", "'#end' says rows=13"),
];

/// `bench.csv` with one damage, and a whole stream of another machine before and after it.
fn beside(from: &str, to: &str) -> [String; 2] {
    assert!(BENCH.contains(from), "{from}");
    let damaged = BENCH.replacen(from, to, 1);
    let other = seal::resealed(&SLOW.replace("rack 4, ", "rack 5, "));
    [damaged.clone() + &other, other + &damaged]
}

#[test]
fn what_is_damaged_is_left_out_and_named() {
    for (from, to, why) in DAMAGE {
        for input in beside(from, to) {
            let ran = lab(&["summary", "-"], input.as_bytes());
            assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{to}");
            for command in [
                &["summary", "--partial", "-"][..],
                &["report", "--partial", "-o", "-", "-"],
            ] {
                let ran = lab(command, input.as_bytes());
                assert_eq!(ran.status, Some(0), "{to}: {}", ran.stderr);
                assert_eq!(
                    ran.stderr.matches("is damaged: its ").count(),
                    1,
                    "{}",
                    ran.stderr
                );
                for text in [
                    &ran.stderr,
                    &ran.stdout.replace("&#39;", "'").replace("&#38;", "&"),
                ] {
                    assert!(text.contains(why), "{to}: {text}");
                    assert!(text.contains("rows are left out"), "{text}");
                }
                assert!(
                    ran.stdout.contains("20 of 20 cases ok"),
                    "{to}: {}",
                    ran.stdout
                );
                assert!(!ran.stdout.contains("of 12 cases"), "{to}: {}", ran.stdout);
            }
        }
    }
}

#[test]
fn compare_takes_what_is_whole_of_a_side() {
    let [input, _] = beside(",65536,6,2,", ",65536,7,2,");
    let other = seal::resealed(&SLOW.replace("rack 4, ", "rack 5, "));
    let whole = lab(
        &["compare", "--partial", "--allow-mismatch", "slow.csv", "-"],
        other.as_bytes(),
    );
    assert_eq!(whole.status, Some(0), "{}", whole.stderr);
    let ran = lab(
        &["compare", "--partial", "--allow-mismatch", "slow.csv", "-"],
        input.as_bytes(),
    );
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let said: Vec<&str> = ran
        .stdout
        .lines()
        .filter(|line| !line.starts_with("partial: B: "))
        .collect();
    assert_eq!(said, whole.stdout.lines().collect::<Vec<_>>());
    assert_eq!(
        ran.stdout.matches("partial: B: ").count(),
        1,
        "{}",
        ran.stdout
    );
}

/// Nothing is whole: what is wrong with the first is the error.
#[test]
fn nothing_is_made_of_damaged_streams_alone() {
    for (from, to, why) in DAMAGE {
        let input = BENCH.replacen(from, to, 1);
        for command in [
            &["summary", "--partial", "-"][..],
            &["report", "--partial", "-o", "-", "-"],
        ] {
            let ran = lab(command, input.as_bytes());
            assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{to}");
            assert!(
                ran.stderr
                    .starts_with("cowitness-lab: error: standard input"),
                "{}",
                ran.stderr
            );
            assert!(ran.stderr.contains(why), "{to}: {}", ran.stderr);
        }
    }
}
