//! `bench` on the kernel that runs these tests.

mod common;

use common::{
    Row, Stream, command, command_as_nobody, number, run, stdout, vmread_splits, whole_stream,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// What reading must have changed: nothing but for `vmread` and `vmread-batch` on kernels
/// that unshare.
fn check_split(stream: &Stream, evidence: &str) {
    for row in &stream.rows {
        let case = format!("{row:?}");
        assert_eq!(row["status"], "ok", "{case}");
        assert_eq!(row["evidence"], evidence, "{case}");
        let pages = number(row, "arena_bytes").unwrap() / number(row, "page_bytes").unwrap();
        let splits = row["method"].starts_with("vmread") && vmread_splits();
        let split = if splits { pages } else { 0 };
        assert_eq!(number(row, "tracked_pages"), Some(pages), "{case}");
        assert_eq!(number(row, "shared_before"), Some(pages), "{case}");
        assert_eq!(number(row, "split_pages"), Some(split), "{case}");
        assert_eq!(number(row, "shared_after"), Some(pages - split), "{case}");
        assert_eq!(row["bytes_per_pass"], row["arena_bytes"], "{case}");
        check_footprint(row, split);
    }
}

/// A split page is one page more of the child's own, in both sides' share; the child's
/// resident set and fault counters do not move. The reader is charged with the faults,
/// "within a handful": the machine may add one of its own.
fn check_footprint(row: &Row, split: i64) {
    let case = format!("{row:?}");
    let kib = split * number(row, "page_bytes").unwrap() / 1024;
    let cold = number(row, "reader_minflt_cold").unwrap();
    assert!((split..=split + 8).contains(&cold), "{case}");
    let warm = number(row, "reader_minflt_warm").unwrap();
    assert!((0..=2).contains(&warm), "{case}");
    for (column, want) in [
        ("target_minflt", 0),
        ("target_majflt", 0),
        ("target_rss_kib", 0),
        ("target_private_kib", kib),
        ("target_shared_dirty_kib", -kib),
    ] {
        assert_eq!(number(row, column), Some(want), "{column} {case}");
    }
    // A page shared by two counts half for each.
    assert_eq!(number(row, "target_pss_kib"), Some(kib / 2), "{case}");
    assert_eq!(number(row, "partner_pss_kib"), Some(kib / 2), "{case}");
}

const EVERY_METHOD: &str = "bench --mb 2 --repeats 1 --warm 1 --method all";

#[test]
fn frame_numbers_show_who_splits() {
    if !common::is_root() {
        eprintln!("skipped: frame numbers need root");
        return;
    }
    check_split(&whole_stream(&stdout(&run(EVERY_METHOD))), "pfn");
}

#[test]
fn without_frame_numbers_bit_56_says_the_same() {
    let output = match command_as_nobody(EVERY_METHOD) {
        Some((mut command, _folder)) => command.output().unwrap(),
        // We are an ordinary user already.
        None => run(EVERY_METHOD),
    };
    check_split(&whole_stream(&stdout(&output)), "exclusive");
    let summary = String::from_utf8(output.stderr).unwrap();
    assert!(
        summary.contains("pagemap bit 56, exclusively mapped"),
        "{summary}"
    );
}

/// What is shared of 2 MiB, in units of 4 KiB, when the child has rewritten some.
const PATTERNS: [(&str, std::ops::RangeInclusive<i64>); 5] = [
    ("none", 512..=512),
    ("all", 0..=0),
    ("half", 256..=256),
    ("alternate", 256..=256),
    ("random", 200..=312),
];

/// What the child has rewritten is its own and splits for nobody; of the rest, hybrid splits
/// nothing and changes nothing, and vmread splits it all.
fn check_exclusive(pattern: &str, shared: &std::ops::RangeInclusive<i64>, stream: &Stream) {
    assert_eq!(stream.rows.len(), 3 * 2, "{pattern}");
    for row in &stream.rows {
        let case = format!("{pattern} {row:?}");
        assert_eq!(row["status"], "ok", "{case}");
        let tracked = number(row, "tracked_pages").unwrap();
        let page_bytes = number(row, "page_bytes").unwrap();
        assert!(shared.contains(&(tracked * page_bytes / 4096)), "{case}");
        let splits = row["method"] == "vmread" && vmread_splits();
        let split = if splits { tracked } else { 0 };
        assert_eq!(number(row, "split_pages"), Some(split), "{case}");
        assert_eq!(row["bytes_per_pass"], row["arena_bytes"], "{case}");
        check_footprint(row, split);
        if row["method"] == "hybrid" {
            // Nor for a page of its own stack.
            assert_eq!(number(row, "reader_minflt_cold"), Some(0), "{case}");
        }
    }
}

#[test]
fn hybrid_changes_nothing_whatever_the_target_has_rewritten() {
    for (pattern, shared) in PATTERNS {
        let args = format!(
            "bench --mb 2 --repeats 1 --warm 1 --layout contiguous --block 5000,1M -q \
             --method proc,vmread,hybrid --exclusive {pattern}"
        );
        check_exclusive(pattern, &shared, &whole_stream(&stdout(&run(&args))));
        if let Some((mut command, _folder)) = command_as_nobody(&args) {
            let stream = whole_stream(&stdout(&command.output().unwrap()));
            check_exclusive(pattern, &shared, &stream);
        }
    }
}

#[test]
fn blocks_that_divide_nothing_read_everything() {
    let stream = stdout(&run(
        "bench --mb 1 --repeats 1 --warm 1 --method all --block 16,100,5000,65533,1M",
    ));
    let stream = whole_stream(&stream);
    assert_eq!(stream.rows.len(), 3 * 5 * 7);
    for row in &stream.rows {
        assert_eq!(row["status"], "ok", "{row:?}");
        assert_eq!(row["bytes_per_pass"], row["arena_bytes"], "{row:?}");
    }
}

/// 410 and 102 segments at 4 KiB pages are the interface's figures; other page sizes
/// follow its rule.
#[test]
fn layouts_have_as_many_vmas_as_published() {
    let stream = whole_stream(&stdout(&run(
        "bench --repeats 1 --warm 0 --block 256K --method proc",
    )));
    let page_bytes = number(&stream.rows[0], "page_bytes").unwrap();
    let found: BTreeSet<(String, String)> = stream
        .rows
        .iter()
        .map(|row| (row["segment_pages"].clone(), row["vmas"].clone()))
        .collect();
    if page_bytes == 4096 {
        let want = [("", "1"), ("16", "410"), ("64", "102")];
        assert_eq!(found, want.map(|(a, b)| (a.into(), b.into())).into());
    }
    for row in &stream.rows {
        // No warm pass: unknown, and so empty.
        for column in [
            "warm_ns",
            "warm_min_ns",
            "warm_max_ns",
            "warm_mib_s",
            "reader_minflt_warm",
        ] {
            assert_eq!(row[column], "", "{column}");
        }
        assert_eq!(row["first_write_ns"], "");
    }
}

#[test]
fn the_first_write_is_timed_after_every_reader() {
    let stream = whole_stream(&stdout(&run(&format!(
        "{EVERY_METHOD} --layout contiguous --block 64K --first-write"
    ))));
    for row in &stream.rows {
        assert!(number(row, "first_write_ns").unwrap() > 0, "{row:?}");
    }
}

#[test]
fn the_seed_decides_the_order_and_positions_are_balanced() {
    let order = |args: &str| -> Vec<(String, String, String)> {
        let text = stdout(&run(&format!(
            "bench --mb 1 --warm 0 --repeats 4 -q {args}"
        )));
        let rows = whole_stream(&text).rows;
        let key = |row: &Row| {
            (
                row["method"].clone(),
                row["block_bytes"].clone(),
                row["position"].clone(),
            )
        };
        rows.iter().map(key).collect()
    };
    let first = order("--seed 7");
    assert_eq!(first, order("--seed=7"));
    assert_ne!(first, order("--seed 8"));
    let mut counts = BTreeMap::new();
    for (method, _, position) in &first {
        *counts.entry((method, position)).or_insert(0) += 1;
    }
    // 3 layouts, 3 blocks, 4 repeats: each method first in half of 36.
    assert_eq!(counts.len(), 4);
    assert!(counts.values().all(|&count| count == 18), "{counts:?}");
}

#[test]
fn huge_pages_are_proved_or_the_case_is_skipped() {
    let size = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    let output = run("bench --pages thp --mb 8 --repeats 1 --warm 1 --block 64K -q");
    let Ok(size) = size else {
        assert_eq!(output.status.code(), Some(1));
        return;
    };
    let stream = whole_stream(&String::from_utf8(output.stdout).unwrap());
    for row in &stream.rows {
        assert_eq!(row["pages"], "thp");
        let segment = number(row, "arena_bytes").unwrap() / number(row, "vmas").unwrap();
        if segment < size.trim().parse().unwrap() {
            assert_eq!(row["status"], "skipped:segments-are-not-whole-huge-pages");
        } else {
            // Memory may be too fragmented for huge pages; then the row must say so.
            let proved = ["ok", "skipped:backing-not-as-asked"];
            assert!(proved.contains(&row["status"].as_str()), "{row:?}");
        }
        if row["status"] != "ok" {
            assert_eq!(row["cold_ns"], "");
        }
    }
}

/// Bit 56 of a huge page says the same of each of its parts.
#[test]
fn hybrid_splits_no_huge_page() {
    let output = run(
        "bench --pages thp --mb 8 --repeats 1 --warm 1 --block 1M -q --layout contiguous \
         --method hybrid",
    );
    let stream = String::from_utf8(output.stdout).unwrap();
    if stream.is_empty() {
        eprintln!("skipped: a kernel without huge pages");
        return;
    }
    for row in whole_stream(&stream).rows {
        if row["status"] == "ok" {
            assert_eq!(row["split_pages"], "0", "{row:?}");
            assert!(number(&row, "reader_minflt_cold").unwrap() <= 8, "{row:?}");
            assert!(number(&row, "tracked_pages").unwrap() > 0);
        }
    }
}

#[test]
fn thousands_of_vmas_work_up_to_the_kernels_limit_and_then_it_is_named() {
    let limit: u64 = fs::read_to_string("/proc/sys/vm/max_map_count")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let any = whole_stream(&stdout(&run(
        "bench --mb 1 --repeats 1 --layout contiguous -q",
    )));
    let page_bytes: u64 = any.rows[0]["page_bytes"].parse().unwrap();
    // One-page segments: 1.5 VMAs each, 0.8 segments a page of the arena.
    let pages = limit * 10 / 12;
    let mib = |pages: u64| (pages * page_bytes) >> 20;
    let (fits, does_not) = (mib(pages * 9 / 10), mib(pages * 11 / 10) + 1);
    let args = |mb| {
        format!("bench --layout vma --segment-pages 1 --block 4K --repeats 1 --warm 1 -q --mb {mb}")
    };
    if limit > 200_000 {
        eprintln!("skipped: a limit of {limit} VMAs takes more memory than a test should");
        return;
    }
    let stream = whole_stream(&stdout(&run(&args(fits))));
    assert!(stream.rows[0]["vmas"].parse::<u64>().unwrap() > limit / 2);
    let refused = run(&args(does_not));
    assert_eq!(refused.status.code(), Some(1));
    assert!(refused.stdout.is_empty());
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(
        message.contains(&format!(
            "the kernel allows {limit}; raise it (sysctl -w vm.max_map_count="
        )),
        "{message}"
    );
}

#[test]
fn a_label_is_quoted_in_rows_and_harmless_in_notes() {
    let mut command =
        command("bench --mb 1 --repeats 1 --warm 0 --layout contiguous --block 64K -q --label");
    let stream = whole_stream(&stdout(&command.arg("a, \"b\" #c").output().unwrap()));
    assert_eq!(stream.notes["label"], "a, \"b\" #c");
    assert!(stream.rows.iter().all(|row| row["label"] == "a, \"b\" #c"));
}

#[test]
fn the_summary_names_splits_speed_and_certainty_and_quiet_silences_it() {
    let args = "bench --mb 2 --repeats 6 --warm 1 --layout contiguous --block 64K";
    let loud = String::from_utf8(run(args).stderr).unwrap();
    for want in [
        "12 of 12 cases ok",
        "tracked pages",
        "pairs",
        "Throughput in MiB/s",
        "cold  proc",
        "warm  vmread",
    ] {
        assert!(loud.contains(want), "{want} not in\n{loud}");
    }
    assert!(
        !loud.contains('\r'),
        "no progress line unless on a terminal"
    );
    assert_eq!(run(&format!("{args} -q")).stderr, b"");
}

/// It could never be: a write to a shared huge page gives the child small ones.
#[test]
fn huge_pages_and_pages_of_the_childs_own_exclude_each_other() {
    for which in ["half", "all", "3", "random"] {
        let output = run(&format!("bench --mb 8 --pages thp --exclusive {which}"));
        assert_eq!(output.status.code(), Some(2), "{which}");
        assert!(output.stdout.is_empty());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.starts_with("cowitness: error: --exclusive takes --pages small: "),
            "{said}"
        );
    }
}
