//! A folder with what machines have brought back: one entry a host.
//!
//! ```text
//! DIR/HOST/results.csv    what the appliance wrote
//! DIR/HOST/failed         one line: why there is nothing
//! DIR/HOST.csv            the same as the first
//! DIR/HOST.log            a console; without HOST.csv there were no rows to keep
//! ```
//!
//! Where it says `.csv`, `.csv.gz` is as good.

use super::MATRIX_CSV;
use crate::failure::Failure;
use crate::host::HostError;
use crate::text::printable;
use std::fs;
use std::path::{Path, PathBuf};

/// How the name of a file of rows ends.
const ENDS: [&str; 2] = [".csv", ".csv.gz"];

/// What a folder holds, by name.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    /// At least one.
    pub(crate) hosts: Vec<Host>,
    /// Names of what is nothing of a host's.
    pub(crate) passed_over: Vec<String>,
}

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Printable.
    pub(crate) name: String,
    /// Where its rows are, or would be.
    pub(crate) results: PathBuf,
    /// Where it says why there are none.
    pub(crate) failed: PathBuf,
    /// Whether there is only its console.
    pub(crate) is_log: bool,
}

impl Folder {
    /// Looks at all entries of `directory`.
    ///
    /// # Errors
    /// [`Failure::NoHosts`], [`Failure::Host`].
    pub(crate) fn read(directory: &Path) -> Result<Self, Failure> {
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let entries = entries.map_err(HostError::file("read", directory))?;
        let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        let mut folder = Self::default();
        for path in &paths {
            match host(path) {
                Some(host) => folder.hosts.push(host),
                None if is_of_matrix(path) => {}
                None => folder.passed_over.push(name(path)),
            }
        }
        if folder.hosts.is_empty() {
            let directory = printable(directory.as_os_str().as_encoded_bytes());
            return Err(Failure::NoHosts(directory));
        }
        Ok(folder)
    }
}

fn name(path: &Path) -> String {
    printable(path.file_name().unwrap_or_default().as_encoded_bytes())
}

/// `None`: the entry is nothing of a host's, or not the one that counts.
fn host(path: &Path) -> Option<Host> {
    let name = name(path);
    let host = |name: &str, results: PathBuf| Host {
        name: name.to_owned(),
        results,
        failed: path.join("failed"),
        is_log: false,
    };
    if path.is_dir() {
        let results = ENDS.map(|end| path.join(format!("results{end}")));
        let there = results.iter().find(|results| results.exists());
        return Some(host(&name, there.unwrap_or(&results[0]).clone()));
    }
    if name == MATRIX_CSV {
        return None;
    }
    if let Some(stem) = ENDS.iter().find_map(|end| name.strip_suffix(end)) {
        return Some(host(stem, path.to_owned()));
    }
    let stem = name.strip_suffix(".log")?;
    (!has_rows(path)).then(|| Host {
        is_log: true,
        ..host(stem, path.to_owned())
    })
}

/// Whether rows lie beside a file of the same name with another end.
fn has_rows(path: &Path) -> bool {
    let ends = ENDS.iter().map(|end| path.with_extension(&end[1..]));
    ends.into_iter().any(|rows| rows.exists())
}

/// Whether a matrix leaves such a file beside its rows or its console.
fn is_of_matrix(path: &Path) -> bool {
    let end = path.extension().unwrap_or_default();
    let beside = has_rows(path) || path.with_extension("log").exists();
    name(path) == MATRIX_CSV || (end == "log" || end == "txt") && beside
}
