//! A directory that vanishes with its owner. What is to appear whole or not at all is
//! written there and then renamed to its place on the same filesystem.
//!
//! Not the crate `tempfile`: it asks for rustix' feature `std`, and in a build of the whole
//! workspace Cargo would give that to the appliance, too.

use crate::host::HostError;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process;

/// The directory.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new directory in that for temporary files.
    ///
    /// # Errors
    /// [`HostError::File`].
    pub fn new() -> Result<Self, HostError> {
        Self::within(&std::env::temp_dir())
    }

    /// A new directory in `parent`.
    ///
    /// # Errors
    /// [`HostError::File`].
    pub fn within(parent: &Path) -> Result<Self, HostError> {
        let mut number = 0_u64;
        loop {
            let path = parent.join(format!("cowitness-{}-{number}", process::id()));
            match fs::create_dir(&path) {
                // Another thread's, or what a killed process of the same number has left.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                made => {
                    return made
                        .map(|()| Self(path))
                        .map_err(HostError::file("create a directory in", parent));
                }
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Gives the file `name` of it the path `to`, in place of what is there.
    ///
    /// # Errors
    /// [`HostError::File`].
    pub fn keep(&self, name: &str, to: &Path) -> Result<(), HostError> {
        fs::rename(self.0.join(name), to).map_err(HostError::file("write", to))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed does no harm but to take up room.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_vanishes_and_what_was_kept_stays() {
        let outer = Scratch::new().unwrap();
        let inner = Scratch::within(outer.path()).unwrap();
        let other = Scratch::within(outer.path()).unwrap();
        assert_ne!(inner.path(), other.path());
        fs::write(inner.path().join("a"), "1").unwrap();
        let (kept, gone) = (outer.path().join("kept"), inner.path().to_owned());
        inner.keep("a", &kept).unwrap();
        drop(inner);
        assert!(!gone.exists() && other.path().exists());
        assert_eq!(fs::read_to_string(kept).unwrap(), "1");
    }
}
