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
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often an interrupt is looked for.
const TICK: Duration = Duration::from_millis(100);

/// What a guest may take from its verdict to its power-off.
const GRACE: Duration = Duration::from_secs(20);

/// What a guest that died may still say.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The most that a console may bring; a whole matrix fits many times. One that brings more
/// is ended.
pub const CONSOLE_MAX: usize = 64 << 20;

/// Pieces of a console, of 4 KiB each at most, that wait to be looked at.
const PIECES: usize = 64;

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
    /// Its console brought more than [`CONSOLE_MAX`] bytes.
    Flood,
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
    // One that closed its console to exit is given the time to do so.
    let status = emulator.end(ending.is_none());
    // What came between the decision and the end.
    watch.console.extend(emulator.console.iter().flatten());
    let (stderr, saved) = emulator.said();
    saved.map_err(HostError::file("write", guest.log))?;
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
        let (sender, console) = sync_channel(PIECES);
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

    /// Ends it if it has not ended, at once or after a moment, and reaps it.
    fn end(&mut self, is_exiting: bool) -> io::Result<ExitStatus> {
        if let Some(status) = is_exiting.then(|| self.exited()).flatten() {
            return Ok(status);
        }
        let _ = self.child.kill();
        self.child.wait()
    }

    /// What it said on standard error, and whether its console was saved. Its console has
    /// to be empty: nobody may wait for room there.
    fn said(&mut self) -> (Vec<u8>, io::Result<()>) {
        let saved = self.saver.take().and_then(|saver| saver.join().ok());
        let said = self.stderr.take().and_then(|stderr| stderr.join().ok());
        (said.unwrap_or_default(), saved.unwrap_or(Ok(())))
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
fn save(console: ChildStdout, mut log: File, to: &SyncSender<Vec<u8>>) -> io::Result<()> {
    let mut console = console.take(CONSOLE_MAX as u64);
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
    /// Where the line begins that is not whole yet.
    seen: usize,
    /// Up to where its end has been looked for.
    searched: usize,
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
            searched: 0,
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
                Err(RecvTimeoutError::Disconnected) => return self.closed(),
            }
            if self.stays_up && self.verdict_after.is_some() {
                return Some(Ending::Ended);
            }
        }
    }

    /// Why nothing more will come; `None`: the other side knows.
    fn closed(&self) -> Option<Ending> {
        if self.console.len() >= CONSOLE_MAX {
            return Some(Ending::Flood);
        }
        self.dead.then_some(Ending::Dead)
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
        let feed = |console: &[u8]| console.iter().position(|&byte| byte == b'\n');
        while let Some(length) = feed(&self.console[self.searched..]) {
            let end = self.searched + length;
            let line = &self.console[self.seen..end];
            let sign = console::sign(&String::from_utf8_lossy(line));
            (self.seen, self.searched) = (end + 1, end + 1);
            self.heed(sign);
        }
        self.searched = self.console.len();
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
