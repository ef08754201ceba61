//! What `--setup` changes on the machine, and puts back: huge pages, KSM, swap.
//!
//! The process that changes and puts back does nothing else: a child probes. However the
//! child ends, and at any signal that can be held back, everything is as it was before this
//! process ends; SIGKILL of it leaves the changes. What other programs' memory KSM has merged
//! meanwhile stays merged if KSM had run before: to unmerge it is machine-wide (`ksm/run` 2).

use super::zram::{self, Zram};
use crate::command::apart::apart;
use crate::error::Error;
use crate::fixture::kinds::{Need, file};
use crate::proc::choice::selected;
use crate::proc::lines::LineBuffer;
use crate::proc::locks::flock as flock_of;
use crate::proc::number::decimal;
use crate::reader::hybrid::merging_was_never_used;
use crate::sys::file::{
    Process, each_name, open, read_link, read_next, read_proc, read_whole, write_whole,
};
use crate::sys::process;
use crate::sys::signal;
use crate::sys::stdio::stderr;
use crate::sys::{Errno, errno};
use crate::text::Text;
use core::ffi::CStr;
use heapless::Vec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FlockOperation, Stat, flock, fstat, major, minor};
use rustix::process::{Pid, getppid};

/// A file of the kernel's and what is written to it.
struct Change {
    path: &'static CStr,
    /// For the error if that fails.
    put_back: &'static str,
    /// What is to be written, given what the file says; `None`: it may stay.
    want: fn(&[u8]) -> Option<&'static [u8]>,
}

/// In this order; put back in the opposite one.
static CHANGES: [Change; 6] = [
    Change {
        path: file::HUGE,
        put_back: "put back the mode of huge pages (transparent_hugepage/enabled)",
        want: |text| (selected(text) == Some(b"never")).then_some(b"madvise"),
    },
    Change {
        path: file::MEDIUM,
        put_back: "put back the mode of huge pages of 64 KiB (hugepages-64kB/enabled)",
        want: |text| (selected(text) == Some(b"never")).then_some(b"madvise"),
    },
    // A reservation that stays below what was asked for leaves hugetlb at needs-setup.
    Change {
        path: file::RESERVED,
        put_back: "put back the pages reserved for hugetlb (vm.nr_hugepages)",
        want: |text| decimal(text).is_some_and(|pages| pages < 2).then_some(b"2"),
    },
    // Two rounds over some pages are enough, and are soon done.
    Change {
        path: c"/sys/kernel/mm/ksm/pages_to_scan",
        put_back: "put back how much KSM scans (ksm/pages_to_scan)",
        want: |text| {
            decimal(text)
                .is_some_and(|pages| pages < 1000)
                .then_some(b"1000")
        },
    },
    Change {
        path: c"/sys/kernel/mm/ksm/sleep_millisecs",
        put_back: "put back how long KSM sleeps (ksm/sleep_millisecs)",
        want: |text| {
            decimal(text)
                .is_some_and(|millis| millis > 20)
                .then_some(b"20")
        },
    },
    Change {
        path: file::MERGING,
        put_back: "put back whether KSM runs (ksm/run)",
        want: |text| (text != b"1").then_some(b"1"),
    },
];

/// What is locked (flock(2)) while something is set up: it is there wherever there is something
/// to change, nobody else locks it, and nothing is left behind.
const LOCK: &CStr = c"/sys/kernel/mm";

/// Longest text that a file of [`CHANGES`] holds.
const VALUE_BYTES: usize = 64;

/// What is to be put back.
#[derive(Default)]
struct Undo {
    values: Vec<(&'static Change, Vec<u8, VALUE_BYTES>), { CHANGES.len() }>,
    swap: Option<Zram>,
    /// Whether all that KSM has merged is to be taken apart: it had never run. `hybrid` takes a count
    /// of scans for pages that may be merged.
    unmerges: bool,
}

/// What became of the setting up.
#[derive(Default)]
pub(super) struct Ours {
    /// Whether a run may stop and start KSM, since that is put back.
    pub(super) merging: bool,
    /// What it takes more rights to change.
    denied: Vec<&'static CStr, { CHANGES.len() + 1 }>,
}

impl Ours {
    /// Whether it would take more rights to meet this need.
    pub(super) fn denies(&self, need: Need) -> bool {
        need.file().is_some_and(|file| self.denied.contains(&file))
    }

    fn note(&mut self, path: &'static CStr, done: Result<(), Errno>) {
        if let Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) = done {
            // There is room for every change.
            let _ = self.denied.push(path);
        }
    }
}

/// Whether this process was started by our own first process of a machine: then the machine
/// is there for this alone.
pub(super) fn is_run_by_init() -> bool {
    let (mut init, mut own) = ([0; 256], [0; 256]);
    getppid() == Some(Pid::INIT)
        && process::is_in_first_namespace() == Ok(true)
        && read_link(c"/proc/1/exe", &mut init)
            .is_ok_and(|init| read_link(c"/proc/self/exe", &mut own) == Ok(init))
}

/// Runs `probe` on a machine that is set up for it; `asked`: by a person, who is told if it
/// takes more rights.
pub(super) fn around(
    (quiet, asked): (bool, bool),
    page_bytes: usize,
    probe: &mut dyn FnMut(&Ours) -> Result<(), Error>,
) -> Result<(), Error> {
    let _alone = lock()?;
    let held = signal::hold().map_err(Error::kernel("hold back signals"))?;
    let mut undo = Undo::default();
    let merged = merged_pages();
    let mut ours = change(&mut undo, quiet, page_bytes);
    ours.merging = undo.has(file::MERGING);
    let ended = apart(&held, &mut || probe(&ours));
    let restored = undo.all();
    if ours.merging && !quiet {
        tell_merged(merged, merged_pages());
    }
    drop(held);
    restored.and(ended)?;
    match asked && !ours.denied.is_empty() {
        true => Err(Error::Invalid(
            "--setup may not change all of this machine that it has to: it takes root (see the \
             lines of setup)",
        )),
        false => Ok(()),
    }
}

/// How many pages of all processes KSM has merged; `None` before Linux 5.19. Not ksm/pages_sharing,
/// which counts the pages of the dead until KSM next scans.
fn merged_pages() -> Option<u64> {
    const FILE: &str = "ksm_merging_pages";
    let mut buffer = [0; 32];
    read_proc(Process::Myself, FILE, &mut buffer).ok()?;
    let mut pages = 0;
    each_name(open(c"/proc").ok()?, &mut |name| {
        let process = decimal(name).and_then(|number| i32::try_from(number).ok());
        // One that has ended meanwhile has none.
        let text = process.and_then(|id| read_proc(Process::Id(id), FILE, &mut buffer).ok());
        pages += text
            .and_then(|text| decimal(text.trim_ascii()))
            .unwrap_or(0);
    })
    .ok()?;
    Some(pages)
}

fn tell_merged(before: Option<u64>, after: Option<u64>) {
    if before.is_some() && before == after {
        return;
    }
    let mut line = Text::new();
    line.add("cowitness: setup: KSM has run, and not for this alone: merged pages of other ");
    line.add("programs:");
    for (between, pages) in [(" ", before), (" -> ", after)] {
        line.add(between);
        match pages {
            Some(pages) => line.number(pages),
            None => line.add("unknown"),
        };
    }
    line.add("; they stay merged\n");
    // A courtesy of standard error.
    let _ = stderr().write_all(line.read().unwrap_or_default().as_bytes());
}

/// Keeps a second run from changing, and from putting back, what this one has changed.
fn lock() -> Result<Option<OwnedFd>, Error> {
    let folder = match open(LOCK) {
        Ok(folder) => folder,
        // Without sysfs there is next to nothing to set up.
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Error::Kernel("open /sys/kernel/mm", errno)),
    };
    match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(folder)),
        Err(Errno::AGAIN) => Err(Error::Locked(holder(&folder))),
        Err(errno) => Err(Error::Kernel("lock /sys/kernel/mm", errno)),
    }
}

/// The process that holds the lock, if it can be told.
fn holder(folder: &OwnedFd) -> Option<u64> {
    let Stat { st_dev, st_ino, .. } = fstat(folder).ok()?;
    let mut file = Text::new();
    for part in [major(st_dev), minor(st_dev)] {
        file.add(if part < 16 { "0" } else { "" });
        file.address(part.into()).add(":");
    }
    let file = file.number(st_ino).read().ok()?.as_bytes();
    let locks = open(c"/proc/locks").ok()?;
    let mut lines = LineBuffer::<1024>::new();
    while let Some(line) = lines
        .read_line(|space| read_next(locks.as_fd(), space))
        .ok()?
    {
        if let Some((process, _)) = flock_of(line.bytes).filter(|(_, found)| *found == file) {
            return decimal(process);
        }
    }
    None
}

/// Written to `ksm/run`: takes everything apart that is merged, and sets the count of scans back
/// to 0 (`unmerge_and_remove_all_rmap_items`, mm/ksm.c).
const UNMERGE: &[u8] = b"2";

/// Makes all changes that can be made; who asks for a kind whose need is not met is told so.
fn change(undo: &mut Undo, quiet: bool, page_bytes: usize) -> Ours {
    let mut ours = Ours::default();
    undo.unmerges = merging_was_never_used();
    for change in &CHANGES {
        let mut buffer = [0; 128];
        let Ok(text) = read_whole(change.path, &mut buffer).map(<[u8]>::trim_ascii) else {
            continue;
        };
        let Some(want) = (change.want)(text) else {
            continue;
        };
        let old = Vec::from_slice(selected(text).unwrap_or(text));
        let Ok(old) = old else { continue };
        let done = write_whole(change.path, want);
        tell(quiet, change.path, &old, want, done);
        ours.note(change.path, done);
        if done.is_ok() {
            // There is room for every change.
            let _ = undo.values.push((change, old));
        }
    }
    let mut buffer = [0; 4096];
    let swaps = read_whole(file::SWAPS, &mut buffer);
    if swaps.is_ok_and(|text| !text.trim_ascii().contains(&b'\n')) {
        let made = Zram::add().and_then(|device| undo.swap.insert(device).swap_to(page_bytes));
        tell(quiet, zram::ADD, b"no swap", b"swap to a new device", made);
        ours.note(file::SWAPS, made);
    }
    ours
}

impl Undo {
    fn has(&self, path: &CStr) -> bool {
        self.values.iter().any(|(change, _)| change.path == path)
    }

    /// Puts everything back; the first that cannot be is the error.
    fn all(self) -> Result<(), Error> {
        let off = self.swap.map_or(Ok(()), |swap| swap.take_away());
        let mut ended = off.map_err(Error::kernel("take away the zram device made to swap to"));
        for (change, old) in self.values.into_iter().rev() {
            let unmerged = match self.unmerges && change.path == file::MERGING {
                true => write_whole(change.path, UNMERGE),
                false => Ok(()),
            };
            let back = unmerged.and(write_whole(change.path, &old));
            ended = ended.and(back.map_err(Error::kernel(change.put_back)));
        }
        ended
    }
}

/// One line for each change.
fn tell(quiet: bool, path: &CStr, old: &[u8], new: &[u8], done: Result<(), Errno>) {
    if quiet && done.is_ok() {
        return;
    }
    let text = |bytes| core::str::from_utf8(bytes).unwrap_or("?");
    let mut line = Text::new();
    line.add("cowitness: setup: ")
        .add(path.to_str().unwrap_or("?"));
    line.add(": ").add(text(old)).add(" -> ").add(text(new));
    if let Err(errno) = done {
        line.add(": ").add(errno::name_or_unknown(errno));
    }
    line.add("\n");
    // A courtesy of standard error.
    let _ = stderr().write_all(line.read().unwrap_or_default().as_bytes());
}
