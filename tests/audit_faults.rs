//! What the faults that `audit` is charged with say of the process, and what they do not.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{Folder, command, command_as_nobody, is_root, stdout, vmread_splits, whole_stream};
use helpers::{Target, audit, get, mapping_kib, until};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Readers that touch no page table, of a process that shares nothing: also next to the helper that
/// lets the process go again, a copy of the tool with which it shares its own pages.
#[test]
fn who_changes_nothing_is_charged_nothing() {
    let target = Target::new("import sys; print(1, flush=True); sys.stdin.read()");
    let pid = target.pid();
    // Only root may use map_files.
    let methods = ["hybrid", "hybrid --strict", "map-files"];
    for method in &methods[..if is_root() { 3 } else { 2 }] {
        for stop in ["", "--stop"] {
            let row = &audit(&format!("{pid} {stop} --method {method}")).rows[0];
            assert_eq!(row["status"], "ok");
            assert_eq!(get(row, "faulted_in_pages"), 0, "{row:?}");
            assert_eq!(get(row, "reader_minflt_cold"), 0, "{row:?}");
            assert_eq!(get(row, "unexplained_faults"), 0, "{row:?}");
        }
    }
}

/// A private mapping of a file, of which 512 pages were written. A child that shared them has ended,
/// but pipes still hold them (vmsplice(2)): bit 56 calls them the process's own, and process_vm_readv
/// copies them. The file's other pages are in memory, but not mapped.
const SPLICED: &str = r#"
import ctypes, mmap, os, sys
page, pages = 4096, 512
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE)
for number in range(pages):
    memory[number * page] = 1
libc = ctypes.CDLL(None)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
held, hold = os.pipe()
child = os.fork()
if child == 0:
    os.close(hold)
    os.read(held, 1)
    os._exit(0)
pipes = []
for number in range(pages):
    if number % 16 == 0:
        pipes.append(os.pipe())
    part = Part(address + number * page, page)
    if libc.vmsplice(pipes[-1][1], ctypes.byref(part), 1, 0) != page:
        sys.exit("vmsplice")
os.close(hold)
os.waitpid(child, 0)
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn copies_behind_what_a_file_brought_in_are_not_told_as_none() {
    let Some((mut by_nobody, _folder)) = command_as_nobody("audit -q --stop --method vmread")
    else {
        return;
    };
    let files = Folder::open_to_all();
    let path = files.0.join("file");
    std::fs::write(&path, vec![7; 24 << 20]).unwrap();
    let chown = Command::new("chown").arg("nobody").arg(&path).status();
    let target = || {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", SPLICED, path.to_str().unwrap()]);
        Target::of(python.uid(65534).gid(65534).current_dir("/"))
    };
    assert!(chown.unwrap().success());
    let seen = target();
    assert_eq!(seen.ready, "ready");
    let row = &audit(&format!("{} --stop --method vmread", seen.pid())).rows[0];
    let copied = get(row, "split_exclusive_pages");
    if !vmread_splits() || get(row, "page_bytes") != 4096 {
        eprintln!("skipped: vmread splits nothing here, or pages are larger");
        return;
    }
    assert!(copied >= 512, "{row:?}");
    // As many faults would be seen if the file's pages had come one by one.
    assert!(get(row, "faulted_in_pages") > copied + get(row, "reader_minflt_cold"));
    let hidden = target();
    let output = by_nobody.arg(hidden.pid().to_string()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("Yama") {
        eprintln!("skipped: Yama allows nobody only its own children");
        return;
    }
    let row = &whole_stream(&String::from_utf8_lossy(&output.stdout)).rows[0];
    assert_eq!((&*row["evidence"], &*row["split_pages"]), ("exclusive", ""));
    assert!(get(row, "unexplained_faults") >= 512, "{row:?}");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr.contains("what was split is unknown"), "{stderr}");
}

/// 32 MiB of a process's own small pages, all of one window, which may be made huge. Prints where.
const TO_COLLAPSE: &str = r#"
import ctypes, mmap, sys
size = 32 << 20
memory = mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
into = -address % size
memory.madvise(15)  # MADV_NOHUGEPAGE
for at in range(into, into + size, 4096):
    memory[at] = 1
memory.madvise(14, into, size)  # MADV_HUGEPAGE
print(address + into, flush=True)
sys.stdin.read()
"#;

/// Makes them huge (Linux 6.1), as khugepaged does by itself. The words are a process and an address.
const COLLAPSES: &str = r#"
import ctypes, errno, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
class Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
process, huge = os.pidfd_open(int(sys.argv[1])), 2 << 20
for at in reversed(range(0, 32 << 20, huge)):
    span = Span(int(sys.argv[2]) + at, huge)
    for _ in range(1000):
        done = libc.syscall(440, process, ctypes.byref(span), ctypes.c_size_t(1), 25, 0)  # process_madvise
        # Pages on a list of a processor, or that the reader holds, are not moved at once.
        if done == huge or ctypes.get_errno() != errno.EAGAIN:
            break
        time.sleep(0.001)
    if done != huge:
        sys.exit(os.strerror(ctypes.get_errno()))
"#;

/// Pages that somebody else replaces while a reader is at them, which is charged no fault.
#[test]
fn what_the_kernel_has_moved_meanwhile_is_not_split_by_the_reader() {
    if !is_root() {
        eprintln!("skipped: frames are hidden");
        return;
    }
    let target = Target::new(TO_COLLAPSE);
    let (pid, start) = (target.pid(), target.ready.parse().unwrap());
    std::fs::write(format!("/proc/{pid}/clear_refs"), "1").unwrap();
    let mut audit = command(&format!("audit -q --stop --method proc --block 64 {pid}"));
    let audit = audit.stdout(Stdio::piped()).spawn().unwrap();
    until("it reads", || mapping_kib(pid, start, "Referenced:") > 0);
    let mut python = Command::new("/usr/bin/python3");
    let collapser = python.args(["-c", COLLAPSES, &pid.to_string(), &start.to_string()]);
    let collapsed = collapser.output().unwrap();
    let output = audit.wait_with_output().unwrap();
    if !collapsed.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&collapsed.stderr));
        return;
    }
    let row = &whole_stream(&stdout(&output)).rows[0];
    assert!(get(row, "raced_pages") >= 512, "{row:?}");
    assert_eq!(get(row, "split_pages"), 0, "{row:?}");
    assert_eq!(get(row, "split_exclusive_pages"), 0, "{row:?}");
}
