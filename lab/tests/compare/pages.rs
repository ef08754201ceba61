//! Split pages.

use super::common::lab;
use super::seal::resealed;
use super::{SLOW, compared};

#[test]
fn a_change_of_split_pages_is_said_first_and_always_counts() {
    let ran = lab(&["compare", "slow.csv", "quick.csv"], b"");
    assert_eq!(ran.status, Some(4));
    assert_eq!(
        ran.stderr,
        "cowitness-lab: error: changed: 1 splits, 0 answers, 0 rates\n"
    );
    let change =
        "\n  changed: contiguous 64 KiB vmread: 100 % split in A, 0 % split in B\n  1 changed; ";
    let split = ran
        .stdout
        .find(change)
        .unwrap_or_else(|| panic!("{}", ran.stdout));
    let rates = ran.stdout.find("\nRates: ").unwrap();
    assert!(split < rates);
    assert!(
        ran.stdout
            .contains("4 faster, 0 slower, 0 same, 0 unresolved; "),
        "{}",
        ran.stdout
    );
    let row = "| contiguous | 64 KiB | cold | proc   | 2000    | 4000    | 2.00 | [2.00, 2.00] | faster  |";
    assert!(ran.stdout.contains(row), "{}", ran.stdout);
}

/// The child had written every page itself, as with `--exclusive all`.
#[test]
fn where_no_page_was_shared_there_is_nothing_to_split() {
    let line = |line: &str| {
        let none = line.replace(",pfn,256,256,256,0,", ",pfn,0,0,0,0,");
        none.replace(",pfn,256,256,0,256,", ",pfn,0,0,0,0,")
    };
    let lines: Vec<String> = SLOW.lines().map(line).collect();
    let alone = resealed(&(lines.join("\n") + "\n"));
    let ran = lab(&["summary", "-"], alone.as_bytes());
    let want = "  proc                none: no page was shared, in 10 cases\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
    let page = lab(&["report", "-o", "-", "-"], alone.as_bytes()).stdout;
    let want = "reading with proc and vmread could split nothing: no page was shared.";
    assert!(
        page.contains(want) && !page.contains("nobody knows"),
        "{page}"
    );
    let ran = lab(&["compare", "slow.csv", "-"], alone.as_bytes());
    assert_eq!(ran.status, Some(4), "{}", ran.stdout);
    let want = "proc: 0 % split in A, no page shared in B\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
    let ran = compared(&alone, &alone.replace("=17644394", "=17644395"));
    assert!(!ran.stdout.contains("unknown"), "{}", ran.stdout);
}
