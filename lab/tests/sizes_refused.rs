//! What `sizes` refuses, what it leaves of a run that ends early, and that it leaves no file.

mod common;
mod corpus;

use common::lab;
use corpus::{Corpus, counts, is_empty, noise, rows};
use cowitness::emit::record::Status;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// An object that cannot be stored.
struct Bad<'b> {
    name: &'b str,
    /// `None`: the corpus has it or has not.
    bytes: Option<&'b [u8]>,
    exit: i32,
    status: Status<'b>,
    said: &'b str,
}

/// The sizes up to its root are known, and those after it have rows that say why they are not.
#[test]
fn rows_end_being_known_where_an_object_is_bad() {
    let sh = fs::read("/bin/sh").unwrap();
    let cases = [
        Bad {
            name: "gone",
            bytes: None,
            exit: 1,
            status: Status::Errno("ENOENT"),
            said: "cannot open ",
        },
        Bad {
            name: "cut",
            bytes: Some(&sh[..100]),
            exit: 3,
            status: Status::Skipped("damaged-elf"),
            said: "/cut is a damaged ELF file: ",
        },
        Bad {
            name: "stores",
            bytes: None,
            exit: 1,
            status: Status::Skipped("not-storable"),
            said: "/stores is not a regular file",
        },
    ];
    for bad in cases {
        bad.leaves_the_rows_before_it();
    }
}

impl Bad<'_> {
    fn leaves_the_rows_before_it(&self) {
        let mut corpus = Corpus::new();
        corpus.object("a", &noise(1, 50_000));
        if let Some(bytes) = self.bytes {
            corpus.object(self.name, bytes);
        }
        for (root, object) in [
            ("1", "a"),
            ("2", "a"),
            ("3", "a"),
            ("3", self.name),
            ("4", "a"),
        ] {
            corpus.line(root, object);
        }
        let ran = corpus.run(&["--avg=4K,16K"]);
        assert_eq!(ran.status, Some(self.exit), "{}", ran.stderr);
        for said in [self.said, "; sizes from R = 3 on are unknown\n"] {
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
        }
        // Not `none`: nobody knows of the others.
        for note in [
            "#known_roots=2\n",
            "#crossover_store_below_private=2\n",
            "#crossover_chunks_4096_below_store=unknown\n",
        ] {
            assert!(ran.stdout.contains(note), "{note} in {}", ran.stdout);
        }
        let mut seen = Vec::new();
        rows(&ran.stdout, |row| {
            let known = (row.r < 3).then_some((row.r, 1, 50_000 * row.r, 50_000));
            assert_eq!(counts(row), known);
            let all = [row.bytes_store, row.bytes_store_symbols, row.bytes_chunks];
            assert!(all.iter().all(|bytes| bytes.is_some() == known.is_some()));
            let status = if row.r < 3 { Status::Ok } else { self.status };
            assert_eq!(row.status, status);
            seen.push(row.r);
        });
        assert_eq!(seen, [1, 1, 2, 2, 3, 3, 4, 4]);
    }
}

/// SQLite's limit is that of a row, which has the object's path in it, too.
#[test]
fn an_object_as_large_as_sqlite_has_none_is_named() {
    let mut corpus = Corpus::new();
    let file = fs::File::create(corpus.path("large")).unwrap();
    file.set_len(999_999_990).unwrap();
    corpus.line("large", "large");
    let ran = corpus.run(&["--avg=4K"]);
    assert_eq!(ran.status, Some(1));
    let said = "/large is larger than a row of SQLite can be, 1 GB; sizes from R = 1 on";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("#crossover_store_below_private=unknown\n"),
        "{}",
        ran.stdout
    );
}

/// Runs `sizes` on an object under a limit of the shell; what it said.
fn limited(limit: &str) -> String {
    let mut corpus = Corpus::new();
    corpus.object("object", &noise(1, 500_000));
    corpus.line("root", "object");
    corpus.object("manifest", corpus.manifest.as_bytes());
    let ran = Command::new("sh")
        .args(["-c", &format!("ulimit {limit} && exec \"$@\""), "sh"])
        .args([env!("CARGO_BIN_EXE_cowitness-lab"), "sizes", "--manifest"])
        .arg(corpus.path("manifest"))
        .arg("--scratch")
        .arg(corpus.stores())
        .output()
        .unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    let ended = (ran.status.code(), ran.stdout.len());
    assert_eq!(ended, (Some(1), 0), "{stderr}");
    assert!(is_empty(&corpus.stores()));
    stderr
}

/// The limits that setrlimit(2) calls `RLIMIT_FSIZE`, in blocks of 512 bytes in a POSIX shell, and
/// `RLIMIT_NOFILE`.
#[test]
fn a_limit_is_named_and_leaves_nothing_behind() {
    for (limit, hint) in [
        ("-f 200", "hint: the stores need room: --scratch"),
        (
            "-n 8",
            "hint: some twenty files have to be open at once: ulimit -n",
        ),
    ] {
        let said = limited(limit);
        assert!(said.contains(hint), "{limit}: {said}");
    }
}

#[test]
fn objects_that_are_not_stripped_alike_are_named() {
    let mut corpus = Corpus::new();
    for name in ["one", "two"] {
        fs::copy("/bin/sh", corpus.path(name)).unwrap();
        corpus.line("root", name);
    }
    corpus.object("script", b"#!/bin/sh\n");
    corpus.line("root", "script");
    // A test's own file is never stripped.
    fs::copy(std::env::current_exe().unwrap(), corpus.path("odd")).unwrap();
    corpus.line("root", "odd");
    let ran = corpus.run(&[]);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    let odd = corpus.path("odd").display().to_string();
    let first = "cowitness-lab: error: strip levels differ: 2 objects are stripped, but 1 not so: ";
    assert!(
        ran.stderr.starts_with(&format!("{first}{odd} (with ")),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("script ("), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_stored_ends_the_run_and_leaves_nothing() {
    let cases: [(&str, i32, &str); 4] = [
        ("", 3, "the manifest names no object"),
        ("# nothing\n\n", 3, "the manifest names no object"),
        ("root /bin/sh\n", 3, "manifest, line 1: it has no tab"),
        (
            "#\na\t/bin/sh\na\t\n",
            3,
            "manifest, line 3: it names no object",
        ),
    ];
    for (manifest, status, said) in cases {
        let mut corpus = Corpus::new();
        corpus.manifest = manifest.to_owned();
        let ran = corpus.run(&[]);
        assert_eq!((ran.status, &*ran.stdout), (Some(status), ""), "{manifest}");
        let wanted = format!("cowitness-lab: error: {said}");
        assert!(ran.stderr.starts_with(&wanted), "{}", ran.stderr);
    }
    let corpus = Corpus::new();
    let stores = corpus.stores();
    let words = ["sizes", "--manifest=absent", "--scratch"];
    let ran = lab(&[&words[..], &[stores.to_str().unwrap()]].concat(), b"");
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .starts_with("cowitness-lab: error: cannot open absent: "),
        "{}",
        ran.stderr
    );
}

/// A run that is killed if the test does not get to its end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn start(stores: &Path, manifest: &str) -> Self {
        // As they are by default, also where the test itself is run in a shell's background.
        let child = Command::new("env")
            .args(["--default-signal", env!("CARGO_BIN_EXE_cowitness-lab")])
            .args(["sizes", "--manifest", manifest, "--scratch"])
            .arg(stores)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// Sends `signal` once `there` is true; how it ended.
    fn end(&mut self, signal: &str, there: impl Fn() -> bool) -> (Option<i32>, Option<i32>) {
        let start = Instant::now();
        while !there() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "it does not begin"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill")
            .args(["-s", signal, &self.0.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        // Waiting would close it, and end a manifest that is read from it.
        let silent = self.0.stdin.take();
        let status = self.0.wait().unwrap();
        drop(silent);
        (status.code(), status.signal())
    }
}

#[test]
fn a_signal_leaves_nothing_behind() {
    let mut corpus = Corpus::new();
    for number in 0..3000_u64 {
        let name = format!("object-{number}");
        corpus.object(&name, &noise(number, 8192));
        corpus.line(&format!("root-{}", number / 10), &name);
    }
    corpus.object("manifest", corpus.manifest.as_bytes());
    let stores = corpus.stores();
    let named = |wanted: &str| {
        let here = fs::read_dir(&stores).unwrap().flatten();
        here.into_iter()
            .any(|entry| entry.path().join(wanted).exists())
    };
    // While closures are stored, and while a silent pipe is waited for.
    let manifest = corpus.path("manifest");
    let manifest = manifest.to_str().unwrap();
    for (manifest, file, signal, status) in [
        (manifest, "pack-4096", "INT", 130),
        (manifest, "pack-4096", "QUIT", 131),
        (manifest, "plan", "XCPU", 152),
        ("-", "plan", "HUP", 129),
    ] {
        let ended = Running::start(&stores, manifest).end(signal, || named(file));
        assert_eq!(ended, (Some(status), None), "{manifest}");
        assert!(is_empty(&stores), "{manifest}");
    }
}

/// More rows than a pipe holds.
#[test]
fn a_signal_ends_a_run_whose_rows_nobody_takes() {
    let mut corpus = Corpus::new();
    corpus.object("object", &noise(1, 8192));
    for root in 0..1000 {
        corpus.line(&format!("root-{root}"), "object");
    }
    corpus.object("manifest", corpus.manifest.as_bytes());
    let stores = corpus.stores();
    let mut running = Running::start(&stores, corpus.path("manifest").to_str().unwrap());
    // The first byte of them: by then nothing is left to be tidied up.
    let rows = running.0.stdout.as_mut().unwrap();
    rows.read_exact(&mut [0]).unwrap();
    assert!(is_empty(&stores));
    assert_eq!(running.end("INT", || true), (None, Some(2)));
}

/// As nohup(1) starts a program: what is ignored stays ignored.
#[test]
fn a_signal_that_is_ignored_ends_nothing() {
    let mut corpus = Corpus::new();
    for number in 0..300_u64 {
        let name = format!("object-{number}");
        corpus.object(&name, &noise(number, 8192));
        corpus.line(&name, &name);
    }
    corpus.object("manifest", corpus.manifest.as_bytes());
    let stores = corpus.stores();
    let ran = Command::new("env")
        .args(["--ignore-signal=HUP", "sh", "-c"])
        .arg(
            "\"$@\" & child=$!
             until ls \"$0\"/*/pack-4096 2>/dev/null; do kill -0 $child || exit 9; done >&2
             kill -HUP $child; wait $child",
        )
        .args([&stores, Path::new(env!("CARGO_BIN_EXE_cowitness-lab"))])
        .arg("sizes")
        .args([Path::new("--manifest"), &corpus.path("manifest")])
        .args([Path::new("--scratch"), &stores])
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8(ran.stdout), String::from_utf8(ran.stderr));
    assert_eq!(ran.status.code(), Some(0), "{}", stderr.unwrap());
    assert_eq!(rows(&stdout.unwrap(), |_| ()), 900);
    assert!(is_empty(&stores));
}

/// The library's standard output takes what cannot be written for written.
#[test]
fn an_output_that_is_only_open_for_reading_is_an_error() {
    let mut corpus = Corpus::new();
    corpus.object("object", &noise(1, 8192));
    corpus.line("root", "object");
    corpus.object("manifest", corpus.manifest.as_bytes());
    let manifest = corpus.path("manifest");
    for words in [&["sizes", "--manifest"][..], &["--help"], &["--version"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"));
        command.args(words);
        if words.len() == 2 {
            command.arg(&manifest);
        }
        let ran = command
            .stdout(fs::File::open(&manifest).unwrap())
            .output()
            .unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{words:?}: {stderr}");
        assert!(
            stderr.contains("error: cannot write to standard output: Bad file descriptor"),
            "{stderr}"
        );
    }
}

#[test]
fn a_manifest_that_was_cut_is_refused_as_one() {
    let corpus = Corpus::new();
    let text = noise(1, 20_000);
    let line: String = text.iter().map(|byte| format!("{byte:02x}")).collect();
    corpus.object("plain", format!("# {line}\n").repeat(3).as_bytes());
    let packed = Command::new("gzip")
        .arg("-c")
        .arg(corpus.path("plain"))
        .output();
    let packed = packed.unwrap().stdout;
    corpus.object("cut.gz", &packed[..packed.len() / 2]);
    let cut = corpus.path("cut.gz");
    let ran = lab(&["sizes", "--manifest", cut.to_str().unwrap()], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("cut or damaged"), "{}", ran.stderr);
}

/// Before the work, not after it: there is no such file.
#[test]
fn a_manifest_whose_path_no_stream_can_hold_is_refused_at_once() {
    let ran = lab(&["sizes", "--manifest", &"long/".repeat(800)], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(2), ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("shorten --label or the path"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_a_killed_run_left_is_said() {
    let mut corpus = Corpus::new();
    corpus.object("object", &noise(1, 8192));
    corpus.line("root", "object");
    corpus.object("manifest", corpus.manifest.as_bytes());
    let mut running = Running::start(&corpus.stores(), "-");
    let ended = running.end("KILL", || !is_empty(&corpus.stores()));
    assert_eq!(ended, (None, Some(9)));
    let manifest = corpus.path("manifest");
    let (manifest, stores) = (manifest.to_str().unwrap(), corpus.stores());
    let words = ["sizes", "--manifest", manifest, "--scratch"];
    let words = [&words[..], &[stores.to_str().unwrap()]].concat();
    let ran = lab(&words, b"");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let said = " was left behind by a run that was killed; it can be removed\n";
    assert_eq!(ran.stderr.matches(said).count(), 1, "{}", ran.stderr);
}

/// More than fit in the error's line.
#[test]
fn every_odd_object_is_named() {
    let mut corpus = Corpus::new();
    let mut sh = fs::read("/bin/sh").unwrap();
    for number in 0..30 {
        corpus.object(&format!("same-{number}"), &sh);
        corpus.line("root", &format!("same-{number}"));
    }
    // Without section headers.
    sh[0x28..0x30].fill(0);
    sh[0x3c..0x40].fill(0);
    for number in 0..25 {
        corpus.object(&format!("odd-{number}"), &sh);
        corpus.line("root", &format!("odd-{number}"));
    }
    let ran = corpus.run(&[]);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    for number in 0..25 {
        let path = corpus.path(&format!("odd-{number}"));
        let line = format!("not so: {} (stripped of its ", path.display());
        assert!(ran.stderr.contains(&line), "{line} in {}", ran.stderr);
    }
    let last = "30 objects are stripped, but 25 not so: they are named above\n";
    assert!(ran.stderr.contains(last), "{}", ran.stderr);
}
