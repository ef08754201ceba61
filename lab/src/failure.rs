//! Everything that ends a run early, with its exit status.

use crate::cli::UsageError;
use crate::host::HostError;
use crate::sizes::SizesError;
use crate::stream::StreamError;
use std::io;
use thiserror::Error;

/// Why a run ended.
#[derive(Debug, Error)]
pub enum Failure {
    /// The command line makes no sense.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// An input cannot be trusted, or not be read to its end.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// Something cannot be done on this workstation.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The sizes of closures cannot be told.
    #[error(transparent)]
    Sizes(#[from] SizesError),
    /// Machines of the matrix that have failed, or shown what was not expected.
    #[error("{failed} of {of} machines failed")]
    Machines {
        /// How many.
        failed: usize,
        /// Of how many.
        of: usize,
        /// Whether rows of one of them are damaged.
        untrusted: bool,
        /// Whether one of them has left a console.
        has_log: bool,
    },
    /// Kernels that could not be fetched.
    #[error("{failed} of {of} kernels could not be fetched")]
    NotFetched {
        /// How many.
        failed: usize,
        /// Of how many.
        of: usize,
    },
    /// A folder that holds nothing of any host.
    #[error("no host in {0}: neither HOST/results.csv nor HOST/failed nor HOST.csv nor HOST.log")]
    NoHosts(String),
    /// A page without the hosts of a folder that brought no rows.
    #[error("{0} hosts of the folder are missing in the page, which says so")]
    HostsMissing(usize),
    /// Signals cannot be watched for.
    #[error("cannot watch for signals: {0}")]
    Signals(#[source] io::Error),
    /// A signal ended the run.
    #[error("ended by signal {0}; the table says what was done until then")]
    Signal(u8),
    /// A signal came before the page was in its place.
    #[error("ended by signal {0}; the page is not written")]
    Ended(u8),
    /// An input cannot be opened.
    #[error("cannot open {name}: {error}")]
    Open {
        /// The input's name.
        name: String,
        /// The system's reason.
        #[source]
        error: io::Error,
    },
    /// Standard output takes no more.
    #[error("cannot write to standard output: {0}")]
    Output(#[source] io::Error),
    /// A side of a comparison that is not one thing.
    #[error("{first_place} and {place} are of different machines or settings{differs}")]
    Several {
        /// A stream.
        place: String,
        /// One before it.
        first_place: String,
        /// In what, if a note tells.
        differs: String,
    },
    /// Sides of a comparison that were not measured alike.
    #[error("mismatched settings: {0}")]
    Unlike(String),
    /// Sides of a comparison that have nothing in common.
    #[error("nothing to compare: no layout, block and reader, and no question, is known in both")]
    NothingInCommon,
    /// The comparison has found a change.
    #[error("changed: {splits} splits, {answers} answers, {rates} rates{beyond}")]
    Changed {
        /// Settings whose split pages differ.
        splits: usize,
        /// Questions that were answered otherwise.
        answers: usize,
        /// Rates beyond the threshold.
        rates: usize,
        /// The threshold, in words; empty without one.
        beyond: String,
    },
    /// The page would take the place of an input.
    #[error("the page would be written over its input {0}")]
    OverInput(String),
    /// The page cannot be written down.
    #[error("cannot make the page: {0}")]
    Page(String),
    /// Streams of the same label, kernel and machine that were not measured alike.
    #[error(
        "mismatched settings: '{key}' is '{found}' in {place} and '{first}' in {first_place}; \
         label and kernel are the same"
    )]
    Mismatch {
        /// The note's key.
        key: String,
        /// Its value in the later stream.
        found: String,
        /// That stream.
        place: String,
        /// Its value in the first stream.
        first: String,
        /// That stream.
        first_place: String,
    },
    /// The same rows for the second time: counted twice they would look like more evidence.
    #[error("{place} has the same rows as {first_place}")]
    Twice {
        /// The later stream.
        place: String,
        /// The first one.
        first_place: String,
    },
    /// The inputs are sound and hold no row.
    #[error("no row to summarise")]
    NoRows,
    /// A kernel's or a layout's name does not fit a line of the summary.
    #[error("a name in the rows is longer than any the appliance writes")]
    LongName,
}

impl Failure {
    /// The exit status, as the interface fixes them.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Open { .. }
            | Self::Output(_)
            | Self::Page(_)
            | Self::Host(_)
            | Self::NotFetched { .. }
            | Self::NoHosts(_)
            | Self::Signals(_) => 1,
            Self::Sizes(error) => error.status(),
            Self::Machines { untrusted, .. } if !untrusted => 1,
            Self::Signal(number) | Self::Ended(number) => 128_u8.saturating_add(*number),
            Self::Usage(_) | Self::OverInput(_) => 2,
            Self::Changed { .. } => 4,
            Self::Stream(error) if !error.is_untrusted() => 1,
            Self::Stream(_)
            | Self::Machines { .. }
            | Self::Mismatch { .. }
            | Self::Twice { .. }
            | Self::Several { .. }
            | Self::Unlike(_)
            | Self::NothingInCommon
            | Self::HostsMissing(_)
            | Self::NoRows
            | Self::LongName => 3,
        }
    }

    /// What to do about it, in one line.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let remedy = match self {
            Self::Host(error) => return error.remedy(),
            Self::Sizes(error) => return error.remedy(),
            Self::Stream(error) => error.problem.remedy(),
            Self::Mismatch { .. } => "summarise them one by one, or give each run its --label",
            Self::Several { .. } => "give one machine in one setting for each side",
            Self::Unlike(_) => "measure both alike, or say --allow-mismatch",
            Self::HostsMissing(_) => "see to them, or say --partial",
            Self::OverInput(_) => "name another file with -o",
            Self::Twice { .. } => "give every run once",
            Self::Machines { has_log: true, .. } => "each machine's console is in its .log",
            _ => return None,
        };
        Some(remedy.to_owned())
    }
}
