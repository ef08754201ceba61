//! `audit` by `hybrid` of anonymous memory in huge pages that fork shares and that one side has
//! rewritten in part: bit 56 of pagemap errs on it in both ways. Whether a page was split is told
//! by this test's own look at the frames, not by what the tool says.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{Row, is_root, number, run, stdout, vmread_splits, whole_stream};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};

const PAGE: u64 = 4096;
const FRAME: u64 = (1 << 55) - 1;

/// Two processes that share 16 MiB in huge pages; what the mode says is done by one of them.
/// Prints the id of the one to read and where the memory lies.
const SHARED: &str = r#"
import ctypes, mmap, os, signal, sys
mode, size, huge, page = sys.argv[1], 16 << 20, 2 << 20, 4096
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, size + huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
first = -address % huge
memory.madvise(14)  # MADV_HUGEPAGE
memory[first:first + size] = b"\x07" * size
rollup = open("/proc/self/smaps_rollup").read().split("AnonHugePages:")[-1].split()[0]
def rewrite():
    for at in range(first, first + size, 2 * page):
        memory[at] = 9
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if mode == "child-rewrites":
        rewrite()
    if "child-breaks" in mode:
        for at in range(first, first + size, huge):
            memory[at + huge - page] = 9
    if mode == "child-breaks, advises":
        memory.madvise(15)  # MADV_NOHUGEPAGE
    if mode == "child-breaks, is told":
        libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
    os.write(tell, b"x")
    while True:
        signal.pause()
os.read(ready, 1)
if mode == "parent-rewrites":
    rewrite()
if mode == "parent-drops" or "child-breaks" in mode:
    for at in range(first, first + size, huge):
        memory.madvise(4, at + huge // 2, huge // 2)  # MADV_DONTNEED
print(os.getpid() if mode == "child-rewrites" else child, address + first, size, rollup, flush=True)
sys.stdin.read()
"#;

/// Killed with the value, and its child with it.
struct Shared {
    process: Child,
    pid: u32,
    start: u64,
    bytes: u64,
    /// Of huge pages, at first.
    huge_kib: u64,
}

impl Shared {
    fn new(mode: &str) -> Self {
        let mut process = Command::new("/usr/bin/python3")
            .args(["-c", SHARED, mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().map(|word| word.parse().unwrap());
        let mut word = || words.next().expect("the target is ready");
        Self {
            pid: word() as u32,
            start: word(),
            bytes: word(),
            huge_kib: word(),
            process,
        }
    }

    fn frames(&self) -> Vec<u64> {
        let pagemap = File::open(format!("/proc/{}/pagemap", self.pid)).unwrap();
        let mut entries = vec![0; (self.bytes / PAGE * 8) as usize];
        pagemap
            .read_exact_at(&mut entries, self.start / PAGE * 8)
            .unwrap();
        let words = entries.as_chunks::<8>().0.iter();
        words
            .map(|word| u64::from_ne_bytes(*word) & FRAME)
            .collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn moved(before: &[u64], after: &[u64]) -> i64 {
    let pairs = before.iter().zip(after);
    pairs.filter(|(before, after)| before != after).count() as i64
}

/// In the last two smaps says that no huge page is there and none will be: what one was broken
/// into, by writing, is in a large folio all the same, and fork shares that.
const MODES: [&str; 5] = [
    "parent-rewrites",
    "child-rewrites",
    "parent-drops",
    "child-breaks, advises",
    "child-breaks, is told",
];

/// A target in that mode, or why there is none here.
fn target(mode: &str) -> Option<Shared> {
    let shared = Shared::new(mode);
    if !is_root() || shared.frames().contains(&0) {
        eprintln!("skipped: frames are hidden");
        return None;
    }
    if shared.huge_kib == 0 {
        eprintln!("skipped: no huge pages here");
        return None;
    }
    Some(shared)
}

#[test]
fn hybrid_moves_no_page_of_a_shared_huge_page() {
    for mode in MODES {
        let Some(shared) = target(mode) else { return };
        let before = shared.frames();
        let stream = whole_stream(&stdout(&run(&format!("audit -q --stop {}", shared.pid))));
        let row = &stream.rows[0];
        assert_eq!(moved(&before, &shared.frames()), 0, "{mode}: {row:?}");
        assert_eq!(number(row, "split_pages"), Some(0), "{mode}");
        assert_eq!(
            number(row, "bytes_per_pass").map(|got| got > 16 << 20),
            Some(true)
        );
    }
}

/// The memory's own row of `survey`, or that of the greater part of it.
fn survey(pid: u32, start: u64) -> Row {
    let rows = whole_stream(&stdout(&run(&format!("survey -q {pid}")))).rows;
    let at = |row: &Row, column: &str| u64::from_str_radix(&row[column], 16).unwrap_or(0);
    let holds = |row: &&Row| (at(row, "start")..at(row, "end")).contains(&start);
    rows.iter().find(holds).expect("it is mapped").clone()
}

/// Elsewhere on the machine large folios change nothing: root is told of each page.
#[test]
fn survey_knows_what_is_split_unless_a_large_folio_is_there() {
    let Some(shared) = target("child-breaks, advises") else {
        return;
    };
    let row = survey(shared.pid, shared.start);
    assert_eq!(number(&row, "vmread_split_pages"), None, "{row:?}");
    assert_eq!(number(&row, "hybrid_split_pages"), Some(0), "{row:?}");
    let small = helpers::Target::new(helpers::PREFORKED);
    let worker = small.ready.split(' ').next().unwrap();
    let total = helpers::survey_total(worker);
    let predicted = number(&total, "vmread_split_pages");
    let want = match vmread_splits() {
        true => number(&total, "shared_anon_pages"),
        false => Some(0),
    };
    // Of what is readable.
    assert!(predicted.is_some() && predicted <= want, "{total:?}");
    assert!(!vmread_splits() || predicted >= Some(3 << 10), "{total:?}");
}
