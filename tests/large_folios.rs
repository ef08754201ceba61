//! Huge pages that fork shares and that one side has rewritten in part, or moved: bit 56 of pagemap errs
//! on them in both ways. And what they take from others on the same machine. Whether a page was split is
//! told by this test's own look at the frames, not by what the tool says.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{
    Row, command, command_as_nobody, field, is_root, number, run, stdout, vmread_splits,
    whole_stream,
};
use cowitness::reader::hybrid::large::{self, Large};
use cowitness::reader::hybrid::{Obstacle, nothing_is_half_swapped};
use cowitness::reader::{Care, Method, Target};
use cowitness::sys::RemoteAddr;
use cowitness::sys::remote::RemoteSpan;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const PAGE: u64 = 4096;
const EXCLUSIVE: u64 = 1 << 56;
const FRAME: u64 = (1 << 55) - 1;

/// Two processes that share 16 MiB in huge pages; what the mode says is done by one of them.
/// Prints the id of the one to read and where the memory lies.
const SHARED: &str = r#"
import ctypes, mmap, os, signal, sys
mode, size, huge, page = sys.argv[1], 16 << 20, 2 << 20, 4096
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, size + huge, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
first = -address % huge
memory.madvise(14)  # MADV_HUGEPAGE
memory[first:first + size] = b"\x07" * size
rollup = open("/proc/self/smaps_rollup").read().split("AnonHugePages:")[-1].split()[0]
def rewrite():
    for at in range(first, first + size, 2 * page):
        memory[at] = 9
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if mode == "child-rewrites":
        rewrite()
    if "child-breaks" in mode:
        for at in range(first, first + size, huge):
            memory[at + huge - page] = 9
    if mode == "child-breaks, advises":
        memory.madvise(15)  # MADV_NOHUGEPAGE
    if mode == "child-breaks, is told":
        libc.prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE
    os.write(tell, b"x")
    while True:
        signal.pause()
os.read(ready, 1)
if mode == "parent-rewrites":
    rewrite()
if mode == "parent-drops" or "child-breaks" in mode:
    for at in range(first, first + size, huge):
        memory.madvise(4, at + huge // 2, huge // 2)  # MADV_DONTNEED
print(os.getpid() if mode == "child-rewrites" else child, address + first, size, rollup, flush=True)
sys.stdin.read()
"#;

/// Killed with the value, and its child with it.
struct Shared {
    process: Child,
    pid: u32,
    start: u64,
    bytes: u64,
    /// Of huge pages, at first.
    huge_kib: u64,
}

impl Shared {
    fn new(mode: &str) -> Self {
        let mut process = Command::new("/usr/bin/python3")
            .args(["-c", SHARED, mode])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().map(|word| word.parse().unwrap());
        let mut word = || words.next().expect("the target is ready");
        Self {
            pid: word() as u32,
            start: word(),
            bytes: word(),
            huge_kib: word(),
            process,
        }
    }

    fn frames(&self) -> Vec<u64> {
        frames(&entries(self.pid, self.start, self.bytes))
    }
}

/// What pagemap says of some memory.
fn entries(pid: u32, start: u64, bytes: u64) -> Vec<u64> {
    let pagemap = File::open(format!("/proc/{pid}/pagemap")).unwrap();
    let mut entries = vec![0; (bytes / PAGE * 8) as usize];
    pagemap
        .read_exact_at(&mut entries, start / PAGE * 8)
        .unwrap();
    let words = entries.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_ne_bytes(*word)).collect()
}

fn frames(entries: &[u64]) -> Vec<u64> {
    entries.iter().map(|entry| entry & FRAME).collect()
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn moved(before: &[u64], after: &[u64]) -> i64 {
    let pairs = before.iter().zip(after);
    pairs.filter(|(before, after)| before != after).count() as i64
}

/// In the last two smaps says that no huge page is there and none will be: what one was broken
/// into, by writing, is in a large folio all the same, and fork shares that.
const MODES: [&str; 5] = [
    "parent-rewrites",
    "child-rewrites",
    "parent-drops",
    "child-breaks, advises",
    "child-breaks, is told",
];

/// A target in that mode, or why there is none here.
fn target(mode: &str) -> Option<Shared> {
    let shared = Shared::new(mode);
    if !is_root() || shared.frames().contains(&0) {
        eprintln!("skipped: frames are hidden");
        return None;
    }
    if shared.huge_kib == 0 {
        eprintln!("skipped: no huge pages here");
        return None;
    }
    Some(shared)
}

/// The lock that `probe --setup` takes, too: what huge pages there are is one state of the machine.
fn alone() -> File {
    common::lock_of_the_machine(File::try_lock)
}

#[test]
fn hybrid_moves_no_page_of_a_shared_huge_page() {
    let _alone = alone();
    for mode in MODES {
        let Some(shared) = target(mode) else { return };
        let before = shared.frames();
        let stream = whole_stream(&stdout(&run(&format!("audit -q --stop {}", shared.pid))));
        let row = &stream.rows[0];
        assert_eq!(moved(&before, &shared.frames()), 0, "{mode}: {row:?}");
        assert_eq!(number(row, "split_pages"), Some(0), "{mode}");
        assert_eq!(
            number(row, "bytes_per_pass").map(|got| got > 16 << 20),
            Some(true)
        );
    }
}

/// The memory's own row of `survey`, or that of the greater part of it.
fn survey(pid: u32, start: u64) -> Row {
    row_of(&run(&format!("survey -q {pid}")), start)
}

fn row_of(survey: &Output, start: u64) -> Row {
    let rows = whole_stream(&stdout(survey)).rows;
    let at = |row: &Row, column: &str| u64::from_str_radix(&row[column], 16).unwrap_or(0);
    let holds = |row: &&Row| (at(row, "start")..at(row, "end")).contains(&start);
    rows.iter().find(holds).expect("it is mapped").clone()
}

/// Elsewhere on the machine large folios change nothing: root is told of each page.
#[test]
fn survey_knows_what_is_split_unless_a_large_folio_is_there() {
    let _alone = alone();
    let Some(shared) = target("child-breaks, advises") else {
        return;
    };
    let row = survey(shared.pid, shared.start);
    assert_eq!(number(&row, "vmread_split_pages"), None, "{row:?}");
    assert_eq!(number(&row, "hybrid_split_pages"), Some(0), "{row:?}");
    let small = helpers::Target::new(helpers::PREFORKED);
    let worker = small.ready.split(' ').next().unwrap();
    let total = helpers::survey_total(worker);
    let predicted = number(&total, "vmread_split_pages");
    let want = match vmread_splits() {
        true => number(&total, "shared_anon_pages"),
        false => Some(0),
    };
    // Of what is readable.
    assert!(predicted.is_some() && predicted <= want, "{total:?}");
    assert!(!vmread_splits() || predicted >= Some(3 << 10), "{total:?}");
}

/// A child of which 2 MiB each are: moved out of a huge page, to where pages and frames are out of
/// step, and the first half rewritten; a huge page still; small pages, half of them rewritten. Its
/// parent has all that the child has not rewritten, the first huge page as a whole, and has rewritten the
/// first page of the other, for which bit 56 calls all of that the child's own. Prints the child and where
/// they lie.
const MIXED: &str = r#"
import ctypes, mmap, os, signal, sys
size, page = 2 << 20, 4096
libc = ctypes.CDLL(None)
libc.mremap.restype = ctypes.c_void_p
def memory(advice):
    mapped = mmap.mmap(-1, 4 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapped.madvise(advice)
    at = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    return mapped, at, -at % size
def write(at, pages):
    for index in range(pages):
        ctypes.c_char.from_address(at + index * page).value = 9
huge, huge_at, first = memory(14)  # MADV_HUGEPAGE
huge[first:first + 2 * size] = b"\x07" * (2 * size)
small, small_at, _ = memory(15)  # MADV_NOHUGEPAGE
small[:size] = b"\x07" * size
room, room_at, free = memory(15)
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    old, to = ctypes.c_void_p(huge_at + first), ctypes.c_void_p(room_at + free + size + 3 * page)
    moved = libc.mremap(old, ctypes.c_size_t(size), ctypes.c_size_t(size), 3, to)
    write(moved, 256)
    write(small_at, 256)
    os.write(tell, b"%d %d %d %d\n" % (os.getpid(), moved, huge_at + first + size, small_at))
    while True:
        signal.pause()
said = os.read(ready, 99).decode()
write(huge_at + first + size, 1)
print(said, end="", flush=True)
sys.stdin.read()
"#;

/// Bytes of each.
const MIXED_BYTES: u64 = 2 << 20;

struct Mixed {
    _target: helpers::Target,
    pid: u32,
    moved: u64,
    huge: u64,
    small: u64,
}

impl Mixed {
    /// A process of `nobody`.
    fn new() -> Self {
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", MIXED]).uid(65534).gid(65534);
        let target = helpers::Target::of(python.current_dir("/"));
        let words: Vec<u64> = target.ready.split(' ').flat_map(str::parse).collect();
        let [pid, moved, huge, small] = *words else {
            panic!("{}", target.ready)
        };
        Self {
            _target: target,
            pid: pid as u32,
            moved,
            huge,
            small,
        }
    }

    /// What reading one of them did: the pages that lie elsewhere now, and how they went.
    fn read(&self, method: Method, start: u64) -> (i64, Option<Care>) {
        let before = frames(&entries(self.pid, start, MIXED_BYTES));
        let memory = RemoteSpan {
            start: RemoteAddr(start),
            len: MIXED_BYTES,
        };
        let (mut buffer, mut care) = (vec![0; 1 << 20], None);
        let pid = self.pid.cast_signed();
        let lent = method.lend(&Target::process(pid, PAGE as usize), &mut |reader| {
            let spans = &mut [memory].into_iter();
            let pass = reader.pass(spans, 1 << 20, &mut buffer, None);
            assert_eq!(pass.bytes, memory.len);
            care = reader.care().copied();
        });
        lent.unwrap();
        let after = frames(&entries(self.pid, start, MIXED_BYTES));
        (moved(&before, &after), care)
    }

    /// Pages of its own that lie elsewhere in a huge page than their frames do.
    fn own_out_of_step(&self, start: u64) -> u64 {
        let pages = (start / PAGE..).zip(entries(self.pid, start, MIXED_BYTES));
        let own = pages.filter(|(_, entry)| entry & EXCLUSIVE != 0);
        own.filter(|(page, entry)| (page ^ entry) & 511 != 0)
            .count() as u64
    }

    /// `vmread_split_pages` of the three, as nobody sees them.
    fn survey_by_nobody(&self) -> [Option<i64>; 3] {
        let (mut survey, _folder) = command_as_nobody(&format!("survey -q {}", self.pid)).unwrap();
        let output = survey.output().unwrap();
        [self.moved, self.huge, self.small]
            .map(|start| number(&row_of(&output, start), "vmread_split_pages"))
    }
}

/// Whether the machine's large folios are huge pages, of which as many are mapped as a whole as there
/// are (Linux 6.12); and there are some. And no swap is in use, for which nothing would be pinned.
fn all_are_whole() -> bool {
    let folders = std::fs::read_dir("/sys/kernel/mm/transparent_hugepage").unwrap();
    let counts = folders.flatten().filter_map(|folder| {
        let count = std::fs::read_to_string(folder.path().join("stats/nr_anon")).ok()?;
        Some((folder.file_name(), count.trim().to_owned()))
    });
    let mut some = counts.filter(|(_, count)| count != "0");
    let mapped = field("/proc/vmstat", "nr_anon_transparent_hugepages ").next();
    let huge = some.next().zip(mapped);
    some.next().is_none()
        && nothing_is_half_swapped()
        && huge.is_some_and(|((size, count), mapped)| size == "hugepages-2048kB" && count == mapped)
}

/// Runs the test while all huge pages of the machine are whole, with one of its own at least; other
/// processes have theirs, so it is tried again where they are not.
fn while_all_are_whole(test: &mut dyn FnMut()) {
    let _alone = alone();
    let Some(_whole) = target("whole") else {
        return;
    };
    for _ in 0..100 {
        // What it did must have been by that state.
        if all_are_whole() {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                assert_eq!(large::now(), Large::Whole(2 << 20));
                test();
            }));
            match (done, all_are_whole()) {
                (Ok(()), _) => return,
                (Err(failed), true) => std::panic::resume_unwind(failed),
                (Err(_), false) => {}
            }
        }
        sleep(Duration::from_millis(100));
    }
    eprintln!("skipped: others have parts of huge pages here, or use swap");
}

/// By pages that the reader splits on this kernel.
fn split(pages: i64) -> Option<i64> {
    Some(if vmread_splits() { pages } else { 0 })
}

#[test]
fn huge_pages_that_are_whole_leave_all_other_pages_known() {
    while_all_are_whole(&mut || {
        let mixed = Mixed::new();
        let known = [split(256), None, split(256)];
        let by_root = [mixed.moved, mixed.huge, mixed.small]
            .map(|start| number(&survey(mixed.pid, start), "vmread_split_pages"));
        assert_eq!(by_root, known);
        assert_eq!(mixed.survey_by_nobody(), known);
        // And it is so.
        for start in [mixed.moved, mixed.small] {
            let (split_pages, _) = mixed.read(Method::Vmread, start);
            assert_eq!(Some(split_pages), split(256), "{start:x}");
        }
    });
}

#[test]
fn hybrid_pins_what_is_in_no_huge_page_where_all_are_whole() {
    while_all_are_whole(&mut || {
        let mixed = Mixed::new();
        for (start, shared) in [(mixed.moved, 256), (mixed.small, 256), (mixed.huge, 512)] {
            let pinned = mixed.own_out_of_step(start);
            let (elsewhere, care) = mixed.read(Method::Hybrid, start);
            let care = care.unwrap();
            assert_eq!((elsewhere, care.pin_faults), (0, Some(0)), "{care:?}");
            assert_eq!((care.not_pinned, care.wholes_copied), (None, true));
            assert_eq!(care.pinned + care.copied, 512, "{care:?}");
            if start == mixed.huge {
                let words = entries(mixed.pid, start, MIXED_BYTES);
                assert!(words.iter().all(|word| word & EXCLUSIVE != 0));
            }
            assert!(care.copied >= shared, "{care:?}");
            // Few pages between others are not worth a call.
            assert!(care.pinned >= pinned / 2, "{pinned} {care:?}");
        }
    });
}

/// Who sees no frames pins, too, where the process has no huge page.
#[test]
fn hybrid_by_nobody_pins_where_the_process_has_no_huge_page() {
    while_all_are_whole(&mut || {
        let words = |pid: u32| {
            let command = format!("audit --stop --method hybrid {pid}");
            let (mut audit, _folder) = command_as_nobody(&command).unwrap();
            String::from_utf8(audit.output().unwrap().stderr).unwrap()
        };
        let mut python = Command::new("/usr/bin/python3");
        python.args(["-c", "print(1, flush=True); input()"]);
        python.uid(65534).gid(65534).current_dir("/");
        let plain = helpers::Target::of(&mut python);
        if helpers::kib(&plain.pid().to_string(), "AnonHugePages:") == 0 {
            let words = words(plain.pid());
            assert!(
                words.contains("pinned what is the process's own;"),
                "{words}"
            );
        }
        let words = words(Mixed::new().pid);
        assert!(
            words.contains("copied, not pinned: large-folios"),
            "{words}"
        );
    });
}

/// One that is mapped in parts, anywhere on the machine, is enough.
#[test]
fn one_broken_huge_page_makes_all_of_the_machine_doubtful() {
    let _alone = alone();
    let Some(_broken) = target("child-breaks, advises") else {
        return;
    };
    assert_eq!(large::now(), Large::Any);
    let mixed = Mixed::new();
    assert_eq!(mixed.survey_by_nobody(), [None; 3]);
    let (elsewhere, care) = mixed.read(Method::Hybrid, mixed.small);
    let care = care.unwrap();
    assert_eq!((elsewhere, care.pinned, care.copied), (0, 0, 512));
    assert_eq!(care.not_pinned, Some(Obstacle::LargeFolios));
    // Root is told of each page all the same; what was moved is in a large folio.
    let by_root = [mixed.moved, mixed.huge, mixed.small]
        .map(|start| number(&survey(mixed.pid, start), "vmread_split_pages"));
    assert_eq!(by_root, [None, None, split(256)]);
}

/// For a huge page pagemap has one answer, and smaps one for each page: what survey counts is bit 56,
/// whether it reads smaps or not, and whether a mapping is in memory whole or not.
#[test]
fn survey_counts_by_pagemap_what_is_mapped_as_a_huge_page() {
    const GIVEN_UP: &str = r#"
import ctypes, mmap, os, signal, sys
size, page, at = 2 << 20, 4096, 1 << 41
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
# MAP_FIXED_NOREPLACE with MAP_PRIVATE and MAP_ANONYMOUS
mapped = libc.mmap(ctypes.c_void_p(at), ctypes.c_size_t(2 * size), 3, 0x100022, -1, ctypes.c_long(0))
assert mapped == at
libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(2 * size), 14)  # MADV_HUGEPAGE
ctypes.memset(at, 7, 2 * size)
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for start, pages in (at, 256), (at + size, 1):
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(pages * page), 4)  # MADV_DONTNEED
    os.write(tell, b"x")
    while True:
        signal.pause()
os.read(ready, 1)
print(os.getpid(), at, 2 * size, flush=True)
sys.stdin.read()
"#;
    if !is_root() {
        eprintln!("skipped: only root reads smaps as nobody, and without");
        return;
    }
    let _alone = alone();
    let mut python = Command::new("/usr/bin/python3");
    python.args(["-c", GIVEN_UP]).uid(65534).gid(65534);
    let target = helpers::Target::of(python.current_dir("/"));
    let words: Vec<u64> = target.ready.split(' ').flat_map(str::parse).collect();
    let [pid, start, bytes] = *words else {
        panic!("it said {:?}", target.ready);
    };
    let kib = |field| helpers::mapping_kib(pid as u32, start, field);
    if kib("AnonHugePages:") == 0 {
        eprintln!("skipped: no huge pages here");
        return;
    }
    let entries = entries(pid as u32, start, bytes);
    let own = entries.iter().filter(|&entry| entry & EXCLUSIVE != 0);
    let want = own.count() as i64;
    if want.cast_unsigned() == kib("Private_Dirty:") / 4 {
        eprintln!("skipped: smaps counts as pagemap does here");
        return;
    }
    let (mut by_nobody, _folder) = command_as_nobody(&format!("survey -q {pid}")).unwrap();
    for survey in [
        by_nobody.output().unwrap(),
        run(&format!("survey -q {pid}")),
    ] {
        let row = row_of(&survey, start);
        let shared = number(&row, "shared_anon_pages");
        assert_eq!(number(&row, "exclusive_pages"), Some(want), "{row:?}");
        assert_eq!(shared, Some(entries.len() as i64 - want), "{row:?}");
    }
}

/// Rows of more than a pipe holds: whoever reads them only later holds survey back.
const MANY_ROWS: &str = r#"
import ctypes, mmap, os, signal, sys
page = os.sysconf("SC_PAGE_SIZE")
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 4000 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(15)  # MADV_NOHUGEPAGE
for index in range(4000):
    memory[index * page] = 7
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
for index in range(0, 4000, 2):
    libc.mprotect(ctypes.c_void_p(at + index * page), ctypes.c_size_t(page), 1)
if os.fork() == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True:
        signal.pause()
print(os.getpid(), flush=True)
sys.stdin.read()
"#;

/// A number that the machine's large folios have made doubtful before the survey ended is none.
#[test]
fn survey_asks_again_at_its_end_what_makes_bit_56_err() {
    let _alone = alone();
    let many = helpers::Target::new(MANY_ROWS);
    let total = |meanwhile: &mut dyn FnMut()| {
        let mut survey = command(&format!("survey -q {}", many.ready));
        let mut survey = survey.stdout(Stdio::piped()).spawn().unwrap();
        let mut rows = survey.stdout.take().unwrap();
        // It asks before it writes anything, and cannot end before its rows are read.
        let mut first = [0];
        rows.read_exact(&mut first).unwrap();
        meanwhile();
        let mut rest = String::new();
        rows.read_to_string(&mut rest).unwrap();
        let total = whole_stream(&format!("{}{rest}", char::from(first[0])))
            .rows
            .last()
            .unwrap()
            .clone();
        (survey.wait().unwrap().code(), total)
    };
    for _ in 0..20 {
        let before = large::now();
        let mut broken = None;
        let (status, row) = total(&mut || ());
        let (status_then, row_then) = total(&mut || broken = target("child-breaks, advises"));
        if broken.is_none() {
            return;
        }
        if before == Large::Any || large::now() != Large::Any {
            // Others have parts of huge pages here.
            sleep(Duration::from_millis(100));
            continue;
        }
        let split = |row: &Row| number(row, "vmread_split_pages");
        let status_of = |row: &Row| row["status"].clone();
        assert_eq!((status, status_of(&row)), (Some(0), "ok".into()));
        assert!(split(&row) >= Some(if vmread_splits() { 4000 } else { 0 }));
        if vmread_splits() {
            let want = (Some(3), "skipped:bit-56-may-err".to_owned());
            assert_eq!((status_then, status_of(&row_then)), want);
            assert_eq!(split(&row_then), None);
            assert_eq!(number(&row_then, "hybrid_split_pages"), Some(0));
        } else {
            assert_eq!((status_then, split(&row_then)), (Some(0), Some(0)));
        }
        return;
    }
    eprintln!("skipped: others have parts of huge pages here");
}
