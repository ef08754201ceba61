//! `survey` against processes whose pages are known, and against what a real
//! process_vm_readv then does to them.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{
    BINARY, NO_SECCOMP, Row, command_as_nobody, is_root, number, run, stdout, vmread_splits,
    whole_stream,
};
use helpers::{Target, audit, bit_56_may_err, get, near, signal, state, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A Python parent with 256 pages of known memory and a child that has rewritten 64 of
/// them, left 192 shared, and stopped. It prints the child's id and the address, and reads
/// the child with process_vm_readv for each line it gets.
const FORKED: &str = r#"
import ctypes, mmap, os, signal, sys
PAGES = 256
page = os.sysconf("SC_PAGE_SIZE")
memory = mmap.mmap(-1, PAGES * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
for index in range(PAGES):
    memory[index * page] = 1
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
child = os.fork()
if child == 0:
    for index in range(64):
        memory[index * page] = 2
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, os.WUNTRACED)
print(child, f"{address:x}", flush=True)
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(PAGES * page)
for line in sys.stdin:
    local = Span(ctypes.addressof(buffer), PAGES * page)
    remote = Span(address, PAGES * page)
    print(libc.process_vm_readv(child, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) // page, flush=True)
os.kill(child, signal.SIGKILL)
"#;

struct Forked {
    parent: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
    child: String,
    start: String,
}

impl Forked {
    fn new() -> Self {
        let mut parent = Command::new("python3")
            .args(["-c", FORKED])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut output = BufReader::new(parent.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (child, start) = line.trim().split_once(' ').expect("it forked");
        Self {
            child: child.into(),
            start: start.into(),
            input: parent.stdin.take(),
            output,
            parent,
        }
    }

    /// Pages that process_vm_readv got.
    fn read(&mut self) -> u64 {
        self.input.as_mut().unwrap().write_all(b"read\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    /// The row of the known memory, and the total.
    fn survey(&self) -> (Row, Row) {
        let stream = whole_stream(&stdout(&run(&format!("survey {} -q", self.child))));
        let total = stream.rows.last().unwrap().clone();
        let row = stream
            .rows
            .into_iter()
            .find(|row| row["start"] == self.start);
        (row.expect("the memory is one VMA"), total)
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        drop(self.input.take());
        let mut rest = String::new();
        let _ = self.output.read_to_string(&mut rest);
        let _ = self.parent.wait();
    }
}

/// The prediction is what happens: as many pages as are shared become the child's own.
#[test]
fn what_is_predicted_happens() {
    let mut forked = Forked::new();
    let (row, total) = forked.survey();
    assert_eq!(get(&row, "present_pages"), 256);
    assert_eq!(get(&row, "exclusive_pages"), 64);
    assert_eq!(get(&row, "shared_anon_pages"), 192);
    assert_eq!(get(&row, "absent_pages"), 0);
    assert_eq!(get(&row, "proc_split_pages"), 0);
    let predicted = if vmread_splits() { 192 } else { 0 };
    match number(&row, "vmread_split_pages") {
        Some(pages) => assert_eq!(pages, predicted),
        // Only root is told of each page whether bit 56 errs.
        None => assert!(!is_root() && bit_56_may_err(&forked.child), "{row:?}"),
    }
    let extra = number(&row, "vmread_split_pages").map(|pages| pages * get(&row, "page_bytes"));
    assert_eq!(
        number(&row, "vmread_extra_kib"),
        extra.map(|bytes| bytes / 1024)
    );
    assert_eq!(get(&row, "hybrid_split_pages"), 0);
    assert_eq!(forked.read(), 256);
    let (after, total_after) = forked.survey();
    assert_eq!(get(&after, "exclusive_pages"), 64 + predicted);
    assert_eq!(get(&after, "shared_anon_pages"), 192 - predicted);
    // The parent runs on and makes other pages its own; none comes or goes in the child.
    assert_eq!(
        get(&total, "present_pages"),
        get(&total_after, "present_pages")
    );
}

/// Looking changes nothing: a second survey finds what the first has found.
#[test]
fn a_survey_changes_nothing() {
    let forked = Forked::new();
    let first = forked.survey();
    assert_eq!(first, forked.survey());
}

#[test]
fn the_total_is_the_sum_of_its_rows() {
    let forked = Forked::new();
    let text = stdout(&run(&format!("survey {} -q", forked.child)));
    let rows = whole_stream(&text).rows;
    let (total, rows) = rows.split_last().unwrap();
    assert_eq!(total["name"], "[total]");
    for column in [
        "present_pages",
        "exclusive_pages",
        "shared_anon_pages",
        "file_pages",
        "swapped_pages",
        "absent_pages",
        "vmread_split_pages",
        "proc_faulted_pages",
        "guard_pages",
        "faulted_kib",
    ] {
        let sum: i64 = rows.iter().filter_map(|row| number(row, column)).sum();
        assert_eq!(number(total, column), Some(sum), "{column}");
    }
}

#[test]
fn processes_without_memory_and_without_permission_are_refused() {
    let output = run("survey 4194303");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no such process"));
    let mut zombie = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    while !std::fs::read_to_string(format!("/proc/{}/stat", zombie.id()))
        .unwrap()
        .contains(") Z ")
    {
        std::thread::yield_now();
    }
    let output = run(&format!("survey {}", zombie.id()));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is a zombie"));
    assert!(output.stdout.is_empty());
    zombie.wait().unwrap();
    let forked = Forked::new();
    if let Some((mut command, _folder)) = command_as_nobody(&format!("survey {}", forked.child)) {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr)
                .contains("EACCES: it belongs to another user or group")
        );
        assert!(output.stdout.is_empty());
    }
}

/// Who may not see frame numbers is not told that zero pages would be copied: smaps tells
/// them from shared ones.
#[test]
fn zero_pages_are_not_predicted_to_split() {
    const READS_ONLY: &str = r#"
import ctypes, mmap, os, sys
page = os.sysconf("SC_PAGE_SIZE")
memory = mmap.mmap(-1, 64 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
sum(memory[index * page] for index in range(64))
print(f"{ctypes.addressof(ctypes.c_char.from_buffer(memory)):x}", flush=True)
sys.stdin.read()
"#;
    let Some((mut survey, _folder)) = command_as_nobody("survey -q") else {
        return;
    };
    let mut target = Command::new("/usr/bin/python3")
        .args(["-c", READS_ONLY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .spawn()
        .expect("python3 starts");
    let mut start = String::new();
    let mut output = BufReader::new(target.stdout.take().unwrap());
    output.read_line(&mut start).unwrap();
    let output = survey.arg(target.id().to_string()).output().unwrap();
    let stream = whole_stream(&stdout(&output));
    let row = stream.rows.iter().find(|row| row["start"] == start.trim());
    let row = row.expect("the memory is one VMA");
    assert_eq!(number(row, "present_pages"), Some(64));
    assert_eq!(number(row, "shared_anon_pages"), Some(0), "{row:?}");
    assert_eq!(number(row, "vmread_split_pages"), Some(0), "{row:?}");
    drop(target.stdin.take());
    target.wait().unwrap();
}

/// What no reader brings in: behind the end of a file, guard regions, a mere reserve. Prints the
/// addresses of the file of 3 pages in 64, of 40 pages of a file with 16 of a guard behind them,
/// and of 512 MiB with one page written.
const OUT_OF_REACH: &str = r#"
import ctypes, mmap, os, sys, tempfile
page = os.sysconf("SC_PAGE_SIZE")
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
def file(pages):
    file = tempfile.TemporaryFile()
    os.truncate(file.fileno(), pages * page)
    return os.dup(file.fileno())
short = file(64)
ended = libc.mmap(None, 64 * page, 1, 1, short, 0)
os.truncate(short, 3 * page)
guarded = libc.mmap(None, 56 * page, 1, 2, file(56), 0)
has_guard = libc.madvise(guarded + 40 * page, 16 * page, 102) == 0  # MADV_GUARD_INSTALL
reserve = libc.mmap(None, 512 << 20, 3, 0x4022, -1, 0)
ctypes.memset(reserve + (256 << 20) + page, 1, 1)
print(f"{ended:x} {guarded:x} {reserve:x} {int(has_guard)}", flush=True)
sys.stdin.read()
"#;

/// Such a process, stopped, and its survey.
fn out_of_reach() -> (Target, Vec<Row>) {
    let target = Target::new(OUT_OF_REACH);
    let pid = target.pid().to_string();
    signal(&pid, "STOP");
    until("stopped", || state(&pid) == 'T');
    let rows = whole_stream(&stdout(&run(&format!("survey -q {pid}")))).rows;
    (target, rows)
}

/// Whether the kernel has guard regions in files (Linux 6.15), as such a process has found out.
fn has_guard(target: &Target) -> bool {
    target.ready.ends_with(" 1")
}

#[test]
fn what_no_reader_brings_in_is_not_predicted_to_come() {
    let (target, rows) = out_of_reach();
    let words: Vec<&str> = target.ready.split(' ').collect();
    let row = |at: usize| rows.iter().find(|row| row["start"] == words[at]).unwrap();
    if is_root() {
        assert_eq!(get(row(0), "proc_faulted_pages"), 3);
    }
    if has_guard(&target) {
        let columns = [
            "guard_pages",
            "swapped_pages",
            "absent_pages",
            "proc_faulted_pages",
        ];
        assert_eq!(columns.map(|column| get(row(1), column)), [16, 0, 40, 40]);
    }
    let of_reserve = get(row(2), "proc_faulted_pages");
    assert!(of_reserve <= 2 * 8192, "{:?}", row(2));
    for vvar in rows.iter().filter(|row| row["name"].starts_with("[vvar")) {
        assert_eq!(vvar["status"], "skipped:device-memory");
        assert_eq!(vvar["proc_faulted_pages"], "");
    }
    let total = rows.last().unwrap();
    let kib = get(total, "proc_faulted_pages") * get(total, "page_bytes") / 1024;
    assert_eq!(get(total, "faulted_kib"), kib);
    assert_eq!(total["advice"], "hybrid");
}

#[test]
fn what_no_reader_brings_in_does_not_come() {
    let (target, rows) = out_of_reach();
    let pid = target.pid();
    let left = &audit(&format!("--strict {pid}")).rows[0];
    if has_guard(&target) {
        assert_eq!(get(left, "left_guard_pages"), 16);
    }
    // Each page that was left counts once, however many cannot be read behind it.
    let counts = [
        "left_guard_pages",
        "left_not_in_memory_pages",
        "left_file_not_opened_pages",
        "left_swapped_pages",
    ];
    let sum: i64 = counts.iter().map(|column| get(left, column)).sum();
    let bytes = sum * get(left, "page_bytes");
    assert_eq!(bytes, get(left, "unread_bytes"), "{left:?}");
    assert_eq!(
        (&*left["errno"], get(left, "predicted_faulted_in_pages")),
        ("ENODATA", 0)
    );
    let predicted = get(rows.last().unwrap(), "proc_faulted_pages");
    let read = &audit(&format!("--method proc {pid}")).rows[0];
    let came = get(read, "faulted_in_pages") + get(read, "swapped_in_pages");
    // Others are not told where a file ends.
    let behind = if is_root() { 0 } else { 61 };
    assert!(near(came, predicted - behind), "{came} of {predicted}");
    assert!(
        near(get(read, "predicted_faulted_in_pages"), predicted),
        "{read:?}"
    );
}

/// What the program takes of a process's size: its PT_LOAD segments (elf(5), 64 bits).
fn loaded_kib() -> u64 {
    let file = std::fs::read(BINARY).unwrap();
    let number = |at: usize, bytes: usize| {
        let field = file[at..at + bytes].iter().rev();
        field.fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    };
    let headers = (0..number(56, 2)).map(|index| (number(32, 8) + index * 56) as usize);
    let loaded = headers.filter(|&at| number(at, 4) == 1);
    loaded.map(|at| number(at + 40, 8).div_ceil(4096) * 4).sum()
}

/// Not by a signal, and not with figures that look as if they were all.
#[test]
fn too_little_to_work_with_is_said() {
    let forked = Forked::new();
    // The program, the stack that it starts with and the kernel's pages, and 200 KiB more.
    let little = format!("-v {}", loaded_kib() + 400);
    for (limit, status, said) in [
        ("-n 6", 3, "no reader could be tried"),
        ("-n 9", 3, "no reader could be tried"),
        (&little, 1, "raise RLIMIT_AS"),
    ] {
        let script = format!("ulimit {limit}; exec {BINARY} survey -q {}", forked.child);
        let mut shell = Command::new("/bin/sh");
        let output = shell.args(["-c", &script]).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{limit}: {output:?}");
        assert!(stderr.contains(said), "{limit}: {stderr}");
        let text = String::from_utf8_lossy(&output.stdout);
        if status == 3 {
            let total = whole_stream(&text).rows.pop().unwrap();
            assert_eq!(
                (&*total["status"], &*total["advice"]),
                ("skipped:no-reader-tried", "")
            );
        }
    }
}

/// Who may not call process_vm_readv cannot take a reader that does.
#[test]
fn a_reader_whose_call_is_denied_is_not_advised() {
    let target = Target::new("print(0, flush=True); input()");
    let args = format!("survey {}", target.pid());
    let call = if cfg!(target_arch = "x86_64") {
        "310"
    } else {
        "270"
    };
    let advice = |mut command: Command| {
        let output = command.output().unwrap();
        let no_seccomp = output.status.code() == Some(NO_SECCOMP);
        (!no_seccomp).then(|| {
            let stream = whole_stream(&stdout(&output));
            let advice = stream.rows.last().unwrap()["advice"].clone();
            let said = String::from_utf8_lossy(&output.stderr);
            (advice, said.contains("or its call denied"))
        })
    };
    let [free, denied] = [common::command(&args), common::denied(call, "1", &args)].map(advice);
    if let Some(denied) = denied {
        assert_eq!(free, Some(("hybrid".into(), false)));
        assert_eq!(denied, ("proc".into(), true));
    } else {
        eprintln!("skipped: no seccomp here");
    }
}
