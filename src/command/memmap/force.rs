//! What the counts depend on: huge pages, fault-around, the size of writes.

use super::super::room::read_number;
use super::subject::{CHUNK_BYTES, Subject};
use crate::cli::memmap::Mode;
use crate::error::Error;
use crate::proc::choice::selected;
use crate::proc::status::field;
use crate::sys::file::{Process, open, read_proc, read_whole};
use crate::sys::stdio::Output;
use crate::sys::{Errno, errno};
use crate::text::{Full, Text};
use core::ffi::CStr;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/";
const MM: &CStr = c"/sys/kernel/mm";
const FAULT_AROUND: &CStr = c"/sys/kernel/debug/fault_around_bytes";

/// What is in force.
pub(super) struct Force {
    /// The mode of transparent huge pages, [`NONE`] if the kernel has none.
    thp: Result<Text, Errno>,
    /// The same of sizes of their own that are not `never`, with a blank before each.
    sizes: Text,
    /// Bytes of a huge page.
    huge_bytes: Result<u64, Errno>,
    pub(super) fault_around_bytes: Result<u64, Errno>,
    /// Bytes of one write(2) of the walk file.
    pub(super) write_bytes: Option<u64>,
}

impl Force {
    #[inline(never)]
    pub(super) fn now(subject: &Subject<'_>) -> Self {
        let walked = subject.mode == Mode::FaultWalk;
        Self {
            thp: mode(),
            sizes: sizes(),
            huge_bytes: read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"),
            fault_around_bytes: read_number(FAULT_AROUND),
            write_bytes: walked.then_some(CHUNK_BYTES as u64),
        }
    }

    /// The mode for a row; empty if it is unknown.
    pub(super) fn thp(&self) -> &str {
        let mode = self.thp.as_ref().ok().and_then(|mode| mode.read().ok());
        mode.unwrap_or_default()
    }

    /// In one line.
    #[inline(never)]
    pub(super) fn say(&self, out: Output) -> Result<(), Error> {
        let mut line = Text::new();
        line.add("memmap: in force: thp=");
        match &self.thp {
            Ok(_) => line.add(self.thp()),
            Err(errno) => line
                .add("unknown (")
                .add(errno::name_or_unknown(*errno))
                .add(")"),
        };
        if let Ok(bytes) = self.huge_bytes {
            line.add(" (").number(bytes >> 10).add("KiB)");
        }
        line.add(self.sizes.read().unwrap_or(" more sizes than fit here"));
        line.add(" fault_around=");
        match self.fault_around_bytes {
            Ok(bytes) => line.number(bytes).add("B"),
            Err(errno) => line
                .add("unknown (")
                .add(errno::name_or_unknown(errno))
                .add(": needs root and debugfs)"),
        };
        match self.write_bytes {
            Some(bytes) => line.add(" write=").number(bytes).add("B"),
            None => line.add(" write=none"),
        };
        let line = line.add("\n").read().map_err(|Full| Error::TooLong)?;
        out.write_all(line.as_bytes()).map_err(Error::Output)
    }
}

/// The mode in force for this process.
fn mode() -> Result<Text, Errno> {
    let mut named = Text::new();
    if is_off_here() {
        named.add(OFF_HERE);
        return Ok(named);
    }
    match choice(Text::new().add("enabled")) {
        // The kernel's own folder is there and has no such part.
        Err(Errno::NOENT) if open(MM).is_ok() => {
            named.add(NONE);
            Ok(named)
        }
        mode => mode,
    }
}

/// From 8 KiB to 1 GiB, as far as there are such files (Linux 6.8).
fn sizes() -> Text {
    let mut sizes = Text::new();
    for order in 3..=20 {
        let mut name = Text::new();
        name.add("hugepages-").number(1 << order).add("kB/enabled");
        let mode = match choice(&name) {
            Err(Errno::NOENT) => continue,
            mode => mode,
        };
        let mode = mode.as_ref().map(|mode| mode.read().unwrap_or_default());
        if mode != Ok("never") {
            sizes.add(" ").number(1 << order).add("KiB:");
            sizes.add(mode.unwrap_or("unknown"));
        }
    }
    sizes
}

/// The kernel was built without transparent huge pages.
const NONE: &str = "none";

/// Instead of the machine's mode: this process gets no huge pages, prctl(2)
/// PR_SET_THP_DISABLE, which is inherited.
const OFF_HERE: &str = "off-by-prctl";

fn is_off_here() -> bool {
    let mut buffer = [0; 4096];
    let status = read_proc(Process::Myself, "status", &mut buffer).unwrap_or_default();
    field(status, b"THP_enabled") == Some(b"0")
}

/// The choice in force of a file of transparent huge pages.
fn choice(name: &Text) -> Result<Text, Errno> {
    let (mut path, mut found) = (Text::new(), Text::new());
    path.add(THP).add(name.read().unwrap_or_default()).add("\0");
    let path = path.read().map_err(|Full| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut buffer = [0; 256];
    let text = read_whole(path, &mut buffer)?;
    let mode = selected(text).and_then(|mode| str::from_utf8(mode).ok());
    found.add(mode.ok_or(Errno::INVAL)?);
    Ok(found)
}
