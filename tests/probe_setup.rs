//! What `probe --setup` changes on the machine, for whom, and that it is put back.

mod common;
#[path = "common/audit.rs"]
mod helpers;

use common::{
    BINARY, PINNING, Row, answered as of, command, command_as_nobody, group, in_a_session, is_root,
    lock_of_the_machine, number, page, run, stdout, vmread_splits, whole_stream,
};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// These runs change the machine, and others see that: one run at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// What `--setup` changes, as text.
fn settings() -> Vec<Option<String>> {
    const MM: &str = "/sys/kernel/mm";
    let files = [
        format!("{MM}/transparent_hugepage/enabled"),
        format!("{MM}/transparent_hugepage/hugepages-64kB/enabled"),
        format!("{MM}/ksm/run"),
        format!("{MM}/ksm/pages_to_scan"),
        format!("{MM}/ksm/sleep_millisecs"),
        "/proc/sys/vm/nr_hugepages".to_owned(),
        "/proc/swaps".to_owned(),
    ];
    let texts = files.iter().map(|file| fs::read_to_string(file).ok());
    texts.chain([Some(zrams().join(" "))]).collect()
}

/// Devices of compressed memory, used or not.
fn zrams() -> Vec<String> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten();
    let names = devices.map(|device| device.unwrap().file_name().into_string().unwrap());
    let mut zrams: Vec<String> = names.filter(|name| name.starts_with("zram")).collect();
    zrams.sort();
    zrams
}

/// Killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        // Its own end, so that it puts everything back.
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.0.wait();
    }
}

#[test]
fn what_is_set_up_is_used_and_put_back() {
    if !is_root() {
        return;
    }
    let _alone = MACHINE.lock();
    let before = settings();
    let output = run("probe -q --setup --kind mthp-64k,hugetlb,swapped,ksm");
    assert_eq!(settings(), before);
    let rows = whole_stream(&stdout(&output)).rows;
    for row in of(&rows, "swapped", &["proc", "vmread"]) {
        let pages = number(row, "requested_bytes").unwrap() / page(row);
        assert_eq!(number(row, "swapped_in_pages"), Some(pages), "{row:?}");
        assert!(number(row, "reader_majflt") > Some(0), "{row:?}");
    }
    for row in rows
        .iter()
        .filter(|row| row["kind"] == "swapped" && row["method"] == "hybrid")
    {
        assert!(row["status"].starts_with("skipped:"), "{row:?}");
        assert!(number(row, "swapped_in_pages").is_none_or(|pages| pages == 0));
    }
    // KSM is stopped once it has merged, and does not merge again what was split.
    for kind in ["hugetlb", "mthp-64k", "ksm"] {
        for row in of(&rows, kind, &PINNING) {
            let tracked = number(row, "tracked_pages");
            assert!(tracked > Some(0));
            let want = if vmread_splits() { tracked } else { Some(0) };
            assert_eq!(number(row, "split_pages"), want, "{row:?}");
        }
        for row in of(&rows, kind, &["proc", "hybrid"]) {
            assert_eq!(number(row, "split_pages"), Some(0), "{row:?}");
        }
    }
    a_hugetlb_copy_is_private_memory(&rows);
}

/// A pin copies the whole huge page, however little of it is read, and smaps has that in
/// Private_Hugetlb and nowhere else (smaps_hugetlb_range, fs/proc/task_mmu.c).
fn a_hugetlb_copy_is_private_memory(rows: &[Row]) {
    let huge = fs::read_to_string("/proc/meminfo").unwrap();
    let huge = huge
        .lines()
        .find_map(|line| line.strip_prefix("Hugepagesize:"));
    let huge: Option<i64> = huge.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse().ok());
    for row in of(rows, "hugetlb", &["none", "proc", "vmread", "vmread-batch"]) {
        let copies = vmread_splits() && PINNING.contains(&&*row["method"]);
        let want = if copies { huge } else { Some(0) };
        assert_eq!(number(row, "target_private_kib"), want, "{row:?}");
        for unknown in ["target_rss_kib", "target_pss_kib", "target_referenced_kib"] {
            assert_eq!(number(row, unknown), None, "{unknown} {row:?}");
        }
    }
}

/// Stopped, and going on with the value's end.
struct StoodStill(String);

impl StoodStill {
    fn new(running: &Running) -> Self {
        let pid = running.0.id().to_string();
        helpers::signal(&pid, "STOP");
        Self(pid)
    }
}

impl Drop for StoodStill {
    fn drop(&mut self) {
        helpers::signal(&self.0, "CONT");
    }
}

/// Shared memory that is swapped out is absent by pagemap, and its file would bring it in.
#[test]
fn shared_memory_that_is_swapped_out_stays_there() {
    const SWAPPED: &str = r#"
import mmap, os, sys
file = os.memfd_create("shared")
os.ftruncate(file, 1 << 20)
memory = mmap.mmap(file, 1 << 20)
memory[:] = b"\x5a" * (1 << 20)
memory.madvise(21)  # MADV_PAGEOUT
memory.madvise(21)
print("ready", flush=True)
sys.stdin.read()
"#;
    if !is_root() {
        return;
    }
    let _alone = MACHINE.lock();
    let before = settings();
    let setup = setting_up("uffd-missing,swapped", &before);
    let swaps = || fs::read_to_string("/proc/swaps").unwrap().lines().count();
    helpers::until("swap is on", || swaps() > 1);
    // What it has set up stays for as long.
    let stood_still = StoodStill::new(&setup);
    let target = helpers::Target::new(SWAPPED);
    let pid = target.pid().to_string();
    let swapped = || helpers::kib(&pid, "Swap:");
    let out = swapped();
    if out >= 512 {
        let row = &helpers::audit(&format!("--stop {pid}")).rows[0];
        assert_eq!(swapped(), out, "{row:?}");
        assert!(
            number(row, "left_swapped_pages") >= Some(out * 1024 / page(row)),
            "{row:?}"
        );
        let row = &helpers::audit(&format!("--stop --allow-swap-in {pid}")).rows[0];
        assert!(swapped() < out, "{row:?}");
        assert_eq!(number(row, "left_swapped_pages"), Some(0), "{row:?}");
    } else {
        eprintln!("skipped: the kernel swapped out {out} KiB of 1024");
    }
    drop(target);
    drop(stood_still);
    drop(setup);
    assert_eq!(settings(), before);
}

/// A run with `--setup` of some seconds, for a read of it blocks, once it has begun to set up.
fn setting_up(kinds: &str, before: &[Option<String>]) -> Running {
    let mut command = in_a_session(&format!("probe --setup --kind {kinds}"));
    let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = Running(spawned.unwrap());
    while settings() == before {
        assert_eq!(
            running.0.try_wait().unwrap(),
            None,
            "{BINARY} ended too soon"
        );
        std::thread::yield_now();
    }
    running
}

fn locked(by: u32) -> String {
    format!(
        "cowitness: error: process {by} holds the lock (flock) on /sys/kernel/mm, which keeps two \
         runs from setting this machine up at once: wait for its end, then start again\n"
    )
}

/// Whoever it is: nobody is taken for another run.
#[test]
fn who_holds_the_lock_is_named() {
    let _alone = MACHINE.lock();
    let _lock = lock_of_the_machine(fs::File::try_lock_shared);
    let output = run("probe --setup -q --kind hole --method proc");
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, locked(std::process::id()));
}

/// Who may not set up is told so, by each row and by the exit status.
#[test]
fn setting_up_without_the_rights_is_no_clean_end() {
    let args = "probe --setup -q --kind hugetlb,ksm --method proc";
    let Some((mut command, _folder)) = command_as_nobody(args) else {
        return;
    };
    let _alone = MACHINE.lock();
    let before = settings();
    let output = command.output().unwrap();
    assert_eq!(settings(), before);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: Vec<&str> = text.lines().filter(|it| it.starts_with("probe,")).collect();
    assert_eq!(rows.len(), 2 * 2 * 2);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let wants = |file: &str| said.contains(&format!("{file}: 0 -> ")) && said.contains("EACCES");
    for (kind, file) in [("hugetlb", "nr_hugepages"), ("ksm", "ksm/run")] {
        let mut of = rows.iter().filter(|row| row.contains(&format!(",{kind},")));
        let denied = of.all(|row| row.contains(",skipped:needs-privilege,"));
        assert!(denied || !wants(file), "{text}{said}");
    }
    if wants("nr_hugepages") {
        assert_eq!(output.status.code(), Some(3));
        assert!(
            said.contains("error: --setup may not change all of this machine"),
            "{said}"
        );
    }
}

/// Who may make a device of compressed memory and not swap to it leaves none behind.
#[test]
fn a_device_that_may_not_be_swapped_to_is_taken_away() {
    let has_swap = fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    if !is_root() || has_swap || !fs::exists("/sys/class/zram-control/hot_add").unwrap() {
        eprintln!("skipped: it takes root, zram and no swap");
        return;
    }
    let _alone = MACHINE.lock();
    let before = settings();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", BINARY]);
    command.args(["probe", "--setup", "-q", "--kind=swapped", "--method=proc"]);
    let Ok(output) = command.output() else {
        eprintln!("skipped: there is no setpriv");
        return;
    };
    assert_eq!(settings(), before);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows: Vec<&str> = text.lines().filter(|it| it.starts_with("probe,")).collect();
    assert_eq!((rows.len(), output.status.code()), (4, Some(3)), "{said}");
    let denied = rows.iter().all(|row| row.contains("needs-privilege,"));
    assert!(denied, "{text}{said}");
    assert!(said.contains("swap to a new device: EPERM\n"), "{said}");
}

/// Whether KSM runs, how often it has scanned, and what is merged.
fn ksm() -> [u64; 3] {
    ["run", "full_scans", "pages_shared"].map(|name| {
        let text = fs::read_to_string(format!("/sys/kernel/mm/ksm/{name}")).unwrap();
        text.trim().parse().unwrap()
    })
}

/// KSM does not merge for this tool alone. What it has merged of others stays so, unless it had
/// never run: then it is as if it never had, for `hybrid` takes its count of scans for pages that may
/// be merged.
#[test]
fn what_ksm_merges_of_others_is_told() {
    if !is_root() || !fs::exists("/proc/self/ksm_merging_pages").unwrap() {
        return;
    }
    let _alone = MACHINE.lock();
    // MADV_MERGEABLE is 12.
    let script = "import mmap, sys\nmemory = mmap.mmap(-1, 1 << 20)\nmemory.madvise(12)\n\
                  memory[:] = b'same' * (1 << 18)\nprint(flush=True)\nsys.stdin.read()";
    let mut python = Command::new("python3");
    python.args(["-c", script]).stdin(Stdio::piped());
    let Ok(child) = python.stdout(Stdio::piped()).spawn() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let mut other = Running(child);
    let mut ready = String::new();
    let mut theirs = BufReader::new(other.0.stdout.take().unwrap());
    theirs.read_line(&mut ready).unwrap();
    let before = ksm();
    let output = run("probe --setup --kind ksm --method proc");
    let after = ksm();
    let merged = fs::read_to_string(format!("/proc/{}/ksm_merging_pages", other.0.id())).unwrap();
    drop(other);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let tells = said.contains("merged pages of other programs: ");
    // Where it ran before already, it is not this tool that merged.
    let ran = said.contains("/ksm/run: 0 -> 1");
    assert!(tells || !ran || merged.trim() == "0", "{merged}: {said}");
    if before == [0; 3] {
        assert_eq!((after, merged.trim()), ([0; 3], "0"), "{said}");
    } else {
        // To unmerge sets that count back.
        assert!(
            after[0] == before[0] && after[1] >= before[1],
            "{before:?} {after:?}"
        );
    }
}

/// Two runs would undo what the other needs, and put back what the other has changed.
#[test]
fn only_one_run_sets_up_at_a_time() {
    if !is_root() {
        return;
    }
    let _alone = MACHINE.lock();
    let before = settings();
    let first = setting_up("uffd-missing,ksm", &before);
    let second = run("probe --setup -q --kind hole --method proc");
    assert_eq!(second.status.code(), Some(3));
    assert_eq!(
        String::from_utf8_lossy(&second.stderr),
        locked(first.0.id())
    );
    assert!(second.stdout.is_empty());
    assert_ne!(settings(), before);
    drop(first);
    assert_eq!(settings(), before);
}

#[test]
fn what_is_taken_away_meanwhile_is_no_clean_end() {
    const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    if !is_root() || !fs::read_to_string(ENABLED).is_ok_and(|text| text.contains("[madvise]")) {
        return;
    }
    let _alone = MACHINE.lock();
    // What is there is looked at before the first byte of output, and thp comes last.
    let mut command = command(
        "probe --kind anon-fork-shared,prot-none,hole,anon-own,anon-untouched,write-only,\
         exec-only,shared-anon,memfd,thp",
    );
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "#cowitness 1");
    fs::write(ENABLED, "never").unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    fs::write(ENABLED, "madvise").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(rest.iter().any(|row| row.contains(",skipped:needs-setup,")));
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("somebody has taken away what a kind needs"),
        "{said}"
    );
}

#[test]
fn a_signal_puts_everything_back_first() {
    if !is_root() {
        return;
    }
    let _alone = MACHINE.lock();
    let signals = [
        ("-INT", 130),
        ("-TERM", 143),
        ("-HUP", 129),
        ("-SEGV", 139),
        ("-ABRT", 134),
        ("-SYS", 159),
    ];
    for (signal, status) in signals {
        let before = settings();
        let mut running = setting_up("uffd-missing,ksm", &before);
        let pid = running.0.id();
        let sent = Command::new("kill")
            .args([signal, &pid.to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(running.0.wait().unwrap().code(), Some(status));
        assert_eq!(settings(), before);
        assert_eq!(group(pid), Vec::<String>::new());
    }
}
