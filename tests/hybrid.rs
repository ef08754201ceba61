//! The reader that changes nothing, on processes that are not made for it. One test at a time
//! counts page faults, which the kernel keeps per process: they take turns.

mod common;

use cowitness::proc::maps::MapsLine;
use cowitness::reader::hybrid::decide::Why;
use cowitness::reader::{End, Hybrid, Pass, ProcMem, Ptrace, Reader, Target};
use cowitness::sys::halt::Halted;
use cowitness::sys::process::{Child, Side, exit, fork};
use cowitness::sys::remote::RemoteSpan;
use cowitness::sys::{Region, RemoteAddr};
use std::collections::BTreeMap;
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 4096;
/// Enough for a block of as much.
const BUFFER_BYTES: usize = 1 << 20;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads spans with a reader, piece by piece.
fn read(reader: &mut dyn Reader, spans: &[RemoteSpan]) -> (Pass, BTreeMap<u64, Vec<u8>>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut found = BTreeMap::new();
    let mut see = |at: RemoteAddr, bytes: &[u8]| drop(found.insert(at.0, bytes.to_vec()));
    let mut spans = spans.iter().copied();
    let pass = reader.pass(&mut spans, 64 << 10, &mut buffer, Some(&mut see));
    (pass, found)
}

/// Page by page, whatever the pieces were.
fn pages(pieces: &BTreeMap<u64, Vec<u8>>) -> BTreeMap<u64, Vec<u8>> {
    let each = pieces.iter().flat_map(|(start, bytes)| {
        let pages = bytes.chunks(PAGE).enumerate();
        pages.map(move |(number, page)| (start + (number * PAGE) as u64, page.to_vec()))
    });
    each.collect()
}

fn is_4k() -> bool {
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    smaps
        .lines()
        .any(|line| line.split_whitespace().eq(["KernelPageSize:", "4", "kB"]))
}

/// A process of a program that waits; killed and reaped however the test ends.
struct Waiting(std::process::Child);

impl Waiting {
    fn new() -> Self {
        let sleep = Command::new("sleep")
            .arg("600")
            .stdin(Stdio::null())
            .spawn();
        let waiting = Self(sleep.expect("sleep runs"));
        let wchan = || fs::read_to_string(format!("/proc/{}/syscall", waiting.0.id()));
        // In its sleep, not on the way there: its start-up still touches memory.
        while !wchan().is_ok_and(|text| {
            text.starts_with("230 ")
                || text.starts_with("35 ")
                || text.starts_with("115 ")
                || text.starts_with("101 ")
        }) {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        waiting
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    /// What a reader could change: memory in use, mappings, faults.
    fn state(&self) -> (Vec<String>, Vec<String>) {
        let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", self.pid())).unwrap();
        let kept = |line: &&str| {
            !["Referenced:", "Shared_", "Private_", "Pss"]
                .iter()
                .any(|name| line.starts_with(name))
        };
        let smaps = read("smaps").lines().filter(kept).map(Into::into).collect();
        let stat = read("stat");
        let words = stat.rsplit(')').next().unwrap().split_whitespace();
        (smaps, words.skip(7).take(4).map(Into::into).collect())
    }

    /// Readable memory of its own, and of files; the kernel's pages are everybody's.
    fn spans(&self) -> Vec<RemoteSpan> {
        let maps = fs::read(format!("/proc/{}/maps", self.pid())).unwrap();
        let lines = maps
            .split(|&byte| byte == b'\n')
            .filter_map(MapsLine::parse);
        let own = lines.filter(|vma| vma.perms.readable && !vma.name.starts_with(b"[v"));
        own.map(|vma| RemoteSpan {
            start: RemoteAddr(vma.start),
            len: vma.end - vma.start,
        })
        .collect()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Files that it has mapped and not faulted in are read from the files; memory that it has
/// never touched is zeros; nothing of it changes. `proc`, which faults all of it in, then says
/// the same bytes.
#[test]
fn a_live_process_is_read_whole_and_stays_as_it_was() {
    let _turn = turn();
    if !common::is_root() || !is_4k() {
        eprintln!("skipped: map_files needs root, this test pages of 4 KiB");
        return;
    }
    let waiting = Waiting::new();
    let target = Target::process(waiting.pid(), PAGE);
    let before = waiting.state();
    let mut reader = Hybrid::open(&target).unwrap();
    let (pass, hybrid) = read(&mut reader, &waiting.spans());
    let care = *reader.care().unwrap();
    assert_eq!(pass.end, End::Complete, "{care:?}");
    assert_eq!(waiting.state(), before, "{care:?}");
    assert!(
        care.filed > 0 && care.zeros > 0 && care.pinned + care.copied > 0,
        "{care:?}"
    );

    let mut reader = ProcMem::open(target.pid).unwrap();
    let hybrid = pages(&hybrid);
    let mut compared = 0;
    for (&start, page) in &hybrid {
        let span = RemoteSpan {
            start: RemoteAddr(start),
            len: page.len() as u64,
        };
        let (_, proc) = read(&mut reader, &[span]);
        assert_eq!(proc.get(&start), Some(page), "{start:x}");
        compared += 1;
    }
    let left = care.unread() - care.left[Why::NotInMemory as usize];
    assert_eq!(left, 0, "{care:?}");
    let all: u64 = waiting.spans().iter().map(|span| span.len).sum();
    assert_eq!(compared + care.unread(), all / PAGE as u64, "{care:?}");
    assert_ne!(
        waiting.state(),
        before,
        "proc must have faulted something in"
    );
}

#[test]
fn memory_of_every_state_is_got_without_touching_it() {
    let _turn = turn();
    let mut region = Region::new(6 * PAGE).unwrap();
    region.small_pages();
    region.bytes_mut()[..2 * PAGE].fill(7);
    // Read, never written: the zero page.
    assert_eq!(region.bytes_mut()[3 * PAGE], 0);
    let start = region.address() as u64;
    let entries = || {
        use std::os::unix::fs::FileExt;
        let mut entries = [0; 6 * 8];
        let pagemap = fs::File::open("/proc/self/pagemap").unwrap();
        pagemap
            .read_exact_at(&mut entries, start / PAGE as u64 * 8)
            .unwrap();
        entries
    };
    let before = entries();
    let target = Target::process(std::process::id().cast_signed(), PAGE);
    let mut reader = Hybrid::open(&target).unwrap();
    let whole = RemoteSpan {
        start: RemoteAddr(start),
        len: 6 * PAGE as u64,
    };
    let (pass, found) = read(&mut reader, &[whole]);
    assert_eq!((pass.bytes, pass.end), (6 * PAGE as u64, End::Complete));
    let want = [vec![7; 2 * PAGE], vec![0; 4 * PAGE]].concat();
    assert_eq!(found.get(&start), Some(&want));
    assert_eq!(reader.care().unwrap().zeros, 3);
    assert_eq!(entries(), before);
}

/// A child that has made its memory its own, and forks when it is told to.
struct Obedient {
    _child: Child,
    orders: PipeWriter,
    answers: PipeReader,
}

impl Obedient {
    fn new(region: &mut Region) -> (Self, i32) {
        let (mut received, orders) = std::io::pipe().unwrap();
        let (answers, mut given) = std::io::pipe().unwrap();
        match fork().unwrap() {
            Side::Parent(child) => {
                let pid = child.pid();
                let mut obedient = Self {
                    _child: child,
                    orders,
                    answers,
                };
                obedient.wait();
                (obedient, pid)
            }
            Side::Child => {
                drop((orders, answers));
                rewrite(region);
                let mut byte = [0];
                given.write_all(b"r").unwrap();
                received.read_exact(&mut byte).unwrap();
                let _grandchild = match fork().unwrap() {
                    Side::Parent(child) => child,
                    Side::Child => loop {
                        std::thread::park();
                    },
                };
                given.write_all(b"f").unwrap();
                let _ = received.read_exact(&mut byte);
                exit(0)
            }
        }
    }

    fn wait(&mut self) {
        self.answers.read_exact(&mut [0]).unwrap();
    }
}

fn rewrite(region: &mut Region) {
    for page in region.bytes_mut().chunks_mut(PAGE) {
        page[0] = 9;
    }
}

const FORKED_PAGES: usize = 32;

/// Faults and pinned pages of four passes over a child's memory; the look at the first span of the
/// third covers the second, and the child forks in between.
fn forked_meanwhile(region: &mut Region) -> [(u64, u64); 4] {
    let page = |first: usize, count: usize| RemoteSpan {
        start: RemoteAddr((region.address() + first * PAGE) as u64),
        len: (count * PAGE) as u64,
    };
    let spans = [page(0, 1), page(1, FORKED_PAGES - 1)];
    let (mut obedient, pid) = Obedient::new(region);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut reader = Hybrid::open(&Target::process(pid, PAGE)).unwrap();
    [0, 1, 2, 3].map(|pass| {
        let mut number = 3 * pass;
        let mut spans = spans.into_iter().inspect(|_| {
            number += 1;
            if number == 8 {
                obedient.orders.write_all(b"f").unwrap();
                obedient.wait();
            }
        });
        let before = *reader.care().unwrap();
        let pass = reader.pass(&mut spans, 1 << 20, &mut buffer, None);
        let bytes = FORKED_PAGES * PAGE;
        assert_eq!((pass.bytes, pass.end), (bytes as u64, End::Complete));
        assert!(buffer[..bytes].iter().all(|&byte| byte == 9));
        let care = reader.care().unwrap();
        let faults = care.pin_faults.unwrap() - before.pin_faults.unwrap();
        (faults, care.pinned - before.pinned)
    })
}

/// Pages that were exclusive when they were looked at and shared when they were read: each is
/// told, and no other call pins any.
#[test]
fn a_fork_between_look_and_read_is_told_page_by_page() {
    let _turn = turn();
    let mut region = Region::new(FORKED_PAGES * PAGE).unwrap();
    region.small_pages();
    region.bytes_mut().fill(9);
    let [.., quiet, raced, after] = forked_meanwhile(&mut region);
    if quiet.1 == 0 {
        eprintln!("skipped: where KSM, swap or large folios are in use nothing is pinned");
        return;
    }
    let pages = FORKED_PAGES as u64;
    assert_eq!(quiet, (0, pages));
    match common::vmread_splits() {
        true => assert_eq!((raced, after), ((pages, pages), (0, 0))),
        false => assert_eq!((raced, after), (quiet, quiet)),
    }
}

/// Whether all the memory of a forking child is its own: no child of its own shares it, and it has
/// written each page since.
static OWN: AtomicU8 = AtomicU8::new(0);

/// A child that rewrites its memory and forks, for ever. For a while before each fork its [`OWN`]
/// is 1.
fn forking(region: &mut Region) -> Child {
    match fork().unwrap() {
        Side::Parent(child) => child,
        Side::Child => loop {
            rewrite(region);
            OWN.store(1, Ordering::SeqCst);
            for _ in 0..100_000 {
                std::hint::spin_loop();
            }
            OWN.store(0, Ordering::SeqCst);
            match fork() {
                Ok(Side::Child) => exit(0),
                // Killed and reaped.
                Ok(Side::Parent(child)) => drop(child),
                Err(_) => exit(1),
            }
        },
    }
}

/// Stops a forking child while all its memory is its own.
fn halted_with_its_own(child: &Child) -> Halted {
    let memory = fs::File::open(format!("/proc/{}/mem", child.pid())).unwrap();
    for _ in 0..10_000 {
        let halted = Halted::stop(child.pid()).unwrap();
        let mut own = [0];
        let at = OWN.as_ptr() as u64;
        memory.read_exact_at(&mut own, at).unwrap();
        if own == [1] {
            return halted;
        }
        drop(halted);
        std::thread::sleep(std::time::Duration::from_micros(300));
    }
    panic!("never stopped with all its memory its own");
}

/// Pages that a reader which trusts pagemap still has pinned in one pass, and faults of it.
fn fresh_pass(child: &Child, span: RemoteSpan, buffer: &mut [u8]) -> (u64, u64) {
    let mut reader = Hybrid::open(&Target::process(child.pid(), PAGE)).unwrap();
    let pass = reader.pass(&mut [span].into_iter(), 1 << 20, buffer, None);
    assert_eq!((pass.bytes, pass.end), (span.len, End::Complete));
    assert!(buffer.iter().all(|&byte| byte == 9));
    let care = reader.care().unwrap();
    (care.pinned, care.pin_faults.unwrap())
}

/// A process that forks between the look at its pages and their pin makes that pin copy; one that
/// stands still does not. A reader that was charged a fault pins no more: each pass has a new one.
#[test]
fn nothing_races_with_a_process_that_is_halted() {
    const PAGES: usize = 1024;
    let _turn = turn();
    let mut region = Region::new(PAGES * PAGE).unwrap();
    region.small_pages();
    region.bytes_mut().fill(9);
    let span = RemoteSpan {
        start: RemoteAddr(region.address() as u64),
        len: (PAGES * PAGE) as u64,
    };
    let child = forking(&mut region);
    let mut buffer = vec![0; BUFFER_BYTES];
    let halted = halted_with_its_own(&child);
    let passes = [(); 20].map(|()| fresh_pass(&child, span, &mut buffer));
    if passes[0].0 == 0 {
        eprintln!("skipped: where KSM, swap or large folios are in use nothing is pinned");
        return;
    }
    // Where huge pages are in use, a page that lies where it would in one is copied: one in 512, by chance.
    let pinned = PAGES as u64 - 16..=PAGES as u64;
    let quiet = |&(pages, faults): &(u64, u64)| pinned.contains(&pages) && faults == 0;
    assert!(passes.iter().all(quiet), "{passes:?}");
    drop(halted);
    if !common::vmread_splits() {
        eprintln!("pins copy nothing on this kernel: nothing races with a running process either");
        return;
    }
    let raced = (0..1000).any(|_| fresh_pass(&child, span, &mut buffer).1 > 0);
    assert!(raced, "a running process never raced with a pin");
}

/// ptrace takes any process, stops it, and lets it go.
#[test]
fn ptrace_reads_a_process_that_is_no_child_of_the_readers() {
    let _turn = turn();
    let waiting = Waiting::new();
    let target = Target::process(waiting.pid(), PAGE);
    let stack = *waiting.spans().last().unwrap();
    let top = RemoteSpan {
        start: stack.start.plus(stack.len - PAGE as u64),
        len: PAGE as u64,
    };
    let tracer = || common::field(&format!("/proc/{}/status", waiting.pid()), "TracerPid:").next();
    let ptrace = match Ptrace::attach(&target) {
        Ok(mut reader) => {
            assert_eq!(state(waiting.pid()), 't');
            read(&mut reader, &[top]).1
        }
        Err(errno) => {
            eprintln!("skipped: {errno:?}, Yama may forbid it");
            return;
        }
    };
    assert_eq!(tracer().as_deref(), Some("0"));
    wait_for("going on", &|| state(waiting.pid()) == 'S');
    let mut reader = ProcMem::open(target.pid).unwrap();
    let proc = read(&mut reader, &[top]).1;
    assert!(ptrace == proc && proc[&top.start.0].iter().any(|&byte| byte != 0));
}

fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

fn wait_for(what: &str, holds: &dyn Fn() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{what}: never");
}

#[test]
fn a_halted_process_goes_on_when_its_holder_is_killed_or_lets_go() {
    let _turn = turn();
    let waiting = Waiting::new();
    let pid = waiting.pid();
    let halted = Halted::stop(pid).unwrap();
    assert_eq!(state(pid), 'T');
    // Who finds it stopped leaves it so.
    drop(Halted::stop(pid).unwrap());
    assert_eq!(state(pid), 'T');
    drop(halted);
    wait_for("going on", &|| state(pid) == 'S');

    let holder = match fork().unwrap() {
        Side::Parent(child) => child,
        Side::Child => {
            let _halted = Halted::stop(pid);
            loop {
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
        }
    };
    wait_for("stopped by the holder", &|| state(pid) == 'T');
    // SIGKILL, and no destructor runs in it.
    drop(holder);
    wait_for("going on after SIGKILL", &|| state(pid) == 'S');
}
