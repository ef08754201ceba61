//! `startup` with what cannot be started, does not end, or changes meanwhile; with signals;
//! and with what makes no sense. Nothing is left behind.

mod common;
#[path = "common/startup.rs"]
mod helpers;

use common::{BINARY, Row, command_as_nobody, is_root, stdout};
use helpers::{Scratch, ab, rows, startup};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Processes with this word in their command line.
fn running(word: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.split(|&byte| byte == 0)
                .any(|found| found == word.as_bytes())
        })
        .count()
}

#[test]
fn a_command_that_fails_is_a_row_and_status_3_unless_that_is_allowed() {
    let words = [
        "ab",
        "-q",
        "--rounds",
        "2",
        "--b",
        "/bin/sh",
        "-c",
        "kill -9 $$",
        "--",
        "--a",
        "/bin/false",
    ];
    let output = startup(&words);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--allow-failure"));
    let (execs, results) = rows(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(execs.len(), 8);
    for row in &execs {
        let want = if row["arm"].ends_with('b') { "-9" } else { "1" };
        assert_eq!(row["exit_status"], want);
        assert_eq!(row["status"], "skipped:command-failed");
    }
    for row in &results {
        assert_eq!((&*row["pairs"], &*row["verdict"]), ("0", "unresolved"));
        assert_eq!((&*row["difference_ns"], &*row["a_median_ns"]), ("", ""));
    }
    let allowed = startup(&[&words[..], &["--", "--allow-failure"]].concat());
    let (execs, results) = rows(&stdout(&allowed));
    assert!(execs.iter().all(|row| row["status"] == "ok"));
    assert!(
        results
            .iter()
            .all(|row| row["pairs"] == "2" && row["low_ns"].is_empty())
    );
}

#[test]
fn what_cannot_be_run_is_said_before_anything_is_written() {
    let plain = Scratch::new("plain");
    let pipe = Scratch::new("pipe");
    let made = Command::new("mkfifo")
        .args(["-m", "777", pipe.path()])
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    fs::write(&plain.0, "no program\n").unwrap();
    let cases = [
        ("/nonexistent/program", "ENOENT: no such file"),
        ("true", "ENOENT: no such file"),
        ("/tmp", "EACCES: it must be a file"),
        (pipe.path(), "EACCES: it must be a file"),
        (
            plain.path(),
            "EACCES: it must be a file with permission to execute",
        ),
    ];
    for (path, want) in cases {
        let output = ab("", &[path], &["/bin/true"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{path}: {stderr}");
        assert!(
            stderr.starts_with(&format!("cowitness: error: cannot run '{path}': {want}")),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
    }
}

/// Words behind `startup`, separated by blanks, and what is then said to be wrong.
const SENSELESS: [(&str, &str); 15] = [
    (
        "ab --cold --b-via=memfd --a x -- --b y",
        "--b-via 'memfd': must be execve with --cold",
    ),
    (
        "ab --cold --a-via=native --a x -- --b y",
        "--a-via 'native': must be execve with --cold",
    ),
    ("", "no mode given: must be ab or slope"),
    ("fast", "mode 'fast': must be ab or slope"),
    ("ab", "no --a CMD given"),
    (
        "ab --a x --b y -- --rounds 9",
        "a --b before the -- that ends A's words is one of these",
    ),
    ("ab --a /bin/true", "no --b CMD given"),
    ("ab --a -- --b /bin/true", "--a needs a value: CMD"),
    ("ab --a x -- --a y", "program '--a': must be given once"),
    (
        "ab --rounds 0 --a x -- --b y",
        "--rounds '0': must be 1 to 100000",
    ),
    (
        "ab --a-via self --a x -- --b y",
        "--a-via 'self': must be execve, memfd or native",
    ),
    ("ab --a x -- --b y -- z", "stray word 'z'"),
    ("slope 1=a 2=b 4=c static=s", "no fourth N=PATH given"),
    ("slope 1=a 2=b 4=c 8=d", "no static=PATH given"),
    (
        "slope 1=a 1=b 4=c 8=d static=s",
        "program '1=b': must be given once",
    ),
];

#[test]
fn senseless_words_are_usage_errors() {
    for (line, want) in SENSELESS {
        let words: Vec<&str> = line.split_whitespace().collect();
        let output = startup(&words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(want), "{line}: {stderr}");
        assert!(stderr.contains("usage: cowitness startup "), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_program_that_does_not_end_is_killed_and_nothing_is_left() {
    let word = format!("9{:08}", std::process::id());
    let output = ab(
        "-q --rounds 3 --timeout 1",
        &["/bin/sleep", &word],
        &["/bin/true"],
    );
    assert_eq!(output.status.code(), Some(3));
    let (execs, results) = rows(&String::from_utf8(output.stdout).unwrap());
    for row in &execs {
        let ok = row["arm"].ends_with('b');
        assert_eq!(row["status"], if ok { "ok" } else { "skipped:timeout" });
        assert_eq!(row["total_ns"].is_empty(), !ok);
    }
    assert!(results.iter().all(|row| row["verdict"] == "unresolved"));
    assert_eq!(running(&word), 0);
    // What a program leaves behind ends with it.
    let leave = format!("/bin/sleep {word} & exit 0");
    stdout(&ab(
        "-q --rounds=2",
        &["/bin/sh", "-c", &leave],
        &["/bin/true"],
    ));
    assert_eq!(running(&word), 0);
}

/// One that has left its group is killed as well.
#[test]
fn a_program_that_leaves_its_group_does_not_outlive_the_timeout() {
    let word = format!("7{:08}", std::process::id());
    let leave = "setpgrp(0, getpgrp(getppid)); sleep 600";
    let started = Instant::now();
    let output = ab(
        "-q --rounds=1 --timeout=1",
        &["/usr/bin/perl", "-e", leave, &word],
        &["/bin/true"],
    );
    // Not a time of anything: it would not have come back at all.
    assert!(started.elapsed() < Duration::from_secs(300));
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (execs, _) = rows(&String::from_utf8(output.stdout).unwrap());
    let late = |row: &&Row| row["status"] == "skipped:timeout";
    assert_eq!(execs.iter().filter(late).count(), 2);
    assert_eq!(running(&word), 0);
}

/// Its rights are root's: the tool may not kill it, says so with its number, and ends.
#[test]
fn a_program_that_may_not_be_killed_is_an_error() {
    const SOURCE: &str = "#define _GNU_SOURCE\n#include <unistd.h>\nint main(void){return setresuid(0,0,0)||sleep(600);}\n";
    let (source, program) = (Scratch::new("suid.c"), Scratch::new("suid"));
    let words = format!(
        "startup ab -q --rounds=1 --timeout=1 --a {} -- --b /bin/true",
        program.path()
    );
    let Some((mut command, _folder)) = command_as_nobody(&words) else {
        return;
    };
    fs::write(&source.0, SOURCE).unwrap();
    let compiled = Command::new("cc")
        .args(["-o", program.path(), source.path()])
        .status();
    let set = fs::set_permissions(&program.0, fs::Permissions::from_mode(0o4755));
    assert!(compiled.is_ok_and(|status| status.success()) && set.is_ok());
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let pid = stderr.split("lives on as process ").nth(1);
    let pid = pid.and_then(|rest| rest.split(':').next());
    let killed = pid.map(|pid| Command::new("kill").args(["-KILL", pid]).status());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr.contains("EPERM: it has another user's rights"),
        "{stderr}"
    );
    assert!(killed.unwrap().is_ok_and(|status| status.success()));
}

/// A tool that is killed, also by a panic of its test.
struct Tool(Child);

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_until(what: &dyn Fn() -> bool) -> bool {
    let start = Instant::now();
    while !what() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    what()
}

/// A shell that starts another program: both end with the tool.
#[test]
fn a_signal_ends_the_tool_and_all_that_it_runs() {
    for (name, number) in [
        ("INT", 2),
        ("TERM", 15),
        ("HUP", 1),
        ("QUIT", 3),
        ("USR1", 10),
        ("XCPU", 24),
        ("40", 40),
    ] {
        let word = format!("8{number:02}{:08}", std::process::id());
        let shell = format!("/bin/sleep {word}; true");
        let tool = Command::new(BINARY)
            .args(["startup", "ab", "--a", "/bin/sh", "-c", &shell])
            .args(["--", "--b", "/bin/true"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut tool = Tool(tool.unwrap());
        let started = wait_until(&|| running(&word) == 1);
        let _ = Command::new("kill")
            .args([&format!("-{name}"), &tool.0.id().to_string()])
            .status();
        let status = tool.0.wait().unwrap();
        assert!(started, "{name}: the program was started");
        assert_eq!((status.code(), status.signal()), (Some(128 + number), None));
        assert!(wait_until(&|| running(&word) == 0), "{name}: {word} lives");
    }
}

/// Nobody can act on SIGKILL, and the kernel ends the program itself.
#[test]
fn a_tool_that_is_killed_takes_its_program_along() {
    let word = format!("6{:08}", std::process::id());
    let tool = Command::new(BINARY)
        .args(["startup", "ab", "--a", "/bin/sleep", &word])
        .args(["--", "--b", "/bin/true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let tool = Tool(tool.unwrap());
    // Two: the tool has the word in its own command line.
    assert!(wait_until(&|| running(&word) == 2));
    drop(tool);
    assert!(wait_until(&|| running(&word) == 0));
}

#[test]
fn no_result_is_made_of_a_program_that_changed() {
    let program = Scratch::new("changed");
    fs::copy("/bin/true", &program.0).unwrap();
    let output = ab(
        "-q --rounds=1",
        &["/bin/sh", "-c", "echo >> $0", program.path()],
        &[program.path()],
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("was replaced or written to during the run"),
        "{stderr}"
    );
    assert!(!String::from_utf8_lossy(&output.stdout).contains("startup-ab"));
}

/// The loader ends with 126 if it cannot load, which is no start of the program.
#[test]
fn a_program_that_the_loader_cannot_load_is_no_figure() {
    let cut = Scratch::new("cut");
    let whole = fs::read(BINARY).unwrap();
    fs::write(&cut.0, &whole[..4096]).unwrap();
    fs::set_permissions(&cut.0, fs::Permissions::from_mode(0o755)).unwrap();
    let output = ab(
        "-q --rounds=1 --allow-failure --a-via=native",
        &[cut.path()],
        &["/bin/true"],
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (execs, results) = rows(&String::from_utf8(output.stdout).unwrap());
    for row in execs.iter().filter(|row| !row["arm"].ends_with('b')) {
        let found = (&*row["exit_status"], &*row["status"]);
        assert_eq!(found, ("126", "skipped:not-loaded"));
    }
    assert!(results.iter().all(|row| row["pairs"] == "0"));
}

#[test]
fn what_cannot_be_copied_is_said_with_its_cause() {
    let script = Scratch::new("script");
    fs::write(&script.0, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&script.0, fs::Permissions::from_mode(0o755)).unwrap();
    for (via, want) in [
        (
            "--a-via=memfd",
            "it is a script, whose interpreter could not open",
        ),
        ("--a-via=native", "it is not a 64-bit ELF program"),
    ] {
        let output = ab(via, &[script.path()], &["/bin/true"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(want), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}

/// vm.memfd_noexec belongs to a PID namespace, so one can be had in which it is 2.
#[test]
fn a_kernel_that_runs_no_memory_is_named() {
    const SCRIPT: &str = r#"
        echo 2 > /proc/sys/vm/memfd_noexec || exit 77
        "$0" startup ab -q --rounds=1 --a-via=memfd --a "$0" --version -- --b /bin/true
    "#;
    if !is_root() {
        eprintln!("skipped: only root can make a PID namespace");
        return;
    }
    let output = Command::new("unshare")
        .args([
            "--pid",
            "--fork",
            "--mount-proc",
            "sh",
            "-c",
            SCRIPT,
            BINARY,
        ])
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: Linux before 6.3 has no vm.memfd_noexec");
        return;
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("from a file in memory: EACCES: vm.memfd_noexec is 2"),
        "{stderr}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn the_control_of_a_slope_names_no_loader() {
    let arms = ["1=/bin/true", "2=/bin/true", "3=/bin/true", "4=/bin/true"];
    let output = startup(&[&["slope"], &arms[..], &["static=/bin/true"]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("it names a dynamic loader (PT_INTERP)"),
        "{stderr}"
    );
    assert!(output.stdout.is_empty());
}
