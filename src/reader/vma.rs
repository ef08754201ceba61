//! The VMA that an address lies in, from /proc/PID/maps or, with what serves its faults, from
//! smaps.

use crate::proc::lines::LineBuffer;
use crate::proc::maps::{LINE_BYTES, MapsLine, Perms};
use crate::proc::number;
use crate::sys::file::{Process, open_proc, read_next};
use crate::sys::{Errno, RemoteAddr};
use rustix::fd::{AsFd, OwnedFd};

/// What a reader needs to know of a VMA.
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
    /// Whether any of it is in swap, shared memory that it has not mapped included (`Swap` of
    /// smaps, since Linux 4.5), as far as was asked; unknown is true.
    pub may_be_swapped: bool,
}

impl Vma {
    fn of(line: &MapsLine<'_>) -> Self {
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
            may_be_swapped: true,
        }
    }

    /// Takes over a line of smaps below its header; whether it is the last.
    fn field(&mut self, line: &[u8]) -> bool {
        if let Some(kib) = line.strip_prefix(b"Swap:") {
            self.may_be_swapped = number::kib(kib) != Some(0);
        }
        let flags = line.strip_prefix(b"VmFlags:");
        if let Some(flags) = flags {
            self.is_served = has_flag(flags, SERVED);
        }
        flags.is_some()
    }

    /// Whether the address is in it.
    #[must_use]
    pub fn contains(&self, address: RemoteAddr) -> bool {
        (self.start..self.end).contains(&address.0)
    }
}

/// A walk over the VMAs of a process in order of address; going back begins anew.
pub(super) struct Vmas {
    pid: i32,
    source: &'static str,
    file: Option<OwnedFd>,
    lines: LineBuffer<LINE_BYTES>,
    current: Option<Vma>,
    /// End of the VMA before the current one: what lies between is mapped by none.
    from: u64,
}

impl Vmas {
    /// From maps: cheap; `is_served` and `may_be_swapped` stay true.
    pub(super) const fn of(pid: i32) -> Self {
        Self::from_file(pid, "maps")
    }

    /// From smaps, for which the kernel walks all pages of each VMA.
    pub(super) const fn with_flags(pid: i32) -> Self {
        Self::from_file(pid, "smaps")
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
            self.current = self.next()?;
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

    fn next(&mut self) -> Result<Option<Vma>, Errno> {
        let file = self.file.as_ref().ok_or(Errno::BADF)?;
        let mut found = None;
        while let Some(line) = self
            .lines
            .read_line(|space| read_next(file.as_fd(), space))?
        {
            match (MapsLine::parse(line.bytes), self.source, &mut found) {
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
pub(crate) fn has_file(line: &MapsLine<'_>) -> bool {
    line.perms.shared || line.inode != 0 || line.device != (0, 0)
}

/// Flags of userfaultfd for what is absent: missing pages, minor faults.
pub(crate) const MISSING_SERVED: &[&[u8]] = &[b"um", b"ui"];

/// The same and write protection, which keeps markers where pages are absent.
const SERVED: &[&[u8]] = &[b"um", b"ui", b"uw"];

/// Whether a VMA's flags (`VmFlags` of proc_pid_smaps(5)) have one of those named.
pub(crate) fn has_flag(flags: &[u8], names: &[&[u8]]) -> bool {
    let mut flags = flags.split(u8::is_ascii_whitespace);
    flags.any(|flag| names.contains(&flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn userfaultfd_is_seen_in_the_flags_and_nothing_else_is() {
        assert!(has_flag(b" rd wr mr mw me ac um sd", SERVED));
        assert!(has_flag(b" rd uw ", SERVED));
        assert!(!has_flag(b" rd wr mr mw me ac sd ", SERVED));
        assert!(!has_flag(b"", SERVED));
    }

    #[test]
    fn what_smaps_does_not_say_is_unknown() {
        let line = b"1000-2000 rw-s 00000000 00:01 5 ";
        let told = |lines: &[&[u8]]| {
            let mut vma = Vma::of(&MapsLine::parse(line).unwrap());
            for line in lines {
                vma.field(line);
            }
            (vma.may_be_swapped, vma.is_served)
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
