//! What the summary keeps of a row.

use crate::emit::bench_row::BenchRow;
use crate::emit::record::Status;

/// A short name from a row: a method, a layout. At most 16 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    bytes: [u8; 16],
    len: u8,
}

impl Name {
    /// `None` if `text` is longer than any name this program writes.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut name = Self::default();
        name.bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        name.len = u8::try_from(text.len()).ok()?;
        Some(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Always text: `new` took it from a str.
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("?")
    }
}

/// How a case ended, without the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was read.
    Ok,
    /// A read ended early.
    Short,
    /// A read failed.
    Errno,
    /// Not measured, or not to be trusted.
    Skipped,
}

impl Outcome {
    /// All but `Ok`, with what the summary calls them.
    pub(super) const FAILURES: [(Self, &'static str); 3] = [
        (Self::Short, "short"),
        (Self::Errno, "failed with an errno"),
        (Self::Skipped, "skipped"),
    ];
}

/// One case, as far as the summary needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which stream it came from; only cases of one stream are paired.
    pub source: u32,
    /// `contiguous` or `vma`.
    pub layout: Name,
    /// `small` or `thp`.
    pub pages: Name,
    /// For `vma`.
    pub segment_pages: Option<u64>,
    /// Asked for by one read.
    pub block_bytes: u64,
    /// The reader.
    pub method: Name,
    /// From 1.
    pub repeat: u64,
    /// Returned by one pass.
    pub bytes_per_pass: Option<u64>,
    /// Of the cold pass.
    pub cold_ns: Option<u64>,
    /// Of all warm passes.
    pub warm_ns: Option<u64>,
    /// How many of those.
    pub warm_passes: u64,
    /// `pfn`, `exclusive` or `none`.
    pub evidence: Name,
    /// Shared before.
    pub tracked_pages: Option<u64>,
    /// Of these, no longer shared.
    pub split_pages: Option<u64>,
    /// Charged to the tool over the warm passes.
    pub reader_minflt_warm: Option<u64>,
    /// Of the child's own first write to each page.
    pub first_write_ns: Option<u64>,
    /// Why `hybrid` pinned no anonymous page; empty if it did, and for the other readers.
    pub not_pinned: Name,
    /// How it ended.
    pub outcome: Outcome,
}

impl Sample {
    /// What the summary keeps of `row`; `None` if a name in it is none that this program
    /// writes.
    #[must_use]
    pub fn from_row(row: &BenchRow<'_>, source: u32) -> Option<Self> {
        Some(Self {
            source,
            layout: Name::new(row.layout)?,
            pages: Name::new(row.pages)?,
            segment_pages: row.segment_pages,
            block_bytes: row.block_bytes,
            method: Name::new(row.method)?,
            repeat: row.repeat,
            bytes_per_pass: row.bytes_per_pass,
            cold_ns: row.cold_ns,
            warm_ns: row.warm_ns,
            warm_passes: row.warm_passes,
            evidence: Name::new(row.evidence)?,
            tracked_pages: row.tracked_pages,
            split_pages: row.split_pages,
            reader_minflt_warm: row.reader_minflt_warm,
            first_write_ns: row.first_write_ns,
            not_pinned: Name::new(row.not_pinned)?,
            outcome: match row.status {
                Status::Ok => Outcome::Ok,
                Status::Short(_) => Outcome::Short,
                Status::Errno(_) => Outcome::Errno,
                Status::Skipped(_) => Outcome::Skipped,
            },
        })
    }

    /// Nanoseconds a page of the child's own first write, which is to every page of the arena,
    /// whether it was shared or not; of a case that ended well, which has read all of it.
    #[must_use]
    pub fn first_write_page_ns(&self, page_bytes: u64) -> Option<u64> {
        let pages = self.bytes_per_pass?.checked_div(page_bytes)?;
        let ns = self
            .first_write_ns
            .filter(|_| self.outcome == Outcome::Ok)?;
        ns.checked_div(pages)
    }

    /// Cases that can be compared: the same memory, the same blocks.
    #[must_use]
    pub fn group(&self) -> (Name, Name, Option<u64>, u64) {
        (
            self.layout,
            self.pages,
            self.segment_pages,
            self.block_bytes,
        )
    }

    /// Readers in alphabetical order, which puts `proc` first; the ceiling comes last.
    #[must_use]
    pub fn method_key(&self) -> (bool, Name) {
        (self.method.as_str() == "memcpy", self.method)
    }

    /// Cases of different readers that have the same are a pair.
    #[must_use]
    pub fn pair_key(&self) -> (u32, u64) {
        (self.source, self.repeat)
    }

    /// The order in which [`write`](super::write) and [`paired`](super::paired) need them: by group,
    /// then by reader, then by pair.
    pub fn sort_key(&self) -> impl Ord + use<> {
        (self.group(), self.method_key(), self.pair_key())
    }
}

/// Which passes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The first pass, with what it causes in the target.
    Cold,
    /// The passes after it.
    Warm,
}

impl Phase {
    /// In the order they are measured.
    pub const BOTH: [Self; 2] = [Self::Cold, Self::Warm];

    /// `cold` or `warm`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }

    /// (bytes, nanoseconds) of a case that ended well.
    #[must_use]
    pub fn work(self, sample: &Sample) -> Option<(u64, u64)> {
        if sample.outcome != Outcome::Ok {
            return None;
        }
        let bytes = sample.bytes_per_pass?;
        match self {
            Self::Cold => Some((bytes, sample.cold_ns?)),
            Self::Warm => Some((bytes.checked_mul(sample.warm_passes)?, sample.warm_ns?)),
        }
    }
}
