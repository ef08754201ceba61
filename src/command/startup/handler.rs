//! Which of the kernel's handlers takes a file, from evidence.
//!
//! binfmt_misc is asked before those of ELF and of scripts (`insert_binfmt` puts it first,
//! fs/exec.c), so an entry of it may take any file. What is not known is `unknown`: its
//! entries, where it is not mounted here (they are the kernel's, whoever has it mounted),
//! and the file, where it may not be read. Of a script the file itself is looked at, not the
//! interpreter that it names.

use super::registered::{FOLDER, each_entry};
use crate::proc::number::{decimal, hex, split_once};
use crate::sys::Errno;
use crate::sys::file::{open_any, read_at, read_whole, regular_bytes};
use crate::text::Text;
use core::ffi::CStr;
use rustix::fd::AsFd;

/// What the kernel's handlers look at (BINPRM_BUF_SIZE, include/uapi/linux/binfmts.h).
const HEAD_BYTES: usize = 256;
/// An entry: a registration of at most 1920 bytes (MAX_REGISTER_LENGTH, fs/binfmt_misc.c),
/// of which magic and mask are shown as two digits for each byte.
const ENTRY_BYTES: usize = 4096;

/// What [`of`] says if nothing is proved.
pub(super) const UNKNOWN: &str = "unknown";

/// What binfmt_misc does with a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Yes,
    No,
    Unknown,
}

/// `direct`: no entry of binfmt_misc takes it. `registered`: one does, or nothing else can.
/// `unknown`: neither is proved.
///
/// Sources: elf(5); e_machine from include/uapi/linux/elf-em.h; fs/binfmt_script.c,
/// fs/binfmt_misc.c.
///
/// # Errors
/// What the exec would say to no file: `ENOENT`, and `EACCES` to what is no regular file.
pub(super) fn of(path: &CStr) -> Result<&'static str, Errno> {
    let mut buffer = [0; HEAD_BYTES];
    let head = head(path, &mut buffer)?;
    // Once such a file has run, that was binfmt_misc; one that cannot run has no row.
    if head.is_some_and(|head| !is_ours(head)) {
        return Ok("registered");
    }
    Ok(match taken(path.to_bytes(), head) {
        Taken::Yes => "registered",
        Taken::No => "direct",
        Taken::Unknown => UNKNOWN,
    })
}

/// The start of the file, with zeros behind its end; `None` if it may not be read.
fn head<'b>(path: &CStr, buffer: &'b mut [u8; HEAD_BYTES]) -> Result<Option<&'b [u8]>, Errno> {
    match open_any(path) {
        Ok(file) => {
            regular_bytes(file.as_fd())?.ok_or(Errno::ACCESS)?;
            read_at(file.as_fd(), buffer, 0)?;
            Ok(Some(buffer))
        }
        // What may be run and not be read: the exec tells.
        Err(Errno::ACCESS) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// A program of this CPU (or of its 32-bit sibling) or a script.
fn is_ours(head: &[u8]) -> bool {
    const MACHINES: [u8; 2] = if cfg!(target_arch = "x86_64") {
        [62, 3]
    } else {
        [183, 40]
    };
    let is_elf = head.starts_with(b"\x7fELF") && MACHINES.contains(&head[18]) && head[19] == 0;
    is_elf || head.starts_with(b"#!")
}

fn taken(path: &[u8], head: Option<&[u8]>) -> Taken {
    let mut buffer = [0; 64];
    match read_whole(c"/proc/sys/fs/binfmt_misc/status", &mut buffer) {
        Ok(b"disabled\n") => return Taken::No,
        Ok(b"enabled\n") => {}
        _ if is_absent() => return Taken::No,
        _ => return Taken::Unknown,
    }
    let mut found = Taken::No;
    let listed = each_entry(&mut |name| {
        found = match (found, entry(name, path, head)) {
            (Taken::Yes, _) | (_, Taken::Yes) => Taken::Yes,
            (Taken::Unknown, _) | (_, Taken::Unknown) => Taken::Unknown,
            _ => Taken::No,
        };
    });
    match (listed, found) {
        (_, Taken::Yes) => Taken::Yes,
        (Err(_), _) => Taken::Unknown,
        (Ok(()), found) => found,
    }
}

/// Whether this kernel has no binfmt_misc, nor its module loaded.
fn is_absent() -> bool {
    let mut buffer = [0; 4096];
    let known = read_whole(c"/proc/filesystems", &mut buffer);
    known.is_ok_and(|known| {
        let mut lines = known.split(|&byte| byte == b'\n');
        known.ends_with(b"\n") && !lines.any(|line| line.ends_with(b"\tbinfmt_misc"))
    })
}

/// Whether the entry of this name takes the file.
fn entry(name: &[u8], path: &[u8], head: Option<&[u8]>) -> Taken {
    let mut full = Text::new();
    full.add(FOLDER.to_str().unwrap_or("")).add("/");
    let Ok(name) = core::str::from_utf8(name) else {
        return Taken::Unknown;
    };
    full.add(name).add("\0");
    let full = full.read().map(str::as_bytes);
    let mut buffer = [0; ENTRY_BYTES];
    let text = full
        .map_err(|_| Errno::NAMETOOLONG)
        .and_then(|full| CStr::from_bytes_with_nul(full).map_err(|_| Errno::INVAL))
        .and_then(|full| read_whole(full, &mut buffer));
    text.map_or(Taken::Unknown, |text| takes(text, path, head))
}

/// What an entry's text says (`entry_status`, fs/binfmt_misc.c) of a file; matched as
/// `search_binfmt_handler` there does: an extension is what follows the path's last dot, a
/// magic stands at its offset in all bits of the mask.
fn takes(text: &[u8], path: &[u8], head: Option<&[u8]>) -> Taken {
    let mut lines = text.split(|&byte| byte == b'\n');
    match lines.next() {
        Some(b"disabled") => return Taken::No,
        Some(b"enabled") => {}
        _ => return Taken::Unknown,
    }
    let (mut offset, mut magic, mut mask) = (None, None, None);
    for line in lines {
        match split_once(line, b' ') {
            Some((b"extension", dotted)) => {
                let last = path.iter().rposition(|&byte| byte == b'.');
                let is_it = last.is_some_and(|at| path[at..] == *dotted);
                return if is_it { Taken::Yes } else { Taken::No };
            }
            Some((b"offset", number)) => offset = decimal(number),
            Some((b"magic", digits)) => magic = Some(digits),
            Some((b"mask", digits)) => mask = Some(digits),
            _ => {}
        }
    }
    let (Some(offset), Some(magic), Some(head)) = (offset, magic, head) else {
        return Taken::Unknown;
    };
    matches(head, offset as usize, magic, mask).map_or(Taken::Unknown, |is_it| {
        if is_it { Taken::Yes } else { Taken::No }
    })
}

/// `None` if that makes no sense.
fn matches(head: &[u8], offset: usize, magic: &[u8], mask: Option<&[u8]>) -> Option<bool> {
    let part = head.get(offset..offset.checked_add(magic.len() / 2)?)?;
    let byte = |digits: &[u8], index: usize| hex(digits.get(2 * index..2 * index + 2)?);
    let mut is_it = !part.is_empty();
    for (index, &here) in part.iter().enumerate() {
        let bits = mask.map_or(Some(0xff), |mask| byte(mask, index))?;
        is_it &= (u64::from(here) ^ byte(magic, index)?) & bits == 0;
    }
    Some(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0";

    /// As Linux 6.18 shows entries.
    fn asked(entry: &str, path: &str) -> Taken {
        let mut head = [0; HEAD_BYTES];
        head[..ELF.len()].copy_from_slice(ELF);
        takes(entry.as_bytes(), path.as_bytes(), Some(&head))
    }

    #[test]
    fn an_entry_may_take_what_is_elf() {
        let magic = "enabled\ninterpreter /x\nflags: \noffset 0\nmagic 7f454c46\n";
        assert!(asked(magic, "/bin/a") == Taken::Yes);
        let other = "enabled\ninterpreter /x\nflags: F\noffset 0\nmagic 7f454c47\n";
        assert!(asked(other, "/bin/a") == Taken::No);
        let masked = "enabled\ninterpreter /x\nflags: \noffset 1\nmagic 454c47\nmask ffff00\n";
        assert!(asked(masked, "/bin/a") == Taken::Yes);
        let off = magic.replace("enabled", "disabled");
        assert!(asked(&off, "/bin/a") == Taken::No);
    }

    #[test]
    fn an_extension_is_that_of_the_whole_path() {
        let entry = "enabled\ninterpreter /x\nflags: \nextension .abc\n";
        assert!(asked(entry, "/a/b.abc") == Taken::Yes);
        assert!(asked(entry, "/a.abc/b.c") == Taken::No);
        assert!(asked(entry, "/a/babc") == Taken::No);
        assert!(takes(entry.as_bytes(), b"/a/b.abc", None) == Taken::Yes);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let magic = "enabled\ninterpreter /x\nflags: \noffset 0\nmagic 7f454c46\n";
        assert!(takes(magic.as_bytes(), b"/a", None) == Taken::Unknown);
        assert!(asked("enabled\ninterpreter /x\n", "/a") == Taken::Unknown);
        assert!(asked("", "/a") == Taken::Unknown);
        assert!(asked("enabled\noffset 255\nmagic 7f45\n", "/a") == Taken::Unknown);
        assert!(asked("enabled\noffset 0\nmagic 7f4x\n", "/a") == Taken::Unknown);
    }
}
