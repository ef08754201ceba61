//! `audit` against processes whose memory is known: what it predicts, what it reads, what it
//! changes, and that it lets go of what it has stopped.

#[path = "../common/mod.rs"]
mod common;
mod frames;
#[path = "../common/audit.rs"]
mod helpers;
mod mappings;
mod midway;
mod refused;
mod stopped;
mod words;

use common::{command, is_root, number, run, vmread_splits, whole_stream};
use helpers::{Target, get, preforked_and_locked};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A target large enough that reading it in 16-byte pieces takes longer than this test.
const LARGE: &str = r#"
import mmap, sys
memory = mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for at in range(0, len(memory), 4096):
    memory[at] = 1
print("ready", flush=True)
sys.stdin.read()
"#;

fn slow(pid: u32, more: &str) -> Child {
    command(&format!("audit -q --block 128 {more} {pid}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// A Python process that is nobody's.
fn nobodys(script: &str) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]).uid(65534).gid(65534);
    command.current_dir("/");
    command
}

/// What one reader has split, the next finds split; and warm passes change nothing.
#[test]
fn readers_come_in_the_order_given_and_each_has_its_passes() {
    let server = Target::new(&preforked_and_locked());
    let worker = server.ready.split(' ').next().unwrap();
    let output = run(&format!(
        "audit -q {worker} --stop --method vmread,proc --warm 2 --block 64K"
    ));
    // Who sees no frames knows what vmread has split at most.
    let hidden = !is_root() && vmread_splits();
    assert_eq!(output.status.code(), Some(if hidden { 3 } else { 0 }));
    let stream = whole_stream(&String::from_utf8(output.stdout).unwrap());
    let order: Vec<_> = stream
        .rows
        .iter()
        .map(|row| (&*row["method"], get(row, "position"), get(row, "repeat")))
        .collect();
    assert_eq!(
        order,
        [
            ("vmread", 1, 1),
            ("vmread", 1, 2),
            ("vmread", 1, 3),
            ("proc", 2, 1),
            ("proc", 2, 2),
            ("proc", 2, 3)
        ]
    );
    for row in &stream.rows {
        let cold = get(row, "repeat") == 1;
        assert_eq!(row["status"], "ok");
        assert_eq!(get(row, "block_bytes"), 65536);
        for column in [
            "cold_ns",
            "cold_mib_s",
            "reader_minflt_cold",
            "predicted_split_pages",
        ] {
            assert_eq!(row[column].is_empty(), !cold, "{column}: {row:?}");
        }
        for column in ["warm_ns", "warm_mib_s", "reader_minflt_warm"] {
            assert_eq!(row[column].is_empty(), cold, "{column}: {row:?}");
        }
        if !cold || row["method"] == "proc" {
            assert_eq!(get(row, "split_pages"), 0, "{row:?}");
            assert_eq!(get(row, "faulted_in_pages"), 0, "{row:?}");
        }
    }
    let cold = &stream.rows[0];
    assert_eq!(get(cold, "split_at_most_pages") > 0, vmread_splits());
    let split = number(cold, "split_pages");
    assert_eq!(
        split,
        (!hidden).then(|| get(cold, "split_at_least_pages")),
        "{cold:?}"
    );
}
