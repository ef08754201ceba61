//! Swap space of compressed memory, on a device of its own: one that is there already, used or
//! not, is never touched. Source: Documentation/admin-guide/blockdev/zram.rst (hot_add and
//! hot_remove, since Linux 4.2).

use crate::proc::number::decimal;
use crate::sys::Errno;
use crate::sys::file::{open, read_at, read_whole, write_whole};
use crate::sys::process::sleep_ms;
use crate::sys::system::{swap_off, swap_on};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::AsFd;

/// Reading it makes a device, and gives its number.
pub(super) const ADD: &CStr = c"/sys/class/zram-control/hot_add";
/// Takes the number of a device that nobody uses.
const REMOVE: &CStr = c"/sys/class/zram-control/hot_remove";
const BYTES: u64 = 64 << 20;
/// How long something else (udev) may look at a new device, in steps of 20 ms.
const PATIENCE: u32 = 100;

/// A device of our own.
pub(super) struct Zram {
    number: u64,
}

impl Zram {
    /// Makes a device and swaps to it; a device of which no swap space can be made is gone again.
    ///
    /// # Errors
    /// `ENOENT` (no zram here, or no node in /dev for a new device); as open(2), write(2),
    /// swapon(2).
    pub(super) fn swap_to(page_bytes: usize) -> Result<Self, Errno> {
        let mut buffer = [0; 32];
        let number = decimal(read_whole(ADD, &mut buffer)?.trim_ascii()).ok_or(Errno::IO)?;
        let device = Self { number };
        match device.begin(page_bytes) {
            Ok(()) => Ok(device),
            Err(errno) => {
                device.take_away()?;
                Err(errno)
            }
        }
    }

    fn begin(&self, page_bytes: usize) -> Result<(), Errno> {
        let mut size = Text::new();
        let size = size.number(BYTES).read().map_err(|Full| Errno::FBIG)?;
        self.at("/sys/block/zram", "/disksize", &|path| {
            write_whole(path, size.as_bytes())
        })?;
        self.at("/dev/zram", "", &|path| {
            sign(path, page_bytes)?;
            swap_on(path)
        })
    }

    /// Stops swapping to it and takes it away.
    ///
    /// # Errors
    /// As swapoff(2); `EBUSY`: somebody else has it open.
    pub(super) fn take_away(&self) -> Result<(), Errno> {
        match self.at("/dev/zram", "", &swap_off) {
            // It is not swapped to, or has no node.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
        let mut number = Text::new();
        let number = number.number(self.number);
        let number = number.read().map_err(|Full| Errno::FBIG)?;
        for _ in 0..PATIENCE {
            match write_whole(REMOVE, number.as_bytes()) {
                Err(Errno::BUSY) => sleep_ms(20),
                done => return done,
            }
        }
        Err(Errno::BUSY)
    }

    /// Does something with the path that has the number between these.
    fn at(
        &self,
        before: &str,
        behind: &str,
        with: &dyn Fn(&CStr) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut path = Text::new();
        path.add(before).number(self.number).add(behind).add("\0");
        let path = path.read().map_err(|Full| Errno::FBIG)?;
        with(CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?)
    }
}

/// Writes what mkswap(8) writes: version 1, the number of the last page, the signature at the
/// end of the first page (include/linux/swap.h, `union swap_header`).
fn sign(device: &CStr, page_bytes: usize) -> Result<(), Errno> {
    let last = BYTES / page_bytes as u64 - 1;
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
