//! Rows that real machines have brought back: a line a host.

use super::findings::Findings;
use super::folder::{Folder, Host};
use super::judge::{self, Case, Judged};
use super::outcome::Outcome;
use super::table::{Line, Run};
use crate::asked::{Asked, Task};
use crate::console;
use crate::failure::Failure;
use crate::guest::Ending;
use crate::input;
use crate::stream::Tolerance;
use crate::text::{printable, sentence};
use cowitness::emit::stream::MAGIC;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// A line a host, by name. `say` is told, a line each, what is not in the lines.
pub(super) fn collect(directory: &Path, say: &dyn Fn(&str)) -> Result<Vec<Line>, Failure> {
    let folder = Folder::read(directory)?;
    if !folder.passed_over.is_empty() {
        let names = folder.passed_over.join(", ");
        say(&format!("passed over, nothing of a host's: {names}"));
    }
    let lines: Vec<Line> = folder.hosts.iter().map(line).collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(first) = lines[..at].iter().find(|first| is_same(first, line)) {
            let (first, second) = (&first.name, &line.name);
            say(&format!(
                "{first} and {second} have a stream in common, to the last byte: one of them is a copy"
            ));
        }
    }
    Ok(lines)
}

/// Whether two hosts have brought the same rows of the same run.
fn is_same(one: &Line, other: &Line) -> bool {
    let mut streams = one.findings.streams.iter();
    streams.any(|seen| seen.rows > 0 && other.findings.streams.contains(seen))
}

fn line(host: &Host) -> Line {
    let mut line = Line::new(&host.name, Run::Collected, "");
    let read = match failed(&host.failed) {
        Some(reason) => Err(Outcome::Failed(reason)),
        None => findings(&host.results),
    };
    match read {
        Ok(_) if host.is_log => {
            let why = "its console is there, and no rows of it were kept";
            line.outcome = Outcome::Failed(why.to_owned());
        }
        Ok(findings) => line.findings = findings,
        Err(outcome) => line.outcome = outcome,
    }
    line
}

/// Why a host brought nothing, if it says so.
pub(crate) fn failed(path: &Path) -> Option<String> {
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
    let unreadable = |error: io::Error| match error.kind() {
        // What gzip packed is cut or altered.
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            Outcome::Damaged(format!("{name}: {error}"))
        }
        _ => Outcome::Failed(format!("cannot read {name}: {error}")),
    };
    let unopened = |failure| match failure {
        Failure::Open { error, .. } => unreadable(error),
        failure => Outcome::Failed(failure.to_string()),
    };
    let input::Input {
        bytes: mut input, ..
    } = input::open(path.as_os_str(), Tolerance::Whole).map_err(unopened)?;
    let mut content = Vec::new();
    if let Err(error) = input.read_to_end(&mut content) {
        return Err(unreadable(error));
    }
    if let Some(other) = other_than_rows(&String::from_utf8_lossy(&content)) {
        return other;
    }
    if let Some(judged) = console_log(&name, &content) {
        return match judged.outcome {
            Outcome::Pass => Ok(judged.findings),
            bad => Err(bad),
        };
    }
    match Findings::read(&name, &*content) {
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

/// What init and the kernel say of a file that is a console; `None`: it is none.
fn console_log(name: &str, content: &[u8]) -> Option<Judged> {
    let console = console::read(content);
    if console.sections.is_empty() && console.signs.is_empty() {
        return None;
    }
    // Nothing tells what was asked for but the commands that init repeats.
    let commands = console.sections.iter();
    let tasks = commands.map(|section| section.command.split(' ').map(str::to_owned).collect());
    let asked = Asked {
        commands: tasks.map(Task).collect(),
        stays_up: false,
        becomes: false,
    };
    let case = Case {
        name,
        console: content,
        ending: &Ending::Off,
        asked: &asked,
        exe_crc32: None,
    };
    Some(judge::judge(&case))
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
    let alone = !text.contains(MAGIC) && console::read(text.as_bytes()).sections.is_empty();
    let closing = found.closing.filter(|_| alone)?;
    if let Some(doubt) = found.doubt() {
        return Some(Err(Outcome::Damaged(doubt)));
    }
    Some(match closing {
        [_, failed, _] if failed > 0 => Err(Outcome::Fail(format!(
            "selftest: {}",
            found.failures.join(", ")
        ))),
        [0, ..] => Err(Outcome::Empty("selftest: no check has passed".to_owned())),
        _ => Ok(Findings::default()),
    })
}
