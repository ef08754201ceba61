//! `matrix --collect` over folders as `scripts/` brings them back, and what `kernels` and
//! `matrix` say when a program is missing. Nothing is booted.

use cowitness_lab::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONSOLE: &str = include_str!("data/consoles/6.12-x86_64.log");

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

#[test]
fn hosts_become_lines_and_what_failed_decides_the_status() {
    let hosts = Scratch::new().unwrap();
    let at = |name: &str| hosts.path().join(name);
    put(&at("alpha/results.csv"), &rows());
    put(&at("beta.csv"), &rows());
    put(&at("notes.txt"), "of no host");
    put(&at("matrix.csv"), "record,machine\n");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(0), "{text}");
    let names: Vec<&str> = lines.iter().map(|line| &line[1]).collect();
    assert_eq!(names, ["alpha", "beta"]);
    let fields: Vec<&str> = lines[0].iter().skip(2).collect();
    let wanted = [
        "6.12.117+deb13-cloud-amd64",
        "x86_64",
        "4096",
        "emulated",
        "0",
        "",
        "100",
        "",
        "read",
        "EFAULT",
        "EIO",
        "EFAULT",
        "",
        "pass",
        "",
        "",
    ];
    assert_eq!(fields, wanted);

    put(&at("gamma/failed"), "no route to host\nand more\n");
    put(&at("delta/log"), "");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(1));
    let outcomes: Vec<(&str, &str)> = lines.iter().map(|line| (&line[1], &line[15])).collect();
    let failed = [
        ("alpha", "pass"),
        ("beta", "pass"),
        ("delta", "failed"),
        ("gamma", "failed"),
    ];
    assert_eq!(outcomes, failed);
    assert!(
        text.ends_with("\ngamma: failed: no route to host\n"),
        "{text}"
    );
    assert!(text.contains("delta: failed: cannot open "), "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("cowitness-lab: error: 2 of 4 machines failed\n"),
        "{said}"
    );

    put(
        &at("alpha/results.csv"),
        &rows().replacen(",proc,", ",vmread,", 1),
    );
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!((&lines[0][15], &lines[0][2]), ("damaged", ""));
    assert!(lines[0][16].contains("bad checksum"), "{text}");
}

#[test]
fn rows_of_two_machines_or_of_one_that_failed_are_not_believed() {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), &rows());
    let old = include_str!("data/consoles/5.10-aarch64.log");
    let start = old.find("#cowitness 1").unwrap();
    let end = old[start..].find("cowitness: init: end").unwrap();
    let two = rows() + &old[start..start + end].replace('\r', "");
    put(&hosts.path().join("beta/results.csv"), &two);
    let (ran, _, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!((&lines[1][15], &lines[1][2]), ("damaged", ""));
    let mixed = "one of them 5.10.0-32-cloud-arm64, aarch64, pages of 4096 bytes";
    assert!(lines[1][16].ends_with(mixed), "{}", &lines[1][16]);
    fs::remove_dir_all(hosts.path().join("beta")).unwrap();
    put(&hosts.path().join("alpha/failed"), "timed out\n");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(
        (&lines[0][15], &lines[0][16], &lines[0][2]),
        ("failed", "timed out", ""),
        "{text}"
    );
}

#[test]
fn a_folder_without_hosts_is_an_error() {
    let hosts = Scratch::new().unwrap();
    let (ran, text, _) = collect(&hosts);
    assert_eq!((ran.status.code(), &*text), (Some(1), ""));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.starts_with("cowitness-lab: error: no host in "),
        "{said}"
    );
}

#[test]
fn missing_programs_are_named_with_their_packages() {
    let (nothing, out) = (Scratch::new().unwrap(), Scratch::new().unwrap());
    let mut command = program(&["matrix", "-o"]);
    command.arg(out.path()).env("PATH", nothing.path());
    let ran = command.output().unwrap();
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(1), &b""[..]));
    assert_eq!(
        String::from_utf8(ran.stderr).unwrap(),
        "cowitness-lab: error: not installed here: qemu-system-aarch64, qemu-system-x86_64, \
         setpriv\ncowitness-lab: hint: on Debian and Ubuntu: apt-get install qemu-system-arm \
         qemu-system-x86 util-linux\n"
    );
    let mut command = program(&["kernels", "--fetch", "--kernel=6.1-x86_64", "--cache"]);
    command
        .arg(out.path().join("cache"))
        .env("PATH", nothing.path());
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said = String::from_utf8(ran.stderr).unwrap();
    let wanted = "6.1-x86_64: not installed here: apt-get, apt-cache, dpkg-deb; on Debian and \
                  Ubuntu: apt-get install apt dpkg";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn kernels_are_listed_without_a_network() {
    let cache = Scratch::new().unwrap();
    let mut command = program(&["kernels", "--arch=aarch64", "--cache"]);
    let ran = command.arg(cache.path()).env("PATH", "").output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let text = String::from_utf8(ran.stdout).unwrap();
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert!(
        rows.iter()
            .all(|row| row.contains("| aarch64 ") && row.contains("| no ")),
        "{text}"
    );
    assert!(rows.iter().any(|row| row.contains("| 16 KiB ")), "{text}");
    let ran = program(&["kernels", "--kernel=6.13"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.starts_with("cowitness-lab: error: unknown kernel '6.13'; kernels are 5.10-x86_64, ")
    );
    assert!(
        said.ends_with("usage: cowitness-lab kernels [options]\n"),
        "{said}"
    );
}
