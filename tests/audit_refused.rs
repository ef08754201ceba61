//! What keeps `audit` from reading a process, or from coming to an end, and what it says of that.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{
    BINARY, Folder, NO_SECCOMP, command, command_as_nobody, denied, is_root, rows, run, stdout,
    whole_stream,
};
use helpers::{Target, get, signal, state, until};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};

const WAITS: &str = "import sys; print(1, flush=True); sys.stdin.read()";

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// With too few descriptors for the file behind a mapping, nothing is said of its pages.
#[test]
fn too_few_descriptors_are_no_pages_that_are_not_in_memory() {
    let target = Target::new(WAITS);
    let audit = |limit: u32, method: &str| {
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--nofile={limit}")).arg(BINARY);
        let audit = ["audit", "-q", "--method", method];
        limited.args(audit).arg(target.pid().to_string());
        limited.stdin(Stdio::null()).output().unwrap()
    };
    let row = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let table = text.split_once("\nrecord,").map(|(_, table)| table);
        let table = format!("record,{}", table?.split("\n#end").next()?);
        rows(&table).first().cloned()
    };
    // What is in memory changes, by map-files itself and by whoever drops caches: seen right before
    // and after.
    let left = || {
        let enough = row(&audit(64, "hybrid")).unwrap();
        get(&enough, "left_not_in_memory_pages")
    };
    let mut short = 0;
    for limit in 4..32 {
        // Only root may use map_files.
        for method in &["hybrid", "map-files"][..if is_root() { 2 } else { 1 }] {
            let before = left();
            let output = audit(limit, method);
            if output.status.success() {
                let row = row(&output).unwrap();
                assert_ne!(row["errno"], "EMFILE", "{limit}: {row:?}");
                if *method == "hybrid" {
                    let (found, after) = (get(&row, "left_not_in_memory_pages"), left());
                    let seen = before.min(after)..=before.max(after);
                    assert!(seen.contains(&found), "{limit}: {found} of {seen:?}");
                }
                continue;
            }
            let says = words(&output);
            let untried = says.contains("no reader could be tried on a child: raise ulimit -n");
            assert!(says.contains("EMFILE") || untried, "{says}");
            if let Some(row) = row(&output).filter(|_| !untried) {
                assert_eq!(row["status"], "errno:EMFILE", "{limit}");
                assert!(says.contains("raise ulimit -n"), "{says}");
                short += 1;
            }
        }
    }
    assert!(short > 0 || !is_root(), "it never ran short");
}

/// Its helper for `--stop` ends by itself then.
#[test]
fn who_may_not_kill_its_own_children_comes_to_an_end() {
    let kill = if cfg!(target_arch = "x86_64") {
        "62"
    } else {
        "129"
    };
    for errno in ["1", "38"] {
        let target = Target::new(WAITS);
        let args = format!("audit -q --stop --method proc {}", target.pid());
        let mut tool = denied(kill, errno, &args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        until("it ends", || tool.try_wait().unwrap().is_some());
        let output = tool.wait_with_output().unwrap();
        if output.status.code() == Some(NO_SECCOMP) {
            eprintln!("skipped: no call can be denied here");
            return;
        }
        assert_eq!(output.status.code(), Some(0));
        assert!(stdout(&output).contains("\n#target_stopped=yes\n"));
        until("the process goes on", || {
            state(&target.pid().to_string()) == 'S'
        });
    }
}

#[test]
fn each_reader_names_its_own_cause() {
    let target = || {
        let mut python = Command::new("/usr/bin/python3");
        Target::of(python.args(["-c", WAITS]).uid(65534).gid(65534))
    };
    if !is_root() {
        eprintln!("skipped: only root can become nobody");
        return;
    }
    let target = target();
    let (mut files, _folder) = command_as_nobody("audit -q --method map-files").unwrap();
    let output = files.arg(target.pid().to_string()).output().unwrap();
    let says = words(&output);
    let cause = "with map-files: EPERM: map_files takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE";
    assert!(says.contains(cause), "{says}");
    assert_eq!(output.status.code(), Some(1));
    // No other process may be made than this one, and --stop needs a helper.
    let (stops, _folder) = command_as_nobody("").unwrap();
    let limited = Command::new("prlimit")
        .arg("--nproc=1")
        .arg(stops.get_program())
        .args(["audit", "-q", "--stop", &target.pid().to_string()])
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .output();
    let says = words(&limited.unwrap());
    assert!(says.contains("fork: EAGAIN"), "{says}");
    assert_eq!(state(&target.pid().to_string()), 'S');
}

/// A process that traces its parent, as strace does, until its input ends.
const TRACES: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
child = os.fork()
if child == 0:
    libc.prctl(1, 9)  # PR_SET_PDEATHSIG
    sys.stdin.read()
    os._exit(0)
seized = libc.ptrace(0x4206, child, None, None)  # PTRACE_SEIZE
print(child if seized == 0 else "none", flush=True)
sys.stdin.read()
"#;

#[test]
fn who_is_traced_already_is_named_so() {
    let tracer = Target::new(TRACES);
    if tracer.ready == "none" {
        eprintln!("skipped: nobody may be traced here");
        return;
    }
    let output = command(&format!("audit -q --method ptrace {}", tracer.ready)).output();
    let says = words(&output.unwrap());
    assert!(says.contains("with ptrace: EPERM"), "{says}");
    assert!(says.contains("strace traces it already"), "{says}");
}

#[test]
fn the_first_process_of_a_namespace_cannot_be_stopped_from_within() {
    if !is_root() {
        eprintln!("skipped: only root makes PID namespaces");
        return;
    }
    let output = Command::new("unshare")
        .args([
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
            "sh",
            "-c",
        ])
        .arg(format!("{BINARY} audit -q --stop 1; exit $?"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let says = words(&output);
    if says.contains("unshare failed") {
        eprintln!("skipped: {says}");
        return;
    }
    assert!(says.contains("process 1 ignores SIGSTOP"), "{says}");
    assert_eq!(output.status.code(), Some(3));
}

/// A file server (FUSE) with one file, of which it gives the first page and then no other; its child
/// maps that file. `private`: that is another user's, and nobody else's; `bare`: it says nothing of its
/// file system. Else it takes the request for another page, or leaves it in the queue: out of that
/// wait a fatal signal gets, out of the other none. All in a mount namespace of its own.
const MUTE: &str = r#"
import ctypes, mmap, os, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
folder = sys.argv[1].encode()
def unless(done, what):
    if done:
        print("none: " + what, os.strerror(ctypes.get_errno()), flush=True)
        sys.exit()
unless(libc.unshare(0x20000), "unshare")  # CLONE_NEWNS
unless(libc.mount(b"none", b"/", None, 0x44000, None), "private mounts")  # MS_REC, MS_PRIVATE
try:
    device = os.open("/dev/fuse", os.O_RDWR)
except OSError:
    unless(1, "/dev/fuse")
owner = 65534 if sys.argv[2] == "private" else 0
options = b"fd=%d,rootmode=40000,user_id=%d,group_id=%d" % (device, owner, owner)
unless(libc.mount(b"mute", folder, b"fuse", 0, options), "mount")
if os.fork() == 0:
    if owner:
        os.setgroups([])
        os.setgid(owner)
        os.setuid(owner)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.close(device)
    file = os.open(folder + b"/file", os.O_RDONLY)
    memory = mmap.mmap(file, 1 << 20, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    assert memory[0] == 120
    print(os.getpid(), flush=True)
    signal.pause()
def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100644, 1 << 20)
    return struct.pack("6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
INIT, LOOKUP, GETATTR, OPEN, READ, STATFS, FLUSH, RELEASE = 26, 1, 3, 14, 15, 17, 25, 18
answers = {
    INIT: lambda node, rest: struct.pack("4I2H2I2H8I", 7, 31, 0, 0, 1, 1, 4096, 1, 0, 0, *[0] * 8),
    LOOKUP: lambda node, rest: struct.pack("4Q2I", 2, 0, 0, 0, 0, 0) + attributes(2),
    GETATTR: lambda node, rest: struct.pack("Q2I", 0, 0, 0) + attributes(node),
    OPEN: lambda node, rest: bytes(16),
    READ: lambda node, rest: b"x" * 4096,
    STATFS: lambda node, rest: bytes(80),
    FLUSH: lambda node, rest: b"",
    RELEASE: lambda node, rest: b"",
}
if sys.argv[2] == "bare":
    del answers[STATFS]
NO_ANSWER = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET
while True:
    asked = os.read(device, 1 << 20)
    _, operation, unique, node = struct.unpack_from("IIQQ", asked)
    rest = asked[40:]
    if operation in NO_ANSWER or operation == READ and struct.unpack_from("Q", rest, 8)[0]:
        if sys.argv[2] == "deaf" and operation == READ:
            signal.pause()
        continue
    answer = answers[operation](node, rest) if operation in answers else b""
    error = 0 if operation in answers else -38  # ENOSYS
    os.write(device, struct.pack("IiQ", 16 + len(answer), error, unique) + answer)
"#;

/// A run, ended with the server that it waits for.
struct Ended(Child, Target);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.1.process.kill();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whoever waits in the kernel for a file server runs no handler; the process is let go all the same.
#[test]
fn what_was_stopped_goes_on_though_the_read_hangs() {
    if !is_root() {
        eprintln!("skipped: only root mounts a file system");
        return;
    }
    let ways = [
        ("proc", "INT", "mute"),
        ("vmread", "TERM", "mute"),
        ("map-files", "KILL", "mute"),
        ("proc", "TERM", "deaf"),
        ("vmread", "QUIT", "deaf"),
    ];
    for (method, name, how) in ways {
        let folder = Folder::new();
        let mut python = Command::new("/usr/bin/python3");
        let server = Target::of(python.args(["-c", MUTE, folder.text(), how]));
        if server.ready.starts_with("none") {
            eprintln!("skipped: {}", server.ready);
            return;
        }
        let args = format!("audit -q --stop --method {method} {}", server.ready);
        let (output, words) = (Stdio::null(), Stdio::null());
        let audit = command(&args).stdout(output).stderr(words).spawn();
        let mut audit = Ended(audit.unwrap(), server);
        let number = audit.0.id().to_string();
        until("it hangs", || {
            let place = fs::read_to_string(format!("/proc/{number}/wchan"));
            let hangs = place.is_ok_and(|place| place.contains("request_wait_answer"));
            hangs && state(&audit.1.ready) == 'T'
        });
        signal(&number, name);
        until("it goes on", || state(&audit.1.ready) == 'S');
        // The server's end is an answer, too.
        audit.1.process.kill().unwrap();
        assert!(!audit.0.wait().unwrap().success());
    }
}

/// The link of map_files to the file in that folder.
fn link(pid: &str, folder: &str) -> String {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.contains(folder)).unwrap();
    let range = line.split(' ').next().unwrap();
    format!("/proc/{pid}/map_files/{range}")
}

/// What a file system says of one file says nothing of the others.
#[test]
fn a_file_that_may_not_be_opened_is_left_and_the_others_are_read() {
    if !is_root() {
        eprintln!("skipped: only root mounts a file system");
        return;
    }
    for how in ["private", "bare"] {
        let folder = Folder::open_to_all();
        let mut python = Command::new("/usr/bin/python3");
        let server = Target::of(python.args(["-c", MUTE, folder.text(), how]));
        if server.ready.starts_with("none") {
            eprintln!("skipped: {}", server.ready);
            return;
        }
        let output = run(&format!(
            "audit -q --stop --method map-files {}",
            server.ready
        ));
        let row = &whole_stream(&stdout(&output)).rows[0];
        assert_eq!(row["status"], "ok", "{how}: {row:?}");
        assert!(get(row, "unread_bytes") >= 1 << 20, "{row:?}");
        assert!(get(row, "bytes_per_pass") > 0, "{row:?}");
        let file = link(&server.ready, folder.text());
        let denied = fs::File::open(file).err().map(|error| error.kind());
        let wanted = (how == "private").then_some(ErrorKind::PermissionDenied);
        assert_eq!(denied, wanted, "{how}");
    }
}
