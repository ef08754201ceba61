//! What is said on standard error.

use super::common::{is_root, run, stdout, whole_stream};
use super::helpers::{PREFORKED, Target, get};

#[test]
fn words_give_prediction_and_result() {
    let server = Target::new(PREFORKED);
    let worker = server.ready.split(' ').next().unwrap();
    let output = run(&format!("audit --stop --method proc,vmread {worker}"));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains(&format!("cowitness audit: process {worker}, stopped")),
        "{text}"
    );
    let predictions = ["; predicted ", "; not predicted"].map(|words| text.matches(words).count());
    assert_eq!(predictions[0] + predictions[1], 4, "{text}");
    assert!(!text.contains("NOT as predicted"), "{text}");
}

/// A reader that could not begin has no figures, and does not stand for the process.
#[test]
fn a_reader_that_is_refused_has_no_words_of_figures() {
    let target = Target::new(PREFORKED);
    let output = run(&format!("audit --method kcore,proc {}", target.pid()));
    let stream = whole_stream(std::str::from_utf8(&output.stdout).unwrap());
    if !stream.rows[0]["status"].starts_with("skipped:") {
        eprintln!("skipped: /proc/kcore can be read here");
        return;
    }
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(" 0 readable VMAs"), "{text}");
    let kcore = text
        .lines()
        .find(|line| line.starts_with("  kcore"))
        .unwrap();
    assert!(
        kcore.ends_with("read nothing: see the status column"),
        "{text}"
    );
    assert_eq!(text.matches("; predicted ").count(), 2, "{text}");
}

/// What splits nothing by its making is predicted to, without a trial.
#[test]
fn who_reads_files_is_predicted_to_split_nothing() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let server = Target::new(PREFORKED);
    let worker = server.ready.split(' ').next().unwrap();
    let output = run(&format!("audit --stop --method map-files {worker}"));
    let row = &whole_stream(&stdout(&output)).rows[0];
    let columns = ["predicted_split_pages", "split_pages"];
    assert_eq!(columns.map(|column| get(row, column)), [0, 0], "{row:?}");
    assert!(get(row, "shared_before") > 0, "{row:?}");
}
