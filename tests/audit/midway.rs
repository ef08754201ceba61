//! Processes that end, or become another program, while they are read.

use super::common::{command, field, whole_stream};
use super::helpers::{Target, signal, state, until, until_it_reads};
use super::mappings::MANY;
use super::{LARGE, slow};
use std::io::{Read, Write};
use std::process::{Child, Stdio};

/// What the tool may use, however large the process is that it looks at.
const SMALL_KIB: u64 = 6 << 10;

/// The most memory that the tool has had.
fn most_kib(tool: &Child) -> u64 {
    let mut words = field(&format!("/proc/{}/status", tool.id()), "VmHWM:");
    words.next().unwrap().parse().unwrap()
}

#[test]
fn a_process_that_ends_midway_leaves_rows_and_status_1() {
    let target = Target::new(LARGE);
    let audit = slow(target.pid(), "--method proc,vmread --warm 1");
    until_it_reads(&audit, 50_000);
    assert!(most_kib(&audit) < SMALL_KIB);
    drop(target);
    let output = audit.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("ended, or became another program"),
        "{stderr}"
    );
    let rows = whole_stream(&String::from_utf8(output.stdout).unwrap()).rows;
    let status: Vec<_> = rows.iter().map(|row| &*row["status"]).collect();
    let gone = "skipped:target-is-gone";
    assert_eq!(status, ["errno:ESRCH", gone, gone, gone]);
    assert_eq!(rows[1]["bytes_per_pass"], "");
}

/// A survey that nobody reads waits, its pipe full, until its process has ended.
#[test]
fn a_survey_of_a_process_that_ends_midway_says_so() {
    let target = Target::new(MANY);
    let mut survey = command(&format!("survey -q {}", target.pid()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Far more than a pipe holds (64 KiB) is to come: reading the first bytes and no more leaves
    // it waiting in the middle.
    let mut first = [0; 4096];
    let output = survey.stdout.as_mut().unwrap();
    output.read_exact(&mut first).unwrap();
    assert!(most_kib(&survey) < SMALL_KIB);
    drop(target);
    let mut text = String::new();
    survey
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let output = survey.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("ended, or became another program"),
        "{stderr}"
    );
    let lines: Vec<&str> = text.lines().collect();
    let [.., total, end] = lines[..] else {
        panic!()
    };
    assert!(
        total.contains("[total]") && total.contains(",skipped:target-is-gone,"),
        "{total}"
    );
    assert!(end.starts_with("#end rows="), "{end}");
}

/// A process that becomes another program while a thread-like child (clone(2) with CLONE_VM) still
/// holds its memory. It says when it is ready, and becomes the other once it is told.
const BECOMES_ANOTHER: &str = r#"
import ctypes, mmap, os, sys
memory = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(memory), 4096):
    memory[at] = 1
libc = ctypes.CDLL(None)
stack = mmap.mmap(-1, 1 << 20)
top = ctypes.addressof(ctypes.c_char.from_buffer(stack)) + (1 << 20)
sleep = ctypes.cast(libc.sleep, ctypes.c_void_p)
libc.clone.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
child = libc.clone(sleep, top, 0x100 | 17, 60)  # CLONE_VM | SIGCHLD
print(child, flush=True)
sys.stdin.readline()
os.execv("/bin/sleep", ["sleep", "60"])
"#;

#[test]
fn another_program_is_not_taken_for_the_process() {
    let mut target = Target::new(BECOMES_ANOTHER);
    let audit = slow(target.pid(), "--method proc");
    until_it_reads(&audit, 5_000);
    let mut input = target.process.stdin.take().unwrap();
    input.write_all(b"go\n").unwrap();
    let output = audit.wait_with_output().unwrap();
    signal(&target.ready, "KILL");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let row = &whole_stream(&String::from_utf8(output.stdout).unwrap()).rows[0];
    assert_eq!(
        (&*row["status"], &*row["target_rss_kib"]),
        ("errno:ESRCH", "")
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("became another program"), "{stderr}");
}

/// ptrace holds a process that has been told to become another one, which it does as soon as it is let
/// go: between the last read and the figures of after, often. Those of the other are none of its own.
#[test]
fn who_becomes_another_program_right_behind_the_pass_has_no_figures() {
    const WAITS: &str = "import os, sys\n\
        print(flush=True)\n\
        sys.stdin.readline()\n\
        os.execv('/bin/sleep', ['sleep', '60'])";
    for _ in 0..4 {
        let mut target = Target::new(WAITS);
        let pid = target.pid().to_string();
        let audit = command(&format!("audit -q --method ptrace {pid}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let reader = audit.id().to_string();
        until("it is held", || state(&pid) == 't' || state(&reader) == 'Z');
        let mut input = target.process.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        let output = audit.wait_with_output().unwrap();
        let row = &whole_stream(&String::from_utf8_lossy(&output.stdout)).rows[0];
        let figures = ["vma_change", "target_vm_size_kib", "target_rss_kib"];
        let figures = figures.map(|column| &*row[column]);
        match &*row["status"] {
            // It was the other one only afterwards.
            "ok" => assert_eq!(figures[..2], ["0", "0"], "{row:?}"),
            "errno:EPERM" => return eprintln!("skipped: ptrace is refused here"),
            status => assert_eq!((status, figures), ("errno:ESRCH", [""; 3])),
        }
    }
}
