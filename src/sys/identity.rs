//! Which file it is, and whether it was touched.

use super::Errno;
use super::file::{each_entry, open, open_as, read_link};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, OFlags, Stat, stat, statat};

/// Which file a path leads to, and what tells that it was touched, as one number: of device,
/// inode, bytes, seconds and nanoseconds of the last change of the inode (st_ctime), which
/// nobody can put back as they can the time of the contents (inode(7)). stat(2).
///
/// # Errors
/// As stat(2).
pub fn identity(path: &CStr) -> Result<u64, Errno> {
    stat(path).map(|found| told(&found))
}

fn told(found: &Stat) -> u64 {
    /// 2^64 divided by the golden ratio: odd, with bits everywhere.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let words = [
        found.st_dev,
        found.st_ino,
        found.st_size.cast_unsigned(),
        found.st_ctime.cast_unsigned(),
        u64::from(found.st_ctime_nsec as u32),
    ];
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(SPREAD).rotate_left(23);
    words.into_iter().fold(0, mix)
}

/// What [`identity`] tells of all shared objects (`*.so*`) in the folder in which the file lies
/// that a path leads to, links followed, as one number. proc_pid_fd(5), fstatat(2).
///
/// # Errors
/// As open(2), readlink(2) and getdents64(2): `ENOENT` without /proc.
pub fn objects_beside(path: &CStr) -> Result<u64, Errno> {
    let file = open_as(path, OFlags::PATH | OFlags::CLOEXEC)?;
    let mut link = Text::new();
    link.add("/proc/self/fd/");
    link.signed(file.as_raw_fd().into()).add("\0");
    let link = link.read().map_err(|Full| Errno::NAMETOOLONG)?;
    let link = CStr::from_bytes_with_nul(link.as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut name = [0; 4096];
    let found = read_link(link, &mut name)?;
    let past = found
        .iter()
        .rposition(|&byte| byte == b'/')
        .map_or(0, |at| at + 1);
    // There is room: the link was shorter than the buffer.
    name[past] = 0;
    let folder = open(CStr::from_bytes_until_nul(&name).map_err(|_| Errno::INVAL)?)?;
    let mut sum = 0_u64;
    each_entry(&folder, &mut |name| {
        if name.to_bytes().windows(3).any(|part| part == b".so") {
            // What cannot be looked at tells that by itself; the order is the folder's.
            let found = statat(&folder, name, AtFlags::empty());
            sum = sum.wrapping_add(found.map_or(1, |found| told(&found)));
        }
    })?;
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    fn c(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    /// A link leads to the folder of what it names; other names do not count.
    #[test]
    fn an_object_beside_the_file_that_a_link_leads_to_counts() {
        let folder =
            std::env::temp_dir().join(std::format!("cowitness-beside-{}", std::process::id()));
        let place = folder.join("place");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("program"), "").unwrap();
        std::os::unix::fs::symlink(place.join("program"), folder.join("link")).unwrap();
        let beside = || objects_beside(&c(&folder.join("link"))).unwrap();
        let none = beside();
        std::fs::write(place.join("notes"), "").unwrap();
        let other = beside();
        std::fs::write(place.join("libone.so.1"), "").unwrap();
        let one = beside();
        std::fs::write(place.join("libone.so.1"), "x").unwrap();
        let written = beside();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((none, other), (0, 0));
        assert!(one != 0 && one != written);
        assert_eq!(identity(c"/nonexistent/file"), Err(Errno::NOENT));
    }
}
