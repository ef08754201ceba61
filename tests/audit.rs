//! `audit` against processes whose memory is known: what it predicts, what it reads, what it
//! changes, and that it lets go of what it has stopped.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{
    BINARY, Row, command, command_as_nobody, field, is_root, number, run, stdout, vmread_splits,
    whole_stream,
};
use cowitness::reader::hybrid::large;
use helpers::{PREFORKED, Target, audit, get, near, signal, state, survey_total, until};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Without frame numbers bit 56 tells what was split, and smaps which pages are the zero page.
#[test]
fn who_sees_no_frames_gets_the_same_figures() {
    let Some((mut audit, _folder)) = command_as_nobody("audit -q --stop --method vmread") else {
        return;
    };
    let server = Target::of(
        Command::new("/usr/bin/python3")
            .args(["-c", PREFORKED])
            .uid(65534)
            .gid(65534)
            .current_dir("/"),
    );
    let master = server.pid().to_string();
    signal(&master, "STOP");
    let worker = server.ready.split(' ').next().unwrap();
    let output = audit.arg(worker).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("Yama") {
        eprintln!("skipped: Yama allows nobody only its own children");
        return;
    }
    let row = &whole_stream(&stdout(&output)).rows[0];
    assert_eq!(row["evidence"], "exclusive");
    let split = get(row, "split_pages");
    assert_eq!(
        split >= 3 << 10,
        vmread_splits() && get(row, "page_bytes") == 4096
    );
    // Only root is told whether a page is part of a large folio.
    match number(row, "predicted_split_pages") {
        Some(predicted) => assert!(near(predicted, split), "{row:?}"),
        None => assert!(large::possible(), "{row:?}"),
    }
}

/// What one reader has split, the next finds split; and warm passes change nothing.
#[test]
fn readers_come_in_the_order_given_and_each_has_its_passes() {
    let server = Target::new(PREFORKED);
    let worker = server.ready.split(' ').next().unwrap();
    let stream = audit(&format!(
        "{worker} --stop --method vmread,proc --warm 2 --block 64K"
    ));
    let order: Vec<_> = stream
        .rows
        .iter()
        .map(|row| (&*row["method"], get(row, "position"), get(row, "repeat")))
        .collect();
    assert_eq!(
        order,
        [
            ("vmread", 1, 1),
            ("vmread", 1, 2),
            ("vmread", 1, 3),
            ("proc", 2, 1),
            ("proc", 2, 2),
            ("proc", 2, 3)
        ]
    );
    for row in &stream.rows {
        let cold = get(row, "repeat") == 1;
        assert_eq!(row["status"], "ok");
        assert_eq!(get(row, "block_bytes"), 65536);
        for column in [
            "cold_ns",
            "cold_mib_s",
            "reader_minflt_cold",
            "predicted_split_pages",
        ] {
            assert_eq!(row[column].is_empty(), !cold, "{column}: {row:?}");
        }
        for column in ["warm_ns", "warm_mib_s", "reader_minflt_warm"] {
            assert_eq!(row[column].is_empty(), cold, "{column}: {row:?}");
        }
        if !cold || row["method"] == "proc" {
            assert_eq!(get(row, "split_pages"), 0, "{row:?}");
            assert_eq!(get(row, "faulted_in_pages"), 0, "{row:?}");
        }
    }
    assert_eq!(get(&stream.rows[0], "split_pages") > 0, vmread_splits());
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
    let io = format!("/proc/{}/io", audit.id());
    until("it reads", || {
        let calls = field(&io, "syscr:").next();
        calls.is_some_and(|calls| calls.parse::<u64>().unwrap() > 5_000)
    });
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

/// A target large enough that reading it in 16-byte pieces takes longer than this test.
const LARGE: &str = r#"
import mmap, sys
memory = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(memory), 4096):
    memory[at] = 1
print("ready", flush=True)
sys.stdin.read()
"#;

/// What the tool may use, however large the process is that it looks at.
const SMALL_KIB: u64 = 6 << 10;

/// The most memory that the tool has had.
fn most_kib(tool: &Child) -> u64 {
    let mut words = field(&format!("/proc/{}/status", tool.id()), "VmHWM:");
    words.next().unwrap().parse().unwrap()
}

fn slow(pid: u32, more: &str) -> Child {
    command(&format!("audit -q --block 16 {more} {pid}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_process_that_ends_midway_leaves_rows_and_status_1() {
    let target = Target::new(LARGE);
    let audit = slow(target.pid(), "--method proc,vmread --warm 1");
    let io = format!("/proc/{}/io", audit.id());
    until("it reads", || {
        let calls = field(&io, "syscr:").next();
        calls.is_some_and(|calls| calls.parse::<u64>().unwrap() > 50_000)
    });
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

/// A mapping that goes on behind the end of its file: what is there is read, the rest is
/// counted, and named as the mechanism names it.
#[test]
fn what_cannot_be_read_is_counted_and_named() {
    const BEHIND_THE_END: &str = r#"
import ctypes, os, sys, tempfile
page = os.sysconf("SC_PAGE_SIZE")
file = tempfile.TemporaryFile()
os.truncate(file.fileno(), 10 * page)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mmap(None, 10 * page, 1, 1, file.fileno(), 0)
os.truncate(file.fileno(), 3 * page)
print("ready", flush=True)
sys.stdin.read()
"#;
    let target = Target::new(BEHIND_THE_END);
    for (method, errno) in [
        ("proc", "EIO"),
        ("vmread", "EFAULT"),
        ("vmread-batch", "EFAULT"),
    ] {
        let row = &audit(&format!("--stop --method {method} {}", target.pid())).rows[0];
        assert_eq!(row["status"], "ok");
        assert_eq!(
            get(row, "unread_bytes"),
            7 * get(row, "page_bytes"),
            "{row:?}"
        );
        assert_eq!((get(row, "unread_runs"), &*row["errno"]), (1, errno));
    }
}

/// Reading such memory with process_vm_readv would never come back.
#[test]
fn memory_of_userfaultfd_is_left_out() {
    const UNSERVED: &str = r#"
import ctypes, fcntl, mmap, os, platform, struct, sys
number = {"x86_64": 323, "aarch64": 282}[platform.machine()]
libc = ctypes.CDLL(None)
descriptor = libc.syscall(number, os.O_CLOEXEC)
if descriptor < 0:
    print("none", flush=True)
    sys.exit()
memory = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(descriptor, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xaa, 0, 0)))
fcntl.ioctl(descriptor, 0xc020aa00, bytearray(struct.pack("QQQQ", address, len(memory), 1, 0)))
print("ready", flush=True)
sys.stdin.read()
"#;
    let target = Target::new(UNSERVED);
    if target.ready != "ready" {
        eprintln!("skipped: no userfaultfd here");
        return;
    }
    let row = &audit(&format!("--method vmread {}", target.pid())).rows[0];
    assert_eq!(row["status"], "ok");
    assert!(get(row, "left_out_bytes") >= 1 << 20, "{row:?}");
}

/// As many mappings as the kernel allows by default, less what Python itself needs.
const MANY: &str = r#"
import ctypes, mmap, os, sys
page = os.sysconf("SC_PAGE_SIZE")
memory = mmap.mmap(-1, 60000 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for number in range(0, 60000, 2):
    memory[number * page] = 1
    if libc.mprotect(address + number * page, page, 1):
        sys.exit("mprotect")
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn sixty_thousand_mappings_are_read_and_surveyed() {
    let target = Target::new(MANY);
    assert_eq!(target.ready, "ready");
    let pid = target.pid().to_string();
    for row in &audit(&format!("{pid} --stop --method vmread-batch,hybrid")).rows {
        assert_eq!(row["status"], "ok");
        assert!(get(row, "vmas") >= 60_000, "{row:?}");
        assert!(get(row, "bytes_per_pass") >= 60_000 * get(row, "page_bytes"));
    }
    let rows = whole_stream(&stdout(&run(&format!("survey -q {pid}")))).rows;
    assert!(rows.len() > 60_000);
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

#[test]
fn refusals_name_their_cause() {
    let target = Target::new("import sys; print(1, flush=True); sys.stdin.read()");
    let says = |output: std::process::Output, text: &str| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(text), "{stderr}");
        assert!(output.stdout.is_empty());
        assert_ne!(output.status.code(), Some(0));
    };
    says(run("audit 4194303"), "ENOENT: there is no such process");
    let own = run(&format!("audit {}", std::process::id()));
    assert!(own.status.success(), "{own:?}");
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        for program in ["audit", "survey"] {
            says(run(&format!("{program} 2")), "kernel thread");
        }
    }
    if !is_root() {
        return;
    }
    for program in ["audit", "survey"] {
        let (mut other, _folder) =
            command_as_nobody(&format!("{program} {}", target.pid())).unwrap();
        says(
            other.output().unwrap(),
            "it belongs to another user or group",
        );
    }
    // The first thread has ended, another lives on.
    const LEADERLESS: &str = "import ctypes, platform, sys, threading, time\n\
        number = {'x86_64': 60, 'aarch64': 93}[platform.machine()]\n\
        threading.Thread(target=time.sleep, args=(600,)).start()\n\
        print(1, flush=True); ctypes.CDLL(None).syscall(number, 0)";
    let leaderless = Target::new(LEADERLESS);
    until("its first thread ends", || {
        state(&leaderless.pid().to_string()) == 'Z'
    });
    says(
        run(&format!("audit {}", leaderless.pid())),
        "give the id of one of those",
    );
    // Nobody's own, who has said that it may not be looked at.
    const NOT_DUMPABLE: &str = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); \
                                print(1, flush=True); sys.stdin.read()";
    let hidden = Target::of(
        Command::new("/usr/bin/python3")
            .args(["-c", NOT_DUMPABLE])
            .uid(65534)
            .gid(65534)
            .current_dir("/"),
    );
    let (mut nobody, _folder) = command_as_nobody(&format!("audit {}", hidden.pid())).unwrap();
    says(nobody.output().unwrap(), "it is yours but not dumpable");
}

#[test]
fn names_are_shown_and_break_nothing() {
    const ODD_NAMES: &str = r#"
import mmap, os, sys, tempfile
folder = tempfile.mkdtemp()
maps = []
for name in ["two words", "two\nlines", "comma, \"quote\"", "gone"]:
    path = os.path.join(folder, name)
    with open(path, "w+b") as file:
        file.write(b"x" * 4096)
        file.flush()
        maps.append(mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ))
    os.unlink(path) if name == "gone" else None
print(folder, flush=True)
sys.stdin.read()
import shutil
shutil.rmtree(folder)
"#;
    let target = Target::new(ODD_NAMES);
    let rows = whole_stream(&stdout(&run(&format!("survey -q {}", target.pid())))).rows;
    for name in [
        "two words",
        "two\\012lines",
        "comma, \"quote\"",
        "gone (deleted)",
    ] {
        let path = format!("{}/{name}", target.ready);
        assert!(rows.iter().any(|row| row["name"] == path), "{path}");
    }
    assert_eq!(audit(&target.pid().to_string()).rows[0]["status"], "ok");
    fs::remove_dir_all(&target.ready).unwrap();
}

/// A program of 32 bits that waits: eax = 29, pause(2) of the 32-bit table.
#[test]
fn a_process_of_32_bits_is_read() {
    const CODE: [u8; 9] = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let mut elf = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let words = |elf: &mut Vec<u8>, words: &[u32]| {
        words.iter().for_each(|word| elf.extend(word.to_le_bytes()));
    };
    // ET_EXEC for EM_386, version 1, entry, program headers at 52.
    words(
        &mut elf,
        &[3 << 16 | 2, 1, 0x0804_8054, 52, 0, 0, 32 << 16 | 52, 1],
    );
    words(&mut elf, &[0]);
    elf.truncate(52);
    // PT_LOAD of the whole file, readable and executable.
    words(&mut elf, &[1, 0, 0x0804_8000, 0x0804_8000, 93, 93, 5, 4096]);
    elf.extend(CODE);
    let path = std::env::temp_dir().join(format!("cowitness-32-{}", std::process::id()));
    fs::write(&path, elf).unwrap();
    Command::new("chmod")
        .arg("755")
        .arg(&path)
        .status()
        .unwrap();
    let spawned = Command::new(&path).spawn();
    fs::remove_file(&path).unwrap();
    let Ok(process) = spawned else {
        eprintln!("skipped: this kernel runs no programs of 32 bits");
        return;
    };
    let target = Target {
        process,
        ready: String::new(),
    };
    // Who started it goes on before the exec is done with its memory.
    until("it sleeps", || state(&target.pid().to_string()) == 'S');
    let row = &audit(&format!("--method proc,vmread {}", target.pid())).rows[1];
    assert_eq!(row["status"], "ok", "{row:?}");
    assert!(get(row, "bytes_per_pass") > 0);
    let total = survey_total(&target.pid().to_string());
    assert!(get(&total, "present_pages") > 0);
}

#[test]
fn words_give_prediction_and_result() {
    let server = Target::new(PREFORKED);
    let worker = server.ready.split(' ').next().unwrap();
    let output = run(&format!("audit --stop --method proc,vmread {worker}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(&format!("cowitness audit: process {worker}, stopped")),
        "{text}"
    );
    assert_eq!(text.matches("; predicted ").count(), 4, "{text}");
    assert!(!text.contains("NOT as predicted"), "{text}");
}

/// A reader that could not begin has no figures, and does not stand for the process.
#[test]
fn a_reader_that_is_refused_has_no_words_of_figures() {
    let target = Target::new(PREFORKED);
    let output = run(&format!("audit --method kcore,proc {}", target.pid()));
    let stream = whole_stream(std::str::from_utf8(&output.stdout).unwrap());
    if !stream.rows[0]["status"].starts_with("skipped:") {
        eprintln!("skipped: /proc/kcore can be read here");
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(" 0 readable VMAs"), "{text}");
    let kcore = text
        .lines()
        .find(|line| line.starts_with("  kcore"))
        .unwrap();
    assert!(
        kcore.ends_with("read nothing: see the status column"),
        "{text}"
    );
    assert_eq!(text.matches("; predicted ").count(), 2, "{text}");
}

/// A process whose memory the kernel still holds in a pipe (vmsplice), after the child that shared
/// it has ended: pagemap calls every page exclusive, and a pin copies it. Prints its address.
const SPLICED: &str = r#"
import ctypes, mmap, os, signal, sys
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
size = 256 << 10
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
memory[:] = b"\x07" * size
reading, writing = os.pipe()
import fcntl
fcntl.fcntl(writing, 1031, size)  # F_SETPIPE_SZ
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.pause()
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
span = Span(address, size)
spliced = libc.vmsplice(writing, ctypes.byref(span), 1, 2)  # SPLICE_F_NONBLOCK
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(spliced, address, flush=True)
sys.stdin.read()
"#;

/// Pages of it whose frame is another one than before, by this test's own look.
fn frames(pid: u32, start: u64, pages: usize) -> Vec<u64> {
    use std::os::unix::fs::FileExt;
    let pagemap = fs::File::open(format!("/proc/{pid}/pagemap")).unwrap();
    let mut entries = vec![0; pages * 8];
    pagemap
        .read_exact_at(&mut entries, start / 4096 * 8)
        .unwrap();
    let words = entries.as_chunks::<8>().0.iter();
    words
        .map(|word| u64::from_ne_bytes(*word) & ((1 << 55) - 1))
        .collect()
}

fn spliced(command: &mut Command) -> (Target, u64, usize) {
    let target = Target::of(command);
    let mut words = target
        .ready
        .split(' ')
        .map(|word| word.parse::<i64>().unwrap());
    let mut word = || words.next().unwrap();
    let (bytes, start) = (word(), word());
    (
        target,
        start.cast_unsigned(),
        bytes.cast_unsigned() as usize / 4096,
    )
}

/// That readers split such pages cannot be helped; that it is not called clean can.
#[test]
fn a_split_that_pagemap_did_not_announce_is_told() {
    if !is_root() {
        eprintln!("skipped: frames are hidden");
        return;
    }
    for method in ["hybrid", "vmread"] {
        let (target, start, pages) =
            spliced(Command::new("/usr/bin/python3").args(["-c", SPLICED]));
        let before = frames(target.pid(), start, pages);
        let output = run(&format!("audit --stop --method {method} {}", target.pid()));
        let after = frames(target.pid(), start, pages);
        let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count() as i64;
        // Where huge pages may be, hybrid copies all of them.
        assert!(moved > 0 || method == "hybrid" || !vmread_splits());
        let row = &whole_stream(&stdout(&output)).rows[0];
        assert_eq!(get(row, "split_pages"), moved, "{row:?}");
        assert_eq!(get(row, "split_exclusive_pages"), moved, "{row:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        let wrong = words.contains(": NOT as predicted\n                 64 of them");
        assert_eq!(wrong, moved == 64, "{words}");
    }
}

#[test]
fn without_frames_such_a_split_makes_the_number_unknown() {
    // With the first, all comes in that is absent: later a fault is a split.
    let Some((mut audit, _folder)) = command_as_nobody("audit --stop --method proc,vmread") else {
        return;
    };
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", SPLICED]).uid(65534).gid(65534);
    let (target, start, pages) = spliced(command.current_dir("/"));
    let before = frames(target.pid(), start, pages);
    let output = audit.arg(target.pid().to_string()).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("Yama") {
        eprintln!("skipped: Yama allows nobody only its own children");
        return;
    }
    let after = frames(target.pid(), start, pages);
    let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count() as i64;
    assert_eq!(moved > 0, vmread_splits());
    let row = &whole_stream(&String::from_utf8(output.stdout.clone()).unwrap()).rows[1];
    assert_eq!(row["evidence"], "exclusive");
    assert_eq!(row["raced_pages"], "", "{row:?}");
    if moved > 0 {
        assert_eq!(row["split_pages"], "", "{row:?}");
        assert!(get(row, "unexplained_faults") >= moved, "{row:?}");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        // To stop it would not help: it is stopped.
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(!words.contains("--stop"), "{words}");
    }
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
    let io = format!("/proc/{}/io", audit.id());
    until("it reads", || {
        let calls = field(&io, "syscr:").next();
        calls.is_some_and(|calls| calls.parse::<u64>().unwrap() > 50_000)
    });
    signal(&pid, "CONT");
    let output = audit.wait_with_output().unwrap();
    let rows = whole_stream(&String::from_utf8(output.stdout).unwrap()).rows;
    assert_eq!(rows[0]["status"], "skipped:target-went-on");
    assert_eq!(output.status.code(), Some(3));
}

/// A file of 8 pages that was written, and so is in the page cache, mapped and never touched.
const MAPPED: &str = r#"
import mmap, os, sys, tempfile
file = tempfile.NamedTemporaryFile()
file.write(b"\x07" * 32768)
file.flush()
memory = mmap.mmap(file.fileno(), 32768, access=mmap.ACCESS_READ)
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn strict_leaves_what_the_target_has_not_mapped() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let target = Target::new(MAPPED);
    let row = |more: &str| audit(&format!("--stop {more} {}", target.pid())).rows[0].clone();
    let (plain, strict) = (row(""), row("--strict"));
    let left = |row: &Row| get(row, "left_not_in_memory_pages");
    assert!(left(&strict) >= left(&plain) + 8, "{plain:?} {strict:?}");
    for row in [&plain, &strict] {
        assert_eq!(get(row, "faulted_in_pages"), 0, "{row:?}");
        let unread = get(row, "unread_bytes") / get(row, "page_bytes");
        assert_eq!(
            left(row) + get(row, "left_swapped_pages"),
            unread,
            "{row:?}"
        );
    }
}
