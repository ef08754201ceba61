//! Which block size to use: what a run with several of them lets recommend.

use super::sample::{Phase, Sample};
use super::table::{add_rate, summarise};
use super::words::{cut_title, next_method};
use super::{Lines, Sink, SummaryError, add_bytes};
use crate::stats::mib_s_centi;
use crate::text::Text;

/// A block this much slower than the best is as good, if it is smaller: per cent.
const AS_GOOD: u64 = 5;
/// Fewer cases of a block say nothing.
const CASES_MIN: usize = 3;

/// The smallest block of each layout and reader that is about as fast as its best.
pub(super) fn recommended<S: Sink>(
    out: &mut Lines<'_, S>,
    samples: &[Sample],
    scratch: &mut [u64],
) -> Result<(), SummaryError<S::Error>> {
    let mut titled = false;
    for cut in samples.chunk_by(|a, b| cut_of(a) == cut_of(b)) {
        let mut after = None;
        while let Some(key) = next_method(cut, after) {
            after = Some(key);
            let cases = cut.chunk_by(|a, b| a.block_bytes == b.block_bytes && a.method == b.method);
            let mine = cases.filter(|cases| cases[0].method_key() == key);
            let Some(line) = line(&mut mine.clone(), scratch) else {
                continue;
            };
            if !core::mem::replace(&mut titled, true) {
                out.text(
                    "\nBlock to use: the smallest whose median is within 5 % of the reader's best",
                )?;
            }
            out.line(&line)?;
        }
    }
    Ok(())
}

fn cut_of(sample: &Sample) -> impl Ord + use<> {
    (sample.layout, sample.pages, sample.segment_pages)
}

/// Of one reader's cases, block by block, smallest first. `None` unless there are two.
fn line<'s>(
    blocks: &mut (impl Iterator<Item = &'s [Sample]> + Clone),
    scratch: &mut [u64],
) -> Option<Text> {
    let rates = || blocks.clone().filter(|cases| cases.len() >= CASES_MIN);
    let count = rates().count();
    let (mut best, mut best_bytes) = (0, 0);
    for cases in rates() {
        let rate = median(cases, scratch)?;
        if rate > best {
            (best, best_bytes) = (rate, cases[0].block_bytes);
        }
    }
    let good = rates().find_map(|cases| {
        let rate = median(cases, scratch)?;
        (rate * 100 >= best * (100 - AS_GOOD)).then_some((cases, rate))
    });
    let (cases, rate) = good.filter(|_| count > 1)?;
    let mut line = cut_title(&cases[0]);
    line.add(cases[0].method.as_str()).pad_to(32);
    line.right(8, &|part| add_bytes(part, cases[0].block_bytes));
    line.add("  ");
    add_rate(&mut line, rate);
    line.add(" MiB/s");
    if cases[0].block_bytes == best_bytes {
        line.add(", the best");
    } else {
        line.add("; best ");
        add_rate(&mut line, best);
        line.add(" at ");
        add_bytes(&mut line, best_bytes);
    }
    line.add(" of ").number(count as u64).add(" blocks");
    Some(line)
}

/// Median rate as [`add_rate`] takes it, of warm passes if there are any.
fn median(cases: &[Sample], scratch: &mut [u64]) -> Option<u64> {
    let has_warm = cases.iter().any(|one| one.warm_ns.is_some());
    let phase = if has_warm { Phase::Warm } else { Phase::Cold };
    let mut rates = cases.iter().filter_map(|one| {
        let (bytes, ns) = phase.work(one)?;
        mib_s_centi(bytes, ns)
    });
    Some(summarise(&mut rates, scratch)?.median)
}
