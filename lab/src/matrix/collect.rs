//! Rows that real machines have brought back: a folder with one entry a host.
//!
//! ```text
//! DIR/HOST/results.csv    what the appliance wrote
//! DIR/HOST/failed         one line: why there is nothing
//! DIR/HOST.csv            the same as the first
//! ```

use super::MATRIX_CSV;
use super::findings::Findings;
use super::outcome::Outcome;
use super::table::{Line, Run};
use crate::console;
use crate::failure::Failure;
use crate::host::HostError;
use crate::text::{printable, sentence};
use cowitness::emit::stream::MAGIC;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// What a file of a command without rows has at most.
const TEXT_MAX: u64 = 64 * 1024;

/// A line a host, by name.
pub(super) fn collect(directory: &Path) -> Result<Vec<Line>, Failure> {
    let read = HostError::file("read", directory);
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<PathBuf> = entries
        .map_err(read)?
        .iter()
        .map(fs::DirEntry::path)
        .collect();
    paths.sort();
    let lines: Vec<Line> = paths.iter().filter_map(|path| host(path)).collect();
    if lines.is_empty() {
        return Err(Failure::NoHosts(printable(
            directory.as_os_str().as_encoded_bytes(),
        )));
    }
    Ok(lines)
}

/// `None`: the entry is nothing of a host's.
fn host(path: &Path) -> Option<Line> {
    let is_csv = path.extension().is_some_and(|end| end == "csv");
    let is_matrix = path.file_name().is_some_and(|name| name == MATRIX_CSV);
    let directory = path.is_dir();
    if !directory && (!is_csv || is_matrix) {
        return None;
    }
    let name = if directory {
        path.file_name()
    } else {
        path.file_stem()
    };
    let name = printable(name.unwrap_or_default().as_encoded_bytes());
    let mut line = Line::new(&name, Run::Collected, "");
    let results = if directory {
        path.join("results.csv")
    } else {
        path.to_owned()
    };
    let read = match failed(&path.join("failed")) {
        Some(reason) => Err(Outcome::Failed(reason)),
        None => findings(&results),
    };
    match read {
        Ok(findings) => line.findings = findings,
        Err(outcome) => line.outcome = outcome,
    }
    Some(line)
}

/// Why a host brought nothing, if it says so.
fn failed(path: &Path) -> Option<String> {
    let reason = match fs::read(path) {
        Ok(reason) => reason,
        // `path` is below a file: there is no such entry.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return None;
        }
        Err(error) => return Some(format!("its file 'failed' cannot be read: {error}")),
    };
    let first = reason.split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let first = sentence(first.trim_ascii());
    Some(if first.is_empty() {
        "it does not say why".to_owned()
    } else {
        first
    })
}

fn findings(path: &Path) -> Result<Findings, Outcome> {
    let name = printable(path.as_os_str().as_encoded_bytes());
    let unreadable = |error| Outcome::Failed(format!("cannot read {name}: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut beginning = Vec::new();
    let read = (&file).take(TEXT_MAX).read_to_end(&mut beginning);
    read.map_err(unreadable)?;
    if let Some(other) = other_than_rows(&String::from_utf8_lossy(&beginning)) {
        return other;
    }
    match Findings::read(&name, BufReader::new(beginning.chain(file))) {
        Ok(Findings {
            doubt: Some(doubt), ..
        }) => Err(Outcome::Damaged(format!("{name}: {doubt}"))),
        Ok(findings) => match Outcome::of_lost(&findings) {
            Some(outcome) => Err(outcome),
            None => Ok(findings),
        },
        Err(error) if error.is_untrusted() => Err(Outcome::Damaged(error.to_string())),
        Err(error) => Err(Outcome::Failed(error.to_string())),
    }
}

/// What a file of a command without rows comes to; `None`: it is none.
fn other_than_rows(text: &str) -> Option<Result<Findings, Outcome>> {
    let mut lines = text.lines();
    if lines.next() == Some(MAGIC) && lines.next() == Some("#command=env") {
        let is_note = |line: &str| line.starts_with('#') && !line.starts_with("#rows=");
        let env = "the environment alone, from `cowitness env`: no rows";
        return lines
            .all(is_note)
            .then(|| Err(Outcome::Empty(env.to_owned())));
    }
    let found = console::selftest(text);
    let closing = found.closing.filter(|_| !text.contains(MAGIC))?;
    Some(match closing {
        _ if closing != found.lines => Err(Outcome::Damaged(
            "selftest has other lines than it counts".to_owned(),
        )),
        [_, failed, _] if failed > 0 => Err(Outcome::Fail(format!(
            "selftest: {}",
            found.failures.join(", ")
        ))),
        [0, ..] => Err(Outcome::Empty("selftest: no check has passed".to_owned())),
        _ => Ok(Findings::default()),
    })
}
