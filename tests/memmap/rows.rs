//! The row of `--csv`, advice and report.

use super::common::{Row, number, whole_stream};
use super::*;

#[test]
fn the_defaults_are_64_mib_and_no_advice() {
    let row = row("--mode mmap-anon");
    assert_eq!((&*row["bytes"], &*row["advise"]), ("67108864", "none"));
}

fn row(words: &str) -> Row {
    let mut rows = whole_stream(&stdout(&memmap(&format!("{words} --csv")))).rows;
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn a_row_has_what_the_lines_have_and_its_environment() {
    let output = memmap("--mode fault-walk --mb 2 --csv --label here --report");
    let stream = whole_stream(&stdout(&output));
    assert_eq!(stream.notes["command"], "memmap");
    assert_eq!(stream.notes["option_mode"], "fault-walk");
    assert_eq!(stream.notes["option_mb"], "2");
    let row = &stream.rows[0];
    let is = |column: &str, value: &str| assert_eq!(row[column], value, "{column}");
    is("record", "memmap");
    is("label", "here");
    is("mode", "fault-walk");
    is("bytes", "2097152");
    is("vmas", "1");
    is("write_bytes", "65536");
    is("status", "ok");
    let get = |column: &str| number(row, column).unwrap_or_else(|| panic!("{column}: {row:?}"));
    assert_eq!(get("target_rss_kib"), 2048);
    assert!(get("minor_faults") + get("major_faults") > 0);
    assert!(get("vsz_after_kib") - get("vsz_before_kib") >= 2048);
    assert!(get("commit_limit_kib") > 0 && get("committed_after_kib") > 0);
    assert_eq!(get("swap_before_kib"), 0);
    assert!(stderr(&output).starts_with("memmap: in force: thp="));
}

/// Smaps counts each page, whatever VmRSS does: all that was touched is resident.
#[test]
fn what_was_touched_is_resident_to_the_page() {
    for (words, kib) in [
        ("--mode mmap-anon --mb 16", 16 << 10),
        (
            "--mode heap --mb 16",
            (16 << 10) + page_bytes() as i64 / 1024,
        ),
        ("--mode heap --mb 16 --brk", 16 << 10),
        ("--mode fault-walk --mb 4", 4 << 10),
    ] {
        assert_eq!(number(&row(words), "target_rss_kib"), Some(kib), "{words}");
    }
}

#[test]
fn advice_shows_what_it_changed() {
    let pages = (16 << 20) / page_bytes() as i64;
    let get = |row: &Row, column: &str| number(row, column).unwrap();
    let gone = row("--mode mmap-anon --mb 16 --advise dontneed");
    let growth = get(&gone, "rss_after_kib") - get(&gone, "rss_before_kib");
    let rest = get(&gone, "advised_rss_kib") - get(&gone, "rss_before_kib");
    let slack = slack_kib() as i64;
    assert!(growth + slack >= 16 << 10, "{gone:?}");
    assert!(rest.abs() <= slack, "{gone:?}");
    // Paid for a second time, as it was the first.
    assert_eq!(get(&gone, "again_minor_faults"), get(&gone, "minor_faults"));
    let lines = lines("--mode mmap-anon --mb 16 --advise nohugepage");
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("memmap: advise=nohugepage given=before-touching vmrss_from="),
        "{lines:?}"
    );
    assert_eq!(after(last, "anon_huge_to="), 0);
    let minor = after(last, "touch_minor=") as i64;
    assert_eq!(minor, pages, "{last}");
    assert!(!last.contains("anon_huge_from="), "{last}");
}

/// Huge pages where they are offered: one fault for each, and smaps shows them.
#[test]
fn huge_pages_cost_one_fault_each() {
    let folder = Path::new("/sys/kernel/mm/transparent_hugepage");
    let mode = fs::read_to_string(folder.join("enabled")).unwrap_or_default();
    let size = fs::read_to_string(folder.join("hpage_pmd_size")).unwrap_or_default();
    let Ok(huge) = size.trim().parse::<i64>() else {
        eprintln!("skipped: no huge pages here");
        return;
    };
    if mode.contains("[never]") {
        eprintln!("skipped: huge pages are off here");
        return;
    }
    let row = row("--mode mmap-anon --mb 64 --advise hugepage");
    let huge_kib = number(&row, "anon_huge_kib").unwrap();
    let faults = number(&row, "minor_faults").unwrap();
    let small = ((64 << 20) - huge_kib * 1024) / page_bytes() as i64;
    assert!(faults <= huge_kib * 1024 / huge + small + 2, "{row:?}");
    assert!(faults >= huge_kib * 1024 / huge, "{row:?}");
    if huge_kib == 0 {
        // Only where memory is too fragmented for a single one of 32.
        assert!(no_huge_page_is_free(huge), "{row:?}");
        eprintln!("skipped: no huge page was free: nothing was shown");
    }
}

/// Whether /proc/buddyinfo has no free block as large as a huge page.
fn no_huge_page_is_free(huge_bytes: i64) -> bool {
    let order = (huge_bytes.unsigned_abs() / page_bytes()).ilog2() as usize;
    let text = fs::read_to_string("/proc/buddyinfo").unwrap();
    let mut zones = text.lines();
    zones.all(|zone| {
        let free = zone.split_ascii_whitespace().skip(4 + order);
        free.into_iter().all(|count| count == "0")
    })
}

/// Rows tell what the allocation was, so that only the same is put together.
#[test]
fn a_row_names_its_file_and_whether_it_is_the_break() {
    let is = |words: &str, brk: &str, file: &str| {
        let row = row(words);
        assert_eq!((&*row["brk"], &*row["file"]), (brk, file), "{words}");
    };
    is("--mode heap --mb 1", "no", "");
    is("--mode heap --mb 1 --brk", "yes", "");
    is("--mode fault-walk --mb 1", "no", "");
    is("--mode mmap-file /proc/self/exe", "no", "/proc/self/exe");
    let folder = Folder::new();
    let deep = folder.0.join("a, \"b\"".repeat(20)).join("d".repeat(200));
    fs::create_dir_all(&deep).unwrap();
    let path = deep.join("file");
    fs::write(&path, "x").unwrap();
    let output = Command::new(BINARY)
        .args(["memmap", "--csv", "--mode", "mmap-file"])
        .arg(&path)
        .output()
        .unwrap();
    let row = whole_stream(&stdout(&output)).rows.remove(0);
    let path = path.to_str().unwrap();
    assert_eq!(row["file"], format!("...{}", &path[path.len() - 256..]));
}

/// Without /sys nobody knows; it is not that the kernel has none.
#[test]
fn huge_pages_that_are_hidden_are_unknown() {
    let script =
        format!("mount -t tmpfs none /sys && exec {BINARY} memmap --mode heap --mb 1 --csv");
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output();
    let output = output.unwrap();
    let said = stderr(&output);
    if !common::is_root() || said.contains("unshare failed") || said.contains("mount:") {
        eprintln!("skipped: no mount namespaces here: {said}");
        return;
    }
    assert!(
        said.starts_with("memmap: in force: thp=unknown (ENOENT) "),
        "{said}"
    );
    assert_eq!(whole_stream(&stdout(&output)).rows[0]["thp"], "");
}

/// What is freed stays until memory is short, and is not paid for again; a file takes no such
/// advice.
#[test]
fn what_is_freed_is_not_paid_for_again() {
    for mode in [
        "stack",
        "heap --mb 8",
        "heap --mb 8 --brk",
        "mmap-anon --mb 8",
    ] {
        let row = row(&format!("--mode {mode} --advise free"));
        let get = |column: &str| number(&row, column).unwrap();
        let kept = get("advised_rss_kib") - get("rss_after_kib");
        let slack = slack_kib() as i64;
        // Calls after the touch lie above the frame, on the stack.
        let own = if mode == "stack" { OWN_KIB as i64 } else { 0 };
        assert!((-slack..=slack + own).contains(&kept), "{row:?}");
        // Where the CPU does not mark a page as written by itself, writing is a fault.
        if cfg!(target_arch = "x86_64") {
            assert_eq!(get("again_minor_faults"), 0, "{row:?}");
        }
    }
    for mode in ["fault-walk --mb 1", &format!("mmap-file {BINARY}")] {
        let output = memmap(&format!("--mode {mode} --advise free"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let want = "memmap: error: cannot advise free: EINVAL: this kernel, or this kind";
        assert!(stderr(&output).contains(want), "{output:?}");
    }
}

/// What failed is said, also if the row that says it cannot be written.
#[test]
fn a_full_standard_output_hides_no_other_error() {
    let folder = Folder::new();
    let words = "--mode fault-walk --mb 1 --advise free --csv";
    let output = shell("exec >/dev/full", words, &folder.0);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.contains("memmap: error: cannot advise free: EINVAL"),
        "{said}"
    );
    assert!(
        said.contains("cannot write to standard output: ENOSPC"),
        "{said}"
    );
}

#[test]
fn advice_that_is_not_taken_is_an_error_and_a_row() {
    let folder = Folder::new();
    let output = shell(
        "true",
        "--mode fault-walk --mb 1 --advise free --csv",
        &folder.0,
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("memmap: error: cannot advise free: EINVAL"));
    let stream = whole_stream(&String::from_utf8_lossy(&output.stdout));
    assert_eq!(stream.rows[0]["status"], "errno:EINVAL");
    assert_eq!(stream.rows[0]["minor_faults"], "");
    assert!(files(&folder.0).is_empty());
}

#[test]
fn a_report_shows_what_is_promised_and_what_is_paid() {
    let lines = lines("--mode mmap-anon --mb 32 --report");
    let report = |when: &str| {
        let start = format!("memmap: report {when} vsz=");
        lines
            .iter()
            .find(|line| line.starts_with(&start))
            .unwrap_or_else(|| panic!("{lines:?}"))
    };
    let grown = |name: &str| after(report("after"), name) - after(report("before"), name);
    assert_eq!(grown("vsz="), 32 << 10);
    // Pages of the program's own file stop being private when another test runs it, too.
    let file = fs::metadata(BINARY).unwrap().len() / 1024;
    for (name, less) in [("rss=", slack_kib()), ("pss=", file), ("uss=", file)] {
        assert!(grown(name) + less >= 32 << 10, "{name} {lines:?}");
    }
    // Nothing that the tool itself takes to look is in it.
    let (rss, slack) = (grown("rss="), slack_kib());
    assert!(rss <= (32 << 10) + slack, "{lines:?}");
    for when in ["before", "after"] {
        let [rss, pss, uss] = ["rss=", "pss=", "uss="].map(|name| after(report(when), name));
        assert!(uss <= pss && pss <= rss + slack, "{lines:?}");
    }
    let policy = lines.last().unwrap();
    let file = fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap();
    assert!(
        policy.starts_with(&format!("memmap: overcommit memory={} ", file.trim())),
        "{policy}"
    );
    assert!(after(policy, "commit_limit=") > 0 && after(policy, "committed_after=") > 0);
}

/// One row each, with `then` between commands, and a mode of each kind.
#[test]
fn several_runs_in_one_line_each_have_a_stream() {
    let output = run("memmap --mode heap --mb 1 --csv -q then memmap --mode stack --csv -q");
    let text = stdout(&output);
    let second = text.rfind("#cowitness 1").unwrap();
    let rows: Vec<Row> = [&text[..second], &text[second..]]
        .into_iter()
        .flat_map(|stream| whole_stream(stream).rows)
        .collect();
    assert_eq!((&*rows[0]["mode"], &*rows[1]["mode"]), ("heap", "stack"));
}
