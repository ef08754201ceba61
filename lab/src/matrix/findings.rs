//! What rows say about semantics: pages split by each reader, and what reading returns
//! where nothing may be read. No time is looked at: most of these machines are emulated.

use super::grid::Grid;
use super::harm::harm;
use super::split::{Pages, Split, Weight, count};
use crate::stream::{self, Note, Row, Stream, StreamError, StreamReader, Tolerance};
use crate::text::sentence;
use cowitness::emit::audit_row::AuditRow;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::{Record, Status};
use cowitness::emit::survey_row::SurveyRow;
use std::io::BufRead;

/// The kind of `probe` that fork shares.
const SHARED: &str = "anon-fork-shared";
/// What a read that begins in the last page of a file is called, and ends behind it.
pub const OVER_END: &str = "file-end, cross";

/// A row's kernel, CPU and page size.
type Machine<'r> = (&'r str, &'r str, u64);

/// What was found on one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// `uname -r`; empty if there was no row.
    pub kernel: String,
    /// `uname -m`.
    pub arch: String,
    /// Bytes in a page; 0 if there was no row.
    pub page_bytes: u64,
    /// Why the streams, whole as they are, cannot be what one machine wrote in one go.
    pub doubt: Option<String>,
    /// Whether a note of a stream speaks of a software emulator.
    pub emulated: bool,
    /// The notes and the checksum of each stream.
    pub streams: Vec<Seen>,
    /// Rows that say something.
    pub ok_rows: u64,
    /// Rows that were to say something and do not.
    pub lost_rows: u64,
    /// The first of these, in words.
    pub first_lost: Option<String>,
    /// By reader, in the order of appearance, from `bench`.
    pub splits: Vec<Split>,
    /// The same of the whole of fork-shared memory, from `probe`.
    pub probe_splits: Vec<Split>,
    /// By kind and reader, in the order of appearance.
    pub answers: Vec<Answer>,
    /// What reading one page of a kind changed, of each row that says so.
    pub kinds_changed: Vec<KindChanged>,
    /// What a reader has changed that changes nothing, in words.
    pub harms: Vec<String>,
}

/// What reading one page of a kind changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindChanged {
    /// The kind of memory.
    pub kind: String,
    /// The reader.
    pub method: String,
    /// Pages that were shared before.
    pub tracked: u64,
    /// Of these, no longer; `None`: unknown.
    pub split: Option<u64>,
    /// Pages of all of the kind's memory that were in swap before and are present now.
    pub swapped_in: Option<u64>,
    /// Pages by which the target's mappings grew.
    pub grown: Option<i64>,
}

/// A stream: what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The environment.
    pub notes: Vec<Note>,
    /// CRC-32 of header and rows.
    pub checksum: u32,
    /// Rows.
    pub rows: u64,
}

impl Seen {
    /// The value of a note.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        let note = self.notes.iter().find(|note| note.key == key);
        note.map(|note| &*note.value)
    }
}

/// What one reader got from one page of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The kind of memory.
    pub kind: String,
    /// The reader.
    pub method: String,
    /// `read`, an errno's name, or what else happened.
    pub says: String,
}

impl Findings {
    /// Reads all streams of `input`, each of which has to be whole.
    ///
    /// # Errors
    /// The first thing that makes a stream untrustworthy.
    pub fn read(source: &str, input: impl BufRead) -> Result<Self, StreamError> {
        let mut found = Self::default();
        let mut streams = StreamReader::new(source, input, Tolerance::Whole);
        while let Some(mut stream) = streams.next_stream()? {
            found.stream(&mut stream)?;
        }
        Ok(found)
    }

    fn stream<R: BufRead>(&mut self, stream: &mut Stream<'_, R>) -> Result<(), StreamError> {
        let mut seen = Seen {
            notes: stream.notes().to_vec(),
            checksum: 0,
            rows: 0,
        };
        self.emulated |= stream::is_emulated(&seen.notes);
        let mut grid = Grid::default();
        while let Some(row) = stream.next_row()? {
            if let Some(machine) = self.row(&row, &mut grid)? {
                self.machine(&seen, machine);
            }
            seen.rows += 1;
        }
        seen.checksum = stream.checksum();
        let number = self.streams.len() + 1;
        if let Some(gap) = grid.gap(&seen.notes) {
            self.doubts(|| format!("stream {number}: {gap}"));
        }
        if let Some(first) = self.streams.iter().position(|other| *other == seen) {
            self.doubts(|| format!("streams {} and {number} are the same", first + 1));
        }
        self.streams.push(seen);
        Ok(())
    }

    /// The first doubt counts.
    fn doubts(&mut self, doubt: impl FnOnce() -> String) {
        if self.doubt.is_none() {
            self.doubt = Some(sentence(doubt().as_bytes()));
        }
    }

    fn row<'r>(
        &mut self,
        row: &Row<'r>,
        grid: &mut Grid,
    ) -> Result<Option<Machine<'r>>, StreamError> {
        match row.record() {
            BenchRow::NAME => {
                let bench: BenchRow<'_> = row.parse()?;
                grid.bench(&bench);
                self.bench(&bench);
                Ok(Some((bench.kernel, bench.arch, bench.page_bytes)))
            }
            ProbeRow::NAME => {
                let probe: ProbeRow<'_> = row.parse()?;
                grid.probe(&probe);
                self.probe(&probe);
                Ok(Some((probe.kernel, probe.arch, probe.page_bytes)))
            }
            // It predicts and reads nothing.
            SurveyRow::NAME => {
                let survey: SurveyRow<'_> = row.parse()?;
                self.weigh(survey.status, Weight::of_survey(survey.status), survey.name);
                Ok(Some((survey.kernel, survey.arch, survey.page_bytes)))
            }
            MemmapRow::NAME => {
                let memmap: MemmapRow<'_> = row.parse()?;
                self.weigh(memmap.status, Weight::of(memmap.status), memmap.mode);
                Ok(Some((memmap.kernel, memmap.arch, memmap.page_bytes)))
            }

            // Of a process that nothing is expected of.
            AuditRow::NAME => {
                let audit: AuditRow<'_> = row.parse()?;
                grid.audit(&audit);
                self.weigh(audit.status, Weight::of(audit.status), audit.method);
                Ok(Some((audit.kernel, audit.arch, audit.page_bytes)))
            }
            // Other records are checked by the reader and say nothing of this.
            _ => Ok(None),
        }
    }

    fn machine(&mut self, seen: &Seen, (kernel, arch, page_bytes): Machine<'_>) {
        if self.page_bytes == 0 {
            kernel.clone_into(&mut self.kernel);
            arch.clone_into(&mut self.arch);
            self.page_bytes = page_bytes;
        }
        let first = (&*self.kernel, &*self.arch, self.page_bytes);
        if first != (kernel, arch, page_bytes) {
            self.doubts(|| format!(
                "rows of several machines, one of them {kernel}, {arch}, pages of {page_bytes} bytes"
            ));
        }
        let page_bytes = page_bytes.to_string();
        let pairs = [
            ("kernel", kernel),
            ("arch", arch),
            ("page_bytes", &page_bytes),
        ];
        for (key, row) in pairs {
            let note = seen.note(key).unwrap_or("missing");
            if note != row {
                self.doubts(|| format!("its note '{key}' is {note}, its rows say {row}"));
            }
        }
    }

    fn bench(&mut self, row: &BenchRow<'_>) {
        let pages = Pages {
            method: row.method,
            status: row.status,
            evidence: row.evidence,
            counts: (row.tracked_pages, row.split_pages),
        };
        count(&mut self.splits, &pages);
        self.weigh(row.status, pages.weight(), row.method);
    }

    /// Counts a row among those that say something, or those that do not.
    fn weigh(&mut self, status: Status<'_>, weight: Weight, what: &str) {
        match weight {
            Weight::Ok => self.ok_rows += 1,
            Weight::NotApplicable => {}
            Weight::Lost => {
                self.lost_rows += 1;
                let why = match status {
                    Status::Ok => "without evidence of sharing".to_owned(),
                    Status::Short(bytes) => format!("short after {bytes} bytes"),
                    Status::Errno(name) => format!("failed: {name}"),
                    Status::Skipped(reason) => format!("skipped: {reason}"),
                };
                let first = || sentence(format!("{what}'s, {why}").as_bytes());
                self.first_lost.get_or_insert_with(first);
            }
        }
    }

    fn probe(&mut self, row: &ProbeRow<'_>) {
        // An errno is an answer; evidence is needed for split pages alone.
        self.weigh(row.status, Weight::of_probe(row), row.method);
        if row.method == "none" {
            return;
        }
        self.harms.extend(harm(row));
        if row.kind == SHARED && row.op == "whole" {
            let pages = Pages {
                method: row.method,
                status: row.status,
                evidence: row.evidence,
                counts: (row.tracked_pages, row.split_pages),
            };
            count(&mut self.probe_splits, &pages);
        }
        let kind = match (row.kind, row.op) {
            (kind, "page") => kind,
            ("file-end", "cross") => OVER_END,
            _ => return,
        };
        if row.status == Status::Ok {
            // An answered row has a page at least.
            let page_bytes = row.page_bytes.max(1).cast_signed();
            self.kinds_changed.push(KindChanged {
                kind: kind.to_owned(),
                method: row.method.to_owned(),
                tracked: row.tracked_pages.unwrap_or(0),
                split: row.split_pages,
                swapped_in: row.swapped_in_pages,
                grown: (row.target_vm_size_kib).map(|kib| kib * 1024 / page_bytes),
            });
        }
        let says = says(row);
        let mut answers = self.answers.iter_mut();
        let same = answers.find(|answer| answer.kind == kind && answer.method == row.method);
        match same {
            Some(answer) if answer.says != says => answer.says += &format!(" or {says}"),
            Some(_) => {}
            None => self.answers.push(Answer {
                kind: kind.to_owned(),
                method: row.method.to_owned(),
                says,
            }),
        }
    }

    /// The value of a note, of the first stream that has it.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        self.streams.iter().find_map(|seen| seen.note(key))
    }

    /// What `method` split, in `bench`, or else in `probe`.
    #[must_use]
    pub fn split(&self, method: &str) -> Option<&Split> {
        let mut all = self.splits.iter().chain(&self.probe_splits);
        all.find(|split| split.method == method)
    }

    /// Rows of all streams.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.streams.iter().map(|seen| seen.rows).sum()
    }

    /// What `method` got from a page of `kind`.
    #[must_use]
    pub fn says(&self, kind: &str, method: &str) -> Option<&str> {
        let mut answers = self.answers.iter();
        let answer = answers.find(|answer| answer.kind == kind && answer.method == method);
        answer.map(|answer| &*answer.says)
    }
}

fn says(row: &ProbeRow<'_>) -> String {
    match (row.status, row.returned_bytes, row.errno) {
        (Status::Skipped(reason), ..) => format!("skipped: {reason}"),
        (Status::Errno(name), ..) => format!("failed: {name}"),
        (_, None | Some(0), "") => "nothing".to_owned(),
        (_, None | Some(0), errno) => errno.to_owned(),
        (_, Some(bytes), errno) if bytes < row.requested_bytes => {
            match (2 * bytes == row.requested_bytes, row.content) {
                (true, "ok") => format!("half, then {errno}"),
                _ => format!("{bytes} bytes"),
            }
        }
        (_, Some(_), _) => match row.content {
            "ok" => "read".to_owned(),
            "zero" => "zeros".to_owned(),
            "wrong" => "wrong bytes".to_owned(),
            _ => "bytes that were not looked at".to_owned(),
        },
    }
}
