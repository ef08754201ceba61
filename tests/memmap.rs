//! `memmap` against its contract, check by check: what it prints, what the kernel charges,
//! what it refuses, and that its file is gone whatever ends it.

mod common;

use common::{BINARY, Folder, Row, number, run, stdout, whole_stream};
use std::fs;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const USAGE: &str =
    "usage: memmap --mode stack|heap|mmap-anon|mmap-file <FILE>|fault-walk [--mb N]\n";

/// A run of `memmap`; words are separated by blanks.
fn memmap(words: &str) -> Output {
    run(&format!("memmap {words}"))
}

/// The lines of a run that ended well.
fn lines(words: &str) -> Vec<String> {
    stdout(&memmap(words)).lines().map(Into::into).collect()
}

/// A run of the command in a shell that has set something up first, with TMPDIR set.
fn shell(setup: &str, words: &str, folder: &Path) -> Output {
    Command::new("sh")
        .args(["-c", &format!("{setup}; exec {BINARY} memmap {words}")])
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .output()
        .expect("sh starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn page_bytes() -> u64 {
    let output = Command::new("getconf").arg("PAGESIZE").output().unwrap();
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap()
}

/// Numbers behind `name=` in a line, up to what is no digit.
fn after(line: &str, name: &str) -> u64 {
    let (_, rest) = line
        .split_once(name)
        .unwrap_or_else(|| panic!("{name}: {line}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_else(|_| panic!("{name}: {line}"))
}

/// The lines of the target's VMAs as maps printed them.
fn targets(lines: &[String], mode: &str) -> Vec<String> {
    let mark = format!("   <-- target (mode={mode})");
    let at = lines.iter().position(|line| line == "memmap: maps excerpt");
    let rest = &lines[at.expect("an excerpt") + 1..];
    rest.iter()
        .map_while(|line| line.strip_prefix("memmap:   ")?.strip_suffix(&mark))
        .map(Into::into)
        .collect()
}

fn span(maps_line: &str) -> u64 {
    let (range, _) = maps_line.split_once(' ').unwrap();
    let (start, end) = range.split_once('-').unwrap();
    let hex = |text| u64::from_str_radix(text, 16).unwrap();
    hex(end) - hex(start)
}

/// What stands behind the excerpt: growth of VmRSS in KiB and the faults.
fn charged(lines: &[String]) -> (u64, u64, u64) {
    let rss = lines
        .iter()
        .find(|line| line.starts_with("memmap: vmrss_before="));
    let rss = rss.expect("VmRSS");
    let form = format!(
        "memmap: vmrss_before={}KB vmrss_after={}KB",
        after(rss, "vmrss_before="),
        after(rss, "vmrss_after=")
    );
    assert_eq!(*rss, form);
    let faults = lines
        .iter()
        .find(|line| line.starts_with("memmap: faults "));
    let faults = faults.expect("faults");
    let (minor, major) = (after(faults, "minor="), after(faults, "major="));
    assert_eq!(
        *faults,
        format!("memmap: faults minor={minor} major={major}")
    );
    let growth = after(rss, "vmrss_after=").saturating_sub(after(rss, "vmrss_before="));
    (growth, minor, major)
}

/// Whether the kernel gives huge pages to whoever does not ask: then counts are others.
fn huge_by_default() -> bool {
    let folder = "/sys/kernel/mm/transparent_hugepage";
    let is = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.contains("[always]")
    };
    let sizes = fs::read_dir(folder).into_iter().flatten().flatten();
    is(&Path::new(folder).join("enabled"))
        || sizes
            .into_iter()
            .any(|size| is(&size.path().join("enabled")))
}

/// How far VmRSS may lag: up to Linux 6.1 by 64 faults, each of which may have mapped 16
/// pages (mm/memory.c, SPLIT_RSS_COUNTING); later by a batch for each CPU, twice their
/// number or 32 (lib/percpu_counter.c).
fn slack_kib() -> u64 {
    if common::kernel() < (6, 2) {
        return 64 * 16 * page_bytes() / 1024;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    64 * cpus.max(4) * page_bytes() / 1024
}

/// Header, excerpt, VmRSS and faults of an anonymous mode, in this order and nothing else.
fn anonymous(words: &str, mode: &str, bytes: u64, faults: std::ops::RangeInclusive<u64>) -> String {
    let lines = lines(words);
    let pages = bytes / page_bytes();
    assert_eq!(
        lines[0],
        format!("memmap: mode={mode} bytes={bytes} pages={pages}")
    );
    assert_eq!(lines[1], "memmap: maps excerpt");
    let targets = targets(&lines, mode);
    assert_eq!(targets.len(), 1, "{lines:?}");
    assert!(targets[0].contains(" rw-p "), "{lines:?}");
    assert_eq!(lines.len(), 5, "{lines:?}");
    let (growth, minor, major) = charged(&lines[3..]);
    assert!(growth + slack_kib() + 32 >= bytes / 1024, "{lines:?}");
    assert!(growth <= bytes / 1024 + slack_kib() + 256, "{lines:?}");
    if huge_by_default() {
        eprintln!("skipped: huge pages by default, so the faults are fewer");
        assert!(minor > 0, "{lines:?}");
    } else {
        assert!(faults.contains(&minor), "{minor}, not {faults:?}");
    }
    assert_eq!(major, 0, "{lines:?}");
    targets[0].clone()
}

/// The touching is there in the program that is shipped: each page is charged.
#[test]
fn each_page_of_anonymous_memory_is_charged() {
    let pages = (32 << 20) / page_bytes();
    let vma = anonymous(
        "--mode mmap-anon --mb 32",
        "mmap-anon",
        32 << 20,
        pages..=pages + 2,
    );
    assert_eq!(span(&vma), 32 << 20);
    assert!(vma.ends_with("00000000 00:00 0 "), "no name: {vma:?}");
}

#[test]
fn a_heap_is_a_mapping_with_a_page_for_its_header() {
    let pages = (64 << 20) / page_bytes();
    let vma = anonymous("--mode heap", "heap", 64 << 20, pages + 1..=pages + 3);
    assert_eq!(span(&vma), (64 << 20) + page_bytes());
    assert!(!vma.contains("[heap]"), "{vma}");
}

#[test]
fn the_program_break_is_the_heap_of_maps() {
    let pages = (8 << 20) / page_bytes();
    let vma = anonymous(
        "--mode heap --mb 8 --brk",
        "heap",
        8 << 20,
        pages..=pages + 2,
    );
    assert!(vma.ends_with("[heap]"), "{vma}");
    assert!(span(&vma) >= 8 << 20, "{vma}");
}

/// Four MiB at most; the page where the frame begins may be its caller's.
#[test]
fn a_stack_is_the_main_threads_and_has_four_mib_at_most() {
    for (mb, bytes) in [
        (1, 1 << 20),
        (3, 3 << 20),
        (4, 4 << 20),
        (64, 4 << 20),
        (1024, 4 << 20),
    ] {
        let pages = bytes / page_bytes();
        let vma = anonymous(
            &format!("--mode stack --mb {mb}"),
            "stack",
            bytes,
            pages - 2..=pages + 3,
        );
        assert!(vma.ends_with("[stack]"), "{vma}");
        assert!(span(&vma) >= bytes, "{vma}");
    }
}

#[test]
fn the_defaults_are_64_mib_and_no_advice() {
    let row = row("--mode mmap-anon");
    assert_eq!((&*row["bytes"], &*row["advise"]), ("67108864", "none"));
}

/// Cached pages come in groups, so a file costs fewer faults than it has pages.
#[test]
fn a_file_is_mapped_as_large_as_it_is_and_rounded_up_to_pages() {
    let folder = Folder::new();
    let path = folder.0.join("two words");
    let bytes = (2 << 20) + 1;
    fs::write(&path, vec![7; bytes]).unwrap();
    let output = Command::new(BINARY)
        .args(["memmap", "--mode", "mmap-file"])
        .arg(&path)
        .args(["--mb", "5"])
        .output()
        .unwrap();
    let text = stdout(&output);
    let lines: Vec<String> = text.lines().map(Into::into).collect();
    let pages = (bytes as u64).div_ceil(page_bytes());
    assert_eq!(
        lines[0],
        format!("memmap: mode=mmap-file bytes={bytes} pages={pages}")
    );
    let targets = targets(&lines, "mmap-file");
    assert_eq!(targets.len(), 1, "{text}");
    assert!(targets[0].contains(" r--p 00000000 "), "{text}");
    assert!(targets[0].ends_with(path.to_str().unwrap()), "{text}");
    assert_eq!(span(&targets[0]), pages * page_bytes());
    let (growth, minor, _) = charged(&lines);
    assert!(growth + slack_kib() + 32 >= bytes as u64 / 1024, "{text}");
    assert!(minor > 0 && minor <= pages, "{text}");
}

#[test]
fn a_fault_walk_has_eight_steps_and_leaves_no_file() {
    let folder = Folder::new();
    let output = Command::new(BINARY)
        .args(["memmap", "--mode", "fault-walk", "--mb", "16"])
        .env("TMPDIR", &folder.0)
        .output()
        .unwrap();
    let text = stdout(&output);
    let lines: Vec<String> = text.lines().map(Into::into).collect();
    let pages = (16 << 20) / page_bytes();
    assert_eq!(
        lines[0],
        format!("memmap: mode=fault-walk bytes=16777216 pages={pages}")
    );
    let path = lines[1]
        .strip_prefix("memmap: walk file=")
        .and_then(|rest| rest.strip_suffix(" steps=8"))
        .unwrap_or_else(|| panic!("{text}"));
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    assert_eq!(Path::new(path).parent(), Some(&*folder.0));
    let id = name
        .strip_prefix("memmap-walk-")
        .unwrap()
        .strip_suffix(".bin")
        .unwrap();
    assert!(id.parse::<u32>().is_ok(), "{name}");
    let mut sum = (0, 0);
    for (index, line) in (1..=8).zip(&lines[2..10]) {
        let (minor, major) = (after(line, "minor="), after(line, "major="));
        let want = format!(
            "memmap: step={index}/8 pages={} minor={minor} major={major}",
            pages / 8
        );
        assert_eq!(*line, want);
        assert!(minor + major > 0 && minor <= pages / 8, "{line}");
        sum = (sum.0 + minor, sum.1 + major);
    }
    let targets = targets(&lines, "fault-walk");
    assert_eq!(targets.len(), 1, "{text}");
    assert!(
        targets[0].contains(" r--p ") && targets[0].ends_with(path),
        "{text}"
    );
    assert_eq!(span(&targets[0]), 16 << 20);
    let (growth, minor, major) = charged(&lines);
    assert!(growth + slack_kib() + 32 >= 16 << 10, "{text}");
    assert_eq!((minor, major), sum);
    assert!(files(&folder.0).is_empty());
    assert!(stderr(&output).contains(" write=65536B"));
}

/// Steps are pages over eight, the last takes the remainder.
#[test]
fn steps_add_up_whatever_the_size() {
    for mb in [1, 3] {
        let lines = lines(&format!("--mode fault-walk --mb {mb}"));
        let pages: Vec<u64> = lines[2..10]
            .iter()
            .map(|line| after(line, "pages="))
            .collect();
        let all = (mb << 20) / page_bytes();
        assert_eq!(pages[..7], [all / 8; 7]);
        assert_eq!(pages.iter().sum::<u64>(), all);
    }
}

/// Nothing is run, nothing is written to standard output, and one line says how it is used.
#[test]
fn what_makes_no_sense_is_answered_with_the_usage_line() {
    let cases = [
        "",
        "--mb 4",
        "--mode",
        "--mode walk",
        "--mode=heap",
        "--mode HEAP",
        "--mode heap --mb",
        "--mode heap --mb 0",
        "--mode heap --mb 1025",
        "--mode heap --mb -1",
        "--mode heap --mb +4",
        "--mode heap --mb 4M",
        "--mode heap --mb 4.0",
        "--mode heap --mb 99999999999999999999",
        "--mode heap --mb=64",
        "--mode mmap-file",
        "--mode mmap-file --mb 4",
        "--mode heap /etc/passwd",
        "--mode fault-walk /etc/passwd",
        "--mode mmap-file /etc/passwd /etc/group",
        "/etc/passwd --mode stack",
        "heap",
        "--mode heap stray",
        "--mode heap --verbose",
        "--mode heap --quiet=yes",
        "--mode heap --csv=yes",
        "--mode heap --",
        "-x",
    ];
    for words in cases {
        let output = memmap(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert_eq!(stderr(&output), USAGE, "{words}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}

/// What its contract does not know is explained first.
#[test]
fn further_options_say_what_they_take() {
    let cases = [
        (
            "--mode heap --advise fast",
            "memmap: error: --advise 'fast': must be none, hugepage,",
        ),
        (
            "--mode heap --advise",
            "memmap: error: --advise needs a value: ADVICE",
        ),
        (
            "--mode stack --brk",
            "memmap: error: --brk with --mode 'stack': must be heap",
        ),
        (
            "--mode heap --seed x",
            "memmap: error: --seed 'x': must be 0 to",
        ),
    ];
    for (words, want) in cases {
        let output = memmap(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        let said = stderr(&output);
        assert!(said.starts_with(want) && said.ends_with(USAGE), "{said}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}

#[test]
fn files_that_cannot_be_mapped_are_named() {
    let folder = Folder::new();
    let empty = folder.0.join("empty.bin");
    fs::write(&empty, b"").unwrap();
    let fifo = folder.0.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let cases = [
        (&*empty, "file is empty"),
        (
            Path::new("/no/such/file"),
            "ENOENT: there is no such file or folder",
        ),
        (&*folder.0, "not a regular file"),
        (Path::new("/dev/null"), "not a regular file"),
        (&*fifo, "not a regular file"),
    ];
    for (path, want) in cases {
        let output = memmap(&format!("--mode mmap-file {}", path.display()));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let want = format!("memmap: error: {}: {want}\n", path.display());
        assert_eq!(stderr(&output), want);
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn under_the_name_memmap_it_is_memmap() {
    let folder = Folder::new();
    let link = folder.0.join("memmap");
    std::os::unix::fs::symlink(BINARY, &link).unwrap();
    let named = |words: &[&str]| Command::new(&link).args(words).output().unwrap();
    let text = stdout(&named(&["--mode", "mmap-anon", "--mb", "1"]));
    assert!(
        text.starts_with("memmap: mode=mmap-anon bytes=1048576 "),
        "{text}"
    );
    for words in [
        &["memmap", "--mode", "heap"][..],
        &["--mode", "heap", "then"],
        &[],
    ] {
        let output = named(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(stderr(&output), USAGE, "{words:?}");
    }
    // By argv[0] alone, wherever the file is.
    let mut bare = Command::new(BINARY);
    bare.arg0("memmap").args(["--mode", "stack"]);
    assert!(stdout(&bare.output().unwrap()).starts_with("memmap: mode=stack "));
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
    let slack = slack_kib() as i64 + 256;
    assert!(growth + slack >= 16 << 10, "{gone:?}");
    assert!(rest.abs() <= slack, "{gone:?}");
    // Paid for a second time, as it was the first.
    assert_eq!(get(&gone, "again_minor_faults"), get(&gone, "minor_faults"));
    let kept = row("--mode mmap-anon --mb 16 --advise free");
    assert!(get(&kept, "again_minor_faults") < get(&kept, "minor_faults").max(1));
    let lines = lines("--mode mmap-anon --mb 16 --advise nohugepage");
    let last = lines.last().unwrap();
    assert!(
        last.starts_with("memmap: advise=nohugepage given=before-touching vmrss_from="),
        "{lines:?}"
    );
    assert_eq!(after(last, "anon_huge_to="), 0);
    let minor = after(last, "touch_minor=") as i64;
    assert!((pages..=pages + 2).contains(&minor), "{last}");
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
        eprintln!("no huge page was free: nothing was shown");
    }
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
    for name in ["rss=", "pss=", "uss="] {
        assert!(
            grown(name) + slack_kib() + 32 >= 32 << 10,
            "{name} {lines:?}"
        );
    }
    let policy = lines.last().unwrap();
    let file = fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap();
    assert!(
        policy.starts_with(&format!("memmap: overcommit memory={} ", file.trim())),
        "{policy}"
    );
    assert!(after(policy, "commit_limit=") > 0 && after(policy, "committed_after=") > 0);
}

/// Before anything is touched, and never by a signal.
#[test]
fn a_stack_that_cannot_grow_is_an_error() {
    let folder = Folder::new();
    for setup in ["ulimit -s 1024", "ulimit -s 4096", "ulimit -v 3000"] {
        let output = shell(setup, "--mode stack", &folder.0);
        assert_eq!(output.status.code(), Some(1), "{setup}: {output:?}");
        let said = stderr(&output);
        assert!(
            said.starts_with("memmap: error: the stack cannot grow by 4 MiB: RLIMIT_STACK"),
            "{setup}: {said}"
        );
        assert!(output.stdout.is_empty(), "{setup}");
    }
    for setup in ["ulimit -s 5000", "ulimit -s unlimited || true"] {
        let output = shell(setup, "--mode stack", &folder.0);
        assert!(stdout(&output).contains("[stack]   <-- target"), "{setup}");
    }
    let output = shell("ulimit -s 2048", "--mode stack --mb 1", &folder.0);
    assert!(stdout(&output).contains("bytes=1048576"));
}

#[test]
fn memory_that_is_not_promised_is_an_error() {
    let folder = Folder::new();
    for (setup, words, doing) in [
        ("ulimit -v 20000", "--mode heap", "map anonymous memory"),
        (
            "ulimit -v 20000",
            "--mode mmap-anon",
            "map anonymous memory",
        ),
        (
            "ulimit -d 20000",
            "--mode heap --brk",
            "grow the program break",
        ),
    ] {
        let output = shell(setup, words, &folder.0);
        assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
        let want = format!("memmap: error: cannot {doing}: ENOMEM: see ulimit -v");
        assert!(stderr(&output).contains(&want), "{}", stderr(&output));
    }
}

/// What is in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn no_room_for_the_walk_file_leaves_nothing() {
    let folder = Folder::new();
    let output = shell("ulimit -f 2000", "--mode fault-walk --mb 4", &folder.0);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains(".bin: EFBIG: larger than a file may be here"));
    assert!(output.stdout.is_empty() && files(&folder.0).is_empty());
    let output = shell(
        "true",
        "--mode fault-walk --mb 1",
        Path::new("/nonexistent"),
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("/nonexistent/memmap-walk-"));
}

/// A file system of 1 MiB, in a mount namespace of the test's own.
#[test]
fn a_full_file_system_leaves_nothing() {
    if !common::is_root() {
        eprintln!("skipped: only root can mount");
        return;
    }
    let folder = Folder::new();
    let script = format!(
        "mount -t tmpfs -o size=1m none {0} && TMPDIR={0} {BINARY} memmap --mode fault-walk --mb 2; \
         echo status $?; ls -A {0} | wc -l",
        folder.0.display()
    );
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = stderr(&output);
    if said.contains("unshare failed") || said.contains("permission denied") {
        eprintln!("skipped: no mount namespaces here: {said}");
        return;
    }
    assert!(said.contains(".bin: ENOSPC: no room there"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "status 1\n0\n");
}

/// A child that does not outlive the test.
struct Running(Child);

impl Running {
    /// Starts a walk that takes a while.
    fn walk(folder: &Path, setup: &str) -> Self {
        let script = format!("{setup}; exec {BINARY} memmap --mode fault-walk --mb 1024");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("TMPDIR", folder);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command.spawn().expect("sh starts"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Its exit status and what it said.
    fn end(&mut self) -> (Option<i32>, Option<i32>, String) {
        let status = self.0.wait().unwrap();
        let mut said = String::new();
        let _ = self.0.stderr.take().unwrap().read_to_string(&mut said);
        (status.code(), status.signal(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the walk file is there.
fn walk_file(folder: &Path) -> PathBuf {
    for _ in 0..5000 {
        if let Some(path) = files(folder).pop() {
            return path;
        }
        sleep(Duration::from_millis(1));
    }
    panic!("no walk file");
}

#[test]
fn signals_remove_the_walk_file() {
    let signals = [("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-QUIT", 3)];
    for (name, number) in signals
        .into_iter()
        .chain([("-USR1", 10), ("-ALRM", 14), ("-XCPU", 24)])
    {
        let folder = Folder::new();
        let mut running = Running::walk(&folder.0, "true");
        let path = walk_file(&folder.0);
        running.signal(name);
        let (code, signal, said) = running.end();
        assert_eq!((code, signal), (Some(128 + number), None), "{name}: {said}");
        assert!(
            said.contains(&format!("stopped by signal {number}")),
            "{said}"
        );
        assert!(!path.exists() && files(&folder.0).is_empty(), "{name}");
    }
}

/// nohup(1) is heeded.
#[test]
fn an_ignored_hangup_stays_ignored() {
    let folder = Folder::new();
    let mut running = Running::walk(&folder.0, "trap '' HUP");
    walk_file(&folder.0);
    running.signal("-HUP");
    let mut text = String::new();
    running
        .0
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let (code, ..) = running.end();
    assert_eq!(code, Some(0));
    assert!(
        text.contains("memmap: step=8/8 ") && files(&folder.0).is_empty(),
        "{text}"
    );
}

/// What a run that was killed left behind is somebody's file, and is not overwritten.
#[test]
fn a_file_that_is_there_is_left_alone() {
    let folder = Folder::new();
    let path = folder.0.display();
    let setup = format!("echo mine > {path}/memmap-walk-$$.bin");
    let output = shell(&setup, "--mode fault-walk --mb 1", &folder.0);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains(": EEXIST: left by a run that was killed"));
    let left = files(&folder.0);
    assert_eq!(fs::read_to_string(&left[0]).unwrap(), "mine\n");
}

/// A page that cannot be read is an error like any other, and the file is gone.
#[test]
fn a_file_that_is_cut_meanwhile_is_an_error() {
    let folder = Folder::new();
    for _ in 0..20 {
        let mut running = Running::walk(&folder.0, "true");
        let path = walk_file(&folder.0);
        let maps = format!("/proc/{}/maps", running.0.id());
        let name = path.to_str().unwrap();
        // It is mapped once for the rehearsal, then as a whole.
        let whole = |text: &str| {
            let line = text.lines().find(|line| line.ends_with(name));
            line.is_some_and(|line| span(line) == 1 << 30)
        };
        while fs::read_to_string(&maps).is_ok_and(|text| !text.is_empty() && !whole(&text)) {}
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            file.set_len(4096).unwrap();
        }
        let (code, signal, said) = running.end();
        assert!(files(&folder.0).is_empty());
        assert_eq!(signal, None, "{said}");
        if code == Some(1) {
            assert!(
                said.contains("memmap: error: a page of the file cannot be read"),
                "{said}"
            );
            return;
        }
    }
    eprintln!("skipped: it was always faster");
}

#[test]
fn a_closed_or_full_standard_output_is_an_error() {
    let folder = Folder::new();
    for setup in ["exec >&-", "exec >/dev/full"] {
        let output = shell(setup, "--mode fault-walk --mb 1", &folder.0);
        assert_eq!(output.status.code(), Some(1), "{setup}: {output:?}");
        assert!(stderr(&output).contains("memmap: error: cannot write to standard output"));
        assert!(files(&folder.0).is_empty());
    }
}

/// Quiet leaves the lines and takes the note away.
#[test]
fn quiet_says_nothing_on_standard_error() {
    let output = memmap("--mode heap --mb 1 -q");
    assert!(output.stderr.is_empty() && !output.stdout.is_empty());
    let note = stderr(&memmap("--mode heap --mb 1"));
    assert!(
        note.starts_with("memmap: in force: thp=")
            && note.contains(" fault_around=")
            && note.ends_with(" write=none\n"),
        "{note}"
    );
}

/// A frame on a stack that was used before is paid for again.
#[test]
fn a_second_stack_costs_what_the_first_did() {
    let one = "memmap --mode stack --csv -q";
    let text = stdout(&run(&format!("{one} then {one} then {one}")));
    let counts: Vec<u64> = text
        .split("#cowitness 1\n")
        .skip(1)
        .map(|stream| {
            whole_stream(&format!("#cowitness 1\n{stream}"))
                .rows
                .remove(0)
        })
        .map(|row| number(&row, "minor_faults").unwrap().unsigned_abs())
        .collect();
    let pages = (4 << 20) / page_bytes();
    assert_eq!(counts.len(), 3);
    for count in counts {
        if huge_by_default() {
            eprintln!("skipped: a stack that has room may have huge pages");
            assert!(count > 0);
        } else {
            assert!((pages - 2..=pages + 3).contains(&count), "{count}");
        }
    }
}

/// Huge pages that a parent has taken away are not in force.
#[test]
fn huge_pages_switched_off_by_prctl_are_named() {
    const OFF: &str = "import ctypes, os, sys\n\
        ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let output = Command::new("python3")
        .args([
            "-c",
            OFF,
            BINARY,
            "memmap",
            "--mode",
            "mmap-anon",
            "--mb",
            "4",
            "--csv",
        ])
        .output()
        .unwrap();
    let rows = whole_stream(&stdout(&output)).rows;
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("skipped: no huge pages here");
        return;
    }
    assert_eq!(rows[0]["thp"], "off-by-prctl");
    assert_eq!(rows[0]["anon_huge_kib"], "0");
    assert!(stderr(&output).contains("memmap: in force: thp=off-by-prctl"));
}

/// A folder's name cannot add lines.
#[test]
fn control_characters_of_a_path_become_question_marks() {
    let folder = Folder::new();
    let odd = folder.0.join("a\nb\x1b[31m ü");
    fs::create_dir(&odd).unwrap();
    let text = stdout(&shell("true", "--mode fault-walk --mb 1", &odd));
    let line = text.lines().nth(1).unwrap();
    assert!(line.contains("/a?b?[31m ü/memmap-walk-"), "{line}");
    let missing = shell("true", "--mode fault-walk --mb 1", &odd.join("c"));
    assert!(
        stderr(&missing).contains("/a?b?[31m ü/c/memmap-walk-"),
        "{missing:?}"
    );
    assert_eq!(stderr(&missing).lines().count(), 1);
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
