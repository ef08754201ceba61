//! A stack: each page of its frame is paid once, whatever was done before and around it.

use super::common::{Row, number, whole_stream};
use super::*;

/// The rows of commands in one run, one each.
fn rows(words: &[&str]) -> Vec<Row> {
    let words: Vec<String> = words
        .iter()
        .map(|words| format!("memmap --mode stack --csv -q {words}"))
        .collect();
    let text = stdout(&run(&words.join(" then ")));
    let streams = text.split("#cowitness 1\n").skip(1);
    streams
        .map(|stream| {
            let mut rows = whole_stream(&format!("#cowitness 1\n{stream}")).rows;
            assert_eq!(rows.len(), 1);
            rows.remove(0)
        })
        .collect()
}

fn get(row: &Row, column: &str) -> u64 {
    let value = number(row, column).unwrap_or_else(|| panic!("{column}: {row:?}"));
    value.unsigned_abs()
}

/// Each page is paid, and where the words below the frame begin a page one more.
fn is_paid(row: &Row, column: &str) {
    if huge_by_default() {
        eprintln!("skipped: huge pages by default, so the faults are fewer");
        return;
    }
    let (pages, faults) = (get(row, "pages"), get(row, column));
    assert!((pages..=pages + 1).contains(&faults), "{column}: {row:?}");
}

/// What growing a stack for advice is charged is not the frame's.
#[test]
fn advice_before_touching_costs_no_fault() {
    for advice in ["none", "nohugepage", "random", "sequential", "willneed"] {
        for mb in [1, 4] {
            let row = rows(&[&format!("--mb {mb} --advise {advice}")]).remove(0);
            is_paid(&row, "minor_faults");
        }
    }
}

/// Once more costs what it did before: no page of it stays.
#[test]
fn a_stack_that_was_given_back_is_paid_for_again() {
    let row = rows(&["--advise dontneed"]).remove(0);
    is_paid(&row, "minor_faults");
    is_paid(&row, "again_minor_faults");
}

/// Neither its size nor advice about it is left for a second.
#[test]
fn a_second_stack_costs_what_the_first_did() {
    for advice in ["none", "hugepage", "nohugepage", "dontneed"] {
        let rows = rows(&["", &format!("--advise {advice}"), ""]);
        assert_eq!(rows.len(), 3);
        is_paid(&rows[0], "minor_faults");
        is_paid(&rows[2], "minor_faults");
        for column in ["vmas", "anon_huge_kib"] {
            assert_eq!(rows[0][column], rows[2][column], "{advice}: {column}");
        }
    }
}

/// VmRSS grows by what was touched: nothing that it was before is given back for it.
#[test]
fn what_a_stack_grows_by_is_what_was_touched() {
    for words in ["--mb 1", "--mb 4 --report", "--advise nohugepage"] {
        let row = rows(&[words]).remove(0);
        let growth = get(&row, "rss_after_kib") - get(&row, "rss_before_kib");
        let bytes = get(&row, "bytes");
        assert!(growth + slack_kib() >= bytes / 1024, "{words}: {row:?}");
        assert!(
            growth <= bytes / 1024 + slack_kib() + OWN_KIB,
            "{words}: {row:?}"
        );
        assert!(
            get(&row, "target_rss_kib") >= bytes / 1024,
            "{words}: {row:?}"
        );
    }
}
