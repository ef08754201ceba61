//! The programs that are run: found, opened, known to be ELF, and on disk.

use crate::error::Error;
use crate::fixture::builtin::Builtin;
use crate::fixture::copied::open_interpreter;
use crate::fixture::elf::{Elf, HEAD_BYTES};
use crate::fixture::subject::descriptor_path;
use crate::sys::file::{self, create_program, read_at};
use crate::sys::process::own_id;
use crate::sys::{Errno, exec};
use crate::text::{Full, Text};
use core::ffi::CStr;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, fstat, fsync, unlinkat};

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
            match file::open(terminated(&path)?) {
                Ok(file) => return Self::of(name, path, file),
                Err(errno) => last = errno,
            }
        }
        Err(Error::Subject(name, "find the program", last))
    }

    /// A new file of the built-in subject, written to disk and without a name by now.
    pub(super) fn builtin(
        builtin: &Builtin,
        folder: &'static str,
        page_bytes: usize,
    ) -> Result<Self, Error> {
        let fail = |errno| Error::Subject(folder, "write the built-in subject (--dir) to", errno);
        let mut name = Text::new();
        name.add(folder).add("/cowitness-subject-");
        name.number(own_id().cast_unsigned().into()).add("\0");
        let name = terminated(&name)?;
        let writer = create_program(name).map_err(fail)?;
        let written = builtin
            .write(writer.as_fd(), page_bytes)
            .and_then(|()| fsync(&writer));
        // For reading, and the writer closed: what is open for writing cannot be executed.
        let reader = file::open(name);
        let gone = unlinkat(CWD, name, AtFlags::empty());
        drop(writer);
        written.and(gone).map_err(fail)?;
        let file = reader.map_err(fail)?;
        let path = descriptor_path(&file);
        Self::of("the built-in subject", path, file)
    }

    fn of(name: &'static str, path: Text, file: OwnedFd) -> Result<Self, Error> {
        let fail = |errno| Error::Subject(name, "read the program", errno);
        let elf = elf(name, &file)?;
        let interpreter_bytes = match elf.interpreter.clone() {
            Some(place) => {
                let interpreter = open_interpreter(&file, place)
                    .map_err(|errno| Error::Subject(name, "open the interpreter of", errno))?;
                self::elf(name, &interpreter)?.file_bytes()
            }
            None => 0,
        };
        Ok(Self {
            path,
            file_bytes: fstat(&file).map_err(fail)?.st_size.cast_unsigned(),
            load_bytes: elf.file_bytes(),
            interpreter_bytes,
            file,
        })
    }

    /// What is executed.
    pub(super) fn path(&self) -> Result<&CStr, Error> {
        terminated(&self.path)
    }
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
