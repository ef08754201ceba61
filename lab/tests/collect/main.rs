//! `matrix --collect` over folders as `scripts/` brings them back, and what `kernels` and
//! `matrix` say when a program is missing. Nothing is booted.

mod console;
mod folder;
mod hosts;
mod programs;
mod rows;
#[path = "../seal/mod.rs"]
mod seal;

use cowitness_lab::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONSOLE: &str = include_str!("../data/consoles/6.12-x86_64.log");

/// The first two streams of a real console, as a file has them.
fn rows() -> String {
    let start = CONSOLE.find("#cowitness 1").unwrap();
    let end = CONSOLE.rfind("#end ").unwrap();
    let end = end + CONSOLE[end..].find('\n').unwrap() + 1;
    let streams = CONSOLE[start..end].replace('\r', "");
    let lines = streams.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("cowitness: "))
        .collect()
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn collect(hosts: &Scratch) -> (Output, String, Vec<csv::StringRecord>) {
    let out = Scratch::new().unwrap();
    let mut command = program(&["matrix", "--collect"]);
    let ran = command
        .arg(hosts.path())
        .arg("-o")
        .arg(out.path())
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    let csv = fs::read(out.path().join("matrix.csv")).unwrap_or_default();
    let rows = csv::Reader::from_reader(&*csv)
        .records()
        .map(Result::unwrap)
        .collect();
    (ran, text, rows)
}

/// The outcome and its detail of a host whose file is `text`.
fn of_file(text: &str) -> (String, String) {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), text);
    let (ran, _, lines) = collect(&hosts);
    let (outcome, detail) = (lines[0][15].to_owned(), lines[0][16].to_owned());
    assert_eq!(ran.status.code() == Some(0), outcome == "pass", "{outcome}");
    (outcome, detail)
}
