//! One guest: an emulator, its console, and a deadline. It is always ended and reaped; if
//! the lab itself is killed, the kernel kills the emulator (`setpriv --pdeathsig`).

pub mod initramfs;

use crate::console::{self, Sign};
use crate::host::{self, HostError, Interrupt};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often an interrupt is looked for.
const TICK: Duration = Duration::from_millis(100);

/// What a guest may take from its verdict to its power-off.
const GRACE: Duration = Duration::from_secs(20);

/// What a guest that died may still say.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What to run, and for how long.
#[derive(Debug)]
pub struct Guest<'a> {
    /// The emulator.
    pub qemu: &'a str,
    /// Its arguments, but for the console.
    pub arguments: Vec<OsString>,
    /// Where the console is saved as it comes.
    pub log: &'a Path,
    /// From the start to the verdict.
    pub deadline: Duration,
    /// Whether the guest stays up after its verdict.
    pub stays_up: bool,
}

/// What is left of a guest.
#[derive(Debug)]
pub struct Ran {
    /// Everything that came over the console.
    pub console: Vec<u8>,
    /// Why it is over.
    pub ending: Ending,
    /// From the start to the verdict's line.
    pub verdict_after: Option<Duration>,
}

/// Why a guest is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The emulator ended by itself with status 0: the guest powered off or reset.
    Off,
    /// It was ended after a verdict, as it was to stay up.
    Ended,
    /// The emulator ended in another way: how, and what it said.
    Lost(String),
    /// It was ended when its console showed that the kernel is dead or stuck.
    Dead,
    /// No verdict came within so many seconds.
    Deadline(u64),
    /// A verdict came, the power-off did not.
    StillUp,
    /// The lab was told to end.
    Interrupted,
}

/// Boots a guest and waits until it is over.
///
/// # Errors
/// [`HostError`]: the emulator cannot be started, or the console not be saved.
pub fn run(guest: &Guest<'_>, interrupt: &Interrupt) -> Result<Ran, HostError> {
    let log = File::create(guest.log).map_err(HostError::file("create", guest.log))?;
    let mut emulator = Emulator::start(guest, log)?;
    let mut watch = Watch::new(guest);
    let ending = watch.wait(&emulator.console, interrupt);
    let (status, stderr, saved) = emulator.end();
    saved.map_err(HostError::file("write", guest.log))?;
    // What came between the decision and the end.
    watch.console.extend(emulator.console.try_iter().flatten());
    Ok(Ran {
        ending: ending.unwrap_or_else(|| gone(status, &stderr)),
        console: watch.console,
        verdict_after: watch.verdict_after,
    })
}

/// How an emulator that ended by itself did so.
fn gone(status: io::Result<ExitStatus>, stderr: &[u8]) -> Ending {
    let Ok(status) = status else {
        return Ending::Lost("its status is unknown".to_owned());
    };
    if status.success() {
        return Ending::Off;
    }
    let how = match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    };
    match &*host::complaint(stderr) {
        _ if stderr.is_empty() => Ending::Lost(how),
        said => Ending::Lost(format!("{how}: {said}")),
    }
}

/// The emulator, and those who read what it writes.
struct Emulator {
    child: Child,
    console: Receiver<Vec<u8>>,
    saver: Option<JoinHandle<io::Result<()>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Emulator {
    fn start(guest: &Guest<'_>, log: File) -> Result<Self, HostError> {
        let mut child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--", guest.qemu])
            .args(&guest.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for the lab, which then ends the emulator.
            .process_group(0)
            .spawn()
            .map_err(|error| HostError::Start {
                program: format!("setpriv {}", guest.qemu),
                error,
            })?;
        let (sender, console) = channel();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Self {
            child,
            console,
            saver: stdout.map(|stdout| thread::spawn(move || save(stdout, log, &sender))),
            stderr: stderr.map(|mut stderr| {
                thread::spawn(move || {
                    let mut said = Vec::new();
                    let _ = stderr.read_to_end(&mut said);
                    said
                })
            }),
        })
    }

    /// Ends it if it has not ended, and reaps it.
    fn end(&mut self) -> (io::Result<ExitStatus>, Vec<u8>, io::Result<()>) {
        // The console is closed, or no longer of interest: what still runs has to go. One
        // that closed its console to exit is given the time to do so.
        let status = self.exited().map_or_else(
            || {
                let _ = self.child.kill();
                self.child.wait()
            },
            Ok,
        );
        let saved = self.saver.take().and_then(|saver| saver.join().ok());
        let said = self.stderr.take().and_then(|stderr| stderr.join().ok());
        (status, said.unwrap_or_default(), saved.unwrap_or(Ok(())))
    }

    /// Its status, if it ends within a moment.
    fn exited(&mut self) -> Option<ExitStatus> {
        for _ in 0..10 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(TICK / 4);
        }
        None
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Saves the console and passes it on.
fn save(mut console: ChildStdout, mut log: File, to: &Sender<Vec<u8>>) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = match console.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        log.write_all(&buffer[..count])?;
        if to.send(buffer[..count].to_vec()).is_err() {
            return Ok(());
        }
    }
}

/// Follows a console and decides when it is over.
struct Watch {
    console: Vec<u8>,
    /// Up to where lines have been looked at.
    seen: usize,
    started: Instant,
    until: Instant,
    deadline: Duration,
    verdict_after: Option<Duration>,
    dead: bool,
    stays_up: bool,
}

impl Watch {
    fn new(guest: &Guest<'_>) -> Self {
        let started = Instant::now();
        Self {
            console: Vec::new(),
            seen: 0,
            started,
            until: started + guest.deadline,
            deadline: guest.deadline,
            verdict_after: None,
            dead: false,
            stays_up: guest.stays_up,
        }
    }

    /// `None`: the console was closed from the other side.
    fn wait(&mut self, console: &Receiver<Vec<u8>>, interrupt: &Interrupt) -> Option<Ending> {
        loop {
            if interrupt.signal().is_some() {
                return Some(Ending::Interrupted);
            }
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(self.late());
            }
            match console.recv_timeout(left.min(TICK)) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.dead.then_some(Ending::Dead),
            }
            if self.stays_up && self.verdict_after.is_some() {
                return Some(Ending::Ended);
            }
        }
    }

    fn late(&self) -> Ending {
        match (self.dead, self.verdict_after) {
            (true, _) => Ending::Dead,
            (false, Some(_)) => Ending::StillUp,
            (false, None) => Ending::Deadline(self.deadline.as_secs()),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.console.extend_from_slice(bytes);
        while let Some(length) = self.console[self.seen..].iter().position(|&b| b == b'\n') {
            let line = &self.console[self.seen..self.seen + length];
            let sign = console::sign(&String::from_utf8_lossy(line));
            self.seen += length + 1;
            self.heed(sign);
        }
    }

    fn heed(&mut self, sign: Option<Sign>) {
        let now = Instant::now();
        match sign {
            Some(Sign::Verdict(_)) if self.verdict_after.is_none() => {
                self.verdict_after = Some(now - self.started);
                self.until = now + GRACE;
            }
            Some(Sign::Panic(_) | Sign::Stall(_)) if !self.dead => {
                self.dead = true;
                self.until = self.until.min(now + LAST_WORDS);
            }
            _ => {}
        }
    }
}
