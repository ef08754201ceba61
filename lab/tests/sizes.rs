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
use std::os::unix::fs::symlink;
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
/// that has the library's bytes in a file of their own.
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
    let corpus = shared();
    let ran = corpus.run(&["--avg=4K,16K", "--label", "rack 4, left"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let expected = [
        (2, 2, 300_000, 300_000),
        (4, 3, 600_000, 400_000),
        (6, 4, 900_000, 500_000),
        (7, 4, 1_100_000, 500_000),
    ];
    let (mut packs, mut below, mut seen) = (Vec::new(), [None; 2], 0);
    let count = rows(&ran.stdout, |row| {
        assert_eq!(
            (row.r, row.avg_chunk),
            (seen / 2 + 1, [4096, 16384][(seen % 2) as usize])
        );
        assert_eq!(counts(row), Some(expected[(row.r - 1) as usize]));
        let distinct = row.distinct_bytes.unwrap();
        assert_eq!(
            (row.label, row.status, row.page_size),
            ("rack 4, left", Status::Ok, 4096)
        );
        for store in [row.bytes_store, row.bytes_store_symbols] {
            let store = store.unwrap();
            assert!(store > distinct && store.is_multiple_of(4096), "{row:?}");
            // Noise has no symbols: some pages of tables, and a page that is not full for each.
            assert!(
                store < distinct + 4096 * (10 + row.distinct_objects.unwrap()),
                "{row:?}"
            );
        }
        packs.push(row.bytes_chunks.unwrap() - row.index_bytes.unwrap());
        // The first of the rows of this average that are all below.
        let first = &mut below[(seen % 2) as usize];
        let is_below = row.bytes_chunks < row.bytes_store;
        *first = is_below.then(|| first.unwrap_or(row.r));
        seen += 1;
    });
    assert_eq!(count, 8);
    // Every distinct byte once: noise has no chunk in common with other noise.
    for (pack, distinct) in packs.iter().zip([3, 3, 4, 4, 5, 5, 5, 5]) {
        assert_eq!(*pack, distinct * 100_000);
    }
    let [small, large] = below.map(|r| r.map_or("none".to_owned(), |r| r.to_string()));
    let chunks = format!(
        "#crossover_chunks_4096_below_store={small}\n#crossover_chunks_16384_below_store={large}\n"
    );
    for note in [
        "#compression=none\n",
        "#strip_level=no ELF file\n",
        "#manifest=-\n",
        "#manifest_roots=4\n#manifest_paths=5\n#known_roots=4\n",
        "#crossover_store_below_private=2\n",
        &format!("#manifest_sha256={}\n", sha256(&corpus.manifest)),
        &chunks,
    ] {
        assert!(ran.stdout.contains(note), "{note} in {}", ran.stdout);
    }
    let said = "cowitness-lab: note: one store is smaller than private closures: from R = 2 on\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

/// Objects, distinct ones, private bytes and distinct ones of a row that knows them.
fn counts(row: &SizesRow<'_>) -> Option<(u64, u64, u64, u64)> {
    let objects = (row.objects?, row.distinct_objects?);
    Some((
        objects.0,
        objects.1,
        row.bytes_private?,
        row.distinct_bytes?,
    ))
}

/// As sha256sum(1) of coreutils says it.
fn sha256(text: &str) -> String {
    let scratch = Scratch::new().unwrap();
    let file = scratch.path().join("text");
    fs::write(&file, text).unwrap();
    let sum = Command::new("sha256sum").arg(&file).output().unwrap();
    let said = String::from_utf8(sum.stdout).unwrap();
    said.split(' ').next().unwrap().to_owned()
}

/// Two names of one file are one object, however they are spelled; a copy is another file of a
/// root, but no other object.
#[test]
fn links_are_one_object_and_twins_are_stored_once() {
    let mut corpus = Corpus::new();
    corpus.object("file", &noise(1, 50_000));
    corpus.object("copy", &noise(1, 50_000));
    fs::hard_link(corpus.path("file"), corpus.path("hard")).unwrap();
    symlink("file", corpus.path("soft")).unwrap();
    for name in ["file", "hard", "soft", "stores/../file"] {
        corpus.line("links", name);
    }
    corpus.line("again", "hard");
    for name in ["copy", "soft"] {
        corpus.line("twins", name);
    }
    let ran = corpus.run(&["--avg=4K"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let (mut found, mut stores) = (Vec::new(), Vec::new());
    rows(&ran.stdout, |row| {
        found.extend(counts(row));
        stores.push((row.bytes_store, row.bytes_store_symbols, row.bytes_chunks));
    });
    let expected = [
        (1, 1, 50_000, 50_000),
        (2, 1, 100_000, 50_000),
        (4, 1, 200_000, 50_000),
    ];
    assert_eq!(found, expected);
    assert!(stores.iter().all(|store| *store == stores[0]), "{stores:?}");
}

/// A 64-bit ELF file of the machine's order: its header, a segment of all of it, and one of
/// `.bss` alone that begins behind its end (elf(5)).
fn with_bss_behind_the_end() -> Vec<u8> {
    let half = |value: u16| value.to_ne_bytes().to_vec();
    let word = |value: u32| value.to_ne_bytes().to_vec();
    let long = |value: u64| value.to_ne_bytes().to_vec();
    let order = if cfg!(target_endian = "little") { 1 } else { 2 };
    let header = [
        [0x7f, b'E', b'L', b'F', 2, order, 1, 0].to_vec(),
        long(0),
        [half(2), half(62), word(1)].concat(),
        [long(0x40_0000), long(64), long(0), word(0)].concat(),
        [64_u16, 56, 2, 64, 0, 0].map(u16::to_ne_bytes).concat(),
    ];
    let segment = |flags, [offset, address, filed, memory]: [u64; 4]| {
        let places = [offset, address, address, filed, memory, 0x1000];
        [word(1), word(flags), places.map(u64::to_ne_bytes).concat()].concat()
    };
    [
        header.concat(),
        segment(5, [0, 0x40_0000, 176, 176]),
        segment(6, [0x1000, 0x40_1000, 0, 0x2000]),
    ]
    .concat()
}

#[test]
fn a_segment_behind_the_end_has_no_bytes() {
    let mut corpus = Corpus::new();
    let elf = with_bss_behind_the_end();
    assert_eq!(elf.len(), 176);
    corpus.object("bss", &elf);
    corpus.line("bss", "bss");
    let ran = corpus.run(&["--avg=4K"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout
            .contains("#strip_level=stripped of its section headers, too\n"),
        "{}",
        ran.stdout
    );
}

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
        assert!(ran.stdout.contains("#known_roots=2\n"), "{}", ran.stdout);
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
    assert!(!ran.stdout.contains("#crossover"), "{}", ran.stdout);
}

/// The limit that setrlimit(2) calls `RLIMIT_FSIZE`, in blocks of 512 bytes in a POSIX shell.
#[test]
fn a_limit_of_file_sizes_leaves_nothing_behind() {
    let mut corpus = Corpus::new();
    corpus.object("object", &noise(1, 500_000));
    corpus.line("root", "object");
    corpus.object("manifest", corpus.manifest.as_bytes());
    let ran = Command::new("sh")
        .args(["-c", "ulimit -f 200 && exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_cowitness-lab"), "sizes", "--manifest"])
        .arg(corpus.path("manifest"))
        .arg("--scratch")
        .arg(corpus.stores())
        .output()
        .unwrap();
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(
        (ran.status.code(), ran.stdout.len()),
        (Some(1), 0),
        "{stderr}"
    );
    assert!(
        stderr.contains("hint: the stores need room: --scratch"),
        "{stderr}"
    );
    assert!(is_empty(&corpus.stores()));
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
        let mut corpus = shared();
        corpus.manifest = manifest.to_owned();
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
    let begun = Cell::new(false);
    let ended = running.end("INT", || {
        let empty = is_empty(&stores);
        begun.set(begun.get() || !empty);
        begun.get() && empty
    });
    assert_eq!(ended, (None, Some(2)));
}
