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
    /// Makes a device, to be taken away whatever becomes of it.
    ///
    /// # Errors
    /// `ENOENT` (no zram here); as open(2).
    pub(super) fn add() -> Result<Self, Errno> {
        let mut buffer = [0; 32];
        let number = decimal(read_whole(ADD, &mut buffer)?.trim_ascii()).ok_or(Errno::IO)?;
        Ok(Self { number })
    }

    /// Swaps to it.
    ///
    /// # Errors
    /// `ENOENT` (no node in /dev for a new device); as open(2), write(2), swapon(2).
    pub(super) fn swap_to(&self, page_bytes: usize) -> Result<(), Errno> {
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
    /// As swapoff(2), if it is swapped to; `EBUSY`: somebody else has it open.
    pub(super) fn take_away(&self) -> Result<(), Errno> {
        // It may not be swapped to, have no node, or swapping be forbidden (`EPERM`): all the
        // same it has to go, and one that is swapped to stays (`EBUSY`).
        let off = self.at("/dev/zram", "", &swap_off);
        let mut number = Text::new();
        let number = number.number(self.number);
        let number = number.read().map_err(|Full| Errno::FBIG)?;
        for _ in 0..PATIENCE {
            match write_whole(REMOVE, number.as_bytes()) {
                Err(Errno::BUSY) => sleep_ms(20),
                done => return done,
            }
        }
        match off {
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => Err(Errno::BUSY),
            still_swapped_to => still_swapped_to,
        }
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
