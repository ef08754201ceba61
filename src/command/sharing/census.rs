//! Who else is there: processes that map the same files, and children of subjects.

use crate::fixture::subject::Subject;
use crate::proc::lines::LineBuffer;
use crate::proc::maps::MapsLine;
use crate::proc::number::decimal;
use crate::proc::stat::Stat;
use crate::sys::Errno;
use crate::sys::file::{self, Process, open_proc, read_next, read_proc};
use crate::sys::process::own_id;
use heapless::Vec;
use rustix::fd::AsFd;
use rustix::fs::RawDir;

/// The most files a subject may map to be looked for elsewhere.
const FILES_MAX: usize = 256;

type Files = Vec<((u32, u32), u64), FILES_MAX>;

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Census {
    /// Processes, none of them a subject, that map a file that the subjects map; at least so
    /// many, if some could not be looked at. `None`: none was seen, and not all could be.
    pub(super) bystanders: Option<u64>,
    /// A process that did not let itself be looked at.
    pub(super) hides: Option<i32>,
    /// Whether a subject has children, or had some that are ours now.
    pub(super) forked: bool,
}

/// Looks at every process. Those in `ours` are no bystanders and no strays.
pub(super) fn take(subjects: &[Subject], ours: &[i32]) -> Census {
    let is_subject = |pid: i32| subjects.iter().any(|subject| subject.pid() == pid);
    let files = subjects
        .first()
        .and_then(|first| files_of(first.pid()).ok());
    let mut census = Census::default();
    let (mut found, mut is_blind) = (0, files.is_none());
    let seen = each_process(&mut |pid, parent| {
        if is_subject(pid) || ours.contains(&pid) || pid == own_id() {
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
            Err(_) => census.hides = Some(pid),
        }
    });
    is_blind |= seen.is_err() || census.hides.is_some();
    census.bystanders = Some(found).filter(|found| *found > 0 || !is_blind);
    census
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

/// Number and parent of every process that /proc shows.
fn each_process(see: &mut dyn FnMut(i32, i32)) -> Result<(), Errno> {
    let folder = file::open(c"/proc")?;
    let mut space = [core::mem::MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&folder, &mut space);
    while let Some(entry) = entries.next() {
        let number = decimal(entry?.file_name().to_bytes());
        let Some(pid) = number.and_then(|pid| i32::try_from(pid).ok()) else {
            continue;
        };
        let mut buffer = [0; 1024];
        let text = read_proc(Process::Id(pid), "stat", &mut buffer);
        if let Some(stat) = text.ok().and_then(Stat::parse) {
            see(pid, stat.ppid);
        }
    }
    Ok(())
}

fn files_of(pid: i32) -> Result<Files, Errno> {
    let mut files = Files::new();
    let mut fits = true;
    each_file(pid, &mut |file| {
        fits &= files.contains(&file) || files.push(file).is_ok();
    })?;
    fits.then_some(files).ok_or(Errno::FBIG)
}

fn maps_one(pid: i32, files: &Files) -> Result<bool, Errno> {
    let mut found = false;
    each_file(pid, &mut |file| found |= files.contains(&file))?;
    Ok(found)
}

fn each_file(pid: i32, see: &mut dyn FnMut(((u32, u32), u64))) -> Result<(), Errno> {
    let maps = open_proc(Process::Id(pid), "maps")?;
    // What is cut off a long line is the end of a path.
    let mut lines = LineBuffer::<1024>::new();
    while let Some(line) = lines.read_line(|space| read_next(maps.as_fd(), space))? {
        let vma = MapsLine::parse(line.bytes).ok_or(Errno::ILSEQ)?;
        if vma.inode > 0 {
            see((vma.device, vma.inode));
        }
    }
    Ok(())
}
