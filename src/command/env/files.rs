//! Files of /proc and /sys, and why one cannot be read.

use super::kernel::Kernel;
use super::record::{Finding, Missing, Why};
use crate::sys::{Errno, file};
use crate::text::{Full, Text};
use core::cell::Cell;
use core::ffi::CStr;
use core::slice::from_ref;
use rustix::fd::{AsFd, OwnedFd};

/// Where a path begins, a file that exists wherever that file system is mounted, and
/// what its absence means. The first prefix that matches counts.
static MOUNTS: [(&[u8], &CStr, Why); 3] = [
    (
        b"/sys/kernel/security/",
        c"/sys/kernel/security/lsm",
        Why::NoSecurityfs,
    ),
    (b"/sys/", c"/sys/kernel", Why::NoSys),
    (b"/proc/", c"/proc/self", Why::NoProc),
];

/// Most bytes of a file that [`Files::head`] gives.
pub const HEAD_MAX: usize = 4096;

/// And of a piece that [`Files::all`] gives.
const PIECE_MAX: usize = 32 << 10;

/// The way to files: one buffer for all of them, and what replaces characters of a path.
pub struct Files {
    /// For `@`: its release.
    pub kernel: Kernel,
    /// For `%`: the CPU that measures, or the first.
    cpu: usize,
    /// For `#`: a size of huge pages.
    pub kib: u64,
    /// By place in [`MOUNTS`], whether the file was seen there.
    mounted: Cell<[bool; MOUNTS.len()]>,
    /// Whose head is in the buffer, for which size, and how long it is.
    held: (&'static [u8], u64, usize),
    buffer: [u8; HEAD_MAX],
}

impl Files {
    /// Nothing is read yet.
    pub fn new(cpu: usize) -> Self {
        Self {
            kernel: Kernel::read(),
            cpu,
            kib: 0,
            mounted: Cell::new([false; MOUNTS.len()]),
            held: (b"", 0, 0),
            buffer: [0; HEAD_MAX],
        }
    }

    /// Adds a path as it is opened: `%` is the CPU, `#` a size in KiB, `@` the kernel's release, and
    /// below /sys `^` is the folder of CPUs, `~` that of huge pages.
    pub fn expand(&self, text: &mut Text, path: &[u8]) {
        for byte in path {
            match byte {
                b'%' => text.number(self.cpu as u64),
                b'#' => text.number(self.kib),
                b'@' => text.add(self.kernel.release()),
                b'^' => text.add("/devices/system/cpu/"),
                b'~' => text.add("/kernel/mm/transparent_hugepage/"),
                byte => text.add(str::from_utf8(from_ref(byte)).unwrap_or("?")),
            };
        }
    }

    /// Opens a file; tells what the kernel does not have from what merely is not mounted.
    pub fn open(&self, path: &[u8]) -> Result<OwnedFd, Missing> {
        let mut text = Text::new();
        self.expand(&mut text, path);
        let text = text.add("\0").read().map_err(|Full| Why::TooLong)?;
        let text = CStr::from_bytes_with_nul(text.as_bytes()).map_err(|_| Errno::INVAL)?;
        let errno = match file::open(text) {
            Ok(file) => return Ok(file),
            Err(errno) => errno,
        };
        let mut mounts = MOUNTS.iter().zip(self.mounted.as_array_of_cells());
        match mounts.find(|((prefix, ..), _)| path.starts_with(prefix)) {
            Some(((_, witness, why), mounted)) if errno == Errno::NOENT && !mounted.get() => {
                if file::open(witness).err() == Some(errno) {
                    return Err(Missing::Unknown(*why));
                }
                mounted.set(true);
            }
            _ => {}
        }
        Err(errno.into())
    }

    /// The first [`HEAD_MAX`] bytes of a file, or all if it has fewer. Of the file that was asked for
    /// last, as they were.
    pub fn head(&mut self, path: &'static [u8]) -> Result<&[u8], Missing> {
        if (self.held.0, self.held.1) != (path, self.kib) {
            let file = self.open(path)?;
            self.held.0 = b"";
            let count = file::read_at(file.as_fd(), &mut self.buffer, 0)?;
            self.held = (path, self.kib, count);
        }
        Ok(self.buffer.get(..self.held.2).unwrap_or_default())
    }

    /// Gives `take` all of a file, piece by piece.
    pub fn all(&self, path: &[u8], take: &mut dyn FnMut(&[u8])) -> Finding {
        let file = self.open(path)?;
        let mut buffer = [0; PIECE_MAX];
        loop {
            match file::read_next(file.as_fd(), &mut buffer)? {
                0 => return Ok(()),
                count => take(buffer.get(..count).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_absent() {
        let cases: [(&[u8], Missing); 4] = [
            (b"/proc/self/nonexistent", Missing::ABSENT),
            (b"/sys/nonexistent", Missing::ABSENT),
            (b"/nonexistent/file", Missing::ABSENT),
            (b"/proc/self", Missing::Refused(Errno::ISDIR)),
        ];
        for (path, want) in cases {
            assert_eq!(
                Files::new(0).head(path),
                Err(want),
                "{}",
                path.escape_ascii()
            );
        }
    }

    #[test]
    fn a_path_too_long_is_said() {
        assert_eq!(Files::new(0).head(&[b'x'; 2000]), Err(Why::TooLong.into()));
    }

    #[test]
    fn a_head_is_the_beginning_and_all_is_all() {
        let want = std::fs::read("/proc/self/exe").unwrap();
        let mut files = Files::new(0);
        assert!(files.head(b"/proc/self/exe").unwrap() == &want[..HEAD_MAX]);
        let mut all = std::vec::Vec::new();
        files
            .all(b"/proc/self/exe", &mut |bytes| all.extend_from_slice(bytes))
            .unwrap();
        assert!(all == want);
        assert!(files.head(b"/proc/self/comm").unwrap().ends_with(b"\n"));
    }

    #[test]
    fn a_head_that_is_held_is_that_of_the_file() {
        let mut files = Files::new(0);
        let own = std::process::id().into();
        for kib in [own, 0, own] {
            files.kib = kib;
            let head = files.head(b"/proc/#/stat").map(<[u8]>::to_vec);
            match kib {
                0 => assert_eq!(head, Err(Missing::ABSENT)),
                _ => assert!(
                    head.unwrap()
                        .starts_with(std::format!("{own} (").as_bytes())
                ),
            }
        }
    }

    #[test]
    fn some_characters_of_a_path_are_replaced() {
        let mut files = Files::new(12);
        files.kib = 2048;
        let mut path = Text::new();
        files.expand(&mut path, b"/cpu%/size-#kB/@/x");
        let release = files.kernel.release();
        assert_eq!(
            path.read().unwrap(),
            std::format!("/cpu12/size-2048kB/{release}/x")
        );
    }
}
