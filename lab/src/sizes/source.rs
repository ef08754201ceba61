//! An object that is read: a signal ends the reading of a large one, too.

use super::error::SizesError;
use crate::host::{HostError, Interrupt};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// What is read or written until a signal comes, then no more.
pub(super) struct Heeding<'i, T> {
    inner: T,
    interrupt: &'i Interrupt,
}

impl<'i, T> Heeding<'i, T> {
    /// Reads or writes `inner`.
    pub(super) const fn new(inner: T, interrupt: &'i Interrupt) -> Self {
        Self { inner, interrupt }
    }

    /// The error is replaced by the signal's where it is told ([`super::run`]). It must not be
    /// of the kind `Interrupted`, after which copying goes on.
    fn go_on(&self) -> io::Result<()> {
        match self.interrupt.signal() {
            None => Ok(()),
            Some(_) => Err(io::Error::other("a signal came")),
        }
    }
}

/// An object's file.
pub(super) type Source<'i> = Heeding<'i, File>;

/// Opens an object. What is no regular file is refused before it is opened: a FIFO would
/// not answer.
pub(super) fn open<'i>(path: &Path, interrupt: &'i Interrupt) -> Result<Source<'i>, SizesError> {
    let about = path.metadata().map_err(HostError::file("open", path))?;
    if !about.is_file() {
        return Err(SizesError::object(path, "is not a regular file"));
    }
    let file = File::open(path).map_err(HostError::file("open", path))?;
    Ok(Heeding::new(file, interrupt))
}

impl Source<'_> {
    /// The open file, to be asked about.
    pub(super) const fn file(&self) -> &File {
        &self.inner
    }
}

impl Read for &Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.go_on()?;
        (&self.inner).read(buffer)
    }
}

impl Seek for &Source<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&self.inner).seek(to)
    }
}

impl<W: Write> Write for Heeding<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.go_on()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;

    #[test]
    fn a_signal_ends_copying() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().join("object");
        fs::write(&path, "some bytes").unwrap();
        let copied = |interrupt: &Interrupt| {
            let source = open(&path, interrupt).unwrap();
            io::copy(&mut &source, &mut io::sink()).ok()
        };
        assert_eq!(copied(&Interrupt::default()), Some(10));
        let interrupted = Interrupt::after(2);
        assert_eq!(copied(&interrupted), None);
        let mut out = Heeding::new(Vec::new(), &interrupted);
        assert!(io::copy(&mut &b"some bytes"[..], &mut out).is_err());
        assert!(out.inner.is_empty());
    }
}
