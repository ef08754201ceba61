//! What the counts depend on: huge pages, fault-around, the size of writes.

use super::super::room::read_number;
use super::subject::{CHUNK_BYTES, Subject};
use crate::cli::memmap::Mode;
use crate::error::Error;
use crate::proc::choice::selected;
use crate::proc::status::field;
use crate::sys::file::{Process, read_proc, read_whole};
use crate::sys::stdio::Output;
use crate::sys::{Errno, errno};
use crate::text::{Full, Text};
use core::ffi::CStr;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/";
const FAULT_AROUND: &CStr = c"/sys/kernel/debug/fault_around_bytes";

/// What is in force.
pub(super) struct Force {
    /// The mode of transparent huge pages; empty if the kernel has none or does not say.
    pub(super) thp: Text,
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
        let mut sizes = Text::new();
        // From 8 KiB to 1 GiB, as far as there are such files (Linux 6.8).
        for order in 3..=20 {
            let mut name = Text::new();
            name.add("hugepages-").number(1 << order).add("kB/enabled");
            let mode = choice(&name);
            let mode = mode.read().unwrap_or_default();
            if !matches!(mode, "" | "never") {
                sizes.add(" ").number(1 << order).add("KiB:").add(mode);
            }
        }
        let walked = subject.mode == Mode::FaultWalk;
        Self {
            thp: if is_off_here() {
                let mut off = Text::new();
                off.add(OFF_HERE);
                off
            } else {
                choice(Text::new().add("enabled"))
            },
            sizes,
            huge_bytes: read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"),
            fault_around_bytes: read_number(FAULT_AROUND),
            write_bytes: walked.then_some(CHUNK_BYTES as u64),
        }
    }

    /// In one line.
    #[inline(never)]
    pub(super) fn say(&self, out: Output) -> Result<(), Error> {
        let mut line = Text::new();
        line.add("memmap: in force: thp=");
        match self.thp.read() {
            Ok("") | Err(Full) => line.add("none"),
            Ok(mode) => line.add(mode),
        };
        if let Ok(bytes) = self.huge_bytes {
            line.add(" (").number(bytes >> 10).add("KiB)");
        }
        line.add(self.sizes.read().unwrap_or_default());
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

/// Instead of the machine's mode: this process gets no huge pages, prctl(2)
/// PR_SET_THP_DISABLE, which is inherited.
const OFF_HERE: &str = "off-by-prctl";

fn is_off_here() -> bool {
    let mut buffer = [0; 4096];
    let status = read_proc(Process::Myself, "status", &mut buffer).unwrap_or_default();
    field(status, b"THP_enabled") == Some(b"0")
}

/// The choice in force of a file of transparent huge pages; empty if there is none.
fn choice(name: &Text) -> Text {
    let (mut path, mut found) = (Text::new(), Text::new());
    path.add(THP).add(name.read().unwrap_or_default()).add("\0");
    let path = path.read().unwrap_or_default();
    let path = CStr::from_bytes_with_nul(path.as_bytes()).unwrap_or_default();
    let mut buffer = [0; 256];
    let text = read_whole(path, &mut buffer).unwrap_or_default();
    let mode = selected(text).and_then(|mode| str::from_utf8(mode).ok());
    found.add(mode.unwrap_or_default());
    found
}
