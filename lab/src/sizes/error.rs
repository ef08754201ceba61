//! Why the sizes cannot be told.

use crate::host::HostError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the sizes cannot be told.
#[derive(Debug, Error)]
pub enum SizesError {
    /// A line of the manifest that is none.
    #[error("manifest, line {line}: {problem}")]
    Manifest {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A manifest that cannot be read to its end.
    #[error("cannot read the manifest: {0}")]
    Unreadable(#[source] io::Error),
    /// A manifest without a line.
    #[error("the manifest names no object")]
    Empty,
    /// Objects that are not stripped alike.
    #[error("strip levels differ: {norm}, but {odd}")]
    Strip {
        /// How many objects are of the usual level, in words.
        norm: String,
        /// The others, in words.
        odd: String,
    },
    /// An ELF file whose tables cannot be read.
    #[error("{} is a damaged ELF file: {error}", path.display())]
    Elf {
        /// The object.
        path: PathBuf,
        /// What the parser says.
        #[source]
        error: object::Error,
    },
    /// Something that no store can hold, or that has no size.
    #[error("{} {problem}", path.display())]
    Object {
        /// The object.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A store gave back other bytes than the object had when it was first read.
    #[error("{} came back altered from {store}", path.display())]
    Altered {
        /// The object.
        path: PathBuf,
        /// Which store.
        store: String,
    },
    /// SQLite's reason.
    #[error("SQLite: {0}")]
    Database(#[from] rusqlite::Error),
    /// Files of this workstation.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The rows cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// A row is longer than any program of ours reads.
    #[error("a row or note is too long: shorten --label")]
    LongRow,
    /// A signal ended the run.
    #[error("ended by signal {0}; no row was written and nothing is left behind")]
    Stopped(u8),
}

impl SizesError {
    /// The exit status, as the interface fixes them.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Manifest { .. } | Self::Empty | Self::Strip { .. } | Self::Elf { .. } => 3,
            Self::Stopped(number) => 128_u8.saturating_add(*number),
            Self::LongRow => 2,
            _ => 1,
        }
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Host(error) => return error.remedy(),
            Self::Manifest { .. } => "a line is ROOT, a tab, and the path of one object of it",
            Self::Strip { .. } => {
                "strip all of them alike; scripts/closure-manifest makes stripped copies"
            }
            Self::Altered { .. } => "keep the objects as they are while they are measured",
            _ => return None,
        };
        Some(remedy.to_owned())
    }

    /// Makes the error of an object that cannot be used.
    pub(super) fn object(path: &Path, problem: &'static str) -> Self {
        Self::Object {
            path: path.to_owned(),
            problem,
        }
    }

    /// Makes the error of an ELF file.
    pub(super) fn elf(path: &Path) -> impl FnOnce(object::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Elf { path, error }
    }
}
