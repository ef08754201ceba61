//! The matrix as text and as CSV, a line a machine. No rate and no time of a read is in it:
//! most machines are emulated, and theirs mean nothing.

use super::expect::Compared;
use super::findings::Findings;
use super::outcome::Outcome;
use super::split::Split;
use crate::answer;
use crate::readers::{self, Class, READERS, Reader};
use std::time::Duration;

/// The kinds whose answers are shown: their names in the rows and in the heading.
const KINDS: [(&str, &str); 2] = [("prot-none", "PROT_NONE"), ("hole", "hole")];

/// What a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// QEMU's software emulation.
    Emulated,
    /// Rows that were brought here; whether from a real machine, not all CPUs tell.
    Collected,
}

/// One machine.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    run: Run,
    /// What the table says; the findings have what was seen.
    arch: String,
    pub(super) findings: Findings,
    pub(super) outcome: Outcome,
    /// `None`: nothing is expected of it, or it is not trusted.
    pub(super) compared: Option<Compared>,
    pub(super) verdict_after: Option<Duration>,
    pub(super) interrupted_by: Option<u8>,
    /// Whether its console is saved.
    pub(super) has_log: bool,
}

impl Line {
    pub(super) fn new(name: &str, run: Run, arch: &str) -> Self {
        Self {
            name: name.to_owned(),
            run,
            arch: arch.to_owned(),
            findings: Findings::default(),
            outcome: Outcome::Pass,
            compared: None,
            verdict_after: None,
            interrupted_by: None,
            has_log: false,
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.outcome != Outcome::Pass
    }

    pub(super) fn is_untrusted(&self) -> bool {
        matches!(self.outcome, Outcome::Damaged(_))
    }

    /// One line of progress.
    pub(super) fn summary(&self) -> String {
        let after = self.verdict_after.map_or_else(String::new, |after| {
            format!(", verdict after {:.1} s", after.as_secs_f64())
        });
        format!("{}{after}", self.told())
    }

    fn told(&self) -> String {
        let (word, detail) = (self.outcome.word(), self.outcome.detail());
        let colon = if detail.is_empty() { "" } else { ": " };
        format!("{}: {word}{colon}{detail}", self.name)
    }

    fn run(&self) -> &'static str {
        match self.run {
            Run::Emulated => "emulated",
            Run::Collected if self.findings.emulated => "emulated",
            Run::Collected => "collected",
        }
    }

    fn arch(&self) -> &str {
        match &*self.findings.arch {
            "" => &self.arch,
            arch => arch,
        }
    }

    /// Whether it shows what was expected, in words.
    fn expected(&self) -> &'static str {
        match &self.compared {
            None => "",
            Some(compared) if !compared.differences.is_empty() => "no",
            Some(compared) if compared.agreed == 0 => "not asked",
            Some(_) => "yes",
        }
    }

    fn result(&self) -> &'static str {
        match (&self.outcome, self.expected()) {
            (Outcome::Pass, "yes") => "as expected",
            (Outcome::Pass, _) => "pass",
            (outcome, _) => outcome.word(),
        }
    }

    fn split(&self, reader: &Reader) -> String {
        let split = self.findings.split(reader.name);
        split.map_or_else(String::new, Split::percent)
    }

    fn says(&self, kind: &str, reader: &Reader) -> String {
        let says = self.findings.says(kind, reader.name);
        says.unwrap_or_default().to_owned()
    }

    fn cells(&self) -> Vec<String> {
        let found = &self.findings;
        let pages = match found.page_bytes {
            0 => String::new(),
            bytes => format!("{} KiB", bytes / 1024),
        };
        let mut cells = vec![
            self.name.clone(),
            found.kernel.clone(),
            self.arch().to_owned(),
            pages,
            self.run().to_owned(),
            together(READERS.iter().map(|reader| self.split(reader))),
        ];
        cells.extend(KINDS.map(|(kind, _)| {
            together(readers::of_classes().map(|reader| self.says(kind, reader)))
        }));
        cells.push(self.result().to_owned());
        let seconds = self
            .verdict_after
            .map(|after| format!("{:.1}", after.as_secs_f64()));
        cells.push(seconds.unwrap_or_default());
        cells
    }

    /// In the order of [`columns`].
    fn fields(&self) -> Vec<String> {
        let found = &self.findings;
        let known = |bytes: u64| {
            if bytes == 0 {
                String::new()
            } else {
                bytes.to_string()
            }
        };
        let mut fields = vec![
            "matrix".to_owned(),
            self.name.clone(),
            found.kernel.clone(),
            self.arch().to_owned(),
            known(found.page_bytes),
            self.run().to_owned(),
        ];
        fields.extend(first_splits().map(|reader| self.split(reader)));
        let first = |kind| first_answers().map(move |reader| self.says(kind, reader));
        fields.extend(KINDS.iter().flat_map(|(kind, _)| first(kind)));
        let millis = self
            .verdict_after
            .map(|after| after.as_millis().to_string());
        fields.extend([
            self.expected().to_owned(),
            self.outcome.word().to_owned(),
            self.outcome.detail().to_owned(),
            millis.unwrap_or_default(),
        ]);
        fields.extend(later_splits().map(|reader| self.split(reader)));
        let later = |kind| later_answers().map(move |reader| self.says(kind, reader));
        fields.extend(KINDS.iter().flat_map(|(kind, _)| later(kind)));
        fields.extend(last().map(|reader| self.split(reader)));
        let last = |kind| last().map(move |reader| self.says(kind, reader));
        fields.extend(KINDS.iter().flat_map(|(kind, _)| last(kind)));
        fields
    }
}

// Columns are only ever added at the end: those of the first edition come first.

fn is_first(reader: &Reader) -> bool {
    matches!(reader.class, Class::Proc | Class::Vmread)
}

fn first_splits() -> impl Iterator<Item = &'static Reader> {
    READERS.iter().filter(|reader| is_first(reader))
}

fn later_splits() -> impl Iterator<Item = &'static Reader> {
    READERS
        .iter()
        .filter(|reader| reader.class == Class::Ptrace)
}

fn first_answers() -> impl Iterator<Item = &'static Reader> {
    readers::of_classes().filter(|reader| is_first(reader))
}

fn later_answers() -> impl Iterator<Item = &'static Reader> {
    READERS
        .iter()
        .filter(|reader| reader.class != Class::Hybrid)
        .filter(|reader| first_answers().all(|first| first != *reader))
}

/// All that is shown of these was added last.
fn last() -> impl Iterator<Item = &'static Reader> {
    READERS
        .iter()
        .filter(|reader| reader.class == Class::Hybrid)
}

/// The columns of `matrix.csv`.
fn columns() -> Vec<String> {
    let plain = |reader: &Reader| reader.name.replace('-', "_");
    let split = |reader| format!("{}_split_percent", plain(reader));
    let says = |kind: &str, reader| format!("{}_{}", kind.replace('-', "_"), plain(reader));
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    let mut columns = owned(&["record", "machine", "kernel", "arch", "page_bytes", "run"]);
    columns.extend(first_splits().map(split));
    for (kind, _) in KINDS {
        columns.extend(first_answers().map(|reader| says(kind, reader)));
    }
    columns.extend(owned(&["as_expected", "outcome", "detail", "verdict_ms"]));
    columns.extend(later_splits().map(split));
    for (kind, _) in KINDS {
        columns.extend(later_answers().map(|reader| says(kind, reader)));
    }
    columns.extend(last().map(split));
    for (kind, _) in KINDS {
        columns.extend(last().map(|reader| says(kind, reader)));
    }
    columns
}

/// `a / b`; what is unknown is `-`; nothing at all is empty.
fn together(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.iter().all(String::is_empty) {
        return String::new();
    }
    let part = |part: &String| {
        if part.is_empty() {
            "-".to_owned()
        } else {
            part.clone()
        }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(" / ")
}

/// The table, then a line for each machine that needs more words.
pub(super) fn text(lines: &[Line]) -> String {
    let splits = format!("% split by {}", readers::names(READERS.iter(), " / "));
    let by = readers::names(readers::of_classes(), " / ");
    let [prot_none, hole] = KINDS.map(|(_, kind)| format!("{kind} by {by}"));
    let headings = [
        "machine",
        "kernel",
        "CPU",
        "pages",
        "run",
        &splits,
        &prot_none,
        &hole,
        "result",
        "s to verdict",
    ];
    let mut text = answer::table(&headings, lines.iter().map(Line::cells).collect());
    let told = lines
        .iter()
        .filter(|line| !line.outcome.detail().is_empty());
    let told: String = told.map(|line| line.told() + "\n").collect();
    if !told.is_empty() {
        text += "\n";
        text += &told;
    }
    text
}

/// `matrix.csv`: a header and a row a machine; what is unknown is empty.
pub(super) fn csv(lines: &[Line]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    // A Vec takes everything, and all rows are of the header's width.
    let _ = writer.write_record(columns());
    for line in lines {
        let _ = writer.write_record(line.fields());
    }
    writer.into_inner().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_failed_has_a_row_without_findings() {
        let mut line = Line::new("6.1-x86_64", Run::Emulated, "x86_64");
        line.outcome = Outcome::Panic("no, \"init\"".to_owned());
        let written = String::from_utf8(csv(&[line.clone()])).unwrap();
        let row =
            "matrix,6.1-x86_64,,x86_64,,emulated,,,,,,,,,,panic,\"no, \"\"init\"\"\",,,,,,,,,,,";
        assert_eq!(written.lines().nth(1), Some(row));
        let header = "record,machine,kernel,arch,page_bytes,run,proc_split_percent,\
            proc_seek_split_percent,vmread_split_percent,vmread_batch_split_percent,\
            prot_none_proc,prot_none_vmread,hole_proc,hole_vmread,as_expected,outcome,detail,\
            verdict_ms,ptrace_split_percent,prot_none_proc_seek,prot_none_vmread_batch,\
            prot_none_ptrace,hole_proc_seek,hole_vmread_batch,hole_ptrace,\
            hybrid_split_percent,prot_none_hybrid,hole_hybrid";
        assert_eq!(written.lines().next(), Some(header));
        let text = text(&[line]);
        assert!(text.contains("| panic"), "{text}");
        assert!(
            text.ends_with("\n6.1-x86_64: panic: no, \"init\"\n"),
            "{text}"
        );
    }
}
