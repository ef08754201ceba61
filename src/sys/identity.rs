//! Which file it is, and whether it was touched.

use super::Errno;
use super::file::{each_entry, open, open_as, read_link};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::AsRawFd;
use rustix::fs::{AtFlags, OFlags, Stat, fstat, stat, statat};

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
    let words = [
        found.st_dev,
        found.st_ino,
        found.st_size.cast_unsigned(),
        found.st_ctime.cast_unsigned(),
        u64::from(found.st_ctime_nsec as u32),
    ];
    words.into_iter().fold(0, mix)
}

/// One number for several: that of those before, and the next. Another order gives another.
pub const fn mix(sum: u64, word: u64) -> u64 {
    /// 2^64 divided by the golden ratio: odd, with bits everywhere.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    (sum ^ word).wrapping_mul(SPREAD).rotate_left(23)
}

/// What [`identity`] tells of all shared objects (`*.so*`) in the folder in which the file lies
/// that a path leads to, with their names, of a link and of what it leads to, as one number; and if
/// there are any, of the folder: a name that comes, goes or is given to another file changes its
/// time, so that one that was put back is noticed, too. proc_pid_fd(5), fstatat(2).
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
    let (mut sum, mut any) = (0_u64, false);
    each_entry(&folder, &mut |name| {
        if name.to_bytes().windows(3).any(|part| part == b".so") {
            let mut mixed = name
                .to_bytes()
                .iter()
                .fold(0, |sum, &byte| mix(sum, byte.into()));
            for flags in [AtFlags::SYMLINK_NOFOLLOW, AtFlags::empty()] {
                // What cannot be looked at tells that by itself.
                let found = statat(&folder, name, flags);
                mixed = mix(mixed, found.map_or(1, |found| told(&found)));
            }
            // The order is the folder's.
            (sum, any) = (sum.wrapping_add(mixed), true);
        }
    })?;
    // Where there is none, others may make files as they like.
    let own = if any { told(&fstat(&folder)?) } else { 0 };
    Ok(sum.wrapping_add(own))
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

    /// A link leads to the folder of what it names. What is done to objects there is seen, also if
    /// it is undone; what is written to another file is not.
    #[test]
    fn what_is_done_to_objects_beside_the_file_that_a_link_leads_to_is_seen() {
        use std::fs::{create_dir_all, remove_dir_all, remove_file, rename, write};
        use std::os::unix::fs::symlink;
        let folder =
            std::env::temp_dir().join(std::format!("cowitness-beside-{}", std::process::id()));
        let (place, away) = (folder.join("place"), folder.join("away"));
        create_dir_all(&place).unwrap();
        create_dir_all(&away).unwrap();
        for file in ["program", "notes", "liba.so.1", "libb.so.1"] {
            write(place.join(file), "").unwrap();
        }
        for object in ["one", "two"] {
            write(away.join(object), "").unwrap();
        }
        let at = |name: &str| place.join(name);
        symlink(at("program"), folder.join("link")).unwrap();
        symlink(away.join("one"), at("libz.so")).unwrap();
        let beside = || objects_beside(&c(&folder.join("link"))).unwrap();
        let mut seen = std::vec![beside()];
        write(at("notes"), "x").unwrap();
        assert_eq!(seen, [beside()]);
        let turn = |to: &str| {
            remove_file(at("libz.so")).unwrap();
            symlink(away.join(to), at("libz.so")).unwrap();
        };
        let exchange = || {
            rename(at("liba.so.1"), at("other")).unwrap();
            rename(at("libb.so.1"), at("liba.so.1")).unwrap();
            rename(at("other"), at("libb.so.1")).unwrap();
        };
        let come_and_go = || {
            write(at("libnew.so"), "").unwrap();
            remove_file(at("libnew.so")).unwrap();
        };
        let doings: [&dyn Fn(); 5] = [
            &|| write(at("liba.so.1"), "x").unwrap(),
            &|| write(away.join("one"), "x").unwrap(),
            &|| (turn("two"), turn("one")).1,
            &exchange,
            &come_and_go,
        ];
        for done in doings {
            // File systems count time in ticks of up to 10 ms.
            std::thread::sleep(std::time::Duration::from_millis(20));
            done();
            seen.push(beside());
        }
        remove_dir_all(&folder).unwrap();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
        assert_eq!(identity(c"/nonexistent/file"), Err(Errno::NOENT));
    }
}
