//! From a kernel to a line of the table: image, initramfs, guest, judgement, files.

use super::MATRIX_CSV;
use super::expect::{self, Expected};
use super::judge::{self, Case, Judged};
use super::outcome::Outcome;
use super::table::{Line, Run};
use crate::appliance;
use crate::asked::Asked;
use crate::cli::MatrixOptions;
use crate::failure::Failure;
use crate::guest::{self, Guest, Ran, initramfs};
use crate::host::{HostError, Interrupt};
use crate::kernels::cache::{Cache, Fetched, Record};
use crate::kernels::image;
use crate::kernels::table::{Arch, Board, Kernel, Table};
use crate::progress::Progress;
use crate::scratch::Scratch;
use cowitness::emit::crc::Crc32;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
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
    /// What every initramfs holds, by CPU.
    initramfs: BTreeMap<Arch, Packed>,
}

/// The archive that holds an appliance.
struct Packed {
    archive: Vec<u8>,
    /// Of the appliance in it.
    exe_crc32: u32,
}

/// An initramfs: a file without a name, so that nothing of it is left however the lab ends.
struct Initramfs(File);

/// A guest that ran, and what it was.
struct Booted {
    ran: Ran,
    asked: Asked,
    /// What is known of its kernel; `None`: it is the user's own.
    record: Option<Record>,
}

/// The word on a guest's command line by which the appliance knows, on every CPU, that its
/// machine is emulated and its timings mean nothing.
const EMULATED: &str = "cowitness.emulated=qemu-tcg";

/// What a machine leaves besides its line.
const FILES: [&str; 3] = ["log", "csv", "txt"];

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
        let given = options.appliance.as_deref().map(Path::new);
        let mut packed = BTreeMap::new();
        for machine in machines {
            if let Entry::Vacant(place) = packed.entry(machine.arch) {
                let init = appliance::find(given, machine.arch, say)?;
                place.insert(pack(&init)?);
            }
        }
        forget(out, machines)?;
        Ok(Self {
            options,
            table,
            cache,
            interrupt,
            out,
            say,
            initramfs: packed,
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
            for _ in 0..self.options.jobs.unwrap_or(1).min(machines.len()) {
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
            .and_then(|booted| self.judged(machine, &booted, &mut line));
        if let Err(error) = booted {
            let text = error.with_remedy();
            line.outcome = match error {
                HostError::Interrupted => Outcome::Interrupted,
                _ if error.is_bad_image() => Outcome::BadImage(text),
                _ => Outcome::NotReady(text),
            };
        }
        line.interrupted_by = self.interrupt.signal();
        line
    }

    fn boot(&self, machine: &Machine<'_>, progress: &Progress) -> Result<Booted, HostError> {
        let board = self.table.board(machine.arch);
        let packed = &self.initramfs[&machine.arch];
        let (image, append, initramfs, record) = match &machine.image {
            Image::Listed(kernel) => {
                let fetched = self.fetch(kernel, progress)?;
                let initramfs = packed.file(Some(&fetched.modules))?;
                let append = &*kernel.append;
                (fetched.image, append, initramfs, Some(fetched.record))
            }
            Image::Own(image) => (image.clone(), "", packed.file(None)?, None),
        };
        image::check(&image, machine.arch)?;
        let words = self.options.words(&machine.name);
        let asked = Asked::of(&words);
        let guest = Guest {
            qemu: &board.qemu,
            arguments: self.arguments(board, (&image, &initramfs), append, &words),
            log: &file(self.out, machine, "log"),
            deadline: self.deadline(),
            stays_up: asked.stays_up,
        };
        let ran = guest::run(&guest, self.interrupt)?;
        Ok(Booted { ran, asked, record })
    }

    /// A kernel of the table, out of the cache or from the archive.
    fn fetch(&self, kernel: &Kernel, progress: &Progress) -> Result<Fetched, HostError> {
        let Kernel {
            name,
            package,
            suite,
            ..
        } = kernel;
        let note = |line: &str| progress.note(&format!("{name}: {line}"), self.say);
        if self.cache.record(kernel).is_none() {
            note(&format!("fetching {package} of {suite}"));
        }
        let fetched = self.cache.kernel(self.table, kernel, &note)?;
        if let Some(lack) = fetched.record.lack() {
            note(&lack);
        }
        Ok(fetched)
    }

    fn deadline(&self) -> Duration {
        let seconds = self.options.deadline_s;
        Duration::from_secs(seconds.unwrap_or(self.table.guest.deadline_s))
    }

    fn arguments(
        &self,
        board: &Board,
        (image, initramfs): (&Path, &Initramfs),
        append: &str,
        appliance: &[String],
    ) -> Vec<OsString> {
        let common = &self.table.guest;
        let mut words = vec![format!("console={}", board.console), common.append.clone()];
        words.push(EMULATED.to_owned());
        words.extend([append, &*self.options.append].map(str::to_owned));
        words.retain(|word| !word.is_empty());
        words.push("--".to_owned());
        words.extend_from_slice(appliance);
        let mut arguments: Vec<OsString> = board.arguments.iter().map(OsString::from).collect();
        let memory = self
            .options
            .memory_mib
            .unwrap_or(common.memory_mib)
            .to_string();
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
        arguments.extend(["-initrd".into(), initramfs.path()]);
        arguments
    }

    /// Judges what ran and leaves its streams.
    fn judged(
        &self,
        machine: &Machine<'_>,
        booted: &Booted,
        line: &mut Line,
    ) -> Result<(), HostError> {
        let Booted { ran, asked, .. } = booted;
        let log = file(self.out, machine, "log");
        line.has_log = !ran.console.is_empty();
        line.verdict_after = ran.verdict_after;
        let judged = judge::judge(&Case {
            name: &crate::text::printable(log.as_os_str().as_encoded_bytes()),
            console: &ran.console,
            ending: &ran.ending,
            asked,
            exe_crc32: Some(self.initramfs[&machine.arch].exe_crc32),
        });
        for (end, text) in [("csv", &judged.csv), ("txt", &judged.text)] {
            if !text.is_empty() {
                let path = file(self.out, machine, end);
                fs::write(&path, text).map_err(HostError::file("write", &path))?;
            }
        }
        line.outcome = judged.outcome.clone();
        if let (Outcome::Pass, Image::Listed(kernel)) = (&judged.outcome, &machine.image) {
            // A comparison counts only for a machine that is trusted otherwise.
            self.compare(kernel, booted, &judged, line);
        }
        line.findings = judged.findings;
        Ok(())
    }

    fn compare(&self, kernel: &Kernel, booted: &Booted, judged: &Judged, line: &mut Line) {
        let complete = self.options.asks_everything();
        let record = booted.record.as_ref();
        let lost = record.map(Record::kinds_lost).unwrap_or_default();
        let expected = Expected {
            kernel,
            release: record.map_or("", |record| &record.release),
            complete,
            lost: &lost,
        };
        let mut compared = expect::compare(&judged.findings, &expected);
        compared.rollup(judged.rollup_lacks.as_deref(), &expected);
        if complete {
            let skips = judged
                .skips
                .iter()
                .map(|skip| format!("selftest skips {skip}"));
            compared.differences.extend(skips);
        }
        if !compared.differences.is_empty() {
            line.outcome = Outcome::Mismatch(compared.differences.join("; "));
        }
        line.compared = Some(compared);
    }
}

fn file(out: &Path, machine: &Machine<'_>, end: &str) -> PathBuf {
    out.join(format!("{}.{end}", machine.name))
}

/// Removes what an earlier run has left: it would pass for this one's.
fn forget(out: &Path, machines: &[Machine<'_>]) -> Result<(), HostError> {
    let of = |machine| FILES.map(|end| file(out, machine, end));
    let paths = machines.iter().flat_map(of).chain([out.join(MATRIX_CSV)]);
    for path in paths {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(HostError::file("remove", &path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn pack(init: &Path) -> Result<Packed, HostError> {
    let init_bytes = fs::read(init).map_err(HostError::file("read", init))?;
    let mut archive = Vec::new();
    initramfs::write(&init_bytes, &mut archive).map_err(HostError::file("pack", init))?;
    let mut crc = Crc32::new();
    crc.update(&init_bytes);
    Ok(Packed {
        archive,
        exe_crc32: crc.value(),
    })
}

impl Packed {
    /// With these modules.
    fn file(&self, modules: Option<&Path>) -> Result<Initramfs, HostError> {
        let directory = Scratch::new()?;
        let path = directory.path().join("initramfs");
        let file = File::create(&path).map_err(HostError::file("create", &path))?;
        let modules =
            modules.map(|modules| fs::read(modules).map_err(HostError::file("read", modules)));
        for archive in [&modules.transpose()?.unwrap_or_default(), &self.archive] {
            let written = (&file).write_all(archive);
            written.map_err(HostError::file("write", &path))?;
        }
        Ok(Initramfs(file))
    }
}

impl Initramfs {
    /// By which an emulator opens the file while this process has it open (proc_pid_fd(5)).
    fn path(&self) -> OsString {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd()).into()
    }
}
