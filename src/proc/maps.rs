//! Lines of /proc/PID/maps; the header lines of smaps and smaps_rollup have the same
//! form.
//!
//! Source: proc_pid_maps(5); `show_vma_header_prefix` and `show_map_vma` in
//! fs/proc/task_mmu.c.

use super::number::{decimal, hex, split_once, word};

/// The longest line: a path has up to 4,096 bytes, each of which may be printed as four.
pub const LINE_BYTES: usize = 20 << 10;

/// One VMA as the kernel prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapsLine<'a> {
    /// First address.
    pub start: u64,
    /// First address behind it; never below `start`. Equal only in the smaps_rollup of
    /// a process that has no memory.
    pub end: u64,
    /// What the VMA allows.
    pub perms: Perms,
    /// Where in the file it begins, in bytes; 0 without a file.
    pub offset: u64,
    /// Major and minor number of the file's device; 0, 0 without a file.
    pub device: (u32, u32),
    /// Inode on that device; 0 without a file.
    pub inode: u64,
    /// Path, pseudo-name such as `[heap]`, or empty. As printed: a line feed in a path is
    /// `\012`, an unlinked file ends in ` (deleted)`, and neither can be told from a file
    /// that is really named so. Not necessarily UTF-8.
    pub name: &'a [u8],
}

impl<'a> MapsLine<'a> {
    /// Reads a line without its line feed; `None` if it has another form. The kernel
    /// ends the inode with a blank even if no name follows, so a line that was cut
    /// within a number is refused.
    #[must_use]
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (range, rest) = word(line)?;
        let (start, end) = split_once(range, b'-')?;
        let (perms, rest) = word(rest)?;
        let (offset, rest) = word(rest)?;
        let (device, rest) = word(rest)?;
        let (inode, rest) = word(rest)?;
        let vma = Self {
            start: hex(start)?,
            end: hex(end)?,
            perms: Perms::parse(perms)?,
            offset: hex(offset)?,
            device: device_numbers(device)?,
            inode: decimal(inode)?,
            name: after_padding(rest.strip_prefix(b" ")?),
        };
        (vma.start <= vma.end).then_some(vma)
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len_bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether it shares at least one byte with `start..end`.
    #[must_use]
    pub fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start.max(start) < self.end.min(end)
    }

    /// Whether all of it lies in `start..end`.
    #[must_use]
    pub fn lies_within(&self, start: u64, end: u64) -> bool {
        start <= self.start && self.end <= end
    }
}

/// The `rwxp` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Perms {
    /// `r`
    pub readable: bool,
    /// `w`
    pub writable: bool,
    /// `x`
    pub executable: bool,
    /// `s`, as opposed to `p` for private. The kernel means VM_MAYSHARE: a MAP_SHARED
    /// mapping, also of a file that may only be read.
    pub shared: bool,
}

impl Perms {
    /// Reads the four letters.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let &[read, write, execute, share] = text else {
            return None;
        };
        Some(Self {
            readable: either(read, b'-', b'r')?,
            writable: either(write, b'-', b'w')?,
            executable: either(execute, b'-', b'x')?,
            shared: either(share, b'p', b's')?,
        })
    }

    /// The four letters again.
    #[must_use]
    pub fn as_bytes(self) -> [u8; 4] {
        [
            if self.readable { b'r' } else { b'-' },
            if self.writable { b'w' } else { b'-' },
            if self.executable { b'x' } else { b'-' },
            if self.shared { b's' } else { b'p' },
        ]
    }
}

fn either(letter: u8, no: u8, yes: u8) -> Option<bool> {
    if letter == yes {
        Some(true)
    } else {
        (letter == no).then_some(false)
    }
}

fn device_numbers(text: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = split_once(text, b':')?;
    let major = u32::try_from(hex(major)?).ok()?;
    let minor = u32::try_from(hex(minor)?).ok()?;
    Some((major, minor))
}

/// The name stands in a column of its own, padded with spaces only; its own other
/// blanks, and those at its end, belong to it.
fn after_padding(text: &[u8]) -> &[u8] {
    let name = text.iter().position(|byte| *byte != b' ');
    &text[name.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(line: &[u8]) -> Option<&[u8]> {
        MapsLine::parse(line).map(|vma| vma.name)
    }

    #[test]
    fn a_file_mapping_has_every_column() {
        let line = b"7fcb90b1f000-7fcb90b45000 r-xs 00026000 fe:0a 326279                     /usr/lib/libc.so.6";
        let expected = MapsLine {
            start: 0x7fcb_90b1_f000,
            end: 0x7fcb_90b4_5000,
            perms: Perms {
                readable: true,
                writable: false,
                executable: true,
                shared: true,
            },
            offset: 0x26000,
            device: (254, 10),
            inode: 326_279,
            name: b"/usr/lib/libc.so.6",
        };
        assert_eq!(MapsLine::parse(line), Some(expected));
    }

    #[test]
    fn the_last_page_of_the_address_space_parses() {
        let line =
            b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
        let vma = MapsLine::parse(line).unwrap();
        assert_eq!((vma.start, vma.len_bytes()), (0xffff_ffff_ff60_0000, 4096));
        assert_eq!(vma.perms.as_bytes(), *b"--xp");
        let last = MapsLine::parse(b"0-ffffffffffffffff ---p 0 00:00 0 ").unwrap();
        assert_eq!(last.len_bytes(), u64::MAX);
    }

    #[test]
    fn names_are_taken_as_printed() {
        let cases: [(&[u8], &[u8]); 11] = [
            (b"1000-2000 rw-p 00000000 00:00 0 ", b""),
            (
                b"1000-2000 rw-p 00000000 00:00 0                          [heap]",
                b"[heap]",
            ),
            (
                b"1000-2000 rw-p 00000000 00:00 0   [anon:my arena]",
                b"[anon:my arena]",
            ),
            (
                b"1000-2000 rw-s 00000000 00:01 1025   /memfd:x (deleted)",
                b"/memfd:x (deleted)",
            ),
            (
                b"1000-2000 rw-s 00000000 00:05 32769  /SYSV00000000 (deleted)",
                b"/SYSV00000000 (deleted)",
            ),
            (
                b"1000-2000 r--p 00000000 fe:00 5   /tmp/two  words ",
                b"/tmp/two  words ",
            ),
            (
                b"1000-2000 r--p 00000000 fe:00 5   /tmp/a\\012b",
                b"/tmp/a\\012b",
            ),
            (
                b"1000-2000 r--p 00000000 fe:00 5   /tmp/\xff\xfe",
                b"/tmp/\xff\xfe",
            ),
            (b"1000-2000 r--p 00000000 fe:00 5   /tmp/cr\r", b"/tmp/cr\r"),
            (b"1000-2000 r--p 00000000 fe:00 5 //deleted", b"//deleted"),
            (
                b"56046ec12000-7ffe6f69f000 ---p 00000000 00:00 0   [rollup]",
                b"[rollup]",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(name(line), Some(expected), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn other_forms_are_refused() {
        let cases: [&[u8]; 17] = [
            b"",
            b"Rss:                   8 kB",
            b"VmFlags: rd ex mr mw me ",
            b"1000-2000 rw-p 00000000 00:00",
            b"1000-2000 rw-p 00000000 00:00 0",
            b"1000-2000 rw-p 00000000 00:00 0\r",
            b"1000-2000 rw-p 00000000 00:00 x ",
            b"1000-2000 rw-p 00000000 00-00 0 ",
            b"1000-2000 rw-p 00000000 100000000:00 0 ",
            b"1000-2000 rw- 00000000 00:00 0 ",
            b"1000-2000 rw-px 00000000 00:00 0 ",
            b"1000-2000 wr-p 00000000 00:00 0 ",
            b"1000-2000 rw-P 00000000 00:00 0 ",
            b"2000-1000 rw-p 00000000 00:00 0 ",
            b"1000 rw-p 00000000 00:00 0 ",
            b"111111111111111111111-222222222222222222222 rw-p 00000000 00:00 0 ",
            b"1000-2000 rw-p 00000000 00:00 111111111111111111111 ",
        ];
        for line in cases {
            assert_eq!(MapsLine::parse(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn letters_survive_the_round_trip() {
        for text in [b"rwxs", b"---p", b"r--s", b"-w-p", b"--xp", b"rw-p"] {
            assert_eq!(Perms::parse(text).unwrap().as_bytes(), *text);
        }
    }

    #[test]
    fn ranges_are_half_open() {
        let vma = MapsLine::parse(b"2000-4000 rw-p 00000000 00:00 0 ").unwrap();
        let cases = [
            // (start, end, overlaps, lies within)
            (0x2000, 0x4000, true, true),
            (0x1000, 0x5000, true, true),
            (0x3000, 0x5000, true, false),
            (0x1000, 0x3000, true, false),
            (0x3000, 0x3001, true, false),
            (0x1000, 0x2000, false, false),
            (0x4000, 0x5000, false, false),
            (0x3000, 0x3000, false, false),
            (0x5000, 0x1000, false, false),
        ];
        for (start, end, overlaps, within) in cases {
            assert_eq!(vma.overlaps(start, end), overlaps, "{start:x}-{end:x}");
            assert_eq!(vma.lies_within(start, end), within, "{start:x}-{end:x}");
        }
    }
}
