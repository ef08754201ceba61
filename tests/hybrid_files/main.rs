//! `hybrid` and the files behind a process's mappings: what it reads of them, what it leaves, and
//! who notices.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/audit.rs"]
mod helpers;
mod unnoticed;

use common::{Folder, is_root, stdout, whole_stream};
use cowitness::proc::maps::MapsLine;
use cowitness::reader::hybrid::decide::Why;
use cowitness::reader::{Care, Hybrid, Method, Reader, Target};
use cowitness::sys::RemoteAddr;
use cowitness::sys::remote::RemoteSpan;
use cowitness::sys::resident::resident_pages;
use helpers::{audit, get, state};
use rustix::fd::AsFd;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::time::{Duration, SystemTime};

const PAGE: usize = 4096;
const PAGES: usize = 256;

/// Maps a file and waits; `lease` asks for one first. Says what became of that.
const MAPS: &str = r#"
import fcntl, mmap, os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
memory = mmap.mmap(file, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
if "lease" in sys.argv:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("ready", flush=True)
sys.stdin.read()
"#;

/// Drops a file's pages and reads the first bytes again, behind which the kernel reads ahead.
const DROPS: &str = r#"
import os, sys
file = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
os.pread(file, int(sys.argv[2]), 0)
"#;

fn python(script: &str, args: &[&str]) -> Command {
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]).args(args);
    command
}

/// A file in the build folder, which is on a disk rather than a temporary folder is; each page is
/// unlike the others. Gone with the value.
struct OnDisk(PathBuf);

impl OnDisk {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, contents()).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn cached(&self) -> u64 {
        let path = CString::new(self.text()).unwrap();
        let file = cowitness::sys::file::open(&path).unwrap();
        resident_pages(file.as_fd(), (PAGES * PAGE) as u64, PAGE).unwrap()
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn contents() -> Vec<u8> {
    (0..PAGES * PAGE)
        .map(|at| (at / PAGE * 7 + at % 251) as u8 | 1)
        .collect()
}

/// The mapping with that name.
fn mapping(pid: u32, name: &str) -> RemoteSpan {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap();
    let mut lines = maps
        .split(|&byte| byte == b'\n')
        .filter_map(MapsLine::parse);
    let vma = lines.find(|vma| vma.name == name.as_bytes());
    let vma = vma.expect("it is mapped");
    RemoteSpan {
        start: RemoteAddr(vma.start),
        len: vma.end - vma.start,
    }
}

fn process(pid: u32) -> Target<'static> {
    Target::process(pid.cast_signed(), PAGE)
}

/// What hybrid gives of it, by offset, and what became of its pages.
fn read(pid: u32, span: RemoteSpan) -> (BTreeMap<usize, Vec<u8>>, Care) {
    let mut reader = Hybrid::open(&process(pid)).unwrap();
    let mut found = BTreeMap::new();
    let mut see = |at: RemoteAddr, bytes: &[u8]| {
        found.insert((at.0 - span.start.0) as usize, bytes.to_vec());
    };
    let mut buffer = vec![0; 1 << 20];
    let spans = &mut [span].into_iter();
    reader.pass(spans, PAGE, &mut buffer, Some(&mut see));
    (found, *reader.care().unwrap())
}

/// Neither what is not there nor what the kernel would read ahead comes into the page cache, and
/// what is there is read; the faults of that are not among those of the target's pages.
#[test]
fn reading_a_file_brings_nothing_into_the_page_cache() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    for begun in [0, 4 * PAGE, PAGES * PAGE] {
        let file = OnDisk::new(&format!("page-cache-{begun}"));
        let target = helpers::Target::of(&mut python(MAPS, &[file.text()]));
        let dropped = python(DROPS, &[file.text(), &begun.to_string()]).status();
        assert!(dropped.unwrap().success());
        let before = file.cached();
        if begun == 0 && before > 0 {
            eprintln!("skipped: this file system keeps what it is told to drop");
            return;
        }
        // Once for this process's own memory.
        read(target.pid(), mapping(target.pid(), file.text()));
        let (found, care) = read(target.pid(), mapping(target.pid(), file.text()));
        assert_eq!(file.cached(), before, "{begun}");
        assert_eq!((care.filed, care.unread()), (before, PAGES as u64 - before));
        let contents = contents();
        let mut bytes = 0;
        for (at, piece) in &found {
            assert!(contents[*at..].starts_with(piece), "{at}");
            bytes += piece.len();
        }
        assert_eq!(bytes as u64, before * PAGE as u64);
        // Of its own mapping of the file, none.
        assert_eq!(care.pin_faults, Some(0), "{care:?}");
    }
}

/// Maps each of some files, one below the other.
const MAPS_ALL: &str = "import mmap, os, sys\n\
    files = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]\n\
    maps = [mmap.mmap(file, 0, mmap.MAP_PRIVATE, mmap.PROT_READ) for file in files]\n\
    print('ready', flush=True)\n\
    sys.stdin.read()";

/// A file that is mapped several times is opened once, and one of the same numbers is another.
#[test]
fn each_mapping_gets_its_own_file() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let (one, two) = (OnDisk::new("one-of-two"), OnDisk::new("two-of-two"));
    let mut others = contents();
    others.reverse();
    fs::write(&two.0, &others).unwrap();
    let paths = [one.text(), two.text(), two.text(), one.text()];
    let target = helpers::Target::of(&mut python(MAPS_ALL, &paths));
    let maps = fs::read(format!("/proc/{}/maps", target.pid())).unwrap();
    let mut seen = 0;
    for line in maps.split(|&byte| byte == b'\n') {
        let Some(line) = MapsLine::parse(line) else {
            continue;
        };
        let file = [(&one, contents()), (&two, others.clone())];
        let file = file
            .iter()
            .find(|(file, _)| file.text().as_bytes() == line.name);
        let Some((_, wanted)) = file else { continue };
        let span = RemoteSpan {
            start: RemoteAddr(line.start),
            len: line.end - line.start,
        };
        let (found, care) = read(target.pid(), span);
        let bytes: Vec<u8> = found.into_values().flatten().collect();
        assert!(bytes == *wanted, "{care:?}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}

/// Where files are nothing but memory, and where they are on a disk. None, with a word about it, unless
/// we are root, for whom alone map_files is.
fn folders() -> Vec<&'static Path> {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return Vec::new();
    }
    ["/dev/shm", env!("CARGO_TARGET_TMPDIR")]
        .map(Path::new)
        .into()
}

/// Behind the end of a file of 100 bytes a page has what was written there through a mapping.
#[test]
fn behind_the_end_of_a_file_is_what_is_in_memory() {
    const WRITES: &str = r#"
import ctypes, mmap, os, sys
path, size, page = sys.argv[1], 100, 4096
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
if "hole" in sys.argv:
    os.ftruncate(file, size)
else:
    os.write(file, b"A" * size)
    ctypes.memmove(libc.mmap(None, page, 3, 1, file, 0) + 200, b"TAIL", 4)
os.close(file)
file = os.open(path, os.O_RDONLY)
read = libc.mmap(None, page, 1, 1, file, 0)
print(read, flush=True)
sys.stdin.read()
"#;
    for (folder, how) in folders()
        .into_iter()
        .flat_map(|f| [(f, "tail"), (f, "hole")])
    {
        let file = OnDisk(folder.join("cowitness-tail"));
        let target = helpers::Target::of(&mut python(WRITES, &[file.text(), how]));
        let span = RemoteSpan {
            start: RemoteAddr(target.ready.parse().unwrap()),
            len: PAGE as u64,
        };
        let by = |method: Method| {
            let mut found = vec![0xee; PAGE];
            let mut see = |at: RemoteAddr, bytes: &[u8]| {
                let at = (at.0 - span.start.0) as usize;
                found[at..at + bytes.len()].copy_from_slice(bytes);
            };
            let mut buffer = vec![0; 1 << 20];
            let mut bytes = 0;
            let lent = method.lend(&process(target.pid()), &mut |reader| {
                let spans = &mut [span].into_iter();
                bytes = reader.pass(spans, PAGE, &mut buffer, Some(&mut see)).bytes;
            });
            lent.unwrap();
            (bytes, found)
        };
        let [hybrid, map_files, proc] = [Method::Hybrid, Method::MapFiles, Method::Proc].map(by);
        assert_eq!(proc.0, PAGE as u64);
        assert_eq!(proc.1[200..204] == *b"TAIL", how == "tail");
        if how == "tail" {
            assert_eq!(hybrid.0, PAGE as u64, "{folder:?}");
        }
        for (bytes, found) in [hybrid, map_files] {
            let bytes = bytes as usize;
            assert!(found[..bytes] == proc.1[..bytes], "{how} in {folder:?}");
        }
    }
}

/// Pages behind the end of a file are nowhere: it was opened, and read as far as it goes.
#[test]
fn what_lies_behind_the_end_of_a_file_is_not_in_memory() {
    const MAPS_MORE: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
file = os.open(sys.argv[1], os.O_RDONLY)
print(libc.mmap(None, 8 * 4096, 1, 1, file, 0), flush=True)
sys.stdin.read()
"#;
    for folder in folders() {
        let file = OnDisk(folder.join("cowitness-end"));
        fs::write(&file.0, &contents()[..3 * PAGE]).unwrap();
        let target = helpers::Target::of(&mut python(MAPS_MORE, &[file.text()]));
        let span = RemoteSpan {
            start: RemoteAddr(target.ready.parse().unwrap()),
            len: 8 * PAGE as u64,
        };
        let (_, care) = read(target.pid(), span);
        let left = care.left[Why::NotInMemory as usize];
        assert_eq!((care.filed, left, care.unread()), (3, 5, 5), "{folder:?}");
    }
}

/// Something else than the device may be mounted on /dev/zero.
#[test]
fn the_name_of_dev_zero_is_not_believed() {
    const MOUNTS: &str =
        r#"mount --bind "$1" /dev/zero && exec /usr/bin/python3 -c "$2" /dev/zero"#;
    /// The device has no size.
    const ZEROS: &str = r#"
import mmap, os, sys
memory = mmap.mmap(os.open("/dev/zero", os.O_RDONLY), 1 << 20, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
print("ready", flush=True)
sys.stdin.read()
"#;
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let file = OnDisk::new("not-zero");
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", MOUNTS, "sh", file.text(), MAPS]);
    let target = helpers::Target::of(&mut unshare);
    if target.ready != "ready" {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    let (found, care) = read(target.pid(), mapping(target.pid(), "/dev/zero"));
    let bytes: Vec<u8> = found.into_values().flatten().collect();
    assert!(bytes == contents(), "{care:?}");
    let target = helpers::Target::of(&mut python(ZEROS, &[]));
    let (found, care) = read(target.pid(), mapping(target.pid(), "/dev/zero"));
    let bytes: Vec<u8> = found.into_values().flatten().collect();
    assert!(bytes == vec![0; PAGES * PAGE], "{care:?}");
}

/// A file of overlayfs is read as the one below it is, on a mount that only the process sees.
#[test]
fn a_file_of_overlayfs_is_read() {
    const MOUNTS: &str = r#"cd "$1" && mkdir upper work all && mount -t overlay overlay \
        -o "lowerdir=$1/lower,upperdir=$1/upper,workdir=$1/work" all && \
        exec /usr/bin/python3 -c "$2" "$1/all/file""#;
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("overlay-{}", id()));
    fs::create_dir_all(folder.join("lower")).unwrap();
    fs::write(folder.join("lower/file"), contents()).unwrap();
    let mut unshare = Command::new("unshare");
    unshare
        .args(["-m", "sh", "-c", MOUNTS, "sh"])
        .arg(&folder)
        .arg(MAPS);
    let target = helpers::Target::of(&mut unshare);
    if target.ready == "ready" {
        let name = folder.join("all/file");
        let span = mapping(target.pid(), name.to_str().unwrap());
        let (found, care) = read(target.pid(), span);
        let bytes: Vec<u8> = found.into_values().flatten().collect();
        assert!(bytes == contents(), "{care:?}");
        assert_eq!((care.filed, care.pin_faults), (PAGES as u64, Some(0)));
    } else {
        eprintln!("skipped: no overlay can be mounted here");
    }
    drop(target);
    fs::remove_dir_all(&folder).unwrap();
}

/// Who may not follow the links knows nothing of what the process has not touched.
#[test]
fn without_the_right_to_open_files_they_are_left() {
    let Some((mut command, _folder)) = common::command_as_nobody("audit -q --stop") else {
        return;
    };
    let folder = Folder::open_to_all();
    let path = folder.0.join("file");
    fs::write(&path, contents()).unwrap();
    let mut python = python(MAPS, &[path.to_str().unwrap()]);
    let target = helpers::Target::of(python.uid(65534).gid(65534).current_dir("/"));
    let output = command.arg(target.pid().to_string()).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("Yama") {
        eprintln!("skipped: Yama allows nobody only its own children");
        return;
    }
    let row = &whole_stream(&stdout(&output)).rows[0];
    assert!(
        get(row, "left_file_not_opened_pages") >= PAGES as i64,
        "{row:?}"
    );
    assert_eq!(get(row, "faulted_in_pages"), 0, "{row:?}");
}
