//! Why the sizes cannot be told.

use crate::host::HostError;
use cowitness::emit::record::Status;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What to do about an object.
const MEND: &str = "give the object as a whole regular file that can be read, or leave it out";

/// What to do if a store cannot be written.
const ROOM: &str = "the stores need room: --scratch names another place for them; ulimit -f may \
    limit their size";

/// What to do if there may be no more files.
const FILES: &str = "some twenty files have to be open at once: ulimit -n; and what --scratch names has to be a \
    directory that can be written";

const CANNOT_OPEN: rusqlite::ErrorCode = rusqlite::ErrorCode::CannotOpen;

/// What a packed manifest that is cut or damaged fails with.
const DAMAGE: [io::ErrorKind; 3] = [
    io::ErrorKind::UnexpectedEof,
    io::ErrorKind::InvalidInput,
    io::ErrorKind::InvalidData,
];

/// What is done to stores, as errors name it.
const WRITING: [&str; 2] = ["write", "store"];

/// What is done to objects, as errors name it.
const READING: [&str; 2] = ["open", "read"];

/// What opening and reading a file may fail with, by name; see errno(3). These numbers are the
/// same on every CPU (`asm-generic/errno-base.h`), as are the others' on the two that there are
/// appliances for (`asm-generic/errno.h`). The rest is told by number.
const ERRNOS: [(i32, &str); 21] = [
    (1, "EPERM"),
    (2, "ENOENT"),
    (5, "EIO"),
    (6, "ENXIO"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (19, "ENODEV"),
    (20, "ENOTDIR"),
    (21, "EISDIR"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (36, "ENAMETOOLONG"),
    (40, "ELOOP"),
    (61, "ENODATA"),
    (74, "EBADMSG"),
    (75, "EOVERFLOW"),
    (107, "ENOTCONN"),
    (110, "ETIMEDOUT"),
    (116, "ESTALE"),
];

/// What a row calls an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The errno, by its name or number.
    Errno(String),
    /// A reason.
    Reason(&'static str),
}

impl Told {
    fn of(error: &io::Error) -> Self {
        let Some(number) = error.raw_os_error() else {
            return Self::Reason("unreadable");
        };
        let named = ERRNOS.iter().find(|(known, _)| number == *known);
        Self::Errno(named.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned()))
    }

    /// As a column.
    pub(super) fn status(&self) -> Status<'_> {
        match self {
            Self::Errno(name) => Status::Errno(name),
            Self::Reason(reason) => Status::Skipped(reason),
        }
    }
}

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
    #[error("{} is a damaged ELF file: {problem}", path.display())]
    Elf {
        /// The object.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An ELF file whose symbols cannot be counted.
    #[error(
        "{} has no section headers, and no hash table that tells how many dynamic symbols it has",
        .0.display()
    )]
    Uncounted(PathBuf),
    /// An ELF file that has two sets of dynamic symbols.
    #[error(
        "{}: its section headers tell of other dynamic symbols than its dynamic segment, which \
         the loader reads",
        .0.display()
    )]
    Contradicts(PathBuf),
    /// An object without which a root, and all after it, have no size.
    #[error("{error}; sizes from R = {r} on are unknown")]
    Unknown {
        /// The root's number, from 1.
        r: u64,
        /// What is wrong with the object.
        #[source]
        error: Box<SizesError>,
    },
    /// No thread to read the manifest.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
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
    #[error("a row or note is too long: shorten --label or the path of --manifest, which may be -")]
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
            Self::Unreadable(error) if DAMAGE.contains(&error.kind()) => 3,
            Self::Manifest { .. } | Self::Empty | Self::Strip { .. } => 3,
            Self::Elf { .. } | Self::Uncounted(_) | Self::Contradicts(_) => 3,
            Self::Unknown { error, .. } => error.status(),
            Self::Stopped(number) => 128_u8.saturating_add(*number),
            Self::LongRow => 2,
            _ => 1,
        }
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Host(HostError::File { error, .. }) if error.raw_os_error() == Some(24) => FILES,
            Self::Host(HostError::File { doing, .. }) if WRITING.contains(doing) => ROOM,
            Self::Host(HostError::File { .. }) | Self::Object { .. } | Self::Elf { .. } => MEND,
            Self::Host(error) => return error.remedy(),
            Self::Unknown { error, .. } => return error.remedy(),
            Self::Uncounted(_) => "give it as it was before its section headers were taken away",
            Self::Contradicts(_) => {
                "give it as its linker made it, or without its section headers (strip --strip-section-headers)"
            }
            Self::Thread(_) => "more processes have to be allowed: ulimit -u",
            Self::Database(error) if error.sqlite_error_code() == Some(CANNOT_OPEN) => FILES,
            Self::Database(_) => ROOM,
            Self::Unreadable(error) if DAMAGE.contains(&error.kind()) => {
                "it is packed by gzip, and cut or damaged: give it whole"
            }
            Self::Manifest { .. } => "a line is ROOT, a tab, and the path of one object of it",
            Self::Strip { .. } => {
                "strip all of them alike; scripts/closure-manifest makes stripped copies"
            }
            Self::Altered { .. } => "keep the objects as they are while they are measured",
            _ => return None,
        };
        Some(remedy.to_owned())
    }

    /// Whether it is one object that cannot be used, and nothing else is wrong.
    pub(super) fn is_objects(&self) -> bool {
        match self {
            Self::Host(HostError::File { doing, .. }) => READING.contains(doing),
            Self::Elf { .. } | Self::Uncounted(_) | Self::Contradicts(_) => true,
            Self::Object { .. } | Self::Altered { .. } => true,
            _ => false,
        }
    }

    /// What its row says: the errno, or a reason.
    pub(super) fn told(&self) -> Told {
        Told::Reason(match self {
            Self::Host(HostError::File { error, .. }) => return Told::of(error),
            Self::Elf { .. } => "damaged-elf",
            Self::Uncounted(_) => "uncounted-symbols",
            Self::Contradicts(_) => "contradictory-symbols",
            Self::Altered { .. } => "altered",
            _ => "not-storable",
        })
    }

    /// Makes the error of an object that cannot be used.
    pub(super) fn object(path: &Path, problem: &'static str) -> Self {
        Self::Object {
            path: path.to_owned(),
            problem,
        }
    }

    /// Makes the error of an ELF file.
    pub(super) fn elf<E: Display>(path: &Path) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |error| Self::Elf {
            path,
            problem: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_errno_without_a_name_is_its_number() {
        let told = |number| Told::of(&io::Error::from_raw_os_error(number));
        assert_eq!(told(116), Told::Errno("ESTALE".to_owned()));
        // EUCLEAN.
        assert_eq!(told(117).status(), Status::Errno("117"));
        let end = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(Told::of(&end), Told::Reason("unreadable"));
    }

    #[test]
    fn what_is_wrong_with_a_store_is_no_objects_fault() {
        let file = |doing| {
            let error = io::Error::from_raw_os_error(28);
            SizesError::from(HostError::file(doing, Path::new("a"))(error))
        };
        assert!(file("open").is_objects() && file("read").is_objects());
        assert!(!file("store").is_objects() && !file("write").is_objects());
        assert!(!SizesError::Empty.is_objects());
    }
}
