//! Lines of /proc/PID/mountinfo.
//!
//! Source: proc_pid_mountinfo(5); `show_mountinfo` in fs/proc_namespace.c. Blanks in paths are
//! escaped, so words are separated by single blanks.

use super::number::{decimal, split_once};

/// The device and the type of the file system of a line; `None` if it has another form.
#[must_use]
pub fn file_system(line: &[u8]) -> Option<((u32, u32), &[u8])> {
    let mut words = line.split(|&byte| byte == b' ');
    // Behind the id and the parent's; printed in decimal, unlike in maps.
    let device = words.nth(2)?;
    words.find(|word| *word == b"-")?;
    let (major, minor) = split_once(device, b':')?;
    let number = |text| u32::try_from(decimal(text)?).ok();
    Some(((number(major)?, number(minor)?), words.next()?))
}

/// Types whose files come from another process or another machine: to open one waits for it.
const SERVED: [&[u8]; 13] = [
    b"fuse",
    b"fuseblk",
    b"virtiofs",
    b"nfs",
    b"nfs4",
    b"cifs",
    b"smb3",
    b"9p",
    b"ceph",
    b"afs",
    b"lustre",
    b"orangefs",
    b"ocfs2",
];

/// Whether files of that type of file system may have to be waited for without bound.
#[must_use]
pub fn is_served(file_system: &[u8]) -> bool {
    SERVED.contains(&file_system) || file_system.starts_with(b"fuse.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_and_type_stand_where_the_manual_says() {
        let line =
            b"36 35 98:10 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        assert_eq!(file_system(line), Some(((98, 10), &b"ext3"[..])));
        let bare = b"36 35 0:43 / /a\\040b rw - fuse.sshfs host: rw";
        assert_eq!(file_system(bare), Some(((0, 43), &b"fuse.sshfs"[..])));
        for bad in [
            &b""[..],
            b"36 35 98:0 / / rw",
            b"36 35 98 / / rw - ext4 x rw",
        ] {
            assert_eq!(file_system(bad), None);
        }
    }

    #[test]
    fn who_serves_files_is_known_by_the_type() {
        assert!(
            [&b"fuse"[..], b"fuse.sshfs", b"nfs4", b"9p"]
                .into_iter()
                .all(is_served)
        );
        assert!(
            ![&b"ext4"[..], b"tmpfs", b"fusectl", b"overlay"]
                .into_iter()
                .any(is_served)
        );
    }
}
