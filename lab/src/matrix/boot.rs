//! From a kernel to a line of the table: image, initramfs, guest, judgement, files.

use super::expect;
use super::outcome::{self, Judged, Outcome};
use super::table::{Line, Run};
use crate::appliance;
use crate::cli::MatrixOptions;
use crate::failure::Failure;
use crate::guest::{self, Guest, Ran, initramfs};
use crate::host::{HostError, Interrupt};
use crate::kernels::cache::Cache;
use crate::kernels::image;
use crate::kernels::table::{Arch, Board, Kernel, Table};
use crate::progress::Progress;
use crate::scratch::Scratch;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A kernel and what it is booted on.
pub(super) struct Machine<'t> {
    pub(super) name: String,
    pub(super) arch: Arch,
    pub(super) image: Image<'t>,
}

/// Where a kernel's image comes from.
pub(super) enum Image<'t> {
    /// The table: cached, or fetched.
    Listed(&'t Kernel),
    /// A file of the user's.
    Own(PathBuf),
}

/// Everything that all machines share.
pub(super) struct Booter<'r> {
    options: &'r MatrixOptions,
    table: &'r Table,
    cache: &'r Cache,
    interrupt: &'r Interrupt,
    out: &'r Path,
    say: &'r (dyn Fn(&str) + Sync),
    commands: Vec<String>,
    /// The initramfs for each CPU, and the directory that holds them.
    initramfs: BTreeMap<Arch, PathBuf>,
    _directory: Scratch,
}

impl<'r> Booter<'r> {
    /// Finds or builds the appliances and packs them.
    pub(super) fn prepare(
        options: &'r MatrixOptions,
        table: &'r Table,
        cache: &'r Cache,
        interrupt: &'r Interrupt,
        out: &'r Path,
        machines: &[Machine<'_>],
        say: &'r (dyn Fn(&str) + Sync),
    ) -> Result<Self, Failure> {
        let directory = Scratch::new()?;
        let given = options.appliance.as_deref().map(Path::new);
        let mut packed = BTreeMap::new();
        for machine in machines {
            if let Entry::Vacant(place) = packed.entry(machine.arch) {
                let init = appliance::find(given, machine.arch, say)?;
                pack(
                    &init,
                    place.insert(directory.path().join(machine.arch.name())),
                )?;
            }
        }
        Ok(Self {
            options,
            table,
            cache,
            interrupt,
            out,
            say,
            commands: commands(&options.arguments),
            initramfs: packed,
            _directory: directory,
        })
    }

    /// Boots all machines, as many at a time as was asked for; the lines are in the
    /// machines' order.
    pub(super) fn all(&self, machines: &[Machine<'_>]) -> Vec<Line> {
        let progress = Progress::new(machines.len());
        let next = AtomicUsize::new(0);
        let lines = Mutex::new(BTreeMap::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(machine) = machines.get(index) else {
                    return;
                };
                progress.starts(&machine.name);
                let line = self.one(machine, &progress);
                progress.note(&line.summary(), self.say);
                progress.ends();
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.insert(index, line);
            }
        };
        thread::scope(|scope| {
            for _ in 0..self.options.jobs.min(machines.len()) {
                scope.spawn(work);
            }
        });
        let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
        lines.into_values().collect()
    }

    /// One machine, whatever becomes of it.
    fn one(&self, machine: &Machine<'_>, progress: &Progress) -> Line {
        let mut line = Line::new(&machine.name, Run::Emulated, machine.arch.name());
        if let Some(signal) = self.interrupt.signal() {
            line.outcome = Outcome::Interrupted;
            line.interrupted_by = Some(signal);
            return line;
        }
        let booted = self
            .boot(machine, progress)
            .and_then(|ran| self.judged(machine, ran, &mut line));
        if let Err(error) = booted {
            let text = error.with_remedy();
            line.outcome = match error.is_bad_image() {
                true => Outcome::BadImage(text),
                false => Outcome::NotReady(text),
            };
        }
        line.interrupted_by = self.interrupt.signal();
        line
    }

    fn boot(&self, machine: &Machine<'_>, progress: &Progress) -> Result<Ran, HostError> {
        let board = self.table.board(machine.arch);
        let (image, append) = match &machine.image {
            Image::Listed(kernel) => {
                if self.cache.record(kernel).is_none() {
                    let Kernel {
                        name,
                        package,
                        suite,
                        ..
                    } = kernel;
                    progress.note(&format!("{name}: fetching {package} of {suite}"), self.say);
                }
                (self.cache.image(self.table, kernel)?, &*kernel.append)
            }
            Image::Own(image) => (image.clone(), ""),
        };
        image::check_whole(&image)?;
        let stays_up = |word: &String| {
            word.starts_with("--on-done=halt") || word.starts_with("--on-done=shell")
        };
        let guest = Guest {
            qemu: &board.qemu,
            arguments: self.arguments(board, machine.arch, &image, append),
            log: &self.file(machine, "log"),
            deadline: self.deadline(),
            stays_up: self.options.arguments.iter().any(stays_up),
        };
        guest::run(&guest, self.interrupt)
    }

    fn deadline(&self) -> Duration {
        let seconds = self.options.deadline_s;
        Duration::from_secs(seconds.unwrap_or(self.table.guest.deadline_s))
    }

    fn arguments(&self, board: &Board, arch: Arch, image: &Path, append: &str) -> Vec<OsString> {
        let common = &self.table.guest;
        let mut words = vec![format!("console={}", board.console), common.append.clone()];
        words.extend([append, &*self.options.append].map(str::to_owned));
        words.retain(|word| !word.is_empty());
        words.push("--".to_owned());
        words.extend(self.options.arguments.iter().cloned());
        let mut arguments: Vec<OsString> = board.arguments.iter().map(OsString::from).collect();
        let memory = common.memory_mib.to_string();
        // Software alone: hardware acceleration is not everywhere, and results must not
        // depend on it. No devices but a serial port, and no reset after a panic.
        let fixed = ["-accel", "tcg", "-smp", "1", "-m", &memory];
        arguments.extend(fixed.map(OsString::from));
        let bare = [
            "-nic", "none", "-display", "none", "-monitor", "none", "-serial", "stdio",
        ];
        arguments.extend(bare.map(OsString::from));
        arguments.extend(["-no-reboot", "-append"].map(OsString::from));
        arguments.push(words.join(" ").into());
        arguments.extend(["-kernel".into(), image.into()]);
        arguments.extend(["-initrd".into(), (&self.initramfs[&arch]).into()]);
        arguments
    }

    /// Judges what ran and leaves its streams.
    fn judged(&self, machine: &Machine<'_>, ran: Ran, line: &mut Line) -> Result<(), HostError> {
        let log = self.file(machine, "log");
        let name = crate::text::printable(log.as_os_str().as_encoded_bytes());
        let judged = outcome::judge(&name, &ran.console, &ran.ending, &self.commands);
        let Judged {
            outcome,
            csv,
            findings,
        } = judged;
        let path = self.file(machine, "csv");
        fs::write(&path, csv).map_err(HostError::file("write", &path))?;
        line.outcome = outcome;
        line.verdict_after = ran.verdict_after;
        if let Image::Listed(kernel) = machine.image {
            let compared = expect::compare(&findings, kernel, self.options.asks_everything);
            // A comparison counts only for a machine that is trusted otherwise.
            line.compared = (line.outcome == Outcome::Pass).then_some(compared);
        }
        line.findings = findings;
        if let (Outcome::Pass, Some(compared)) = (&line.outcome, &line.compared)
            && !compared.differences.is_empty()
        {
            line.outcome = Outcome::Mismatch(compared.differences.join("; "));
        }
        Ok(())
    }

    fn file(&self, machine: &Machine<'_>, end: &str) -> PathBuf {
        self.out.join(format!("{}.{end}", machine.name))
    }
}

fn pack(init: &Path, path: &Path) -> Result<(), HostError> {
    let init_bytes = fs::read(init).map_err(HostError::file("read", init))?;
    let file = File::create(path).map_err(HostError::file("create", path))?;
    initramfs::write(&init_bytes, file).map_err(HostError::file("write", path))
}

/// The commands that init makes of its arguments, as it repeats them on the console.
fn commands(arguments: &[String]) -> Vec<String> {
    let words = arguments
        .iter()
        .filter(|word| !word.starts_with("--on-done="));
    let words: Vec<&str> = words.map(String::as_str).collect();
    if words.is_empty() {
        return vec!["selftest".to_owned()];
    }
    words
        .split(|word| *word == "then")
        .map(|words| words.join(" "))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_become_the_commands_that_init_repeats() {
        let commands = |words: &str| {
            let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            super::commands(&words)
        };
        assert_eq!(commands(""), ["selftest"]);
        assert_eq!(commands("--on-done=halt"), ["selftest"]);
        assert_eq!(
            commands("--on-done=reboot bench --mb=8 then probe -q then selftest"),
            ["bench --mb=8", "probe -q", "selftest"]
        );
    }
}
