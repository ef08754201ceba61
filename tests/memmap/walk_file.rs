//! The walk file is gone, whatever ends the run.

use super::*;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn no_room_for_the_walk_file_leaves_nothing() {
    let folder = Folder::new();
    let output = shell("ulimit -f 2000", "--mode fault-walk --mb 4", &folder.0);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains(".bin: EFBIG: larger than a file may be here"));
    assert!(output.stdout.is_empty() && files(&folder.0).is_empty());
    let output = shell(
        "true",
        "--mode fault-walk --mb 1",
        Path::new("/nonexistent"),
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("/nonexistent/memmap-walk-"));
}

/// A file system of 1 MiB, in a mount namespace of the test's own.
#[test]
fn a_full_file_system_leaves_nothing() {
    if !common::is_root() {
        eprintln!("skipped: only root can mount");
        return;
    }
    let folder = Folder::new();
    let script = format!(
        "mount -t tmpfs -o size=1m none {0} && \
         TMPDIR={0} {BINARY} memmap --mode fault-walk --mb 2; \
         echo status $?; ls -A {0} | wc -l",
        folder.0.display()
    );
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .output()
        .unwrap();
    let said = stderr(&output);
    if said.contains("unshare failed") || said.contains("permission denied") {
        eprintln!("skipped: no mount namespaces here: {said}");
        return;
    }
    assert!(said.contains(".bin: ENOSPC: no room there"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "status 1\n0\n");
}

/// A child that does not outlive the test.
struct Running(Child);

impl Running {
    /// Starts a walk that takes a while.
    fn walk(folder: &Path, setup: &str) -> Self {
        let script = format!("{setup}; exec {BINARY} memmap --mode fault-walk --mb 1024");
        let mut command = Command::new("sh");
        Self::of(command.args(["-c", &script]).env("TMPDIR", folder))
    }

    fn of(command: &mut Command) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command.spawn().expect("it starts"))
    }

    /// All that it writes to standard output.
    fn text(&mut self) -> String {
        let mut text = String::new();
        let mut from = self.0.stdout.take().unwrap();
        from.read_to_string(&mut text).unwrap();
        text
    }

    /// As [`Running::end`], once its standard output has ended.
    fn end_quietly(&mut self) -> (Option<i32>, Option<i32>, String) {
        self.text();
        self.end()
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.0.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Its exit status and what it said.
    fn end(&mut self) -> (Option<i32>, Option<i32>, String) {
        let status = self.0.wait().unwrap();
        let mut said = String::new();
        let _ = self.0.stderr.take().unwrap().read_to_string(&mut said);
        (status.code(), status.signal(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the walk file is there.
fn walk_file(folder: &Path) -> PathBuf {
    for _ in 0..5000 {
        if let Some(path) = files(folder).pop() {
            return path;
        }
        sleep(Duration::from_millis(1));
    }
    panic!("no walk file");
}

#[test]
fn signals_remove_the_walk_file() {
    let signals = [("-INT", 2), ("-TERM", 15), ("-HUP", 1), ("-QUIT", 3)];
    for (name, number) in signals
        .into_iter()
        .chain([("-USR1", 10), ("-ALRM", 14), ("-XCPU", 24)])
        .chain([("-ABRT", 6), ("-PROF", 27), ("-IO", 29), ("-PWR", 30)])
        .chain([("-34", 34), ("-64", 64)])
    {
        let folder = Folder::new();
        let mut running = Running::walk(&folder.0, "true");
        let path = walk_file(&folder.0);
        running.signal(name);
        let (code, signal, said) = running.end();
        assert_eq!((code, signal), (Some(128 + number), None), "{name}: {said}");
        assert!(
            said.contains(&format!("memmap: error: stopped by signal {number}")),
            "{said}"
        );
        assert!(!path.exists() && files(&folder.0).is_empty(), "{name}");
    }
}

/// nohup(1) is heeded, and so is whoever else ignores a signal.
#[test]
fn an_ignored_signal_stays_ignored() {
    for name in ["HUP", "INT", "TERM"] {
        let folder = Folder::new();
        let mut running = Running::walk(&folder.0, &format!("trap '' {name}"));
        walk_file(&folder.0);
        running.signal(&format!("-{name}"));
        let text = running.text();
        assert_eq!(running.end().0, Some(0), "{name}");
        assert!(
            text.contains("memmap: step=8/8 ") && files(&folder.0).is_empty(),
            "{name}: {text}"
        );
    }
}

/// A file that may not be removed.
struct Kept(PathBuf);

impl Kept {
    /// `None` where the file system has no such attribute.
    fn new(path: PathBuf) -> Option<Self> {
        let kept = Command::new("chattr").arg("+a").arg(&path).output();
        kept.is_ok_and(|output| output.status.success())
            .then_some(Self(path))
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = Command::new("chattr").arg("-a").arg(&self.0).status();
        let _ = fs::remove_file(&self.0);
    }
}

/// Root, too, is refused to remove an append-only file.
#[test]
fn a_walk_file_that_cannot_be_removed_is_an_error() {
    if !common::is_root() {
        eprintln!("skipped: only root can make a file append-only");
        return;
    }
    let folder = Folder::new();
    let mut running = Running::walk(&folder.0, "true");
    let Some(kept) = Kept::new(walk_file(&folder.0)) else {
        eprintln!("skipped: this file system has no append-only files, or chattr is missing");
        return;
    };
    let text = running.text();
    let (code, _, said) = running.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(text.contains("memmap: step=8/8 "), "{text}");
    let path = kept.0.display();
    let want = format!("memmap: error: {path}: EPERM: the walk file cannot be removed");
    assert!(said.contains(&want), "{said}");
    assert!(kept.0.exists());
    // A signal says so, too.
    drop(kept);
    let mut running = Running::walk(&folder.0, "true");
    let kept = Kept::new(walk_file(&folder.0)).expect("as before");
    running.signal("-TERM");
    let (code, _, said) = running.end();
    assert_eq!(code, Some(128 + 15), "{said}");
    assert!(said.contains("could not be removed"), "{said}");
    drop(kept);
}

/// The same for whoever may no longer change the folder.
#[test]
fn a_folder_that_became_read_only_keeps_the_walk_file() {
    let Some((mut command, home)) = common::command_as_nobody("memmap --mode fault-walk --mb 1024")
    else {
        return;
    };
    let folder = Folder::new();
    let mode = |mode| fs::set_permissions(&folder.0, fs::Permissions::from_mode(mode)).unwrap();
    mode(0o777);
    let mut running = Running::of(command.env("TMPDIR", &folder.0));
    let path = walk_file(&folder.0);
    mode(0o755);
    let (code, _, said) = running.end_quietly();
    assert_eq!(code, Some(1), "{said}");
    let want = format!("memmap: error: {}: EACCES: the walk file", path.display());
    assert!(said.contains(&want), "{said}");
    assert!(path.exists());
    drop(home);
}

/// What has the path by then is somebody else's.
#[test]
fn another_file_with_its_path_is_left_alone() {
    let folder = Folder::new();
    let mut running = Running::walk(&folder.0, "true");
    let path = walk_file(&folder.0);
    let moved = folder.0.join("moved");
    fs::rename(&path, &moved).unwrap();
    fs::write(&path, "mine").unwrap();
    let (code, _, said) = running.end_quietly();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains(": ESTALE: the walk file cannot be removed"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

/// What a run that was killed left behind is somebody's file, and is not overwritten.
#[test]
fn a_file_that_is_there_is_left_alone() {
    let folder = Folder::new();
    let path = folder.0.display();
    let setup = format!("echo mine > {path}/memmap-walk-$$.bin");
    let output = shell(&setup, "--mode fault-walk --mb 1", &folder.0);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains(": EEXIST: left by a run that was killed"));
    let left = files(&folder.0);
    assert_eq!(fs::read_to_string(&left[0]).unwrap(), "mine\n");
}

/// Who made it removes it, also if it cannot be looked at.
#[test]
fn a_walk_file_whose_identity_is_denied_is_removed() {
    let folder = Folder::new();
    let fstat = if cfg!(target_arch = "x86_64") {
        "5"
    } else {
        "80"
    };
    let mut denied = common::denied(fstat, "1", "memmap --mode fault-walk --mb 1");
    let output = denied.env("TMPDIR", &folder.0).output().unwrap();
    if output.status.code() == Some(common::NO_SECCOMP) {
        eprintln!("skipped: no seccomp here");
        return;
    }
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).ends_with(".bin: EPERM\n"), "{output:?}");
    assert!(files(&folder.0).is_empty());
}

/// Runs what it is given with a pipe that keeps writes apart (O_DIRECT), and says how many
/// lines and how many writes there were.
const WRITES: &str = "import os, subprocess, sys\n\
    here, there = os.pipe2(os.O_DIRECT)\n\
    child = subprocess.Popen(sys.argv[1:], stdout=there)\n\
    os.close(there)\n\
    writes = list(iter(lambda: os.read(here, 65536), b''))\n\
    print(child.wait(), b''.join(writes).count(b'\\n'), len(writes))";

/// A line is one write(2), so that a signal or another writer cuts none.
#[test]
fn each_line_is_one_write() {
    for words in ["fault-walk --mb 1 --report", "stack --advise free"] {
        let output = Command::new("python3")
            .args(["-c", WRITES, BINARY, "memmap", "--mode"])
            .args(words.split(' '))
            .output()
            .unwrap();
        let text = stdout(&output);
        let counts: Vec<u32> = text
            .split_ascii_whitespace()
            .map(|count| count.parse().unwrap())
            .collect();
        assert!(
            counts[1] > 5 && counts == [0, counts[1], counts[1]],
            "{text}"
        );
    }
}

/// A signal is not blamed on a file where there is none.
#[test]
fn a_bus_error_without_a_file_is_no_page_of_one() {
    for _ in 0..20 {
        let mut running = Running::of(Command::new(BINARY).args([
            "memmap",
            "--mode",
            "mmap-anon",
            "--mb",
            "1024",
            "-q",
        ]));
        let maps = format!("/proc/{}/maps", running.0.id());
        let whole = |text: &str| text.lines().any(|line| span(line) >= 1 << 30);
        while fs::read_to_string(&maps).is_ok_and(|text| !text.is_empty() && !whole(&text)) {}
        running.signal("-BUS");
        let (code, signal, said) = running.end();
        if code != Some(0) {
            assert_eq!((code, signal), (None, Some(7)), "{said}");
            assert_eq!(said, "");
            return;
        }
    }
    eprintln!("skipped: it was always faster");
}

/// A page that cannot be read is an error like any other, and the file is gone.
#[test]
fn a_file_that_is_cut_meanwhile_is_an_error() {
    let folder = Folder::new();
    for _ in 0..20 {
        let mut running = Running::walk(&folder.0, "true");
        let path = walk_file(&folder.0);
        let maps = format!("/proc/{}/maps", running.0.id());
        let name = path.to_str().unwrap();
        let whole = |text: &str| {
            let line = text.lines().find(|line| line.ends_with(name));
            line.is_some_and(|line| span(line) == 1 << 30)
        };
        while fs::read_to_string(&maps).is_ok_and(|text| !text.is_empty() && !whole(&text)) {}
        if let Ok(file) = fs::File::options().write(true).open(&path) {
            file.set_len(4096).unwrap();
        }
        let (code, signal, said) = running.end();
        assert!(files(&folder.0).is_empty());
        assert_eq!(signal, None, "{said}");
        if code == Some(1) {
            assert!(
                said.contains("memmap: error: a page of the file cannot be read"),
                "{said}"
            );
            return;
        }
    }
    eprintln!("skipped: it was always faster");
}

/// A folder's name cannot add lines.
#[test]
fn control_characters_of_a_path_become_question_marks() {
    let folder = Folder::new();
    let odd = folder.0.join("a\nb\x1b[31m ü");
    fs::create_dir(&odd).unwrap();
    let text = stdout(&shell("true", "--mode fault-walk --mb 1", &odd));
    let line = text.lines().nth(1).unwrap();
    assert!(line.contains("/a?b?[31m ü/memmap-walk-"), "{line}");
    let missing = shell("true", "--mode fault-walk --mb 1", &odd.join("c"));
    assert!(
        stderr(&missing).contains("/a?b?[31m ü/c/memmap-walk-"),
        "{missing:?}"
    );
    assert_eq!(stderr(&missing).lines().count(), 1);
}
