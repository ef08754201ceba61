//! What each kind of memory does to each reader, and each reader to it: claims about
//! mechanisms, each of which would fail if the effect were absent, or there where it should
//! not be.

mod absent;
mod closed;
#[path = "../common/mod.rs"]
mod common;
mod descriptors;
mod shared;
mod waits;

use common::{Row, command, command_as_nobody, number, run, stdout, whole_stream};
use std::sync::OnceLock;

/// Readers that refer to each page, and do not pin it.
const REFERENCING: [&str; 3] = ["proc", "proc-seek", "ptrace"];

/// Every kind and reader, once.
fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| whole_stream(&stdout(&run("probe -q"))).rows)
}

#[test]
fn every_question_has_a_row_and_the_control_changes_nothing() {
    let methods = 9;
    assert_eq!(rows().len() % methods, 0);
    for question in rows().chunks(methods) {
        let control = &question[0];
        assert_eq!(control["method"], "none");
        for row in question {
            assert_eq!(
                (&row["kind"], &row["op"]),
                (&control["kind"], &control["op"])
            );
        }
        if control["status"] != "ok" {
            // What is not to be had for the control is not to be had for anybody.
            assert!(
                question
                    .iter()
                    .all(|row| row["status"] == control["status"])
            );
            continue;
        }
        for column in [
            "split_pages",
            "faulted_in_pages",
            "swapped_in_pages",
            "target_minflt",
            "target_majflt",
            "reader_minflt",
            "reader_majflt",
            "target_rss_kib",
            "target_pss_kib",
            "target_private_kib",
            "target_anon_huge_kib",
            "target_referenced_kib",
            "vma_change",
            "target_vm_size_kib",
            "partner_private_kib",
        ] {
            assert_eq!(number(control, column), Some(0), "{column} {control:?}");
        }
    }
}

#[test]
fn hybrid_changes_nothing_of_any_kind() {
    let mut answered = 0;
    for row in rows().iter().filter(|row| row["method"] == "hybrid") {
        if number(row, "split_pages").is_none() {
            assert!(row["status"].starts_with("skipped:"), "{row:?}");
            continue;
        }
        answered += 1;
        for column in [
            "split_pages",
            "faulted_in_pages",
            "swapped_in_pages",
            "target_minflt",
            "target_majflt",
            "target_rss_kib",
            "target_pss_kib",
            "target_private_kib",
            "target_shared_dirty_kib",
            "target_anon_huge_kib",
            "vma_change",
            "target_vm_size_kib",
            "partner_private_kib",
        ] {
            assert_eq!(number(row, column), Some(0), "{column} {row:?}");
        }
    }
    assert!(answered > 40, "{answered}");
}

/// Each row has memory of its own, and so no reader's marks are another's.
#[test]
fn the_order_of_readers_changes_no_row() {
    let ask = |methods: &str| {
        let kinds = "anon-fork-shared,anon-own,file-private,memfd,heap,stack,last-page";
        let mut rows = whole_stream(&stdout(&run(&format!(
            "probe -q --kind {kinds} --method {methods}"
        ))))
        .rows;
        rows.sort_by_key(|row| ["kind", "op", "method"].map(|column| row[column].clone()));
        rows
    };
    let (one, other) = (ask("proc,ptrace,vmread"), ask("vmread,ptrace,proc"));
    assert!(one.len() >= 4 * 7);
    assert_eq!(one.len(), other.len());
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one["status"], other["status"], "{one:?}");
        for column in ["target_referenced_kib", "target_rss_kib", "split_pages"] {
            assert_eq!(one[column], other[column], "{column} {one:?} {other:?}");
        }
    }
}

#[test]
fn an_ordinary_user_has_an_answer_to_every_question() {
    let Some((mut command, _folder)) = command_as_nobody("probe -q") else {
        return;
    };
    let theirs = whole_stream(&stdout(&command.output().unwrap())).rows;
    let ours = whole_stream(&stdout(&run("probe -q"))).rows;
    assert_eq!(theirs.len(), ours.len());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        if theirs["status"] == "ok" && ours["status"] == "ok" {
            for column in [
                "returned_bytes",
                "errno",
                "content",
                "split_pages",
                "faulted_in_pages",
            ] {
                assert_eq!(theirs[column], ours[column], "{column} {theirs:?}");
            }
        }
    }
}

#[test]
fn kinds_can_be_chosen_and_others_are_refused() {
    let rows = whole_stream(&stdout(&run("probe -q --kind vdso,hole --method proc"))).rows;
    assert!(
        rows.iter()
            .all(|row| ["vdso", "hole"].contains(&&*row["kind"]))
    );
    for bad in ["hole,hole", "none", "", "hole,"] {
        let output = command("probe -q").args(["--kind", bad]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
}
