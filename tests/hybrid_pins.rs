//! Pages that pagemap calls a process's own and that a pin would copy or unshare all the same.
//! One test at a time: they change settings of the machine, or count on its other lists.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{alone, field, is_root, run, stdout, vmread_splits, whole_stream};
use cowitness::reader::{Care, Method, Target};
use cowitness::sys::process::{Child, Side, fork, sleep_forever};
use cowitness::sys::remote::RemoteSpan;
use cowitness::sys::{Region, RemoteAddr, cpu};
use helpers::get;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 4096;
const PAGES: usize = 16;
const FRAME: u64 = (1 << 55) - 1;

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process whose memory a child of its own once shared, and nobody does any more.
struct Alone {
    process: Child,
    memory: RemoteSpan,
}

impl Alone {
    fn new() -> Self {
        Self::touched_on(None)
    }

    /// Its pages are new to a processor, on the list of which they stay until there are more of them or
    /// somebody gives back memory there (mm/swap.c, `lru_add`): the child ends on processor 0.
    fn touched_on(processor: Option<usize>) -> Self {
        let mut region = Region::new(PAGES * PAGE).unwrap();
        region.small_pages();
        let memory = RemoteSpan {
            start: RemoteAddr(region.address() as u64),
            len: (PAGES * PAGE) as u64,
        };
        let (mut ready, mut tell) = std::io::pipe().unwrap();
        let process = match fork().unwrap() {
            Side::Parent(child) => child,
            Side::Child => {
                let pin = |number| {
                    if processor.is_some() {
                        cpu::pin(number).unwrap();
                    }
                };
                pin(processor.unwrap_or(0));
                region.bytes_mut().fill(9);
                let (mut there, mut tell_there) = std::io::pipe().unwrap();
                match fork() {
                    Ok(Side::Parent(child)) => {
                        let _ = there.read_exact(&mut [0]);
                        // Killed and reaped.
                        drop(child);
                    }
                    _ => {
                        pin(0);
                        let _ = tell_there.write_all(b"t");
                        sleep_forever()
                    }
                }
                let _ = tell.write_all(b"r");
                sleep_forever()
            }
        };
        ready.read_exact(&mut [0]).unwrap();
        Self { process, memory }
    }

    fn frames(&self) -> Vec<u64> {
        frames(self.process.pid(), self.memory)
    }
}

fn frames(pid: i32, memory: RemoteSpan) -> Vec<u64> {
    let pagemap = File::open(format!("/proc/{pid}/pagemap")).unwrap();
    let mut entries = vec![0; memory.len as usize / PAGE * 8];
    let at = memory.start.0 / PAGE as u64 * 8;
    pagemap.read_exact_at(&mut entries, at).unwrap();
    let words = entries.as_chunks::<8>().0.iter();
    words
        .map(|word| u64::from_ne_bytes(*word) & FRAME)
        .collect()
}

fn moved(before: &[u64], after: &[u64]) -> usize {
    let pairs = before.iter().zip(after);
    pairs.filter(|(before, after)| before != after).count()
}

/// Reads all of it once.
fn read(method: Method, pid: i32, memory: RemoteSpan) -> Option<Care> {
    let mut buffer = vec![0; 1 << 20];
    let mut care = None;
    let lent = method.lend(&Target::process(pid, PAGE), &mut |reader| {
        let spans = &mut [memory].into_iter();
        let pass = reader.pass(spans, 1 << 20, &mut buffer, None);
        assert_eq!(pass.bytes, memory.len);
        care = reader.care().copied();
    });
    lent.unwrap();
    care
}

/// Whether a pin unshares here, and `hybrid` pins at all.
fn pins() -> bool {
    let mut region = Region::new(PAGE).unwrap();
    region.small_pages();
    region.bytes_mut().fill(9);
    let own = RemoteSpan {
        start: RemoteAddr(region.address() as u64),
        len: PAGE as u64,
    };
    let care = read(Method::Hybrid, std::process::id().cast_signed(), own);
    let pins = vmread_splits() && care.unwrap().pinned > 0;
    if !pins {
        eprintln!("skipped: nothing is pinned here, or pins do not unshare");
    }
    pins
}

/// The first page that the kernel unshares ends it.
#[test]
fn one_page_that_is_not_the_targets_own_ends_the_pinning() {
    let _turn = turn();
    if !pins() {
        return;
    }
    let alone = Alone::new();
    let care = read(Method::Hybrid, alone.process.pid(), alone.memory).unwrap();
    assert_eq!(
        (care.pinned, care.copied, care.pin_faults),
        (1, PAGES as u64 - 1, Some(1)),
    );
}

/// A process whose memory a child of its own once shared, and which a pipe holds. It lies below all
/// else that the process has, and so is read first. Prints where.
const HELD: &str = r#"
import ctypes, fcntl, os, signal, sys
PAGES, PAGE, at = 64, 4096, 1 << 20
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
# Readable and writable, MAP_FIXED_NOREPLACE | MAP_ANONYMOUS | MAP_PRIVATE.
mapped = libc.mmap(*map(ctypes.c_size_t, (at, PAGES * PAGE)), 3, 0x100022, -1, ctypes.c_size_t(0))
assert mapped == at
assert libc.madvise(ctypes.c_size_t(at), ctypes.c_size_t(PAGES * PAGE), 15) == 0  # MADV_NOHUGEPAGE
ctypes.memset(at, 9, PAGES * PAGE)
child = os.fork()
if child == 0:
    while True:
        signal.pause()
os.kill(child, 9)
os.waitpid(child, 0)
read, write = os.pipe()
fcntl.fcntl(write, 1031, PAGES * PAGE)  # F_SETPIPE_SZ
part = (ctypes.c_size_t * 2)(at, PAGES * PAGE)
assert libc.vmsplice(write, part, ctypes.c_size_t(1), 0) == PAGES * PAGE
print(at, PAGES * PAGE, flush=True)
sys.stdin.read()
"#;

/// What the first pass has shown the further ones know.
#[test]
fn trust_that_one_pass_has_lost_stays_lost() {
    let _turn = turn();
    if !is_root() || !pins() {
        eprintln!("skipped: frame numbers need root");
        return;
    }
    let target = helpers::Target::new(HELD);
    let (start, len) = target.ready.split_once(' ').unwrap();
    let memory = RemoteSpan {
        start: RemoteAddr(start.parse().unwrap()),
        len: len.parse().unwrap(),
    };
    let pid = target.pid() as i32;
    let before = frames(pid, memory);
    let output = run(&format!("audit --method hybrid --stop --warm 2 {pid}"));
    let rows = whole_stream(&stdout(&output)).rows;
    let cold = &rows[0];
    // The first call pins one page, which is copied; none is pinned after that.
    let moved = moved(&before, &frames(pid, memory)) as i64;
    assert_eq!((moved, get(cold, "pin_faults")), (1, 1), "{cold:?}");
    assert_eq!(get(cold, "split_pages"), moved, "{cold:?}");
    assert_eq!(get(cold, "split_exclusive_pages"), moved, "{cold:?}");
    for warm in &rows[1..] {
        let figures = ["pin_faults", "split_pages", "unexplained_faults"];
        assert_eq!(figures.map(|name| get(warm, name)), [0; 3], "{warm:?}");
    }
    let words = String::from_utf8(output.stderr).unwrap();
    let says = "copied, not pinned: fault; 1 faults in pins";
    assert!(words.contains(says), "{words}");
}

/// How often it is tried to find pages on a list.
const ATTEMPTS: usize = 30;

#[test]
fn pages_on_a_list_of_another_processor_are_not_split() {
    let _turn = turn();
    if !is_root() || !pins() {
        eprintln!("skipped: frame numbers need root");
        return;
    }
    if cpu::usable().unwrap() < 2 || cpu::pin(1).is_err() {
        eprintln!("skipped: this needs two processors");
        return;
    }
    let split_by = |method| {
        let alone = Alone::touched_on(Some(1));
        cpu::pin(0).unwrap();
        let before = alone.frames();
        let care = read(method, alone.process.pid(), alone.memory);
        (moved(&before, &alone.frames()), care)
    };
    // The kernel may empty the list meanwhile, and then nobody splits: that proves nothing.
    let mut shown = 0;
    for _ in 0..ATTEMPTS {
        let (split, _) = split_by(Method::Vmread);
        let (by_hybrid, care) = split_by(Method::Hybrid);
        assert_eq!(by_hybrid, 0, "{care:?}; vmread split {split}");
        shown += usize::from(split > 0);
        if shown == 3 {
            return;
        }
    }
    assert!(
        shown > 0,
        "the kernel has emptied its lists before each read"
    );
}

/// Processes whose equal pages KSM joins; those that it knows end, and a child of one keeps the
/// joined pages, which are in no count then. Prints the child and where they lie.
const JOINED: &str = r#"
import ctypes, mmap, os, signal, sys, time
PAGES, MORE, PAGE = 8, 300, 4096
def ksm(name, value=None):
    path = "/sys/kernel/mm/ksm/" + name
    if value is None:
        return int(open(path).read())
    open(path, "w").write(value)
def until(holds, times):
    for _ in range(times):
        if holds():
            return
        time.sleep(0.01)
    sys.exit(f"never: {[ksm(name) for name in ('pages_shared', 'pages_sharing', 'full_scans')]}")
def merged(pid):
    return int(open(f"/proc/{pid}/ksm_merging_pages").read())
def memory(pages):
    mapped = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    mapped.madvise(15)  # MADV_NOHUGEPAGE
    return mapped, ctypes.addressof(ctypes.c_char.from_buffer(mapped))
def fill(mapped, at):
    for page in range(PAGES):
        mapped[at + page * PAGE:at + (page + 1) * PAGE] = bytes([page + 1, 7, 77, 177]) * (PAGE // 4)
    mapped.madvise(12)  # MADV_MERGEABLE
go, goes = os.pipe()
tell, tells = os.pipe()
first = os.fork()
if first == 0:
    mapped, at = memory(MORE + PAGES)
    mapped[:MORE * PAGE] = os.urandom(MORE * PAGE)
    fill(mapped, MORE * PAGE)
    os.read(go, 1)
    child = os.fork()
    if child == 0:
        os.close(tells)
        os.close(1)
        while True:
            signal.pause()
    os.write(tells, b"%d %d %d\n" % (child, at + MORE * PAGE, PAGES * PAGE))
    os._exit(0)
second = os.fork()
if second == 0:
    mapped, at = memory(PAGES)
    fill(mapped, 0)
    while True:
        signal.pause()
said = ""
try:
    ksm("pages_to_scan", "1000"); ksm("sleep_millisecs", "20"); ksm("run", "1")
    until(lambda: merged(first) >= PAGES and merged(second) >= PAGES, 1000)
    ksm("run", "0")
    os.write(goes, b"x")
    said = os.read(tell, 99).decode()
    os.waitpid(first, 0); os.kill(second, 9); os.waitpid(second, 0)
    ksm("pages_to_scan", "1"); ksm("run", "1")
    until(lambda: ksm("pages_shared") == 0, 1000)
    ksm("run", "0")
    print(said, end="", flush=True)
    sys.stdin.read()
finally:
    os.close(tells)
    for pid in [first, second, int((said or "0").split()[0])]:
        if pid and os.path.exists(f"/proc/{pid}"):
            os.kill(pid, 9)
"#;

/// Settings of KSM, put back with the value.
struct Settings(Vec<(String, String)>);

impl Settings {
    fn now() -> Self {
        let names = ["run", "pages_to_scan", "sleep_millisecs"];
        let files = names.map(|name| format!("/sys/kernel/mm/ksm/{name}"));
        let each = files.into_iter().map(|file| {
            let value = fs::read_to_string(&file).unwrap();
            (file, value)
        });
        Self(each.collect())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (file, value) in &self.0 {
            let _ = fs::write(file, value);
        }
    }
}

#[test]
fn joined_pages_that_ksm_does_not_count_are_not_taken_apart() {
    let _turn = turn();
    if !is_root() || !pins() || fs::metadata("/sys/kernel/mm/ksm").is_err() {
        eprintln!("skipped: this needs root, and KSM");
        return;
    }
    let Some(_alone) = alone() else { return };
    let settings = Settings::now();
    let mut script = Command::new("/usr/bin/python3")
        .args(["-c", JOINED])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(script.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    drop(settings);
    let words: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
    if let [pid, start, len] = *words {
        not_taken_apart(pid, start, len);
    } else {
        eprintln!("skipped: KSM was not to be brought to it");
    }
    drop(script.stdin.take());
    script.wait().unwrap();
}

fn not_taken_apart(pid: u64, start: u64, len: u64) {
    let memory = RemoteSpan {
        start: RemoteAddr(start),
        len,
    };
    let pid = pid as i32;
    let joined = field(&format!("/proc/{pid}/smaps_rollup"), "KSM:").next();
    if joined.as_deref().is_some_and(|kib| kib == "0") {
        eprintln!("skipped: KSM came by and counts them");
        return;
    }
    let before = frames(pid, memory);
    let care = read(Method::Hybrid, pid, memory).unwrap();
    assert_eq!((care.pinned, care.pin_faults), (0, Some(0)), "{care:?}");
    assert_eq!(moved(&before, &frames(pid, memory)), 0);
}
