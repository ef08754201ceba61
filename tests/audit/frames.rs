//! What was split, with frame numbers and without them, and where pagemap announces nothing.

use super::common::{
    BINARY, Row, command_as_nobody, is_root, number, run, stdout, vmread_splits, whole_stream,
};
use super::helpers::{PREFORKED, Target, audit, bit_56_may_err, get, signal, state, until};
use super::nobodys;
use cowitness::reader::{self, Method};
use cowitness::sys::remote::RemoteSpan;
use cowitness::sys::{RemoteAddr, cpu, page_lists};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

/// Without frame numbers a copy looks like a page that the others let go: there is a most, which is what
/// was predicted, and no number.
#[test]
fn who_sees_no_frames_gets_bounds() {
    let Some((mut auditor, _folder)) = command_as_nobody("audit -q --stop --method vmread,proc")
    else {
        return;
    };
    let server = Target::of(&mut nobodys(PREFORKED));
    let master = server.pid().to_string();
    signal(&master, "STOP");
    let worker = server.ready.split(' ').next().unwrap();
    let output = auditor.arg(worker).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("Yama") {
        eprintln!("skipped: Yama allows nobody only its own children");
        return;
    }
    let rows = &whole_stream(&String::from_utf8(output.stdout).unwrap()).rows;
    let (vmread, proc) = (&rows[0], &rows[1]);
    assert_eq!(vmread["evidence"], "exclusive");
    let most = get(vmread, "split_at_most_pages");
    // 12 MiB are shared, and files' pages may come in with the faults.
    let splits = vmread_splits() && get(vmread, "page_bytes") == 4096;
    assert_eq!(most >= 3 << 10, splits, "{vmread:?}");
    // Only root is told of each page whether bit 56 errs.
    match number(vmread, "predicted_split_pages") {
        Some(predicted) => assert!(
            (predicted..=predicted * 102 / 100).contains(&most),
            "{vmread:?}"
        ),
        None => assert!(bit_56_may_err(worker), "{vmread:?}"),
    }
    assert_eq!(number(vmread, "split_pages"), (!splits).then_some(0));
    assert_eq!(get(vmread, "split_at_least_pages"), 0);
    assert_eq!(output.status.code(), Some(if splits { 3 } else { 0 }));
    assert_eq!(said.contains("CAP_SYS_ADMIN"), splits, "{said}");
    let proc = ["split_pages", "split_at_most_pages"].map(|column| get(proc, column));
    assert_eq!(proc, [0, 0]);
}

/// A process whose memory the kernel still holds in a pipe (vmsplice), after the child that shared
/// it has ended: pagemap calls every page exclusive, and a pin copies it. It lies below all else that
/// the process has, and so is read first. Prints its address.
const SPLICED: &str = r#"
import ctypes, os, signal, sys
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
size, address = 256 << 10, 1 << 20
libc.mmap.restype = ctypes.c_size_t
# Readable and writable, MAP_FIXED_NOREPLACE | MAP_ANONYMOUS | MAP_PRIVATE.
memory = libc.mmap(*map(ctypes.c_size_t, (address, size)), 3, 0x100022, -1, ctypes.c_size_t(0))
assert memory == address
assert libc.madvise(ctypes.c_size_t(address), ctypes.c_size_t(size), 15) == 0  # MADV_NOHUGEPAGE
ctypes.memset(address, 7, size)
reading, writing = os.pipe()
import fcntl
fcntl.fcntl(writing, 1031, size)  # F_SETPIPE_SZ
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.pause()
span = Span(address, size)
spliced = libc.vmsplice(writing, ctypes.byref(span), 1, 2)  # SPLICE_F_NONBLOCK
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
print(spliced, address, flush=True)
sys.stdin.read()
"#;

/// What pagemap says of each page's frame, by this test's own look.
fn frames(pid: u32, start: u64, pages: usize) -> Vec<u64> {
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

/// Such a process, where its memory begins, and how many pages of it the pipe holds.
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
        // So nothing is left to bring in.
        audit(&format!("--stop --method proc {}", target.pid()));
        let survey = run(&format!("survey {}", target.pid()));
        let total = whole_stream(&stdout(&survey)).rows.pop().unwrap();
        assert_eq!(get(&total, "vmread_faulted_pages"), 0, "{total:?}");
        let words = String::from_utf8_lossy(&survey.stderr);
        if vmread_splits() {
            assert_eq!(total["advice"], "hybrid", "{words}");
            assert!(words.contains("a pipe, a socket or"), "{words}");
        }
        let before = frames(target.pid(), start, pages);
        let output = run(&format!("audit --stop --method {method} {}", target.pid()));
        let after = frames(target.pid(), start, pages);
        let moved = before.iter().zip(&after).filter(|(a, b)| a != b).count() as i64;
        let words = String::from_utf8_lossy(&output.stderr);
        // hybrid pins one page first, and none once that was copied; or none at all, where huge
        // pages, KSM or swap are in use.
        let pinned = method == "vmread" || words.contains("not pinned: fault");
        let want = match (vmread_splits() && pinned, method) {
            (false, _) => 0,
            (true, "hybrid") => 1,
            (true, _) => 64,
        };
        assert_eq!((pages, moved), (64, want), "{words}");
        if want == 0 {
            eprintln!("{method} had nothing to split");
        }
        let row = &whole_stream(&stdout(&output)).rows[0];
        assert_eq!(get(row, "split_pages"), moved, "{row:?}");
        assert_eq!(get(row, "split_exclusive_pages"), moved, "{row:?}");
        let said = format!(": NOT as predicted\n                 {moved} of them");
        assert_eq!(words.contains(&said), moved > 0, "{words}");
        assert_eq!(words.contains(": NOT as predicted"), moved > 0, "{words}");
    }
}

#[test]
fn without_frames_such_a_split_makes_the_number_unknown() {
    // With the first, all comes in that is absent: later a fault is a split.
    let Some((mut auditor, _folder)) = command_as_nobody("audit --stop --method proc,vmread")
    else {
        return;
    };
    let (target, start, pages) = spliced(&mut nobodys(SPLICED));
    let before = frames(target.pid(), start, pages);
    let output = auditor.arg(target.pid().to_string()).output().unwrap();
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

/// A process alone with pages that a child shared, which has ended: pagemap calls them its own, and a
/// pin copies those that something refers to. Prints their address.
const ALONE: &str = r#"
import ctypes, mmap, os, sys
memory = mmap.mmap(-1, 12 * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
for at in range(0, len(memory), 4096):
    memory[at] = 1
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print(ctypes.addressof(ctypes.c_char.from_buffer(memory)), flush=True)
sys.stdin.read()
"#;
/// As many as stay on a list: it is emptied when it is full (PAGEVEC_SIZE, at least 14).
const ALONE_PAGES: usize = 12;

/// Such a process, and where its pages are.
fn alone() -> (Target, RemoteSpan) {
    let target = Target::new(ALONE);
    let start = RemoteAddr(target.ready.parse().unwrap());
    let len = ALONE_PAGES as u64 * 4096;
    (target, RemoteSpan { start, len })
}

/// How many of them get another frame by what is done.
fn copied_by(target: &Target, memory: RemoteSpan, act: &mut dyn FnMut()) -> usize {
    let look = || frames(target.pid(), memory.start.0, ALONE_PAGES);
    let before = look();
    act();
    let pairs = before.into_iter().zip(look());
    pairs.filter(|(old, new)| old != new).count()
}

/// Reads them on CPU 1 until they are active, which puts them on a list of that CPU for a while.
fn put_on_a_list(target: &Target, memory: RemoteSpan) {
    cpu::pin(1).unwrap();
    let file = fs::File::open(format!("/proc/{}/mem", target.pid())).unwrap();
    let mut buffer = [0; ALONE_PAGES * 4096];
    for _ in 0..3 {
        file.read_exact_at(&mut buffer, memory.start.0).unwrap();
    }
}

/// Pins them on CPU 0, and nobody empties lists.
fn bare_pass(target: &Target, memory: RemoteSpan) {
    cpu::pin(0).unwrap();
    let mut buffer = [0; ALONE_PAGES * 4096];
    let aim = reader::Target::process(target.pid().cast_signed(), 4096);
    let lent = Method::Vmread.lend(&aim, &mut |reader| {
        let spans = &mut [memory].into_iter();
        let pass = reader.pass(spans, ALONE_PAGES * 4096, &mut buffer, None);
        assert_eq!(pass.bytes, memory.len);
    });
    lent.unwrap();
}

/// The row of an audit on CPU 0 which comes to its first word, and no further, until `meanwhile` has
/// been done: its output is full.
fn audited_after(target: &Target, meanwhile: &mut dyn FnMut()) -> Row {
    const FULL: usize = 64 << 10;
    let (mut output, mut input) = std::io::pipe().unwrap();
    input.write_all(&[b'\n'; FULL]).unwrap();
    let words = format!(
        "-c 0 {BINARY} audit -q --stop --method vmread {}",
        target.pid()
    );
    let mut audit = Command::new("taskset")
        .args(words.split(' '))
        .stdout(input)
        .spawn()
        .unwrap();
    let (id, exe) = (audit.id().to_string(), format!("/proc/{}/exe", audit.id()));
    let mut asleep = 0;
    until("it waits for its reader", || {
        let waits = fs::read_link(&exe).is_ok_and(|exe| exe == Path::new(BINARY));
        asleep = if waits && state(&id) == 'S' {
            asleep + 1
        } else {
            0
        };
        asleep == 10
    });
    meanwhile();
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    audit.wait().unwrap();
    whole_stream(&text[FULL..]).rows.remove(0)
}

/// What has been read before, by whomever, is on lists of CPUs for a while.
#[test]
fn what_is_on_a_list_of_the_kernel_is_not_split() {
    if !is_root() || number_of_cpus() < 2 || page_lists::drain().is_err() || !vmread_splits() {
        eprintln!(
            "skipped: frames are hidden, one CPU, no list can be emptied, or pins copy nothing"
        );
        return;
    }
    // Somebody else may empty them meanwhile: that proves nothing.
    let mut shown = 0;
    for _ in 0..30 {
        let (target, memory) = alone();
        let bare = copied_by(&target, memory, &mut || {
            put_on_a_list(&target, memory);
            bare_pass(&target, memory);
        });
        let (target, memory) = alone();
        let mut row = None;
        let audited = copied_by(&target, memory, &mut || {
            let meanwhile = &mut || put_on_a_list(&target, memory);
            row = Some(audited_after(&target, meanwhile));
        });
        let row = row.unwrap();
        assert_eq!(
            (audited, get(&row, "split_exclusive_pages")),
            (0, 0),
            "{row:?}"
        );
        assert_eq!(
            number(&row, "predicted_split_pages").unwrap_or(0),
            0,
            "{row:?}"
        );
        shown += usize::from(bare > 0);
        if shown == 5 {
            return;
        }
    }
    panic!("pages were on a list in {shown} of 30 attempts");
}

fn number_of_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}
