//! What nobody may read, or not every reader; and the ends of memory.

use super::common::{
    BINARY, PINNING, Row, answered as of, kernel, number, page, run, stdout, vmread_splits,
    whole_stream,
};
use super::{REFERENCING, rows};
use std::process::Command;

/// Kinds that nobody reads.
const CLOSED: [&str; 5] = [
    "hole",
    "madv-dontfork",
    "file-beyond-end",
    "guard",
    "memfd-secret",
];

#[test]
fn closed_memory_is_refused_in_each_readers_words() {
    for kind in CLOSED {
        for row in of(rows(), kind, &[&PINNING[..], &REFERENCING].concat()) {
            let front = if row["op"] == "cross" { page(row) } else { 0 };
            let word = if PINNING.contains(&&*row["method"]) {
                "EFAULT"
            } else {
                "EIO"
            };
            assert_eq!(number(row, "returned_bytes"), Some(front), "{row:?}");
            assert_eq!(row["errno"], word, "{row:?}");
            assert_eq!(number(row, "faulted_in_pages"), Some(0), "{row:?}");
        }
    }
    for kind in ["hole", "madv-dontfork", "file-beyond-end"] {
        assert_eq!(of(rows(), kind, &PINNING).len(), 4, "{kind}");
    }
    // MADV_GUARD_INSTALL came with Linux 6.13.
    let guards = of(rows(), "guard", &["none", "proc"]).len();
    assert_eq!(guards, if kernel() >= (6, 13) { 4 } else { 0 });
}

/// process_vm_readv never forces; ptrace always does (kernel/ptrace.c, ptrace_access_vm).
#[test]
fn protection_stops_a_pin_and_not_ptrace() {
    for kind in ["prot-none", "write-only", "exec-only"] {
        let (pinned, forced) = (of(rows(), kind, &PINNING), of(rows(), kind, &["ptrace"]));
        assert_eq!((pinned.len(), forced.len()), (4, 2), "{kind}");
        for row in pinned {
            assert_eq!(row["errno"], "EFAULT", "{row:?}");
        }
        for row in forced {
            assert_eq!(row["returned_bytes"], row["requested_bytes"], "{row:?}");
            assert_eq!(row["content"], "ok");
        }
    }
}

/// Since Linux 6.5 only /proc/PID/mem and ptrace let a stack grow (8d7071af8907 and
/// f313c51d26aa: get_user_pages does it no more). The mapping is then as much longer as it takes to
/// hold the page (expand_downwards in mm/mmap.c).
#[test]
fn reading_below_a_stack_makes_it_grow() {
    let grown = |row: &Row| {
        let pages = number(row, "target_vm_size_kib").map(|kib| kib * 1024 / page(row));
        (pages, number(row, "faulted_in_pages"))
    };
    let by_reference = of(rows(), "below-stack", &REFERENCING);
    assert_eq!(by_reference.len(), 3);
    for row in by_reference {
        assert_eq!(row["content"], "zero", "{row:?}");
        assert_eq!(grown(row), (Some(1), Some(1)), "{row:?}");
        // It is the same mapping.
        assert_eq!(number(row, "vma_change"), Some(0), "{row:?}");
    }
    let pinned = of(rows(), "below-stack", &PINNING);
    assert_eq!(pinned.len(), 2);
    for row in pinned {
        let refused = row["errno"] == "EFAULT";
        let want = if refused { Some(0) } else { Some(1) };
        assert_eq!(grown(row), (want, want), "{row:?}");
        assert!(refused || kernel() < (6, 5), "{row:?}");
    }
    // No other read makes a mapping longer.
    let others = rows().iter().filter(|row| row["kind"] != "below-stack");
    let known: Vec<i64> = others
        .filter_map(|row| number(row, "target_vm_size_kib"))
        .collect();
    assert!(known.len() > 300, "{}", known.len());
    assert_eq!(known.iter().filter(|kib| **kib != 0).count(), 0);
}

/// Positions at or above 2^63 are no file positions; lseek and process_vm_readv take them.
#[test]
fn a_kernel_address_is_refused() {
    let words = [
        ("proc", "EINVAL"),
        ("proc-seek", "EIO"),
        ("vmread", "EFAULT"),
        ("ptrace", "EIO"),
    ];
    for (method, word) in words {
        let row = of(rows(), "kernel-address", &[method]);
        assert_eq!((row.len(), &*row[0]["errno"]), (1, word));
    }
}

/// What comes before what cannot be had is handed over, by every reader.
#[test]
fn the_page_before_the_end_of_all_memory_comes() {
    let rows = rows().iter();
    let cross = |row: &&Row| row["kind"] == "last-page" && row["op"] == "cross";
    for row in rows.filter(cross) {
        if ["proc", "vmread", "hybrid"].contains(&&*row["method"]) && row["status"] == "ok" {
            assert_eq!(number(row, "returned_bytes"), Some(page(row)), "{row:?}");
        }
    }
}

/// Programs that a debugger starts have their stack where the last page is: the kernel has the
/// kind, and does not give it.
#[test]
fn a_last_page_that_is_taken_is_not_said_to_be_unknown_here() {
    let mut command = Command::new("setarch");
    command.args(["-R", BINARY, "probe", "-q", "--kind=last-page"]);
    let output = command.arg("--method=proc").output().unwrap();
    for row in whole_stream(&stdout(&output)).rows {
        let status = &*row["status"];
        assert!(
            ["ok", "skipped:kernel-did-not-give-it"].contains(&status),
            "{row:?}"
        );
    }
}

/// Where what was written may not be executed, that is no failure of a reader
/// (PR_SET_MDWE, 65, with PR_MDWE_REFUSE_EXEC_GAIN, 1: since Linux 6.3; EINVAL before).
#[test]
fn memory_that_may_not_be_made_executable_is_not_given() {
    let script = "import ctypes, os, sys\n\
        if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0): sys.exit('no PR_SET_MDWE')\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let mut python = Command::new("python3");
    python.args(["-c", script, BINARY, "probe", "--kind", "exec-only", "-q"]);
    let Ok(output) = python.args(["--method", "proc,vmread"]).output() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    if output.stderr == b"no PR_SET_MDWE\n" {
        assert!(kernel() < (6, 3));
        return;
    }
    let rows = whole_stream(&stdout(&output)).rows;
    assert_eq!(rows.len(), 2 * 3);
    for row in rows {
        assert_eq!(row["status"], "skipped:kernel-did-not-give-it", "{row:?}");
    }
}

/// A read that came to what it may not read changed what lies in front of it.
#[test]
fn the_table_marks_what_reading_a_part_did() {
    let output = run("probe --kind hole --method proc,vmread");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said
        .lines()
        .find(|line| line.starts_with("  hole") && line.contains("cross"));
    let cells: Vec<&str> = line.unwrap().split_whitespace().skip(2).collect();
    let rows = whole_stream(&stdout(&output)).rows;
    let accessed = |method: &str| {
        let mut rows = rows.iter().filter(|row| row["op"] == "cross");
        let row = rows.find(|row| row["method"] == method).unwrap();
        number(row, "target_referenced_kib") != Some(0)
    };
    let mark = |method: &str| if accessed(method) { "1A" } else { "1" };
    let pinned = if vmread_splits() {
        "1S"
    } else {
        mark("vmread")
    };
    assert_eq!(cells, [mark("proc"), "EIO", pinned, "EFAULT"], "{said}");
}
