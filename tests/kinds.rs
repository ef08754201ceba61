//! What each kind of memory does to each reader, and each reader to it: claims about
//! mechanisms, each of which would fail if the effect were absent, or there where it should
//! not be.

mod common;

use common::{
    BINARY, PINNING, Row, answered as of, command, command_as_nobody, group, in_a_session, is_root,
    kernel, number, page, run, stdout, vmread_splits, whole_stream,
};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

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
/// Kinds whose pages reading has to bring in, and what then lies there.
const ABSENT: [(&str, &str); 4] = [
    ("anon-untouched", "zero"),
    ("madv-wipeonfork", "zero"),
    ("shared-anon-untouched", "ok"),
    ("file-private-untouched", "ok"),
];
/// Kinds that nobody reads.
const CLOSED: [&str; 5] = [
    "hole",
    "madv-dontfork",
    "file-beyond-end",
    "guard",
    "memfd-secret",
];
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

#[test]
fn absent_pages_are_brought_into_the_target_and_charged_to_the_reader() {
    for (kind, content) in ABSENT {
        let read = of(rows(), kind, &[&PINNING[..], &REFERENCING].concat());
        assert!(read.len() >= 5, "{kind}");
        for row in read {
            assert_eq!(row["content"], content);
            assert!(number(row, "faulted_in_pages") > Some(0), "{row:?}");
            assert_eq!(number(row, "target_minflt"), Some(0), "{row:?}");
            assert!(number(row, "reader_minflt") > Some(0), "{row:?}");
            // The zero page is no part of a resident set; file pages are.
            let resident = number(row, "faulted_in_pages").unwrap() * page(row) / 1024;
            let want = if content == "zero" { 0 } else { resident };
            assert_eq!(number(row, "target_rss_kib"), Some(want), "{row:?}");
        }
    }
    // What is there already is not brought in again.
    for kind in ["anon-zero-page", "file-private", "shared-anon", "memfd"] {
        for row in of(rows(), kind, &[&PINNING[..], &REFERENCING].concat()) {
            assert_eq!(number(row, "faulted_in_pages"), Some(0), "{row:?}");
            assert_eq!(number(row, "target_rss_kib"), Some(0), "{row:?}");
        }
    }
}

/// 64 KiB around the one page that was read (do_fault_around in mm/memory.c).
#[test]
fn one_page_of_a_file_brings_its_neighbours() {
    let read = of(rows(), "file-private-untouched", &["proc", "vmread"]);
    assert_eq!(read.len(), 4);
    for row in read {
        if row["op"] == "page" && page(row) == 4096 {
            assert_eq!(number(row, "faulted_in_pages"), Some(16), "{row:?}");
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

/// A mapping that goes on behind the end of its file, which is in the middle of a page: that page
/// comes whole, its rest zeros (the content that is `ok`), and nothing behind it
/// (filemap_fault in mm/filemap.c: SIGBUS from the first page on that is behind the size).
#[test]
fn a_file_is_read_up_to_the_page_that_it_ends_in() {
    let end = rows().iter().filter(|row| row["kind"] == "file-end");
    let asked = end.filter(|row| !row["returned_bytes"].is_empty());
    let mut read = 0;
    // Only root may use map_files.
    for row in asked.filter(|row| is_root() || row["method"] != "map-files") {
        let method = &*row["method"];
        let behind = match method {
            _ if PINNING.contains(&method) => "EFAULT",
            // What it leaves has no errno.
            "hybrid" => "",
            // What has no page has no frame.
            "kcore" => "ENODATA",
            _ => "EIO",
        };
        let errno = if row["op"] == "cross" { behind } else { "" };
        let left = method == "hybrid" && row["op"] == "cross";
        let status = if left { "skipped:left-unread" } else { "ok" };
        assert_eq!(number(row, "returned_bytes"), Some(page(row)), "{row:?}");
        let said = (&*row["content"], &*row["errno"], &*row["status"]);
        assert_eq!(said, ("ok", errno, status), "{row:?}");
        for unchanged in ["split_pages", "faulted_in_pages", "target_rss_kib"] {
            assert_eq!(number(row, unchanged), Some(0), "{unchanged} {row:?}");
        }
        read += 1;
    }
    // Six readers of any memory, and as root map-files.
    assert!(read >= if is_root() { 14 } else { 12 }, "{read}");
}

/// What hybrid leaves has no errno: the status says that it was left.
#[test]
fn hybrid_says_that_it_left_what_lies_behind_the_end_of_a_file() {
    let rows = rows().iter();
    let mut left = rows.filter(|row| row["kind"] == "file-beyond-end" && row["op"] == "cross");
    let left = left.find(|row| row["method"] == "hybrid").unwrap();
    assert_eq!(number(left, "returned_bytes"), Some(page(left)));
    assert_eq!(
        (&*left["content"], &*left["status"]),
        ("ok", "skipped:left-unread")
    );
}

/// The server shares pages with the target until it is killed; what that does to Pss is the
/// tool's own doing.
#[test]
fn smaps_is_unknown_once_the_server_was_killed() {
    if of(rows(), "fuse-silent", &["none"]).is_empty() {
        return;
    }
    for row in rows().iter().filter(|row| row["kind"] == "fuse-silent") {
        let want = match (&*row["status"], &*row["method"]) {
            ("ok", "none") | ("skipped:left-unread", "hybrid") => Some(0),
            ("skipped:page-not-present", "kcore") => Some(0),
            ("skipped:not-in-this-kernel", "kcore") => continue,
            ("skipped:not-permitted", "kcore" | "map-files") => continue,
            // Whoever else comes to the file waits for it, map-files too.
            (status, _) => {
                assert_eq!(status, "skipped:blocked", "{row:?}");
                None
            }
        };
        for column in ["target_pss_kib", "partner_private_kib"] {
            assert_eq!(number(row, column), want, "{column} {row:?}");
        }
    }
}

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

#[test]
fn a_file_is_read_through_map_files_and_stays_out_of_the_target() {
    if !is_root() {
        return;
    }
    let read = of(rows(), "file-private-untouched", &["map-files"]);
    for row in &read {
        assert_eq!(row["content"], "ok");
        assert_eq!(number(row, "faulted_in_pages"), Some(0), "{row:?}");
    }
    assert_eq!(read.len(), 2);
    let own = rows()
        .iter()
        .find(|row| row["kind"] == "anon-own" && row["method"] == "map-files");
    assert_eq!(own.unwrap()["status"], "skipped:no-file-behind-it");
}

#[test]
fn a_read_that_never_returns_is_given_up_and_leaves_nobody_behind() {
    let args = "probe -q --kind uffd-missing --method proc,vmread,ptrace";
    let child = in_a_session(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let leader = child.id();
    let stream = whole_stream(&stdout(&child.wait_with_output().unwrap()));
    assert_eq!(group(leader), Vec::<String>::new());
    let status = |method: &str| {
        let row = stream.rows.iter().find(|row| row["method"] == method);
        row.map(|row| (row["status"].clone(), row["errno"].clone()))
    };
    let control = status("none").unwrap().0;
    if control != "ok" {
        assert!(["skipped:needs-privilege", "skipped:no-such-kind-here"].contains(&&*control));
        return;
    }
    let says = |status: &str, errno: &str| Some((status.to_owned(), errno.to_owned()));
    assert_eq!(status("vmread"), says("skipped:blocked", ""));
    assert_eq!(status("proc"), says("ok", "EIO"));
    assert_eq!(status("ptrace"), says("ok", "EIO"));
}

/// Nothing came, and that is what there is to say of it.
#[test]
fn a_reader_that_never_returned_is_told_of() {
    let output = run("probe --kind uffd-missing --method vmread");
    let control = &whole_stream(&stdout(&output)).rows[0];
    if control["status"] != "ok" {
        return;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = "first\n  vmread: gets 0 kinds\n    never returns: uffd-missing\n";
    assert!(said.contains(lines), "{said}");
    assert!(!said.contains("to change least"), "{said}");
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

/// What a child leaves behind is reaped by the tool: the process that would inherit it (here one
/// that reaps nobody) has no child in the end.
#[test]
fn a_killed_server_is_reaped() {
    // PR_SET_CHILD_SUBREAPER is 36.
    let script = "import ctypes, os, subprocess, sys\n\
        assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n\
        told = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True).stdout\n\
        left = open(f'/proc/self/task/{os.getpid()}/children').read()\n\
        print(repr(left), told.count('skipped:blocked'), told.count('fuse-silent,'))";
    let mut python = Command::new("python3");
    python.args(["-c", script, BINARY, "probe", "-q", "--kind", "fuse-silent"]);
    let Ok(output) = python.args(["--method", "proc,vmread,map-files"]).output() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut waits = rows()
        .iter()
        .filter(|row| row["status"] == "skipped:blocked");
    let map_files_waits =
        waits.any(|row| row["kind"] == "fuse-silent" && row["method"] == "map-files");
    let has_fuse = of(rows(), "fuse-silent", &["none"]).len() == 1;
    let blocked = if has_fuse { 2 } else { 0 } + usize::from(map_files_waits);
    assert_eq!(said.trim_end(), format!("'' {blocked} 4"));
}

/// A file is clean before it is read, and so nothing that is written back meanwhile is taken for
/// an effect of a reader.
#[test]
fn what_is_written_back_meanwhile_is_nobodys_effect() {
    let sync = || Command::new("sync").args(["-f", "/var/tmp"]).status();
    if !sync().is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no sync -f of /var/tmp");
        return;
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                sync().unwrap();
            }
        });
        let outputs: Vec<_> = (0..6)
            .map(|_| run("probe -q --kind file-private,file-shared"))
            .collect();
        over.store(true, Ordering::Relaxed);
        for output in outputs {
            let rows = whole_stream(&String::from_utf8_lossy(&output.stdout)).rows;
            assert_eq!(rows.len(), 2 * 2 * 9);
            for row in rows.iter().filter(|row| row["status"] == "ok") {
                assert_eq!(number(row, "target_shared_dirty_kib"), Some(0), "{row:?}");
            }
        }
    });
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

/// A want of descriptors says nothing of a kind, nor of what may be done here.
#[test]
fn a_want_of_descriptors_is_told_as_such() {
    let script = format!("ulimit -n 7; exec {BINARY} probe -q --kind memfd-secret --method proc");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<&str> = text
        .lines()
        .filter(|row| row.starts_with("probe,"))
        .collect();
    assert_eq!(rows.len(), 4, "{text}");
    // A kernel that has none says so before it wants a descriptor.
    if rows[0].contains(",skipped:no-such-kind-here,") {
        return;
    }
    assert!(
        rows.iter().all(|row| row.contains(",errno:EMFILE,")),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(3));
}

/// It is none of the answers that a kind may have either which no reader need get: those of who
/// has all the descriptors it wants.
#[test]
fn a_want_of_descriptors_is_no_answer_of_any_kind() {
    const KINDS: &str = "hole,guard,prot-none,uffd-missing,fuse-silent,kernel-address";
    let mut wanting = 0;
    for limit in 9..16 {
        let script = format!(
            "ulimit -n {limit}; exec {BINARY} probe -q --kind {KINDS} --method hybrid,map-files"
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for row in text.lines().filter(|row| row.contains("EMFILE")) {
            assert!(row.contains(",errno:EMFILE,"), "{limit}: {row}");
            assert_ne!(output.status.code(), Some(0), "{limit}: {row}");
            wanting += 1;
        }
    }
    assert!(wanting > 0);
}

/// A row says that its child moved only if it was seen to: with a descriptor too few the errno
/// is what stands there.
#[test]
fn a_child_that_cannot_be_looked_at_is_not_said_to_have_moved() {
    let mut wanting = 0;
    for limit in 7..16 {
        let script = format!(
            "ulimit -n {limit}; exec {BINARY} probe -q \
             --kind anon-own,file-private-untouched --method map-files,hybrid"
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for row in text.lines().filter(|row| row.starts_with("probe,")) {
            // One column stands behind it.
            let status = row.rsplit(',').nth(1).unwrap();
            assert!(!status.contains("target-"), "{limit}: {row}");
            wanting += usize::from(status == "errno:EMFILE");
        }
    }
    assert!(wanting > 0);
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
