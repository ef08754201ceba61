//! `bench`, whose children somebody else stops.

mod common;

use common::{command, whole_stream};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const CASES: usize = 40;
/// Children that stood still while they were waited for, and how many of them will do: each costs a
/// second.
const GIVEN_UP: &str = "skipped:target-was-stopped";
const ENOUGH: usize = 2;

/// Sends SIGSTOP to the newest child of a process, if it has more than one: the first one of `bench`
/// holds memory for all cases. Whoever gets a number next is not meant.
fn stop_newest_child(of: u32) -> Option<()> {
    let children = fs::read_to_string(format!("/proc/{of}/task/{of}/children"));
    let children = children.unwrap_or_default();
    let newest = children.split_whitespace().skip(1).last()?;
    let newest = newest.parse().ok().and_then(Pid::from_raw)?;
    let process = pidfd_open(newest, PidfdFlags::empty()).ok()?;
    let status = format!("/proc/{}/status", newest.as_raw_nonzero());
    let parent = fs::read_to_string(status).unwrap_or_default();
    let is_child = parent.lines().any(|line| line == format!("PPid:\t{of}"));
    // ESRCH: it has ended.
    (is_child && pidfd_send_signal(process, Signal::STOP).is_ok()).then_some(())
}

/// The case of a child that was stopped is lost, and says so; all others are measured.
#[test]
fn a_child_that_is_stopped_costs_its_own_row() {
    // A child that stands still in a warm pass does no harm to that, but is asked afterwards.
    let words = format!(
        "bench --mb 16 --layout contiguous --block 64K --repeats {CASES} --method vmread \
         --warm 8 --first-write --fragments leave -q"
    );
    let mut bench = command(&words)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stdout = BufReader::new(bench.stdout.take().unwrap());
    let given_up = Arc::new(AtomicUsize::new(0));
    let seen = given_up.clone();
    let reading = thread::spawn(move || {
        let mut text = String::new();
        for line in stdout.lines() {
            let line = line.unwrap();
            seen.fetch_add(usize::from(line.contains(GIVEN_UP)), Ordering::SeqCst);
            text += &(line + "\n");
        }
        text
    });
    let (id, mut attempts) = (bench.id(), 0);
    let ended = loop {
        if let Some(ended) = bench.try_wait().unwrap() {
            break ended;
        }
        // At another time of the case, each time.
        attempts += 1;
        thread::sleep(Duration::from_millis(100 + attempts * 7 % 50));
        if given_up.load(Ordering::SeqCst) < ENOUGH {
            stop_newest_child(id);
        }
    };
    let text = reading.join().unwrap();
    let stream = whole_stream(&text);
    let mut said = BTreeMap::<&str, usize>::new();
    for row in &stream.rows {
        *said.entry(&row["status"]).or_default() += 1;
    }
    eprintln!("{said:?}");
    assert_eq!(stream.rows.len(), CASES);
    assert_eq!(ended.code(), Some(3));
    assert!(said.remove(GIVEN_UP) >= Some(ENOUGH));
    assert!(said.remove("ok") > Some(0));
    // Until the end of the cold pass.
    said.remove("skipped:target-did-not-stay-parked");
    assert!(said.is_empty(), "{said:?}");
}
