//! Which streams may be looked at together, and what they say then.

use crate::failure::Failure;
use crate::runs::{Machine, Source, notes, twice};
use crate::stream::{Real, StreamError};
use crate::text::{printable, shown};
use cowitness::emit::Sink;
use cowitness::emit::summary::{self, Heading, SCRATCH_PER_SAMPLE, Sample, SummaryError};
use std::convert::Infallible;

/// A stream that was read to its checked end.
pub(super) struct Measured {
    /// What it is.
    pub(super) source: Source,
    /// Rows it meant to have, if it says so.
    pub(super) announced: Option<u64>,
    /// `None` if it has no row.
    pub(super) machine: Option<Machine>,
    /// Its cases.
    pub(super) samples: Vec<Sample>,
    /// It is a stream of another record: what to say of it if nothing else is there.
    pub(super) other: Option<StreamError>,
}

/// Stands above a summary, wherever it is copied to.
const PARTIAL: &str =
    "partial: the input is truncated or damaged; these are only the rows that are there\n";

/// Streams of one machine.
struct Pool {
    machine: Machine,
    /// At least one.
    streams: Vec<Source>,
    samples: Vec<Sample>,
}

/// All streams read so far, in the order of their machines' first appearance.
#[derive(Default)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    sources: u32,
    /// Rows announced by streams that were cut before their first: nothing tells which
    /// machine they were to be of.
    lost_rows: u64,
    /// What is lost of packed files and damaged streams, a line each.
    lost: Vec<String>,
}

impl Pools {
    /// A number for the next stream.
    pub(super) fn next_source(&mut self) -> u32 {
        self.sources = self.sources.saturating_add(1);
        self.sources
    }

    /// Puts a stream to those it belongs to.
    ///
    /// # Errors
    /// [`Failure::Mismatch`], [`Failure::Twice`].
    pub(super) fn add(&mut self, mut measured: Measured) -> Result<(), Failure> {
        let Some(machine) = measured.machine.take() else {
            self.lose(measured.announced);
            return Ok(());
        };
        let Measured {
            source, samples, ..
        } = measured;
        let Some(pool) = self.pools.iter_mut().find(|pool| pool.machine == machine) else {
            self.pools.push(Pool {
                machine,
                streams: vec![source],
                samples,
            });
            return Ok(());
        };
        pool.check(&source)?;
        pool.streams.push(source);
        pool.samples.extend(samples);
        Ok(())
    }

    /// Whether there is nothing to summarise.
    pub(super) fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// A stream without any row, and the rows it announced.
    fn lose(&mut self, announced: Option<u64>) {
        self.lost_rows += announced.unwrap_or(0);
    }

    /// What is lost, a line each.
    pub(super) fn lost(&mut self, lines: Vec<String>) {
        self.lost.extend(lines);
    }

    /// What each pool says; with more than one, each after a line that names it.
    ///
    /// # Errors
    /// [`Failure::LongName`].
    pub(super) fn summarise(mut self) -> Result<String, Failure> {
        let several = self.pools.len() > 1;
        let mut texts = Vec::new();
        let mut lost: Vec<String> = self
            .lost
            .iter()
            .map(|line| format!("partial: {line}\n"))
            .collect();
        if self.lost_rows > 0 {
            let rows = self.lost_rows;
            lost.push(format!(
                "partial: {rows} rows of streams without a row are missing\n"
            ));
        }
        if !lost.is_empty() {
            texts.push(PARTIAL.to_owned() + &lost.concat());
        }
        for pool in &mut self.pools {
            let name = if several { pool.name() } else { String::new() };
            texts.push(name + &pool.summarise()?);
        }
        Ok(texts.join("\n"))
    }
}

impl Pool {
    /// Whether a stream is another one than those that are here, and measured as they were.
    fn check(&self, source: &Source) -> Result<(), Failure> {
        twice::refuse(source, self.streams.iter())?;
        let first = &self.streams[0];
        let Some(found) = notes::difference(&first.notes, &source.notes) else {
            return Ok(());
        };
        let shown = |value: Option<&str>| shown(value.unwrap_or("not noted").as_bytes());
        Err(Failure::Mismatch {
            key: found.key.to_owned(),
            found: shown(found.second),
            place: source.place.clone(),
            first: shown(found.first),
            first_place: first.place.clone(),
        })
    }

    fn name(&self) -> String {
        let mut files: Vec<&str> = self.streams.iter().map(|source| &*source.file).collect();
        files.dedup();
        let files = files.join(", ");
        match &*self.machine.label {
            "" => format!("== {files}\n"),
            label => format!("== {}: {files}\n", printable(label.as_bytes())),
        }
    }

    fn summarise(&mut self) -> Result<String, Failure> {
        let mut text = Memory(Vec::new());
        if self.streams.iter().any(|source| source.partial) {
            text.0.extend(PARTIAL.as_bytes());
        }
        let real = self.streams.iter().map(|source| Real::of(&source.notes));
        let real = real.max().unwrap_or(Real::Yes);
        if let Some(doubt) = real.doubt() {
            text.0.extend(format!("doubt: {doubt}\n").as_bytes());
        }
        let heading = Heading {
            emulated: real == Real::No,
            kernel: &self.machine.kernel,
            arch: &self.machine.arch,
            page_bytes: self.machine.page_bytes.unwrap_or(0),
            intended: self
                .streams
                .iter()
                .fold(0, |sum, source| sum.saturating_add(source.intended)),
        };
        let mut scratch = vec![0; self.samples.len() * SCRATCH_PER_SAMPLE];
        match summary::write(&mut text, &heading, &mut self.samples, &mut scratch) {
            Ok(()) => Ok(text.lines()),
            Err(SummaryError::TooLong) => Err(Failure::LongName),
        }
    }
}

/// A summary under construction.
struct Memory(Vec<u8>);

impl Memory {
    /// As text, whatever control characters the names in the rows have brought along.
    fn lines(&self) -> String {
        let lines = self.0.split_inclusive(|&byte| byte == b'\n');
        let line = |line: &[u8]| printable(line.strip_suffix(b"\n").unwrap_or(line)) + "\n";
        lines.map(line).collect()
    }
}

impl Sink for Memory {
    type Error = Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}
