//! The verdict: what the data say, in a sentence or two.

use super::kernels::is_real;
use super::names;
use crate::figures;
use crate::groups::{
    Arm, Comparison, Group, compare, groups, is_unshared, methods, percent, split,
};
use crate::matrix::split::Split;
use crate::runs::{Real, Run};
use crate::text::shown;
use cowitness::emit::summary::{Outcome, Phase, Sample};

/// The first section.
pub struct Verdict {
    /// One or two sentences, of the record that says most about reading memory.
    pub sentences: Vec<String>,
    /// What is to be known before times are looked at.
    pub doubts: Vec<String>,
    /// Figures, large.
    pub figures: Vec<Figure>,
}

/// One large figure.
pub struct Figure {
    pub value: String,
    pub about: String,
}

/// The most sentences.
const SENTENCES_MAX: usize = 2;

/// So many runs of one machine are named; of more it is said how many.
const NAMED_MAX: usize = 4;

/// The two readers that a headline is about, if both were measured.
const HEADLINE: [&str; 2] = ["proc", "vmread"];

/// Of all runs; the figures are of the first that may be real, else shares alone of the first.
/// `others` is what another record says, if neither `bench` nor `probe` says anything; `doubts`
/// go with whatever is said.
pub fn of(runs: &[Run], others: Vec<String>, doubts: Vec<String>) -> Verdict {
    let mut sentences: Vec<String> = splits(runs).into_iter().collect();
    let mut figures = Vec::new();
    let first = runs
        .iter()
        .find(|run| is_real(run, runs) != Real::No && !run.samples.is_empty());
    if let Some(run) = first {
        let groups = groups(&run.samples);
        figures.extend(shares(run));
        let found = headline(&groups);
        if let Some((group, found)) = &found {
            sentences.extend(speed(run, group, found, runs));
            figures.extend(
                found
                    .iter()
                    .filter_map(|(phase, found)| figure(group, *phase, found)),
            );
        }
        figures = named(figures, run, runs);
    } else if let Some(run) = runs.iter().find(|run| !run.samples.is_empty()) {
        figures.extend(named(shares(run), run, runs));
    }
    if sentences.is_empty() {
        sentences.extend(answers(runs));
    }
    if sentences.is_empty() {
        sentences.extend(others);
    }
    if sentences.is_empty() {
        sentences.extend(measured(runs));
    }
    sentences.truncate(SENTENCES_MAX);
    Verdict {
        sentences,
        doubts,
        figures,
    }
}

/// Where nothing else is to be said: which records there are.
fn measured(runs: &[Run]) -> Option<String> {
    let records = |run: &Run| {
        let mut records: Vec<String> = Vec::new();
        for source in &run.sources {
            if !records.contains(&source.record) {
                records.push(source.record.clone());
            }
        }
        figures::list(&records)
    };
    let said: Vec<(&Run, String)> = runs.iter().map(|run| (run, records(run))).collect();
    by_words(&said, |places, records| {
        format!("measured on {places}: {records}, of which nothing makes a headline")
    })
}

/// Figures of one run among several say which.
fn named(figures: Vec<Figure>, run: &Run, all: &[Run]) -> Vec<Figure> {
    let place = place(run, all);
    let named = |mut figure: Figure| {
        figure.about += &place;
        figure
    };
    figures.into_iter().map(named).collect()
}

fn place(run: &Run, all: &[Run]) -> String {
    match all {
        [_] => String::new(),
        all => format!(" on {}", names::place(run, all.iter())),
    }
}

/// What readers split.
fn splits(runs: &[Run]) -> Option<String> {
    let cases: Vec<&Run> = runs.iter().filter(|run| !run.samples.is_empty()).collect();
    let said: Vec<(&Run, String)> = cases.iter().map(|run| (*run, split_words(run))).collect();
    by_words(&said, |places, words| format!("on {places}, {words}"))
}

/// A sentence with a clause for each set of machines of which the same is said; `None`: nothing
/// is.
fn by_words(said: &[(&Run, String)], clause: impl Fn(String, &str) -> String) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for (_, found) in said {
        if !words.contains(&&**found) {
            words.push(found);
        }
    }
    let one = |words: &&str| {
        let of = |same: bool| {
            let runs = said
                .iter()
                .filter(move |(_, found)| (found == words) == same);
            runs.map(|(run, _)| *run).collect::<Vec<_>>()
        };
        clause(places(&of(true), &of(false)), words)
    };
    let clauses: Vec<String> = words.iter().map(one).collect();
    let text = clauses.join("; ");
    let mut letters = text.chars();
    let first = letters.next()?.to_ascii_uppercase();
    Some(format!("{first}{}.", letters.as_str()))
}

/// The machines; many of them from the oldest kernel to the newest, if none of the `others`
/// is in between.
fn places(runs: &[&Run], others: &[&Run]) -> String {
    let all = || runs.iter().chain(others).copied();
    let mut names: Vec<String> = Vec::new();
    for run in runs {
        let machine = run.machine.words();
        let is_like = |other: &&Run| other.machine.words() == machine;
        let mine = runs.iter().copied().filter(is_like).count();
        let name = match all().filter(is_like).count() {
            all if all == mine => machine,
            all if mine > NAMED_MAX => format!("{mine} of {all} runs of {machine}"),
            _ => names::place(run, all()),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut kernels: Vec<&str> = runs.iter().map(|run| &*run.machine.kernel).collect();
    kernels.sort_by_key(|release| numbers(release));
    let (Some(first), Some(last)) = (kernels.first(), kernels.last()) else {
        return String::new();
    };
    let range = numbers(first)..=numbers(last);
    let inside = |run: &&Run| range.contains(&numbers(&run.machine.kernel));
    if names.len() <= 2 || others.iter().any(inside) {
        return figures::list(&names);
    }
    let ends = [first, last].map(|release| shown(release.as_bytes()));
    format!("{} machines, Linux {} to {}", runs.len(), ends[0], ends[1])
}

/// The numbers of a release, by which releases are older and newer.
fn numbers(release: &str) -> Vec<u64> {
    let parts = release.split(|letter: char| !letter.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

fn split_words(run: &Run) -> String {
    let methods = methods(&run.samples);
    if methods.is_empty() {
        return "only copies within one process were measured, and no reader".to_owned();
    }
    let splits = methods
        .iter()
        .map(|method| split(method, run.samples.iter()));
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for split in splits {
        let mine = |one: &&Sample| one.method.as_str() == split.method;
        let ended_badly = |one: &&Sample| one.outcome != Outcome::Ok;
        let failed = run.samples.iter().filter(mine).filter(ended_badly).count();
        let words = share_words(&split, failed as u64);
        match kinds.iter_mut().find(|(known, _)| *known == words) {
            Some((_, methods)) => methods.push(split.method),
            None => kinds.push((words, vec![split.method])),
        }
    }
    let clause = |(words, methods): &(String, Vec<String>)| {
        format!("reading with {} {words}", figures::list(methods))
    };
    kinds.iter().map(clause).collect::<Vec<_>>().join("; ")
}

/// `failed`: cases that did not end well; others may have ended well and show nothing.
fn share_words(split: &Split, failed: u64) -> String {
    let all = split.ok + split.not_ok;
    let kinds = [
        (failed, "did not end well"),
        (split.not_ok.saturating_sub(failed), "have no evidence"),
    ];
    let lost: Vec<String> = kinds
        .iter()
        .filter(|(lost, _)| *lost > 0)
        .map(|(lost, why)| format!("{lost} of {all} cases {why}"))
        .collect();
    let lost = match lost.is_empty() {
        true => String::new(),
        false => format!(" ({})", lost.join(", ")),
    };
    let words = match (split.tracked, split.split) {
        // As with `--exclusive`: the child had written every page itself.
        _ if is_unshared(split) => "could split nothing: no page was shared".to_owned(),
        (0, _) => "changed nobody knows what: no case shows it".to_owned(),
        (_, 0) => "left every shared page shared".to_owned(),
        (tracked, pages) if tracked == pages => {
            "gave the target a copy of its own of every page that fork had shared".to_owned()
        }
        _ => format!("split {} of the shared pages", percent(split)),
    };
    words + &lost
}

fn shares(run: &Run) -> Vec<Figure> {
    let all = methods(&run.samples);
    let is_named = |method: &String| HEADLINE.contains(&&**method);
    let any = all.iter().any(is_named);
    let wanted = |method: &&String| all.len() <= 2 || !any || is_named(method);
    let figure = |method: &String| {
        let split = split(method, run.samples.iter());
        Figure {
            value: percent(&split),
            about: format!("of shared pages split by {method}"),
        }
    };
    all.iter().filter(wanted).take(4).map(figure).collect()
}

type Found<'s> = Vec<(Phase, Comparison<'s>)>;

/// The group the headline is of: one with both readers of [`HEADLINE`], if there is one, and
/// contiguous memory, the largest block.
fn headline<'g, 's>(groups: &'g [Group<'s>]) -> Option<(&'g Group<'s>, Found<'s>)> {
    let pair = |group: &'g Group<'s>| -> Option<(Arm<'s>, Arm<'s>)> {
        let named =
            HEADLINE.map(|name| group.arms.iter().copied().find(|arm| arm.method() == name));
        if let [Some(base), Some(other)] = named {
            return Some((base, other));
        }
        let mut readers = group
            .arms
            .iter()
            .copied()
            .filter(|arm| arm.method() != crate::groups::CEILING);
        Some((readers.next()?, readers.next()?))
    };
    let compared = |group: &'g Group<'s>| {
        let (base, other) = pair(group)?;
        let both = HEADLINE.iter().all(|name| group.arm(name).is_some());
        let found = Phase::BOTH
            .into_iter()
            .filter_map(|phase| Some((phase, compare(base, other, phase)?)));
        let found: Found<'s> = found.collect();
        (!found.is_empty()).then_some((both, group, found))
    };
    let all = groups.iter().filter_map(compared);
    let rank = |(both, group, _): &(bool, &Group<'_>, Found<'_>)| {
        (*both, group.layout == "contiguous", group.block_bytes)
    };
    let (_, group, found) = all.max_by_key(rank)?;
    Some((group, found))
}

fn speed(run: &Run, group: &Group<'_>, found: &Found<'_>, all: &[Run]) -> Option<String> {
    let clause = |(phase, found): &(Phase, Comparison<'_>)| {
        let read = match phase {
            Phase::Cold => "the first (cold) read",
            Phase::Warm => "repeated (warm) reads",
        };
        let Comparison { winner, loser, .. } = found;
        match (found.resolved, found.interval) {
            (true, interval) => {
                let times = figures::ratio(found.median_ppm);
                let ends = interval.map_or_else(String::new, |ends| {
                    let [low, high] = [ends.low_ppm, ends.high_ppm].map(figures::ratio);
                    format!(" [{low}, {high}]")
                });
                format!("{winner} was {times}{ends} times as fast as {loser} for {read}")
            }
            (_, Some(_)) => {
                format!("no difference between {winner} and {loser} is resolved for {read}")
            }
            _ => format!("there are too few cases to compare {winner} and {loser} for {read}"),
        }
    };
    let clauses: Vec<String> = found.iter().map(clause).collect();
    let place = place(run, all);
    (!clauses.is_empty()).then(|| {
        let what = format!(
            "In {} blocks of {} memory{place}, ",
            group.block(),
            group.layout
        );
        what + &clauses.join("; ") + "."
    })
}

fn figure(group: &Group<'_>, phase: Phase, found: &Comparison<'_>) -> Option<Figure> {
    let read = match phase {
        Phase::Cold => "cold read",
        Phase::Warm => "warm read",
    };
    found.resolved.then(|| Figure {
        value: figures::gain(found.median_ppm),
        about: format!(
            "faster {read} with {} at {}, {}",
            found.winner,
            group.block(),
            group.layout
        ),
    })
}

/// Without any case: what the probes say of PROT_NONE.
fn answers(runs: &[Run]) -> Option<String> {
    let said: Vec<(&Run, String)> = runs
        .iter()
        .filter_map(|run| Some((run, answer_words(run)?)))
        .collect();
    by_words(&said, |places, words| {
        format!("on {places}, a page that is PROT_NONE gives: {words}")
    })
}

fn answer_words(run: &Run) -> Option<String> {
    let says = |method: &&str| {
        let cell = run.probes.cell("prot-none", "page", method)?;
        Some(format!("{} by {method}", cell.words()))
    };
    let said: Vec<String> = HEADLINE.iter().filter_map(says).collect();
    (!said.is_empty()).then(|| figures::list(&said))
}
