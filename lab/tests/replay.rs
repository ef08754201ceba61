//! The whole of `matrix` with an emulator that prints a recorded console: what is compared
//! with what was fetched and packed, what is left in the folder, and how a run ends.
#![cfg(target_os = "linux")]

mod seal;

use cowitness::emit::crc::Crc32;
use cowitness_lab::kernels::modules;
use cowitness_lab::scratch::Scratch;
use seal::resealed;
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const CONSOLE: &str = include_str!("data/consoles/5.10-aarch64.log");
const KERNEL: &str = "5.10-aarch64";
const RELEASE: &str = "5.10.0-32-cloud-arm64";
const WORDS: &str = "bench --mb=1 --layout=contiguous --block=64K --repeats=1 --warm=1 -q then \
                     probe --kind=anon-fork-shared,prot-none,prot-none-untouched,hole -q then \
                     selftest";

/// A cache with a kernel, an appliance, an emulator, and a folder for what is left.
struct Stage {
    directory: Scratch,
}

impl Stage {
    /// The emulator runs `script` in a shell; the file `console` beside it is `CONSOLE`, of
    /// the appliance that is there.
    fn new(release: &str, script: &str) -> Self {
        let stage = Self {
            directory: Scratch::new().unwrap(),
        };
        let kernels = stage.path("cache/kernels");
        fs::create_dir_all(&kernels).unwrap();
        let image = b"an image";
        let hash: String = Sha256::digest(image)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        fs::write(kernels.join("image"), image).unwrap();
        // The same bytes do for the modules; nothing is booted.
        let modules: Vec<&str> = modules::wanted().collect();
        let record = format!(
            "package = \"linux-image\"\nversion = \"1\"\nrelease = \"{release}\"\n\
             sha256 = \"{hash}\"\nfile = \"image\"\n[modules]\nwanted = {modules:?}\n\
             lacking = []\nsha256 = \"{hash}\"\nfile = \"image\"\n"
        );
        fs::write(
            kernels.join("bullseye-linux-image-cloud-arm64.toml"),
            record,
        )
        .unwrap();
        stage.appliance("an appliance");
        let mut crc = Crc32::new();
        crc.update(b"an appliance");
        let exe = format!("#exe_crc32={:08x}", crc.value());
        let console = CONSOLE.replace("#exe_crc32=9e14c77a", &exe);
        fs::write(stage.path("console"), resealed(&console)).unwrap();
        let qemu = stage.path("qemu-system-aarch64");
        fs::write(
            &qemu,
            format!("#!/bin/sh\ncd '{}'\n{script}\n", stage.path("").display()),
        )
        .unwrap();
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn appliance(&self, content: &str) {
        fs::write(self.path("appliance"), content).unwrap();
    }

    fn run(&self, words: &str) -> Output {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"));
        command.args([
            "matrix",
            "--arch=aarch64",
            "--deadline=30",
            "--kernel",
            KERNEL,
        ]);
        for (option, name) in [
            ("--cache", "cache"),
            ("--appliance", "appliance"),
            ("-o", "out"),
        ] {
            command.arg(option).arg(self.path(name));
        }
        command.args((!words.is_empty()).then_some("--"));
        command.args(words.split_whitespace()).stdin(Stdio::null());
        let path = format!("{}:{path}", self.path("").display());
        command.env("PATH", path).output().unwrap()
    }

    /// Outcome, detail and whether it is as expected, of the one machine.
    fn found(&self) -> [String; 3] {
        let csv = fs::read_to_string(self.path("out/matrix.csv")).unwrap();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let row = reader.records().next().unwrap().unwrap();
        [15, 16, 14].map(|at| row[at].to_owned())
    }

    fn left(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("out")).unwrap();
        let mut names: Vec<String> = names
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_recorded_console_passes_and_what_was_left_before_is_gone() {
    let stage = Stage::new(RELEASE, "[ -e out/matrix.csv ] || cat console");
    fs::create_dir(stage.path("out")).unwrap();
    for name in ["5.10-aarch64.csv", "matrix.csv"] {
        fs::write(stage.path("out").join(name), "of another day").unwrap();
    }
    let ran = stage.run(WORDS);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{said}");
    assert_eq!(stage.found(), ["pass", "", "yes"]);
    let all = [
        "5.10-aarch64.csv",
        "5.10-aarch64.log",
        "5.10-aarch64.txt",
        "matrix.csv",
    ];
    assert_eq!(stage.left(), all);
    let rows = fs::read_to_string(stage.path("out/5.10-aarch64.csv")).unwrap();
    assert!(rows.starts_with("#cowitness 1\n"), "{rows}");
    let selftest = fs::read_to_string(stage.path("out/5.10-aarch64.txt")).unwrap();
    assert!(selftest.starts_with("$ selftest\nok clock"), "{selftest}");

    // Another one that brings nothing leaves nothing of this one.
    fs::write(stage.path("console"), "").unwrap();
    assert_eq!(stage.run(WORDS).status.code(), Some(1));
    assert_eq!(stage.left(), ["5.10-aarch64.log", "matrix.csv"]);
}

#[test]
fn the_kernel_that_ran_has_to_be_the_one_that_was_fetched() {
    let stage = Stage::new("6.12.117+deb13-cloud-arm64", "cat console");
    assert_eq!(stage.run(WORDS).status.code(), Some(1));
    let wanted = format!(
        "the kernel: {RELEASE}, expected 6.12.117+deb13-cloud-arm64; \
         fields that smaps_rollup lacks: Pss_Dirty, KSM, expected none"
    );
    assert_eq!(stage.found(), ["mismatch", &wanted, "no"]);
}

#[test]
fn the_rows_have_to_come_from_the_appliance_that_was_packed() {
    let stage = Stage::new(RELEASE, "cat console");
    stage.appliance("another");
    assert_eq!(stage.run(WORDS).status.code(), Some(3));
    let [word, detail, _] = stage.found();
    assert!(
        word == "damaged" && detail.contains("its note 'exe_crc32' is "),
        "{detail}"
    );
    assert_eq!(
        stage.left(),
        ["5.10-aarch64.log", "5.10-aarch64.txt", "matrix.csv"]
    );
}

const METHODS: &str = "proc,proc-seek,vmread,vmread-batch,hybrid";

/// `console` as if the default words had been run: the recorded commands are other ones.
fn told_to_run_the_defaults(console: &str) -> String {
    let bench = format!(
        "bench --mb=8 --segment-pages=16 --block=64K --repeats=2 --warm=1 --method={METHODS} -q \
         --label={KERNEL}"
    );
    let lines = console.split_inclusive('\n');
    let line = |line: &str| match line.strip_prefix("cowitness: init: run: ") {
        Some(words) if words.starts_with("bench") => format!("cowitness: init: run: {bench}\n"),
        Some(words) if words.starts_with("probe") => {
            format!("cowitness: init: run: probe -q --label={KERNEL}\n")
        }
        _ => line.to_owned(),
    };
    lines.map(line).collect()
}

/// Rows of `bench` as its default words give them on a kernel whose readers split nothing.
fn default_bench_rows() -> String {
    let mut rows = String::new();
    for repeat in [1, 2] {
        for method in METHODS.split(',') {
            rows += &format!(
                "bench,{KERNEL},{RELEASE},aarch64,4096,contiguous,small,,1,8388608,{method},65536,\
                 {repeat},1,8388608,1,8000000000,8000000000,8000000000,8000000000,1.00,1.00,pfn,\
                 2048,2048,2048,0,0,0,0,0,0,0,0,0,0,,ok\r\n"
            );
        }
    }
    rows
}

/// The console of a run with the default words that is as expected. The recorded layout is one of
/// the two that are the default.
fn console_of_the_defaults(recorded: &str) -> String {
    let methods = format!("#option_method={METHODS}");
    let label = format!("#label={KERNEL}");
    let options = [
        ("#option_mb=1\r", "#option_mb=8\r"),
        ("#option_segment_pages=16,64", "#option_segment_pages=16"),
        ("#option_repeats=1", "#option_repeats=2"),
        ("#option_method=both", &methods),
        ("#label=none", &label),
    ];
    let change = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
    let mut asked = options.iter().fold(recorded.to_owned(), change);
    let start = asked.find("bench,,").unwrap();
    let end = start + asked[start..].find("#end").unwrap();
    asked.replace_range(start..end, &default_bench_rows());
    resealed(&asked.replace("probe,,", &format!("probe,{KERNEL},")))
}

/// What is found of a guest that prints `console` when it is given the default words.
fn of_the_defaults(stage: &Stage, console: &str) -> [String; 3] {
    fs::write(stage.path("console"), told_to_run_the_defaults(console)).unwrap();
    stage.run("");
    stage.found()
}

#[test]
fn the_default_words_ask_everything() {
    let stage = Stage::new(RELEASE, "cat console");
    let recorded = fs::read_to_string(stage.path("console")).unwrap();
    // The recorded bench had other options.
    let [word, detail, _] = of_the_defaults(&stage, &recorded);
    assert!(
        word == "damaged" && detail.contains("note 'option_"),
        "{detail}"
    );
    let asked = console_of_the_defaults(&recorded);
    assert_eq!(of_the_defaults(&stage, &asked), ["pass", "", "yes"]);
}

#[test]
fn what_is_otherwise_with_the_default_words_is_a_difference() {
    let stage = Stage::new(RELEASE, "cat console");
    let recorded = fs::read_to_string(stage.path("console")).unwrap();
    let asked = console_of_the_defaults(&recorded);
    let differs = |changes: &[(&str, &str)], wanted: &str| {
        let mut other = asked.clone();
        for (from, to) in changes {
            assert!(other.contains(from), "{from}");
            other = other.replacen(from, to, 1);
        }
        let found = of_the_defaults(&stage, &resealed(&other));
        assert_eq!(found, ["mismatch", wanted, "no"]);
    };
    let none_skipped = "18 passed, 0 failed, 0 skipped";
    let one_skipped = "17 passed, 0 failed, 1 skipped";
    differs(
        &[
            ("ok hole: proc", "skip hole: proc"),
            (none_skipped, one_skipped),
        ],
        "selftest skips hole: proc EIO, vmread EFAULT",
    );
    let (lacks, lacks_one) = (
        "20 of 22 known fields, without Pss_Dirty, KSM",
        "21 of 22 known fields, without KSM",
    );
    differs(
        &[(lacks, lacks_one)],
        "fields that smaps_rollup lacks: KSM, expected Pss_Dirty, KSM",
    );
    let quiet = "prot-none-untouched,hybrid,page,4096,4096,,zero,pfn,0,0,0,0,0,0,0,0,0,";
    for (from, to, wanted) in [
        (
            "pfn,0,0,0,",
            "pfn,0,0,1,",
            "prot-none-untouched page by hybrid changed faulted_in_pages 1",
        ),
        (
            ",0,0,0,0,0,0,0,0,0,",
            ",0,0,0,0,0,0,0,0,,",
            "prot-none-untouched page by hybrid changed target_rss_kib unknown",
        ),
        (
            ",4096,,zero,",
            ",0,EIO,,",
            "prot-none-untouched by hybrid: EIO, expected zeros",
        ),
    ] {
        differs(&[(quiet, &quiet.replace(from, to))], wanted);
    }
}

#[test]
fn an_emulator_that_dies_late_is_lost() {
    let stage = Stage::new(RELEASE, "cat console; kill -SEGV $$");
    assert_eq!(stage.run(WORDS).status.code(), Some(1));
    let [word, detail, _] = stage.found();
    assert_eq!(
        (&*word, &*detail),
        ("lost-qemu", "after the verdict: signal 11")
    );
    assert_eq!(
        stage.left(),
        ["5.10-aarch64.log", "5.10-aarch64.txt", "matrix.csv"]
    );
}

#[test]
fn a_console_without_end_is_cut_off() {
    let stage = Stage::new(RELEASE, "exec cat /dev/zero");
    assert_eq!(stage.run(WORDS).status.code(), Some(3));
    let [word, detail, _] = stage.found();
    assert_eq!(
        (&*word, &*detail),
        ("damaged", "the console has more than 64 MiB")
    );
    let log = fs::metadata(stage.path("out/5.10-aarch64.log")).unwrap();
    assert_eq!(log.len(), 64 << 20);
}
