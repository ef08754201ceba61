//! Starts the lab and looks at what it leaves: files, emulators, an exit status.

use cowitness_lab::scratch::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const KERNEL: &str = "5.10-aarch64";

/// Small, and yet with rows.
pub const BENCH: [&str; 7] = [
    "--",
    "bench",
    "--mb=1",
    "--layout=contiguous",
    "--block=64K",
    "--repeats=1",
    "-q",
];

/// One that does not end by itself.
pub const ENDLESS: [&str; 5] = ["--", "bench", "--mb=32", "--repeats=10000", "-q"];

pub fn lab(out: &Scratch, arguments: &[&str]) -> Command {
    // Signals are as by default, also where a shell runs the test in its background.
    let mut command = Command::new("env");
    command
        .args(["--default-signal", env!("CARGO_BIN_EXE_cowitness-lab")])
        .args(["matrix", "-o"])
        .arg(out.path())
        .args(arguments);
    // Where a lab that is killed leaves what it has not removed.
    command.env("TMPDIR", out.path()).stdin(Stdio::null());
    command
}

pub fn temporary() -> Scratch {
    Scratch::new().unwrap()
}

/// The only machine's outcome and detail from matrix.csv.
pub fn outcome(out: &Scratch) -> (String, String) {
    let mut reader = csv::Reader::from_path(out.path().join("matrix.csv")).unwrap();
    let header = reader.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let [row] = &*rows else { panic!("{rows:?}") };
    let field = |name: &str| {
        let at = header.iter().position(|column| column == name).unwrap();
        row[at].to_owned()
    };
    assert_eq!(field("run"), "emulated");
    (field("outcome"), field("detail"))
}

/// Runs it to its end; the outcome has to be `word`, its detail to contain `detail`.
pub fn becomes(out: &Scratch, arguments: &[&str], status: i32, word: &str, detail: &str) -> Output {
    let ran = lab(out, arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(status), "{stderr}");
    let found = outcome(out);
    assert!(
        found.0 == word && found.1.contains(detail),
        "{found:?}\n{stderr}"
    );
    ran
}

/// The appliance for `arch` that the lab itself would boot.
pub fn appliance(arch: &str) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let path = checkout
        .join(target)
        .join("appliance")
        .join(arch)
        .join("cowitness");
    if !path.is_file() {
        let build = Command::new(checkout.join("scripts/build-appliance"))
            .arg(arch)
            .status();
        assert!(build.unwrap().success());
    }
    path
}

/// The image of bullseye's kernel for Debian's CPU `debian`, fetched if it is not there with its
/// modules beside it.
pub fn kernel_image(name: &str, debian: &str) -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let images = cache.unwrap().join("cowitness/kernels");
    let end = format!("{debian}.vmlinuz");
    let image = || {
        let paths = fs::read_dir(&images)
            .ok()?
            .map(|entry| entry.unwrap().path());
        let mut paths = paths.filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy();
            let modules = path.with_extension("modules");
            name.contains("linux-image-5.10") && name.ends_with(&end) && modules.is_file()
        });
        paths.next()
    };
    image().unwrap_or_else(|| {
        fetch(name, &[]);
        image().unwrap()
    })
}

pub fn fetch(kernel: &str, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"));
    command
        .args(["kernels", "--fetch", "--kernel", kernel])
        .args(more);
    let ran = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    String::from_utf8(ran.stdout).unwrap()
}

/// Children of `parent` that are emulators, zombies not counted.
pub fn emulators(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |process: &u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
        let mut fields = after.split_whitespace();
        let (state, its) = (fields.next(), fields.next());
        stat.contains("(qemu-system") && state != Some("Z") && its == Some(&parent.to_string())
    };
    numbers.filter(is_one).collect()
}

pub fn is_alive(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, after)| after.as_bytes()[0]);
    state.is_some_and(|state| state != b'Z')
}

pub fn signal(name: &str, process: u32) {
    let sent = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until `found` is; a minute is long.
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        if let Some(found) = found() {
            return found;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("{what} took too long");
}

/// Starts a guest that does not end by itself and waits for its first command; gives the
/// lab and the emulator.
pub fn running(out: &Scratch) -> (Child, u32) {
    running_with(out, &[])
}

pub fn running_with(out: &Scratch, more: &[&str]) -> (Child, u32) {
    let mut arguments = vec!["--kernel", KERNEL, "--deadline=150"];
    arguments.extend(more);
    arguments.extend(ENDLESS);
    let mut command = lab(out, &arguments);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = out.path().join(format!("{KERNEL}.log"));
    until("the first command", || {
        let log = fs::read_to_string(&log).ok()?;
        log.contains("cowitness: init: run: bench").then_some(())
    });
    let emulators = emulators(child.id());
    let [emulator] = *emulators else {
        panic!("{emulators:?}");
    };
    (child, emulator)
}
