//! Kernel images: out of a package, and whether one is whole.

use super::table::Arch;
use crate::digest::{Hashed, hexadecimal};
use crate::host::HostError;
use object::LittleEndian as LE;
use object::pe::{IMAGE_FILE_MACHINE_AMD64, IMAGE_FILE_MACHINE_ARM64};
use object::read::pe::PeFile64;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};

/// An image that came out of a package.
pub(super) struct Extracted {
    /// As `uname -r` says it.
    pub(super) release: String,
    pub(super) sha256: String,
}

/// Takes the image, and nothing else, out of a package and writes it to `image`.
pub(super) fn extract(package: &Path, image: &Path) -> Result<Extracted, HostError> {
    let extracted = unpack(package, |tar| copy_image(tar, image))?;
    extracted.ok_or_else(|| HostError::Package {
        package: package.display().to_string(),
        wanted: "kernel image",
    })
}

/// Gives the files of a package to `take`, as a tar archive, and back what it makes of them.
pub(super) fn unpack<T>(
    package: &Path,
    take: impl FnOnce(ChildStdout) -> io::Result<Option<T>>,
) -> Result<Option<T>, HostError> {
    let mut child = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| HostError::Start {
            program: "dpkg-deb".to_owned(),
            error,
        })?;
    let tar = child.stdout.take();
    let taken = tar.map_or(Ok(None), take);
    // The rest of the package is of no interest; dpkg-deb ends by SIGPIPE or by itself.
    let _ = child.kill();
    let _ = child.wait();
    taken.map_err(HostError::file("unpack", package))
}

fn copy_image(tar: impl Read, image: &Path) -> io::Result<Option<Extracted>> {
    for entry in tar::Archive::new(tar).entries()? {
        let mut entry = entry?;
        let Some(release) = release(&entry.path()?) else {
            continue;
        };
        let mut file = File::create(image)?;
        let sha256 = copy_hashed(&mut entry, &mut file)?;
        file.sync_all()?;
        return Ok(Some(Extracted { release, sha256 }));
    }
    Ok(None)
}

/// The release whose image has this path in a package.
fn release(path: &Path) -> Option<String> {
    let path = path.to_str()?.trim_start_matches("./");
    let modules = || {
        path.strip_prefix("usr/lib/modules/")?
            .strip_suffix("/vmlinuz")
    };
    let release = path.strip_prefix("boot/vmlinuz-").or_else(modules)?;
    Some(release.to_owned()).filter(|release| !release.contains('/'))
}

fn copy_hashed(from: &mut impl Read, to: &mut impl Write) -> io::Result<String> {
    let mut from = Hashed::new(from);
    io::copy(&mut from, to)?;
    Ok(hexadecimal(&from.hash.hash()))
}

/// SHA-256 of a file, in hexadecimal.
pub(super) fn sha256(path: &Path) -> Result<String, HostError> {
    let file = File::open(path);
    let hash = file.and_then(|mut file| copy_hashed(&mut file, &mut io::sink()));
    hash.map_err(HostError::file("read", path))
}

/// Refuses an image that is not for `arch`, or has been cut: booted, it might only hang.
/// Debian's images are also programs for UEFI, whose header says how many bytes the sections
/// take; an image without such a header is let through.
///
/// # Errors
/// [`HostError::OtherCpu`], [`HostError::Truncated`], [`HostError::File`].
pub fn check(path: &Path, arch: Arch) -> Result<(), HostError> {
    let image = fs::read(path).map_err(HostError::file("read", path))?;
    if let Some(other) = arch_of(&image).filter(|found| *found != arch) {
        return Err(HostError::OtherCpu {
            path: path.to_owned(),
            found: other.name(),
            wanted: arch.name(),
        });
    }
    let found = image.len() as u64;
    match bytes_of_sections(&image) {
        Some(wanted) if wanted > found => Err(HostError::Truncated {
            path: path.to_owned(),
            wanted,
            found,
        }),
        _ => Ok(()),
    }
}

/// The CPU that an image is for: by the header that UEFI reads, else by the magic of
/// Documentation/arch/x86/boot.rst or Documentation/arch/arm64/booting.rst.
fn arch_of(image: &[u8]) -> Option<Arch> {
    if let Ok(file) = PeFile64::parse(image) {
        return match file.nt_headers().file_header.machine.get(LE) {
            IMAGE_FILE_MACHINE_AMD64 => Some(Arch::X86),
            IMAGE_FILE_MACHINE_ARM64 => Some(Arch::Arm),
            _ => None,
        };
    }
    let magics = [(0x202, b"HdrS", Arch::X86), (0x38, b"ARM\x64", Arch::Arm)];
    let found = |at: usize, magic| image.get(at..at + 4) == Some(magic);
    let mut magics = magics.into_iter();
    magics.find_map(|(at, magic, arch)| found(at, &magic[..]).then_some(arch))
}

/// Bytes up to the end of the last section's data.
fn bytes_of_sections(image: &[u8]) -> Option<u64> {
    let file = PeFile64::parse(image).ok()?;
    let sections = file.section_table();
    let ends = sections.iter().map(|section| {
        let start = u64::from(section.pointer_to_raw_data.get(LE));
        start + u64::from(section.size_of_raw_data.get(LE))
    });
    ends.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn images_are_found_where_debian_puts_them() {
        let releases = [
            (
                "./boot/vmlinuz-6.12.117+deb13-cloud-amd64",
                Some("6.12.117+deb13-cloud-amd64"),
            ),
            (
                "./usr/lib/modules/7.2.12+deb14-arm64-16k/vmlinuz",
                Some("7.2.12+deb14-arm64-16k"),
            ),
            ("./boot/System.map-6.12.117+deb13-cloud-amd64", None),
            ("./usr/lib/modules/7.2.12/kernel/vmlinuz", None),
            ("./usr/share/doc/vmlinuz", None),
        ];
        for (path, wanted) in releases {
            assert_eq!(release(Path::new(path)).as_deref(), wanted, "{path}");
        }
    }

    #[test]
    fn a_copy_is_hashed() {
        let mut copy = Vec::new();
        // The first example of FIPS 180-2.
        let hash = copy_hashed(&mut &b"abc"[..], &mut copy).unwrap();
        assert_eq!(
            hash,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(copy, b"abc");
    }

    #[test]
    fn what_is_no_uefi_program_is_let_through() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("image");
        fs::write(&path, "not a kernel").unwrap();
        assert!(check(&path, Arch::X86).is_ok());
    }

    #[test]
    fn an_image_for_the_other_cpu_is_refused() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("image");
        let mut image = vec![0; 4096];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        fs::write(&path, image).unwrap();
        assert!(check(&path, Arch::Arm).is_ok());
        let refused = check(&path, Arch::X86).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.ends_with("image is for aarch64, not for x86_64"),
            "{said}"
        );
        assert!(refused.is_bad_image());
    }
}
