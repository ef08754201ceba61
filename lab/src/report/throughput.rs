//! How fast: bars of the medians, and the exact table beneath.

use crate::figures;
use crate::groups::{Arm, CEILING, Group, compare};
use cowitness::emit::summary::Phase;
use cowitness::stats::Summary;

/// The most cases that are drawn as a dot each; of more, the shares are drawn.
const DOTS_MAX: usize = 60;

/// Into how many parts the width is cut for those.
const BINS: usize = 100;

/// All that is drawn and listed of one run.
pub struct Throughput {
    /// A chart for each layout and pass.
    pub charts: Vec<Chart>,
    /// A line for each layout, block, pass and reader.
    pub table: Vec<Line>,
    /// Layouts, in their order.
    pub layouts: Vec<String>,
}

/// One layout, cold or warm.
pub struct Chart {
    pub layout: String,
    pub phase: &'static str,
    pub ticks: Vec<Tick>,
    pub blocks: Vec<Block>,
}

/// A place on the axis.
pub struct Tick {
    pub at: String,
    pub label: String,
    /// `start`, `middle` or `end`: how the label stands to its place.
    pub anchor: &'static str,
}

/// The bars of one block size.
pub struct Block {
    pub name: String,
    pub bars: Vec<Bar>,
    /// Place and rate of the copy within one process.
    pub ceiling: Option<Tick>,
    /// Who is faster.
    pub said: Vec<String>,
}

/// One reader.
pub struct Bar {
    pub method: String,
    pub class: &'static str,
    pub median: String,
    pub width: String,
    pub p25: String,
    pub p75: String,
    pub dots: Vec<Dot>,
    pub bins: Vec<Bin>,
}

/// One case: across by its rate, down by its turn, so that equal ones show.
pub struct Dot {
    pub x: String,
    pub y: u32,
}

/// A share of many cases.
pub struct Bin {
    pub x: String,
    pub width: String,
    /// From 0.15 to 1.
    pub opacity: String,
}

/// A line of the table. Rates in MiB/s.
pub struct Line {
    pub layout: String,
    pub block_bytes: u64,
    pub block: String,
    pub phase: &'static str,
    pub method: String,
    pub n: u64,
    pub rates: [String; 6],
    pub outliers: u64,
}

/// The class by which a reader is coloured and hatched.
pub fn class(method: &str) -> &'static str {
    let known = [
        "proc",
        "proc-seek",
        "vmread",
        "vmread-batch",
        "ptrace",
        "kcore",
        "map-files",
        "hybrid",
        "memcpy",
    ];
    known
        .into_iter()
        .find(|name| *name == method)
        .unwrap_or("other")
}

impl Throughput {
    /// Of sorted groups; `None` if no case has a rate.
    pub fn of(groups: &[Group<'_>]) -> Option<Self> {
        let table = table(groups);
        let end = end(groups)?;
        let mut layouts: Vec<String> = Vec::new();
        for group in groups {
            if !layouts.contains(&group.layout) {
                layouts.push(group.layout.clone());
            }
        }
        let charts = layouts.iter().flat_map(|layout| {
            Phase::BOTH
                .into_iter()
                .filter_map(|phase| chart(groups, layout, phase, end))
        });
        Some(Self {
            charts: charts.collect(),
            table,
            layouts,
        })
    }
}

/// Where all axes of a run end, so that switching does not change the scale: at the fastest
/// case of a reader. A copy within one process may be ten times faster, and is drawn only if
/// it leaves readers half of the width.
fn end(groups: &[Group<'_>]) -> Option<u64> {
    let most = |arms: &mut dyn Iterator<Item = Arm<'_>>| {
        let rates = arms.flat_map(|arm| Phase::BOTH.map(|phase| arm.rates(phase)));
        rates.flatten().max()
    };
    let readers = most(&mut groups.iter().flat_map(Group::readers));
    let all = most(&mut groups.iter().flat_map(|group| group.arms.iter().copied()))?;
    let end = readers.filter(|readers| all / 2 > *readers).unwrap_or(all);
    Some(figures::round_up(end))
}

fn chart(groups: &[Group<'_>], layout: &str, phase: Phase, end: u64) -> Option<Chart> {
    let groups = groups.iter().filter(|group| group.layout == layout);
    let blocks: Vec<Block> = groups
        .filter_map(|group| block(group, phase, end))
        .collect();
    let tick = |quarter: u64| Tick {
        at: figures::place(quarter, 4),
        label: if quarter == 0 {
            "0".to_owned()
        } else {
            figures::rate(figures::parts(end / 4 * quarter))
        },
        anchor: anchor(quarter * 25),
    };
    (!blocks.is_empty()).then(|| Chart {
        layout: layout.to_owned(),
        phase: phase.name(),
        ticks: (0..=4).map(tick).collect(),
        blocks,
    })
}

fn anchor(percent: u64) -> &'static str {
    match percent {
        0..=9 => "start",
        10..=85 => "middle",
        _ => "end",
    }
}

fn block(group: &Group<'_>, phase: Phase, end: u64) -> Option<Block> {
    let bars: Vec<Bar> = group
        .readers()
        .filter_map(|arm| bar(arm, phase, end))
        .collect();
    let summary = group.arm(CEILING).and_then(|arm| arm.summary(phase));
    let ceiling = summary.map(|summary| ceiling(summary.median, end));
    let mut readers = group.readers();
    let said = readers.next().into_iter().flat_map(|base| {
        let others = group.readers().skip(1);
        others.filter_map(move |other| compare(base, other, phase))
    });
    let said = said.map(|found| found.words()).collect();
    (!bars.is_empty()).then(|| Block {
        name: group.block(),
        bars,
        ceiling,
        said,
    })
}

/// `rate` as [`figures::rate`] takes it.
fn ceiling(rate: u64, end: u64) -> Tick {
    let words = format!("{CEILING} {} MiB/s", figures::rate(rate));
    let end = figures::parts(end);
    if rate > end {
        return Tick {
            at: figures::place(1, 1),
            label: format!("{words}, beyond the scale ▶"),
            anchor: "end",
        };
    }
    let anchor = anchor(rate.saturating_mul(100) / end.max(1));
    let label = match anchor {
        "end" => format!("{words} ▲"),
        _ => format!("▲ {words}"),
    };
    Tick {
        at: figures::place(rate, end),
        label,
        anchor,
    }
}

fn bar(arm: Arm<'_>, phase: Phase, end: u64) -> Option<Bar> {
    let rates = arm.rates(phase);
    let summary = arm.summary(phase)?;
    let at = |rate| figures::place(rate, figures::parts(end));
    let (dots, bins) = if rates.len() <= DOTS_MAX {
        (dots(&rates, end), Vec::new())
    } else {
        (Vec::new(), bins(&rates, end))
    };
    Some(Bar {
        method: arm.method().to_owned(),
        class: class(arm.method()),
        median: figures::rate(summary.median),
        width: at(summary.median),
        p25: at(summary.p25),
        p75: at(summary.p75),
        dots,
        bins,
    })
}

fn dots(rates: &[u64], end: u64) -> Vec<Dot> {
    const ROWS: u32 = 3;
    let rows = (0..ROWS).cycle();
    let dot = |(rate, row): (&u64, u32)| Dot {
        x: figures::place(*rate, end),
        y: 21 + 3 * row,
    };
    rates.iter().zip(rows).map(dot).collect()
}

/// The share of cases in each part of the width; the fullest part is drawn full.
fn bins(rates: &[u64], end: u64) -> Vec<Bin> {
    let mut counts = [0_u64; BINS];
    for rate in rates {
        let place = u128::from(*rate) * BINS as u128 / u128::from(end.max(1));
        let place = usize::try_from(place).unwrap_or(BINS).min(BINS - 1);
        counts[place] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let filled = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let bin = |(index, count): (usize, &u64)| Bin {
        x: figures::place(index as u64, BINS as u64),
        width: figures::place(1, BINS as u64),
        opacity: format!("0.{:02}", 15 + 84 * count / most),
    };
    filled.map(bin).collect()
}

fn table(groups: &[Group<'_>]) -> Vec<Line> {
    let mut lines = Vec::new();
    for group in groups {
        for phase in Phase::BOTH {
            for arm in &group.arms {
                lines.extend(
                    arm.summary(phase)
                        .map(|found| line(group, *arm, phase, &found)),
                );
            }
        }
    }
    lines
}

fn line(group: &Group<'_>, arm: Arm<'_>, phase: Phase, found: &Summary) -> Line {
    let rates = [
        found.min,
        found.p25,
        found.median,
        found.p75,
        found.p95,
        found.max,
    ];
    Line {
        layout: group.layout.clone(),
        block_bytes: group.block_bytes,
        block: group.block(),
        phase: phase.name(),
        method: arm.method().to_owned(),
        n: found.n,
        rates: rates.map(figures::exact),
        outliers: found.outliers,
    }
}
