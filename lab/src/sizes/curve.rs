//! bytes(R): what was found for each number of roots, where one model overtakes another,
//! and the stream that says so.

use super::error::{SizesError, Told};
use crate::cli::SizesOptions;
use crate::digest::{Hash, hexadecimal};
use crate::figures::lasting;
use crate::text::printable;
use cowitness::emit::Sink;
use cowitness::emit::record::{Record, Status};
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::stream::{Preamble, StreamError};
use std::io::{self, Write};

/// The first `r` roots. Bytes are file sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) objects: u64,
    pub(super) distinct_objects: u64,
    pub(super) distinct_bytes: u64,
    pub(super) private: u64,
    pub(super) blobs: u64,
    pub(super) segments: u64,
    /// One for each average asked for.
    pub(super) chunks: Vec<ChunkPoint>,
}

/// The same of one average size of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkPoint {
    pub(super) chunks: u64,
    pub(super) distinct: u64,
    /// Of the pack.
    pub(super) pack: u64,
    pub(super) index: u64,
}

impl ChunkPoint {
    fn bytes(&self) -> u64 {
        self.pack + self.index
    }
}

/// The manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// SHA-256 of its text.
    pub(super) hash: Hash,
    pub(super) roots: u64,
    /// Paths of objects that it names.
    pub(super) paths: u64,
}

/// Why sizes are unknown, and from which root on.
#[derive(Debug)]
pub(super) struct Unknown {
    pub(super) r: u64,
    pub(super) error: SizesError,
    /// What rows call the error.
    status: Told,
}

impl Unknown {
    /// From `r` on, for `error`.
    pub(super) fn new(r: u64, error: SizesError) -> Self {
        let status = error.told();
        Self { r, error, status }
    }
}

/// What holds for a whole run.
pub(super) struct Run<'r> {
    pub(super) options: &'r SizesOptions,
    pub(super) manifest: Manifest,
    /// In words.
    pub(super) strip_level: &'static str,
    /// A point for each number of roots, from 1 to the last that is known.
    pub(super) points: Vec<Point>,
    /// Why there are not as many as roots.
    pub(super) unknown: Option<Unknown>,
}

/// One model overtaking another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Crossover {
    /// Its note's key.
    key: String,
    /// In words.
    what: String,
    /// From how many roots on the one is smaller.
    at: At,
}

/// From how many roots on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    From(u64),
    /// Not with all roots.
    Never,
    /// Not up to the last root that is known.
    Unknown,
}

impl Crossover {
    fn value(&self) -> String {
        match self.at {
            At::From(r) => r.to_string(),
            At::Never => "none".to_owned(),
            At::Unknown => "unknown".to_owned(),
        }
    }

    /// For standard error.
    pub(super) fn words(&self) -> String {
        match self.at {
            At::From(r) => format!("{}: from R = {r} on", self.what),
            At::Never | At::Unknown => format!("{}: {}", self.what, self.value()),
        }
    }
}

impl Run<'_> {
    /// The relational stores against private closures, chunks against the store of blobs.
    pub(super) fn crossovers(&self) -> Vec<Crossover> {
        let mut found = vec![
            Crossover {
                key: "crossover_store_below_private".to_owned(),
                what: "one store is smaller than private closures".to_owned(),
                at: self.overtakes(|p| p.blobs, |p| p.private),
            },
            Crossover {
                key: "crossover_store_symbols_below_private".to_owned(),
                what: "one store with symbols is smaller than private closures".to_owned(),
                at: self.overtakes(|p| p.segments, |p| p.private),
            },
        ];
        for (index, average) in self.options.averages.iter().enumerate() {
            found.push(Crossover {
                key: format!("crossover_chunks_{average}_below_store"),
                what: format!("chunks of {average} bytes are smaller than one store"),
                at: self.overtakes(|p| p.chunks[index].bytes(), |p| p.blobs),
            });
        }
        found
    }

    /// The first R from which on `one` stays below `other`.
    fn overtakes(&self, one: impl Fn(&Point) -> u64, other: impl Fn(&Point) -> u64) -> At {
        let below = self.points.iter().map(|point| one(point) < other(point));
        match lasting((1..).zip(below)) {
            Some(r) => At::From(r),
            None if self.unknown.is_some() => At::Unknown,
            None => At::Never,
        }
    }

    /// In words; what was not stored is not judged.
    fn strip_level(&self) -> &str {
        match self.points.len() {
            0 => "unknown",
            _ => self.strip_level,
        }
    }

    fn notes(&self, crossovers: &[Crossover]) -> Vec<(String, String)> {
        let averages: Vec<String> = self.options.averages.iter().map(u64::to_string).collect();
        let fixed = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("command", SizesRow::NAME.to_owned()),
            ("label", self.options.label.clone()),
            ("option_avg", averages.join(",")),
            (
                "option_manifest",
                printable(self.options.manifest.as_encoded_bytes()),
            ),
            ("option_page_size", self.options.page_bytes.to_string()),
            ("sqlite", rusqlite::version().to_owned()),
            (
                "chunker",
                format!("fastcdc 2020, avg/{0} to avg*{0}", super::chunks::SPREAD),
            ),
            ("compression", "none".to_owned()),
            ("strip_level", self.strip_level().to_owned()),
            ("manifest_sha256", hexadecimal(&self.manifest.hash)),
            ("manifest_roots", self.manifest.roots.to_string()),
            ("manifest_paths", self.manifest.paths.to_string()),
            ("known_roots", self.points.len().to_string()),
        ];
        let mut notes: Vec<(String, String)> = Vec::new();
        notes.extend(fixed.map(|(key, value)| (key.to_owned(), value)));
        notes.extend(crossovers.iter().map(|one| (one.key.clone(), one.value())));
        notes
    }

    fn rows(&self) -> impl Iterator<Item = SizesRow<'_>> {
        let known = (1..).zip(&self.points).flat_map(move |(r, point)| {
            let chunks = self.options.averages.iter().zip(&point.chunks);
            chunks.map(move |(average, chunks)| self.row(r, point, *average, chunks))
        });
        let status = self.unknown.as_ref().map(|unknown| unknown.status.status());
        let unknown = (self.points.len() as u64 + 1..=self.manifest.roots).flat_map(move |r| {
            let averages = self.options.averages.iter();
            averages.filter_map(move |average| Some(self.unknown_row(r, *average, status?)))
        });
        known.chain(unknown)
    }

    /// A number of roots of which nothing is known.
    fn unknown_row<'r>(&'r self, r: u64, average: u64, status: Status<'r>) -> SizesRow<'r> {
        SizesRow {
            label: &self.options.label,
            r,
            objects: None,
            distinct_objects: None,
            distinct_bytes: None,
            bytes_private: None,
            bytes_store: None,
            bytes_store_symbols: None,
            bytes_chunks: None,
            chunks: None,
            distinct_chunks: None,
            index_bytes: None,
            page_size: self.options.page_bytes,
            avg_chunk: average,
            status,
        }
    }

    fn row(&self, r: u64, point: &Point, average: u64, chunks: &ChunkPoint) -> SizesRow<'_> {
        SizesRow {
            label: &self.options.label,
            r,
            objects: Some(point.objects),
            distinct_objects: Some(point.distinct_objects),
            distinct_bytes: Some(point.distinct_bytes),
            bytes_private: Some(point.private),
            bytes_store: Some(point.blobs),
            bytes_store_symbols: Some(point.segments),
            bytes_chunks: Some(chunks.bytes()),
            chunks: Some(chunks.chunks),
            distinct_chunks: Some(chunks.distinct),
            index_bytes: Some(chunks.index),
            page_size: self.options.page_bytes,
            avg_chunk: average,
            status: Status::Ok,
        }
    }

    /// Writes the stream; `crossovers` are its own.
    pub(super) fn write(
        &self,
        out: impl Write,
        crossovers: &[Crossover],
    ) -> Result<(), SizesError> {
        let mut stream = Preamble::begin(Out(out)).map_err(refused)?;
        for (key, value) in self.notes(crossovers) {
            stream.note(&key, &value).map_err(refused)?;
        }
        let intended = self.manifest.roots * self.options.averages.len() as u64;
        let mut rows = stream.header::<SizesRow<'_>>(intended).map_err(refused)?;
        for row in self.rows() {
            rows.row(&row).map_err(refused)?;
        }
        rows.end().map_err(refused)
    }
}

/// Refuses what no stream can say, before it is worked for.
///
/// # Errors
/// [`SizesError::LongRow`].
pub(super) fn writable(options: &SizesOptions) -> Result<(), SizesError> {
    let run = Run {
        options,
        manifest: Manifest::default(),
        strip_level: "",
        points: Vec::new(),
        unknown: None,
    };
    run.write(io::sink(), &run.crossovers())
}

struct Out<W>(W);

impl<W: Write> Sink for Out<W> {
    type Error = io::Error;

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

fn refused(error: StreamError<io::Error>) -> SizesError {
    match error {
        StreamError::Sink(error) => SizesError::Output(error),
        StreamError::TooLong => SizesError::LongRow,
    }
}
