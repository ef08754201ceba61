//! Whether anonymous memory of this machine may be in large folios.

use crate::proc::number::decimal;
use crate::sys::Errno;
use crate::sys::file::{each_name, open, read_whole};
use crate::text::Text;
use core::ffi::CStr;

/// Folders `hugepages-<size>kB` of it have `stats/nr_anon` since Linux 6.11: anonymous folios of
/// that size, on the whole machine (Documentation/admin-guide/mm/transhuge.rst). Sizes that
/// anonymous memory does not come in have none.
const FOLDER: &CStr = c"/sys/kernel/mm/transparent_hugepage";

/// Whether there may be a large folio of anonymous memory. Unknown is yes.
pub fn possible() -> bool {
    let (mut all_none, mut counted) = (true, false);
    let listed = open(FOLDER).and_then(|folder| {
        each_name(folder, &mut |name| {
            if name.starts_with(b"hugepages-") {
                match count(name) {
                    Err(Errno::NOENT) => {}
                    Ok(0) => counted = true,
                    _ => all_none = false,
                }
            }
        })
    });
    listed.is_err() || !all_none || !counted
}

fn count(name: &[u8]) -> Result<u64, Errno> {
    let mut path = Text::new();
    path.add(FOLDER.to_str().map_err(|_| Errno::INVAL)?);
    path.add("/");
    path.add(core::str::from_utf8(name).map_err(|_| Errno::INVAL)?);
    path.add("/stats/nr_anon\0");
    let path = path.read().map_err(|_| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut buffer = [0; 64];
    let text = read_whole(path, &mut buffer)?;
    decimal(text.trim_ascii()).ok_or(Errno::IO)
}
