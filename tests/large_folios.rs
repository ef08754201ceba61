//! `audit` by `hybrid` of anonymous memory in huge pages that fork shares and that one side has
//! rewritten in part: bit 56 of pagemap errs on it in both ways. Whether a page was split is told
//! by this test's own look at the frames, not by what the tool says.

mod common;

use common::{is_root, number, run, stdout, whole_stream};
use std::fs::{self, File};
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
def rewrite():
    for at in range(first, first + size, 2 * page):
        memory[at] = 9
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if mode == "child-rewrites":
        rewrite()
    os.write(tell, b"x")
    while True:
        signal.pause()
os.read(ready, 1)
if mode == "parent-rewrites":
    rewrite()
if mode == "parent-drops":
    for at in range(first, first + size, huge):
        memory.madvise(4, at + huge // 2, huge // 2)  # MADV_DONTNEED
print(os.getpid() if mode == "child-rewrites" else child, address + first, size, flush=True)
sys.stdin.read()
"#;

/// Killed with the value, and its child with it.
struct Shared {
    process: Child,
    pid: u32,
    start: u64,
    bytes: u64,
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
            process,
        }
    }

    /// Whether the kernel did give it huge pages, at first.
    fn has_huge_pages(&self) -> bool {
        [self.pid, self.process.id()].iter().any(|pid| {
            let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
            let mut lines = smaps.lines();
            lines.any(|line| line.starts_with("AnonHugePages:") && !line.contains(" 0 kB"))
        })
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

const MODES: [&str; 3] = ["parent-rewrites", "child-rewrites", "parent-drops"];

/// A target in that mode, or why there is none here.
fn target(mode: &str) -> Option<Shared> {
    let shared = Shared::new(mode);
    if !is_root() || shared.frames().contains(&0) {
        eprintln!("skipped: frames are hidden");
        return None;
    }
    // The writer's huge pages are in pieces; who rewrote nothing still has them whole, unless
    // the other half was dropped from under them.
    if !shared.has_huge_pages() {
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
