//! Guests with the modules that questions need: what is in swap and what FUSE never answers is
//! measured, and a module that does not load is told.

use super::help::{KERNEL, becomes, outcome, temporary};
use cowitness_lab::scratch::Scratch;
use std::fs;

const WORDS: [&str; 5] = ["--", "probe", "--kind", "swapped,fuse-silent", "-q"];

/// The `modules` of the environment and, for each reader of one page of `kind`, the pages that
/// came out of swap and the status.
fn measured(out: &Scratch, kind: &str) -> (String, Vec<(String, String, String)>) {
    let rows = fs::read_to_string(out.path().join(format!("{KERNEL}.csv"))).unwrap();
    let note = rows.lines().find_map(|line| line.strip_prefix("#modules="));
    let lines = rows.lines().filter(|line| !line.starts_with('#'));
    let table = lines.collect::<Vec<_>>().join("\n");
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|column| column == name).unwrap();
    let of = |row: &csv::StringRecord| {
        let field = |name| row[at(name)].to_owned();
        (field("method"), field("swapped_in_pages"), field("status"))
    };
    let rows = reader.records().map(Result::unwrap);
    let rows = rows.filter(|row| row[at("kind")] == *kind && row[at("op")] == *"page");
    let rows = rows.map(|row| of(&row)).collect();
    (note.unwrap().to_owned(), rows)
}

fn owned(rows: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let owned = |&(a, b, c): &(&str, &str, &str)| (a.to_owned(), b.to_owned(), c.to_owned());
    rows.iter().map(owned).collect()
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_guest_swaps_and_has_fuse() {
    let out = temporary();
    let mut arguments = vec!["--kernel", KERNEL];
    arguments.extend(WORDS);
    becomes(&out, &arguments, 0, "pass", "");
    let (note, swapped) = measured(&out, "swapped");
    assert_eq!(note, "lzo_rle,zsmalloc,zram,fuse");
    // Whoever faults brings the page in; kcore has no frame, the others no file or leave it.
    let wanted = [
        ("none", "0", "ok"),
        ("proc", "1", "ok"),
        ("proc-seek", "1", "ok"),
        ("vmread", "1", "ok"),
        ("vmread-batch", "1", "ok"),
        ("ptrace", "1", "ok"),
        ("kcore", "0", "skipped:page-not-present"),
        ("map-files", "0", "skipped:no-file-behind-it"),
        ("hybrid", "0", "skipped:left-unread"),
    ];
    assert_eq!(swapped, owned(&wanted));
    let (_, silent) = measured(&out, "fuse-silent");
    let blocked = silent.iter().filter(|row| row.2 == "skipped:blocked");
    let blocked: Vec<&str> = blocked.map(|row| &*row.0).collect();
    let wanted = "proc proc-seek vmread vmread-batch ptrace map-files";
    assert_eq!(blocked.join(" "), wanted);
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_module_that_does_not_load_is_told() {
    let out = temporary();
    let blacklist = ["--append", "module_blacklist=zram"];
    let mut arguments = vec!["--kernel", KERNEL, blacklist[0], blacklist[1]];
    arguments.extend(WORDS);
    let detail = "swapped by proc: skipped: needs-setup, expected read";
    becomes(&out, &arguments, 1, "mismatch", detail);
    let (_, detail) = outcome(&out);
    let why = "modules that did not load: lzo_rle,zsmalloc,zram:EPERM,fuse";
    assert!(detail.ends_with(why), "{detail}");
    let console = fs::read_to_string(out.path().join(format!("{KERNEL}.log"))).unwrap();
    // load_module() of kernel/module.c, `blacklisted`.
    let line = "cowitness: init: cannot load module zram: EPERM";
    assert_eq!(console.matches(line).count(), 1, "{console}");
    let (note, swapped) = measured(&out, "swapped");
    assert_eq!(note, "lzo_rle,zsmalloc,zram:EPERM,fuse");
    assert!(swapped.iter().all(|row| row.2 == "skipped:needs-setup"));
}
