//! The sentences of the summary.

use super::sample::{Name, Phase, Sample};
use super::table::summarise;
use super::{Lines, Outcome, Sink, SummaryError, add_bytes, add_percent};
use crate::emit::fixed::Centi;
use crate::stats::{Direction, Interval, PairedRatio};
use crate::text::Text;

/// Which reader split how many pages.
pub(super) fn split_pages<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
) -> Result<(), SummaryError<S::Error>> {
    out.text("\nPages split by reading, of those that parent and child shared")?;
    let mut after = None;
    while let Some(key) = next_method(samples, after) {
        after = Some(key);
        out.line(&split_by(key, samples))?;
    }
    evidence(out, samples)?;
    warm_faults(out, samples)?;
    not_pinned(out, samples)
}

fn split_by(key: MethodKey, samples: &[Sample]) -> Text {
    // What is unknown is left out of the sums and of the count of cases.
    let (mut count, mut tracked, mut split) = (0, 0u64, 0u64);
    for one in samples {
        let pages = (one.tracked_pages, one.split_pages);
        if let (Some(shared), Some(gone)) = pages
            && one.method_key() == key
            && one.outcome == Outcome::Ok
        {
            count += 1;
            tracked = tracked.saturating_add(shared);
            split = split.saturating_add(gone);
        }
    }
    let mut line = Text::new();
    line.add("  ").add(key.1.as_str()).pad_to(16);
    if count == 0 {
        line.add("unknown: no case ended well, see the status column");
        return line;
    }
    if tracked == 0 {
        line.right(10, &|part| {
            part.add("none");
        });
        line.add(": no page was shared, in ")
            .number(count)
            .add(" cases");
        return line;
    }
    line.right_number(10, split);
    line.add(" of ").number(tracked).add(" tracked pages, ");
    add_percent(&mut line, split, tracked);
    line.add(", in ").number(count).add(" cases");
    line
}

fn evidence<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
) -> Result<(), SummaryError<S::Error>> {
    let kinds = [
        ("pfn", "frame numbers of parent and child were compared"),
        (
            "exclusive",
            "pagemap bit 56, exclusively mapped: frame numbers need CAP_SYS_ADMIN",
        ),
        ("none", "none: what reading changed is unknown"),
    ];
    for (name, meaning) in kinds {
        let ok = samples.iter().filter(|one| one.outcome == Outcome::Ok);
        let cases = ok.filter(|one| one.evidence.as_str() == name);
        let count = cases.count() as u64;
        if count > 0 {
            let mut line = Text::new();
            line.add("  evidence in ")
                .number(count)
                .add(" cases: ")
                .add(meaning);
            out.line(&line)?;
        }
    }
    Ok(())
}

/// A warm pass over resident pages causes no fault; one that did is pointed out.
fn warm_faults<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
) -> Result<(), SummaryError<S::Error>> {
    let counted = || samples.iter().filter_map(|one| one.reader_minflt_warm);
    let faulted = counted().filter(|&faults| faults > 0).count() as u64;
    let mut line = Text::new();
    match (counted().count(), faulted) {
        (0, _) => return Ok(()),
        (_, 0) => line.add("  no warm pass caused a page fault"),
        _ => line
            .add("  ")
            .number(faulted)
            .add(" cases had page faults in warm passes: see reader_minflt_warm"),
    };
    out.line(&line)
}

/// A figure of `hybrid` that copied all is another than of one that pinned.
fn not_pinned<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
) -> Result<(), SummaryError<S::Error>> {
    let reasons = [
        (
            "large-folios",
            "the machine had huge pages in use that were not all whole, or might have had",
        ),
        (
            "ksm-or-swap",
            "KSM may have joined pages of the child, or swap was in use",
        ),
        ("fault", "a page turned out not to be the child's own"),
    ];
    let ok = || samples.iter().filter(|one| one.outcome == Outcome::Ok);
    let cases = ok().filter(|one| one.method.as_str() == "hybrid").count();
    for (name, meaning) in reasons {
        let count = ok().filter(|one| one.not_pinned.as_str() == name).count();
        if count > 0 {
            let mut line = Text::new();
            line.add("  hybrid copied all anonymous pages in ")
                .number(count as u64)
                .add(" of ")
                .number(cases as u64)
                .add(" cases: ")
                .add(meaning);
            out.line(&line)?;
        }
    }
    Ok(())
}

pub(super) type MethodKey = (bool, Name);

/// The smallest method after `last`; samples are sorted by group, not by method.
pub(super) fn next_method(samples: &[Sample], last: Option<MethodKey>) -> Option<MethodKey> {
    let keys = samples.iter().map(Sample::method_key);
    keys.filter(|key| last.is_none_or(|last| *key > last)).min()
}

/// Who was faster, and how sure that is.
pub(super) fn comparisons<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
    scratch: &mut [u64],
) -> Result<(), SummaryError<S::Error>> {
    let mut least_ppm = u64::MAX;
    let mut titled = false;
    for group in samples.chunk_by(|a, b| a.group() == b.group()) {
        let mut methods = group.chunk_by(|a, b| a.method == b.method);
        let Some(base) = methods.next() else { continue };
        for other in methods {
            if !core::mem::replace(&mut titled, true) {
                out.text("\nWho is faster, by the median ratio of paired cases")?;
            }
            for phase in Phase::BOTH {
                if phase == Phase::Warm && group.iter().all(|one| one.warm_ns.is_none()) {
                    continue;
                }
                let mut line = place(&group[0]);
                line.add(phase.name()).add("  ");
                if let Some(interval) = verdict(&mut line, base, other, phase, scratch) {
                    least_ppm = least_ppm.min(interval.confidence_ppm);
                }
                out.line(&line)?;
            }
        }
    }
    how_sure(out, least_ppm)
}

/// The first columns: layout, block.
pub(super) fn place(sample: &Sample) -> Text {
    let mut line = cut_title(sample);
    line.right(8, &|part| add_bytes(part, sample.block_bytes))
        .add("  ");
    line
}

/// The first column: layout.
pub(super) fn cut_title(sample: &Sample) -> Text {
    let mut line = Text::new();
    line.add("  ").add(sample.layout.as_str());
    if let Some(pages) = sample.segment_pages {
        line.add(" S=").number(pages);
    }
    if sample.pages.as_str() != "small" {
        line.add(" ").add(sample.pages.as_str());
    }
    line.pad_to(16);
    line
}

/// A ratio of 1 in parts per million.
const ONE_PPM: u64 = 1_000_000;

/// Adds who was faster; gives the interval that says so, if there is one.
fn verdict(
    line: &mut Text,
    base: &[Sample],
    other: &[Sample],
    phase: Phase,
    scratch: &mut [u64],
) -> Option<Interval> {
    let (first, second) = (base[0].method, other[0].method);
    let Some(mut ratio) = paired(base, other, phase, scratch) else {
        line.add(first.as_str()).add(" and ").add(second.as_str());
        line.add(": no pair of cases");
        return None;
    };
    let (mut winner, mut loser) = (second, first);
    // Told from the faster side, so that the ratio is one that says something.
    if ratio.median_ppm < ONE_PPM {
        ratio = paired(other, base, phase, scratch).unwrap_or(ratio);
        (winner, loser) = (first, second);
    }
    let resolved = ratio.verdict() == Direction::Above;
    line.add(winner.as_str());
    if !resolved {
        line.add(" against ").add(loser.as_str()).add(":");
    }
    line.add(" ")
        .hundredths(Centi::from_ppm(ratio.median_ppm).0)
        .add("x");
    if resolved {
        line.add(" faster than ").add(loser.as_str());
    }
    match ratio.interval {
        Some(interval) => {
            line.add(" [")
                .hundredths(Centi::from_ppm(interval.low_ppm).0);
            line.add(", ")
                .hundredths(Centi::from_ppm(interval.high_ppm).0);
            line.add("], ");
        }
        None => {
            line.add(", too few pairs for an interval, ");
        }
    }
    if !resolved && ratio.interval.is_some() {
        line.add("not resolved, ");
    }
    line.add("in ")
        .number(ratio.above)
        .add(" of ")
        .number(ratio.n)
        .add(" pairs");
    ratio.interval
}

fn how_sure<S: Sink>(out: &mut Lines<'_, S>, least_ppm: u64) -> Result<(), SummaryError<S::Error>> {
    if least_ppm == u64::MAX {
        return Ok(());
    }
    let mut line = Text::new();
    line.add("  Each interval covers the true median ratio with at least ");
    line.hundredths(least_ppm / 100)
        .add(" % confidence (sign test, no assumption");
    out.line(&line)?;
    out.text("  on the distribution); faster means that all of it lies above 1.")
}

/// Time of `base` over time of `other` in cases of the same stream and repeat: above 1
/// means that `other` is faster. Both are of one group and in the order of
/// [`Sample::sort_key`]; `scratch` needs [`SCRATCH_PER_SAMPLE`](super::SCRATCH_PER_SAMPLE)
/// numbers for each sample of the longer. `None` if there is no pair.
pub fn paired(
    base: &[Sample],
    other: &[Sample],
    phase: Phase,
    scratch: &mut [u64],
) -> Option<PairedRatio> {
    let third = scratch.len() / 3;
    let (base_ns, rest) = scratch.split_at_mut(third);
    let (other_ns, ratios) = rest.split_at_mut(third);
    let mut pairs = 0;
    let mut others = other.iter().peekable();
    for one in base {
        while others
            .next_if(|two| two.pair_key() < one.pair_key())
            .is_some()
        {}
        let Some(two) = others.next_if(|two| two.pair_key() == one.pair_key()) else {
            continue;
        };
        if let (Some((_, base)), Some((_, other))) = (phase.work(one), phase.work(two)) {
            *base_ns.get_mut(pairs)? = base;
            *other_ns.get_mut(pairs)? = other;
            pairs += 1;
        }
    }
    PairedRatio::new(&base_ns[..pairs], &other_ns[..pairs], ratios).ok()
}

/// Who paid for the split: the target's own first write after the inspection.
pub(super) fn first_writes<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
    page_bytes: u64,
    scratch: &mut [u64],
) -> Result<(), SummaryError<S::Error>> {
    let mut titled = false;
    for cases in samples.chunk_by(|a, b| a.group() == b.group() && a.method == b.method) {
        let per_page = |one: &Sample| one.first_write_page_ns(page_bytes);
        let mut per_page = cases.iter().filter_map(per_page);
        let Some(summary) = summarise(&mut per_page, scratch) else {
            continue;
        };
        if !core::mem::replace(&mut titled, true) {
            out.text(
                "\nThe target's own first write to each page after the inspection, ns a page",
            )?;
        }
        let mut line = place(&cases[0]);
        line.add(cases[0].method.as_str()).pad_to(40);
        line.add("median ")
            .number(summary.median)
            .add(", quartiles");
        line.add(" [")
            .number(summary.p25)
            .add(", ")
            .number(summary.p75)
            .add("]");
        out.line(&line)?;
    }
    Ok(())
}
