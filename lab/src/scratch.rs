//! A directory that vanishes with its owner. What is to appear whole or not at all is
//! written there and then renamed to its place on the same filesystem.
//!
//! Not the crate `tempfile`: it asks for rustix' feature `std`, and in a build of the whole
//! workspace Cargo would give that to the appliance, too.

use crate::host::HostError;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process;

/// What a directory's name begins with; the number of its process follows, and one of its own.
const PREFIX: &str = "cowitness-";

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

    /// A new directory in `parent`, for its owner alone: what is copied into it may not be for all.
    ///
    /// # Errors
    /// [`HostError::File`].
    pub fn within(parent: &Path) -> Result<Self, HostError> {
        let mut number = 0_u64;
        loop {
            let path = parent.join(format!("{PREFIX}{}-{number}", process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
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

    /// Directories beside it, of the same owner, whose process is gone: what a run has left
    /// that was killed.
    #[must_use]
    pub fn left(&self) -> Vec<PathBuf> {
        let owner = |path: &Path| fs::symlink_metadata(path).map(|about| about.uid()).ok();
        let mine = owner(&self.0);
        let is_left = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let numbers = name.and_then(|name| name.strip_prefix(PREFIX)?.split_once('-'));
            let is_number = |text: &str| text.parse::<u32>().is_ok();
            // Without /proc nothing is known of any process.
            numbers.is_some_and(|(process, number)| {
                is_number(process)
                    && is_number(number)
                    && Path::new("/proc/self").exists()
                    && !Path::new("/proc").join(process).exists()
            }) && owner(path) == mine
        };
        let parent = self.0.parent().unwrap_or(&self.0);
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let mut left: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_left).collect();
        left.sort();
        left
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
    fn it_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let scratch = Scratch::new().unwrap();
        let mode = fs::metadata(scratch.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_a_killed_run_has_left_is_found() {
        let outer = Scratch::new().unwrap();
        let mine = Scratch::within(outer.path()).unwrap();
        // No process has this number: it is beyond the kernel's limit (proc(5), pid_max).
        let left = outer.path().join("cowitness-4194305-0");
        for path in [
            &left,
            &outer.path().join("cowitness-4194305"),
            &outer.path().join("cowitness-x-0"),
            &outer.path().join("other-4194305-0"),
        ] {
            fs::create_dir(path).unwrap();
        }
        assert!(mine.path().exists());
        assert_eq!(mine.left(), [left]);
    }

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
