//! What the counts depend on: huge pages, fault-around, the size of writes.

use super::subject::{CHUNK_BYTES, Subject};
use crate::cli::memmap::Mode;
use crate::error::Error;
use crate::measure::footprint::each_line;
use crate::proc::choice::selected;
use crate::sys::file::{Process, TMPFS_MAGIC, device, file_system, open, read_number, read_whole};
use crate::sys::process::huge_pages_off;
use crate::sys::stdio::Output;
use crate::sys::{Errno, errno};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::BorrowedFd;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/";
const MM: &CStr = c"/sys/kernel/mm";
const FAULT_AROUND: &CStr = c"/sys/kernel/debug/fault_around_bytes";

/// What is in force.
pub(super) struct Force {
    /// The mode of huge pages of anonymous memory, of the size that `huge_bytes` is;
    /// [`NONE`] if the kernel has none.
    thp: Result<&'static str, Errno>,
    /// The same of other sizes that are not `never`, with ` +` before each.
    sizes: Text,
    /// Bytes of a huge page.
    huge_bytes: Result<u64, Errno>,
    /// Of a file on tmpfs, what decides on its huge pages.
    tmpfs: Option<Tmpfs>,
    pub(super) fault_around_bytes: Result<u64, Errno>,
    /// Bytes of one write(2) of the walk file.
    pub(super) write_bytes: Option<u64>,
}

/// What decides on huge pages of a file of tmpfs: `deny` and `force` of the machine, else its
/// mount (Documentation/admin-guide/mm/transhuge.rst).
struct Tmpfs {
    mount: &'static str,
    machine: Result<&'static str, Errno>,
}

impl Force {
    #[inline(never)]
    pub(super) fn now(subject: &Subject<'_>) -> Self {
        let walked = subject.mode == Mode::FaultWalk;
        let huge_bytes = read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        let huge_kib = huge_bytes.map_or(0, |bytes| bytes >> 10);
        let mut sizes = Text::new();
        Self {
            thp: in_force(huge_kib, &mut sizes),
            sizes,
            huge_bytes,
            tmpfs: subject.file().and_then(tmpfs),
            fault_around_bytes: read_number(FAULT_AROUND),
            write_bytes: walked.then_some(CHUNK_BYTES as u64),
        }
    }

    /// The mode for a row, and other sizes if there is room; empty if it is unknown.
    pub(super) fn thp(&self) -> Text {
        let mut thp = Text::new();
        if let Ok(mode) = self.thp {
            let sizes = self
                .sizes
                .read()
                .ok()
                .filter(|sizes| sizes.len() <= ROW_BYTES);
            thp.add(mode).add(sizes.unwrap_or(" +sizes"));
        }
        thp
    }

    /// In one line.
    #[inline(never)]
    pub(super) fn say(&self, out: Output) -> Result<(), Error> {
        let mut line = Text::new();
        line.add("memmap: in force: thp=");
        mode_or_unknown(&mut line, self.thp, "");
        if let Ok(bytes) = self.huge_bytes {
            line.add(" (").number(bytes >> 10).add("KiB)");
        }
        line.add(self.sizes.read().unwrap_or(" more sizes than fit here"));
        if let Some(Tmpfs { mount, machine }) = self.tmpfs {
            line.add(" tmpfs_huge=").add(mount).add(" shmem_enabled=");
            mode_or_unknown(&mut line, machine, "");
        }
        line.add(" fault_around=");
        match self.fault_around_bytes {
            Ok(bytes) => {
                line.number(bytes).add("B");
            }
            Err(errno) => mode_or_unknown(
                &mut line,
                Err(errno),
                match errno {
                    Errno::NOENT => ": no debugfs at /sys/kernel/debug",
                    Errno::ACCESS | Errno::PERM => ": needs root",
                    _ => "",
                },
            ),
        }
        match self.write_bytes {
            Some(bytes) => line.add(" write=").number(bytes).add("B"),
            None => line.add(" write=none"),
        };
        let line = line.add("\n").read().map_err(|Full| Error::TooLong)?;
        out.write_all(line.as_bytes()).map_err(Error::Output)
    }
}

/// What a row has room for of other sizes.
const ROW_BYTES: usize = 48;

fn mode_or_unknown(line: &mut Text, mode: Result<&'static str, Errno>, why: &str) {
    match mode {
        Ok(mode) => line.add(mode),
        Err(errno) => line
            .add("unknown (")
            .add(errno::name_or_unknown(errno))
            .add(why)
            .add(")"),
    };
}

/// The mode in force for this process, of the huge pages of so many KiB; other sizes go to
/// `others`. Sizes have modes of their own since Linux 6.8.
fn in_force(huge_kib: u64, others: &mut Text) -> Result<&'static str, Errno> {
    let top = choice("enabled");
    // The kernel's own folder is there and has no such part. Its prctl answers all the same.
    if top == Err(Errno::NOENT) && open(MM).is_ok() {
        return Ok(NONE);
    }
    let off = huge_pages_off()?;
    if off == 1 {
        return Ok(OFF_HERE);
    }
    let of_this_process = |mode| match mode {
        "always" if off != 0 => ADVISED_HERE,
        mode => mode,
    };
    let mut found = top;
    for kib in (3..=20).map(|order| 1 << order) {
        let mut name = Text::new();
        name.add("hugepages-").number(kib).add("kB/enabled");
        let mode = match choice(name.read().unwrap_or_default()) {
            Err(Errno::NOENT) => continue,
            Ok("inherit") => top,
            mode => mode,
        };
        if kib == huge_kib {
            found = mode;
        } else if mode != Ok("never") {
            others.add(" +").number(kib).add("KiB:");
            mode_or_unknown(others, mode.map(of_this_process), "");
        }
    }
    found.map(of_this_process)
}

/// The kernel was built without transparent huge pages.
const NONE: &str = "none";

/// Instead of the machine's mode: this process gets no huge pages, prctl(2)
/// PR_SET_THP_DISABLE, which is inherited.
const OFF_HERE: &str = "off-by-prctl";

/// Instead of `always`: this process gets them where it advises so, by the same call with
/// PR_THP_DISABLE_EXCEPT_ADVISED.
const ADVISED_HERE: &str = "madvise-by-prctl";

/// What these files and mounts may say, and a size that has no mode of its own.
const MODES: &str = "always inherit madvise never within_size advise deny force";

fn mode_named(word: &[u8]) -> Result<&'static str, Errno> {
    let mut modes = MODES.split(' ');
    let named = modes.find(|mode| mode.as_bytes() == word);
    named.ok_or(Errno::INVAL)
}

/// The choice in force of a file of transparent huge pages.
fn choice(name: &str) -> Result<&'static str, Errno> {
    let mut path = Text::new();
    let path = path.add(THP).add(name).add("\0").read();
    let path = path.map_err(|Full| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut buffer = [0; 256];
    mode_named(selected(read_whole(path, &mut buffer)?).unwrap_or_default())
}

/// `None` if the file is on another file system.
fn tmpfs(file: BorrowedFd<'_>) -> Option<Tmpfs> {
    if file_system(file) != Ok(TMPFS_MAGIC) {
        return None;
    }
    Some(Tmpfs {
        mount: mount_huge(file).unwrap_or("unknown"),
        machine: choice("shmem_enabled"),
    })
}

/// `huge=` of the mount that a file is on: `never` if it has none, `none` if it is on none
/// (memfd_create(2)). proc_pid_mountinfo(5).
fn mount_huge(file: BorrowedFd<'_>) -> Result<&'static str, Errno> {
    let (major, minor) = device(file)?;
    let mut wanted = Text::new();
    wanted.number(major).add(":").number(minor);
    let wanted = wanted.read().map_err(|Full| Errno::INVAL)?.as_bytes();
    let mut found = Ok("none");
    each_line(Process::Myself, "mountinfo", &mut |line| {
        let mut words = line.bytes.split(|byte| *byte == b' ');
        let here = words.nth(2) == Some(wanted);
        if here {
            let options = words.next_back().unwrap_or_default();
            let mut options = options.split(|byte| *byte == b',');
            found = match options.find_map(|option| option.strip_prefix(b"huge=")) {
                Some(mode) => mode_named(mode),
                None if line.truncated => Err(Errno::FBIG),
                None => Ok("never"),
            };
        }
        !here
    })?;
    found
}
