//! What the binary is: static, small, frugal; and what it says about itself.

mod common;

use common::{BINARY, command, run, stdout};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

#[test]
fn the_elf_is_static_and_within_its_budget() {
    let bytes = fs::read(BINARY).unwrap();
    let header = elf::FileHeader64::<Endianness>::parse(&*bytes).unwrap();
    let endian = header.endian().unwrap();
    let segments = header.program_headers(endian, &*bytes).unwrap();
    let kinds: Vec<u32> = segments
        .iter()
        .map(|segment| segment.p_type(endian))
        .collect();
    assert!(!kinds.contains(&elf::PT_INTERP), "an interpreter");
    assert!(!kinds.contains(&elf::PT_DYNAMIC), "a dynamic section");
    for segment in segments
        .iter()
        .filter(|one| one.p_type(endian) == elf::PT_LOAD)
    {
        let flags = segment.p_flags(endian);
        assert!(
            flags & elf::PF_W == 0 || flags & elf::PF_X == 0,
            "writable code"
        );
    }
    if cfg!(debug_assertions) {
        eprintln!("skipped: the budget is for release builds");
    } else {
        // 96 KiB hold `bench`; eight more commands, `/init`, a loader and help come on top.
        assert!(bytes.len() <= 440 << 10, "{} bytes", bytes.len());
    }
}

/// Resident memory beyond the arena (1 MiB) and its buffer (4 KiB) is 512 KiB at most: code, of
/// which what `bench` runs lies together (targets/behind.ld), tables, and a stack on which only the
/// reader that is used has its place.
#[test]
fn the_tool_itself_is_frugal() {
    let mut child =
        command("bench --mb 1 --layout contiguous --block 4K --repeats 100 --warm 1000 -q")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
    let mut most = 0;
    for _ in 0..100 {
        sleep(Duration::from_millis(10));
        let path = format!("/proc/{}/status", child.id());
        let kib = common::field(&path, "VmHWM:").next();
        most = most.max(kib.map_or(0, |kib| kib.parse::<u64>().unwrap()));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(most > 1024, "it was measured: {most} KiB");
    // Unoptimised code is resident several times over.
    let limit = if cfg!(debug_assertions) { 4096 } else { 512 };
    assert!(most <= 1024 + 4 + limit, "{most} KiB");
}

#[test]
fn version_and_help_go_to_standard_output() {
    let version = stdout(&run("--version"));
    let want = format!("cowitness {} (", env!("CARGO_PKG_VERSION"));
    assert!(
        version.starts_with(&want) && version.ends_with(")\n"),
        "{version}"
    );
    for (args, golden) in [
        ("--help", include_str!("golden/help.txt")),
        ("audit --help", include_str!("golden/help-audit.txt")),
        ("bench --help", include_str!("golden/help-bench.txt")),
        ("env --help", include_str!("golden/help-env.txt")),
        ("memmap --help", include_str!("golden/help-memmap.txt")),
        ("probe --help", include_str!("golden/help-probe.txt")),
        ("selftest --help", include_str!("golden/help-selftest.txt")),
        ("survey --help", include_str!("golden/help-survey.txt")),
        (
            "startup ab --help",
            include_str!("golden/help-startup-ab.txt"),
        ),
        ("startup --help", include_str!("golden/help-startup.txt")),
        (
            "startup slope --help",
            include_str!("golden/help-startup-slope.txt"),
        ),
    ] {
        let output = run(args);
        assert!(output.stderr.is_empty());
        assert_eq!(stdout(&output), golden, "{args}");
    }
}

/// Against what other programs and files say of the same machine.
#[test]
fn the_environment_is_this_machines() {
    let text = stdout(&run("env --label here --seed 9"));
    let notes: std::collections::BTreeMap<&str, &str> = text
        .lines()
        .skip(1)
        .map(|line| line.strip_prefix('#').unwrap().split_once('=').unwrap())
        .collect();
    let file = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_string());
    let crc = crc32fast::hash(&fs::read(BINARY).unwrap());
    assert_eq!(text.lines().next(), Some("#cowitness 1"));
    assert_eq!(notes["command"], "env");
    assert_eq!(notes["label"], "here");
    assert_eq!(notes["seed"], "9");
    assert_eq!(notes["kernel"], file("/proc/sys/kernel/osrelease").unwrap());
    assert_eq!(
        notes["kernel_version"],
        file("/proc/sys/kernel/version").unwrap()
    );
    assert_eq!(notes["arch"], std::env::consts::ARCH);
    assert_eq!(notes["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(notes["exe_crc32"], format!("{crc:08x}"));
    assert_eq!(
        notes["max_map_count"],
        file("/proc/sys/vm/max_map_count").unwrap()
    );
    assert_eq!(
        notes["aslr"],
        file("/proc/sys/kernel/randomize_va_space").unwrap()
    );
    assert_eq!(
        notes["overcommit_memory"],
        file("/proc/sys/vm/overcommit_memory").unwrap()
    );
    assert_eq!(
        notes["cap_eff"],
        common::field("/proc/self/status", "CapEff:")
            .next()
            .unwrap()
    );
    assert_eq!(
        notes["yama_ptrace_scope"],
        file("/proc/sys/kernel/yama/ptrace_scope").unwrap_or("absent".into())
    );
    if let Ok(host) = file("/proc/sys/kernel/hostname")
        && host.len() > 3
        && !notes["kernel_version"].contains(&host)
    {
        assert!(
            !text.contains(&host),
            "the host's name is nobody's business"
        );
    }
    for (key, value) in notes {
        assert!(
            !value.is_empty(),
            "{key} says neither what it is nor why not"
        );
    }
}
