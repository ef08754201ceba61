//! `sharing` with its built-in subject and with real programs: who shares, who copies.

mod common;
#[path = "common/sharing.rs"]
mod helpers;

use common::{BINARY, Folder, Row, command, number, run, stdout};
use helpers::{PYTHON, alone, arm, decimal, sharing, statuses, verdicts, with_verdicts};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// As [`alone`]; nobody else gets a verdict on so few processes, and is told so.
fn alone_as_root() -> Option<impl Sized> {
    if !common::is_root() {
        eprintln!("skipped: only root has the kernel count Shmem exactly");
        return None;
    }
    Some(alone())
}

#[test]
fn the_built_in_subject_shares_or_not_as_its_arm_says() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let options = "--arm elf,native,memfd,static --n 1,2,4,8,16 --reps 3";
    let wanted: [(&str, &[&str]); 4] = [
        ("elf", &["shared"]),
        ("native", &["copied-anon"]),
        ("memfd", &["copied-shmem"]),
        ("static", &["shared"]),
    ];
    let (processes, fits) = with_verdicts(options, &[], &wanted);
    assert_eq!(processes.rows.len(), 4 * 3 * 31);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    for name in ["elf", "static"] {
        let fit = arm(&fits, name)[0];
        assert!(decimal(fit, "r2") >= 0.99, "{fit:?}");
        assert!(decimal(fit, "private_fraction") <= 0.05, "{fit:?}");
        // 5 MiB of text are shared, 64 KiB of data are not.
        assert!((decimal(fit, "b_kb") - 5120.0).abs() < 100.0, "{fit:?}");
        assert!((64.0..128.0).contains(&decimal(fit, "a_kb")), "{fit:?}");
    }
    let load_kib = (5 << 10) + 64;
    for row in arm(&processes, "native") {
        assert_eq!(number(row, "sum_filesz_kb"), Some(load_kib));
        let dirty = number(row, "Private_Dirty").unwrap();
        assert!((dirty - load_kib).abs() <= load_kib / 20, "{row:?}");
        assert_eq!(
            number(row, "Pss_File"),
            Some(0),
            "the loader is gone: {row:?}"
        );
    }
    for row in arm(&processes, "memfd") {
        assert!(number(row, "Pss_Shmem") >= Some(5 << 10), "{row:?}");
    }
}

#[test]
fn a_byte_for_each_lets_the_built_in_subject_go_as_well() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let options = "--arm elf --n 1,5 --reps 5 --release byte";
    let (processes, fits) = with_verdicts(options, &[], &[("elf", &["shared"])]);
    assert_eq!(processes.rows.len(), 30);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    let fit = arm(&fits, "elf")[0];
    assert_eq!(fit["r2"], "");
    let settled = |row: &Row| number(row, "settle_us") > Some(0);
    assert!(processes.rows.iter().all(settled));
}

#[test]
fn untouched_pages_of_a_file_in_memory_are_in_no_process_and_cost_the_machine_all_the_same() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let wanted: [(&str, &[&str]); 3] = [
        ("elf", &["shared"]),
        ("native", &["copied-anon"]),
        ("memfd", &["copied-shmem"]),
    ];
    let (processes, _) = with_verdicts("--touch 0 --n 1,4,8", &[], &wanted);
    for row in arm(&processes, "memfd") {
        assert!(number(row, "Pss_Shmem") < Some(1 << 10), "{row:?}");
    }
    // What is copied is copied whole.
    for row in arm(&processes, "native") {
        assert!(number(row, "Private_Dirty") >= Some(5 << 10), "{row:?}");
    }
    for row in arm(&processes, "elf") {
        assert!(number(row, "Rss") < Some(1 << 10), "{row:?}");
    }
}

#[test]
fn a_file_on_a_tmpfs_is_said_to_be_dirty() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    if !fs::metadata("/dev/shm").is_ok_and(|folder| folder.is_dir()) {
        eprintln!("skipped: no /dev/shm");
        return;
    }
    let (processes, fits) = sharing("--arm elf --dir /dev/shm --n 1,2,4", &[], 0);
    assert_eq!(verdicts(&fits), [("elf", "dirty-cache")]);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
}

#[test]
fn real_programs_have_rows_and_verdicts() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    for program in ["cat", PYTHON] {
        // What a program writes to is private in elf, too, so not all of it is lost.
        let wanted: [(&str, &[&str]); 3] = [
            ("elf", &["shared"]),
            ("native", &["copied-anon", "mixed"]),
            ("memfd", &["copied-shmem"]),
        ];
        let (processes, fits) = with_verdicts("--n 1,2,4,8", &[program], &wanted);
        assert_eq!(processes.notes["option_program"], program);
        assert_eq!(statuses(&processes), BTreeSet::from(["ok"]), "{program}");
        let native = arm(&fits, "native")[0];
        assert!(decimal(native, "private_fraction") > 0.5, "{native:?}");
        for row in arm(&processes, "native") {
            assert!(number(row, "Private_Dirty") >= number(row, "sum_filesz_kb"));
        }
        // A program that uses the C library is not the only one.
        let seen = |row: &Row| number(row, "bystanders") > Some(0);
        assert!(processes.rows.iter().any(seen), "{program}");
    }
}

/// Batches in the order of their rows.
fn batches(processes: &common::Stream) -> Vec<(String, String, String)> {
    let of = |row: &Row| (row["arm"].clone(), row["n"].clone(), row["rep"].clone());
    let mut all: Vec<_> = processes.rows.iter().map(of).collect();
    all.dedup();
    all
}

#[test]
fn the_seed_decides_the_order_and_every_arm_stands_everywhere() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    // Eighteen rounds of three arms, so three blocks of six.
    let run = |seed: u64| {
        let options = format!("--text 64K --n 1,2,3 --reps 6 --seed {seed}");
        let output = command(&format!("sharing -q {options}")).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        batches(&helpers::streams(&text).0)
    };
    let (one, again, other) = (run(1), run(1), run(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
    for order in [&one, &other] {
        // Once each.
        assert_eq!(order.len(), 3 * 3 * 6);
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), order.len());
        for place in 0..3 {
            for arm in ["elf", "native", "memfd"] {
                let there = order.iter().skip(place).step_by(3);
                assert_eq!(there.filter(|batch| batch.0 == arm).count(), 6, "{arm}");
            }
        }
        let numbers: Vec<&str> = order.iter().step_by(3).map(|batch| &*batch.1).collect();
        let sorted = numbers.chunks(3).all(|three| three == ["1", "2", "3"]);
        assert!(!sorted, "{numbers:?}");
    }
}

#[test]
fn a_control_that_is_another_program_is_named() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let control = format!("sharing --arm static={BINARY} --n 1,2 --reps 1 --settle 1 -- cat");
    let summary = run(&control).stderr;
    let summary = String::from_utf8_lossy(&summary);
    let want = format!("  static ({BINARY}, another program): not every process");
    assert!(summary.contains(&want), "{summary}");
}

/// What each subject sees of itself, by process id.
const LOOK: &str = "import os, sys
folder = sys.argv[1]
with open(f'{folder}/{os.getpid()}', 'w') as out:
    out.write(open('/proc/self/maps').read())
    out.write(f'argv {sys.argv[2:]}\\n')
    out.write(f'environment {sorted(os.environ.items())}\\n')
sys.stdin.read()";

#[test]
fn subjects_are_the_program_in_every_arm_and_the_loader_is_gone() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let folder = Folder::open_to_all();
    let program = [PYTHON, "-c", LOOK, folder.text(), "a b", "--n"];
    let (processes, _) = sharing("--n 1,2 --reps 1 --aslr off", &program, 0);
    let seen = |row: &Row| fs::read_to_string(folder.0.join(&row["pid"])).expect("it ran");
    let program_line = |line: &&str| line.contains("/python3");
    let interpreter_line = |line: &&str| line.contains("/ld-linux") || line.contains("/ld-2");
    for row in &processes.rows {
        let text = seen(row);
        assert!(text.contains("argv ['a b', '--n']\n"), "{text}");
        let environment = "environment [('LC_ALL', 'C'), ('PATH', \
                           '/usr/local/bin:/usr/bin:/bin')";
        assert!(text.contains(environment), "{text}");
        assert!(
            text.contains("libc.so.6"),
            "the C library is mapped: {text}"
        );
        assert!(!text.contains("/cowitness"), "{text}");
        let program = text.lines().find(program_line);
        let interpreter = text.lines().find(interpreter_line);
        match &*row["arm"] {
            "elf" => assert!(program.is_some() && interpreter.is_some(), "{text}"),
            "memfd" => assert!(text.contains("/memfd:cowitness-subject"), "{text}"),
            _ => assert!(program.is_none() && interpreter.is_none(), "{text}"),
        }
    }
    // Without random addresses all of an arm look the same.
    let mappings = |row: &&Row| -> String {
        let text = seen(row);
        let named = text.lines().filter(|line| line.contains("libc.so.6"));
        named.collect()
    };
    let elf: BTreeSet<String> = arm(&processes, "elf").iter().map(mappings).collect();
    assert_eq!(elf.len(), 1);
    let (random, _) = sharing("--arm elf --n 1,3 --reps 1", &program, 0);
    let elf: BTreeSet<String> = arm(&random, "elf").iter().map(mappings).collect();
    let aslr = fs::read_to_string("/proc/sys/kernel/randomize_va_space").unwrap();
    assert!(aslr.trim() == "0" || elf.len() > 1, "{elf:?}");
}

/// A program that can only be loaded at one address, which is where the loader is.
const FIXED: &str = r#"
static volatile char big[200000] = {1};
void _start(void) {
    char byte;
    long got;
    for (unsigned at = 0; at < sizeof big; at += 4096) big[at]++;
#if defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(got) : "a"(0), "D"(0), "S"(&byte), "d"(1) : "rcx", "r11", "memory");
    __asm__ volatile("syscall" : : "a"(231), "D"(got < 0 || big[0] != 2) : "rcx", "r11", "memory");
#else
    register long nr __asm__("x8") = 63;
    register long a __asm__("x0") = 0;
    register char *b __asm__("x1") = &byte;
    register long c __asm__("x2") = 1;
    __asm__ volatile("svc 0" : "+r"(a) : "r"(nr), "r"(b), "r"(c) : "memory");
    got = a;
    nr = 94;
    a = got < 0 || big[0] != 2;
    __asm__ volatile("svc 0" : "+r"(a) : "r"(nr) : "memory");
#endif
    for (;;) ;
}
"#;

#[test]
fn a_program_that_must_lie_where_the_loader_lies_is_copied_as_well() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let folder = Folder::open_to_all();
    let (source, program) = (folder.0.join("fixed.c"), folder.0.join("fixed"));
    fs::write(&source, FIXED).unwrap();
    let own = object_base(BINARY.as_ref());
    let compiler = Command::new("cc")
        .args([
            "-O1",
            "-static",
            "-nostdlib",
            "-no-pie",
            "-fno-stack-protector",
            "-o",
        ])
        .args([&program, &source])
        .arg(format!("-Wl,-Ttext-segment={own:#x}"))
        .status();
    if !compiler.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no C compiler");
        return;
    }
    assert_eq!(object_base(&program), own, "the same place");
    let path = program.to_str().unwrap();
    let control = format!("--arm elf,native,memfd,static={path} --n 1,2,4 --reps 1");
    let (processes, fits) = sharing(&control, &[path], 0);
    assert_eq!(statuses(&processes), BTreeSet::from(["ok"]));
    assert_eq!(arm(&fits, "memfd")[0]["verdict"], "copied-shmem");
    for row in arm(&processes, "native") {
        assert_eq!(number(row, "Pss_File"), Some(0));
        assert!(number(row, "Private_Dirty") >= number(row, "sum_filesz_kb"));
    }
}

/// The lowest address that a program loads at.
fn object_base(path: &std::path::Path) -> u64 {
    use object::read::elf::{FileHeader, ProgramHeader};
    let bytes = fs::read(path).unwrap();
    let header = object::elf::FileHeader64::<object::Endianness>::parse(&*bytes).unwrap();
    let endian = header.endian().unwrap();
    let segments = header.program_headers(endian, &*bytes).unwrap();
    let loads = segments
        .iter()
        .filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD);
    loads.map(|segment| segment.p_vaddr(endian)).min().unwrap()
}

#[test]
fn help_is_as_written_and_the_summary_says_what_was_found() {
    let Some(_alone) = alone_as_root() else {
        return;
    };
    let help = stdout(&run("sharing --help"));
    assert_eq!(help, include_str!("golden/help-sharing.txt"));
    let output = run("sharing --n 1,2,4 --reps 1");
    // Somebody may not let itself be looked at.
    let summary = String::from_utf8_lossy(&output.stderr).replace("at least ", "");
    for part in [
        "21 of 21 processes ok",
        "  elf: what the others are compared with, so shared by definition\n    of the PSS of a single process 9",
        "  native: every process has a copy of the segments in memory of its own",
        "  memfd: every process costs the machine a copy of the file as shared memory",
    ] {
        assert!(summary.contains(part), "{summary}");
    }
    assert!(output.status.success(), "{summary}");
}
