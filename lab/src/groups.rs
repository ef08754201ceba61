//! Cases put together: those of one layout and block are a group, those of one reader in it
//! an arm.

use crate::figures;
use crate::matrix::split::{Split, counts};
use cowitness::emit::summary::{Outcome, Phase, SCRATCH_PER_SAMPLE, Sample, paired};
use cowitness::stats::{Direction, Interval, Summary, mib_s_centi};

/// The reader that is no reader: a copy within one process.
pub const CEILING: &str = "memcpy";

/// Cases that can be compared.
pub struct Group<'s> {
    /// `contiguous`, `vma S=16`, with the backing if it is not small pages.
    pub layout: String,
    /// Asked for by one read.
    pub block_bytes: u64,
    /// By reader; the ceiling comes last.
    pub arms: Vec<Arm<'s>>,
}

/// The cases of one reader; at least one.
#[derive(Clone, Copy)]
pub struct Arm<'s>(pub &'s [Sample]);

/// Groups of `samples`, which are sorted by [`Sample::sort_key`].
pub fn groups(samples: &[Sample]) -> Vec<Group<'_>> {
    let chunks = samples.chunk_by(|a, b| a.group() == b.group());
    let group =
        |cases: &'_ [Sample]| -> (String, u64) { (layout(&cases[0]), cases[0].block_bytes) };
    chunks
        .map(|cases| {
            let (layout, block_bytes) = group(cases);
            let arms = cases.chunk_by(|a, b| a.method == b.method);
            Group {
                layout,
                block_bytes,
                arms: arms.map(Arm).collect(),
            }
        })
        .collect()
}

/// How the memory is cut and backed.
pub fn layout(sample: &Sample) -> String {
    let mut name = sample.layout.as_str().to_owned();
    if let Some(pages) = sample.segment_pages {
        name += &format!(" S={pages}");
    }
    if sample.pages.as_str() != "small" {
        name += " ";
        name += sample.pages.as_str();
    }
    name
}

impl Group<'_> {
    /// Whether it is of the same layout and block.
    pub fn is_like(&self, other: &Group<'_>) -> bool {
        self.layout == other.layout && self.block_bytes == other.block_bytes
    }

    /// `256 KiB`.
    pub fn block(&self) -> String {
        figures::bytes(self.block_bytes)
    }

    /// The arms that are readers.
    pub fn readers(&self) -> impl Iterator<Item = Arm<'_>> {
        self.arms
            .iter()
            .copied()
            .filter(|arm| arm.method() != CEILING)
    }

    /// The arm of one reader.
    pub fn arm(&self, method: &str) -> Option<Arm<'_>> {
        self.arms.iter().copied().find(|arm| arm.method() == method)
    }
}

impl<'s> Arm<'s> {
    /// The reader.
    pub fn method(self) -> &'s str {
        self.0[0].method.as_str()
    }

    /// Hundredths of MiB/s of each case that ended well, in the order of the cases.
    pub fn rates(self, phase: Phase) -> Vec<u64> {
        let rate = |one| {
            phase
                .work(one)
                .and_then(|(bytes, ns)| mib_s_centi(bytes, ns))
        };
        self.0.iter().filter_map(rate).collect()
    }

    /// Their order statistics, in parts of hundredths of MiB/s, as [`figures::rate`] takes them.
    pub fn summary(self, phase: Phase) -> Option<Summary> {
        let rates = self.rates(phase);
        Summary::new(&mut rates.into_iter().map(figures::parts).collect::<Vec<_>>())
    }

    /// Nanoseconds a page of the child's first write after the read.
    pub fn first_writes(self, page_bytes: u64) -> Vec<u64> {
        let of = |one: &Sample| one.first_write_page_ns(page_bytes);
        self.0.iter().filter_map(of).collect()
    }
}

/// What the cases of one reader have split together.
pub fn split<'s>(method: &str, samples: impl Iterator<Item = &'s Sample>) -> Split {
    let mut split = Split {
        method: method.to_owned(),
        ..Split::default()
    };
    for one in samples.filter(|one| one.method.as_str() == method) {
        let pages = counts(one.evidence.as_str(), (one.tracked_pages, one.split_pages));
        match (one.outcome, pages) {
            (Outcome::Ok, Some((tracked, pages))) => {
                split.ok += 1;
                split.tracked = split.tracked.saturating_add(tracked);
                split.split = split.split.saturating_add(pages);
            }
            _ => split.not_ok += 1,
        }
    }
    split
}

/// The readers of a run, the copy within one process left out: it reads nobody.
pub fn methods(samples: &[Sample]) -> Vec<String> {
    let mut keys: Vec<_> = samples.iter().map(Sample::method_key).collect();
    keys.sort_unstable();
    keys.dedup();
    let names = keys.iter().map(|(_, name)| name.as_str().to_owned());
    names.filter(|name| name != CEILING).collect()
}

/// As [`Split::percent`], with the sign at the figure if there is one; in words if nothing was
/// shared.
pub fn percent(split: &Split) -> String {
    if is_unshared(split) {
        return "no page shared".to_owned();
    }
    let text = split.percent();
    if split.tracked == 0 {
        return text;
    }
    match text.split_once(" (") {
        Some((figure, lost)) => format!("{figure} % ({lost}"),
        None => format!("{text} %"),
    }
}

/// Whether somebody looked, and there was no shared page to split: the child had written every
/// page itself, as with `--exclusive all`.
pub const fn is_unshared(split: &Split) -> bool {
    split.tracked == 0 && split.ok > 0
}

/// Two readers, told from the faster side.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'s> {
    /// Faster by the median.
    pub winner: &'s str,
    /// The other.
    pub loser: &'s str,
    /// Median ratio of paired cases, at least 1 (parts per million).
    pub median_ppm: u64,
    /// Where the true median ratio lies.
    pub interval: Option<Interval>,
    /// Whether all of the interval lies above 1.
    pub resolved: bool,
}

/// Compares two arms of one group; `None` if they have no pair.
pub fn compare<'s>(base: Arm<'s>, other: Arm<'s>, phase: Phase) -> Option<Comparison<'s>> {
    let longer = base.0.len().max(other.0.len());
    let mut scratch = vec![0; longer * SCRATCH_PER_SAMPLE];
    let mut ratio = |one: Arm<'_>, two: Arm<'_>| paired(one.0, two.0, phase, &mut scratch);
    let forth = ratio(base, other)?;
    let (ratio, winner, loser) = if forth.median_ppm < 1_000_000 {
        (ratio(other, base)?, base, other)
    } else {
        (forth, other, base)
    };
    Some(Comparison {
        winner: winner.method(),
        loser: loser.method(),
        median_ppm: ratio.median_ppm,
        interval: ratio.interval,
        resolved: ratio.verdict() == Direction::Above,
    })
}

impl Comparison<'_> {
    /// One line, as the summary says it.
    pub fn words(&self) -> String {
        let Self { winner, loser, .. } = self;
        let times = figures::ratio(self.median_ppm);
        let interval = self.interval.map(|interval| {
            let ends = [interval.low_ppm, interval.high_ppm].map(figures::ratio);
            format!("[{}, {}]", ends[0], ends[1])
        });
        match interval {
            None => format!("{winner} against {loser}: {times}×, too few pairs for an interval"),
            Some(interval) if self.resolved => {
                format!("{winner} {times}× faster than {loser} {interval}")
            }
            Some(interval) => {
                format!("{winner} against {loser}: {times}× {interval}, not resolved")
            }
        }
    }
}
