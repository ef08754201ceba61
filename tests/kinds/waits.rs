//! What a reader waits for, for ever: it is given up, and nobody is left behind.

use super::common::{
    BINARY, answered as of, group, in_a_session, number, run, stdout, whole_stream,
};
use super::rows;
use std::process::{Command, Stdio};

/// The server shares pages with the target until it is killed; what that does to Pss is the
/// tool's own doing.
#[test]
fn smaps_is_unknown_once_the_server_was_killed() {
    if of(rows(), "fuse-silent", &["none"]).is_empty() {
        return;
    }
    for row in rows().iter().filter(|row| row["kind"] == "fuse-silent") {
        let want = match (&*row["status"], &*row["method"]) {
            ("ok", "none") | ("skipped:left-unread", "hybrid") => Some(0),
            ("skipped:page-not-present", "kcore") => Some(0),
            ("skipped:not-in-this-kernel", "kcore") => continue,
            ("skipped:not-permitted", "kcore" | "map-files") => continue,
            // Whoever else comes to the file waits for it, map-files too.
            (status, _) => {
                assert_eq!(status, "skipped:blocked", "{row:?}");
                None
            }
        };
        for column in ["target_pss_kib", "partner_private_kib"] {
            assert_eq!(number(row, column), want, "{column} {row:?}");
        }
    }
}

#[test]
fn a_read_that_never_returns_is_given_up_and_leaves_nobody_behind() {
    let args = "probe -q --kind uffd-missing --method proc,vmread,ptrace";
    let child = in_a_session(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let leader = child.id();
    let stream = whole_stream(&stdout(&child.wait_with_output().unwrap()));
    assert_eq!(group(leader), Vec::<String>::new());
    let status = |method: &str| {
        let row = stream.rows.iter().find(|row| row["method"] == method);
        row.map(|row| (row["status"].clone(), row["errno"].clone()))
    };
    let control = status("none").unwrap().0;
    if control != "ok" {
        assert!(["skipped:needs-privilege", "skipped:no-such-kind-here"].contains(&&*control));
        return;
    }
    let says = |status: &str, errno: &str| Some((status.to_owned(), errno.to_owned()));
    assert_eq!(status("vmread"), says("skipped:blocked", ""));
    assert_eq!(status("proc"), says("ok", "EIO"));
    assert_eq!(status("ptrace"), says("ok", "EIO"));
}

/// Nothing came, and that is what there is to say of it.
#[test]
fn a_reader_that_never_returned_is_told_of() {
    let output = run("probe --kind uffd-missing --method vmread");
    let control = &whole_stream(&stdout(&output)).rows[0];
    if control["status"] != "ok" {
        return;
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = "first\n  vmread: gets 0 kinds\n    never returns: uffd-missing\n";
    assert!(said.contains(lines), "{said}");
    assert!(!said.contains("to change least"), "{said}");
}

/// What a child leaves behind is reaped by the tool: the process that would inherit it (here one
/// that reaps nobody) has no child in the end.
#[test]
fn a_killed_server_is_reaped() {
    // PR_SET_CHILD_SUBREAPER is 36.
    let script = "import ctypes, os, subprocess, sys\n\
        assert ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0\n\
        told = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True).stdout\n\
        left = open(f'/proc/self/task/{os.getpid()}/children').read()\n\
        print(repr(left), told.count('skipped:blocked'), told.count('fuse-silent,'))";
    let mut python = Command::new("python3");
    python.args(["-c", script, BINARY, "probe", "-q", "--kind", "fuse-silent"]);
    let Ok(output) = python.args(["--method", "proc,vmread,map-files"]).output() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut waits = rows()
        .iter()
        .filter(|row| row["status"] == "skipped:blocked");
    let map_files_waits =
        waits.any(|row| row["kind"] == "fuse-silent" && row["method"] == "map-files");
    let has_fuse = of(rows(), "fuse-silent", &["none"]).len() == 1;
    let blocked = if has_fuse { 2 } else { 0 } + usize::from(map_files_waits);
    assert_eq!(said.trim_end(), format!("'' {blocked} 4"));
}
