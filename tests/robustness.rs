//! What happens when something is wrong: bad input, no memory, a closed pipe, a signal.

mod common;

use common::{BINARY, command, run, stdout};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Each of these runs nothing, exits 2, and names the word and what is allowed.
#[test]
fn senseless_command_lines_exit_2_with_one_line_and_the_usage() {
    let cases = [
        (
            "",
            "no command given; commands are bench, probe, survey, audit, memmap, startup ab, startup slope, sharing, env, selftest",
            "cowitness <command> [options]",
        ),
        (
            "bunch",
            "unknown command 'bunch'; commands are bench, probe, survey, audit, memmap, startup ab, startup slope, sharing, env, selftest",
            "cowitness <command> [options]",
        ),
        (
            "bench --mib 3",
            "unknown option '--mib'; --help lists the options",
            "cowitness bench [options]",
        ),
        (
            "bench --mb",
            "--mb needs a value: N",
            "cowitness bench [options]",
        ),
        (
            "bench --mb 0",
            "--mb '0': must be 1 to 1048576 (MiB)",
            "cowitness bench [options]",
        ),
        (
            "bench --repeats 0",
            "--repeats '0': must be 1 to 10000",
            "cowitness bench [options]",
        ),
        (
            "bench --quiet=1",
            "'--quiet=1': this option takes no value",
            "cowitness bench [options]",
        ),
        (
            "bench fast",
            "stray word 'fast'; options start with --",
            "cowitness bench [options]",
        ),
        (
            "env --mb 3",
            "unknown option '--mb'; --help lists the options",
            "cowitness env [options]",
        ),
    ];
    for (args, message, usage) in cases {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(output.stdout.is_empty(), "{args}");
        let want = format!("cowitness: error: {message}\nusage: {usage}\n");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), want);
    }
}

#[test]
fn values_that_do_not_fit_each_other_exit_2_before_anything_runs() {
    let page_bytes = Command::new("getconf")
        .arg("PAGE_SIZE")
        .output()
        .unwrap()
        .stdout;
    let page_bytes: u64 = String::from_utf8(page_bytes)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let pages = (1 << 20) / page_bytes;
    let cases = [
        (
            "bench --mb 1 --block 2M",
            "--block 2097152: must be at most the arena of --mb, in bytes 1048576",
        ),
        (
            "bench --mb 1 --block 64 --exclusive 999999",
            &format!("--exclusive 999999: must be at most the pages of the arena of --mb, {pages}"),
        ),
        (
            "bench --mb 1 --block 64 --segment-pages 999999",
            &format!(
                "--segment-pages 999999: must be at most the pages of the arena of --mb, {pages}"
            ),
        ),
    ];
    for (args, message) in cases {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(output.stdout.is_empty());
        let stderr = String::from_utf8(output.stderr).unwrap();
        let want = format!("cowitness: error: {message}\nusage: cowitness bench [options]\n");
        assert_eq!(stderr, want);
    }
}

#[test]
fn an_arena_that_does_not_fit_is_refused_with_both_figures_before_it_is_populated() {
    let output = run("bench --mb 1048576 --layout contiguous");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr).unwrap();
    // Twice a TiB, and page tables and tables on top.
    let needed = message
        .split("need ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    assert!(
        needed.unwrap().parse::<u64>().unwrap() > 2 << 20,
        "{message}"
    );
    assert!(
        message.contains(" MiB are available; lower --mb"),
        "{message}"
    );
}

#[test]
fn a_cpu_that_does_not_exist_is_named() {
    let output = run("bench --cpu 1023");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.starts_with("cowitness: error: cannot pin to CPU 1023: EINVAL"),
        "{message}"
    );
}

#[test]
fn standard_output_that_takes_nothing_is_an_error_not_a_panic() {
    let cases = [
        (">/dev/full", "ENOSPC"),
        (">&-", "EBADF"),
        ("| true", "EPIPE"),
    ];
    for (redirection, errno) in cases {
        // The status is that of our program, also in front of a pipe.
        let script = format!("{{ '{BINARY}' bench --mb 1 -q; echo $? >&2; }} {redirection}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let want = format!("cowitness: error: cannot write to standard output: {errno}\n1\n");
        // A pipe's reader may still be there for the first lines.
        assert_eq!(stderr, want, "{redirection}");
    }
}

#[test]
fn standard_error_that_is_closed_changes_nothing() {
    let script = format!("'{BINARY}' bench --mb 1 --repeats 1 2>&- <&-");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success());
    common::whole_stream(&String::from_utf8(output.stdout).unwrap());
}

/// A run that is under way: it has written its first row.
fn started() -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = command("bench --mb 16 --repeats 1000 -q")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("bench,") {
        line.clear();
        assert!(
            reader.read_line(&mut line).unwrap() > 0,
            "the run ended early"
        );
    }
    (child, reader)
}

/// Those of `pids` that are processes and not zombies.
fn alive(pids: &[u32]) -> Vec<u32> {
    let still = |pid: &&u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat
            .rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next());
        state.is_some_and(|state| state != "Z")
    };
    pids.iter().filter(still).copied().collect()
}

fn children_of(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace()
        .map(|child| child.parse().unwrap())
        .collect()
}

/// The fixture children of a run, waited for: between two cases there is none.
fn some_children_of(pid: u32) -> Vec<u32> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let children = children_of(pid);
        if !children.is_empty() || Instant::now() > deadline {
            return children;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn wait_until_gone(pids: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !alive(pids).is_empty() {
        assert!(Instant::now() < deadline, "still alive: {:?}", alive(pids));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn signals_end_a_run_with_whole_rows_no_end_and_no_children() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let (child, mut reader) = started();
        let children = some_children_of(child.id());
        assert!(!children.is_empty());
        send(signal, child.id());
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{signal}");
        let message = format!("\ncowitness: error: stopped by signal {}\n", status - 128);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
        assert!(rest.is_empty() || rest.ends_with('\n'), "a row was cut");
        assert!(
            !rest.contains("#end"),
            "an unfinished stream must not look finished"
        );
        wait_until_gone(&children);
    }
}

/// Nobody reads, the pipe is full, and the tool waits in write(2).
#[test]
fn a_signal_ends_a_run_that_waits_for_its_reader() {
    let mut child = command("bench --mb 1 --warm 0 --repeats 10000 -q")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let waits = |pid: u32| {
        let call = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        call.contains("pipe") && call.contains("write")
    };
    while !waits(child.id()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    send("-TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// A child that dies under measurement is a row that says so, and exit status 3.
#[test]
fn a_target_that_is_killed_is_never_reported_as_unchanged() {
    let mut child = command("bench --mb 64 --layout contiguous --block 4K --repeats 3 -q")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let target = some_children_of(child.id());
    assert!(!target.is_empty());
    // Somewhere between its fork and its end; where, is the scheduler's choice.
    std::thread::sleep(Duration::from_millis(20));
    send("-KILL", target[0]);
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let status = child.wait().unwrap().code();
    let rows = text.lines().filter(|line| line.starts_with("bench,"));
    let bad: Vec<&str> = rows.filter(|row| !row.contains(",ok,")).collect();
    match status {
        // Its case had just ended.
        Some(0) => assert!(bad.is_empty(), "{bad:?}"),
        // The barrier did not hold: no row at all, or one that says why.
        Some(1 | 3) => assert!(bad.len() <= 1, "{bad:?}"),
        other => panic!("{other:?}: {text}"),
    }
}

#[test]
fn what_does_not_apply_anywhere_is_not_a_success() {
    let args = "bench --pages thp --layout vma --segment-pages 16 --mb 4 --repeats 1 -q";
    let output = run(args);
    if !fs::exists("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").unwrap() {
        assert_eq!(output.status.code(), Some(1));
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    let stream = common::whole_stream(&String::from_utf8(output.stdout).unwrap());
    for row in &stream.rows {
        assert_eq!(row["status"], "skipped:segments-are-not-whole-huge-pages");
        assert_eq!((&*row["cold_ns"], &*row["split_pages"]), ("", ""));
    }
}

#[test]
fn children_die_with_a_tool_that_is_killed() {
    let (mut child, _reader) = started();
    let children = some_children_of(child.id());
    assert!(!children.is_empty());
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    wait_until_gone(&children);
}

#[test]
fn several_commands_run_in_order_and_none_if_one_makes_no_sense() {
    let output = run("env then probe -q --kind hole then --version");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let places: Vec<_> = [
        "#command=env",
        "#command=probe",
        "#end rows=18 ",
        "cowitness 0",
    ]
    .iter()
    .map(|part| text.find(part))
    .collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{places:?}"
    );
    for line in [
        "env then nope",
        "env then",
        "then env",
        "probe then env --nope",
    ] {
        let output = run(line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(output.stdout.is_empty(), "{line}: {output:?}");
    }
}

/// As process 1 of a PID namespace of its own, with `before` done first.
fn as_first_process(before: &str, args: &str) -> Option<Output> {
    if !common::is_root() {
        eprintln!("skipped: only root can make a PID namespace");
        return None;
    }
    let script = format!("{before} exec {BINARY} {args}");
    let unshare = ["--pid", "--fork", "--mount", "sh", "-c", &script];
    Some(Command::new("unshare").args(unshare).output().unwrap())
}

/// A container's first process is a program like any other: it mounts nothing, ends
/// nothing, and takes no verdict.
#[test]
fn the_first_process_of_a_container_is_no_machines() {
    for before in ["mount -t proc proc /proc;", "umount -l /proc;", ""] {
        let Some(output) = as_first_process(before, "--version") else {
            return;
        };
        assert!(output.status.success(), "{before} {output:?}");
        assert!(stdout(&output).starts_with("cowitness 0"), "{before}");
        assert!(output.stderr.is_empty(), "{before} {output:?}");
    }
}

/// In another namespace's /proc a process id names somebody else.
#[test]
fn a_foreign_or_missing_proc_is_refused() {
    for before in ["umount -l /proc;", ""] {
        for (args, status) in [
            ("bench --mb 1 --repeats 1", 3),
            ("probe", 3),
            ("sharing --n 1,2 --reps 1", 3),
            ("survey 1", 3),
            ("audit 1", 3),
            // Its contract knows 1 only.
            ("memmap --mode heap --mb 1", 1),
        ] {
            let Some(output) = as_first_process(before, args) else {
                return;
            };
            assert_eq!(output.status.code(), Some(status), "{before} {output:?}");
            assert!(output.stdout.is_empty());
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(said.contains("mount -t proc proc /proc"), "{said}");
        }
    }
}
