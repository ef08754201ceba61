//! Others at work on the same memory while `audit` reads it: what they have replaced is not told as
//! split by the reader. Each event is proved to lie within the pass: it begins when the reader is at
//! the front of a window, and has ended while the end of that part is still untouched.
//!
//! A program of its own: those that make huge pages of small ones disturb whoever surveys meanwhile.

mod common;
#[path = "common/audit.rs"]
mod helpers;
#[path = "common/machine.rs"]
mod machine;

use common::{
    alone, command, field, is_root, kernel, lock_of_the_machine, number, vmread_splits,
    whole_stream,
};
use helpers::{Target, get, signal, state, until};
use machine::{KSM, Ksm, Zram};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

const PAGE: u64 = 4096;
/// The bits of an entry in pagemap that are a frame's number.
const FRAME: u64 = (1 << 55) - 1;
/// The pages of one window, in this order. Most of the first are absent: the reader is charged a fault
/// for each.
const SPARSE: u64 = 4096;
/// Fork shares them.
const SHARED: u64 = 2048;
/// The process's own.
const OWN: u64 = 2048;
/// All of them.
const WINDOW: u64 = SPARSE + SHARED + OWN;

/// Makes the kernel move pages: sysctl/vm.rst.
const COMPACT: &str = "/proc/sys/vm/compact_memory";

/// Of another window, those in front, for which there was a fault each before.
const LONE_PAGES: u64 = 4096;

/// Prints the child, which shares its memory, and where that lies; does what it is told.
const MEMORY: &str = r#"
import ctypes, mmap, os, signal, sys, threading
page, huge, size = 4096, 2 << 20, 32 << 20
sparse, shared = 4096 * page, 2048 * page
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
first = -address % size
middle, own = first + sparse, first + sparse + shared
if "collapse" not in sys.argv:
    memory.madvise(15)  # MADV_NOHUGEPAGE
if "mergeable" in sys.argv:
    memory.madvise(12)
for at in range(first, middle, huge):  # so that no huge zero page fits
    memory[at] = 1
for at in range(middle, own, page):
    memory[at] = 1
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        signal.pause()
for at in range(own, first + size, page):
    memory[at] = 1
filling = bytes([7]) * (first + size - own)
def replace():
    while True:
        memory.madvise(4, own, len(filling))  # MADV_DONTNEED
        memory[own:own + len(filling)] = filling
if "replace" in sys.argv:
    threading.Thread(target=replace, daemon=True).start()
print(child, address + first, flush=True)
sys.stdin.readline()
for at in range(middle, first + size, huge):
    memory.madvise(25, at, huge)  # MADV_COLLAPSE
sys.stdin.read()
"#;

/// Pages in front of a window that fork once shared and that are the process's alone since; what else there was
/// around them is free again. Prints where they lie. `clean`: once told to, the process forks for the last
/// time, so that pages that were split before are so again. `shared`: they are not the process's alone.
/// `zeros`: they hold nothing else. `mergeable`: KSM may join them.
const LONE: &str = r#"
import ctypes, mmap, os, signal, sys
page, huge, size, lone, apart = 4096, 2 << 20, 32 << 20, 4096, 15
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 2 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
filling = mmap.mmap(-1, apart * lone * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
filling.madvise(15)  # MADV_NOHUGEPAGE
first = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % size
byte = 0 if "zeros" in sys.argv else 1
if "collapse" not in sys.argv:
    memory.madvise(15)
if "mergeable" in sys.argv:
    memory.madvise(12)
for number in range(lone):
    for at in range(apart * number, apart * (number + 1)):
        filling[at * page] = 1
    memory[first + number * page] = byte
for at in range(first + lone * page, first + size, huge):  # so that no huge zero page fits
    memory[at] = 1
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        signal.pause()
print(child, ctypes.addressof(ctypes.c_char.from_buffer(memory)) + first, flush=True)
if "clean" in sys.argv:
    sys.stdin.readline()
    last = os.fork()
    if last == 0:
        os._exit(0)
    os.waitpid(last, 0)
if "shared" not in sys.argv:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
filling.close()
sys.stdin.read()
"#;

/// One page of sixteen, of many windows, so that compaction finds pages and room wherever it looks; a child has
/// them, too.
const STREWN: &str = r#"
import ctypes, mmap, os, signal, sys
page, pages, each = 4096, 131072, 16
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, pages * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
first = ctypes.addressof(ctypes.c_char.from_buffer(memory))
ctypes.memset(first, 1, pages * page)
for at in range(0, pages, each):
    memory.madvise(4, (at + 1) * page, (each - 1) * page)  # MADV_DONTNEED
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        signal.pause()
print(child, first, flush=True)
sys.stdin.read()
"#;

/// Changes one byte of each of so many pages at a place, or reads it, also after it has sent them to swap, or
/// makes the pages huge ones, once it is told to.
const OTHER: &str = r#"
import ctypes, os, sys
way, pid, start, pages, page = sys.argv[1], *map(int, sys.argv[2:]), 4096
libc = ctypes.CDLL(None, use_errno=True)
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]
own = ctypes.create_string_buffer(b"\x09" * 1024, 1024)
mem = os.open(f"/proc/{pid}/mem", os.O_RDWR)
print("ready", flush=True)
sys.stdin.readline()
def advise(advice):
    span, process = Part(start, pages * page), os.pidfd_open(pid)
    done = libc.syscall(440, process, ctypes.byref(span), ctypes.c_size_t(1), advice, 0)  # process_madvise
    if done != span.len:
        sys.exit(os.strerror(ctypes.get_errno()))
if way == "collapse":
    advise(25)
    sys.exit()
if way == "swap":
    advise(21)  # MADV_PAGEOUT
    advise(21)
    way = "readv"
for at in range(start, start + pages * page, 1024 * page):
    theirs = (Part * 1024)(*(Part(at + number * page, 1) for number in range(1024)))
    if way == "mem":
        done = sum(os.pwrite(mem, b"\x09", part.base) for part in theirs)
    else:
        call = {"readv": libc.process_vm_readv, "writev": libc.process_vm_writev}[way]
        mine = Part(ctypes.addressof(own), 1024)
        done = call(pid, ctypes.byref(mine), 1, theirs, 1024, 0)
    if done != 1024:
        sys.exit(os.strerror(ctypes.get_errno()))
"#;

fn python(script: &str) -> Command {
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", script]);
    python
}

/// Such a process.
struct Memory {
    target: Target,
    start: u64,
}

impl Memory {
    fn new(mode: &str) -> Self {
        Self::of(MEMORY, mode)
    }

    fn of(script: &str, mode: &str) -> Self {
        let target = Target::of(python(script).arg(mode));
        let (_, start) = target.ready.split_once(' ').unwrap();
        let start = start.parse().unwrap();
        Self { target, start }
    }

    /// What pagemap says of some of its pages.
    fn entries(&self, start: u64, pages: u64) -> Vec<u64> {
        Self::entries_of(self.target.pid(), start, pages)
    }

    fn entries_of(pid: u32, start: u64, pages: u64) -> Vec<u64> {
        let pagemap = File::open(format!("/proc/{pid}/pagemap")).unwrap();
        let mut entries = vec![0; pages as usize * 8];
        // Behind the end of user space there is nothing.
        let got = pagemap.read_at(&mut entries, start / PAGE * 8).unwrap();
        let words = entries[..got].as_chunks::<8>().0.iter();
        words.map(|word| u64::from_ne_bytes(*word)).collect()
    }

    fn is_present(&self, page: u64) -> bool {
        self.entries(self.start + page * PAGE, 1)[0] >> 63 == 1
    }

    /// The frames of private anonymous pages, by address.
    fn frames(&self) -> BTreeMap<u64, u64> {
        Self::frames_of(self.target.pid())
    }

    fn frames_of(pid: u32) -> BTreeMap<u64, u64> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let mut frames = BTreeMap::new();
        for line in maps.lines().filter(|line| line.contains("p ")) {
            let (range, _) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
            let entries = Self::entries_of(pid, start, (end - start) / PAGE);
            let pages = (start..).step_by(PAGE as usize).zip(entries);
            let anonymous = pages.filter(|(_, entry)| entry >> 61 & 0b101 == 0b100);
            frames.extend(anonymous.map(|(at, entry)| (at, entry & FRAME)));
        }
        frames
    }

    /// The private anonymous pages that it has in common with its child.
    fn common(&self) -> BTreeSet<u64> {
        let (child, _) = self.target.ready.split_once(' ').unwrap();
        let its = Self::frames_of(child.parse().unwrap());
        let both = |(at, frame): (u64, u64)| (its.get(&at) == Some(&frame)).then_some(at);
        self.frames().into_iter().filter_map(both).collect()
    }

    /// An audit of it begins, in pieces so small that it takes its time.
    fn audit(&self, option: &str) -> Child {
        self.audit_by(&format!("--block 64 {option}"))
    }

    fn audit_by(&self, options: &str) -> Child {
        command(&format!(
            "audit --method vmread {options} {}",
            self.target.pid()
        ))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
    }

    /// Until a reader has begun with the pages in front.
    fn until_it_is_read(&self) {
        until("it is read", || self.is_present(1));
    }

    /// Whether no reader has come to the pages that fork shares yet.
    fn is_not_done(&self) -> bool {
        !self.is_present(SPARSE - 1)
    }
}

/// Pages with another frame, in a part of memory and elsewhere.
fn moved(before: &BTreeMap<u64, u64>, after: &BTreeMap<u64, u64>, part: &Range<u64>) -> (i64, i64) {
    let mut moved = (0, 0);
    for (at, frame) in before {
        if after.get(at).is_some_and(|now| now != frame) {
            *(if part.contains(at) {
                &mut moved.0
            } else {
                &mut moved.1
            }) += 1;
        }
    }
    moved
}

/// What an audit says that its reader has split: at least and at most so many pages, and whether that is
/// one number. Of a number, a hundredth may be somebody else's.
fn told(output: &Output) -> (i64, i64, bool) {
    let row = &whole_stream(&String::from_utf8_lossy(&output.stdout)).rows[0];
    assert_eq!(row["status"], "ok", "{row:?}");
    let words = String::from_utf8_lossy(&output.stderr);
    if let Some(split) = number(row, "split_pages") {
        assert_eq!(output.status.code(), Some(0), "{words}");
        return (split - split / 100, split, true);
    }
    assert_eq!(output.status.code(), Some(3), "{words}");
    let [least, most] =
        ["split_at_least_pages", "split_at_most_pages"].map(|column| get(row, column));
    let bounds = [
        format!(" {least} to {most}: others, or the kernel, replaced pages meanwhile"),
        format!(" {least} to {most}: the kernel moved, swapped or joined pages"),
        format!(" {least} to {most}: it ran meanwhile"),
    ];
    assert!(bounds.iter().any(|said| words.contains(said)), "{words}");
    (least, most, false)
}

/// Whether what is asked for can be seen here.
fn can_be_seen() -> bool {
    let can = is_root() && vmread_splits();
    if !can {
        eprintln!("skipped: frames are hidden, or vmread splits nothing here");
    }
    can
}

/// The same, while nobody moves pages in a loop or changes how the machine's memory is managed.
fn undisturbed() -> Option<File> {
    can_be_seen().then(|| lock_of_the_machine(File::try_lock_shared))
}

/// Tries, on memory of its own each time, until the event was within the pass.
fn tried(mut attempt: impl FnMut() -> bool) {
    assert!((0..20).any(|_| attempt()), "never within the pass");
}

/// A thread gives up the process's own pages and fills them anew, all the time.
#[test]
fn what_a_running_process_replaces_is_not_told_as_split() {
    let Some(_steady) = undisturbed() else {
        return;
    };
    tried(|| {
        let memory = Memory::new("replace");
        let own = memory.start + (SPARSE + SHARED) * PAGE..memory.start + WINDOW * PAGE;
        let last = || memory.entries(own.end - PAGE, 1)[0];
        let before = memory.frames();
        let audit = memory.audit("");
        memory.until_it_is_read();
        for _ in 0..2 {
            let was = last();
            until("a round", || ![was, 0].contains(&last()));
        }
        let is_within = memory.is_not_done();
        let output = audit.wait_with_output().unwrap();
        let (_, split) = moved(&before, &memory.frames(), &own);
        let (from, to, _) = told(&output);
        assert!(
            from <= split && to >= SHARED as i64,
            "{from} to {to}: {split}"
        );
        is_within
    });
}

/// Another process that does something to pages.
struct Other(Target);

impl Other {
    fn new(way: &str, memory: &Memory, start: u64, pages: u64) -> Self {
        let pid = memory.target.pid().to_string();
        let other =
            Target::of(python(OTHER).args([way, &pid, &start.to_string(), &pages.to_string()]));
        assert_eq!(other.ready, "ready");
        Self(other)
    }

    /// Now, and until it is done.
    fn act(mut self) {
        self.0
            .process
            .stdin
            .take()
            .unwrap()
            .write_all(b"go\n")
            .unwrap();
        assert!(self.0.process.wait().unwrap().success());
    }
}

/// Another process replaces the shared pages, in some way, of one that runs or stands.
fn by_another(way: &str, option: &str) {
    tried(|| {
        let memory = Memory::new(way);
        let start = memory.start + SPARSE * PAGE;
        let part = start..start + SHARED * PAGE;
        let other = Other::new(way, &memory, start, SHARED);
        let before = memory.frames();
        let audit = memory.audit(option);
        memory.until_it_is_read();
        other.act();
        let (by_other, _) = moved(&before, &memory.frames(), &part);
        let is_within = memory.is_not_done();
        let output = audit.wait_with_output().unwrap();
        assert_eq!(by_other, SHARED as i64);
        let (_, elsewhere) = moved(&before, &memory.frames(), &part);
        let (from, to, _) = told(&output);
        assert!(
            !is_within || from <= elsewhere,
            "{from} to {to}: {elsewhere}"
        );
        is_within
    });
}

#[test]
fn what_another_process_writes_to_is_not_told_as_split() {
    if let Some(_steady) = undisturbed() {
        for way in ["writev", "mem"] {
            by_another(way, "");
            by_another(way, "--stop");
        }
    }
}

#[test]
fn what_another_reader_splits_is_not_told_as_split() {
    if let Some(_steady) = undisturbed() {
        by_another("readv", "");
        by_another("readv", "--stop");
    }
}

/// Pages of this machine that the kernel has moved so far, as a page's frame changes by that, too.
fn migrated() -> Vec<String> {
    field("/proc/vmstat", "pgmigrate_success").collect()
}

/// Two audits at once of a process that stands: of what was split each page is one's or the other's.
#[test]
fn two_readers_have_not_split_more_than_was_shared() {
    let Some(_steady) = undisturbed() else {
        return;
    };
    tried(|| {
        let memory = Memory::new("waits");
        let pid = memory.target.pid().to_string();
        signal(&pid, "STOP");
        until("it stands", || state(&pid) == 'T');
        let (migrations, before) = (migrated(), memory.frames());
        let outputs =
            [memory.audit(""), memory.audit("")].map(|audit| audit.wait_with_output().unwrap());
        let (split, _) = moved(&before, &memory.frames(), &(0..u64::MAX));
        assert!(split >= SHARED as i64);
        let [one, two] = outputs.each_ref().map(told);
        assert!(one.0 + two.0 <= split, "{one:?} {two:?}: {split}");
        if migrated() != migrations {
            return false;
        }
        assert!(
            one.1 + two.1 >= split - split / 100,
            "{one:?} {two:?}: {split}"
        );
        // Else the one began when the other was past it.
        !one.2 || !two.2
    });
}

/// Whether pages can be made huge ones on demand, and are not made so before.
fn collapses() -> bool {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let on_demand = enabled.is_ok_and(|mode| !mode.contains("[always]"));
    let collapses = kernel() >= (6, 1) && on_demand;
    if !collapses {
        eprintln!("skipped: no MADV_COLLAPSE here, or huge pages without it");
    }
    collapses
}

/// The process has its pages made huge, those that fork shares and its own: no fault, but other frames.
#[test]
fn what_a_process_makes_huge_is_not_told_as_split() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() || !collapses() {
        return;
    }
    tried(|| {
        let mut memory = Memory::new("collapse");
        let part = memory.start + SPARSE * PAGE..memory.start + WINDOW * PAGE;
        let before = memory.frames();
        let audit = memory.audit("");
        memory.until_it_is_read();
        let input = memory.target.process.stdin.as_mut().unwrap();
        input.write_all(b"go\n").unwrap();
        let mut is_done = false;
        until("it has huge pages, or there are none", || {
            is_done = moved(&before, &memory.frames(), &part).0 == (SHARED + OWN) as i64;
            is_done || state(&memory.target.pid().to_string()) == 'Z'
        });
        let is_within = is_done && memory.is_not_done();
        let output = audit.wait_with_output().unwrap();
        if !is_within {
            return false;
        }
        let (_, elsewhere) = moved(&before, &memory.frames(), &part);
        let (from, to, _) = told(&output);
        assert!(from <= elsewhere, "{from} to {to}: {elsewhere}");
        true
    });
}

/// As khugepaged does, of a process that stands.
#[test]
fn what_is_made_huge_from_outside_is_not_told_as_split() {
    let Some(_alone) = alone() else { return };
    if can_be_seen() && collapses() {
        by_another("collapse", "");
        by_another("collapse", "--stop");
    }
}

/// Mappings without a file, and how many of their pages nobody has written since they came. A copy that a
/// pin makes is one (mm/memory.c, `wp_page_copy`), and what the kernel moves stays what it was.
fn clean(pid: u32) -> (Vec<Range<u64>>, i64) {
    let smaps = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let (mut counts, mut mappings, mut kib) = (false, Vec::new(), 0);
    for line in smaps.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [range, _, _, _, inode, ..] if range.contains('-') => {
                counts = inode == "0" && !line.contains("[v");
                let (start, end) = range.split_once('-').unwrap();
                let [start, end] = [start, end].map(|at| u64::from_str_radix(at, 16).unwrap());
                mappings.extend(counts.then_some(start..end));
            }
            ["Private_Clean:", value, "kB"] if counts => kib += value.parse::<i64>().unwrap(),
            _ => {}
        }
    }
    (mappings, kib / (PAGE as i64 / 1024))
}

/// What moves pages, and what they are like then.
#[derive(Clone, Copy, PartialEq)]
enum Moved {
    /// Not at all.
    Not,
    /// As they were; the kernel may find nothing to move.
    AsTheyWere,
    /// Clean, as copies are.
    Clean,
}

/// Pages of which the reader has copied next to none: it has made them the process's own where they were, a
/// fault each. Then it is held, and they are moved.
fn after_they_were_unshared(mode: &str, how: Moved, moves: impl Fn(&Memory)) {
    let mut unmoved = 0;
    tried(|| {
        let mut memory = Memory::of(LONE, mode);
        let pid = memory.target.pid();
        let part = memory.start..memory.start + LONE_PAGES * PAGE;
        if mode == "clean" {
            Other::new("readv", &memory, memory.start, LONE_PAGES).act();
        }
        let (mappings, was_clean) = clean(pid);
        assert_eq!(was_clean >= LONE_PAGES as i64, mode == "clean");
        let input = memory.target.process.stdin.as_mut().unwrap();
        input.write_all(b"go\n").unwrap();
        let children = format!("/proc/{pid}/task/{pid}/children");
        until("it is alone, and waits", || {
            fs::read(&children).unwrap().is_empty() && state(&pid.to_string()) == 'S'
        });
        let (migrations, before) = (migrated(), memory.frames());
        let audit = memory.audit("");
        let tool = audit.id().to_string();
        until("they are read", || memory.is_present(LONE_PAGES + 1));
        signal(&tool, "STOP");
        until("the reader is held", || state(&tool) == 'T');
        let is_within = !memory.is_present(WINDOW - 1);
        let (copied, _) = moved(&before, &memory.frames(), &part);
        moves(&memory);
        let (moved_pages, _) = moved(&before, &memory.frames(), &part);
        signal(&tool, "CONT");
        let output = audit.wait_with_output().unwrap();
        let (from, to, is_exact) = told(&output);
        let after = memory.frames();
        let (_, elsewhere) = moved(&before, &after, &part);
        // Of mappings of files the clean pages are mostly the files' own.
        let in_files = before.iter().filter(|&(at, frame)| {
            let is_elsewhere = after.get(at).is_some_and(|now| now != frame);
            is_elsewhere && !mappings.iter().any(|mapping| mapping.contains(at))
        });
        let came_clean = clean(pid).1 - was_clean;
        let (least, most) = match how {
            Moved::AsTheyWere => (came_clean, came_clean + in_files.count() as i64),
            Moved::Not | Moved::Clean => (copied + elsewhere, copied + elsewhere),
        };
        if !is_within {
            return false;
        }
        let truth = format!("{from} to {to}: {least} to {most}, {moved_pages} moved");
        assert!(from <= most && to >= least, "{truth}");
        match how {
            Moved::Not => {
                assert!(is_exact || migrated() != migrations, "{truth}");
                is_exact
            }
            Moved::Clean => moved_pages >= LONE_PAGES as i64 / 2,
            Moved::AsTheyWere => {
                unmoved += u64::from(moved_pages < 8);
                if unmoved == 10 {
                    eprintln!("skipped: the kernel moves nothing here");
                }
                moved_pages >= 8 || unmoved >= 10
            }
        }
    });
}

#[test]
fn what_was_unshared_in_place_is_not_split() {
    if let Some(_steady) = undisturbed() {
        after_they_were_unshared("written", Moved::Not, |_| ());
    }
}

/// Whatever the kernel moves when: pages that the reader finds on their way, too. What it copies, its target
/// has in common with the child no longer.
#[test]
fn what_is_split_while_the_kernel_moves_pages_is_within_the_bounds() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() || !fs::exists(COMPACT).unwrap() {
        return;
    }
    for _ in 0..6 {
        let memory = Memory::of(STREWN, "");
        let (child, _) = memory.target.ready.split_once(' ').unwrap();
        until("both wait", || {
            state(child) == 'S' && state(&memory.target.pid().to_string()) == 'S'
        });
        let before = memory.common();
        let audit = memory.audit_by("");
        let output = thread::scope(|scope| {
            let output = scope.spawn(|| audit.wait_with_output().unwrap());
            while !output.is_finished() {
                fs::write(COMPACT, "1").unwrap();
            }
            output.join().unwrap()
        });
        let after = memory.common();
        let split = before.difference(&after).count() as i64;
        told(&output);
        let row = &whole_stream(&String::from_utf8_lossy(&output.stdout)).rows[0];
        let bounds = ["split_at_least_pages", "split_at_most_pages"];
        let [from, to] = bounds.map(|column| get(row, column));
        assert!((from..=to).contains(&split), "{from} to {to}: {split}");
    }
}

/// By compaction.
#[test]
fn what_was_unshared_in_place_and_moved_is_not_told_as_split() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() || !fs::exists(COMPACT).unwrap() {
        return;
    }
    for mode in ["written", "clean"] {
        after_they_were_unshared(mode, Moved::AsTheyWere, |_| {
            fs::write(COMPACT, "1").unwrap();
        });
    }
}

/// As khugepaged does.
#[test]
fn what_was_unshared_in_place_and_made_huge_is_not_told_as_split() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() || !collapses() {
        return;
    }
    after_they_were_unshared("collapse", Moved::AsTheyWere, |memory| {
        Other::new("collapse", memory, memory.start, LONE_PAGES).act();
    });
}

/// To zram, which leaves no copy behind when a page comes back; zeros are not even written there.
#[test]
fn what_was_unshared_in_place_and_went_to_swap_and_back_is_not_told_as_split() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() {
        return;
    }
    let Some(_zram) = Zram::new() else { return };
    for mode in ["written", "zeros"] {
        after_they_were_unshared(mode, Moved::Clean, |memory| {
            Other::new("swap", memory, memory.start, LONE_PAGES).act();
        });
    }
}

/// Waits until KSM has joined so many of a process's pages, and halts it then.
fn join(pid: u32, pages: u64) {
    fs::write(KSM, "1").unwrap();
    let joined = format!("/proc/{pid}/ksm_merging_pages");
    until("they are joined", || {
        let joined = fs::read_to_string(&joined).unwrap();
        joined.trim().parse::<u64>().unwrap() >= pages
    });
    fs::write(KSM, "0").unwrap();
}

/// Before the audit, or behind its first look, when half of the pages were the process's own still.
#[test]
fn what_ksm_has_joined_and_the_reader_takes_apart_is_split_whenever_it_was_joined() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() {
        return;
    }
    let Some(_ksm) = Ksm::new("0") else { return };
    for is_behind in [false, true] {
        tried(|| {
            let memory = Memory::new("mergeable");
            let pid = memory.target.pid();
            let part = memory.start + SPARSE * PAGE..memory.start + WINDOW * PAGE;
            if !is_behind {
                join(pid, SHARED + OWN);
            }
            let (migrations, before) = (migrated(), memory.frames());
            let audit = memory.audit("");
            let tool = audit.id().to_string();
            memory.until_it_is_read();
            signal(&tool, "STOP");
            until("the reader is held", || state(&tool) == 'T');
            let is_within = memory.is_not_done();
            if is_behind {
                join(pid, SHARED + OWN);
            }
            let joined = memory.frames();
            signal(&tool, "CONT");
            let output = audit.wait_with_output().unwrap();
            if !is_within {
                return false;
            }
            let (from, to, is_exact) = told(&output);
            let after = memory.frames();
            let (split, _) = moved(&joined, &after, &part);
            let all = split + moved(&before, &after, &part).1;
            assert_eq!(split, (SHARED + OWN) as i64);
            assert!(
                from <= all && to >= split,
                "{from} to {to}: {split} to {all}"
            );
            assert!(is_behind || is_exact || migrated() != migrations);
            is_behind || is_exact
        });
    }
}

/// Taken apart again, all of them have frames of their own.
#[test]
fn what_was_unshared_in_place_and_joined_for_a_while_is_not_told_as_split() {
    let Some(_alone) = alone() else { return };
    if !can_be_seen() {
        return;
    }
    let Some(_ksm) = Ksm::new("0") else { return };
    after_they_were_unshared("mergeable", Moved::Clean, |memory| {
        join(memory.target.pid(), LONE_PAGES);
        fs::write(KSM, "2").unwrap();
    });
}

/// Pages that the reader has copied, to which another process then writes: they look as if they had been moved.
#[test]
fn what_was_split_and_then_written_to_is_not_told_as_moved() {
    let Some(_steady) = undisturbed() else {
        return;
    };
    tried(|| {
        let memory = Memory::of(LONE, "shared");
        let other = Other::new("writev", &memory, memory.start, LONE_PAGES);
        let part = memory.start..memory.start + LONE_PAGES * PAGE;
        let before = memory.frames();
        let audit = memory.audit("");
        until("they are read", || memory.is_present(LONE_PAGES + 1));
        let (split, _) = moved(&before, &memory.frames(), &part);
        other.act();
        let is_within = !memory.is_present(WINDOW - 1);
        let output = audit.wait_with_output().unwrap();
        let (_, to, _) = told(&output);
        assert_eq!(split, LONE_PAGES as i64);
        assert!(to >= split || !is_within, "{to} of {split}");
        is_within
    });
}
