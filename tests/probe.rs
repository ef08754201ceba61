//! `probe` and `selftest` on the running kernel.

mod common;

use common::{Row, command_as_nobody, number, run, stdout, vmread_splits, whole_stream};
use std::fs;

/// The kinds that every machine has, and the readers of any memory.
const BASIC: &str = "--kind anon-fork-shared,prot-none,prot-none-untouched,hole \
    --method proc,proc-seek,vmread,vmread-batch,ptrace";

/// What the kernel's own sources say, whatever its version: mm/gup.c refuses a pin
/// without FOLL_FORCE where reading is not allowed; where there is no VMA neither side
/// finds a page.
#[test]
fn what_no_kernel_reads_is_refused_in_each_readers_words() {
    let stream = whole_stream(&stdout(&run(&format!("probe -q {BASIC}"))));
    assert_eq!(stream.rows.len(), 8 * 6);
    for row in &stream.rows {
        let class = match row["method"].as_str() {
            "none" => continue,
            "vmread" | "vmread-batch" => "EFAULT",
            _ => "EIO",
        };
        let closed =
            row["kind"] == "hole" || (row["kind"] != "anon-fork-shared" && class == "EFAULT");
        let page = number(row, "page_bytes");
        match (closed, row["op"].as_str()) {
            (true, "page") => assert_eq!(
                (number(row, "returned_bytes"), &*row["errno"]),
                (Some(0), class),
                "{row:?}"
            ),
            (true, _) => assert_eq!(
                (number(row, "returned_bytes"), &*row["errno"]),
                (page, class),
                "{row:?}"
            ),
            (false, _) if row["kind"] == "anon-fork-shared" => {
                assert_eq!(row["returned_bytes"], row["requested_bytes"]);
                assert_eq!((&*row["errno"], &*row["content"]), ("", "ok"));
            }
            // PROT_NONE through /proc/PID/mem: as proc_mem.force_override says.
            (false, _) => {}
        }
    }
}

fn changes_are_who_reads(rows: &[Row]) {
    for row in rows {
        assert_eq!(row["status"], "ok", "{row:?}");
        let tracked = number(row, "tracked_pages").unwrap();
        let split = number(row, "split_pages");
        let reads_shared = number(row, "returned_bytes").is_some_and(|bytes| bytes > 0);
        let want = match row["method"].as_str() {
            "vmread" | "vmread-batch" if vmread_splits() && reads_shared => {
                // Behind the readable page of a cross nothing is read.
                if row["op"] == "cross" { 1 } else { tracked }
            }
            _ => 0,
        };
        assert_eq!(split, Some(want), "{row:?}");
        assert_eq!(number(row, "target_minflt"), Some(0), "{row:?}");
        assert_eq!(
            number(row, "partner_private_kib"),
            Some(want * number(row, "page_bytes").unwrap() / 1024)
        );
        if row["method"] == "none" {
            for column in [
                "target_rss_kib",
                "target_pss_kib",
                "target_private_kib",
                "target_referenced_kib",
                "faulted_in_pages",
                "reader_minflt",
            ] {
                assert_eq!(number(row, column), Some(0), "{column} {row:?}");
            }
            assert!(row["returned_bytes"].is_empty() && row["errno"].is_empty());
        }
    }
}

#[test]
fn changes_belong_to_the_reader_that_makes_them() {
    let stream = whole_stream(&stdout(&run(&format!("probe {BASIC}"))));
    changes_are_who_reads(&stream.rows);
}

#[test]
fn an_ordinary_user_gets_the_same_answers() {
    let Some((mut command, _folder)) = command_as_nobody(&format!("probe -q {BASIC}")) else {
        return;
    };
    let output = command.output().unwrap();
    let stream = whole_stream(&stdout(&output));
    assert!(stream.rows.iter().all(|row| row["evidence"] == "exclusive"));
    assert!(
        stream
            .rows
            .iter()
            .all(|row| row["partner_changed_pages"].is_empty())
    );
    changes_are_who_reads(&stream.rows);
}

#[test]
fn readers_can_be_chosen_and_others_are_refused() {
    let stream = whole_stream(&stdout(&run(
        "probe --method ptrace --kind hole -q --label here",
    )));
    assert_eq!(stream.rows.len(), 2 * 2);
    assert!(stream.rows.iter().all(|row| row["label"] == "here"));
    for refused in ["proc,memcpy", "proc,proc", "all,proc", "none"] {
        let output = run(&format!("probe --method {refused}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        let expected = format!(
            "cowitness: error: --method '{refused}': must be all, or names of proc, proc-seek, \
             vmread, vmread-batch, ptrace, kcore, map-files, hybrid, none twice\n\
             usage: cowitness probe [options]\n"
        );
        assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    }
}

/// The reasons that rows can have, from the sources, each explained in METHOD.
#[test]
fn every_reason_of_a_row_is_explained() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let read = |path: &str| fs::read_to_string(format!("{root}{path}")).unwrap();
    let method = read("METHOD.md");
    let mut found = 0;
    for path in [
        "src/emit/probe_row.rs",
        "src/measure/case.rs",
        "src/measure/probe/judge.rs",
        "src/measure/probe/look.rs",
        "src/measure/probe/mod.rs",
        "src/measure/probe/read.rs",
    ] {
        let source = read(path);
        let shipped = source.split("#[cfg(test)]").next().unwrap();
        for word in shipped.split('"').skip(1).step_by(2) {
            let is_reason = word.contains('-')
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
            if is_reason && word != "map-files" {
                assert!(method.contains(&format!("`{word}`")), "{path}: {word}");
                found += 1;
            }
        }
    }
    assert!(found > 25, "{found}");
}

#[test]
fn selftest_counts_its_lines() {
    let text = stdout(&run("selftest"));
    let lines: Vec<&str> = text.lines().collect();
    let count = |word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
    let (ok, skip) = (count("ok "), count("skip "));
    assert_eq!(lines.len(), ok + skip + 1, "{text}");
    assert_eq!(
        lines.last(),
        Some(&&*format!("{ok} passed, 0 failed, {skip} skipped"))
    );
    for name in [
        "clock",
        "fork",
        "smaps",
        "evidence: ",
        "proc: ",
        "vmread: ",
        "prot-none: ",
        "hole: proc EIO, vmread EFAULT",
    ] {
        let line = format!("ok {name}");
        assert!(
            lines.iter().any(|found| found.starts_with(&line)),
            "{name}: {text}"
        );
    }
}

/// Of this kernel's smaps_rollup, by what the file itself has: the names in front of the colons.
#[test]
fn selftest_counts_the_fields_of_smaps_rollup() {
    let text = stdout(&run("selftest"));
    let mut lines = text.lines();
    let said = lines.find(|line| line.contains(" smaps-rollup: ")).unwrap();
    let Ok(file) = fs::read_to_string("/proc/self/smaps_rollup") else {
        assert_eq!(said, "skip smaps-rollup: ENOENT");
        return;
    };
    let fields: Vec<&str> = file
        .lines()
        .skip(1)
        .map(|line| line.split(':').next().unwrap())
        .collect();
    let there = format!("ok smaps-rollup: {} of 22 known fields", fields.len());
    assert!(said.starts_with(&there), "{said}");
    let lacking = said.split_once(", without ").map_or("", |(_, names)| names);
    let lacking: Vec<&str> = lacking.split_terminator(", ").collect();
    assert_eq!(fields.len() + lacking.len(), 22, "{said}");
    assert!(!lacking.iter().any(|name| fields.contains(name)), "{said}");
}

/// A full device takes nothing: the run fails, and says so.
#[test]
fn selftest_without_output_is_an_error() {
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = common::command("selftest").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}
