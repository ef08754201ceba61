//! `sizes` on generated objects and on real programs.

mod common;
mod corpus;

use corpus::{Corpus, counts, noise, rows};
use cowitness::emit::record::Status;
use cowitness_lab::scratch::Scratch;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

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
    assert!(ran.stdout.contains(&chunks), "{chunks} in {}", ran.stdout);
}

#[test]
fn notes_say_what_was_asked_and_which_model_overtakes_which() {
    let corpus = shared();
    let ran = corpus.run(&["--avg=4K"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    for note in [
        "#command=sizes\n",
        "#option_manifest=-\n",
        "#compression=none\n",
        "#strip_level=no ELF file\n",
        "#manifest_roots=4\n#manifest_paths=5\n#known_roots=4\n",
        "#crossover_store_below_private=2\n",
        &format!("#manifest_sha256={}\n", sha256(&corpus.manifest)),
    ] {
        assert!(ran.stdout.contains(note), "{note} in {}", ran.stdout);
    }
    let said = "cowitness-lab: note: one store is smaller than private closures: from R = 2 on\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
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

/// A header says with `e_shstrndx` 0 that its sections have no names (gABI, `SHN_UNDEF`).
#[test]
fn sections_without_names_are_no_damage() {
    let mut corpus = Corpus::new();
    let mut sh = fs::read("/bin/sh").unwrap();
    sh[0x3e..0x40].fill(0);
    corpus.object("nameless", &sh);
    corpus.line("root", "nameless");
    let ran = corpus.run(&["--avg=64K"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let note = "#strip_level=with section headers that have no names, ";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
}

/// The stream names its command, so that a report can ask for it again.
#[test]
fn a_report_says_how_to_measure_it_again() {
    let corpus = shared();
    corpus.object("manifest", corpus.manifest.as_bytes());
    let manifest = corpus.path("manifest");
    let option = format!("--manifest={}", manifest.display());
    let ran = common::lab(&["sizes", &option, "--avg=4K,16K", "--label", "rack"], b"");
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let report = common::lab(&["report", "-o", "-", "-"], ran.stdout.as_bytes());
    assert_eq!(report.status, Some(0), "{}", report.stderr);
    let again =
        format!("cowitness-lab sizes --avg=4096,16384 {option} --page-size=4096 --label=rack");
    let html = report.stdout;
    assert!(html.contains(&again), "{again}");
    // The sentence says which chunks.
    assert!(html.contains("as large as chunks of 4 KiB on average"));
}
