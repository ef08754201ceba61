//! Processes that are stopped for the reading, and go on however it ends.

use super::common::{BINARY, Folder, whole_stream};
use super::helpers::{Target, audit, signal, state, until, until_it_reads};
use super::{LARGE, slow};
use std::fs;
use std::process::{Command, Stdio};

/// However the tool ends: by itself, by a signal, by SIGKILL.
#[test]
fn what_was_stopped_goes_on() {
    let target = Target::new(LARGE);
    let pid = target.pid().to_string();
    for name in ["TERM", "INT", "HUP", "QUIT", "SEGV", "USR1", "KILL"] {
        let mut audit = slow(target.pid(), "--stop --method proc");
        until("stopped", || state(&pid) == 'T');
        signal(&audit.id().to_string(), name);
        until(name, || state(&pid) == 'S');
        assert!(!audit.wait().unwrap().success());
    }
    let stream = audit(&format!("--stop {pid}"));
    assert_eq!(stream.notes["target_stopped"], "yes");
    until("it goes on", || state(&pid) == 'S');
    assert_eq!(audit(&pid).notes["target_stopped"], "no");
}

/// timeout(1) with KILL sends it to the whole process group, the helper among it if it were.
#[test]
fn what_was_stopped_goes_on_when_the_whole_group_is_killed() {
    let target = Target::new(LARGE);
    let pid = target.pid().to_string();
    let words = format!("-s KILL 2 {BINARY} audit -q --stop --method proc --block 16 {pid}");
    let mut command = Command::new("timeout");
    let ended = command.args(words.split(' ')).stdout(Stdio::null());
    assert!(!ended.status().unwrap().success());
    until("going on", || state(&pid) == 'S');
}

#[test]
fn who_is_set_going_midway_is_told() {
    let target = Target::new(LARGE);
    let pid = target.pid().to_string();
    let audit = slow(target.pid(), "--stop --method proc");
    until("stopped", || state(&pid) == 'T');
    until_it_reads(&audit, 50_000);
    signal(&pid, "CONT");
    let output = audit.wait_with_output().unwrap();
    let rows = whole_stream(&String::from_utf8(output.stdout).unwrap()).rows;
    assert_eq!(rows[0]["status"], "skipped:target-went-on");
    assert_eq!(output.status.code(), Some(3));
}

/// ptrace wakes what it lets go for a moment; that is nobody's SIGCONT.
#[test]
fn what_ptrace_has_read_still_stands() {
    let mut shell = Command::new("/bin/sh");
    let target = Target::of(shell.args(["-c", "echo ready; read line"]));
    for row in audit(&format!("--stop --method ptrace --warm 1 {}", target.pid())).rows {
        assert_eq!(row["status"], "ok");
    }
}

/// The id of a thread stands for its process.
#[test]
fn a_thread_is_stopped_with_its_process() {
    const THREADS: &str = "import sys, threading, time\n\
        thread = threading.Thread(target=time.sleep, args=(600,), daemon=True); thread.start()\n\
        print(thread.native_id, flush=True); sys.stdin.read()";
    let target = Target::new(THREADS);
    let stream = audit(&format!("--stop {}", target.ready));
    assert_eq!(stream.notes["target_stopped"], "yes");
    assert_eq!(stream.rows[0]["status"], "ok");
    until("it goes on", || state(&target.pid().to_string()) == 'S');
}

/// A child waits in epoll_wait(2), of which Python's own would go on. Who notices what puts a word into a
/// file; only `handles` has the child a handler of SIGCONT, by which that call would end, too.
const NOTICES: &str = r#"
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def word(text):
    return lambda *_: os.write(file, text + b"\n")
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if sys.argv[2] == "handles":
        signal.signal(signal.SIGCONT, word(b"SIGCONT"))
    epoll = libc.epoll_create1(0)
    print(os.getpid(), flush=True)
    if libc.epoll_wait(epoll, ctypes.create_string_buffer(64), 1, -1) == -1:
        word(os.strerror(ctypes.get_errno()).encode())()
    while True:
        time.sleep(60)
signal.signal(signal.SIGCHLD, word(b"SIGCHLD"))
sys.stdin.read()
"#;

/// `--stop` is no secret: README and METHOD name who notices, and of an audit without it nobody does.
#[test]
fn who_notices_a_stop() {
    const EINTR: &str = "Interrupted system call";
    let folder = Folder::new();
    for (child, words) in [
        ("bare", vec![EINTR, "SIGCHLD"]),
        ("handles", vec![EINTR, "SIGCHLD", "SIGCONT"]),
    ] {
        let file = folder.0.join(child);
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", NOTICES]).arg(&file).arg(child);
        let target = Target::of(&mut python);
        until("it waits", || state(&target.ready) == 'S');
        let noticed = || {
            let text = fs::read_to_string(&file).unwrap();
            let mut words: Vec<_> = text.lines().map(String::from).collect();
            words.sort();
            words.dedup();
            words
        };
        audit(&format!("--method proc {}", target.ready));
        assert_eq!(noticed(), [""; 0]);
        audit(&format!("--method proc --stop {}", target.ready));
        until("all notice", || noticed().len() >= words.len());
        assert_eq!(noticed(), words);
    }
}
