//! Whether anonymous memory of this machine may be in large folios, and in what state these are.

use crate::proc::number::decimal;
use crate::proc::vmstat;
use crate::sys::Errno;
use crate::sys::file::{each_name, open, read_number, read_whole};
use crate::text::Text;
use core::ffi::CStr;

/// Folders `hugepages-<size>kB` of it have `stats/nr_anon` since Linux 6.12: anonymous folios of
/// that size, on the whole machine (Documentation/admin-guide/mm/transhuge.rst). Sizes that
/// anonymous memory does not come in have none.
const FOLDER: &CStr = c"/sys/kernel/mm/transparent_hugepage";

/// What large folios of anonymous memory there may be on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Large {
    /// None.
    None,
    /// Huge pages of so many bytes, a power of two, and of each some process maps the whole by one
    /// entry, of the level above single pages (a PMD). So a page that is mapped by an entry of its
    /// own is part of none, if bit 56 of pagemap is set: the entry for the whole maps that page, too,
    /// and is of another process, since no process maps a page of anonymous memory twice. It is counted
    /// (fs/proc/task_mmu.c, `__folio_page_mapped_exclusively`), by page or, with
    /// CONFIG_NO_PAGE_MAPCOUNT, by folio. And if the bit is not set, others map the page, and a pin
    /// copies it alone, whatever it is part of.
    Whole(u64),
    /// Of any size, in any state. Unknown is this.
    Any,
}

/// Looks at most, where huge pages keep coming meanwhile.
const LOOKS: u32 = 4;

/// What there is now.
#[must_use]
pub fn now() -> Large {
    settle(&mut look)
}

fn settle(look: &mut dyn FnMut() -> Look) -> Large {
    let mut before = look();
    for _ in 1..LOOKS {
        if !matches!(before.large, Large::Whole(_)) {
            return before.large;
        }
        // The counts are read one after the other, and each may be of another moment. If no huge page
        // has come between the two looks at those that are mapped as a whole, there were never more of
        // these in between; so none is missing among all, which were counted in between.
        let seen = look();
        if seen == before {
            return seen.large;
        }
        before = seen;
    }
    Large::Any
}

/// What one look finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    large: Large,
    /// How many huge pages there are.
    huge: u64,
    /// How many have ever come, by the events of [`CAME`].
    came: [Option<u64>; 2],
}

/// Events of /proc/vmstat by which anonymous memory gets a huge page: a fault, and small pages that are
/// gathered into one. The count and the mapping are two moments.
const CAME: [&str; 2] = ["thp_fault_alloc", "thp_collapse_alloc"];

fn look() -> Look {
    let counts = counts();
    let mut buffer = [0; vmstat::BYTES];
    let text = read_whole(vmstat::PATH, &mut buffer);
    let came = |text| CAME.map(|name| vmstat::value(text, name));
    Look {
        huge: counts.map_or(0, |counts| counts.huge),
        came: text.map_or([None; 2], came),
        large: text.map_or(Large::Any, |text| large(text, counts)),
    }
}

/// By /proc/vmstat and the [`counts`].
fn large(text: &[u8], counts: Result<Counts, Errno>) -> Large {
    let value = |name| vmstat::value(text, name);
    match (CAME.map(value), counts) {
        // A kernel without huge pages.
        ([None, None], Err(_)) if value("pgfault").is_some() => Large::None,
        (_, Ok(Counts { some: true, .. })) => Large::Any,
        ([Some(_), Some(_)], Ok(counts @ Counts { huge: 1.., .. })) => {
            // Those that are mapped as a whole (mm/rmap.c, `__folio_add_rmap`), which vmstat counts
            // in huge pages, and at once (mm/vmstat.c: each is more than a processor keeps for
            // itself). A count of all that errs is too high (hugetlb pages that were moved).
            match value("nr_anon_transparent_hugepages") == Some(counts.huge) {
                true => Large::Whole(counts.huge_bytes),
                false => Large::Any,
            }
        }
        (
            _,
            Ok(Counts {
                huge: 0,
                none: true,
                ..
            }),
        ) => Large::None,
        // Nothing counts those that are there; since booting there was none.
        ([Some(0), Some(0)], Ok(Counts { sizes: false, .. })) => Large::None,
        _ => Large::Any,
    }
}

/// What the folders say.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// There is a folder.
    sizes: bool,
    /// A count is 0.
    none: bool,
    /// A count is not 0, or cannot be read, that is not the huge pages'.
    some: bool,
    /// How many huge pages there are, if that is known.
    huge: u64,
    /// What a PMD maps; 0 if that is not known.
    huge_bytes: u64,
}

fn counts() -> Result<Counts, Errno> {
    let folder = open(FOLDER)?;
    let huge_bytes = read_number(c"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    let mut counts = Counts {
        huge_bytes: huge_bytes.unwrap_or(0),
        ..Counts::default()
    };
    each_name(folder, &mut |name| {
        if let Some(size) = name.strip_prefix(b"hugepages-") {
            counts.add(size_bytes(size), count(name));
        }
    })?;
    Ok(counts)
}

/// What the name of a folder ends in.
fn size_bytes(size: &[u8]) -> Option<u64> {
    decimal(size.strip_suffix(b"kB")?)?.checked_mul(1024)
}

impl Counts {
    fn add(&mut self, bytes: Option<u64>, count: Result<u64, Errno>) {
        self.sizes = true;
        match count {
            Err(Errno::NOENT) => {}
            Ok(0) => self.none = true,
            Ok(huge) if bytes == Some(self.huge_bytes) && self.huge_bytes.is_power_of_two() => {
                self.huge = huge;
            }
            _ => self.some = true,
        }
    }
}

fn count(name: &[u8]) -> Result<u64, Errno> {
    let mut path = Text::new();
    path.add(FOLDER.to_str().map_err(|_| Errno::INVAL)?);
    path.add("/");
    path.add(core::str::from_utf8(name).map_err(|_| Errno::INVAL)?);
    path.add("/stats/nr_anon\0");
    let path = path.read().map_err(|_| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_with_nul(path.as_bytes()).map_err(|_| Errno::INVAL)?;
    read_number(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Counts = Counts {
        sizes: true,
        none: true,
        some: false,
        huge: 0,
        huge_bytes: 2 << 20,
    };
    const NO_SIZES: Counts = Counts {
        sizes: false,
        none: false,
        ..NONE
    };

    #[test]
    fn large_folios_are_ruled_out_by_counts_or_by_there_never_having_been_one() {
        let (none, once) = (
            b"nr_free 7\nthp_fault_alloc 0\nthp_fault_allocated 3\nthp_collapse_alloc 0\n",
            b"thp_fault_alloc 9\nthp_collapse_alloc 0\n",
        );
        // Linux 6.12 and later.
        assert_eq!(large(once, Ok(NONE)), Large::None);
        let some = Counts { some: true, ..NONE };
        assert_eq!(large(once, Ok(some)), Large::Any);
        // Before.
        assert_eq!(large(none, Ok(NO_SIZES)), Large::None);
        assert_eq!(large(once, Ok(NO_SIZES)), Large::Any);
        // Sizes below a huge page that nobody counts, and no sysfs.
        let uncounted = Counts {
            sizes: true,
            ..NO_SIZES
        };
        assert_eq!(large(none, Ok(uncounted)), Large::Any);
        assert_eq!(large(none, Err(Errno::NOENT)), Large::Any);
        // A kernel without huge pages, and a text that is not understood.
        assert_eq!(large(b"pgfault 7\n", Err(Errno::NOENT)), Large::None);
        assert_eq!(large(b"pgfault 7\n", Ok(NO_SIZES)), Large::Any);
        assert_eq!(large(b"nr_free 7\n", Err(Errno::NOENT)), Large::Any);
        let unclear = b"thp_fault_alloc ?\nthp_collapse_alloc 0\n";
        assert_eq!(large(unclear, Err(Errno::NOENT)), Large::Any);
    }

    #[test]
    fn huge_pages_are_whole_if_as_many_are_mapped_so_as_there_are_and_nothing_else_is_there() {
        let vmstat = |whole: &str| {
            let rest = "thp_fault_alloc 9\nthp_collapse_alloc 0\n";
            std::format!("pgfault 7\nnr_anon_transparent_hugepages {whole}\n{rest}")
        };
        let huge = Counts { huge: 3, ..NONE };
        let of = |whole, counts| large(vmstat(whole).as_bytes(), Ok(counts));
        assert_eq!(of("3", huge), Large::Whole(2 << 20));
        // One is mapped in parts, or by nobody; or was mapped between the looks.
        assert_eq!(of("2", huge), Large::Any);
        assert_eq!(of("4", huge), Large::Any);
        assert_eq!(of("?", huge), Large::Any);
        // A smaller size is there as well.
        assert_eq!(of("3", Counts { some: true, ..huge }), Large::Any);
        // All are gone since.
        assert_eq!(of("3", NONE), Large::None);
        let nothing = b"pgfault 7\nthp_fault_alloc 9\nthp_collapse_alloc 0\n";
        assert_eq!(large(nothing, Ok(huge)), Large::Any);
    }

    /// One that is mapped in parts goes unnoticed in each look for itself if another, whole, comes between
    /// its two counts, and goes before the next.
    #[test]
    fn while_huge_pages_come_it_is_not_told_whether_all_are_whole() {
        let whole = Large::Whole(2 << 20);
        let look = |large, huge, came| Look {
            large,
            huge,
            came: [Some(came), Some(0)],
        };
        let told = |looks: &[Look]| {
            let mut looks = looks.iter();
            let large = settle(&mut || *looks.next().unwrap());
            (large, looks.len())
        };
        let quiet = look(whole, 1, 7);
        assert_eq!(told(&[quiet, quiet]), (whole, 0));
        let coming = [7, 8, 9, 10].map(|came| look(whole, 1, came));
        assert_eq!(told(&coming), (Large::Any, 0));
        // Until two looks in a row agree.
        let [first, second, third, _] = coming;
        assert_eq!(told(&[first, second, third, third]), (whole, 0));
        // As many came as went.
        assert_eq!(told(&[quiet, look(whole, 2, 7), quiet, quiet]), (whole, 0));
        for other in [Large::Any, Large::None] {
            assert_eq!(told(&[look(other, 0, 7), quiet]), (other, 1));
            assert_eq!(told(&[first, second, look(other, 0, 9)]), (other, 0));
        }
    }

    #[test]
    fn only_what_a_pmd_maps_counts_as_a_huge_page() {
        let added = |huge_bytes, folders: &[(&[u8], Result<u64, Errno>)]| {
            let mut counts = Counts {
                huge_bytes,
                ..Counts::default()
            };
            for &(size, count) in folders {
                counts.add(size_bytes(size), count);
            }
            let Counts {
                none, some, huge, ..
            } = counts;
            (none, some, huge)
        };
        let small: (&[u8], _) = (b"64kB", Ok(0));
        assert_eq!(
            added(2 << 20, &[small, (b"2048kB", Ok(5))]),
            (true, false, 5)
        );
        assert_eq!(
            added(2 << 20, &[small, (b"2048kB", Ok(0))]),
            (true, false, 0)
        );
        assert_eq!(
            added(2 << 20, &[small, (b"1024kB", Ok(5))]),
            (true, true, 0)
        );
        assert_eq!(
            added(2 << 20, &[(b"2048kB", Err(Errno::ACCESS))]),
            (false, true, 0)
        );
        assert_eq!(
            added(2 << 20, &[(b"8kB", Err(Errno::NOENT))]),
            (false, false, 0)
        );
        // A size that is not known, or not to be reckoned with.
        assert_eq!(added(0, &[small, (b"2048kB", Ok(5))]), (true, true, 0));
        assert_eq!(added(3 << 20, &[(b"3072kB", Ok(5))]), (false, true, 0));
        assert_eq!(added(0, &[(b"0kB", Ok(5))]), (false, true, 0));
        assert_eq!(added(2 << 20, &[(b"2048", Ok(5))]), (false, true, 0));
    }
}
