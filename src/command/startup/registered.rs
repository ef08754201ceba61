//! What binfmt_misc has: the kernel walks its entries at each exec.

use crate::emit::Sink;
use crate::emit::stream::{Preamble, StreamError};
use crate::sys::file::{each_name, open, read_whole};
use crate::sys::{Errno, errno};
use crate::text::Text;
use core::ffi::CStr;

pub(super) const FOLDER: &CStr = c"/proc/sys/fs/binfmt_misc";

/// Names beyond these many bytes are only counted.
const NAMES_BYTES: usize = 700;

/// Notes whether it is enabled, and how many entries it has with which names. The order is
/// the folder's; the kernel looks at the one that was registered last first
/// (Documentation/admin-guide/binfmt-misc.rst, fs/binfmt_misc.c).
pub(super) fn note<S: Sink>(preamble: &mut Preamble<S>) -> Result<(), StreamError<S::Error>> {
    let mut buffer = [0; 64];
    let status = match read_whole(c"/proc/sys/fs/binfmt_misc/status", &mut buffer) {
        Ok(status) => core::str::from_utf8(status.trim_ascii_end()).unwrap_or("?"),
        // Compiled in or not, without its folder nothing can be registered.
        Err(Errno::NOENT) => return preamble.note("binfmt_misc", "not mounted"),
        Err(errno) => return preamble.note("binfmt_misc", errno::name_or_unknown(errno)),
    };
    preamble.note("binfmt_misc", status)?;
    let (mut names, mut count) = (Text::new(), Text::new());
    let mut entries = 0;
    let listed = each_entry(&mut |name| {
        entries += 1;
        if names.read().map_or(0, str::len) + name.len() < NAMES_BYTES {
            names.add(if entries == 1 { "" } else { "," });
            names.add_printable(core::str::from_utf8(name).unwrap_or("?"));
        }
    });
    match listed {
        Ok(()) => count.number(entries),
        Err(errno) => count.add("unreadable:").add(errno::name_or_unknown(errno)),
    };
    preamble.note("binfmt_misc_entries", count.read()?)?;
    let names = names.read()?;
    preamble.note(
        "binfmt_misc_names",
        if names.is_empty() { "none" } else { names },
    )
}

/// The names of the entries.
pub(super) fn each_entry(take: &mut dyn FnMut(&[u8])) -> Result<(), Errno> {
    each_name(open(FOLDER)?, &mut |name| match name {
        b"." | b".." | b"register" | b"status" => {}
        name => take(name),
    })
}
