//! The initramfs: the appliance as `/init`, a console, the directories it mounts on, and kernel
//! modules. A kernel unpacks archives that follow one another, each compressed or not
//! (Documentation/driver-api/early-userspace/buffer-format.rst): modules are one of their own.

use cpio::newc::{Builder, ModeFileType, trailer};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Directories, parents first.
const DIRECTORIES: [&str; 5] = ["dev", "proc", "sys", "tmp", "run"];

/// Where modules lie, for the appliance to load in the order of their names.
const MODULES: &str = "modules";

/// Writes an archive of modules, which comes before that of `init` and is not compressed: a file's
/// name and what it holds.
///
/// # Errors
/// The writer's; a module of 4 GiB or more.
pub fn write_modules<'m>(
    modules: impl Iterator<Item = (String, &'m [u8])>,
    mut out: impl Write,
) -> io::Result<()> {
    let directory = Builder::new(MODULES).ino(1).mode(0o755).nlink(2);
    let directory = directory.set_mode_file_type(ModeFileType::Directory);
    directory.write(&mut out, 0).finish()?;
    for (number, (name, bytes)) in (2..).zip(modules) {
        let path = format!("{MODULES}/{name}");
        let file = Builder::new(&path).ino(number).mode(0o644);
        let file = file.set_mode_file_type(ModeFileType::Regular);
        let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut file = file.write(&mut out, size);
        file.write_all(bytes)?;
        file.finish()?;
    }
    trailer(&mut out)?;
    out.flush()
}

/// Writes the archive that holds `init`.
///
/// # Errors
/// The writer's; `init` of 4 GiB or more.
pub fn write(init: &[u8], out: impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::fast());
    let mut number = 0;
    let mut entry = |name, kind, permissions| {
        number += 1;
        let entry = Builder::new(name).ino(number).mode(permissions);
        entry.set_mode_file_type(kind)
    };
    for name in DIRECTORIES {
        let directory = entry(name, ModeFileType::Directory, 0o755).nlink(2);
        directory.write(&mut out, 0).finish()?;
    }
    // PID 1 gets its three standard streams from here, or none.
    let console = entry("dev/console", ModeFileType::Char, 0o600);
    let console = console.rdev_major(5).rdev_minor(1);
    console.write(&mut out, 0).finish()?;
    let size = u32::try_from(init.len()).map_err(io::Error::other)?;
    let mut file = entry("init", ModeFileType::Regular, 0o755).write(&mut out, size);
    file.write_all(init)?;
    file.finish()?;
    trailer(&mut out)?;
    out.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;
    use flate2::read::GzDecoder;
    use std::io::Read;

    /// Name, mode, device and content.
    type Found = (String, u32, (u32, u32), String);

    /// What is in an archive, and what follows it.
    fn entries<R: Read>(mut input: R) -> (Vec<Found>, R) {
        let mut found = Vec::new();
        loop {
            let mut reader = Reader::new(input).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                return (found, reader.finish().unwrap());
            }
            let device = (entry.rdev_major(), entry.rdev_minor());
            let (name, mode) = (entry.name().to_owned(), entry.mode());
            let mut content = String::new();
            reader.read_to_string(&mut content).unwrap();
            found.push((name, mode, device, content));
            input = reader.finish().unwrap();
        }
    }

    #[test]
    fn modules_come_in_their_order_and_init_behind_them() {
        let mut archive = Vec::new();
        let modules = [
            ("00-b.ko".to_owned(), &b"B"[..]),
            ("01-a.ko".to_owned(), b"A"),
        ];
        write_modules(modules.into_iter(), &mut archive).unwrap();
        // A kernel looks for what follows at multiples of 4 (init/initramfs.c, unpack_to_rootfs).
        assert_eq!(archive.len() % 4, 0);
        write(b"the appliance", &mut archive).unwrap();
        let (found, rest) = entries(&archive[..]);
        let file = |name: &str, content: &str| {
            let device = (0, 0);
            (name.to_owned(), 0o100_644, device, content.to_owned())
        };
        let directory = ("modules".to_owned(), 0o040_755, (0, 0), String::new());
        let wanted = [
            directory,
            file("modules/00-b.ko", "B"),
            file("modules/01-a.ko", "A"),
        ];
        assert_eq!(found, wanted);
        let (found, _) = entries(GzDecoder::new(rest));
        assert_eq!(found.last().unwrap().0, "init");
    }

    #[test]
    fn the_archive_holds_init_and_a_console() {
        let mut archive = Vec::new();
        write(b"the appliance", &mut archive).unwrap();
        let (mut found, _) = entries(GzDecoder::new(&archive[..]));
        let last = found.pop().unwrap();
        assert_eq!(
            last,
            ("init".into(), 0o100_755, (0, 0), "the appliance".into())
        );
        let console = found.pop().unwrap();
        assert_eq!(
            console,
            ("dev/console".into(), 0o020_600, (5, 1), String::new())
        );
        assert!(
            found.iter().all(|(_, mode, ..)| *mode == 0o040_755) && found.len() == 5,
            "{found:?}"
        );
    }
}
