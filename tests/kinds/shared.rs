//! What fork shares and what it does not: which reader splits it, and which does not.

use super::common::{BINARY, PINNING, answered as of, number, page, vmread_splits};
use super::{REFERENCING, rows};
use std::process::Command;

/// Kinds that fork shares: a read-only pin of such a page unshares it, whatever else it is.
const SHARED: [&str; 5] = [
    "anon-fork-shared",
    "file-cow-before-fork",
    "heap",
    "stack",
    "last-page",
];

/// Kinds that nobody splits: nobody else has the page, or it is no anonymous page.
const NOT_SPLIT: [&str; 10] = [
    "anon-own",
    "anon-parent-gone",
    "anon-zero-page",
    "shared-anon",
    "file-private",
    "file-cow-after-fork",
    "file-shared",
    "memfd",
    "madv-free",
    "madv-wipeonfork",
];

#[test]
fn pins_split_what_fork_shares_and_references_split_nothing() {
    for kind in SHARED {
        let pinned = of(rows(), kind, &PINNING);
        assert!(pinned.len() >= 2, "{kind}");
        for row in pinned {
            let tracked = number(row, "tracked_pages");
            assert!(tracked > Some(0));
            let want = if vmread_splits() { tracked } else { Some(0) };
            assert_eq!(number(row, "split_pages"), want, "{row:?}");
        }
        for row in of(rows(), kind, &REFERENCING) {
            assert_eq!(number(row, "split_pages"), Some(0), "{row:?}");
        }
    }
    for kind in NOT_SPLIT {
        let all = of(rows(), kind, &[&PINNING[..], &REFERENCING].concat());
        assert!(all.len() >= 5, "{kind}");
        for row in all {
            assert_eq!(number(row, "split_pages"), Some(0), "{row:?}");
            assert_eq!(row["returned_bytes"], row["requested_bytes"]);
        }
    }
}

/// The tool looks at its own stack, on which it also keeps what it counts: wherever the pages'
/// borders lie on it, which the environment's length decides, looking changes nothing.
#[test]
fn the_stack_is_as_it_was_wherever_it_begins() {
    for bytes in (0..4096).step_by(32) {
        let output = Command::new("setarch")
            .args(["-R", BINARY, "probe", "--kind=stack", "--method=proc", "-q"])
            .env_clear()
            .env("PLACE", "x".repeat(bytes))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{bytes}: {said}");
    }
}

/// A page that is anonymous, shared no more and not marked exclusive is marked so by the
/// first pin: a fault, and no copy (do_wp_page in mm/memory.c, wp_can_reuse_anon_folio).
#[test]
fn a_page_whose_other_owner_is_gone_is_not_copied() {
    let pinned = of(rows(), "anon-parent-gone", &PINNING);
    assert_eq!(pinned.len(), 4);
    for row in pinned {
        let pages = number(row, "requested_bytes").unwrap() / page(row);
        let faults = if vmread_splits() { pages } else { 0 };
        assert_eq!(number(row, "reader_minflt"), Some(faults), "{row:?}");
        assert_eq!(number(row, "target_private_kib"), Some(0));
    }
}

/// A pin of a part splits the huge page's mapping and copies that part.
#[test]
fn a_huge_page_is_broken_up_by_a_pin_of_one_page() {
    for row in of(rows(), "thp", &PINNING) {
        let splits = vmread_splits();
        let huge = number(row, "target_anon_huge_kib").unwrap();
        assert_eq!(huge < 0, splits, "{row:?}");
        let want = if splits {
            number(row, "tracked_pages")
        } else {
            Some(0)
        };
        assert_eq!(number(row, "split_pages"), want);
    }
    for row in of(rows(), "thp", &REFERENCING) {
        assert_eq!(number(row, "target_anon_huge_kib"), Some(0), "{row:?}");
    }
}
