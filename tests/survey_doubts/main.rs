//! `survey` and `audit` where pagemap does not tell all: pages joined by KSM, in swap, of hugetlb, marks
//! that look like swap, what a userfaultfd serves, devices, secret memory. What is not known is
//! empty, and nothing is called clean that is not.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/audit.rs"]
mod helpers;
mod hugetlb;
#[path = "../common/machine.rs"]
mod machine;

use common::{
    BINARY, Folder, NO_SECCOMP, Row, alone, command, denied, lock_of_the_machine, number, run,
    stdout, vmread_splits, whole_stream,
};
use cowitness::proc::maps::MapsLine;
use helpers::{Target, audit, get, mapping_kib, near, signal, until, until_it_reads};
use machine::{Ksm, Settings, Zram};
use std::fs;
use std::process::{Command, Output, Stdio};

/// What each script begins with.
const PRELUDE: &str = r#"
import ctypes, fcntl, mmap, os, platform, random, signal, struct, sys, time
PAGES = 512
HERE = platform.machine() == "x86_64"
page = os.sysconf("SC_PAGE_SIZE")
libc = ctypes.CDLL(None, use_errno=True)
def private():
    memory = mmap.mmap(-1, PAGES * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(15)  # MADV_NOHUGEPAGE
    return memory
def fill(memory):
    for index in range(PAGES):
        memory[index * page:(index + 1) * page] = random.randbytes(page)
def address(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
def start(memory):
    return f"{address(memory):x}"
def ready(memory):
    print(os.getpid(), start(memory), flush=True)
    sys.stdin.read()
def skip(why):
    print(why, flush=True)
    sys.exit()
def userfaultfd(features, mode):
    """Serves private memory that nobody has touched."""
    serving = libc.syscall(323 if HERE else 282, os.O_CLOEXEC | 1)
    memory = private()
    try:
        fcntl.ioctl(serving, 0xc018aa3f, struct.pack("QQQ", 0xaa, features, 0))
        fcntl.ioctl(serving, 0xc020aa00, struct.pack("QQQQ", address(memory), PAGES * page, mode, 0))
    except OSError as error:
        skip(f"userfaultfd: {error}")
    return serving, memory
"#;

/// A process of such a script, killed with its children; it prints its id, or another's, and where
/// the memory is.
struct Known {
    _target: Target,
    pid: String,
    start: String,
}

impl Known {
    /// `None`, and a word, if there is no such memory here.
    fn new(script: &str) -> Option<Self> {
        let target = Target::new(&format!("{PRELUDE}{script}"));
        let words = target.ready.split_once(' ');
        let Some((pid, start)) = words.filter(|(pid, _)| pid.parse::<u32>().is_ok()) else {
            eprintln!("skipped: {}", target.ready);
            return None;
        };
        Some(Self {
            pid: pid.into(),
            start: start.into(),
            _target: target,
        })
    }

    /// The row of an audit with these options.
    fn audit(&self, options: &str) -> Row {
        audit(&format!("--stop {options} {}", self.pid))
            .rows
            .remove(0)
    }

    /// The row of the memory, and the total.
    fn survey(&self) -> (Row, Row) {
        self.rows(&run(&format!("survey {} -q", self.pid)))
    }

    /// These of what a survey printed.
    fn rows(&self, survey: &Output) -> (Row, Row) {
        let stream = whole_stream(&stdout(survey));
        let total = stream.rows.last().unwrap().clone();
        let mut rows = stream.rows.into_iter();
        let row = rows.find(|row| row["start"] == self.start);
        (row.expect("the memory is one VMA"), total)
    }

    /// Pages that a pin copies although pagemap calls them the process's own.
    fn copies(&self) -> i64 {
        get(&self.audit("--method vmread"), "split_exclusive_pages")
    }
}

/// What bit 56 calls the process's own, and a pin copies all the same, is unknown.
fn is_unknown((row, total): (Row, Row)) {
    assert!(get(&row, "exclusive_pages") >= 512, "{row:?}");
    for row in [&row, &total] {
        assert_eq!(number(row, "vmread_split_pages"), None, "{row:?}");
        assert_eq!(number(row, "vmread_extra_kib"), None, "{row:?}");
        assert_eq!(number(row, "hybrid_split_pages"), Some(0), "{row:?}");
    }
    assert_ne!(total["advice"], "vmread");
}

/// Of who has no such page, nothing is in doubt on the same machine.
fn who_has_none_is_known() {
    let plain = Known::new("memory = private(); fill(memory); ready(memory)").unwrap();
    let (row, _) = plain.survey();
    assert_eq!(get(&row, "exclusive_pages"), 512, "{row:?}");
    assert_eq!(get(&row, "vmread_split_pages"), 0, "{row:?}");
}

/// Pairs of equal pages; of each pair one is written to once KSM has joined them.
const JOINED: &str = r#"
PAGES *= 2
memory = private()
fill(memory)
PAGES //= 2
memory[PAGES * page:] = memory[:PAGES * page]
memory.madvise(12)  # MADV_MERGEABLE; not before: KSM would skip two equal pages in turns (smart_scan)
def merging():
    return int(open("/proc/self/ksm_merging_pages").read())
for attempt in range(600):
    if merging() == 2 * PAGES: break
    time.sleep(.05)
with open("/sys/kernel/mm/ksm/run", "w") as run: run.write("0")
joined = merging() == 2 * PAGES
for index in range(PAGES):
    memory[(PAGES + index) * page] ^= 1
if not joined: skip("KSM has not joined the pages")
ready(memory)
"#;

#[test]
fn pages_that_ksm_has_joined_are_not_called_the_process_s_own() {
    let Some(_alone) = alone() else { return };
    let Some(_ksm) = Ksm::new("1") else { return };
    let Some(known) = Known::new(JOINED) else {
        return;
    };
    is_unknown(known.survey());
    who_has_none_is_known();
    assert_eq!(known.copies() >= 512, vmread_splits());
}

/// A child reads what its parent still has in swap.
const HALF_SWAPPED: &str = r#"
memory = private()
fill(memory)
memory.madvise(21)  # MADV_PAGEOUT
memory.madvise(21)
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for index in range(PAGES):
        memory[index * page]
    print(os.getpid(), start(memory), flush=True)
    while True: time.sleep(60)
sys.stdin.read()
"#;

#[test]
fn pages_that_another_process_has_in_swap_are_not_called_the_process_s_own() {
    let Some(_alone) = alone() else { return };
    let Some(_zram) = Zram::new() else { return };
    let known = Known::new(HALF_SWAPPED).unwrap();
    is_unknown(known.survey());
    who_has_none_is_known();
    assert_eq!(known.copies() >= 512, vmread_splits());
}

/// A container may have a /proc/meminfo that knows nothing of the machine's swap, as lxcfs(1) makes it.
#[test]
fn swap_that_a_container_does_not_show_is_there() {
    let Some(_alone) = alone() else { return };
    let Some(_zram) = Zram::new() else { return };
    let known = Known::new(HALF_SWAPPED).unwrap();
    let folder = Folder::new();
    let shown = format!("{}/meminfo", folder.text());
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap();
    let lines = meminfo.lines().map(|line| match line.split_once(':') {
        Some((name @ ("SwapCached" | "SwapTotal" | "SwapFree"), _)) => format!("{name}: 0 kB\n"),
        _ => format!("{line}\n"),
    });
    fs::write(&shown, lines.collect::<String>()).unwrap();
    let contained = |args: &str| {
        let script = format!("mount --bind {shown} /proc/meminfo && exec {BINARY} {args}");
        let contained = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .output();
        contained.unwrap()
    };
    let survey = contained(&format!("survey -q {}", known.pid));
    let said = String::from_utf8_lossy(&survey.stderr);
    if ["unshare:", "mount:"]
        .iter()
        .any(|refused| said.contains(refused))
    {
        eprintln!("skipped: {said}");
        return;
    }
    is_unknown(known.rows(&survey));
    let audit = contained(&format!("audit -q --stop {}", known.pid));
    let row = &whole_stream(&stdout(&audit)).rows[0];
    let columns = ["split_pages", "pin_faults"];
    assert_eq!(columns.map(|column| get(row, column)), [0, 0], "{row:?}");
    assert_eq!(known.copies() >= 512, vmread_splits());
}

/// Calls that never fail by themselves: what a filter denies is unknown, not none.
#[test]
fn what_a_filter_denies_is_unknown() {
    let [sysinfo, uname] = match std::env::consts::ARCH {
        "x86_64" => ["99", "63"],
        _ => ["179", "160"],
    };
    let plain = Known::new("memory = private(); fill(memory); ready(memory)").unwrap();
    let args = format!("audit --stop {}", plain.pid);
    let audit = denied(sysinfo, "1", &args).output().unwrap();
    if audit.status.code() == Some(NO_SECCOMP) {
        eprintln!("skipped: no call can be denied here");
        return;
    }
    let said = String::from_utf8_lossy(&audit.stderr);
    // Whether swap is in use.
    assert!(said.contains("copied, not pinned: "), "{said}");
    let env = denied(uname, "1", "env").output().unwrap();
    let said = stdout(&env);
    for line in ["#kernel=empty", "#kernel_version=empty"] {
        assert!(said.lines().any(|said| said == line), "{said}");
    }
}

/// Pages that the machine has brought in out of swap so far.
fn brought_in() -> i64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    let count = text.lines().find_map(|line| line.strip_prefix("pswpin "));
    count.unwrap().parse().unwrap()
}

/// Shared memory has no entry for what is in swap.
#[test]
fn shared_memory_in_swap_is_not_called_absent() {
    const SHARED: &str = "file = os.memfd_create('shared')\n\
        os.ftruncate(file, PAGES * page)\n\
        memory = mmap.mmap(file, PAGES * page, flags=FLAGS)\n\
        with mmap.mmap(file, PAGES * page) as writer:\n\
        \x20   fill(writer)\n\
        \x20   for attempt in range(2): writer.madvise(21)\n\
        ready(memory)";
    let Some(_alone) = alone() else { return };
    let Some(_zram) = Zram::new() else { return };
    for flags in ["mmap.MAP_SHARED", "mmap.MAP_PRIVATE"] {
        let known = Known::new(&SHARED.replace("FLAGS", flags)).unwrap();
        let (row, total) = known.survey();
        let swapped = get(&row, "swapped_pages");
        assert_eq!(swapped + get(&row, "absent_pages"), 512, "{row:?}");
        assert!(swapped >= 256, "{row:?}");
        assert_eq!(get(&total, "swapped_pages"), swapped);
        // Of shared memory there is nothing to copy.
        assert_eq!(get(&row, "vmread_split_pages"), 0, "{row:?}");
        for options in ["--allow-swap-in", "--method proc"] {
            let known = Known::new(&SHARED.replace("FLAGS", flags)).unwrap();
            let before = brought_in();
            let row = known.audit(options);
            assert!(brought_in() - before >= 256, "{row:?}");
            assert_eq!(number(&row, "swapped_in_pages"), None, "{row:?}");
            assert!(get(&row, "predicted_faulted_in_pages") >= 256, "{row:?}");
        }
        let row = known.audit("");
        assert_eq!(get(&row, "swapped_in_pages"), 0, "{row:?}");
    }
}

/// Three windows at [`PLACE`].
const THREE_WINDOWS: &str = r#"
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
place = libc.mmap(1 << 40, 96 << 20, 3, 0x100022, -1, 0)  # MAP_FIXED_NOREPLACE
libc.madvise(ctypes.c_void_p(place), 96 << 20, 15)  # MADV_NOHUGEPAGE
ctypes.memset(place, 1, 96 << 20)
print(os.getpid(), f"{place:x}", flush=True)
sys.stdin.read()
"#;

/// Where they begin: above the heap, below all else.
const PLACE: u64 = 1 << 40;

/// process_madvise(2): MADV_PAGEOUT of the last of them.
const PAGES_OUT: &str = "import ctypes, os, sys\n\
    process = os.pidfd_open(int(sys.argv[1]))\n\
    span = (ctypes.c_uint64 * 2)((1 << 40) + (64 << 20), 32 << 20)\n\
    gone = ctypes.CDLL(None).syscall(440, process, span, ctypes.c_size_t(1), 21, 0)\n\
    sys.exit(gone != 32 << 20)";

/// smaps was read before the first window, and knew nothing of it.
#[test]
fn what_goes_to_swap_during_a_pass_comes_from_there() {
    const WITHOUT_FRAMES: &str = "import ctypes, os, sys\n\
        ctypes.CDLL(None).prctl(24, 21, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_SYS_ADMIN\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let Some(_alone) = alone() else { return };
    let Some(_zram) = Zram::new() else { return };
    for drop in [false, true] {
        let known = Known::new(THREE_WINDOWS).unwrap();
        let maps = fs::read(format!("/proc/{}/maps", known.pid)).unwrap();
        let lines = maps
            .split(|&byte| byte == b'\n')
            .filter_map(MapsLine::parse);
        let before = lines.take_while(|vma| vma.start < PLACE);
        let below: u64 = before.map(|vma| vma.end - vma.start).sum();
        let args = format!("audit -q --stop --method proc --block 16 {}", known.pid);
        let mut audit = command(&args);
        if drop {
            audit = Command::new("/usr/bin/python3");
            audit
                .args(["-c", WITHOUT_FRAMES, BINARY])
                .args(args.split(' '));
        }
        let audit = audit.stdout(Stdio::piped()).spawn().unwrap();
        // Of the first window, whatever the tool has read of itself before.
        until_it_reads(&audit, (below + (32 << 20)) / 16);
        let paged_out = Command::new("/usr/bin/python3")
            .args(["-c", PAGES_OUT, &known.pid])
            .status();
        let swapped = mapping_kib(known.pid.parse().unwrap(), PLACE, "Swap:") / 4;
        let output = audit.wait_with_output().unwrap();
        if !paged_out.unwrap().success() {
            eprintln!("skipped: nothing can be paged out of another process here");
            return;
        }
        assert!(swapped > 4096, "{swapped}");
        let row = &whole_stream(&stdout(&output)).rows[0];
        assert_eq!(row["evidence"], if drop { "exclusive" } else { "pfn" });
        assert_eq!(
            get(row, "swapped_in_pages"),
            swapped.cast_signed(),
            "{row:?}"
        );
    }
}

/// A page that is poisoned (Linux 6.6), or write-protected before it was there (6.4), looks swapped out.
#[test]
fn a_mark_is_not_called_swapped_out() {
    const POISON: &str = "serving, memory = userfaultfd(1 << 14, 1)\n\
        fcntl.ioctl(serving, 0xc020aa08, struct.pack('QQQQ', address(memory), PAGES * page, 0, 0))\n\
        os.close(serving); ready(memory)";
    const PROTECTED: &str = "serving, memory = userfaultfd(1 << 13 | 1 << 15 | 1, 2)\n\
        fcntl.ioctl(serving, 0xc018aa06, struct.pack('QQQ', address(memory), PAGES * page, 1))\n\
        ready(memory)";
    let Some(_alone) = alone() else { return };
    for (script, come) in [(POISON, 0), (PROTECTED, 512)] {
        let with_swap = Zram::new();
        let Some(known) = Known::new(script) else {
            continue;
        };
        let check = || {
            let (row, total) = known.survey();
            let columns = ["swapped_pages", "absent_pages", "proc_faulted_pages"];
            assert_eq!(columns.map(|column| get(&row, column)), [0, 512, come]);
            assert_eq!(get(&total, "swapped_pages"), 0, "{total:?}");
        };
        check();
        drop(with_swap);
        check();
        let row = known.audit("--method hybrid");
        let columns = ["left_swapped_pages", "left_marked_pages"];
        assert_eq!(columns.map(|column| get(&row, column)), [0, 512], "{row:?}");
        let row = known.audit("--method proc");
        assert_eq!(get(&row, "swapped_in_pages"), 0, "{row:?}");
        let (came, predicted) = ("faulted_in_pages", "predicted_faulted_in_pages");
        assert!(near(get(&row, came), get(&row, predicted)), "{row:?}");
    }
}

/// Root needs no smaps for pagemap's sake, and is told all the same.
#[test]
fn what_nobody_should_read_has_no_forecast() {
    let _steady = lock_of_the_machine(fs::File::try_lock_shared);
    const SERVED: &str = "serving, memory = userfaultfd(0, 1); ready(memory)";
    const DEVICE: &str = "attributes = struct.pack('IIQQQQQ', 1, 128, 0, 1 << 20, 1, 0, 1 | 1 << 5)\n\
        events = libc.syscall(298 if HERE else 241, attributes.ljust(128, b'\\0'), 0, -1, -1, 0)\n\
        if events < 0: skip('perf_event_open')\n\
        ready(mmap.mmap(events, 65 * page))";
    for (script, status) in [(SERVED, "userfaultfd"), (DEVICE, "device-memory")] {
        let Some(known) = Known::new(script) else {
            continue;
        };
        let (row, _) = known.survey();
        assert_eq!(row["status"], format!("skipped:{status}"), "{row:?}");
        assert_eq!(number(&row, "proc_faulted_pages"), None, "{row:?}");
    }
}

/// The kernel itself does not read memory of memfd_secret(2) for others; that of a child, which is not
/// locked as its parent's is, neither.
#[test]
fn secret_memory_comes_with_no_reader() {
    let _steady = lock_of_the_machine(fs::File::try_lock_shared);
    const SECRET: &str = "file = libc.syscall(447, 0)\n\
        if file < 0: skip('memfd_secret')\n\
        os.ftruncate(file, PAGES * page)\n\
        memory = mmap.mmap(file, PAGES * page)\n";
    for script in [
        "ready(memory)",
        "if os.fork(): os.wait()\nelse: ready(memory)",
    ] {
        let Some(known) = Known::new(&format!("{SECRET}{script}")) else {
            return;
        };
        let (row, _) = known.survey();
        assert_eq!(get(&row, "absent_pages"), 512, "{row:?}");
        assert_eq!(get(&row, "proc_faulted_pages"), 0, "{row:?}");
        let row = known.audit("--method proc");
        let columns = ["faulted_in_pages", "predicted_faulted_in_pages"];
        let [came, predicted] = columns.map(|column| get(&row, column));
        assert!(near(came, predicted), "{row:?}");
    }
}

/// Any file may have the name that maps shows of secret memory.
#[test]
fn a_file_with_the_name_of_secret_memory_is_a_file() {
    let _steady = lock_of_the_machine(fs::File::try_lock_shared);
    const NAMED: &str = "import tempfile\n\
        folder = tempfile.mkdtemp()\n\
        if libc.unshare(0x20000) or libc.mount(None, b'/', None, 0x44000, None): skip('unshare')\n\
        if libc.mount(b'none', folder.encode(), b'tmpfs', 0, None): skip('tmpfs')\n\
        file = os.open(folder + '/secretmem', os.O_RDWR | os.O_CREAT)\n\
        os.write(file, bytes(PAGES * page))\n\
        memory = mmap.mmap(file, PAGES * page)\n\
        os.unlink(folder + '/secretmem')\n\
        libc.umount2(folder.encode(), 2)\n\
        os.rmdir(folder)\n\
        ready(memory)";
    let Some(known) = Known::new(NAMED) else {
        return;
    };
    let (row, _) = known.survey();
    assert_eq!(row["name"], "/secretmem (deleted)", "{row:?}");
    assert_eq!(get(&row, "absent_pages"), 512, "{row:?}");
    assert_eq!(get(&row, "proc_faulted_pages"), 512, "{row:?}");
    let row = known.audit("--method proc");
    assert!(get(&row, "faulted_in_pages") >= 512, "{row:?}");
}
