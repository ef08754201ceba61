//! What is not in the process's page table, and files: what reading brings in.

use super::common::{PINNING, answered as of, is_root, number, page, run, whole_stream};
use super::{REFERENCING, rows};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// Kinds whose pages reading has to bring in, and what then lies there.
const ABSENT: [(&str, &str); 4] = [
    ("anon-untouched", "zero"),
    ("madv-wipeonfork", "zero"),
    ("shared-anon-untouched", "ok"),
    ("file-private-untouched", "ok"),
];

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
