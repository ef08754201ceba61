//! What `--setup` changes on the machine, and puts back: huge pages, KSM, swap.
//!
//! The process that changes and puts back does nothing else: a child probes. However the
//! child ends, and at SIGINT, SIGTERM and SIGHUP, everything is as it was before this process
//! ends; only SIGKILL of it leaves the changes.

use crate::command::apart::apart;
use crate::error::Error;
use crate::fixture::kinds::file;
use crate::proc::choice::selected;
use crate::proc::number::decimal;
use crate::sys::file::{open, read_at, read_link, read_whole, write_whole};
use crate::sys::process;
use crate::sys::signal;
use crate::sys::stdio::stderr;
use crate::sys::system::{swap_off, swap_on};
use crate::sys::{Errno, errno};
use crate::text::Text;
use core::ffi::CStr;
use heapless::Vec;
use rustix::fd::AsFd;
use rustix::process::{Pid, getppid};

/// A file of the kernel's and what is written to it.
struct Change {
    path: &'static CStr,
    /// What is to be written, given what the file says; `None`: it may stay.
    want: fn(&[u8]) -> Option<&'static [u8]>,
}

/// In this order; put back in the opposite one.
static CHANGES: [Change; 6] = [
    Change {
        path: file::HUGE,
        want: |text| (selected(text) == Some(b"never")).then_some(b"madvise"),
    },
    Change {
        path: file::MEDIUM,
        want: |text| (selected(text) == Some(b"never")).then_some(b"madvise"),
    },
    Change {
        path: file::RESERVED,
        want: |text| decimal(text).is_some_and(|pages| pages < 2).then_some(b"2"),
    },
    // Two rounds over some pages are enough, and are soon done.
    Change {
        path: c"/sys/kernel/mm/ksm/pages_to_scan",
        want: |text| {
            decimal(text)
                .is_some_and(|pages| pages < 1000)
                .then_some(b"1000")
        },
    },
    Change {
        path: c"/sys/kernel/mm/ksm/sleep_millisecs",
        want: |text| {
            decimal(text)
                .is_some_and(|millis| millis > 20)
                .then_some(b"20")
        },
    },
    Change {
        path: file::MERGING,
        want: |text| (text != b"1").then_some(b"1"),
    },
];

/// Compressed memory that can be swapped to: a device, its size, what forgets it.
const ZRAM: &CStr = c"/dev/zram0";
const ZRAM_SIZE: &CStr = c"/sys/block/zram0/disksize";
const ZRAM_RESET: &CStr = c"/sys/block/zram0/reset";
const ZRAM_BYTES: &[u8] = b"67108864";

/// Longest text that a file of [`CHANGES`] holds.
const VALUE_BYTES: usize = 64;

/// What is to be put back.
#[derive(Default)]
struct Undo {
    values: Vec<(&'static CStr, Vec<u8, VALUE_BYTES>), { CHANGES.len() }>,
    swap: bool,
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

/// Runs `probe` on a machine that is set up for it.
pub(super) fn around(
    quiet: bool,
    page_bytes: usize,
    probe: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), Error> {
    let held = signal::hold().map_err(Error::kernel("hold back signals"))?;
    let mut undo = Undo::default();
    change(&mut undo, quiet, page_bytes);
    let ended = apart(&held, probe);
    let restored = undo.all();
    drop(held);
    restored.and(ended)
}

/// Makes all changes that can be made; who asks for a kind whose need is not met is told so.
fn change(undo: &mut Undo, quiet: bool, page_bytes: usize) {
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
        tell(
            quiet,
            change.path,
            &old,
            want,
            write_whole(change.path, want),
        );
        // Whether or not it took: what is written back is what was there.
        let _ = undo.values.push((change.path, old));
    }
    let mut buffer = [0; 4096];
    let swaps = read_whole(file::SWAPS, &mut buffer);
    if swaps.is_ok_and(|text| !text.trim_ascii().contains(&b'\n')) {
        let done = swap_to_zram(undo, page_bytes);
        tell(quiet, ZRAM, b"unused", b"swap", done);
    }
}

/// Makes swap space of a device that nobody uses.
fn swap_to_zram(undo: &mut Undo, page_bytes: usize) -> Result<(), Errno> {
    let mut buffer = [0; 32];
    if read_whole(ZRAM_SIZE, &mut buffer)?.trim_ascii() != b"0" {
        return Err(Errno::BUSY);
    }
    write_whole(ZRAM_SIZE, ZRAM_BYTES)?;
    undo.swap = true;
    sign(ZRAM, page_bytes)?;
    swap_on(ZRAM)
}

/// Writes what mkswap(8) writes: version 1, the number of the last page, the signature at the
/// end of the first page (include/linux/swap.h, `union swap_header`).
fn sign(device: &CStr, page_bytes: usize) -> Result<(), Errno> {
    let last = decimal(ZRAM_BYTES).unwrap_or(0) / page_bytes as u64 - 1;
    let mut header = [0_u8; 65536];
    let page = header.get_mut(..page_bytes).ok_or(Errno::INVAL)?;
    page[1024..1028].copy_from_slice(&1_u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&(last as u32).to_ne_bytes());
    page[page_bytes - 10..].copy_from_slice(b"SWAPSPACE2");
    write_whole(device, page)?;
    // Read back: what cannot be read cannot be swapped in.
    let mut signature = [0; 10];
    let device = open(device)?;
    let at = page_bytes as u64 - 10;
    match read_at(device.as_fd(), &mut signature, at)? == 10 && signature == *b"SWAPSPACE2" {
        true => Ok(()),
        false => Err(Errno::IO),
    }
}

impl Undo {
    /// Puts everything back; the first that cannot be is the error.
    fn all(self) -> Result<(), Error> {
        let mut ended = Ok(());
        if self.swap {
            // EINVAL: swapping to it never began.
            let off = match swap_off(ZRAM) {
                Err(Errno::INVAL) => Ok(()),
                off => off,
            };
            let off = off.and_then(|()| write_whole(ZRAM_RESET, b"1"));
            ended = off.map_err(Error::kernel("stop swapping to /dev/zram0"));
        }
        for (path, old) in self.values.into_iter().rev() {
            let back = write_whole(path, &old);
            let back = back.map_err(Error::kernel(path.to_str().unwrap_or("a setting")));
            ended = ended.and(back);
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
