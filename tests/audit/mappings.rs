//! Mappings of many kinds: many of them, oddly named, unreadable in part, of 32 bits.

use super::common::{Row, is_root, run, stdout, whole_stream};
use super::helpers::{Target, audit, get, state, survey_total, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// As many mappings as the kernel allows by default, less what Python itself needs.
pub const MANY: &str = r#"
import ctypes, mmap, os, sys
page = os.sysconf("SC_PAGE_SIZE")
memory = mmap.mmap(-1, 60000 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
for number in range(0, 60000, 2):
    memory[number * page] = 1
    if libc.mprotect(address + number * page, page, 1):
        sys.exit("mprotect")
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn sixty_thousand_mappings_are_read_and_surveyed() {
    let target = Target::new(MANY);
    assert_eq!(target.ready, "ready");
    let pid = target.pid().to_string();
    for row in &audit(&format!("{pid} --stop --method vmread-batch,hybrid")).rows {
        assert_eq!(row["status"], "ok");
        assert!(get(row, "vmas") >= 60_000, "{row:?}");
        assert!(get(row, "bytes_per_pass") >= 60_000 * get(row, "page_bytes"));
    }
    let rows = whole_stream(&stdout(&run(&format!("survey -q {pid}")))).rows;
    assert!(rows.len() > 60_000);
}

/// A mapping that goes on behind the end of its file: what is there is read, the rest is
/// counted, and named as the mechanism names it.
#[test]
fn what_cannot_be_read_is_counted_and_named() {
    const BEHIND_THE_END: &str = r#"
import ctypes, os, sys, tempfile
page = os.sysconf("SC_PAGE_SIZE")
file = tempfile.TemporaryFile()
os.truncate(file.fileno(), 10 * page)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mmap(None, 10 * page, 1, 1, file.fileno(), 0)
os.truncate(file.fileno(), 3 * page)
print("ready", flush=True)
sys.stdin.read()
"#;
    let target = Target::new(BEHIND_THE_END);
    for (method, errno) in [
        ("proc", "EIO"),
        ("vmread", "EFAULT"),
        ("vmread-batch", "EFAULT"),
    ] {
        let row = &audit(&format!("--stop --method {method} {}", target.pid())).rows[0];
        assert_eq!(row["status"], "ok");
        assert_eq!(
            get(row, "unread_bytes"),
            7 * get(row, "page_bytes"),
            "{row:?}"
        );
        assert_eq!((get(row, "unread_runs"), &*row["errno"]), (1, errno));
    }
}

/// Reading such memory with process_vm_readv would never come back.
#[test]
fn memory_of_userfaultfd_is_left_out() {
    const UNSERVED: &str = r#"
import ctypes, fcntl, mmap, os, platform, struct, sys
number = {"x86_64": 323, "aarch64": 282}[platform.machine()]
libc = ctypes.CDLL(None)
descriptor = libc.syscall(number, os.O_CLOEXEC)
if descriptor < 0:
    print("none", flush=True)
    sys.exit()
memory = mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(descriptor, 0xc018aa3f, bytearray(struct.pack("QQQ", 0xaa, 0, 0)))
fcntl.ioctl(descriptor, 0xc020aa00, bytearray(struct.pack("QQQQ", address, len(memory), 1, 0)))
print("ready", flush=True)
sys.stdin.read()
"#;
    let target = Target::new(UNSERVED);
    if target.ready != "ready" {
        eprintln!("skipped: no userfaultfd here");
        return;
    }
    let row = &audit(&format!("--method vmread {}", target.pid())).rows[0];
    assert_eq!(row["status"], "ok");
    assert!(get(row, "left_out_bytes") >= 1 << 20, "{row:?}");
}

/// A file of 8 pages that was written, and so is in the page cache, mapped and never touched.
const MAPPED: &str = r#"
import mmap, os, sys, tempfile
file = tempfile.NamedTemporaryFile()
file.write(b"\x07" * 32768)
file.flush()
memory = mmap.mmap(file.fileno(), 32768, access=mmap.ACCESS_READ)
print("ready", flush=True)
sys.stdin.read()
"#;

#[test]
fn strict_leaves_what_the_target_has_not_mapped() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let target = Target::new(MAPPED);
    let row = |more: &str| audit(&format!("--stop {more} {}", target.pid())).rows[0].clone();
    let (plain, strict) = (row(""), row("--strict"));
    let not_opened = |row: &Row| get(row, "left_file_not_opened_pages");
    let left = |row: &Row| get(row, "left_not_in_memory_pages") + not_opened(row);
    assert_eq!(not_opened(&plain), 0, "{plain:?}");
    assert!(not_opened(&strict) >= 8, "{strict:?}");
    assert!(left(&strict) >= left(&plain) + 8, "{plain:?} {strict:?}");
    for row in [&plain, &strict] {
        assert_eq!(get(row, "faulted_in_pages"), 0, "{row:?}");
        let unread = get(row, "unread_bytes") / get(row, "page_bytes");
        assert_eq!(
            left(row) + get(row, "left_swapped_pages"),
            unread,
            "{row:?}"
        );
    }
}

/// Each page counts once, wherever a block ends.
#[test]
fn a_block_that_cuts_pages_counts_none_twice() {
    if !is_root() {
        eprintln!("skipped: map_files needs root");
        return;
    }
    let script = MAPPED
        .replace("32768", "8 << 20")
        .replace("b\"\\x07\" * 8 << 20", "bytes(8 << 20)");
    let target = Target::new(&script);
    let row = |block: &str| {
        let words = format!("--stop --strict --block {block} {}", target.pid());
        audit(&words).rows.remove(0)
    };
    let whole = row("1M");
    assert!(
        get(&whole, "left_file_not_opened_pages") >= 2048,
        "{whole:?}"
    );
    for block in ["16", "4097", "262145", "300001", "1000001"] {
        let row = row(block);
        for column in [
            "left_file_not_opened_pages",
            "left_not_in_memory_pages",
            "unread_bytes",
        ] {
            assert_eq!(row[column], whole[column], "{block}: {row:?}");
        }
        assert_eq!(row["unread_runs"], whole["unread_runs"], "{block}: {row:?}");
        assert_eq!(row["block_bytes"], block);
    }
}

#[test]
fn names_are_shown_and_break_nothing() {
    const ODD_NAMES: &str = r#"
import mmap, os, sys, tempfile
folder = tempfile.mkdtemp()
maps = []
for name in ["two words", "two\nlines", "comma, \"quote\"", "gone"]:
    path = os.path.join(folder, name)
    with open(path, "w+b") as file:
        file.write(b"x" * 4096)
        file.flush()
        maps.append(mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ))
    os.unlink(path) if name == "gone" else None
print(folder, flush=True)
sys.stdin.read()
import shutil
shutil.rmtree(folder)
"#;
    let target = Target::new(ODD_NAMES);
    let rows = whole_stream(&stdout(&run(&format!("survey -q {}", target.pid())))).rows;
    for name in [
        "two words",
        "two\\012lines",
        "comma, \"quote\"",
        "gone (deleted)",
    ] {
        let path = format!("{}/{name}", target.ready);
        assert!(rows.iter().any(|row| row["name"] == path), "{path}");
    }
    assert_eq!(audit(&target.pid().to_string()).rows[0]["status"], "ok");
    fs::remove_dir_all(&target.ready).unwrap();
}

/// A program of 32 bits that waits: eax = 29, pause(2) of the 32-bit table.
fn elf_of_32_bits() -> Vec<u8> {
    const CODE: [u8; 9] = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let mut elf = vec![0x7f, b'E', b'L', b'F', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let words = |elf: &mut Vec<u8>, words: &[u32]| {
        words.iter().for_each(|word| elf.extend(word.to_le_bytes()));
    };
    // ET_EXEC for EM_386, version 1, entry, program headers at 52.
    words(
        &mut elf,
        &[3 << 16 | 2, 1, 0x0804_8054, 52, 0, 0, 32 << 16 | 52, 1],
    );
    words(&mut elf, &[0]);
    elf.truncate(52);
    // PT_LOAD of the whole file, readable and executable.
    words(&mut elf, &[1, 0, 0x0804_8000, 0x0804_8000, 93, 93, 5, 4096]);
    elf.extend(CODE);
    elf
}

#[test]
fn a_process_of_32_bits_is_read() {
    const ENOEXEC: i32 = 8;
    const ETXTBSY: i32 = 26;
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: this CPU runs no programs of 32-bit x86");
        return;
    }
    let path = std::env::temp_dir().join(format!("cowitness-32-{}", std::process::id()));
    fs::write(&path, elf_of_32_bits()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut spawned = Command::new(&path).spawn();
    // A child that another test forks meanwhile holds our descriptor until it becomes a program.
    until("it can be run", || {
        let is_held = matches!(&spawned, Err(error) if error.raw_os_error() == Some(ETXTBSY));
        if is_held {
            spawned = Command::new(&path).spawn();
        }
        !is_held
    });
    fs::remove_file(&path).unwrap();
    let process = match spawned {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(ENOEXEC) => {
            eprintln!("skipped: this kernel runs no programs of 32 bits");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let target = Target {
        process,
        ready: String::new(),
    };
    // Who started it goes on before the exec is done with its memory.
    until("it sleeps", || state(&target.pid().to_string()) == 'S');
    let row = &audit(&format!("--method proc,vmread {}", target.pid())).rows[1];
    assert_eq!(row["status"], "ok", "{row:?}");
    assert!(get(row, "bytes_per_pass") > 0);
    let total = survey_total(&target.pid().to_string());
    assert!(get(&total, "present_pages") > 0);
}
