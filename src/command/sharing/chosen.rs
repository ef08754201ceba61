//! The programs that are run: found, opened, known to be ELF, and on disk.

use crate::cli::sharing::FOLDER;
use crate::error::Error;
use crate::fixture::builtin::Builtin;
use crate::fixture::copied::open_interpreter;
use crate::fixture::elf::{Elf, HEAD_BYTES};
use crate::fixture::subject::descriptor_path;
use crate::sys::file::{self, create_program, read_at};
use crate::sys::process::own_id;
use crate::sys::{Errno, exec, signal};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, fsync, unlinkat};

/// Where a program without a slash in its name is looked for.
const FOLDERS: [&str; 3] = ["/usr/local/bin/", "/usr/bin/", "/bin/"];

/// What every subject gets for an environment, so that no run depends on ours.
pub(super) fn environment() -> exec::Words<'static> {
    let mut words = exec::Words::new();
    words.extend([c"PATH=/usr/local/bin:/usr/bin:/bin", c"LC_ALL=C"]);
    words
}

/// A program.
pub(super) struct Chosen {
    /// With the NUL at its end.
    path: Text,
    /// Open for reading.
    pub(super) file: OwnedFd,
    /// Size of the file.
    pub(super) file_bytes: u64,
    /// What its load segments take of that.
    pub(super) load_bytes: u64,
    /// What its writable load segments take of it, and its interpreter's: it may write to all.
    pub(super) written_bytes: u64,
    /// What its interpreter's take of the interpreter's; 0 if it has none.
    pub(super) interpreter_bytes: u64,
}

impl Chosen {
    /// The program of this name.
    pub(super) fn named(name: &'static str) -> Result<Self, Error> {
        let tries = if name.contains('/') {
            &[""][..]
        } else {
            &FOLDERS[..]
        };
        let mut last = Errno::NOENT;
        for folder in tries {
            let mut path = Text::new();
            path.add(folder).add(name).add("\0");
            match file::open_any(terminated(&path)?) {
                Ok(file) => return Self::of(name, path, file),
                Err(errno) => last = errno,
            }
        }
        Err(Error::Subject(name, "find the program", last))
    }

    /// A new file of the built-in subject, written to disk. It has lost its name before
    /// anything is in it, so whatever ends this process leaves nothing behind.
    pub(super) fn builtin(
        builtin: &Builtin,
        folder: &'static str,
        page_bytes: usize,
    ) -> Result<Self, Error> {
        let fail = |errno| Error::Subject(folder, "write the built-in subject (--dir) to", errno);
        let (writer, reader) = match nameless(folder) {
            // An initramfs may have no other.
            Err(Error::Subject(.., Errno::NOENT)) if folder == FOLDER => nameless("/tmp")?,
            made => made?,
        };
        builtin
            .write(writer.as_fd(), page_bytes)
            .and_then(|()| fsync(&writer))
            .map_err(fail)?;
        // What is open for writing cannot be executed.
        drop(writer);
        Self::of("the built-in subject", descriptor_path(&reader), reader)
    }

    fn of(name: &'static str, path: Text, file: OwnedFd) -> Result<Self, Error> {
        let fail = |errno| Error::Subject(name, "read the program", errno);
        let not_regular = Error::Unsuited(name, "it is not a regular file");
        let bytes = file::regular_bytes(file.as_fd()).map_err(fail)?;
        let file_bytes = bytes.ok_or(not_regular)?;
        let elf = elf(name, &file)?;
        let mut written_bytes = written_bytes(&elf);
        let interpreter_bytes = match elf.interpreter.clone() {
            Some(place) => {
                let interpreter = open_interpreter(&file, place)
                    .map_err(|errno| Error::Subject(name, "open the interpreter of", errno))?;
                let interpreter = self::elf(name, &interpreter)?;
                written_bytes += self::written_bytes(&interpreter);
                interpreter.file_bytes()
            }
            None => 0,
        };
        Ok(Self {
            path,
            file_bytes,
            load_bytes: elf.file_bytes(),
            written_bytes,
            interpreter_bytes,
            file,
        })
    }

    /// What is executed.
    pub(super) fn path(&self) -> Result<&CStr, Error> {
        terminated(&self.path)
    }
}

/// A new file in `folder` that has no name any more, open for writing and for reading. (With
/// O_TMPFILE it would never have one, but not every file system has that.)
fn nameless(folder: &'static str) -> Result<(OwnedFd, OwnedFd), Error> {
    let fail = |errno| Error::Subject(folder, "write the built-in subject (--dir) to", errno);
    let mut name = Text::new();
    name.add(folder).add("/cowitness-subject-");
    name.number(own_id().cast_unsigned().into()).add("\0");
    let name = terminated(&name)?;
    // A signal that ends this process comes before there is a name, or after.
    let held = signal::hold().map_err(fail)?;
    let writer = create_program(name).map_err(fail)?;
    let reader = file::open(name);
    let gone = unlinkat(CWD, name, AtFlags::empty());
    drop(held);
    gone.map_err(fail)?;
    Ok((writer, reader.map_err(fail)?))
}

fn written_bytes(elf: &Elf) -> u64 {
    let writable = elf.loads.iter().filter(|load| load.access.writable);
    writable.map(|load| load.file_bytes).sum()
}

fn elf(name: &'static str, file: &OwnedFd) -> Result<Elf, Error> {
    let mut head = [0; HEAD_BYTES];
    let len = read_at(file.as_fd(), &mut head, 0)
        .map_err(|errno| Error::Subject(name, "read the program", errno))?;
    Elf::parse(&head[..len]).map_err(|error| Error::Unsuited(name, error.words()))
}

fn terminated(text: &Text) -> Result<&CStr, Error> {
    let bytes = text.read().map_err(|Full| Error::TooLong)?.as_bytes();
    CStr::from_bytes_with_nul(bytes).map_err(|_| Error::TooLong)
}
