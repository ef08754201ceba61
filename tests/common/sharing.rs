//! Running `sharing` and reading its two streams; and what keeps its tests clean.
#![allow(
    dead_code,
    reason = "each test program is compiled with this module and uses a part of it"
)]

use crate::common::{Row, Stream, command, whole_stream};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One run at a time: files in memory of one would be growth of Shmem to the other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The two streams: processes and fits.
pub fn streams(text: &str) -> (Stream, Stream) {
    let second = text.rfind("#cowitness 1\n").expect("a stream");
    assert!(second > 0, "a second stream");
    (whole_stream(&text[..second]), whole_stream(&text[second..]))
}

/// Both streams of a run with these options, whose status must be `status`.
pub fn sharing(options: &str, program: &[&str], status: i32) -> (Stream, Stream) {
    both(&output(options, program), status)
}

/// Both streams of a run that ended with this status.
pub fn both(output: &Output, status: i32) -> (Stream, Stream) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    streams(std::str::from_utf8(&output.stdout).expect("CSV is UTF-8"))
}

/// The rows of an arm.
pub fn arm<'s>(stream: &'s Stream, name: &str) -> Vec<&'s Row> {
    let rows: Vec<&Row> = stream
        .rows
        .iter()
        .filter(|row| row["arm"] == name)
        .collect();
    assert!(!rows.is_empty(), "rows of {name}");
    rows
}

/// What the run says when others on the machine spoil it.
const COMPANY: &str = "others used shared memory of the machine meanwhile";

/// A run whose arms have these verdicts. Only a run that says itself that it had company is
/// repeated; a wrong verdict is never.
pub fn with_verdicts(
    options: &str,
    program: &[&str],
    wanted: &[(&str, &[&str])],
) -> (Stream, Stream) {
    for _ in 0..6 {
        let output = output(options, program);
        let (processes, fits) = streams(std::str::from_utf8(&output.stdout).expect("UTF-8"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let has_company = stderr.contains(COMPANY);
        let seen = verdicts(&fits);
        assert_eq!(seen.len(), wanted.len());
        for ((arm, verdict), (name, allowed)) in seen.iter().zip(wanted) {
            assert_eq!(arm, name);
            let is_doubt = has_company && *verdict == "invalid";
            assert!(allowed.contains(verdict) || is_doubt, "{seen:?}: {stderr}");
        }
        if !has_company {
            assert_eq!(output.status.code(), Some(0), "{stderr}");
            return (processes, fits);
        }
    }
    panic!("others use shared memory all the time: run this alone");
}

fn output(options: &str, program: &[&str]) -> Output {
    command(&format!("sharing -q {options}"))
        .args(if program.is_empty() { &[][..] } else { &["--"] })
        .args(program)
        .output()
        .expect("the binary starts")
}

/// A column with decimals.
pub fn decimal(row: &Row, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

/// Every status there is.
pub fn statuses(stream: &Stream) -> BTreeSet<&str> {
    stream.rows.iter().map(|row| &*row["status"]).collect()
}

/// Arm and verdict of each fit.
pub fn verdicts(fits: &Stream) -> Vec<(&str, &str)> {
    let of = |row| -> (&str, &str) {
        let row: &Row = row;
        (&row["arm"], &row["verdict"])
    };
    fits.rows.iter().map(of).collect()
}

/// A running command that is killed when the test is over.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processes whose command line contains `marker`.
pub fn processes_with(marker: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(marker)
    })
    .collect()
}

/// Waits until `condition` holds; a test that waits for ever fails.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        sleep(Duration::from_millis(5));
    }
}

/// A number that stands in the command lines of a test's subjects and nowhere else. What
/// still has it when the test is over is killed.
pub struct Marker(pub String);

impl Marker {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1000);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(format!("{count}{}.25", std::process::id()))
    }

    pub fn wait_until_gone(&self) {
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

/// A dynamic program with much writable data.
pub const PYTHON: &str = "python3";
