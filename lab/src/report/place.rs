//! Where the page goes: never over what it is made of, and whole or not at all.

use crate::cli::ReportOptions;
use crate::failure::Failure;
use crate::host::{HostError, Interrupt};
use crate::scratch::Scratch;
use crate::text::printable;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The page's name until it is whole.
const UNFINISHED: &str = "page.html";

/// Where it goes.
pub enum Place {
    /// Standard output.
    Output,
    /// A file, or one that is to be made.
    File(PathBuf),
    /// What is no file: a pipe, a terminal.
    Device(PathBuf),
}

impl Place {
    /// That of the options.
    ///
    /// # Errors
    /// [`Failure::OverInput`]: it is one of the inputs; [`Failure::Page`]: a link to nothing.
    pub fn of(options: &ReportOptions) -> Result<Self, Failure> {
        if options.out == "-" {
            return Ok(Self::Output);
        }
        let out = PathBuf::from(&options.out);
        // Nothing is there yet: nothing is lost.
        let Ok(there) = fs::metadata(&out) else {
            if out.is_symlink() {
                let name = printable(options.out.as_encoded_bytes());
                return Err(Failure::Page(format!("{name} is a link to nothing")));
            }
            return Ok(Self::File(out));
        };
        if !there.is_file() {
            return Ok(Self::Device(out));
        }
        if options.files.iter().any(|file| is_same(file, &there)) {
            return Err(Failure::OverInput(printable(
                options.out.as_encoded_bytes(),
            )));
        }
        // Behind a link lies what is to be replaced.
        Ok(Self::File(fs::canonicalize(&out).unwrap_or(out)))
    }

    /// Writes the page; what standard output is to get of it comes back. A signal leaves
    /// nothing beside the page.
    ///
    /// # Errors
    /// [`Failure::Host`], [`Failure::Signals`], [`Failure::Ended`].
    pub fn put(&self, html: String) -> Result<String, Failure> {
        match self {
            Self::Output => return Ok(html),
            Self::Device(out) => fs::write(out, html).map_err(HostError::file("write", out))?,
            Self::File(out) => whole(out, &html)?,
        }
        Ok(String::new())
    }
}

/// Whether an input is the same file, by whatever path.
fn is_same(file: &OsStr, there: &Metadata) -> bool {
    let same = |file: &Metadata| (file.dev(), file.ino()) == (there.dev(), there.ino());
    let path = if file == "-" {
        OsStr::new("/dev/stdin")
    } else {
        file
    };
    fs::metadata(path).is_ok_and(|file| same(&file))
}

fn whole(out: &Path, html: &str) -> Result<(), Failure> {
    let interrupt = Interrupt::watch().map_err(Failure::Signals)?;
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let scratch = Scratch::within(folder)?;
    let page = scratch.path().join(UNFINISHED);
    fs::write(&page, html).map_err(HostError::file("write", out))?;
    if let Ok(there) = fs::metadata(out) {
        let kept = fs::set_permissions(&page, there.permissions());
        kept.map_err(HostError::file("write", out))?;
    }
    if let Some(signal) = interrupt.signal() {
        return Err(Failure::Ended(signal));
    }
    scratch.keep(UNFINISHED, out)?;
    drop(scratch);
    interrupt.let_through();
    Ok(())
}
