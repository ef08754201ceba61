//! Running the shipped binary, and reading its CSV with other people's code.
#![allow(
    dead_code,
    reason = "each test program is compiled with this module and uses a part of it"
)]

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_cowitness");

/// A run that ends by itself, with nothing on standard input.
pub fn run(args: &str) -> Output {
    command(args).output().expect("the binary starts")
}

/// The command for a run; `args` are separated by blanks.
pub fn command(args: &str) -> Command {
    let mut command = Command::new(BINARY);
    command
        .args(args.split_ascii_whitespace())
        .stdin(Stdio::null());
    command
}

/// Denies the system call of that number with that error: seccomp(2).
const DENY: &str = "import ctypes, os, struct, sys\n\
    libc = ctypes.CDLL(None)\n\
    steps = [(32, 0, 0, 0), (21, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x50000 | int(sys.argv[2])), (6, 0, 0, 0x7fff0000)]\n\
    code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))\n\
    program = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', 4, ctypes.addressof(code)))\n\
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0): sys.exit(9)\n\
    os.execv(sys.argv[3], sys.argv[3:])";

/// How a [`denied`] run ends where no call can be denied.
pub const NO_SECCOMP: i32 = 9;

/// The command for a run in which the system call of this number fails with this error.
pub fn denied(call: &str, errno: &str, args: &str) -> Command {
    let mut command = Command::new("python3");
    command
        .args(["-c", DENY, call, errno, BINARY])
        .args(args.split_ascii_whitespace())
        .stdin(Stdio::null());
    command
}

/// As [`command`], as the user `nobody`, and the folder it lives in. `None`, with a word
/// about it, unless we are root.
pub fn command_as_nobody(args: &str) -> Option<(Command, Folder)> {
    const NOBODY: u32 = 65534;
    if !is_root() {
        eprintln!("skipped: only root can become nobody");
        return None;
    }
    // The build folder may be closed to others; a copy in a folder of our own is not.
    let folder = Folder::new();
    let open = fs::Permissions::from_mode(0o755);
    let copy = folder.0.join("cowitness");
    // By another process: a child that another test forks meanwhile would inherit our
    // descriptor, and the copy could not be run while that is open for writing (ETXTBSY).
    let copied = Command::new("cp")
        .args([BINARY.as_ref(), copy.as_os_str()])
        .status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "the binary can be copied"
    );
    fs::set_permissions(&copy, open.clone()).expect("mode is set");
    fs::set_permissions(&folder.0, open).expect("mode is set");
    let mut command = Command::new(copy);
    command
        .args(args.split_ascii_whitespace())
        .stdin(Stdio::null());
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    Some((command, folder))
}

/// A folder of this test's own, gone with the value.
///
/// Not from a crate: those share rustix with the appliance, and in a test build would
/// switch on its `std` feature there.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Makes one.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("cowitness-test-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Fails if there is one already: nobody prepares it for us.
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    /// Makes one that everybody may write to.
    pub fn open_to_all() -> Self {
        let folder = Self::new();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).expect("mode is set");
        folder
    }

    /// Its path.
    pub fn text(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).expect("the folder can go");
    }
}

/// Whether the effective user is root.
pub fn is_root() -> bool {
    field("/proc/self/status", "Uid:").nth(1).as_deref() == Some("0")
}

/// The folder whose lock (flock) `probe --setup` takes while it changes how the machine's memory is
/// managed.
const MM: &str = "/sys/kernel/mm";

/// That lock, to be had in a way; waits for it, and fails after ten minutes.
pub fn lock_of_the_machine(lock: fn(&File) -> Result<(), TryLockError>) -> File {
    let folder = File::open(MM).expect("a folder of sysfs");
    let start = Instant::now();
    while let Err(error) = lock(&folder) {
        assert!(
            start.elapsed() < Duration::from_secs(600),
            "never: the lock (flock) on {MM} is free (/proc/locks has who holds it): {error}"
        );
        sleep(Duration::from_millis(5));
    }
    folder
}

/// That lock for us alone, so that nobody else changes these settings meanwhile. `None`, with a word
/// about it, unless we are root.
pub fn alone() -> Option<File> {
    if !is_root() {
        eprintln!("skipped: only root may set the machine up");
        return None;
    }
    Some(lock_of_the_machine(File::try_lock))
}

/// The words behind `name` in a file of /proc.
pub fn field(path: &str, name: &str) -> impl Iterator<Item = String> + use<> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let words: Vec<String> = line
        .unwrap_or("")
        .split_whitespace()
        .map(Into::into)
        .collect();
    words.into_iter()
}

/// (major, minor) of the running kernel.
pub fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("a Linux kernel");
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let mut next = || {
        numbers
            .next()
            .and_then(Result::ok)
            .expect("a version number")
    };
    (next(), next())
}

/// Whether process_vm_readv unshares what fork shared: since Linux 5.19 (commit
/// a7f226604170, FAULT_FLAG_UNSHARE).
pub fn vmread_splits() -> bool {
    kernel() >= (5, 19)
}

/// One row, by column name.
pub type Row = BTreeMap<String, String>;

/// A whole stream: notes by key, and rows.
pub struct Stream {
    /// `#key=value` lines.
    pub notes: BTreeMap<String, String>,
    /// In the order written.
    pub rows: Vec<Row>,
}

/// Reads a stream, checking its frame: magic, announced rows, count, CRC-32.
pub fn whole_stream(text: &str) -> Stream {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("#cowitness 1"));
    let notes: BTreeMap<String, String> = text
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('#'))
        .map(|line| line[1..].split_once('=').expect("a note has a value"))
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    let from = text.find("record,").expect("a header");
    let to = text.rfind("#end ").expect("an end");
    let body = &text[from..to];
    let rows = rows(body);
    assert_eq!(notes["rows"], rows.len().to_string());
    let crc = crc32fast::hash(body.as_bytes());
    let end = format!("#end rows={} crc32={crc:08x}\n", rows.len());
    assert_eq!(&text[to..], end);
    Stream { notes, rows }
}

/// The rows below a header line.
pub fn rows(body: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(body.as_bytes());
    let rows: Result<Vec<Row>, _> = reader.deserialize().collect();
    rows.expect("rows have the header's columns")
}

/// Standard output of a run that ended well.
pub fn stdout(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    String::from_utf8(output.stdout.clone()).expect("CSV is UTF-8")
}

/// A column as a number; `None` where it is empty.
pub fn number(row: &Row, column: &str) -> Option<i64> {
    let text = &row[column];
    (!text.is_empty()).then(|| text.parse().expect("a number"))
}

/// Readers that pin the pages they read.
pub const PINNING: [&str; 2] = ["vmread", "vmread-batch"];

/// The rows of a kind and some readers that were answered: some, if the kind is to be had here.
pub fn answered<'r>(rows: &'r [Row], kind: &str, methods: &[&str]) -> Vec<&'r Row> {
    let of_kind = || {
        rows.iter()
            .filter(|row| row["kind"] == kind && row["status"] == "ok")
    };
    let wanted = |row: &&Row| methods.contains(&&*row["method"]);
    let found: Vec<&Row> = of_kind().filter(wanted).collect();
    let is_had = of_kind().any(|row| row["method"] == "none");
    assert!(!found.is_empty() || !is_had, "{kind} {methods:?}");
    found
}

/// Bytes in a page.
pub fn page(row: &Row) -> i64 {
    number(row, "page_bytes").unwrap()
}

/// A session of its own: whatever it leaves behind can be found.
pub fn in_a_session(args: &str) -> Command {
    let mut command = command(args);
    command.process_group(0);
    command
}

/// Processes of a group.
pub fn group(leader: u32) -> Vec<String> {
    let folders = fs::read_dir("/proc").unwrap().flatten();
    let stats = folders.filter_map(|folder| fs::read_to_string(folder.path().join("stat")).ok());
    let of_group = |stat: &String| {
        let words = stat.rsplit(')').next().unwrap_or("");
        words.split_whitespace().nth(2) == Some(&leader.to_string())
    };
    stats.filter(of_group).collect()
}
