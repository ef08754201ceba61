//! Who else is there: processes that map the same files, and children of subjects.

use crate::fixture::subject::Subject;
use crate::proc::lines::LineBuffer;
use crate::proc::maps::MapsLine;
use crate::proc::mountinfo::file_system;
use crate::proc::number::decimal;
use crate::proc::stat::Stat;
use crate::sys::Errno;
use crate::sys::file::{self, Process, open_proc, read_next, read_proc};
use crate::sys::process::{is_in_first_namespace, own_id};
use heapless::Vec;
use rustix::fd::AsFd;
use rustix::fs::RawDir;

/// The most files a subject may map to be looked for elsewhere.
const FILES_MAX: usize = 256;

type Files = Vec<((u32, u32), u64), FILES_MAX>;

/// Why some of the processes that map the same files may not have been counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// This one does not let itself be looked at.
    Process(i32),
    /// /proc does not show all of the machine's.
    Many,
    /// A file lies on overlayfs: mapped through another mount, or directly, the same pages
    /// have another file's numbers.
    Overlay,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Census {
    /// Processes, none of them a subject, that map a file that the subjects map; at least so
    /// many, if some could not be looked at. `None`: none was seen, and not all could be.
    pub(super) bystanders: Option<u64>,
    /// Why there may be more.
    pub(super) hidden: Option<Hidden>,
    /// Whether a subject has children, or had some that are ours now.
    pub(super) forked: bool,
    /// Whether a subject has a page that uprobes have added.
    pub(super) probed: bool,
}

/// Looks at every process. Those in `ours` are no bystanders and no strays.
pub(super) fn take(subjects: &[Subject], ours: &[i32]) -> Census {
    let is_subject = |pid: i32| subjects.iter().any(|subject| subject.pid() == pid);
    let files = subjects
        .first()
        .and_then(|first| files_of(first.pid()).ok());
    let mut census = Census::default();
    let mut found = 0;
    let seen = each_process(&mut |pid, parent| {
        if is_subject(pid) {
            census.probed |= is_probed(pid);
            return;
        }
        if ours.contains(&pid) || pid == own_id() {
            return;
        }
        census.forked |= is_subject(parent) || parent == own_id();
        let Some(files) = &files else { return };
        match maps_one(pid, files) {
            Ok(maps) => found += u64::from(maps),
            // It is gone.
            Err(Errno::NOENT | Errno::SRCH) => {}
            // A thread of the kernel has no memory.
            Err(_) if pid == KTHREADD || parent == KTHREADD => {}
            Err(_) => census.hidden = Some(Hidden::Process(pid)),
        }
    });
    let seen_all = seen == Ok(true) && is_in_first_namespace() == Ok(true);
    let many = (!seen_all).then_some(Hidden::Many);
    let on_overlay = files.as_ref().is_some_and(lie_on_overlay);
    let overlay = on_overlay.then_some(Hidden::Overlay);
    census.hidden = overlay.or(census.hidden).or(many);
    let sees = files.is_some() && census.hidden.is_none();
    census.bystanders = Some(found).filter(|found| *found > 0 || sees);
    census
}

/// Whether a mount of type overlay shows one of them. The kernel shows a file of overlayfs as
/// the file system's own, and has its pages from another's (fs/overlayfs/file.c).
fn lie_on_overlay(files: &Files) -> bool {
    let is_theirs = |device| files.iter().any(|(theirs, _)| *theirs == device);
    let look = || -> Result<bool, Errno> {
        let mounts = open_proc(Process::Myself, "mountinfo")?;
        let mut lines = LineBuffer::<4096>::new();
        let mut found = false;
        while let Some(line) = lines.read_line(|space| read_next(mounts.as_fd(), space))? {
            let mount = file_system(line.bytes);
            found |= mount.is_some_and(|(device, kind)| kind == b"overlay" && is_theirs(device));
        }
        Ok(found)
    };
    // What could not be seen may be so.
    look().unwrap_or(true)
}

/// The process whose children are the kernel's threads (`kthreadd`, init/main.c); in a PID
/// namespace of a container there is none.
const KTHREADD: i32 = 2;

/// Kills all children of ours.
pub(super) fn kill_strays() {
    let seen = each_process(&mut |pid, parent| {
        if parent == own_id() {
            crate::sys::process::kill(pid);
        }
    });
    // Without /proc nothing was started.
    debug_assert!(seen.is_ok());
}

/// Gives `see` number and parent of every process that /proc shows. Whether that is all:
/// with the mount option hidepid the first process is missing, or does not tell its state.
fn each_process(see: &mut dyn FnMut(i32, i32)) -> Result<bool, Errno> {
    const FIRST: i32 = 1;
    let (mut saw_first, mut told_all) = (false, true);
    let folder = file::open(c"/proc")?;
    let mut space = [core::mem::MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&folder, &mut space);
    while let Some(entry) = entries.next() {
        let number = decimal(entry?.file_name().to_bytes());
        let Some(pid) = number.and_then(|pid| i32::try_from(pid).ok()) else {
            continue;
        };
        let mut buffer = [0; 1024];
        match read_proc(Process::Id(pid), "stat", &mut buffer).map(Stat::parse) {
            Ok(Some(stat)) => {
                saw_first |= pid == FIRST;
                see(pid, stat.ppid);
            }
            // It is gone.
            Err(Errno::NOENT | Errno::SRCH) => {}
            _ => told_all = false,
        }
    }
    Ok(saw_first && told_all)
}

fn files_of(pid: i32) -> Result<Files, Errno> {
    let mut files = Files::new();
    let mut fits = true;
    each_vma(pid, &mut |vma| {
        let file = (vma.device, vma.inode);
        fits &= vma.inode == 0 || files.contains(&file) || files.push(file).is_ok();
    })?;
    fits.then_some(files).ok_or(Errno::FBIG)
}

fn maps_one(pid: i32, files: &Files) -> Result<bool, Errno> {
    let mut found = false;
    each_vma(pid, &mut |vma| {
        found |= vma.inode > 0 && files.contains(&(vma.device, vma.inode));
    })?;
    Ok(found)
}

/// A process that has run into a uprobe has a page for it (kernel/events/uprobes.c,
/// `__create_xol_area`), and a copy of the page of code that the probe is in.
fn is_probed(pid: i32) -> bool {
    let mut found = false;
    // One that is ending is told as that.
    let _ = each_vma(pid, &mut |vma| found |= vma.name == b"[uprobes]");
    found
}

fn each_vma(pid: i32, see: &mut dyn FnMut(&MapsLine<'_>)) -> Result<(), Errno> {
    let maps = open_proc(Process::Id(pid), "maps")?;
    // What is cut off a long line is the end of a path.
    let mut lines = LineBuffer::<4096>::new();
    while let Some(line) = lines.read_line(|space| read_next(maps.as_fd(), space))? {
        let vma = MapsLine::parse(line.bytes).ok_or(Errno::ILSEQ)?;
        see(&vma);
    }
    Ok(())
}
