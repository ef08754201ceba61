//! What becomes of each host, and what that makes of the run.

use super::{collect, program, put, rows};
use cowitness_lab::scratch::Scratch;
use std::fs;

/// Machine and outcome of each line.
fn outcomes(lines: &[csv::StringRecord]) -> Vec<(&str, &str)> {
    lines.iter().map(|line| (&line[1], &line[15])).collect()
}

/// The line of a host whose rows are `rows()`, behind its name: the recorded kernel, emulated, and
/// what its readers split and were answered.
const LINE: [&str; 26] = [
    "6.12.117+deb13-cloud-amd64",
    "x86_64",
    "4096",
    "emulated",
    // By probe where bench did not ask.
    "0",
    "0",
    "100",
    "100",
    "read",
    "EFAULT",
    "EIO",
    "EFAULT",
    "",
    "pass",
    "",
    "",
    "0",
    "read",
    "EFAULT",
    "read",
    "EIO",
    "EFAULT",
    "EIO",
    // hybrid's.
    "0",
    "read",
    "EIO",
];

#[test]
fn hosts_become_lines() {
    let hosts = Scratch::new().unwrap();
    let at = |name: &str| hosts.path().join(name);
    put(&at("alpha/results.csv"), &rows());
    put(&at("beta.csv"), &rows());
    put(&at("notes.txt"), "of no host");
    put(&at("matrix.csv"), "record,machine\n");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(0), "{text}");
    assert_eq!(outcomes(&lines), [("alpha", "pass"), ("beta", "pass")]);
    assert_eq!(lines[0].iter().skip(2).collect::<Vec<_>>(), LINE);
}

#[test]
fn what_failed_decides_the_status() {
    let hosts = Scratch::new().unwrap();
    let at = |name: &str| hosts.path().join(name);
    put(&at("alpha/results.csv"), &rows());
    put(&at("beta.csv"), &rows());
    put(&at("gamma/failed"), "no route to host\nand more\n");
    put(&at("delta/log"), "");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(1));
    let failed = [
        ("alpha", "pass"),
        ("beta", "pass"),
        ("delta", "failed"),
        ("gamma", "failed"),
    ];
    assert_eq!(outcomes(&lines), failed);
    assert!(
        text.ends_with("\ngamma: failed: no route to host\n"),
        "{text}"
    );
    assert!(text.contains("delta: failed: cannot read "), "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("cowitness-lab: error: 2 of 4 machines failed\n"),
        "{said}"
    );

    // Damage weighs more than failure.
    let damaged = rows().replacen(",proc,", ",ptrace,", 1);
    put(&at("alpha/results.csv"), &damaged);
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!((&lines[0][15], &lines[0][2]), ("damaged", ""));
    assert!(lines[0][16].contains("bad checksum"), "{text}");
}

#[test]
fn rows_of_two_machines_or_of_one_that_failed_are_not_believed() {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), &rows());
    let old = include_str!("../data/consoles/5.10-aarch64.log");
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
fn the_reason_of_a_failure_is_shown_to_its_end() {
    let hosts = Scratch::new().unwrap();
    let reason = "fatal: the task at line 40 ended: ssh: connect to host rack-4.example port 22: \
                  Connection refused";
    put(&hosts.path().join("alpha/failed"), reason);
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(&lines[0][16], reason);
    assert!(text.contains(reason), "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(!said.contains(".log"), "{said}");
}

/// A page that lacks hosts says which, and why.
#[test]
fn hosts_that_failed_stand_in_the_page() {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), &rows());
    put(&hosts.path().join("beta/failed"), "no route to host\n");
    let report = |options: &[&str]| {
        let ran = program(&["report", "-o", "-"])
            .args(options)
            .arg(hosts.path())
            .output()
            .unwrap();
        let page = String::from_utf8(ran.stdout).unwrap();
        assert!(page.contains("beta has failed: no route to host"), "{page}");
        ran.status.code()
    };
    assert_eq!(report(&[]), Some(3));
    assert_eq!(report(&["--partial"]), Some(0));
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
