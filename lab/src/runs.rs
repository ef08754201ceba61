//! Runs: the streams of all inputs, put together by the machine and the settings they are of.
//!
//! What `report` and `compare` look at. Nothing is said of an input before it has proved
//! itself whole.

pub mod effects;
pub mod notes;
pub mod others;
pub mod probes;
mod samples;
mod taken;
pub mod twice;

pub use samples::sample;

use crate::failure::Failure;
use crate::figures::bytes;
use crate::input;
pub use crate::stream::Real;
use crate::stream::{Note, Stream, StreamError, StreamReader, Tolerance};
use crate::text::shown;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Record;
use cowitness::emit::startup_row::StartupRow;
use cowitness::emit::summary::{Outcome, Sample};
use effects::Settings;
use notes::Difference;
use others::{Others, Sizes};
use probes::Probes;
use std::ffi::OsString;
use std::io::BufRead;
use taken::Taken;

/// What says where rows come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// What `--label` said.
    pub label: String,
    /// `uname -r`.
    pub kernel: String,
    /// `uname -m`.
    pub arch: String,
    /// Bytes in a page; `None` if nothing says.
    pub page_bytes: Option<u64>,
}

/// One stream of a run.
#[derive(Clone, Debug)]
pub struct Source {
    /// File and stream, for messages.
    pub place: String,
    /// The file alone.
    pub file: String,
    /// Which record its rows are.
    pub record: String,
    /// CRC-32 of header and rows.
    pub checksum: u32,
    /// The environment.
    pub notes: Vec<Note>,
    /// Whether it is cut.
    pub partial: bool,
    /// Rows it meant to have.
    pub intended: u64,
    /// The processes that its rows are of, if the command is given their numbers.
    pub pids: Vec<u64>,
}

/// Everything known of one machine in one setting.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The machine.
    pub machine: Machine,
    /// Its streams, in the order they were read; at least one.
    pub sources: Vec<Source>,
    /// The cases of `bench`, in the order of [`Sample::sort_key`].
    pub samples: Vec<Sample>,
    /// What they changed beside split pages.
    pub effects: Settings,
    /// Cases of `bench` that cannot be, and are no loss.
    pub not_applicable: u64,
    /// The answers of `probe`.
    pub probes: Probes,
    /// What the other records say.
    pub others: Others,
}

/// Files that were measured, which are no machine's.
#[derive(Clone, Debug)]
pub struct Files {
    /// What `--label` said.
    pub label: String,
    /// The stream.
    pub source: Source,
    /// Its rows.
    pub sizes: Sizes,
}

/// All runs, in the order of their first rows.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// The runs.
    pub runs: Vec<Run>,
    /// Streams of `sizes`, in their order.
    pub files: Vec<Files>,
    /// What is cut, a line each, streams without any row among it.
    pub cut: Vec<String>,
    streams: u32,
}

impl Runs {
    /// Reads `files` to their checked ends. `warn` is told, a line each, what was taken
    /// although it is not whole, and what was passed over.
    ///
    /// # Errors
    /// [`Failure`]; the first input that fails ends it.
    pub fn read(
        files: &[OsString],
        tolerance: Tolerance,
        warn: &dyn Fn(&str),
    ) -> Result<Self, Failure> {
        let mut runs = Self::default();
        let take = &mut |file: &str, stream: &mut Stream<'_, _>| runs.take(file, stream, warn);
        let lost = each_stream(files, tolerance, warn, take)?;
        runs.cut.extend(lost);
        if runs.runs.is_empty() && runs.files.is_empty() {
            return Err(Failure::NoRows);
        }
        for run in &mut runs.runs {
            run.samples.sort_unstable_by_key(Sample::sort_key);
        }
        Ok(runs)
    }

    fn take<R: BufRead>(
        &mut self,
        file: &str,
        stream: &mut Stream<'_, R>,
        warn: &dyn Fn(&str),
    ) -> Result<(), Failure> {
        self.streams = self.streams.saturating_add(1);
        let place = format!("{file}, stream {}", stream.number());
        let notes = stream.notes().to_vec();
        let announced = stream.announced();
        let mut taken = Taken::read(stream, self.streams, &notes)?;
        if let Some(cut) = stream.cut() {
            warn(&cut_warning(stream, cut));
            self.cut.push(cut_words(&place, taken.rows, announced));
            if stream.is_unproved() {
                return Ok(());
            }
        }
        let Some(machine) = taken.machine.take() else {
            warn(&format!("{place} has no row"));
            return Ok(());
        };
        let source = Source {
            place,
            file: file.to_owned(),
            record: taken.record.clone(),
            checksum: stream.checksum(),
            notes,
            partial: stream.cut().is_some(),
            intended: announced.unwrap_or(taken.rows),
            pids: taken.others.pids(),
        };
        self.add(machine, source, taken)
    }

    fn add(&mut self, machine: Machine, source: Source, mut taken: Taken) -> Result<(), Failure> {
        let machines = self.runs.iter().flat_map(|run| &run.sources);
        let sources = machines.chain(self.files.iter().map(|files| &files.source));
        twice::refuse(&source, sources)?;
        if taken.is_files {
            self.files
                .extend(taken.others.sizes.pop().map(|sizes| Files {
                    label: machine.label,
                    source,
                    sizes,
                }));
            return Ok(());
        }
        let agrees = |run: &&mut Run| run.machine.is_like(&machine) && run.agrees(&source);
        match self.runs.iter_mut().find(agrees) {
            Some(run) => {
                run.machine.page_bytes = run.machine.page_bytes.or(machine.page_bytes);
                run.extend(source, taken);
            }
            None => {
                let mut run = Run {
                    machine,
                    ..Run::default()
                };
                run.extend(source, taken);
                self.runs.push(run);
            }
        }
        Ok(())
    }
}

impl Machine {
    /// `Linux 6.18.44 (x86_64, 4 KiB pages)`, on one line.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { kernel, arch, .. } = self;
        let [kernel, arch] = [kernel, arch].map(|name| shown(name.as_bytes()));
        match self.page_bytes {
            Some(size) => format!("Linux {kernel} ({arch}, {} pages)", bytes(size)),
            None => format!("Linux {kernel} ({arch})"),
        }
    }

    /// The same machine, as far as both are known.
    fn is_like(&self, other: &Self) -> bool {
        let pages = self.page_bytes.zip(other.page_bytes);
        (&self.label, &self.kernel, &self.arch) == (&other.label, &other.kernel, &other.arch)
            && pages.is_none_or(|(one, two)| one == two)
    }
}

impl Run {
    fn extend(&mut self, source: Source, mut taken: Taken) {
        let is_result = taken.others.sums > 0 && !source.partial;
        let before = self.sources.last();
        let follows = before.is_some_and(|before| {
            before.file == source.file && before.record == StartupRow::NAME && !before.partial
        });
        if let Some(starts) = self.others.startup.last_mut() {
            starts.has_result |= is_result && follows;
        }
        self.sources.push(source);
        if self.samples.is_empty() {
            self.samples = taken.samples;
        } else {
            self.samples.append(&mut taken.samples);
        }
        self.effects.extend(taken.effects);
        self.not_applicable += taken.not_applicable;
        self.probes.extend(taken.probes);
        self.others.extend(taken.others);
    }

    /// Whether a stream was measured on the same machine, and as its own kind was.
    fn agrees(&self, source: &Source) -> bool {
        self.differs(source).is_none()
    }

    /// The first note that keeps a stream out.
    #[must_use]
    pub fn differs<'n>(&'n self, source: &'n Source) -> Option<Difference<'n>> {
        // Of other records each stream is shown for itself: what was asked may differ.
        let alike = [BenchRow::NAME, ProbeRow::NAME].contains(&&*source.record);
        let mut own = self.sources.iter();
        match own.find(|own| alike && own.record == source.record) {
            Some(own) => notes::difference(&own.notes, &source.notes),
            None => notes::environment_difference(&self.environment().notes, &source.notes),
        }
    }

    /// The stream that tells how the machine is when nothing is set up for `probe`, if one does.
    fn environment(&self) -> &Source {
        let mut sources = self.sources.iter();
        let found = sources.find(|source| source.record != ProbeRow::NAME);
        found.unwrap_or(&self.sources[0])
    }

    /// A note of its first stream.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        notes::value(&self.sources[0].notes, key)
    }

    /// What its notes say of its machine: the least certain of its streams counts.
    #[must_use]
    pub fn real(&self) -> Real {
        let sources = self.sources.iter().map(|source| Real::of(&source.notes));
        sources.max().unwrap_or(Real::Yes)
    }

    /// `180 of 180 cases ok`; `120 of 180 cases ok, 60 do not apply`.
    #[must_use]
    pub fn cases(&self) -> String {
        let ok = self.samples.iter().filter(|one| one.outcome == Outcome::Ok);
        let cannot = match self.not_applicable {
            0 => String::new(),
            cannot => format!(", {cannot} do not apply"),
        };
        format!("{} of {} cases ok{cannot}", ok.count(), self.intended())
    }

    /// Cases that `bench` meant to measure.
    #[must_use]
    pub fn intended(&self) -> u64 {
        let bench = self
            .sources
            .iter()
            .filter(|source| source.record == BenchRow::NAME);
        bench.fold(0, |sum, source| sum.saturating_add(source.intended))
    }
}

/// What is done with the streams of an input.
type Take<'t> = &'t mut dyn FnMut(&str, &mut Stream<'_, Box<dyn BufRead>>) -> Result<(), Failure>;

/// Hands all streams of `files` to `take`, each with its file's name; what was lost of packed
/// files, a line each. `warn` is told of that, too, and of what is passed over.
///
/// # Errors
/// [`Failure`]; the first input that fails ends it.
pub(crate) fn each_stream(
    files: &[OsString],
    tolerance: Tolerance,
    warn: &dyn Fn(&str),
    take: Take<'_>,
) -> Result<Vec<String>, Failure> {
    let mut all_lost = Vec::new();
    for file in files {
        let mut input = input::open(file, tolerance)?;
        let name = input.name;
        if is_matrix(&mut input.bytes) {
            warn(&format!(
                "{name} is the matrix's table, made from its streams; passed over"
            ));
            continue;
        }
        let mut streams = StreamReader::new(name.clone(), input.bytes, tolerance);
        while let Some(mut stream) = streams.next_stream()? {
            take(&name, &mut stream)?;
        }
        if let Some(damage) = input.lost.get() {
            let line = format!("{name}: {damage}; what may have followed is missing");
            warn(&line);
            all_lost.push(line);
        }
    }
    Ok(all_lost)
}

/// What is said of a stream that is not whole.
pub(crate) fn cut_warning<R: BufRead>(stream: &Stream<'_, R>, cut: &StreamError) -> String {
    match stream.is_unproved() {
        true => format!("{cut}; its rows have no checksum to prove them, and are left out"),
        false => format!("{cut}; taken as far as it goes"),
    }
}

/// `a.csv, stream 2: cut after 3 of 12 rows`.
fn cut_words(place: &str, rows: u64, announced: Option<u64>) -> String {
    let of = announced.map_or_else(String::new, |of| format!(" of {of}"));
    format!("{place}: cut after {rows}{of} rows")
}

/// Whether an input is the `matrix.csv` that lies beside a matrix's streams.
pub(crate) fn is_matrix(input: &mut dyn BufRead) -> bool {
    // An error shows again when the input is read, with its place.
    let head = input.fill_buf().unwrap_or_default();
    head.starts_with(b"record,machine,")
}
