//! A want of descriptors, which is no answer of any kind.

use super::common::BINARY;
use std::process::Command;

/// A want of descriptors says nothing of a kind, nor of what may be done here.
#[test]
fn a_want_of_descriptors_is_told_as_such() {
    let script = format!("ulimit -n 7; exec {BINARY} probe -q --kind memfd-secret --method proc");
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<&str> = text
        .lines()
        .filter(|row| row.starts_with("probe,"))
        .collect();
    assert_eq!(rows.len(), 4, "{text}");
    // A kernel that has none says so before it wants a descriptor.
    if rows[0].contains(",skipped:no-such-kind-here,") {
        return;
    }
    assert!(
        rows.iter().all(|row| row.contains(",errno:EMFILE,")),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(3));
}

/// It is none of the answers that a kind may have either which no reader need get: those of who
/// has all the descriptors it wants.
#[test]
fn a_want_of_descriptors_is_no_answer_of_any_kind() {
    const KINDS: &str = "hole,guard,prot-none,uffd-missing,fuse-silent,kernel-address";
    let mut wanting = 0;
    for limit in 9..16 {
        let script = format!(
            "ulimit -n {limit}; exec {BINARY} probe -q --kind {KINDS} --method hybrid,map-files"
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for row in text.lines().filter(|row| row.contains("EMFILE")) {
            assert!(row.contains(",errno:EMFILE,"), "{limit}: {row}");
            assert_ne!(output.status.code(), Some(0), "{limit}: {row}");
            wanting += 1;
        }
    }
    assert!(wanting > 0);
}

/// A row says that its child moved only if it was seen to: with a descriptor too few the errno
/// is what stands there.
#[test]
fn a_child_that_cannot_be_looked_at_is_not_said_to_have_moved() {
    let mut wanting = 0;
    for limit in 7..16 {
        let script = format!(
            "ulimit -n {limit}; exec {BINARY} probe -q \
             --kind anon-own,file-private-untouched --method map-files,hybrid"
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for row in text.lines().filter(|row| row.starts_with("probe,")) {
            // One column stands behind it.
            let status = row.rsplit(',').nth(1).unwrap();
            assert!(!status.contains("target-"), "{limit}: {row}");
            wanting += usize::from(status == "errno:EMFILE");
        }
    }
    assert!(wanting > 0);
}
