//! `survey` on a machine with KSM, swap, huge pages and userfaultfd in use: what pagemap does not
//! tell is unknown, and nothing is called clean that is not.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{Row, is_root, number, run, stdout, vmread_splits, whole_stream};
use helpers::{Target, audit, get};
use std::fs::{self, File};
use std::process::Command;

/// The lock that `probe --setup` takes, too: nobody else changes this machine meanwhile.
fn alone() -> Option<File> {
    if !is_root() {
        eprintln!("skipped: only root may set the machine up");
        return None;
    }
    let folder = File::open("/sys/kernel/mm").ok()?;
    folder.lock().unwrap();
    Some(folder)
}

/// Files with what stood in them, which is put back.
struct Settings(Vec<(String, String)>);

impl Settings {
    /// `None`, and a word, if there is no such file or it may not be written.
    fn new(settings: &[(&str, &str)]) -> Option<Self> {
        let mut before = Self(Vec::new());
        for &(path, value) in settings {
            let Ok(old) = fs::read_to_string(path) else {
                eprintln!("skipped: there is no {path}");
                return None;
            };
            if let Err(error) = fs::write(path, value) {
                eprintln!("skipped: {path}: {error}");
                return None;
            }
            before.0.push((path.into(), old));
        }
        Some(before)
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, old) in self.0.iter().rev() {
            let _ = fs::write(path, old.trim());
        }
    }
}

/// Swap space of compressed memory, taken away with the value.
struct Zram(String);

impl Zram {
    fn new() -> Option<Self> {
        let Ok(number) = fs::read_to_string("/sys/class/zram-control/hot_add") else {
            eprintln!("skipped: there is no zram here");
            return None;
        };
        let zram = Self(number.trim().into());
        let node = zram.node();
        fs::write(format!("/sys/block/zram{}/disksize", zram.0), "64M").unwrap();
        for command in ["mkswap", "swapon"] {
            let done = Command::new(command).arg(&node).output();
            if !done.is_ok_and(|output| output.status.success()) {
                eprintln!("skipped: {command} {node} does not work here");
                return None;
            }
        }
        Some(zram)
    }

    fn node(&self) -> String {
        format!("/dev/zram{}", self.0)
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(self.node()).output();
        let _ = fs::write(format!("/sys/block/zram{}/reset", self.0), "1");
        let _ = fs::write("/sys/class/zram-control/hot_remove", &self.0);
    }
}

/// What each script begins with.
const PRELUDE: &str = r#"
import ctypes, mmap, os, random, signal, sys, time
PAGES = 512
page = os.sysconf("SC_PAGE_SIZE")
libc = ctypes.CDLL(None, use_errno=True)
def private():
    memory = mmap.mmap(-1, PAGES * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(15)  # MADV_NOHUGEPAGE
    return memory
def fill(memory):
    for index in range(PAGES):
        memory[index * page:(index + 1) * page] = random.randbytes(page)
def start(memory):
    return f"{ctypes.addressof(ctypes.c_char.from_buffer(memory)):x}"
"#;

/// A process of such a script, killed with its children; it prints its id, or another's, and where
/// the memory is.
struct Known {
    _target: Target,
    pid: String,
    start: String,
}

impl Known {
    fn new(script: &str) -> Self {
        let target = Target::new(&format!("{PRELUDE}{script}"));
        let (pid, start) = target.ready.split_once(' ').expect("it is ready");
        Self {
            pid: pid.into(),
            start: start.into(),
            _target: target,
        }
    }

    /// The row of the memory, and the total.
    fn survey(&self) -> (Row, Row) {
        let stream = whole_stream(&stdout(&run(&format!("survey {} -q", self.pid))));
        let total = stream.rows.last().unwrap().clone();
        let mut rows = stream.rows.into_iter();
        let row = rows.find(|row| row["start"] == self.start);
        (row.expect("the memory is one VMA"), total)
    }

    /// Pages that a pin copies although pagemap calls them the process's own.
    fn copies(&self) -> i64 {
        let row = &audit(&format!("--stop --method vmread {}", self.pid)).rows[0];
        get(row, "split_exclusive_pages")
    }
}

/// What bit 56 calls the process's own, and a pin copies all the same, is unknown.
fn is_unknown(known: &Known) {
    let (row, total) = known.survey();
    assert!(get(&row, "exclusive_pages") >= 512, "{row:?}");
    for row in [&row, &total] {
        assert_eq!(number(row, "vmread_split_pages"), None, "{row:?}");
        assert_eq!(number(row, "vmread_extra_kib"), None, "{row:?}");
        assert_eq!(number(row, "hybrid_split_pages"), Some(0), "{row:?}");
    }
    assert_ne!(total["advice"], "vmread");
}

/// Takes apart what KSM has joined, if that was only this test's: what is left of it after a
/// process has ended counts as joined until KSM runs again.
struct Unjoined(bool);

impl Unjoined {
    fn at_the_end() -> Self {
        let joined = fs::read_to_string("/sys/kernel/mm/ksm/pages_shared");
        Self(joined.is_ok_and(|pages| pages.trim() == "0"))
    }
}

impl Drop for Unjoined {
    fn drop(&mut self) {
        if self.0 {
            let _ = fs::write("/sys/kernel/mm/ksm/run", "2");
        }
    }
}

/// Pairs of equal pages; of each pair one is written to once KSM has joined them.
const JOINED: &str = r#"
PAGES *= 2
memory = private()
memory.madvise(12)  # MADV_MERGEABLE
fill(memory)
PAGES //= 2
memory[PAGES * page:] = memory[:PAGES * page]
def merging():
    return int(open("/proc/self/ksm_merging_pages").read())
for attempt in range(600):
    if merging() >= 2 * PAGES - 2: break
    time.sleep(.05)
joined = merging() >= 2 * PAGES - 2
open("/sys/kernel/mm/ksm/run", "w").write("0")
for index in range(PAGES):
    memory[(PAGES + index) * page] ^= 1
print(os.getpid() if joined else 0, start(memory), flush=True)
sys.stdin.read()
"#;

#[test]
fn pages_that_ksm_has_joined_are_not_called_the_process_s_own() {
    let Some(_alone) = alone() else { return };
    let ksm = |file| format!("/sys/kernel/mm/ksm/{file}");
    let settings = [
        (&*ksm("pages_to_scan"), "20000"),
        (&*ksm("sleep_millisecs"), "1"),
        (&*ksm("run"), "1"),
    ];
    let Some(_settings) = Settings::new(&settings) else {
        return;
    };
    let _unjoined = Unjoined::at_the_end();
    let known = Known::new(JOINED);
    if known.pid == "0" {
        eprintln!("skipped: KSM has not joined the pages");
        return;
    }
    is_unknown(&known);
    // Of who has none, nothing is in doubt.
    let plain = Known::new(
        "memory = private(); fill(memory)\nprint(os.getpid(), start(memory), flush=True)\nsys.stdin.read()",
    );
    assert_eq!(get(&plain.survey().0, "vmread_split_pages"), 0);
    assert_eq!(known.copies() >= 512, vmread_splits());
}

/// A child reads what its parent still has in swap.
const HALF_SWAPPED: &str = r#"
memory = private()
fill(memory)
memory.madvise(21)  # MADV_PAGEOUT
memory.madvise(21)
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for index in range(PAGES):
        memory[index * page]
    print(os.getpid(), start(memory), flush=True)
    while True: time.sleep(60)
sys.stdin.read()
"#;

#[test]
fn pages_that_another_process_has_in_swap_are_not_called_the_process_s_own() {
    let Some(_alone) = alone() else { return };
    let Some(_zram) = Zram::new() else { return };
    let known = Known::new(HALF_SWAPPED);
    is_unknown(&known);
    assert_eq!(known.copies() >= 512, vmread_splits());
}
