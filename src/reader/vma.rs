//! The VMAs of a process one after the other, or the one that an address lies in, from
//! /proc/PID/maps or, with what only that one tells, from smaps.

use crate::proc::lines::LineBuffer;
use crate::proc::maps::{LINE_BYTES, MapsLine, Perms};
use crate::proc::number;
use crate::sys::file::{Process, open_proc, read_next};
use crate::sys::{Errno, RemoteAddr};
use rustix::fd::{AsFd, OwnedFd};

/// What is known of a VMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vma {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Where in its file it begins.
    pub offset: u64,
    /// What it allows.
    pub perms: Perms,
    /// The file's device; 0, 0 without a file.
    pub device: (u32, u32),
    /// Its inode there.
    pub inode: u64,
    /// Whether it maps a file, one without a name included (memfd, shared anonymous memory).
    /// /dev/zero, whose private mappings are anonymous memory, is one as far as names go.
    pub has_file: bool,
    /// Whether it is the kernel's own: `[vdso]`, `[vvar]`, `[uprobes]`.
    pub is_special: bool,
    /// Whether a process may serve its faults (userfaultfd), as far as was asked; unknown is
    /// true.
    pub is_served: bool,
    /// What of it is in swap, in KiB, shared memory that it has not mapped included (`Swap` of
    /// smaps, since Linux 4.5); `None` from maps.
    pub swap_kib: Option<u64>,
    /// Its anonymous memory in KiB; `None` from maps, which does not tell, and of hugetlb pages,
    /// which smaps does not count there.
    pub anonymous_kib: Option<u64>,
    /// How much of it is in memory, and how that is mapped, in KiB; `None` from maps.
    pub in_memory: Option<InMemory>,
    /// Its anonymous huge pages that are mapped as a whole, in KiB; `None` from maps.
    pub anonymous_huge_kib: Option<u64>,
    /// Why nobody should read it. maps tells this of `[vvar]` alone, by its name.
    pub unsafe_to_read: Option<&'static str>,
    /// Whether it is of hugetlb pages, as far as was asked; unknown is false.
    pub is_hugetlb: bool,
    /// Whether KSM may join its pages; unknown is yes.
    pub is_mergeable: bool,
    /// How large its pages are, if it is of hugetlb pages; `None` from maps.
    pub huge_kib: Option<u64>,
    /// Whether it is memory of memfd_secret(2), which no reader gets at; maps tells only the name.
    pub is_secret: bool,
}

/// What of a VMA is in memory, in KiB, as smaps counts it: without zero pages, and without hugetlb pages
/// (fs/proc/task_mmu.c, `smaps_account`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InMemory {
    /// All of it: `Rss`.
    pub resident_kib: u64,
    /// Pages that nobody else maps, which bit 56 of pagemap says of them: `Private_Clean` and
    /// `Private_Dirty`.
    pub private_kib: u64,
    /// The others: `Shared_Clean` and `Shared_Dirty`.
    pub shared_kib: u64,
    /// Pages of either kind that nobody has written since they came: `Private_Clean` and
    /// `Shared_Clean`.
    pub clean_kib: u64,
}

impl Vma {
    pub(crate) fn of(line: &MapsLine<'_>) -> Self {
        Self {
            start: line.start,
            end: line.end,
            offset: line.offset,
            perms: line.perms,
            device: line.device,
            inode: line.inode,
            has_file: has_file(line),
            is_special: is_special(line.name),
            is_served: true,
            swap_kib: None,
            anonymous_kib: None,
            in_memory: None,
            anonymous_huge_kib: None,
            unsafe_to_read: line.name.starts_with(b"[vvar").then_some(DEVICE_MEMORY),
            is_hugetlb: false,
            is_mergeable: true,
            huge_kib: None,
            // mm/secretmem.c; a file system of its own, which has no device.
            is_secret: line.name == b"/secretmem (deleted)" && line.device.0 == 0,
        }
    }

    /// Whether any of it may be in swap; unknown is yes.
    #[must_use]
    pub fn may_be_swapped(&self) -> bool {
        self.swap_kib != Some(0)
    }

    /// Of private memory without a file that is in memory from its first page to its last, how it is
    /// mapped: nothing of it is a zero page, in swap, or a mark. Not where huge pages are mapped as such:
    /// there bit 56 says of all pages what it says of the first (fs/proc/task_mmu.c, `pagemap_pmd_range`),
    /// and smaps looks at each.
    #[must_use]
    pub fn all_in_memory(&self) -> Option<InMemory> {
        let all = Some((self.end - self.start) / 1024);
        self.in_memory.filter(|found| {
            let plain = !self.has_file && !self.is_special && self.swap_kib == Some(0);
            let small = self.anonymous_huge_kib == Some(0);
            let sum = Some(found.private_kib + found.shared_kib);
            plain
                && small
                && Some(found.resident_kib) == all
                && self.anonymous_kib == all
                && sum == all
        })
    }

    /// Takes over a line of smaps below its header; whether it is the last.
    pub(crate) fn field(&mut self, line: &[u8]) -> bool {
        let Some((name, value)) = number::split_once(line, b':') else {
            return false;
        };
        let kib = || number::kib(value).unwrap_or(0);
        let in_memory = self.in_memory.get_or_insert_default();
        if matches!(name, b"Private_Clean" | b"Shared_Clean") {
            in_memory.clean_kib += kib();
        }
        let sum = match name {
            b"VmFlags" => {
                self.flags(value);
                return true;
            }
            b"Swap" => return self.knows(|vma| &mut vma.swap_kib, value),
            b"Anonymous" => return self.knows(|vma| &mut vma.anonymous_kib, value),
            b"AnonHugePages" => return self.knows(|vma| &mut vma.anonymous_huge_kib, value),
            b"KernelPageSize" => return self.knows(|vma| &mut vma.huge_kib, value),
            b"Rss" => &mut in_memory.resident_kib,
            b"Private_Clean" | b"Private_Dirty" => &mut in_memory.private_kib,
            b"Shared_Clean" | b"Shared_Dirty" => &mut in_memory.shared_kib,
            _ => return false,
        };
        *sum += kib();
        false
    }

    /// Takes over a number of KiB, if it is one; it is not the last line.
    fn knows(&mut self, field: fn(&mut Self) -> &mut Option<u64>, value: &[u8]) -> bool {
        *field(self) = number::kib(value);
        false
    }

    /// Takes over `VmFlags`, see Documentation/filesystems/proc.rst.
    fn flags(&mut self, flags: &[u8]) {
        let has = |names| has_flag(flags, names);
        // Missing pages and minor faults; write protection keeps markers where pages are absent.
        let missing_served = has(&[b"um", b"ui"]);
        self.is_served = missing_served || has(&[b"uw"]);
        self.unsafe_to_read = match (has(&[b"io", b"pf"]), missing_served) {
            // Registers of a device may be behind it, and reading them may do something.
            (true, _) => Some(DEVICE_MEMORY),
            // process_vm_readv of a page that nobody serves never comes back.
            (_, true) => Some("userfaultfd"),
            _ => None,
        };
        self.is_hugetlb = has(&[b"ht"]);
        self.is_mergeable = has(&[b"mg"]);
        match self.is_hugetlb {
            true => self.anonymous_kib = None,
            false => self.huge_kib = None,
        }
        // A fork clears `lo` (kernel/fork.c, `dup_mmap`).
        self.is_secret &= has(&[b"dd"]) && self.unsafe_to_read.is_none();
    }

    /// Whether the address is in it.
    #[must_use]
    pub fn contains(&self, address: RemoteAddr) -> bool {
        (self.start..self.end).contains(&address.0)
    }
}

/// A walk over the VMAs of a process in order of address; going back begins anew.
pub(crate) struct Vmas {
    pid: i32,
    source: &'static str,
    file: Option<OwnedFd>,
    lines: LineBuffer<LINE_BYTES>,
    current: Option<Vma>,
    /// End of the VMA before the current one: what lies between is mapped by none.
    from: u64,
}

impl Vmas {
    /// From maps: cheap; what only smaps tells stays unknown.
    pub(super) const fn of(pid: i32) -> Self {
        Self::from_file(pid, "maps")
    }

    /// From smaps, for which the kernel walks all pages of each VMA.
    pub(super) const fn with_flags(pid: i32) -> Self {
        Self::from_file(pid, "smaps")
    }

    /// Those of that file, from the first on.
    ///
    /// # Errors
    /// As open(2).
    pub(crate) fn open(pid: i32, source: &'static str) -> Result<Self, Errno> {
        let mut vmas = Self::from_file(pid, source);
        vmas.file = Some(open_proc(Process::Id(pid), source)?);
        Ok(vmas)
    }

    const fn from_file(pid: i32, source: &'static str) -> Self {
        Self {
            pid,
            source,
            file: None,
            lines: LineBuffer::new(),
            current: None,
            from: 0,
        }
    }

    /// Forgets what was seen: the process may have changed it.
    pub(super) fn forget(&mut self) {
        self.file = None;
        self.current = None;
    }

    /// The VMA at `address`; `None` if there is none.
    ///
    /// # Errors
    /// As open(2) and read(2); `EIO` for a line that is not understood.
    #[inline(never)]
    pub(super) fn at(&mut self, address: RemoteAddr) -> Result<Option<Vma>, Errno> {
        if self.current.is_none() || address.0 < self.from {
            self.file = Some(open_proc(Process::Id(self.pid), self.source)?);
            self.lines.clear();
            (self.current, self.from) = (None, 0);
        }
        loop {
            if let Some(vma) = self.current {
                if address.0 < vma.end {
                    return Ok(Some(vma).filter(|vma| vma.contains(address)));
                }
                self.from = vma.end;
            }
            self.current = self.next(&mut |_| ())?;
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }

    /// Where the VMA behind the hole starts that [`at`](Self::at) has just found.
    pub(super) const fn next_start(&self) -> u64 {
        match self.current {
            Some(vma) => vma.start,
            None => u64::MAX,
        }
    }

    /// The next one; `see` gets its line of maps.
    ///
    /// # Errors
    /// As read(2); `EIO` for a line that is not understood.
    pub(crate) fn next(
        &mut self,
        see: &mut dyn FnMut(&MapsLine<'_>),
    ) -> Result<Option<Vma>, Errno> {
        let file = self.file.as_ref().ok_or(Errno::BADF)?;
        let mut found: Option<Vma> = None;
        while let Some(line) = self
            .lines
            .read_line(|space| read_next(file.as_fd(), space))?
        {
            let header = MapsLine::parse(line.bytes);
            header.iter().for_each(&mut *see);
            match (header, self.source, &mut found) {
                (Some(header), "maps", _) => return Ok(Some(Vma::of(&header))),
                (Some(header), ..) => found = Some(Vma::of(&header)),
                (None, "smaps", Some(vma)) => {
                    if vma.field(line.bytes) {
                        return Ok(found);
                    }
                }
                _ => return Err(Errno::IO),
            }
        }
        Ok(found)
    }
}

/// Whether a name in brackets is that of anything but plain anonymous memory.
fn is_special(name: &[u8]) -> bool {
    const PLAIN: [&[u8]; 3] = [b"[heap]", b"[stack", b"[anon"];
    name.starts_with(b"[") && !PLAIN.iter().any(|plain| name.starts_with(plain))
}

/// Whether what is absent of a VMA comes from a file, or from memory that others see. The first
/// System V segment has inode 0; shared memory always has a file. A name proves nothing: anything
/// can be mounted on /dev/zero.
fn has_file(line: &MapsLine<'_>) -> bool {
    line.perms.shared || line.inode != 0 || line.device != (0, 0)
}

/// Why memory of devices is not read.
const DEVICE_MEMORY: &str = "device-memory";

/// Whether a VMA's flags have one of those named.
fn has_flag(flags: &[u8], names: &[&[u8]]) -> bool {
    let mut flags = flags.split(u8::is_ascii_whitespace);
    flags.any(|flag| names.contains(&flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_bites_is_known_by_its_flags() {
        let told = |flags: &[u8]| {
            let line = b"1000-2000 rw-s 00000000 00:0e 5 /secretmem (deleted)";
            let mut vma = Vma::of(&MapsLine::parse(line).unwrap());
            vma.flags(flags);
            let Vma {
                is_hugetlb,
                is_secret,
                ..
            } = vma;
            (vma.unsafe_to_read, vma.is_served, is_hugetlb, is_secret)
        };
        let device = (Some("device-memory"), false, false, false);
        assert_eq!(told(b" rd mr pf io de dd "), device);
        for missing in [&b" rd wr mr mw me um ac "[..], b" ui rd"] {
            assert_eq!(told(missing), (Some("userfaultfd"), true, false, false));
        }
        assert_eq!(told(b" rd uw "), (None, true, false, false));
        assert_eq!(told(b" rd de ht"), (None, false, true, false));
        assert_eq!(told(b" rd lo dd"), (None, false, false, true));
        assert_eq!(told(b" rd dd"), (None, false, false, true));
        assert_eq!(told(b" rd lo"), (None, false, false, false));
        // Not a flag, but a part of one.
        assert_eq!(told(b" iox umx"), (None, false, false, false));
        assert_eq!(told(b""), (None, false, false, false));
    }

    #[test]
    fn ksm_may_join_what_is_marked_so_and_what_nobody_tells_of() {
        let mut vma = Vma::of(&MapsLine::parse(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap());
        assert!(vma.is_mergeable);
        for (flags, is_mergeable) in [(&b" rd wr mg"[..], true), (b" rd wr", false)] {
            vma.flags(flags);
            assert_eq!(vma.is_mergeable, is_mergeable);
        }
    }

    /// smaps counts no hugetlb page as anonymous, private ones included.
    #[test]
    fn zero_anonymous_kib_of_hugetlb_is_no_answer() {
        let told = |flags: &[u8]| {
            let header = MapsLine::parse(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap();
            let mut vma = Vma::of(&header);
            assert!(!vma.field(b"Anonymous:             0 kB"));
            assert!(vma.field(flags));
            vma.anonymous_kib
        };
        assert_eq!(told(b"VmFlags: rd wr mr mw me ac"), Some(0));
        assert_eq!(told(b"VmFlags: rd wr mr mw me de ht"), None);
    }

    #[test]
    fn all_of_it_is_in_memory_if_every_sum_is_its_size() {
        const WHOLE: [&[u8]; 10] = [
            b"Rss:                  32 kB",
            b"Pss:                  20 kB",
            b"Shared_Clean:          4 kB",
            b"Shared_Dirty:         20 kB",
            b"Private_Clean:         0 kB",
            b"Private_Dirty:         8 kB",
            b"Anonymous:            32 kB",
            b"Swap:                  0 kB",
            b"AnonHugePages:         0 kB",
            b"VmFlags: rd wr mr mw me ac",
        ];
        let told = |header: &[u8], lines: &[&[u8]]| {
            let mut vma = Vma::of(&MapsLine::parse(header).unwrap());
            for line in lines {
                vma.field(line);
            }
            vma.all_in_memory()
        };
        let header = b"1000-9000 rw-p 00000000 00:00 0 ";
        let want = InMemory {
            resident_kib: 32,
            private_kib: 8,
            shared_kib: 24,
            clean_kib: 4,
        };
        assert_eq!(told(header, &WHOLE), Some(want));
        // From maps, or with one line missing or other than the rest.
        assert_eq!(told(header, &[]), None);
        for nth in [0, 2, 3, 5, 6, 7, 8] {
            let mut lines = WHOLE;
            lines[nth] = b"Locked:  0 kB";
            assert_eq!(told(header, &lines), None, "{nth}");
        }
        let mut swapped = WHOLE;
        swapped[7] = b"Swap: 4 kB";
        assert_eq!(told(header, &swapped), None);
        // For a huge page pagemap has one answer, and smaps one for each page.
        let mut huge = WHOLE;
        huge[8] = b"AnonHugePages:        32 kB";
        assert_eq!(told(header, &huge), None);
        let mut hugetlb = WHOLE;
        hugetlb[9] = b"VmFlags: rd ht";
        assert_eq!(told(header, &hugetlb), None);
        for header in [
            &b"1000-a000 rw-p 00000000 00:00 0 "[..],
            b"1000-9000 rw-p 00000000 08:01 5 /file",
            b"1000-9000 rw-s 00000000 00:00 0 ",
            b"1000-9000 r--p 00000000 00:00 0 [vdso]",
        ] {
            assert_eq!(told(header, &WHOLE), None);
        }
    }

    #[test]
    fn huge_pages_are_known_from_smaps_alone() {
        let told = |line: &[u8]| {
            let header = MapsLine::parse(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap();
            let mut vma = Vma::of(&header);
            vma.field(line);
            vma.anonymous_huge_kib
        };
        assert_eq!(told(b"AnonHugePages:         0 kB"), Some(0));
        assert_eq!(told(b"AnonHugePages:      4096 kB"), Some(4096));
        assert_eq!(told(b"ShmemPmdMapped:        0 kB"), None);
        assert_eq!(told(b"AnonHugePages:         ?"), None);
    }

    #[test]
    fn what_smaps_does_not_say_is_unknown() {
        let line = b"1000-2000 rw-s 00000000 00:01 5 ";
        let told = |lines: &[&[u8]]| {
            let mut vma = Vma::of(&MapsLine::parse(line).unwrap());
            for line in lines {
                vma.field(line);
            }
            (vma.may_be_swapped(), vma.is_served)
        };
        assert_eq!(told(&[]), (true, true));
        assert_eq!(told(&[b"SwapPss:        0 kB"]), (true, true));
        assert_eq!(told(&[b"Swap:           ?"]), (true, true));
        assert_eq!(
            told(&[b"Swap:           4 kB", b"VmFlags: rd sh"]),
            (true, false)
        );
        assert_eq!(
            told(&[b"Swap:           0 kB", b"VmFlags: um"]),
            (false, true)
        );
    }

    #[test]
    fn what_has_a_file_and_what_is_the_kernels_is_told_by_the_line() {
        let cases: [(&[u8], bool, bool); 9] = [
            (b"1000-2000 rw-p 00000000 00:00 0 ", false, false),
            (b"1000-2000 rw-p 00000000 00:00 0   [heap]", false, false),
            (
                b"1000-2000 rw-p 00000000 00:00 0   [anon:arena]",
                false,
                false,
            ),
            (
                b"1000-2000 r--p 00000000 00:00 0   [vvar_vclock]",
                false,
                true,
            ),
            (
                b"1000-2000 rw-s 00000000 00:01 0   /SYSV00000000 (deleted)",
                true,
                false,
            ),
            (b"1000-2000 rw-s 00000000 00:00 0   ", true, false),
            (b"1000-2000 rw-p 00000000 00:06 5   /dev/zero", true, false),
            (
                b"1000-2000 rw-s 00000000 00:01 5   /dev/zero (deleted)",
                true,
                false,
            ),
            (b"1000-2000 r--p 00000000 fe:00 5   /tmp/[v", true, false),
        ];
        for (line, has_file, special) in cases {
            let vma = Vma::of(&MapsLine::parse(line).unwrap());
            assert_eq!(
                (vma.has_file, vma.is_special),
                (has_file, special),
                "{vma:?}"
            );
        }
    }

    #[test]
    fn both_files_give_the_same_vmas_forwards_and_backwards() {
        let pid = std::process::id().cast_signed();
        let here = both_files_give_the_same_vmas_forwards_and_backwards as *const () as u64;
        let local = &raw const pid as u64;
        for mut vmas in [Vmas::of(pid), Vmas::with_flags(pid)] {
            let smaps = vmas.source == "smaps";
            for (address, executable, has_file) in [
                (here, true, true),
                (local, false, false),
                (here, true, true),
            ] {
                let vma = vmas.at(RemoteAddr(address)).unwrap().unwrap();
                assert!(vma.contains(RemoteAddr(address)));
                assert_eq!((vma.perms.executable, vma.has_file), (executable, has_file));
                assert_eq!(vma.is_served, !smaps);
            }
            assert_eq!(vmas.at(RemoteAddr(8)), Ok(None));
            assert_eq!(vmas.at(RemoteAddr(1 << 62)), Ok(None));
        }
    }
}
