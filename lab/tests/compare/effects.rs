//! What a read changes beside split pages.

use super::common::lab;
use super::seal::resealed;
use super::{PROBE, SLOW, changed, compared};

/// `row` of `stream` with another value in a column behind the label, which may have commas of its
/// own, within quotes.
fn with_field(stream: &str, row: &str, column: &str, value: &str) -> String {
    let header = stream.lines().find(|line| line.starts_with("record,"));
    let names: Vec<&str> = header.unwrap().split(',').collect();
    let place = names.iter().position(|name| *name == column).unwrap();
    let mut fields: Vec<&str> = row.split(',').collect();
    let more = fields.len() - names.len();
    fields[place + more] = value;
    fields.join(",")
}

/// Columns of `bench` beside split pages.
#[test]
fn a_side_effect_of_a_setting_counts() {
    for name in [
        "target_private_kib",
        "target_rss_kib",
        "target_pss_kib",
        "target_minflt",
        "target_majflt",
        "reader_minflt_warm",
    ] {
        let with = |value: &str| {
            let line = |line: &str| match line.starts_with("bench,") && line.contains(",proc,") {
                true => with_field(SLOW, line, name, value),
                false => line.to_owned(),
            };
            let lines: Vec<String> = SLOW.lines().map(line).collect();
            resealed(&(lines.join("\n") + "\n"))
        };
        let ran = compared(&with("0"), &with("7"));
        assert_eq!(ran.status, Some(4), "{}{}", ran.stdout, ran.stderr);
        let want = format!("proc: {name} unchanged in A, grew in ");
        assert!(ran.stdout.contains(&want), "{}", ran.stdout);
    }
}

/// Columns of `probe`, and what stands for each growth of 2048: a huge page of the target that is
/// split, and what the two processes have alone.
const MARKS: [(&str, &str); 10] = [
    ("target_anon_huge_kib", "H-2048"),
    ("target_private_kib", "U-2048"),
    ("target_pss_kib", "B-2048"),
    ("target_shared_dirty_kib", "E-2048"),
    ("partner_private_kib", "O-2048"),
    ("target_vm_size_kib", "G-2048"),
    ("target_minflt", "m-2048"),
    ("target_majflt", "M-2048"),
    ("reader_minflt", "q2048"),
    ("reader_majflt", "Q2048"),
];

#[test]
fn every_side_effect_of_a_probe_counts() {
    let mut lines = PROBE.lines();
    let row = lines.find(|line| line.contains("prot-none,proc,page,"));
    let row = row.unwrap();
    for (column, mark) in MARKS {
        let with = |value| {
            let other = with_field(PROBE, row, column, value);
            resealed(&PROBE.replace(row, &other))
        };
        let changed = with(mark.trim_start_matches(char::is_alphabetic));
        let ran = compared(&with("0"), &changed);
        assert_eq!(ran.status, Some(4), "{column}: {}", ran.stdout);
        let want = format!("changed: prot-none, page, proc: read in A, read {mark} in B");
        assert!(ran.stdout.contains(&want), "{want}: {}", ran.stdout);
        let page = lab(&["report", "-o", "-", "-"], changed.as_bytes()).stdout;
        assert!(page.contains(mark), "{column}");
    }
}

/// Large folios and what is mapped around a fault make more or less of the same change; what was
/// split or swapped in is counted.
#[test]
fn how_much_was_faulted_in_is_no_semantics_and_how_much_was_split_is() {
    let row = |effects: &str| format!("vmread,cross,8192,4096,EFAULT,ok,pfn,16,{effects}");
    let known = |effects: &str| {
        let from = "vmread,cross,8192,4096,EFAULT,ok,pfn,1,1,,,,,,,,";
        changed(PROBE, from, &row(effects)).replace("=1764439500", "=1764439502")
    };
    let before = known("1,16,0,3,0,0,0,64,");
    for (effects, status, want) in [
        ("1,1,0,3,0,0,0,4,", 0, "not counted: hole, cross, vmread: "),
        ("1,0,0,3,0,0,0,4,", 4, "changed: hole, cross, vmread: "),
        ("2,16,0,3,0,0,0,64,", 4, "changed: hole, cross, vmread: "),
        ("1,16,0,3,0,0,0,-64,", 4, "changed: hole, cross, vmread: "),
    ] {
        let after = known(effects).replace("=1764439502", "=1764439503");
        let ran = compared(&before, &after);
        assert_eq!(ran.status, Some(status), "{effects}: {}", ran.stdout);
        assert!(ran.stdout.contains(want), "{effects}: {}", ran.stdout);
    }
}

#[test]
fn side_effects_of_which_one_side_does_not_tell_are_no_change() {
    let known = PROBE.replace(
        "proc,page,4096,4096,,ok,pfn,1,0,,",
        "proc,page,4096,4096,,ok,pfn,1,0,3,",
    );
    let known = resealed(&known).replace("=1764439500", "=1764439501");
    let ran = lab(&["compare", "probe.csv", "-"], known.as_bytes());
    assert_eq!(ran.status, Some(0), "{}", ran.stdout);
    let want = "  not compared: prot-none, page, proc: side effects F unknown in A\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}
