//! `sizes` on generated objects and on real programs.

mod common;

use common::{Ran, lab};
use cowitness::emit::record::Status;
use cowitness::emit::sizes_row::SizesRow;
use cowitness_lab::scratch::Scratch;
use cowitness_lab::stream::{StreamReader, Tolerance};
use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Objects and a place for the stores, which has to be empty when a run has ended.
struct Corpus {
    scratch: Scratch,
    manifest: String,
}

impl Corpus {
    fn new() -> Self {
        let scratch = Scratch::new().unwrap();
        fs::create_dir(scratch.path().join("stores")).unwrap();
        Self {
            scratch,
            manifest: String::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn object(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn line(&mut self, root: &str, name: &str) {
        let path = self.path(name);
        writeln!(self.manifest, "{root}\t{}", path.display()).unwrap();
    }

    fn stores(&self) -> PathBuf {
        self.path("stores")
    }

    fn run(&self, options: &[&str]) -> Ran {
        let stores = self.stores();
        let mut words = vec![
            "sizes",
            "--manifest=-",
            "--scratch",
            stores.to_str().unwrap(),
        ];
        words.extend(options);
        let ran = lab(&words, self.manifest.as_bytes());
        assert!(is_empty(&stores), "left behind: {words:?}");
        ran
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Bytes without a pattern: a linear congruence, its upper bits.
fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

/// Calls `look` with every row of a whole stream.
fn rows(stdout: &str, mut look: impl FnMut(&SizesRow<'_>)) -> u64 {
    let mut input = stdout.as_bytes();
    let mut reader = StreamReader::new("rows", &mut input, Tolerance::Whole);
    let mut count = 0;
    while let Some(mut stream) = reader.next_stream().unwrap() {
        while let Some(row) = stream.next_row().unwrap() {
            look(&row.parse::<SizesRow<'_>>().unwrap());
            count += 1;
        }
    }
    count
}

/// Three roots of 100,000 noisy bytes each that share a library twice as large, and a fourth
/// that has the library's bytes under another path.
fn shared() -> Corpus {
    let mut corpus = Corpus::new();
    corpus.object("library", &noise(9, 200_000));
    corpus.object("twin", &noise(9, 200_000));
    for (seed, root) in ["a", "b", "c"].into_iter().enumerate() {
        corpus.object(root, &noise(seed as u64, 100_000));
        corpus.line(root, root);
        corpus.line(root, "library");
        // Said twice, counted once.
        corpus.line(root, root);
    }
    corpus.line("d", "twin");
    corpus
}

#[test]
fn what_is_shared_is_stored_once() {
    let ran = shared().run(&["--avg=4K,16K", "--label", "rack 4, left"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let expected = [
        (2, 2, 300_000, 300_000),
        (4, 3, 600_000, 400_000),
        (6, 4, 900_000, 500_000),
        (7, 5, 1_100_000, 700_000),
    ];
    let (mut packs, mut seen) = (Vec::new(), 0);
    let count = rows(&ran.stdout, |row| {
        assert_eq!(
            (row.r, row.avg_chunk),
            (seen / 2 + 1, [4096, 16384][(seen % 2) as usize])
        );
        let counts = (
            row.objects,
            row.distinct_objects,
            row.bytes_private,
            row.distinct_bytes,
        );
        assert_eq!(counts, expected[(row.r - 1) as usize]);
        assert_eq!(
            (row.label, row.status, row.page_size),
            ("rack 4, left", Status::Ok, 4096)
        );
        for store in [row.bytes_store, row.bytes_store_symbols] {
            let store = store.unwrap();
            assert!(
                store > row.distinct_bytes && store.is_multiple_of(4096),
                "{row:?}"
            );
            // Noise has no symbols: some pages of tables, and a page that is not full for each.
            assert!(
                store < row.distinct_bytes + 4096 * (10 + row.distinct_objects),
                "{row:?}"
            );
        }
        packs.push(row.bytes_chunks.unwrap() - row.index_bytes.unwrap());
        seen += 1;
    });
    assert_eq!(count, 8);
    // Chunks find the twin's bytes, which the stores do not.
    for (pack, distinct) in packs.iter().zip([3, 3, 4, 4, 5, 5, 5, 5]) {
        assert_eq!(*pack, distinct * 100_000);
    }
    for note in [
        "#compression=none\n",
        "#strip_level=no ELF file\n",
        "#crossover_store_below_private=2\n",
        "#crossover_chunks_4096_below_store=4\n",
    ] {
        assert!(ran.stdout.contains(note), "{note} in {}", ran.stdout);
    }
    let said = "cowitness-lab: note: one store is smaller than private closures: from R = 2 on\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn without_sharing_there_is_no_crossover() {
    let mut corpus = Corpus::new();
    corpus.object("a", &noise(1, 50_000));
    corpus.object("b", &noise(2, 50_000));
    corpus.line("a", "a");
    corpus.line("b", "b");
    let ran = corpus.run(&["--avg=4K"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("#crossover_store_below_private=none\n"),
        "{}",
        ran.stdout
    );
    let said = "cowitness-lab: note: one store is smaller than private closures: none\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// This program's own ELF file, with symbols and without: the store of symbols tells them,
/// and all stores give it back, or there would be no row.
#[test]
fn a_real_program_is_stored_with_its_symbols() {
    let mut corpus = Corpus::new();
    fs::copy("/bin/sh", corpus.path("sh")).unwrap();
    corpus.line("sh", "sh");
    corpus.object("empty", b"");
    corpus.line("sh", "empty");
    let ran = corpus.run(&["--avg=64K"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let count = rows(&ran.stdout, |row| {
        assert!(
            row.bytes_store_symbols > row.bytes_store.map(|bytes| bytes + 4 * 4096),
            "{row:?}"
        );
    });
    assert_eq!(count, 1);
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
    let cases: [(&str, i32, &str); 6] = [
        ("", 3, "the manifest names no object"),
        ("# nothing\n\n", 3, "the manifest names no object"),
        ("root /bin/sh\n", 3, "manifest, line 1: it has no tab"),
        (
            "#\na\t/bin/sh\na\t\n",
            3,
            "manifest, line 3: it names no object",
        ),
        (
            "a\t/nonexistent\n",
            1,
            "cannot open /nonexistent: No such file",
        ),
        ("a\t/dev\n", 1, "/dev is not a regular file"),
    ];
    for (manifest, status, said) in cases {
        let mut corpus = shared();
        if status == 1 {
            corpus.manifest += manifest;
        } else {
            corpus.manifest = manifest.to_owned();
        }
        let ran = corpus.run(&[]);
        assert_eq!((ran.status, &*ran.stdout), (Some(status), ""), "{manifest}");
        let wanted = format!("cowitness-lab: error: {said}");
        assert!(ran.stderr.starts_with(&wanted), "{}", ran.stderr);
    }
    let ran = lab(&["sizes", "--manifest=absent"], b"");
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .starts_with("cowitness-lab: error: cannot open absent: "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_damaged_elf_file_is_told() {
    let mut corpus = Corpus::new();
    corpus.object("cut", &fs::read("/bin/sh").unwrap()[..100]);
    corpus.line("cut", "cut");
    let ran = corpus.run(&[]);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert!(
        ran.stderr.contains("cut is a damaged ELF file: "),
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
        let child = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"))
            .args(["sizes", "--manifest", manifest, "--scratch"])
            .arg(stores)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// Interrupts it once `there` is true; how it ended.
    fn interrupt(&mut self, there: impl Fn() -> bool) -> (Option<i32>, Option<i32>) {
        let start = Instant::now();
        while !there() {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "it does not begin"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let sent = Command::new("kill")
            .args(["-INT", &self.0.id().to_string()])
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
    for (manifest, file) in [
        (corpus.path("manifest").to_str().unwrap(), "pack-4096"),
        ("-", "plan"),
    ] {
        let ended = Running::start(&stores, manifest).interrupt(|| named(file));
        assert_eq!(ended, (Some(130), None), "{manifest}");
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
    let begun = Cell::new(false);
    let ended = running.interrupt(|| {
        let empty = is_empty(&stores);
        begun.set(begun.get() || !empty);
        begun.get() && empty
    });
    assert_eq!(ended, (None, Some(2)));
}
