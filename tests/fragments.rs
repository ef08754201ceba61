//! `bench --fragments`: who holds the machine's small free blocks, and for how long.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{group, in_a_session, run, stdout};
use helpers::until;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Long enough to look at, and large enough for 2 GiB of small blocks.
const LONG: &str = "bench --mb 32 --layout contiguous --block 64K --repeats 40";

/// A run, killed and reaped when dropped, and the notes and header it began with.
struct Running {
    child: Child,
    notes: Vec<String>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let notes = lines
            .by_ref()
            .map(Result::unwrap)
            .take_while(|line| line.starts_with('#'))
            .collect();
        // Read on, so that it does not wait for us.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, notes }
    }

    fn note(&self, key: &str) -> Option<&str> {
        note(&self.notes, key)
    }

    /// Processes of it that the kernel is to end first, with their resident KiB.
    fn holders(&self) -> Vec<(u32, u64)> {
        let members = group(self.child.id()).into_iter();
        let pids = members.map(|stat| stat.split(' ').next().unwrap().parse::<u32>().unwrap());
        pids.filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))
                .is_ok_and(|score| score.trim() == "1000")
        })
        .filter_map(|pid| {
            let path = format!("/proc/{pid}/status");
            let kib = common::field(&path, "RssAnon:").next()?.parse().ok()?;
            Some((pid, kib))
        })
        .collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn note<'n>(notes: &'n [String], key: &str) -> Option<&'n str> {
    let after = |line: &'n String| line.strip_prefix(&format!("#{key}="));
    notes.iter().find_map(after)
}

/// A run that holds some, unless this machine has none or too many.
fn holding() -> Option<Running> {
    let running = Running::start(in_a_session(LONG));
    if running.note("fragments") == Some("held") {
        return Some(running);
    }
    eprintln!("skipped: {:?}", running.note("fragments"));
    None
}

#[test]
fn processes_hold_as_much_as_is_noted_until_the_run_ends() {
    let Some(running) = holding() else { return };
    let noted: u64 = running.note("fragments_kib").unwrap().parse().unwrap();
    assert!(noted > 0);
    assert!(running.note("fragments_us").unwrap().parse::<u64>().is_ok());
    let left = running.note("fragments_left_kib").unwrap();
    assert!(left.parse::<u64>().is_ok(), "{left}");
    let holders = running.holders();
    assert!((1..=8).contains(&holders.len()), "{holders:?}");
    let kib: u64 = holders.iter().map(|(_, kib)| kib).sum();
    assert!(
        (noted..noted + 2048 * holders.len() as u64).contains(&kib),
        "{kib} of {noted}"
    );
    drop(running);
    until("they end with the run", || {
        let there = |pid| fs::exists(format!("/proc/{pid}")).unwrap();
        holders.iter().all(|&(pid, _)| !there(pid))
    });
}

#[test]
fn a_run_whose_blocks_were_lost_says_so() {
    let Some(mut running) = holding() else { return };
    let (pid, _) = running.holders()[0];
    let kill = Command::new("kill")
        .args(["-KILL", &pid.to_string()])
        .status();
    assert!(kill.unwrap().success());
    let status = running.child.wait().unwrap();
    assert_eq!(status.code(), Some(3));
    let mut stderr = running.child.stderr.take().unwrap();
    let stderr = std::io::read_to_string(&mut stderr).unwrap();
    assert!(
        stderr.contains("small free blocks") && stderr.contains("--fragments leave"),
        "{stderr}"
    );
}

#[test]
fn who_says_leave_gets_no_such_process() {
    let mut command = in_a_session(LONG);
    command.args(["--fragments", "leave"]);
    let running = Running::start(command);
    assert_eq!(running.note("fragments"), Some("left"));
    assert_eq!(running.note("fragments_kib"), None);
    assert_eq!(running.holders(), []);
}

#[test]
fn huge_pages_need_none() {
    let output = run("bench --mb 4 --pages thp --layout contiguous --block 64K --repeats 1 -q");
    let notes: Vec<_> = stdout(&output).lines().map(String::from).collect();
    assert!(note(&notes, "fragments").unwrap().starts_with("left: huge"));
}

#[test]
fn what_costs_more_than_what_is_measured_is_left() {
    let output = run("bench --mb 1 --layout contiguous --block 64K --repeats 1 -q");
    let notes: Vec<_> = stdout(&output).lines().map(String::from).collect();
    match note(&notes, "fragments").unwrap() {
        "held" => {
            let kib: u64 = note(&notes, "fragments_kib").unwrap().parse().unwrap();
            assert!(kib <= 64 << 10, "{kib}");
        }
        other => assert!(other == "none" || other.starts_with("left: "), "{other}"),
    }
}
