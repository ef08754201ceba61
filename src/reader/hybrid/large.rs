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

/// Whether there may be a large folio of anonymous memory now. Unknown is yes.
pub fn possible() -> bool {
    let mut buffer = [0; 16 << 10];
    let Ok(vmstat) = read_whole(c"/proc/vmstat", &mut buffer) else {
        return true;
    };
    may_be(vmstat, counts())
}

/// By /proc/vmstat and the [`counts`].
fn may_be(vmstat: &[u8], counts: Result<Counts, Errno>) -> bool {
    let events = ["pgfault", "thp_fault_alloc", "thp_collapse_alloc"].map(|name| {
        let mut lines = vmstat.split(|&byte| byte == b'\n');
        lines.find_map(|line| decimal(line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")?))
    });
    match (events, counts) {
        // A kernel without huge pages.
        ([Some(_), None, None], Err(_)) => false,
        (_, Ok(Counts { some: true, .. })) => true,
        (_, Ok(Counts { none: true, .. })) => false,
        // Nothing counts those that are there; since booting there was none.
        ([_, Some(0), Some(0)], Ok(Counts { sizes: false, .. })) => false,
        _ => true,
    }
}

/// What the folders say.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// There is a folder.
    sizes: bool,
    /// A count is 0.
    none: bool,
    /// A count is not 0, or cannot be read.
    some: bool,
}

fn counts() -> Result<Counts, Errno> {
    let mut counts = Counts::default();
    each_name(open(FOLDER)?, &mut |name| {
        if name.starts_with(b"hugepages-") {
            counts.sizes = true;
            match count(name) {
                Err(Errno::NOENT) => {}
                Ok(0) => counts.none = true,
                _ => counts.some = true,
            }
        }
    })?;
    Ok(counts)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_folios_are_ruled_out_by_counts_or_by_there_never_having_been_one() {
        let (none, once) = (
            b"nr_free 7\nthp_fault_alloc 0\nthp_fault_allocated 3\nthp_collapse_alloc 0\n",
            b"thp_fault_alloc 9\nthp_collapse_alloc 0\n",
        );
        let counts = |sizes, none, some| Ok(Counts { sizes, none, some });
        // Linux 6.11 and later.
        assert!(!may_be(once, counts(true, true, false)));
        assert!(may_be(once, counts(true, true, true)));
        // Before.
        assert!(!may_be(none, counts(false, false, false)));
        assert!(may_be(once, counts(false, false, false)));
        // Sizes below a huge page that nobody counts, and no sysfs.
        assert!(may_be(none, counts(true, false, false)));
        assert!(may_be(none, Err(Errno::NOENT)));
        // A kernel without huge pages, and a text that is not understood.
        assert!(!may_be(b"pgfault 7\n", Err(Errno::NOENT)));
        assert!(may_be(b"pgfault 7\n", counts(false, false, false)));
        assert!(may_be(b"nr_free 7\n", Err(Errno::NOENT)));
        assert!(may_be(
            b"thp_fault_alloc ?\nthp_collapse_alloc 0\n",
            Err(Errno::NOENT)
        ));
    }
}
