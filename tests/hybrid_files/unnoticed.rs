//! Who has a file, listens to it, or asks when it was read: what these notice, and what is done about
//! those that do not answer.

use super::*;

/// When a file was read last is told of others' reads, not of these.
#[test]
fn reading_a_file_leaves_its_access_time() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let file = OnDisk::new("access-time");
    let target = helpers::Target::of(&mut python(MAPS, &[file.text()]));
    // Mapping it is an access, too. Longer ago than a day: under relatime, too, the next one is noted.
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let opened = File::open(&file.0).unwrap();
    let times = FileTimes::new().set_accessed(long_ago);
    opened.set_times(times).unwrap();
    let accessed = || fs::metadata(&file.0).unwrap().atime();
    let (_, care) = read(target.pid(), mapping(target.pid(), file.text()));
    assert_eq!(care.filed, PAGES as u64, "{care:?}");
    assert_eq!(accessed(), 1, "hybrid");
    let row = &audit(&format!("--method map-files {}", target.pid())).rows[0];
    assert!(
        get(row, "bytes_per_pass") >= (PAGES * PAGE) as i64,
        "{row:?}"
    );
    assert_eq!(accessed(), 1, "map-files");
    fs::read(&file.0).unwrap();
    match accessed() {
        1 => eprintln!("skipped: this file system notes no access"),
        _ => assert!(accessed() > 86_400),
    }
}

/// Opening the file would send its owner a signal, of which it dies.
#[test]
fn a_lease_is_not_broken() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let file = OnDisk::new("leased");
    let pages = PAGES as i64;
    let target = helpers::Target::of(&mut python(MAPS, &[file.text(), "lease"]));
    let pid = target.pid().to_string();
    let inode = format!(":{} ", fs::metadata(&file.0).unwrap().ino());
    let locks = || {
        let text = fs::read_to_string("/proc/locks").unwrap();
        let line = text.lines().find(|line| line.contains(&inode));
        line.map(|line| line.split_once(": ").unwrap().1.to_owned())
    };
    let before = locks().expect("it has its lease");
    assert!(before.starts_with("LEASE  ACTIVE"), "{before}");
    for method in ["hybrid", "map-files"] {
        let row = audit(&format!("--method {method} {pid}")).rows[0].clone();
        let unread = get(&row, "unread_bytes") / get(&row, "page_bytes");
        assert!(unread >= pages, "{row:?}");
        if method == "hybrid" {
            assert!(get(&row, "left_file_not_opened_pages") >= pages, "{row:?}");
        }
        assert_eq!(locks().as_ref(), Some(&before), "{method}");
        assert_eq!(state(&pid), 'S', "{method}");
    }
    let (_, care) = read(target.pid(), mapping(target.pid(), file.text()));
    assert_eq!(care.unread(), pages.cast_unsigned());
    drop(target);
    let target = helpers::Target::of(&mut python(MAPS, &[file.text()]));
    let (_, care) = read(target.pid(), mapping(target.pid(), file.text()));
    assert_eq!(care.filed, pages.cast_unsigned(), "without one it is read");
}

/// Who listens to a file (fanotify(7)) and may forbid that it is opened, or read, need not answer.
const LISTENS: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
listener = libc.fanotify_init(0x4, os.O_RDONLY)  # FAN_CLASS_CONTENT
marked = libc.fanotify_mark(listener, 1, ctypes.c_uint64(int(sys.argv[2])), -100, sys.argv[1].encode())
print("ready" if marked == 0 else "no", flush=True)
sys.stdin.read()
"#;

#[test]
fn who_does_not_answer_is_not_waited_for() {
    const OPEN_PERM: &str = "65536";
    const ACCESS_PERM: &str = "131072";
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let on_disk = OnDisk::new("listened-to");
    let in_memory = OnDisk(PathBuf::from("/dev/shm/cowitness-listened-to"));
    fs::write(&in_memory.0, contents()).unwrap();
    for (file, what) in [(&on_disk, OPEN_PERM), (&in_memory, ACCESS_PERM)] {
        let target = helpers::Target::of(&mut python(MAPS, &[file.text()]));
        let listener = helpers::Target::of(&mut python(LISTENS, &[file.text(), what]));
        if listener.ready != "ready" {
            eprintln!("skipped: nobody can be asked for leave here");
            return;
        }
        let pid = target.pid().to_string();
        let row = audit(&format!("--method hybrid --stop {pid}")).rows[0].clone();
        let left = get(&row, "unread_bytes") / get(&row, "page_bytes");
        assert!(left >= PAGES as i64, "{row:?}");
        drop(listener);
        assert_eq!(state(&pid), 'S', "{what}");
        let (_, care) = read(target.pid(), mapping(target.pid(), file.text()));
        assert_eq!(care.filed, PAGES as u64, "without one it is read");
    }
}

/// One file whose listener does not answer is one, however often it is mapped, and in all passes.
#[test]
fn one_that_does_not_answer_is_asked_once() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let (mute, other) = (OnDisk::new("mute-twice"), OnDisk::new("not-mute"));
    let paths = [other.text(), mute.text(), mute.text()];
    let target = helpers::Target::of(&mut python(MAPS_ALL, &paths));
    let listener = helpers::Target::of(&mut python(LISTENS, &[mute.text(), "65536"]));
    if listener.ready != "ready" {
        eprintln!("skipped: nobody can be asked for leave here");
        return;
    }
    let args = format!("--method hybrid --stop --warm 2 {}", target.pid());
    let rows = audit(&args).rows;
    assert_eq!(rows.len(), 3);
    for row in rows {
        let left = get(&row, "left_file_not_opened_pages") / PAGES as i64;
        assert_eq!(left, 2, "{row:?}");
    }
}

/// Two are waited for, and then no file is opened any more, also if others open at once: of three that
/// are listened to, each before one that is not, at least one of the latter is left as well.
#[test]
fn not_many_are_waited_for() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let files: Vec<_> = (0..6)
        .map(|number| OnDisk::new(&format!("one-of-six-{number}")))
        .collect();
    let paths: Vec<_> = files.iter().map(OnDisk::text).collect();
    let target = helpers::Target::of(&mut python(MAPS_ALL, &paths));
    let listeners: Vec<_> = paths
        .iter()
        .step_by(2)
        .map(|path| helpers::Target::of(&mut python(LISTENS, &[path, "65536"])))
        .collect();
    if listeners.iter().any(|listener| listener.ready != "ready") {
        eprintln!("skipped: nobody can be asked for leave here");
        return;
    }
    let row = audit(&format!("--method hybrid --stop {}", target.pid())).rows[0].clone();
    let left = get(&row, "left_file_not_opened_pages");
    assert!(left >= 4 * PAGES as i64, "{row:?}");
}
