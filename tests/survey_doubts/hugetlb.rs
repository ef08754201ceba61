//! Pages of hugetlb, of which there are as many as were reserved.

use super::*;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where no huge page is free, a copy for the process takes the page from the others.
#[test]
fn who_takes_hugetlb_pages_from_another_process_says_so() {
    const SHARED: &str = "memory = mmap.mmap(-1, 4 << 20, flags=0x40022)\n\
        memory[0] = memory[2 << 20] = 1\n\
        if os.fork() == 0:\n\
        \x20   libc.prctl(1, signal.SIGKILL)\n\
        \x20   while True: time.sleep(60)\n\
        ready(memory)";
    let Some(_alone) = alone() else { return };
    let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let Some(_settings) = Settings::new(&[(pages, "2")]) else {
        return;
    };
    if fs::read_to_string(pages).unwrap().trim() != "2" {
        eprintln!("skipped: there are no two huge pages");
        return;
    }
    let known = Known::new(SHARED).unwrap();
    let (row, total) = known.survey();
    assert_eq!(get(&row, "shared_anon_pages"), 1024, "{row:?}");
    for row in [&row, &total] {
        assert_eq!(number(row, "vmread_split_pages"), None, "{row:?}");
    }
    assert_ne!(total["advice"], "vmread");
    let said = run(&format!("survey {}", known.pid));
    assert!(String::from_utf8_lossy(&said.stderr).contains("hugetlb pages are shared by fork"));
    assert_eq!(get(&known.audit(""), "split_pages"), 0);
    if vmread_splits() {
        let output = run(&format!("audit --stop --method vmread {}", known.pid));
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let row = &whole_stream(&String::from_utf8_lossy(&output.stdout)).rows[0];
        assert_eq!(number(row, "split_pages"), None, "{row:?}");
        assert_eq!(number(row, "predicted_split_pages"), None, "{row:?}");
        assert_eq!(get(row, "raced_pages"), 0, "{row:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("1024 pages of hugetlb memory TAKEN"),
            "{said}"
        );
    }
}

/// Memory is mapped without a page being set aside, and there is none: nothing can come in.
#[test]
fn whether_absent_hugetlb_pages_come_in_is_unknown() {
    let Some(_alone) = alone() else { return };
    // MAP_NORESERVE | MAP_HUGETLB | MAP_ANONYMOUS | MAP_PRIVATE.
    const SET: &str = "try: memory = mmap.mmap(-1, 2 << 20, flags=0x44022)\n\
        except OSError as error: skip(f'hugetlb: {error}')\n\
        ready(memory)";
    let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
    let none = ["nr_hugepages", "nr_overcommit_hugepages"].map(|file| format!("{pages}{file}"));
    let Some(_settings) = Settings::new(&none.each_ref().map(|file| (&**file, "0"))) else {
        return;
    };
    let Some(known) = Known::new(SET) else { return };
    let (row, total) = known.survey();
    assert_eq!(get(&row, "absent_pages"), 512, "{row:?}");
    for row in [&row, &total] {
        for column in ["proc_faulted_pages", "vmread_faulted_pages", "faulted_kib"] {
            assert_eq!(number(row, column), None, "{row:?}");
        }
        assert_eq!(get(row, "hybrid_faulted_pages"), 0, "{row:?}");
    }
    let said = run(&format!("survey {}", known.pid));
    assert!(String::from_utf8_lossy(&said.stderr).contains("would bring in up to"));
    let row = known.audit("--method vmread");
    let predicted = number(&row, "predicted_faulted_in_pages");
    assert_eq!(predicted, None, "{row:?}");
    assert_eq!(get(&row, "unread_bytes"), 2 << 20, "{row:?}");
}

/// One fault copies or brings in what many windows show.
#[test]
fn of_pages_larger_than_a_window_a_most_is_known() {
    // MAP_HUGE_1GB | MAP_NORESERVE | MAP_HUGETLB | MAP_ANONYMOUS | MAP_PRIVATE.
    const GIANT: &str = "memory = mmap.mmap(-1, 1 << 30, flags=30 << 26 | 0x44022)\n\
        if TOUCHED: memory[0] = 1\n\
        if os.fork() == 0:\n\
        \x20   libc.prctl(1, signal.SIGKILL)\n\
        \x20   while True: time.sleep(60)\n\
        ready(memory)";
    const PAGES: i64 = 1 << 18;
    let Some(_alone) = alone() else { return };
    let pages = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    let Some(_settings) = Settings::new(&[(pages, "2")]) else {
        return;
    };
    if fs::read_to_string(pages).unwrap().trim() != "2" {
        eprintln!("skipped: there are no two pages of 1 GiB");
        return;
    }
    let run = |touched: &str, method: &str| {
        let known = Known::new(&GIANT.replace("TOUCHED", touched)).unwrap();
        let frame = || {
            let pagemap = File::open(format!("/proc/{}/pagemap", known.pid)).unwrap();
            let address = u64::from_str_radix(&known.start, 16).unwrap();
            let mut entry = [0; 8];
            pagemap
                .read_exact_at(&mut entry, address / 4096 * 8)
                .unwrap();
            u64::from_ne_bytes(entry) & ((1 << 55) - 1)
        };
        let before = frame();
        let output = run(&format!("audit -q --stop --method {method} {}", known.pid));
        let row = whole_stream(&String::from_utf8_lossy(&output.stdout)).rows[0].clone();
        (row, output.status.code(), before != frame())
    };
    let (row, status, moved) = run("True", "vmread");
    match moved {
        true => {
            assert_eq!(number(&row, "split_pages"), None, "{row:?}");
            assert!(get(&row, "split_at_most_pages") >= PAGES, "{row:?}");
            assert_eq!(status, Some(3), "{row:?}");
        }
        // The kernel gives such a page without a copy at times.
        false => assert!(get(&row, "split_pages") < PAGES, "{row:?}"),
    }
    let (row, status, moved) = run("True", "proc");
    assert_eq!((get(&row, "split_pages"), status), (0, Some(0)), "{row:?}");
    assert!(!moved);
    let (row, _, came) = run("False", "proc");
    assert!(came);
    assert_eq!(number(&row, "faulted_in_pages"), None, "{row:?}");
    assert_eq!(get(&row, "split_pages"), 0, "{row:?}");
}

/// Of four huge pages of one window two are shared by fork; the first and the last are absent. Prints
/// where, and the child.
const LET_GO: &str = r#"
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
huge, place = 2 << 20, 0x7a0000000000
if libc.mmap(place, 4 * huge, 3, 0x140022, -1, 0) != place: skip("there are no four huge pages")
for number in (1, 2): ctypes.memset(place + number * huge, 1, 1)
child = os.fork()
if child == 0:
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    while True: time.sleep(60)
print(os.getpid(), f"{place:x}", child, flush=True)
os.waitpid(child, 0)
sys.stdin.read()
"#;

/// A reader that copies nothing brings in what is absent, and a child ends meanwhile.
#[test]
fn who_copies_nothing_takes_no_hugetlb_pages() {
    let Some(_alone) = alone() else { return };
    let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let Some(_settings) = Settings::new(&[(pages, "4")]) else {
        return;
    };
    let Some(known) = Known::new(LET_GO) else {
        return;
    };
    let (start, child) = known.start.split_once(' ').unwrap();
    let audit = command(&format!("audit --stop --method ptrace {}", known.pid))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (pid, start) = (
        known.pid.parse().unwrap(),
        u64::from_str_radix(start, 16).unwrap(),
    );
    until("the first comes in", || {
        mapping_kib(pid, start, "Private_Hugetlb:") > 0
    });
    signal(child, "KILL");
    let output = audit.wait_with_output().unwrap();
    let row = &whole_stream(&stdout(&output)).rows[0];
    let columns = ["split_pages", "raced_pages"];
    assert_eq!(columns.map(|column| get(row, column)), [0, 1024], "{row:?}");
    assert!(get(row, "reader_minflt_cold") >= 2, "{row:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("TAKEN"), "{said}");
}
