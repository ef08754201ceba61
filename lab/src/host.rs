//! What the lab needs of the workstation: programs, files, a cache, and a signal that ends it.

use crate::text::printable;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Programs that are run, and Debian's packages that have them.
const PACKAGES: [(&str, &str); 6] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("dpkg-deb", "dpkg"),
    ("setpriv", "util-linux"),
];

/// Why something could not be done on this workstation.
#[derive(Debug, Error)]
pub enum HostError {
    /// Programs that are not installed.
    #[error("not installed here: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// A program that cannot be started.
    #[error("cannot run {program}: {error}")]
    Start {
        /// Its name.
        program: String,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// A program that failed.
    #[error("{program} failed ({status}): {said}")]
    Ended {
        /// Its name and what it was to do.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The last error it wrote.
        said: String,
    },
    /// A file or directory that cannot be used.
    #[error("cannot {doing} {}: {error}", path.display())]
    File {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// No directory for the cache is known.
    #[error("no directory for the cache: neither XDG_CACHE_HOME nor HOME is set")]
    NoCache,
    /// A package without what it should have.
    #[error("package {package} has no {wanted}")]
    Package {
        /// The package.
        package: String,
        /// What was looked for.
        wanted: &'static str,
    },
    /// A file of the cache is not what was put there.
    #[error("{} is not the file that was fetched: sha256 is {found}, was {recorded}", path.display())]
    Altered {
        /// The file.
        path: PathBuf,
        /// Of the file.
        found: String,
        /// When it was fetched.
        recorded: String,
    },
    /// A kernel image for the other CPU.
    #[error("{} is for {found}, not for {wanted}", path.display())]
    OtherCpu {
        /// The image.
        path: PathBuf,
        /// What its header says.
        found: &'static str,
        /// What it is to be booted on.
        wanted: &'static str,
    },
    /// Another process has what this one needs for itself.
    #[error("another cowitness-lab is at work in {}", .0.display())]
    Busy(PathBuf),
    /// A signal came while something was waited for.
    #[error("interrupted")]
    Interrupted,
    /// A kernel image that ends too early.
    #[error("{} is truncated: its header speaks of {wanted} bytes, {found} are there", path.display())]
    Truncated {
        /// The image.
        path: PathBuf,
        /// Bytes that its sections take.
        wanted: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// No appliance for a CPU.
    #[error("no appliance for {arch}: {} is not there, and no scripts/build-appliance to make it", path.display())]
    NoAppliance {
        /// The CPU.
        arch: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
}

impl HostError {
    /// Whether a kernel's image is not what it was.
    #[must_use]
    pub fn is_bad_image(&self) -> bool {
        let image = matches!(self, Self::Altered { .. } | Self::Truncated { .. });
        image || matches!(self, Self::OtherCpu { .. })
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Missing(programs) => Some(format!(
                "on Debian and Ubuntu: apt-get install {}",
                packages(programs)
            )),
            Self::NoCache => Some("name one: --cache DIR".to_owned()),
            Self::Altered { .. } => {
                Some("fetch it again: cowitness-lab kernels --fetch".to_owned())
            }
            Self::Truncated { .. } => Some("copy the image again".to_owned()),
            Self::OtherCpu { found, .. } => Some(format!("give --arch {found}")),
            Self::Busy(_) => Some("wait for it, or give another -o".to_owned()),
            Self::NoAppliance { .. } => {
                Some("run in a checkout of cowitness, or give --appliance PATH".to_owned())
            }
            _ => None,
        }
    }

    /// What is wrong and what to do about it, in one line.
    #[must_use]
    pub fn with_remedy(&self) -> String {
        match self.remedy() {
            Some(remedy) => format!("{self}; {remedy}"),
            None => self.to_string(),
        }
    }

    /// Makes the error of a file operation.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { doing, path, error }
    }
}

fn packages(programs: &[String]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for program in programs {
        let row = PACKAGES.iter().find(|(name, _)| name == program);
        let package = row.map_or(&**program, |(_, package)| package);
        if !names.contains(&package) {
            names.push(package);
        }
    }
    names.join(" ")
}

/// Whether all `programs` are on PATH.
///
/// # Errors
/// [`HostError::Missing`], naming all that are not.
pub fn require(programs: &[&str]) -> Result<(), HostError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    let missing = programs.iter().filter(|program| !there(program));
    let mut missing: Vec<String> = missing.map(|&program| program.to_owned()).collect();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    Err(HostError::Missing(missing))
}

/// Runs a program to its end and gives its standard output; `what` says what it is for.
///
/// # Errors
/// [`HostError::Start`], [`HostError::Ended`].
pub fn output(command: &mut Command, what: &str) -> Result<Vec<u8>, HostError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| HostError::Start {
        program: program.clone(),
        error,
    })?;
    checked(output, &format!("{program} ({what})"))
}

fn checked(output: Output, program: &str) -> Result<Vec<u8>, HostError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(HostError::Ended {
        program: program.to_owned(),
        status: output.status,
        said: complaint(&output.stderr),
    })
}

/// The line that tells most of what a program wrote to standard error: its first error,
/// else its last line.
#[must_use]
pub fn complaint(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find(|line| line.starts_with("E: ") || line.contains("error"));
    let line = error.or_else(|| lines().next_back());
    line.map_or_else(
        || "it said nothing".to_owned(),
        |line| printable(line.as_bytes()),
    )
}

/// The cache: as given, or where the user's caches are.
///
/// # Errors
/// [`HostError::NoCache`].
pub fn cache_directory(given: Option<&OsStr>) -> Result<PathBuf, HostError> {
    if let Some(given) = given {
        return std::path::absolute(given)
            .map_err(HostError::file("find the directory", Path::new(given)));
    }
    // Relative paths in XDG_CACHE_HOME are to be ignored, says the XDG specification.
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("cowitness"))
        .ok_or(HostError::NoCache)
}

/// Locks `file`, found at `path`; waits for whoever holds it, says so once, and gives up
/// when interrupted.
///
/// # Errors
/// [`HostError::Interrupted`], [`HostError::File`].
pub fn lock(
    file: &File,
    path: &Path,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<(), HostError> {
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(HostError::file("lock", path)(error)),
            Err(TryLockError::WouldBlock) if interrupt.signal().is_some() => {
                return Err(HostError::Interrupted);
            }
            Err(TryLockError::WouldBlock) => {}
        }
        if !told {
            say(&format!(
                "waiting for another cowitness-lab, which holds {}",
                path.display()
            ));
            told = true;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// The signal that is to end the program, once it came.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    number: Arc<AtomicUsize>,
    let_through: Arc<AtomicBool>,
}

impl Interrupt {
    /// Watches for SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGXCPU from now on. SIGXFSZ ends nothing
    /// any more: the write that is too much fails with EFBIG. A signal that whoever started the
    /// program had it ignore, as nohup(1) does, stays ignored.
    ///
    /// # Errors
    /// The system's.
    pub fn watch() -> io::Result<Self> {
        let interrupt = Self::default();
        signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU] {
            if ignored >> (signal - 1) & 1 != 0 {
                continue;
            }
            let number = usize::try_from(signal).unwrap_or(usize::MAX);
            signal_hook::flag::register_usize(signal, Arc::clone(&interrupt.number), number)?;
            let let_through = Arc::clone(&interrupt.let_through);
            signal_hook::flag::register_conditional_default(signal, let_through)?;
        }
        Ok(interrupt)
    }

    /// After a signal.
    #[cfg(test)]
    pub(crate) fn after(signal: i32) -> Self {
        let interrupt = Self::default();
        let number = usize::try_from(signal).unwrap();
        interrupt.number.store(number, Ordering::Relaxed);
        interrupt
    }

    /// From now on a signal ends the program at once: nothing is left to be tidied up, and
    /// what is written to may not be read.
    pub fn let_through(&self) {
        self.let_through.store(true, Ordering::Relaxed);
    }

    /// Its number; `None` if none came.
    #[must_use]
    pub fn signal(&self) -> Option<u8> {
        let number = self.number.load(Ordering::Relaxed);
        u8::try_from(number).ok().filter(|&number| number != 0)
    }
}

/// The signals that a process ignores, the first in the lowest bit, of its /proc/PID/status
/// (proc(5), `SigIgn`); none if that is not told.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_a_mask() {
        assert_eq!(
            ignored("SigBlk:\t0000000000000000\nSigIgn:\t0000000000001001\n"),
            1 | 1 << 12
        );
        assert_eq!(ignored(""), 0);
    }

    #[test]
    fn missing_programs_name_their_packages() {
        let error = require(&["sh", "qemu-system-none", "qemu-system-nothing"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not installed here: qemu-system-none, qemu-system-nothing"
        );
        let both = ["apt-get", "apt-cache", "qemu-system-aarch64"].map(str::to_owned);
        assert_eq!(packages(&both), "apt qemu-system-arm");
    }

    #[test]
    fn the_first_error_tells_most() {
        assert_eq!(
            complaint(b"W: weak\nE: no such suite\nE: later\n"),
            "E: no such suite"
        );
        assert_eq!(complaint(b"one\ntwo\n"), "two");
        assert_eq!(complaint(b""), "it said nothing");
    }
}
