//! `sharing` with its built-in subject, with real programs, and with every way in which a
//! subject can fail to come to the barrier or to leave it.

mod common;

use common::{
    BINARY, Row, Stream, command, command_as_nobody, is_root, number, run, stdout, whole_stream,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One run at a time: files in memory of one would be growth of Shmem to the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two streams: processes and fits.
fn streams(text: &str) -> (Stream, Stream) {
    let second = text.rfind("#cowitness 1\n").expect("a stream");
    assert!(second > 0, "a second stream");
    (whole_stream(&text[..second]), whole_stream(&text[second..]))
}

/// Both streams of a run with these options, whose status must be `status`.
fn sharing(options: &str, program: &[&str], status: i32) -> (Stream, Stream) {
    let output = command(&format!("sharing -q {options}"))
        .args(if program.is_empty() { &[][..] } else { &["--"] })
        .args(program)
        .output()
        .expect("the binary starts");
    both(&output, status)
}

fn both(output: &Output, status: i32) -> (Stream, Stream) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    streams(std::str::from_utf8(&output.stdout).expect("CSV is UTF-8"))
}

fn arm<'s>(stream: &'s Stream, name: &str) -> Vec<&'s Row> {
    let rows: Vec<&Row> = stream
        .rows
        .iter()
        .filter(|row| row["arm"] == name)
        .collect();
    assert!(!rows.is_empty(), "rows of {name}");
    rows
}

fn decimal(row: &Row, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

fn statuses(stream: &Stream) -> BTreeSet<&str> {
    stream.rows.iter().map(|row| &*row["status"]).collect()
}

fn verdicts(fits: &Stream) -> Vec<(&str, &str)> {
    let of = |row| -> (&str, &str) {
        let row: &Row = row;
        (&row["arm"], &row["verdict"])
    };
    fits.rows.iter().map(of).collect()
}

/// A folder that everybody may write to, gone with the value.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cowitness-sharing-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("a new folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).expect("mode is set");
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running command that is killed when the test is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processes whose command line contains `marker`.
fn processes_with(marker: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(marker)
    })
    .collect()
}

/// Waits until `condition` holds; a test that waits for ever fails.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// A number that stands in the command lines of a test's subjects and nowhere else. What
/// still has it when the test is over is killed.
struct Marker(String);

impl Marker {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1000);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{count}{}.25", std::process::id()))
    }

    fn wait_until_gone(&self) {
        // A killed process is there until it is reaped.
        wait_for("subjects are gone", || processes_with(&self.0).is_empty());
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        for pid in processes_with(&self.0) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

const PYTHON: &str = "python3";

#[test]
fn the_built_in_subject_shares_or_not_as_its_arm_says() {
    let _alone = alone();
    let options = "--arm elf,native,memfd,static --n 1,2,4,8,16 --reps 3";
    let (processes, fits) = sharing(options, &[], 0);
    assert_eq!(processes.rows.len(), 4 * 3 * 31);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    let expected = [
        ("elf", "shared"),
        ("native", "copied-anon"),
        ("memfd", "copied-shmem"),
        ("static", "shared"),
    ];
    assert_eq!(verdicts(&fits), expected);
    for name in ["elf", "static"] {
        let fit = arm(&fits, name)[0];
        assert!(decimal(fit, "r2") >= 0.99, "{fit:?}");
        assert!(decimal(fit, "private_fraction") <= 0.05, "{fit:?}");
        // 5 MiB of text are shared, 64 KiB of data are not.
        assert!((decimal(fit, "b_kb") - 5120.0).abs() < 100.0, "{fit:?}");
        assert!((64.0..128.0).contains(&decimal(fit, "a_kb")), "{fit:?}");
    }
    let load_kib = (5 << 10) + 64;
    for row in arm(&processes, "native") {
        assert_eq!(number(row, "sum_filesz_kb"), Some(load_kib));
        let dirty = number(row, "Private_Dirty").unwrap();
        assert!((dirty - load_kib).abs() <= load_kib / 20, "{row:?}");
        assert_eq!(
            number(row, "Pss_File"),
            Some(0),
            "the loader is gone: {row:?}"
        );
    }
    for row in arm(&processes, "memfd") {
        assert!(number(row, "Pss_Shmem") >= Some(5 << 10), "{row:?}");
    }
}

#[test]
fn a_byte_for_each_lets_the_built_in_subject_go_as_well() {
    let _alone = alone();
    let (processes, fits) = sharing("--arm elf --n 1,5 --reps 5 --release byte", &[], 0);
    assert_eq!(processes.rows.len(), 30);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    let fit = arm(&fits, "elf")[0];
    assert_eq!((&*fit["verdict"], &*fit["r2"]), ("shared", ""));
    let settled = |row: &Row| number(row, "settle_us") > Some(0);
    assert!(processes.rows.iter().all(settled));
}

#[test]
fn untouched_pages_of_a_file_in_memory_are_in_no_process_and_cost_the_machine_all_the_same() {
    let _alone = alone();
    let (processes, fits) = sharing("--touch 0 --n 1,4,8", &[], 0);
    assert_eq!(&*arm(&fits, "memfd")[0]["verdict"], "copied-shmem");
    for row in arm(&processes, "memfd") {
        assert!(number(row, "Pss_Shmem") < Some(1 << 10), "{row:?}");
    }
    // What is copied is copied whole.
    for row in arm(&processes, "native") {
        assert!(number(row, "Private_Dirty") >= Some(5 << 10), "{row:?}");
    }
    for row in arm(&processes, "elf") {
        assert!(number(row, "Rss") < Some(1 << 10), "{row:?}");
    }
}

#[test]
fn a_file_on_a_tmpfs_is_said_to_be_dirty() {
    let _alone = alone();
    if !fs::metadata("/dev/shm").is_ok_and(|folder| folder.is_dir()) {
        eprintln!("skipped: no /dev/shm");
        return;
    }
    let (processes, fits) = sharing("--arm elf --dir /dev/shm --n 1,2,4", &[], 0);
    assert_eq!(verdicts(&fits), [("elf", "dirty-cache")]);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
}

#[test]
fn real_programs_have_rows_and_verdicts() {
    let _alone = alone();
    for program in ["cat", PYTHON] {
        let (processes, fits) = sharing("--n 1,2,4,8", &[program], 0);
        assert_eq!(statuses(&processes), BTreeSet::from(["ok"]), "{program}");
        assert_eq!(&*arm(&fits, "elf")[0]["verdict"], "shared");
        assert_eq!(&*arm(&fits, "memfd")[0]["verdict"], "copied-shmem");
        // What a program writes to is private in elf, too, so not all of it is lost.
        let native = arm(&fits, "native")[0];
        assert!(decimal(native, "private_fraction") > 0.5, "{native:?}");
        assert!(["copied-anon", "mixed"].contains(&&*native["verdict"]));
        for row in arm(&processes, "native") {
            assert!(number(row, "Private_Dirty") >= number(row, "sum_filesz_kb"));
        }
        // A program that uses the C library is not the only one.
        let seen = |row: &Row| number(row, "bystanders") > Some(0);
        assert!(processes.rows.iter().any(seen), "{program}");
    }
}

/// What each subject sees of itself, by process id.
const LOOK: &str = "import os, sys
folder = sys.argv[1]
with open(f'{folder}/{os.getpid()}', 'w') as out:
    out.write(open('/proc/self/maps').read())
    out.write(f'argv {sys.argv[2:]}\\n')
    out.write(f'environment {sorted(os.environ.items())}\\n')
sys.stdin.read()";

#[test]
fn subjects_are_the_program_in_every_arm_and_the_loader_is_gone() {
    let _alone = alone();
    let folder = Folder::new();
    let program = [PYTHON, "-c", LOOK, folder.text(), "a b", "--n"];
    let (processes, _) = sharing("--n 1,2 --reps 1 --aslr off", &program, 0);
    let seen = |row: &Row| fs::read_to_string(folder.0.join(&row["pid"])).expect("it ran");
    let program_line = |line: &&str| line.contains("/python3");
    let interpreter_line = |line: &&str| line.contains("/ld-linux") || line.contains("/ld-2");
    for row in &processes.rows {
        let text = seen(row);
        assert!(text.contains("argv ['a b', '--n']\n"), "{text}");
        let environment = "environment [('LC_ALL', 'C'), ('PATH', \
                           '/usr/local/bin:/usr/bin:/bin')";
        assert!(text.contains(environment), "{text}");
        assert!(
            text.contains("libc.so.6"),
            "the C library is mapped: {text}"
        );
        assert!(!text.contains("/cowitness"), "{text}");
        let program = text.lines().find(program_line);
        let interpreter = text.lines().find(interpreter_line);
        match &*row["arm"] {
            "elf" => assert!(program.is_some() && interpreter.is_some(), "{text}"),
            "memfd" => assert!(text.contains("/memfd:cowitness-subject"), "{text}"),
            _ => assert!(program.is_none() && interpreter.is_none(), "{text}"),
        }
    }
    // Without random addresses all of an arm look the same.
    let mappings = |row: &&Row| -> String {
        let text = seen(row);
        let named = text.lines().filter(|line| line.contains("libc.so.6"));
        named.collect()
    };
    let elf: BTreeSet<String> = arm(&processes, "elf").iter().map(mappings).collect();
    assert_eq!(elf.len(), 1);
    let (random, _) = sharing("--arm elf --n 1,3 --reps 1", &program, 0);
    let elf: BTreeSet<String> = arm(&random, "elf").iter().map(mappings).collect();
    let aslr = fs::read_to_string("/proc/sys/kernel/randomize_va_space").unwrap();
    assert!(aslr.trim() == "0" || elf.len() > 1, "{elf:?}");
}

/// A program that can only be loaded at one address, which is where the loader is.
const FIXED: &str = r#"
static volatile char big[200000] = {1};
void _start(void) {
    char byte;
    long got;
    for (unsigned at = 0; at < sizeof big; at += 4096) big[at]++;
#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(got) : "a"(0), "D"(0), "S"(&byte), "d"(1) : "rcx", "r11", "memory");
    __asm__ volatile("syscall" : : "a"(231), "D"(got < 0 || big[0] != 2) : "rcx", "r11", "memory");
#else
    register long nr __asm__("x8") = 63;
    register long a __asm__("x0") = 0;
    register char *b __asm__("x1") = &byte;
    register long c __asm__("x2") = 1;
    __asm__ volatile("svc 0" : "+r"(a) : "r"(nr), "r"(b), "r"(c) : "memory");
    got = a;
    nr = 94;
    a = got < 0 || big[0] != 2;
    __asm__ volatile("svc 0" : "+r"(a) : "r"(nr) : "memory");
#endif
    for (;;) ;
}
"#;

#[test]
fn a_program_that_must_lie_where_the_loader_lies_is_copied_as_well() {
    let _alone = alone();
    let folder = Folder::new();
    let (source, program) = (folder.0.join("fixed.c"), folder.0.join("fixed"));
    fs::write(&source, FIXED).unwrap();
    let own = object_base(BINARY.as_ref());
    let compiler = Command::new("cc")
        .args([
            "-O1",
            "-static",
            "-nostdlib",
            "-no-pie",
            "-fno-stack-protector",
            "-o",
        ])
        .args([&program, &source])
        .arg(format!("-Wl,-Ttext-segment={own:#x}"))
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no C compiler");
        return;
    }
    assert_eq!(object_base(&program), own, "the same place");
    let path = program.to_str().unwrap();
    let control = format!("--arm elf,native,memfd,static={path} --n 1,2,4 --reps 1");
    let (processes, fits) = sharing(&control, &[path], 0);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    assert_eq!(arm(&fits, "memfd")[0]["verdict"], "copied-shmem");
    for row in arm(&processes, "native") {
        assert_eq!(number(row, "Pss_File"), Some(0));
        assert!(number(row, "Private_Dirty") >= number(row, "sum_filesz_kb"));
    }
}

/// The lowest address that a program loads at.
fn object_base(path: &std::path::Path) -> u64 {
    use object::read::elf::{FileHeader, ProgramHeader};
    let bytes = fs::read(path).unwrap();
    let header = object::elf::FileHeader64::<object::Endianness>::parse(&*bytes).unwrap();
    let endian = header.endian().unwrap();
    let segments = header.program_headers(endian, &*bytes).unwrap();
    let loads = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD);
    loads.map(|segment| segment.p_vaddr(endian)).min().unwrap()
}

/// All rows have one of `allowed`, at least one the first; nothing but `elf` is looked at.
fn spoiled(options: &str, program: &[&str], allowed: &[&str]) {
    let options = format!("--arm elf --n 2,3 --reps 1 {options}");
    let (processes, fits) = sharing(&options, program, 3);
    assert_eq!(processes.rows.len(), 5);
    let seen = statuses(&processes);
    assert!(seen.contains(allowed[0]), "{seen:?}");
    assert!(
        seen.iter().all(|status| allowed.contains(status)),
        "{seen:?}"
    );
    assert_eq!(verdicts(&fits), [("elf", "invalid")]);
    assert_eq!(&*fits.rows[0]["private_fraction"], "");
}

const OTHERS: &str = "skipped:others-not-at-barrier";

#[test]
fn subjects_that_never_come_to_the_barrier() {
    let _alone = alone();
    spoiled("", &["true"], &["skipped:exited-0", OTHERS]);
    spoiled(
        "",
        &["sh", "-c", "kill -9 $$"],
        &["skipped:killed-by-signal-9", OTHERS],
    );
    let marker = Marker::new();
    spoiled(
        "--settle 1",
        &["sleep", &marker.0],
        &["skipped:not-reading-standard-input"],
    );
    marker.wait_until_gone();
    // It reads, but from another descriptor.
    let other = "import os; r, w = os.pipe(); os.read(r, 1)";
    spoiled(
        "--settle 1",
        &[PYTHON, "-c", other],
        &["skipped:not-reading-standard-input"],
    );
    // It waits for input before it is the program it should be.
    spoiled(
        "--settle 1",
        &[PYTHON, "-c", "import os; os.execvp('cat', ['cat'])"],
        &["skipped:is-another-program"],
    );
}

#[test]
fn a_subject_with_children_is_not_measured_and_leaves_none() {
    let _alone = alone();
    let marker = Marker::new();
    let seconds = &marker.0;
    let forks =
        format!("import os, sys, time\nif os.fork() == 0: time.sleep({seconds})\nsys.stdin.read()");
    spoiled("", &[PYTHON, "-c", &forks], &["skipped:a-subject-forked"]);
    marker.wait_until_gone();
    // Out of its group, and without a parent.
    let daemon = format!(
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep({seconds})\n    os._exit(0)\nos.wait()\nsys.stdin.read()"
    );
    spoiled("", &[PYTHON, "-c", &daemon], &["skipped:a-subject-forked"]);
    marker.wait_until_gone();
}

#[test]
fn subjects_that_do_not_end_as_they_should() {
    let _alone = alone();
    // cat goes on after a byte.
    spoiled(
        "--settle 1 --release byte",
        &["cat"],
        &["skipped:did-not-end-when-let-go"],
    );
    spoiled(
        "",
        &["sh", "-c", "read line; exit 7"],
        &["skipped:exited-7"],
    );
    spoiled(
        "",
        &["sh", "-c", "read line; kill -TERM $$"],
        &["skipped:killed-by-signal-15"],
    );
}

/// The first subject sleeps, so that the others wait at the barrier; the test kills one of
/// them there. Every later batch is whole.
#[test]
fn a_subject_killed_at_the_barrier_spoils_its_batch_only() {
    let _alone = alone();
    let folder = Folder::new();
    let wait = "import os, sys, time
try:
    os.mkdir(sys.argv[1] + '/first')
    time.sleep(1000)
except FileExistsError:
    sys.stdin.read()";
    let mut running = Running(
        command("sharing -q --arm elf --n 2,3,4 --reps 1 --")
            .args([PYTHON, "-c", wait, folder.text()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let pid = running.0.id();
    let victim = || {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children
            .unwrap_or_default()
            .split_whitespace()
            .find_map(|child| {
                let call = fs::read_to_string(format!("/proc/{child}/syscall")).ok()?;
                let read = if cfg!(target_arch = "x86_64") {
                    "0 0x0 "
                } else {
                    "63 0x0 "
                };
                call.starts_with(read).then(|| child.to_owned())
            })
    };
    let mut found = None;
    wait_for("a subject at the barrier", || {
        found = victim();
        found.is_some()
    });
    let killed = Command::new("kill").args(["-9", &found.unwrap()]).status();
    assert!(killed.unwrap().success());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut running.0.stdout.take().unwrap(), &mut text).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(3));
    let (processes, fits) = streams(&text);
    let statuses: Vec<&str> = processes.rows.iter().map(|row| &*row["status"]).collect();
    assert!(
        statuses[..2].contains(&"skipped:killed-by-signal-9"),
        "{statuses:?}"
    );
    assert_eq!(statuses[2..], ["ok"; 7], "{statuses:?}");
    // What was measured is kept: a fit, but no verdict on it.
    let fit = &fits.rows[0];
    assert_eq!(fit["verdict"], "invalid");
    assert!(decimal(fit, "b_kb") > 0.0, "{fit:?}");
}

#[test]
fn more_processes_than_allowed() {
    let _alone = alone();
    let Some((nobody, _folder)) = command_as_nobody("sharing -q --arm elf --n 2,64 --reps 1")
    else {
        return;
    };
    // Counted are the processes of a user; nobody has few.
    use std::os::unix::process::CommandExt;
    let limited = Command::new("prlimit")
        .arg("--nproc=24")
        .arg(nobody.get_program())
        .args(nobody.get_args())
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let (processes, fits) = both(&limited, 3);
    let of = |n: &str| -> BTreeSet<&str> {
        let rows = processes.rows.iter().filter(|row| row["n"] == n);
        rows.map(|row| &*row["status"]).collect()
    };
    assert_eq!(of("2"), BTreeSet::from(["ok"]));
    let expected = ["errno:EAGAIN", "skipped:others-did-not-start"];
    assert_eq!(of("64"), BTreeSet::from(expected));
    assert_eq!(verdicts(&fits), [("elf", "invalid")]);
}

/// The elf arm fits into this address space, a copy beside the loader does not.
#[test]
fn a_copy_that_does_not_fit() {
    let _alone = alone();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 12000 && exec \"$@\"", "sh", BINARY])
        .args("sharing -q --arm elf,native --n 1,2 --reps 1 --text 11M".split(' '))
        .output()
        .unwrap();
    let (processes, fits) = both(&output, 3);
    let native = arm(&processes, "native");
    let failed = |row: &&&Row| row["status"] == "skipped:exited-126";
    assert!(native.iter().any(|row| failed(&row)), "{native:?}");
    assert_eq!(verdicts(&fits), [("elf", "shared"), ("native", "invalid")]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("the copying loader cannot copy the program: ENOMEM"),
        "{stderr}"
    );
}

#[test]
fn what_the_memory_does_not_hold_is_not_started() {
    let _alone = alone();
    // 1,024 copies of it are more than any machine this runs on has.
    let total: u64 = common::field("/proc/meminfo", "MemTotal:")
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let text_kib = (total / 1000).next_multiple_of(64).min(1 << 20);
    if text_kib > 64 << 10 {
        eprintln!("skipped: the file would be too large");
        return;
    }
    let options = format!("--arm elf,memfd --n 1,2,1024 --reps 1 --text {text_kib}K --touch 0");
    let (processes, fits) = sharing(&options, &[], 3);
    for row in arm(&processes, "memfd") {
        let want = if row["n"] == "1024" {
            "skipped:not-enough-memory"
        } else {
            "ok"
        };
        assert_eq!(row["status"], want);
    }
    assert_eq!(verdicts(&fits)[1], ("memfd", "invalid"));
}

#[test]
fn programs_that_cannot_be_measured_are_refused_before_anything_is_written() {
    let folder = Folder::new();
    let script = folder.0.join("script");
    fs::write(&script, "#!/bin/sh\nread line\n").unwrap();
    let script = script.to_str().unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["--", "no-such-program"],
            1,
            "cannot find the program 'no-such-program': ENOENT",
        ),
        (
            &["--", "/nonexistent/cat"],
            1,
            "cannot find the program '/nonexistent/cat': ENOENT",
        ),
        (&["--", script], 1, "it is not a 64-bit ELF program"),
        (&["--", "/"], 1, "cannot read the program '/': EISDIR"),
        (
            &["--arm", "elf,static=/bin/cat", "--", "cat"],
            1,
            "it has an interpreter, so it is not static",
        ),
        (
            &["--dir", "/nonexistent"],
            1,
            "(--dir) to '/nonexistent': ENOENT",
        ),
        (&["--"], 2, "no PROGRAM given: must be an ELF program"),
        (
            &["--arm", "static", "--", "cat"],
            2,
            "--arm 'static': must be static=PATH",
        ),
    ];
    for (args, status, message) in cases {
        let output = command("sharing -q").args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {stderr}");
        assert!(stderr.contains(message), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_program_that_may_not_be_executed_names_the_errno() {
    let _alone = alone();
    let folder = Folder::new();
    let copy = folder.0.join("cat");
    fs::copy("/bin/cat", &copy).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    fs::set_permissions(&copy, mode).unwrap();
    let path = copy.to_str().unwrap();
    spoiled("", &[path], &["errno:EACCES", OTHERS]);
}

#[test]
fn options_that_make_no_sense() {
    for args in [
        "--n 4",
        "--n 0,1",
        "--n 1,1025",
        "--n 2,2",
        "--arm elf,elf",
        "--arm static=/a,static=/b",
        "--arm jit",
        "--reps 0",
        "--aslr maybe",
        "--touch 50",
        "--release now",
        "--text 5000",
        "--data 2G",
        "--settle 0",
        "cat",
    ] {
        let output = run(&format!("sharing {args}"));
        assert_eq!(output.status.code(), Some(2), "{args}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let usage = "usage: cowitness sharing [options] [-- PROGRAM ARGS...]\n";
        assert!(stderr.ends_with(usage), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn nobody_is_left_behind_when_it_is_stopped() {
    let _alone = alone();
    for (signal, status) in [("-TERM", Some(143)), ("-INT", Some(130)), ("-KILL", None)] {
        let marker = Marker::new();
        let seconds = &*marker.0;
        // A grandchild does not notice that its grandparent is gone; of a grandparent that
        // was killed by force, only children do.
        let with_child = format!("sleep {seconds} & sleep {seconds}");
        let program = match status {
            Some(_) => ["sh", "-c", &with_child],
            None => ["sleep", seconds, seconds],
        };
        let mut running = Running(
            command("sharing -q --n 3,4 --")
                .args(program)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let own = running.0.id();
        let expected = if status.is_some() { 9 } else { 3 };
        wait_for("subjects", || {
            let others = processes_with(seconds).into_iter();
            others.filter(|pid| *pid != own).count() >= expected
        });
        let killed = Command::new("kill")
            .args([signal, &own.to_string()])
            .status();
        assert!(killed.unwrap().success());
        assert_eq!(running.0.wait().unwrap().code(), status);
        marker.wait_until_gone();
    }
}

#[test]
fn what_cannot_be_written_ends_the_run() {
    let _alone = alone();
    let marker = Marker::new();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = command("sharing -q --")
        .args([PYTHON, "-c", "import sys; sys.stdin.read()", &marker.0])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let want = "cowitness: error: cannot write to standard output: ENOSPC\n";
    assert_eq!(stderr, want);
    marker.wait_until_gone();
}

#[test]
fn help_is_as_written_and_the_summary_says_what_was_found() {
    let _alone = alone();
    let help = stdout(&run("sharing --help"));
    assert_eq!(help, include_str!("golden/help-sharing.txt"));
    let output = run("sharing --n 1,2,4 --reps 1");
    let summary = String::from_utf8_lossy(&output.stderr);
    for part in [
        "21 of 21 processes ok",
        "  elf: processes share the program's pages",
        "  native: every process has a copy of the segments in memory of its own",
        "  memfd: every process costs the machine a copy of the file as shared memory",
    ] {
        assert!(summary.contains(part), "{summary}");
    }
    if is_root() {
        assert!(output.status.success());
    }
}
