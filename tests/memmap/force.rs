//! What is said to be in force, and what decides on it: huge pages of the machine, of a size,
//! of this process and of a mount; fault-around.

use super::common::whole_stream;
use super::*;

/// Switches huge pages off for what it then runs: prctl(2), PR_SET_THP_DISABLE with the flags
/// that are the first argument. Ends with 9 if this kernel does not know them.
const SWITCH: &str = "import ctypes, os, sys\n\
    if ctypes.CDLL(None).prctl(41, 1, int(sys.argv[1]), 0, 0): sys.exit(9)\n\
    os.execv(sys.argv[2], sys.argv[2:])";

/// `word` of the choices in the files of a size, or of the machine.
fn enabled(word: &str) -> String {
    let choices = ["always", "inherit", "madvise", "never"];
    choices
        .map(|choice| match choice == word {
            true => format!("[{choice}]"),
            false => choice.to_owned(),
        })
        .join(" ")
        + "\n"
}

/// A machine whose settings are these: of all sizes, of 2 MiB (none before Linux 6.8) and of
/// 64 KiB. Only the files are other ones, in a mount namespace; who reads them is the program.
fn settings(folder: &Path, all: &str, of_2_mib: Option<&str>, of_64_kib: &str) {
    fs::write(folder.join("enabled"), enabled(all)).unwrap();
    fs::write(folder.join("hpage_pmd_size"), "2097152\n").unwrap();
    for (name, mode) in [("2048kB", of_2_mib), ("64kB", Some(of_64_kib))] {
        let size = folder.join(format!("hugepages-{name}"));
        if let Some(mode) = mode {
            fs::create_dir_all(&size).unwrap();
            fs::write(size.join("enabled"), enabled(mode)).unwrap();
        }
    }
}

/// What a row and standard error say in such a folder; `None` if nothing can be mounted.
fn said(folder: &Path, over: &str, switch: &str) -> Option<(String, String)> {
    let words = "memmap --mode mmap-anon --mb 1 --csv";
    let run = match switch {
        "" => format!("{BINARY} {words}"),
        flags => format!("python3 -c '{SWITCH}' {flags} {BINARY} {words}"),
    };
    let folder = folder.display();
    let output = in_namespace(&format!("mount --bind {folder} {over} && exec {run}"))?;
    if output.status.code() == Some(9) {
        eprintln!("skipped: this kernel does not know these flags");
        return None;
    }
    let row = whole_stream(&stdout(&output)).rows.remove(0);
    Some((row["thp"].clone(), stderr(&output)))
}

/// Huge pages that a parent has taken away are not in force.
#[test]
fn huge_pages_switched_off_by_prctl_are_named() {
    let output = Command::new("python3")
        .args(["-c", SWITCH, "0", BINARY])
        .args("memmap --mode mmap-anon --mb 4 --csv".split(' '))
        .output()
        .unwrap();
    let rows = whole_stream(&stdout(&output)).rows;
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("skipped: no huge pages here");
        return;
    }
    assert_eq!(rows[0]["thp"], "off-by-prctl");
    assert_eq!(rows[0]["anon_huge_kib"], "0");
    assert!(stderr(&output).contains("memmap: in force: thp=off-by-prctl"));
}

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

/// The mode of the huge page's own size counts, and other sizes that are on are named.
#[test]
fn the_mode_in_force_is_that_of_the_size() {
    if !Path::new(THP).exists() {
        eprintln!("skipped: no huge pages here");
        return;
    }
    for (all, of_2_mib, of_64_kib, switch, want) in [
        ("always", None, "never", "", "always"),
        ("always", Some("never"), "never", "", "never"),
        ("never", Some("always"), "never", "", "always"),
        ("always", Some("inherit"), "never", "", "always"),
        ("madvise", Some("inherit"), "never", "", "madvise"),
        (
            "always",
            Some("madvise"),
            "inherit",
            "",
            "madvise +64KiB:always",
        ),
        (
            "never",
            Some("inherit"),
            "always",
            "",
            "never +64KiB:always",
        ),
        ("never", Some("inherit"), "inherit", "", "never"),
        ("always", Some("inherit"), "always", "0", "off-by-prctl"),
        // PR_THP_DISABLE_EXCEPT_ADVISED.
        ("always", Some("inherit"), "never", "2", "madvise-by-prctl"),
        (
            "never",
            Some("inherit"),
            "always",
            "2",
            "never +64KiB:madvise-by-prctl",
        ),
        ("madvise", Some("inherit"), "never", "2", "madvise"),
    ] {
        let folder = Folder::new();
        settings(&folder.0, all, of_2_mib, of_64_kib);
        let Some((thp, line)) = said(&folder.0, THP, switch) else {
            continue;
        };
        assert_eq!(thp, want, "{all} {of_2_mib:?} {of_64_kib} {switch}");
        let (mode, others) = want.split_once(' ').unwrap_or((want, ""));
        let shown = format!("memmap: in force: thp={mode} (2048KiB) {others}");
        assert!(line.starts_with(shown.trim_end()), "{line}");
    }
}

/// A kernel without huge pages has none, whatever prctl(2) says.
#[test]
fn a_kernel_without_huge_pages_is_not_switched_off() {
    let folder = Folder::new();
    for switch in ["", "0"] {
        if let Some((thp, line)) = said(&folder.0, "/sys/kernel/mm", switch) {
            assert_eq!(thp, "none", "{line}");
            assert!(line.starts_with("memmap: in force: thp=none "), "{line}");
        }
    }
}

/// Of a file on tmpfs the mount decides, unless the machine does.
#[test]
fn the_huge_pages_of_a_tmpfs_are_those_of_its_mount() {
    let folder = Folder::new();
    let at = folder.0.display();
    let machine = fs::read_to_string(Path::new(THP).join("shmem_enabled")).unwrap_or_default();
    let machine = machine
        .split(['[', ']'])
        .nth(1)
        .map_or_else(|| "unknown (ENOENT)".to_owned(), str::to_owned);
    for (options, want) in [("huge=within_size", "within_size"), ("huge=never", "never")] {
        let script = format!(
            "mount -t tmpfs -o size=8m,{options} none {at} && \
             TMPDIR={at} exec {BINARY} memmap --mode fault-walk --mb 1"
        );
        let Some(output) = in_namespace(&script) else {
            return;
        };
        stdout(&output);
        let want = format!(" tmpfs_huge={want} shmem_enabled={machine} fault_around=");
        assert!(stderr(&output).contains(&want), "{output:?}");
    }
    if file_system(&folder.0) != "tmpfs" {
        let output = shell("true", "--mode fault-walk --mb 1", &folder.0);
        assert!(!stderr(&output).contains("tmpfs_huge="), "{output:?}");
    }
}

/// What is missing is said as it is, to root as well.
#[test]
fn fault_around_says_why_it_is_unknown() {
    let debugfs = Path::new("/sys/kernel/debug");
    let note = stderr(&memmap("--mode heap --mb 1"));
    if debugfs.join("fault_around_bytes").exists() {
        assert!(
            note.contains(" fault_around=") && note.contains("B write="),
            "{note}"
        );
    } else if common::is_root() {
        let want = "fault_around=unknown (ENOENT: no debugfs at /sys/kernel/debug) ";
        assert!(note.contains(want), "{note}");
    }
    let script = format!(
        "mount -t debugfs none {} && exec {BINARY} memmap --mode heap --mb 1",
        debugfs.display()
    );
    if let Some(output) = in_namespace(&script) {
        let note = stderr(&output);
        assert!(
            note.contains("fault_around=65536B ") || note.contains("EPERM: needs root"),
            "{note}"
        );
    }
}
