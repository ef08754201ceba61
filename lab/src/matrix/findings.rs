//! What rows say about semantics: pages split by each reader, and what reading returns
//! where nothing may be read. No time is looked at: most of these machines are emulated.

use crate::stream::{Note, Row, StreamError, StreamReader, Tolerance};
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::{Record, Status};
use std::io::BufRead;

/// What was found on one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// `uname -r`; empty if there was no row.
    pub kernel: String,
    /// `uname -m`.
    pub arch: String,
    /// Bytes in a page; 0 if there was no row.
    pub page_bytes: u64,
    /// Another machine that rows are of, in words: what was found is then of no machine.
    pub mixed: Option<String>,
    /// Whether a note of a stream speaks of a software emulator.
    pub emulated: bool,
    /// By reader, in the order of appearance.
    pub splits: Vec<Split>,
    /// By kind and reader, in the order of appearance.
    pub answers: Vec<Answer>,
}

/// Pages that a reader has split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The reader.
    pub method: String,
    /// Pages that were shared before.
    pub tracked: u64,
    /// Of those, not shared afterwards.
    pub split: u64,
    /// Cases that count.
    pub ok: u64,
    /// Cases that do not.
    pub not_ok: u64,
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
            // CPUID's signature of QEMU without hardware acceleration.
            let tcg = |note: &Note| note.key == "hypervisor" && note.value == "TCGTCGTCGTCG";
            found.emulated |= stream.notes().iter().any(tcg);
            while let Some(row) = stream.next_row()? {
                found.row(&row)?;
            }
        }
        Ok(found)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), StreamError> {
        match row.record() {
            BenchRow::NAME => {
                let bench: BenchRow<'_> = row.parse()?;
                self.machine(bench.kernel, bench.arch, bench.page_bytes);
                self.bench(&bench);
            }
            ProbeRow::NAME => {
                let probe: ProbeRow<'_> = row.parse()?;
                self.machine(probe.kernel, probe.arch, probe.page_bytes);
                self.probe(&probe);
            }
            // Other records are checked by the reader and say nothing of this.
            _ => {}
        }
        Ok(())
    }

    fn machine(&mut self, kernel: &str, arch: &str, page_bytes: u64) {
        if self.page_bytes == 0 {
            kernel.clone_into(&mut self.kernel);
            arch.clone_into(&mut self.arch);
            self.page_bytes = page_bytes;
        }
        let first = (&*self.kernel, &*self.arch, self.page_bytes);
        if first != (kernel, arch, page_bytes) && self.mixed.is_none() {
            let words = format!("{kernel}, {arch}, pages of {page_bytes} bytes");
            self.mixed = Some(crate::text::printable(words.as_bytes()));
        }
    }

    fn bench(&mut self, row: &BenchRow<'_>) {
        let place = self
            .splits
            .iter()
            .position(|split| split.method == row.method);
        let place = place.unwrap_or_else(|| {
            self.splits.push(Split {
                method: row.method.to_owned(),
                ..Split::default()
            });
            self.splits.len() - 1
        });
        let split = &mut self.splits[place];
        match (row.status, row.tracked_pages, row.split_pages) {
            (Status::Ok, Some(tracked), Some(pages)) => {
                split.ok += 1;
                split.tracked += tracked;
                split.split += pages;
            }
            _ => split.not_ok += 1,
        }
    }

    fn probe(&mut self, row: &ProbeRow<'_>) {
        if row.op != "page" || row.method == "none" {
            return;
        }
        let says = says(row);
        let mut answers = self.answers.iter_mut();
        let same = answers.find(|answer| answer.kind == row.kind && answer.method == row.method);
        match same {
            Some(answer) if answer.says != says => answer.says += &format!(" or {says}"),
            Some(_) => {}
            None => self.answers.push(Answer {
                kind: row.kind.to_owned(),
                method: row.method.to_owned(),
                says,
            }),
        }
    }

    /// What `method` split.
    #[must_use]
    pub fn split(&self, method: &str) -> Option<&Split> {
        self.splits.iter().find(|split| split.method == method)
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
        (_, Some(bytes), _) if bytes < row.requested_bytes => format!("{bytes} bytes"),
        (_, Some(_), _) if row.content == "wrong" => "wrong bytes".to_owned(),
        _ => "read".to_owned(),
    }
}

impl Split {
    /// Per cent with two decimals where it is not whole. Never rounded to 0 or to 100; the
    /// count of cases that do not count comes with it.
    #[must_use]
    pub fn percent(&self) -> String {
        let lost = match self.not_ok {
            0 => String::new(),
            lost => format!(" ({lost} of {} cases lost)", self.ok + lost),
        };
        if self.tracked == 0 {
            return format!("unknown{lost}");
        }
        let hundredths = u128::from(self.split) * 10_000 / u128::from(self.tracked);
        let percent = match (self.split, hundredths) {
            (0, _) => "0".to_owned(),
            (split, _) if split == self.tracked => "100".to_owned(),
            (_, hundredths) => {
                let shown = hundredths.max(1);
                format!("{}.{:02}", shown / 100, shown % 100)
            }
        };
        percent + &lost
    }

    /// Whether it is exactly `percent` (0 or 100) of the pages, in every case.
    #[must_use]
    pub fn is_exactly(&self, percent: u64) -> bool {
        let wanted = u128::from(self.tracked) * u128::from(percent);
        self.tracked > 0 && self.not_ok == 0 && u128::from(self.split) * 100 == wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(split: u64, tracked: u64, not_ok: u64) -> Split {
        Split {
            method: "proc".to_owned(),
            tracked,
            split,
            ok: 2,
            not_ok,
        }
    }

    #[test]
    fn nothing_is_rounded_to_none_or_all() {
        for (pages, percent) in [
            (0, "0"),
            (1, "0.01"),
            (499_999, "49.99"),
            (999_999, "99.99"),
            (1_000_000, "100"),
        ] {
            assert_eq!(split(pages, 1_000_000, 0).percent(), percent);
        }
    }

    #[test]
    fn rows_of_two_machines_are_of_none() {
        let mut found = Findings::default();
        found.machine("6.1", "x86_64", 4096);
        found.machine("6.1", "x86_64", 4096);
        assert_eq!(found.mixed, None);
        found.machine("6.1", "x86_64", 16384);
        found.machine("6.2", "x86_64", 4096);
        let wanted = "6.1, x86_64, pages of 16384 bytes";
        assert_eq!(found.mixed.as_deref(), Some(wanted));
    }

    #[test]
    fn what_is_not_known_matches_nothing() {
        assert_eq!(split(0, 0, 3).percent(), "unknown (3 of 5 cases lost)");
        assert!(!split(0, 0, 0).is_exactly(0));
        assert!(!split(0, 10, 1).is_exactly(0));
        assert!(split(10, 10, 0).is_exactly(100) && !split(9, 10, 0).is_exactly(100));
    }
}
