//! What reading costs a process whose memory a cgroup limits: a copy that a pin makes is charged to the
//! process read, not to the reader (mm/memory.c, `wp_page_copy`, charges `vma->vm_mm`).

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{is_root, run, vmread_splits, whole_stream};
use helpers::{Target, state, until};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, id};

/// What the two processes hold together, in bytes.
const HELD: u64 = 64 << 20;
/// How much more they may have.
const ROOM: u64 = 32 << 20;

/// A cgroup with a memory limit, in whichever hierarchy has the controller; gone with the value.
struct Limited {
    folder: PathBuf,
    usage: &'static str,
}

impl Limited {
    /// `None`, and a word, if there can be none.
    fn new(limit: u64) -> Option<Self> {
        let root = Path::new("/sys/fs/cgroup");
        let has = |path: &str| {
            let text = fs::read_to_string(root.join(path)).unwrap_or_default();
            text.split_whitespace().any(|name| name == "memory")
        };
        let v1 = root.join("memory");
        let (parent, maximum, usage) = match v1.join("memory.limit_in_bytes").exists() {
            true => (v1, "memory.limit_in_bytes", "memory.usage_in_bytes"),
            false if has("cgroup.subtree_control") => (root.into(), "memory.max", "memory.current"),
            false => {
                eprintln!("skipped: no cgroup hierarchy hands memory limits on here");
                return None;
            }
        };
        let folder = parent.join(format!("cowitness-{}", id()));
        if let Err(error) = fs::create_dir(&folder) {
            eprintln!("skipped: no cgroup can be made here: {error}");
            return None;
        }
        let limited = Self { folder, usage };
        fs::write(limited.folder.join(maximum), limit.to_string()).unwrap();
        // Swap would take what is above the limit: off in the second version of cgroups, and in the first.
        for file in ["memory.swap.max", "memory.swappiness"] {
            let _ = fs::write(limited.folder.join(file), "0");
        }
        Some(limited)
    }

    fn usage(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.usage)).unwrap();
        text.trim().parse().unwrap()
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // What was killed in it leaves it a moment later.
        until("the cgroup is empty", || {
            let left = fs::read_to_string(self.folder.join("cgroup.procs"));
            left.is_ok_and(|left| left.is_empty())
        });
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Enters the cgroup, fills memory, and forks a child that shares it and ends with it.
const SCRIPT: &str = r#"
import ctypes, mmap, os, signal, sys, time
open(sys.argv[1] + "/cgroup.procs", "w").write(str(os.getpid()))
memory = mmap.mmap(-1, int(sys.argv[2]), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
for at in range(0, len(memory), os.sysconf("SC_PAGE_SIZE")):
    memory[at] = 1
told, tell = os.pipe()
child = os.fork()
if child == 0:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    open("/proc/self/oom_score_adj", "w").write("1000")  # it is the first to be killed
    os.write(tell, b"x")
    while True:
        time.sleep(60)
os.read(told, 1)
print(child, flush=True)
sys.stdin.read()
"#;

/// Whether parent and child are still there after the child was read, and how many bytes their cgroup
/// was charged meanwhile.
fn survives(limited: &Limited, method: &str, status: i32) -> (bool, u64) {
    let folder = limited.folder.to_str().unwrap();
    let target = Target::of(Command::new("/usr/bin/python3").args([
        "-c",
        SCRIPT,
        folder,
        &HELD.to_string(),
    ]));
    let (parent, child) = (target.pid().to_string(), target.ready.clone());
    let before = limited.usage();
    assert!(before >= HELD, "{before}");
    let output = run(&format!("audit -q --stop --method {method} {child}"));
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(whole_stream(&text).rows.len(), 1);
    let are_there = [parent, child].map(|pid| !matches!(state(&pid), 'Z' | 'X'));
    (
        are_there == [true; 2],
        limited.usage().saturating_sub(before),
    )
}

/// Whoever copies what fork shared makes a process die that has no room for two of it.
#[test]
fn who_copies_brings_the_target_over_its_limit() {
    if !is_root() {
        eprintln!("skipped: only root makes cgroups here");
        return;
    }
    let Some(limited) = Limited::new(HELD + ROOM) else {
        return;
    };
    for method in ["proc", "hybrid"] {
        let (both, charged) = survives(&limited, method, 0);
        assert!(both, "{method}");
        // Page tables of what comes in, at most.
        assert!(charged < 4 << 20, "{method}: {charged}");
    }
    match vmread_splits() {
        true => assert!(!survives(&limited, "vmread", 1).0),
        false => assert!(survives(&limited, "vmread", 0).0),
    }
}
