//! What is refused: command lines, files, memory that is not promised, a standard output
//! that takes nothing.

use super::*;
use std::os::unix::process::CommandExt;

const USAGE: &str =
    "usage: memmap --mode stack|heap|mmap-anon|mmap-file <FILE>|fault-walk [--mb N]\n";

/// Nothing is run, nothing is written to standard output, and one line says how it is used.
#[test]
fn what_makes_no_sense_is_answered_with_the_usage_line() {
    let cases = [
        "",
        "--mb 4",
        "--mode",
        "--mode walk",
        "--mode=heap",
        "--mode HEAP",
        "--mode heap --mb",
        "--mode heap --mb 0",
        "--mode heap --mb 1025",
        "--mode heap --mb -1",
        "--mode heap --mb +4",
        "--mode heap --mb 4M",
        "--mode heap --mb 4.0",
        "--mode heap --mb 99999999999999999999",
        "--mode heap --mb=64",
        "--mode mmap-file",
        "--mode mmap-file --mb 4",
        "--mode heap /etc/passwd",
        "--mode fault-walk /etc/passwd",
        "--mode mmap-file /etc/passwd /etc/group",
        "/etc/passwd --mode stack",
        "heap",
        "--mode heap stray",
        "--mode heap --verbose",
        "--mode heap --quiet=yes",
        "--mode heap --csv=yes",
        "--mode heap --",
        "-x",
    ];
    for words in cases {
        let output = memmap(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert_eq!(stderr(&output), USAGE, "{words}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}

/// What its contract does not know is explained first.
#[test]
fn further_options_say_what_they_take() {
    let cases = [
        (
            "--mode heap --advise fast",
            "memmap: error: --advise 'fast': must be none, hugepage,",
        ),
        (
            "--mode heap --advise",
            "memmap: error: --advise needs a value: ADVICE",
        ),
        (
            "--mode stack --brk",
            "memmap: error: --brk with --mode 'stack': must be heap",
        ),
        (
            "--mode heap --seed x",
            "memmap: error: --seed 'x': must be 0 to",
        ),
    ];
    for (words, want) in cases {
        let output = memmap(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        let said = stderr(&output);
        assert!(said.starts_with(want) && said.ends_with(USAGE), "{said}");
        assert!(output.stdout.is_empty(), "{words}");
    }
}

#[test]
fn files_that_cannot_be_mapped_are_named() {
    let folder = Folder::new();
    let empty = folder.0.join("empty.bin");
    fs::write(&empty, b"").unwrap();
    let fifo = folder.0.join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    let cases = [
        (&*empty, "file is empty"),
        (
            Path::new("/no/such/file"),
            "ENOENT: there is no such file or folder",
        ),
        (&*folder.0, "not a regular file"),
        (Path::new("/dev/null"), "not a regular file"),
        (
            Path::new("/proc/self/mem"),
            "a file without a size, of a kernel's file system; it cannot be mapped",
        ),
        (
            Path::new("/proc/self/maps"),
            "a file without a size, of a kernel's file system; it cannot be mapped",
        ),
        (&*fifo, "not a regular file"),
    ];
    for (path, want) in cases {
        let output = memmap(&format!("--mode mmap-file {}", path.display()));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let want = format!("memmap: error: {}: {want}\n", path.display());
        assert_eq!(stderr(&output), want);
        assert!(output.stdout.is_empty(), "{output:?}");
    }
}

#[test]
fn under_the_name_memmap_it_is_memmap() {
    let folder = Folder::new();
    let link = folder.0.join("memmap");
    std::os::unix::fs::symlink(BINARY, &link).unwrap();
    let named = |words: &[&str]| Command::new(&link).args(words).output().unwrap();
    let text = stdout(&named(&["--mode", "mmap-anon", "--mb", "1"]));
    assert!(
        text.starts_with("memmap: mode=mmap-anon bytes=1048576 "),
        "{text}"
    );
    for words in [
        &["memmap", "--mode", "heap"][..],
        &["--mode", "heap", "then"],
        &[],
    ] {
        let output = named(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert_eq!(stderr(&output), USAGE, "{words:?}");
    }
    // By argv[0] alone, wherever the file is.
    let mut bare = Command::new(BINARY);
    bare.arg0("memmap").args(["--mode", "stack"]);
    assert!(stdout(&bare.output().unwrap()).starts_with("memmap: mode=stack "));
}

/// Before anything is touched, and never by a signal.
#[test]
fn a_stack_that_cannot_grow_is_an_error() {
    let folder = Folder::new();
    for setup in ["ulimit -s 1024", "ulimit -s 4096", "ulimit -v 3000"] {
        let output = shell(setup, "--mode stack", &folder.0);
        assert_eq!(output.status.code(), Some(1), "{setup}: {output:?}");
        let said = stderr(&output);
        assert!(
            said.starts_with("memmap: error: the stack cannot grow by 4 MiB: RLIMIT_STACK"),
            "{setup}: {said}"
        );
        assert!(output.stdout.is_empty(), "{setup}");
    }
    for setup in ["ulimit -s 5000", "ulimit -s unlimited || true"] {
        let output = shell(setup, "--mode stack", &folder.0);
        assert!(stdout(&output).contains("[stack]   <-- target"), "{setup}");
    }
    let output = shell("ulimit -s 2048", "--mode stack --mb 1", &folder.0);
    assert!(stdout(&output).contains("bytes=1048576"));
}

/// Room for the program's own frames is looked at first; memmap needs less than others.
#[test]
fn a_stack_without_room_for_the_program_is_an_error() {
    let small = |kib: u32, words: &str| {
        let script = format!("ulimit -s {kib}; exec {BINARY} {words}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        (output.status.code(), stderr(&output))
    };
    for (kib, words, needed) in [
        (100, "memmap --mode heap", 128),
        (100, "env", 128),
        (1000, "probe", 1024),
        (1000, "bench --mb 1", 1024),
        (1000, "selftest", 1024),
        (250, "memmap --mode heap", 256),
        (250, "env", 256),
    ] {
        let name = match words.starts_with("memmap") {
            true => "memmap",
            false => "cowitness",
        };
        let want = format!(
            "{name}: error: the stack is too small: RLIMIT_STACK (ulimit -s) is {kib} KiB, \
             {needed} KiB are needed; raise it\n"
        );
        assert_eq!(small(kib, words), (Some(1), want), "{words}");
    }
    assert_eq!(small(256, "memmap --mode heap --mb 1 -q").0, Some(0));
}

#[test]
fn memory_that_is_not_promised_is_an_error() {
    let folder = Folder::new();
    for (setup, words, doing) in [
        ("ulimit -v 20000", "--mode heap", "map anonymous memory"),
        (
            "ulimit -v 20000",
            "--mode mmap-anon",
            "map anonymous memory",
        ),
        (
            "ulimit -d 20000",
            "--mode heap --brk",
            "grow the program break",
        ),
    ] {
        let output = shell(setup, words, &folder.0);
        assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
        let want = format!("memmap: error: cannot {doing}: ENOMEM: see ulimit -v");
        assert!(stderr(&output).contains(&want), "{}", stderr(&output));
    }
}

#[test]
fn a_closed_or_full_standard_output_is_an_error() {
    let folder = Folder::new();
    for setup in ["exec >&-", "exec >/dev/full"] {
        let output = shell(setup, "--mode fault-walk --mb 1", &folder.0);
        assert_eq!(output.status.code(), Some(1), "{setup}: {output:?}");
        assert!(stderr(&output).contains("memmap: error: cannot write to standard output"));
        assert!(files(&folder.0).is_empty());
    }
}

/// Errors begin with the name of the command that they are about.
#[test]
fn errors_have_the_name_of_their_command() {
    let small = "ulimit -s 1000; exec";
    let heap = "memmap --mode heap --mb 1 -q";
    for (words, want) in [
        (
            format!("{heap} then probe"),
            "cowitness: error: the stack is too small",
        ),
        (
            format!("env then {heap} --advise fast"),
            "memmap: error: --advise 'fast'",
        ),
        (
            format!("{heap} then memmap --mode mmap-file /no"),
            "memmap: error: /no: ENOENT",
        ),
    ] {
        let script = format!("{small} {BINARY} {words}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = stderr(&output);
        assert!(said.starts_with(want), "{words}: {said}");
    }
}

/// What helps is what can be done: a file that was given has no --mb.
#[test]
fn remedies_fit_the_mode() {
    let folder = Folder::new();
    let large = folder.0.join("large");
    fs::File::create(&large).unwrap().set_len(1 << 30).unwrap();
    let given = format!("--mode mmap-file {}", large.display());
    for (setup, words, want) in [
        (
            "ulimit -v 20000",
            &*given,
            "see ulimit -v; take a smaller file\n",
        ),
        (
            "ulimit -v 20000",
            "--mode fault-walk",
            "see ulimit -v; lower --mb\n",
        ),
        (
            "ulimit -f 100",
            "--mode fault-walk",
            "(ulimit -f); lower --mb\n",
        ),
    ] {
        let output = shell(setup, words, &folder.0);
        assert_eq!(output.status.code(), Some(1), "{words}: {output:?}");
        assert!(stderr(&output).ends_with(want), "{words}: {output:?}");
    }
}

/// The kernel counts pages of hugetlbfs nowhere that is looked at here.
#[test]
fn a_file_of_hugetlbfs_is_refused() {
    let folder = Folder::new();
    let at = folder.0.display();
    let script = format!(
        "mount -t hugetlbfs none {at} && truncate -s 1G {at}/file && \
         exec {BINARY} memmap --mode mmap-file {at}/file"
    );
    let Some(output) = in_namespace(&script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let want =
        format!("memmap: error: {at}/file: a file of hugetlbfs, whose pages are in no VmRSS");
    assert!(stderr(&output).starts_with(&want), "{output:?}");
}

/// A program that may be run and not read: it rehearses without its file.
#[test]
fn a_program_that_may_not_be_read_measures_files() {
    for (words, want) in [
        ("--mode mmap-file /etc/passwd -q", "memmap: mode=mmap-file "),
        ("--mode fault-walk --mb 1 -q", "memmap: mode=fault-walk "),
        ("--mode stack --mb 1 -q", "memmap: mode=stack "),
    ] {
        let Some((mut command, home)) = common::command_as_nobody(&format!("memmap {words}"))
        else {
            return;
        };
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o711);
        fs::set_permissions(home.0.join("cowitness"), closed).unwrap();
        let folder = Folder::open_to_all();
        let output = command.env("TMPDIR", &folder.0).output().unwrap();
        assert!(stdout(&output).starts_with(want), "{output:?}");
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

/// Without room nothing is written first.
#[test]
fn room_is_looked_at_before_the_walk_file_is_written() {
    let folder = Folder::new();
    let little = folder.0.join("meminfo");
    fs::write(&little, "MemAvailable: 2000 kB\n").unwrap();
    let script = format!(
        "mount --bind {} /proc/meminfo && \
         TMPDIR=/nonexistent exec {BINARY} memmap --mode fault-walk --mb 64",
        little.display()
    );
    let Some(output) = in_namespace(&script) else {
        return;
    };
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(
        said.starts_with("memmap: error: not enough memory: "),
        "{said}"
    );
    assert!(said.ends_with(" MiB are available; lower --mb\n"), "{said}");
}
