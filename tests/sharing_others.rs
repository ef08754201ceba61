//! `sharing` beside other processes that map the same files, seen or not; subjects that do not
//! stand still at the barrier, that take more than their byte, that leave daemons behind.

mod common;
#[path = "common/sharing.rs"]
mod helpers;

use common::{BINARY, Folder, Row, Stream, command, is_root, run};
use helpers::{
    Marker, PYTHON, Running, alone, arm, both, decimal, processes_with, sharing, statuses,
    verdicts, wait_for, with_verdicts,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// 4 MiB that a process reads and never writes; then it reads its input to the end.
const READER: &str = r#"
#include <unistd.h>
static const char big[4 << 20] = {1};
volatile char sum;
int main(void) {
    char byte;
#if defined(__x86_64__)
    __asm__ volatile(".globl probed\nprobed: lea 8(%%rsp), %%rax" ::: "rax");
#else
    __asm__ volatile(".globl probed\nprobed: add x9, sp, #0" ::: "x9");
#endif
    for (unsigned at = 0; at < sizeof big; at += 4096) sum += big[at];
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
"#;

/// A program of that source; `None` without a compiler.
fn compiled(folder: &Path) -> Option<String> {
    let (source, program) = (folder.join("reader.c"), folder.join("reader"));
    fs::write(&source, READER).unwrap();
    let compiler = Command::new("cc")
        .args(["-O1", "-o"])
        .args([&program, &source])
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no C compiler");
        return None;
    }
    Some(program.to_str().unwrap().to_owned())
}

/// Seven others divide the pages of the file with one subject as well as with eight: a of elf is
/// far too large, and the fraction that the fits give too small.
#[test]
fn a_copy_beside_bystanders_is_a_copy() {
    let _alone = alone();
    if !is_root() {
        eprintln!("skipped: only root has the kernel count Shmem exactly");
        return;
    }
    let folder = Folder::open_to_all();
    let Some(program) = compiled(&folder.0) else {
        return;
    };
    let start = |_| Command::new(&program).stdin(Stdio::piped()).spawn();
    let others: Vec<Running> = (0..7).map(|nth| Running(start(nth).unwrap())).collect();
    let is_loaded = |other: &Running| {
        let rollup = fs::read_to_string(format!("/proc/{}/smaps_rollup", other.0.id()));
        let field = |line: &str| line.strip_prefix("Rss:").map(str::to_owned);
        let rss = rollup.ok()?.lines().find_map(field)?;
        rss.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    wait_for("bystanders", || {
        others.iter().all(|other| is_loaded(other) > Some(4 << 10))
    });
    let wanted: [(&str, &[&str]); 3] = [
        ("elf", &["shared"]),
        ("native", &["copied-anon"]),
        ("memfd", &["copied-shmem"]),
    ];
    let (processes, fits) = with_verdicts("--n 1,2,4,8 --reps 3", &[&program], &wanted);
    for row in arm(&processes, "elf") {
        assert!(row["bystanders"].parse::<u64>().unwrap() >= 7, "{row:?}");
    }
    let [elf, native] = ["elf", "native"].map(|name| arm(&fits, name)[0]);
    // The column is what the fits give, and the verdict does not rest on it.
    assert!(decimal(elf, "a_kb") > 300.0, "{elf:?}");
    assert!(decimal(elf, "r2") < 0.9, "{elf:?}");
    assert!(decimal(native, "private_fraction") < 0.95, "{native:?}");
    let summary = command("sharing --n 1,2,4,8 --reps 1 --arm elf,native --")
        .arg(&program)
        .output()
        .unwrap();
    let summary = String::from_utf8_lossy(&summary.stderr);
    for part in [
        "missing from b, a lower bound, and partly in a, an\n    upper bound",
        "by USS, which decides, the private fraction is 1.0",
    ] {
        assert!(summary.contains(part), "{summary}");
    }
    drop(others);
}

/// A run below `unshare` of these namespaces, after `before` of a shell; `None` if that cannot
/// be had.
fn apart(namespaces: &[&str], before: &str, words: &[&str]) -> Option<(Stream, Stream, String)> {
    if !is_root() {
        eprintln!("skipped: only root has namespaces for sure");
        return None;
    }
    let script = format!("({before}) || exit 77; exec \"$@\"");
    let output = Command::new("unshare")
        .args(namespaces)
        .args(["sh", "-c", &script, "sh"])
        .args(words)
        .output();
    let output = output.ok().filter(|output| {
        let status = output.status.code();
        status != Some(77) && !(status == Some(1) && output.stdout.is_empty())
    });
    let Some(output) = output else {
        eprintln!("skipped: no namespace, or no mount in it");
        return None;
    };
    let (processes, fits) = both(&output, output.status.code().unwrap());
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]), "{stderr}");
    Some((processes, fits, stderr))
}

const UNSEEN: &str = "whether other processes map the same files could not be seen";

fn nobody_is_known_to_be_alone(processes: &Stream, stderr: &str, why: &str) {
    let known = |row: &&Row| !row["bystanders"].is_empty();
    assert_eq!(processes.rows.iter().find(known), None);
    assert!(stderr.contains(UNSEEN) && stderr.contains(why), "{stderr}");
}

#[test]
fn who_is_outside_of_a_pid_namespace_is_not_nobody() {
    let _alone = alone();
    let namespaces = ["--pid", "--fork", "--mount-proc"];
    let words = [BINARY, "sharing", "--arm", "elf", "--n", "1,2,3"];
    if let Some((processes, _, stderr)) = apart(&namespaces, "true", &words) {
        nobody_is_known_to_be_alone(&processes, &stderr, "/proc does not show all");
    }
}

#[test]
fn who_is_hidden_by_proc_is_not_nobody() {
    let _alone = alone();
    let Some((_, folder)) = common::command_as_nobody("") else {
        return;
    };
    let copy = folder.0.join("cowitness");
    for hidepid in ["1", "2"] {
        let mount = format!("mount -t proc -o hidepid={hidepid} proc /proc");
        let words = "setpriv --reuid=65534 --regid=65534 --clear-groups";
        let words: Vec<&str> = words
            .split(' ')
            .chain([copy.to_str().unwrap()])
            .chain("sharing --arm elf --n 1,32 --reps 1".split(' '))
            .collect();
        if let Some((processes, _, stderr)) = apart(&["--mount"], &mount, &words) {
            nobody_is_known_to_be_alone(&processes, &stderr, "/proc does not show all");
        }
    }
}

#[test]
fn who_maps_the_layer_below_an_overlay_is_not_nobody() {
    let _alone = alone();
    let folder = Folder::open_to_all();
    let Some(program) = compiled(&folder.0) else {
        return;
    };
    let at = folder.text();
    let before = format!(
        "mkdir {at}/up {at}/low {at}/merged && mv {program} {at}/low && \
         mount -t tmpfs none {at}/up && mkdir {at}/up/u {at}/up/w && mount -t overlay overlay \
         -o lowerdir={at}/low,upperdir={at}/up/u,workdir={at}/up/w {at}/merged"
    );
    let merged = format!("{at}/merged/reader");
    let words = "sharing --arm elf --n 1,2 --reps 1 --".split(' ');
    let words: Vec<&str> = [BINARY]
        .into_iter()
        .chain(words)
        .chain([&*merged])
        .collect();
    if let Some((_, _, stderr)) = apart(&["--mount"], &before, &words) {
        let why = "on overlayfs the same pages have other numbers elsewhere";
        assert!(stderr.contains(why), "{stderr}");
    }
}

/// Where in the file of that program what its label names lies.
fn offset_of(program: &str, label: &str) -> u64 {
    use object::{Object, ObjectSegment, ObjectSymbol};
    let bytes = fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(label));
    let address = symbol.unwrap().address();
    let mut segments = file.segments();
    let segment = segments
        .find(|segment| (segment.address()..segment.address() + segment.size()).contains(&address));
    let segment = segment.unwrap();
    address - segment.address() + segment.file_range().0
}

/// A uprobe copies the page of code that it is in, and adds one.
#[test]
fn a_uprobe_in_a_subject_is_told() {
    let _alone = alone();
    let folder = Folder::open_to_all();
    let Some(program) = compiled(&folder.0).filter(|_| is_root()) else {
        return;
    };
    let (at, own) = (folder.text(), std::process::id());
    let offset = offset_of(&program, "probed");
    let script = format!(
        "mkdir {at}/t && mount -t tracefs none {at}/t &&          echo 'p:cow{own}/probed {program}:{offset:#x}' >> {at}/t/uprobe_events || exit 77
         trap 'echo 0 > {at}/t/events/cow{own}/enable;                echo -:cow{own}/probed >> {at}/t/uprobe_events' EXIT
         echo 1 > {at}/t/events/cow{own}/enable || exit 77
         {BINARY} sharing -q --arm elf,native --n 1,2 --reps 1 -- {program}"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .output();
    let output = output.unwrap();
    if output.stdout.is_empty() {
        eprintln!("skipped: no uprobes here");
        return;
    }
    let (processes, fits) = both(&output, 3);
    for row in arm(&processes, "elf") {
        assert_eq!(row["status"], "skipped:a-subject-has-uprobes");
    }
    // The probe is in the file, and the copies are not of it.
    for row in arm(&processes, "native") {
        assert_eq!(row["status"], "ok");
    }
    assert_eq!(verdicts(&fits), [("elf", "invalid"), ("native", "invalid")]);
}

/// It reads its input while a thread of it takes memory.
const WORKS: &str = "import sys, threading
kept = []
def work():
    while True: kept.append(bytearray(100000)); kept[50:] = []
threading.Thread(target=work, daemon=True).start()
sys.stdin.read()";

/// As that, but its thread sleeps most of the time: both looks may find it asleep.
const NAPS: &str = "import sys, threading, time
kept = []
def work():
    while True: kept.append(bytearray(1000000)); time.sleep(0.001); kept[50:] = []
threading.Thread(target=work, daemon=True).start()
sys.stdin.read()";

const WAITS: &str = "import sys, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.stdin.read()";

#[test]
fn threads_that_run_at_the_barrier_are_told() {
    let _alone = alone();
    for program in [WORKS, NAPS] {
        let options = "--arm elf --n 2,4 --reps 1 --settle 2";
        let (processes, fits) = sharing(options, &[PYTHON, "-c", program], 3);
        let seen = statuses(&processes);
        assert!(seen.contains("skipped:threads-run"), "{seen:?}");
        let allowed = [
            "ok",
            "skipped:threads-run",
            "skipped:never-at-the-barrier",
            "skipped:others-not-at-barrier",
        ];
        assert!(
            seen.iter().all(|status| allowed.contains(status)),
            "{seen:?}"
        );
        assert_eq!(verdicts(&fits), [("elf", "invalid")]);
    }
    let options = "sharing -q --arm elf --n 2,3 --reps 1 --";
    let output = command(options)
        .args([PYTHON, "-c", WAITS])
        .output()
        .unwrap();
    let (processes, _) = both(&output, output.status.code().unwrap());
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
}

#[test]
fn daemons_of_subjects_end_with_a_run_that_is_stopped() {
    let _alone = alone();
    for (signal, status) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let marker = Marker::new();
        let daemon = format!(
            "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    \
             if os.fork() == 0: os.execvp('sleep', ['sleep', '{}'])\n    os._exit(0)\n\
             os.wait()\ntime.sleep(100)",
            marker.0
        );
        let mut running = Running(
            command("sharing -q --arm elf --n 2,3 --reps 1 --")
                .args([PYTHON, "-c", &daemon])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let is_daemon = |pid: &u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"sleep\0")
        };
        wait_for("two daemons", || {
            let found = processes_with(&marker.0);
            found.iter().filter(|pid| is_daemon(pid)).count() >= 2
        });
        let own = running.0.id().to_string();
        let killed = Command::new("kill").args([signal, &own]).status();
        assert!(killed.unwrap().success());
        assert_eq!(running.0.wait().unwrap().code(), Some(status));
        // Not some time later: by then they belong to somebody else.
        assert_eq!(processes_with(&marker.0), [0; 0]);
    }
}

/// Status and idx of every process of a run with `--release byte`.
fn with_a_byte(program: &[&str], settle: &str) -> Stream {
    let options = format!("sharing -q --arm elf --n 2,5 --reps 1 --release byte --settle {settle}");
    let output = command(&options).arg("--").args(program).output().unwrap();
    both(&output, output.status.code().unwrap()).0
}

#[test]
fn nobody_takes_the_byte_of_another() {
    let _alone = alone();
    let asks_for_more = "import os; os.read(0, 4096)";
    for program in [&["head", "-n", "1"][..], &[PYTHON, "-c", asks_for_more]] {
        let processes = with_a_byte(program, "20");
        assert_eq!(statuses(&processes), BTreeSet::from(["ok"]), "{program:?}");
    }
    // One of them all goes on after its byte, and is the only one that is accused.
    let folder = Folder::open_to_all();
    let first = "import os, sys
os.read(0, 4096)
try:
    os.mkdir(sys.argv[1] + '/first')
    os.read(0, 1)
except FileExistsError: pass";
    let processes = with_a_byte(&[PYTHON, "-c", first, folder.text()], "3");
    let accused = |row: &&Row| row["status"] == "skipped:did-not-end-when-let-go";
    assert_eq!(processes.rows.iter().filter(accused).count(), 1);
    let fine = |row: &&Row| row["status"] == "ok";
    assert_eq!(processes.rows.iter().filter(fine).count(), 6);
}

/// The exit status and what was said, of a run that must not hang.
fn soon(args: &[&std::ffi::OsStr]) -> (Option<i32>, String) {
    let mut child: Child = command("sharing -q --arm")
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let mut running = Running(child);
    wait_for("it ends", || running.0.try_wait().unwrap().is_some());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
    (running.0.wait().unwrap().code(), said)
}

#[test]
fn a_fifo_is_no_program() {
    let folder = Folder::open_to_all();
    let fifo = folder.0.join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let control = format!("static={}", fifo.display());
    for args in [
        ["elf", "--", fifo.to_str().unwrap()],
        [&control, "--n", "1,2"],
    ] {
        let (status, said) = soon(&args.map(AsRef::as_ref));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("it is not a regular file"), "{said}");
    }
}

#[test]
fn command_lines_that_make_no_sense_have_their_own_status() {
    let not_utf_8 = std::ffi::OsStr::from_bytes(b"/bin/\xff");
    let long = "x".repeat(2000);
    let many = vec![std::ffi::OsStr::new("x"); 200];
    let elf = std::ffi::OsStr::new("elf");
    let end = std::ffi::OsStr::new("--");
    let cases: [(Vec<&std::ffi::OsStr>, &str); 3] = [
        (vec![elf, end, not_utf_8], "must be UTF-8"),
        (vec![elf, end, long.as_ref()], "must be UTF-8"),
        ([&[elf, end][..], &many].concat(), "no more fit"),
    ];
    for (args, want) in cases {
        let (status, said) = soon(&args);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(want), "{said}");
    }
    for idle in [
        "--text 64K",
        "--data=64K",
        "--touch 0",
        "--dir /tmp",
        "--text 5M",
    ] {
        let output = run(&format!("sharing -q {idle} -- cat"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("must be the built-in subject"), "{said}");
    }
}

#[test]
fn the_arguments_of_a_program_are_recorded() {
    let _alone = alone();
    let words = ["sh", "-c", "read line; exit 0", "a b", "c"];
    let output = command("sharing -q --arm elf --n 2,3 --reps 1 --")
        .args(words)
        .output()
        .unwrap();
    let (processes, fits) = both(&output, output.status.code().unwrap());
    for stream in [&processes, &fits] {
        assert_eq!(stream.notes["option_program"], "sh");
        assert_eq!(
            stream.notes["option_arguments"],
            "-c read line; exit 0 a b c"
        );
    }
}
