//! `audit` against a preforked server. A program of its own: pages of Python's file are private
//! to a worker only while no other test maps them.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{Row, is_root, number, run, stdout, vmread_splits, whole_stream};
use helpers::{PREFORKED, Target, get, kib, near, signal, state, survey_total, until};

/// KiB that a process has alone, as smaps_rollup says.
fn private_kib(pid: &str) -> i64 {
    kib(pid, "Private_Clean:") + kib(pid, "Private_Dirty:")
}

/// The server holds still: survey, audit and smaps, which this test reads itself, agree
/// within 1 %, for a reader that splits nothing and for one that splits.
#[test]
fn prediction_and_result_agree_on_a_preforked_server() {
    let server = Target::new(PREFORKED);
    let workers: Vec<&str> = server.ready.split(' ').collect();
    let master = server.pid().to_string();
    for pid in workers.iter().chain([&master.as_str()]) {
        signal(pid, "STOP");
        until("stopped", || state(pid) == 'T');
    }
    for (worker, method) in workers.iter().zip(["proc", "vmread", "hybrid"]) {
        let predicted = get(&survey_total(worker), &format!("{method}_split_pages"));
        let private = private_kib(worker);
        let output = run(&format!("audit -q --method {method} {worker}"));
        let grown = private_kib(worker) - private;
        let stream = whole_stream(std::str::from_utf8(&output.stdout).unwrap());
        let row = &stream.rows[0];
        assert_eq!(stream.notes["target_stopped"], "yes");
        if output.status.code() == Some(3) && !is_root() {
            // Faults that no frame explains: what was split is unknown, and said to be.
            assert_eq!(number(row, "split_pages"), None, "{row:?}");
            continue;
        }
        stdout(&output);
        let split = get(row, "split_pages");
        assert!(
            near(predicted, split),
            "{method}: {predicted} predicted, {split} split"
        );
        assert!(near(get(row, "predicted_split_pages"), split), "{row:?}");
        assert_eq!(grown, get(row, "target_private_kib"), "{method}");
        is_of(row, method);
        assert_eq!(state(worker), 'T', "who was stopped stays stopped");
    }
}

/// That a row of a stopped worker is what `method` makes of it, and agrees with itself.
fn is_of(row: &Row, method: &str) {
    let split = get(row, "split_pages");
    let splits = method == "vmread" && vmread_splits();
    let expected = if splits { 3 << 10 } else { 0 };
    let small_pages = get(row, "page_bytes") == 4096;
    assert!(!small_pages || split >= expected, "{split} pages split");
    let grown = get(row, "target_private_kib");
    let copied = split * get(row, "page_bytes") / 1024;
    // File pages that only this worker has faulted in are private, too.
    let faulted = get(row, "faulted_in_pages") * get(row, "page_bytes") / 1024;
    assert!(
        (copied..=copied + faulted).contains(&grown),
        "{grown} KiB for {copied}"
    );
    // Empty where no frame is seen; the worker is stopped.
    let raced = number(row, "raced_pages").unwrap_or(0);
    assert_eq!(
        get(row, "tracked_pages"),
        get(row, "shared_after") + split + raced
    );
    assert_eq!(
        get(row, "bytes_per_pass") + get(row, "unread_bytes"),
        get(row, "readable_bytes")
    );
    let steady = ["target_minflt", "vma_change", "target_vm_size_kib"];
    assert_eq!(steady.map(|column| get(row, column)), [0; 3], "{row:?}");
    if method == "hybrid" {
        let changes = ["split_pages", "faulted_in_pages", "target_rss_kib"];
        assert_eq!(changes.map(|column| get(row, column)), [0; 3], "{row:?}");
        assert_eq!(raced, 0, "{row:?}");
    } else {
        assert!(get(row, "faulted_in_pages") > 0, "{row:?}");
    }
}
