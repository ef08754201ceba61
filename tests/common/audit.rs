//! Processes whose memory is known, for the tests of `audit`.
#![allow(
    dead_code,
    reason = "each test program is compiled with this module and uses a part of it"
)]

use crate::common::{Row, Stream, field, number, run, stdout, whole_stream};
use cowitness::reader::hybrid::large::{self, Large};
use cowitness::reader::hybrid::{nothing_is_half_swapped, nothing_is_joined};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A Python process that runs a script, killed when the value goes. The script prints one
/// line when it is ready.
pub struct Target {
    pub process: Child,
    pub ready: String,
}

impl Target {
    pub fn new(script: &str) -> Self {
        Self::of(Command::new("/usr/bin/python3").args(["-c", script]))
    }

    pub fn of(command: &mut Command) -> Self {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the target starts");
        let mut ready = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut ready).unwrap();
        // Mostly it waits for input then, and who has not come to that runs while it is audited. One
        // that works on never does.
        let pid = process.id().to_string();
        for _ in 0..100 {
            if state(&pid) != 'R' {
                break;
            }
            sleep(Duration::from_millis(1));
        }
        Self {
            process,
            ready: ready.trim().into(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server with four workers forked after it has loaded 16 MiB, of which each worker has
/// rewritten a quarter. Prints the workers' ids.
pub const PREFORKED: &str = r#"
import mmap, os, signal, sys, time
page = os.sysconf("SC_PAGE_SIZE")
memory = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
for at in range(0, len(memory), page):
    memory[at] = 1
workers = []
for number in range(4):
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        import ctypes
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        for at in range(0, len(memory) // 4, page):
            memory[at] = 2
        os.write(tell, b"x")
        while True:
            time.sleep(60)
    os.read(ready, 1)
    workers.append(str(child))
print(*workers, flush=True)
sys.stdin.read()
"#;

/// The same, and no worker loses a page to the kernel, as far as it may lock them (mlockall(2)).
pub fn preforked_and_locked() -> String {
    let told = r#"os.write(tell, b"x")"#;
    let lock = "ctypes.CDLL(None).mlockall(1 | 4)  # MCL_CURRENT | MCL_ONFAULT";
    assert!(PREFORKED.contains(told));
    PREFORKED.replace(told, &format!("{lock}\n        {told}"))
}

pub fn state(pid: &str) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .map_or('X', |(_, rest)| rest.chars().next().unwrap())
}

pub fn signal(pid: &str, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), pid])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits, and fails after a minute.
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < Duration::from_secs(60), "never: {what}");
        sleep(Duration::from_millis(2));
    }
}

/// Waits until it has called read(2) and its like more often than that.
pub fn until_it_reads(tool: &Child, calls: u64) {
    let io = format!("/proc/{}/io", tool.id());
    until("it reads", || {
        let made = field(&io, "syscr:").next();
        made.is_some_and(|made| made.parse::<u64>().unwrap() > calls)
    });
}

pub fn kib(pid: &str, field: &str) -> i64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// The same of the mapping at an address.
pub fn mapping_kib(pid: u32, start: u64, field: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let mapping = text.split_once(&format!("{start:x}-")).unwrap().1;
    let line = mapping.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.unwrap().split_whitespace().next();
    kib.unwrap().parse().unwrap()
}

/// A run of `audit`, its stream and its row of each pass.
pub fn audit(args: &str) -> Stream {
    whole_stream(&stdout(&run(&format!("audit -q {args}"))))
}

pub fn get(row: &Row, column: &str) -> i64 {
    number(row, column).unwrap_or_else(|| panic!("{column} is empty: {row:?}"))
}

pub fn survey_total(pid: &str) -> Row {
    let stream = whole_stream(&stdout(&run(&format!("survey -q {pid}"))));
    stream.rows.last().unwrap().clone()
}

/// Whether something on this machine makes bit 56 of pagemap err, of this process.
pub fn bit_56_may_err(pid: &str) -> bool {
    large::now() != Large::None
        || !nothing_is_joined(pid.parse().unwrap())
        || !nothing_is_half_swapped()
}

pub fn near(a: i64, b: i64) -> bool {
    (a - b).abs() * 100 <= a.max(b)
}
