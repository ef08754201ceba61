//! `sharing` with every way in which a subject can fail to start, to come to the barrier or
//! to leave it, and with what makes no sense. Nothing is left behind.

mod common;
#[path = "common/sharing.rs"]
mod helpers;

use common::{BINARY, Folder, Row, Stream, command, command_as_nobody, field, run};
use helpers::{
    Marker, PYTHON, Running, alone, arm, both, decimal, processes_with, sharing, statuses, streams,
    verdicts, wait_for,
};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

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

const NEVER: &str = "skipped:never-at-the-barrier";
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
        &["skipped:not-reading-standard-input", NEVER],
    );
    marker.wait_until_gone();
    // It reads, but from another descriptor.
    let other = "import os; r, w = os.pipe(); os.read(r, 1)";
    spoiled(
        "--settle 1",
        &[PYTHON, "-c", other],
        &["skipped:not-reading-standard-input", NEVER],
    );
    // It waits for input before it is the program it should be.
    spoiled(
        "--settle 1",
        &[PYTHON, "-c", "import os; os.execvp('cat', ['cat'])"],
        &["skipped:is-another-program", NEVER],
    );
}

/// Nobody waits for what has never happened.
#[test]
fn an_arm_that_never_comes_to_the_barrier_is_given_up() {
    let _alone = alone();
    let marker = Marker::new();
    let (processes, _) = sharing(
        "--arm elf,memfd --n 1,2,4 --reps 5 --settle 1",
        &["sleep", &marker.0],
        3,
    );
    marker.wait_until_gone();
    for name in ["elf", "memfd"] {
        let rows = arm(&processes, name);
        assert_eq!(rows.len(), 35);
        let first = rows[0]["n"].parse::<usize>().unwrap();
        for (index, row) in rows.into_iter().enumerate() {
            let want = match index < first {
                true => "skipped:not-reading-standard-input",
                false => "skipped:never-at-the-barrier",
            };
            assert_eq!(row["status"], want);
            assert_eq!(row["pid"].is_empty(), index >= first, "{row:?}");
        }
    }
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

/// Whoever becomes this program may have children; they are left alone, and what subjects
/// leave behind is not taken for one of them.
#[test]
fn children_from_before_are_not_those_of_subjects() {
    let _alone = alone();
    let (theirs, ours) = (Marker::new(), Marker::new());
    let daemon = format!(
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep({})\n    os._exit(0)\nos.wait()\nsys.stdin.read()",
        ours.0
    );
    let shell = format!("sleep {} >/dev/null 2>&1 & exec \"$@\"", theirs.0);
    let output = Command::new("sh")
        .args(["-c", &shell, "sh", BINARY])
        .args("sharing -q --arm elf --n 2,3 --reps 1 --".split(' '))
        .args([PYTHON, "-c", &daemon])
        .output()
        .unwrap();
    let (processes, fits) = both(&output, 3);
    assert_eq!(
        statuses(&processes),
        BTreeSet::from(["skipped:a-subject-forked"])
    );
    assert_eq!(verdicts(&fits), [("elf", "invalid")]);
    ours.wait_until_gone();
    assert_eq!(processes_with(&theirs.0).len(), 1, "it sleeps on");
    // And they spoil nothing.
    let output = Command::new("sh")
        .args(["-c", &shell, "sh", BINARY])
        .args("sharing -q --arm elf --n 2,3 --reps 1".split(' '))
        .output()
        .unwrap();
    // So small a program has a verdict for root only.
    assert!(
        output.status.success() || !common::is_root(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let (processes, _) = streams(std::str::from_utf8(&output.stdout).unwrap());
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
}

/// Both streams of a run as nobody of a python3 that may become root, and what it said; `PYTHON`
/// in the program is that file. `None` if that cannot be had.
fn with_setuid_python(program: &str) -> Option<((Stream, Stream), String)> {
    let (mut nobody, folder) =
        command_as_nobody("sharing -q --settle 5 --n 2,3 --reps 2 --arm elf --")?;
    let copy = folder.0.join("python3");
    let found = ["/usr/local/bin", "/usr/bin"]
        .map(|folder| format!("{folder}/{PYTHON}"))
        .into_iter()
        .find(|path| fs::metadata(path).is_ok())?;
    fs::copy(found, &copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
    // A subject that goes on has our standard error, too; a pipe would not end.
    let said = folder.0.join("said");
    let program = program.replace("PYTHON", copy.to_str().unwrap());
    let first = match program.contains("execv") {
        true => PYTHON.as_ref(),
        false => copy.as_path(),
    };
    let output = nobody
        .arg(first)
        .args(["-c", &program])
        .stderr(fs::File::create(&said).unwrap())
        .output()
        .unwrap();
    let said = fs::read_to_string(said).unwrap();
    Some((both(&output, 3), said))
}

/// A program that becomes root altogether may not be killed by nobody.
#[test]
fn a_subject_that_may_not_be_killed_ends_with_its_input_or_is_told() {
    let _alone = alone();
    let marker = Marker::new();
    let becomes_root = "import os, sys, time; os.setresuid(0, 0, 0); ";
    let ends = format!("{becomes_root}sys.stdin.read()");
    // It is measured, and becomes another program when it is let go.
    let goes_on = format!(
        "import os, sys; sys.stdin.read(); \
         os.execv('PYTHON', ['python3', '-c', '{becomes_root}time.sleep({})'])",
        marker.0
    );
    let Some(((processes, _), _)) = with_setuid_python(&ends) else {
        return;
    };
    if statuses(&processes).contains("skipped:exited-1") {
        eprintln!("skipped: programs do not become another user's here (nosuid)");
        return;
    }
    let allowed = ["errno:EACCES", "errno:EPERM", OTHERS];
    assert!(
        statuses(&processes)
            .iter()
            .all(|status| allowed.contains(status)),
        "{:?}",
        statuses(&processes)
    );
    let Some(((processes, _), said)) = with_setuid_python(&goes_on) else {
        return;
    };
    assert_eq!(processes.rows.len(), 10);
    let first: usize = processes.rows[0]["n"].parse().unwrap();
    for row in &processes.rows[first..] {
        assert_eq!(row["status"], "skipped:one-cannot-be-ended");
    }
    assert!(said.contains("may not be killed"), "{said}");
}

#[test]
fn the_built_in_subject_has_no_name_when_a_signal_comes() {
    let _alone = alone();
    let folder = Folder::open_to_all();
    let mut running = Running(
        command("sharing -q --text 1G --dir")
            .arg(&folder.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let pid = running.0.id();
    wait_for("the file is being written", || {
        let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let mut targets = links.filter_map(|link| fs::read_link(link.ok()?.path()).ok());
        targets.any(|to| to.starts_with(&folder.0) && to.to_string_lossy().ends_with(" (deleted)"))
    });
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    let killed = Command::new("kill").arg(pid.to_string()).status();
    assert!(killed.unwrap().success());
    assert_eq!(running.0.wait().unwrap().code(), Some(143));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
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
    let folder = Folder::open_to_all();
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
    let first: usize = processes.rows[0]["n"].parse().unwrap();
    assert!(
        statuses[..first].contains(&"skipped:killed-by-signal-9"),
        "{statuses:?}"
    );
    assert_eq!(statuses[first..], ["ok"; 9][first..], "{statuses:?}");
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
    // Those behind it were not tried.
    let refused = |row: &&Row| row["status"] == "errno:EAGAIN";
    assert_eq!(processes.rows.iter().filter(refused).count(), 1);
    assert_eq!(verdicts(&fits), [("elf", "invalid")]);
}

/// Without root the kernel's count of shared memory may be behind: by too much for a program
/// of 40 KiB, by little enough for one of 5 MiB.
#[test]
fn what_shared_memory_cannot_tell_without_root() {
    let _alone = alone();
    let Some((mut nobody, _folder)) = command_as_nobody("sharing -q --n 1,8 --reps 1 -- cat")
    else {
        return;
    };
    let output = nobody.output().unwrap();
    let (processes, fits) = both(&output, 3);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    let invalid = |row: &Row| row["verdict"] == "invalid" && !row["a_kb"].is_empty();
    assert!(fits.rows.iter().all(invalid), "{:?}", verdicts(&fits));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("only root can make the kernel count Shmem"),
        "{stderr}"
    );
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    // Four times 125 pages of 4 KiB a CPU, against 5 % of 5,184 KiB for each of 31 processes
    // more.
    if cpus * 500 * 4 * 20 > 5184 * 31 {
        eprintln!("skipped: too many CPUs for the built-in subject without root");
        return;
    }
    let Some((mut nobody, _folder)) = command_as_nobody("sharing -q --arm elf,memfd --n 1,8,32")
    else {
        return;
    };
    let (processes, fits) = streams(std::str::from_utf8(&nobody.output().unwrap().stdout).unwrap());
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    // Others may have used shared memory meanwhile; a wrong verdict it never is.
    let memfd = verdicts(&fits)[1];
    let allowed = ["copied-shmem", "invalid"];
    assert!(allowed.contains(&memfd.1), "{memfd:?}");
}

/// 11,328 KiB of segments, a stack and the vDSO fit into this address space; with the loader
/// beside them they do not.
#[test]
fn a_copy_that_does_not_fit() {
    let _alone = alone();
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 11600 && exec \"$@\"", "sh", BINARY])
        .args("sharing -q --arm elf,native --n 1,2 --reps 1 --text 11M".split(' '))
        .output()
        .unwrap();
    let (processes, fits) = both(&output, 3);
    let native = arm(&processes, "native");
    let failed = |row: &&&Row| row["status"] == "skipped:exited-126";
    assert!(native.iter().any(|row| failed(&row)), "{native:?}");
    let [(_, elf), native] = verdicts(&fits)[..] else {
        panic!("{fits:?}", fits = verdicts(&fits));
    };
    // For so few processes only root has the kernel count Shmem exactly.
    assert!(elf != "invalid" || !common::is_root(), "{elf}");
    assert_eq!(native, ("native", "invalid"));
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
    let total: u64 = field("/proc/meminfo", "MemTotal:")
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
    // What it writes to is its own however it is loaded.
    let options = format!("--n 1,1024 --reps 1 --data {text_kib}K --touch 0 --text 64K");
    let (processes, _) = sharing(&options, &[], 3);
    for row in processes.rows.iter().filter(|row| row["n"] == "1024") {
        assert_eq!(row["status"], "skipped:not-enough-memory", "{}", row["arm"]);
    }
}

#[test]
fn programs_that_cannot_be_measured_are_refused_before_anything_is_written() {
    let folder = Folder::open_to_all();
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
        (&["--", "/"], 1, "cannot use '/': it is not a regular file"),
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
    let folder = Folder::open_to_all();
    let copy = folder.0.join("cat");
    fs::copy("/bin/cat", &copy).unwrap();
    let mode = fs::Permissions::from_mode(0o644);
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
