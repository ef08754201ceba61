//! What it takes to start a program: paired differences of two arms, and the slope over the
//! number of objects.

mod slope;

use super::many::{ROWS_MAX, cut, grouped, losses};
use crate::figures;
use crate::runs::Run;
use crate::runs::others::{Exec, Starts};
use cowitness::stats::{PairedDifference, Summary};
use slope::Slope;
use std::collections::HashMap;

/// The arm that others are compared with, and the one that is the same again.
const BASE: &str = "a";
const NULL: &str = "null";
/// The other program once more, so that both run equally often; compared with nothing.
const TWIN: &str = "null-b";

/// What is said in place of a verdict.
const RESULTLESS: &str = "No result follows: the run was refused or cut. Nothing shows that each arm was one program in all rounds, so no difference is resolved and no line is drawn.";

/// A difference has to be larger than so many of the null arm's.
const NULLS: i128 = 3;

/// What is timed.
const WHAT: [&str; 2] = ["until exec", "until the end"];

/// One stream.
pub struct Startup {
    /// Which one, if there are several.
    pub name: String,
    /// Arms and their programs.
    pub programs: Vec<(String, String)>,
    /// A row an arm.
    pub arms: Vec<Arm>,
    pub differences: Vec<Difference>,
    /// The axis of the differences: its ends, ns.
    pub axis: [String; 2],
    /// Place of no difference.
    pub zero: String,
    pub slope: Option<Slope>,
    pub remarks: Vec<String>,
    /// The same in a sentence.
    pub said: String,
}

/// One arm. Times in ns.
pub struct Arm {
    pub arm: String,
    pub dispatch: String,
    pub objects: String,
    pub n: usize,
    /// P25, median, P75 until exec, then until the end.
    pub times: Vec<String>,
    pub faults: String,
}

/// An arm minus `a`, paired by round. In ns.
pub struct Difference {
    pub arm: String,
    pub what: &'static str,
    pub pairs: u64,
    pub median: String,
    pub interval: String,
    pub verdict: &'static str,
    /// `none` or `some`, by the verdict.
    pub class: &'static str,
    /// Places of the interval's ends and of the median; empty: no interval.
    pub low: String,
    pub high: String,
    pub at: String,
    found: Found,
}

/// A paired difference.
#[derive(Clone, Copy)]
struct Found {
    pairs: u64,
    median: i128,
    interval: Option<[i128; 2]>,
}

/// What tells arms apart.
type Key = (String, String, Option<u64>, String);

fn key(exec: &Exec) -> Key {
    let named = || exec.arm.strip_prefix("n=")?.parse().ok();
    (
        exec.arm.clone(),
        exec.dispatch.clone(),
        exec.n_objects.or_else(named),
        exec.cache.clone(),
    )
}

/// Of a run, a section for each of its streams.
pub fn of(run: &Run) -> Vec<Startup> {
    let streams = &run.others.startup;
    let several = streams.len() > 1;
    let name = |index: usize| {
        if several {
            format!("Start {}", index + 1)
        } else {
            String::new()
        }
    };
    streams
        .iter()
        .enumerate()
        .map(|(index, one)| Startup::of(name(index), one))
        .collect()
}

impl Startup {
    fn of(name: String, stream: &Starts) -> Self {
        let groups = grouped(stream.execs.iter().map(|exec| (key(exec), exec)));
        let mut arms: Vec<Arm> = groups
            .iter()
            .map(|(key, execs)| Arm::of(key, execs))
            .collect();
        let mut differences = differences(&groups);
        let whys = stream.execs.iter().map(|exec| exec.why.as_deref());
        let mut remarks: Vec<String> = losses(whys, "starts").into_iter().collect();
        remarks.push(cut(&mut arms, ROWS_MAX, "arms"));
        remarks.push(cut(&mut differences, ROWS_MAX, "differences"));
        let (axis, zero) = place(&mut differences);
        if !differences.is_empty() && !groups.iter().any(|(key, _)| key.0 == NULL) {
            remarks.push("There is no null arm: nothing tells what the machine itself varies by, and no difference is resolved.".to_owned());
        }
        let mut slope = Slope::of(&groups);
        if !stream.has_result {
            remarks.push(RESULTLESS.to_owned());
            differences.iter_mut().for_each(Difference::forget);
            slope = None;
        }
        remarks.retain(|remark| !remark.is_empty());
        Self {
            said: match stream.has_result {
                true => said(&differences, slope.as_ref()),
                false => "In startup, no result follows: the run was refused or cut.".to_owned(),
            },
            name,
            programs: stream.programs.iter().take(ROWS_MAX).cloned().collect(),
            arms,
            differences,
            axis,
            zero,
            slope,
            remarks,
        }
    }
}

impl Arm {
    fn of(key: &Key, execs: &[&Exec]) -> Self {
        let (arm, dispatch, objects, cache) = key;
        let sound = || execs.iter().filter(|exec| exec.why.is_none());
        let times = (0..2).flat_map(|which| {
            let mut ns: Vec<u64> = sound().filter_map(|exec| exec.ns[which]).collect();
            let found = Summary::new(&mut ns).map(|s| [s.p25, s.median, s.p75]);
            found.map_or_else(
                || [const { String::new() }; 3],
                |ns| ns.map(|ns| ns.to_string()),
            )
        });
        let mut faults: Vec<u64> = sound().filter_map(|exec| exec.minflt).collect();
        let faults = Summary::new(&mut faults).map(|faults| faults.median.to_string());
        Self {
            arm: arm.clone(),
            dispatch: match &**cache {
                "cold" => format!("{dispatch}, cold"),
                _ => dispatch.clone(),
            },
            objects: objects.map_or_else(String::new, |objects| objects.to_string()),
            n: sound().count(),
            times: times.collect(),
            faults: faults.unwrap_or_default(),
        }
    }
}

/// Each arm against `a`; cold ones never against warm ones.
fn differences(groups: &[(Key, Vec<&Exec>)]) -> Vec<Difference> {
    let bases = groups.iter().filter(|(key, _)| key.0 == BASE);
    let of_base = |base| {
        WHAT.into_iter()
            .enumerate()
            .map(move |(which, what)| (base, which, what))
    };
    bases
        .flat_map(of_base)
        .flat_map(|(base, which, what)| against(groups, base, which, what))
        .collect()
}

/// All other arms with the same cache against one, in one of the times.
fn against(
    groups: &[(Key, Vec<&Exec>)],
    (base, execs): &(Key, Vec<&Exec>),
    which: usize,
    what: &'static str,
) -> Vec<Difference> {
    let base_ns: HashMap<u64, u64> = times(execs, which).collect();
    let other = |key: &Key| key.0 != BASE && key.0 != TWIN;
    let alike = |key: &Key| other(key) && key.2.is_none() && key.3 == base.3;
    let arms = groups.iter().filter(|(key, _)| alike(key));
    let found: Vec<(&Key, Found)> = arms
        .filter_map(|(key, execs)| Some((key, Found::of(&base_ns, times(execs, which))?)))
        .collect();
    let null = found
        .iter()
        .find(|(key, _)| key.0 == NULL)
        .map(|(_, found)| *found);
    let name = |key: &Key| {
        if key.3 == "cold" {
            format!("{}, cold", key.0)
        } else {
            key.0.clone()
        }
    };
    found
        .iter()
        .map(|(key, one)| Difference::of(key, name(key), what, *one, null))
        .collect()
}

/// Rounds with the times of one arm.
fn times(execs: &[&Exec], which: usize) -> impl Iterator<Item = (u64, u64)> {
    let sound = execs.iter().filter(|exec| exec.why.is_none());
    sound.filter_map(move |exec| Some((exec.round, exec.ns[which]?)))
}

impl Found {
    /// `None` without a pair.
    fn of(base: &HashMap<u64, u64>, times: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        // As `startup ab` has them, a minus the arm, so that both round alike; turned at the end.
        // The core library takes no times of centuries.
        let is_time = |(a, b): &(u64, u64)| a.max(b).leading_zeros() > 0;
        let pairs = times.filter_map(|(round, ns)| Some((*base.get(&round)?, ns)));
        let pairs: Vec<(u64, u64)> = pairs.filter(is_time).collect();
        let mut scratch = vec![0; pairs.len()];
        let found = PairedDifference::new(&mut pairs.into_iter(), &mut scratch)?;
        let turned = |ns: i64| -i128::from(ns);
        let interval = found.interval;
        Some(Self {
            pairs: found.n,
            median: turned(found.median),
            interval: interval.map(|ends| [ends.high, ends.low].map(turned)),
        })
    }

    /// All of the interval lies on one side of 0, and the median is beyond what `a` differs
    /// from itself by.
    fn is_resolved(&self, null: Option<Self>) -> bool {
        let apart = self.interval.is_some_and(|[low, high]| low > 0 || high < 0);
        let beyond = null.is_some_and(|null| self.median.abs() > NULLS * null.median.abs());
        apart && beyond
    }
}

impl Difference {
    /// Takes the verdict back.
    fn forget(&mut self) {
        if self.verdict != "null" {
            (self.verdict, self.class) = ("no result", "unknown");
        }
    }

    fn of(key: &Key, arm: String, what: &'static str, found: Found, null: Option<Found>) -> Self {
        let (verdict, class) = match (key.0 == NULL, found.is_resolved(null)) {
            (true, _) => ("null", "unknown"),
            (_, true) => ("resolved", "some"),
            _ => ("unresolved", "unknown"),
        };
        let interval = found
            .interval
            .map(|[low, high]| format!("[{low:+}, {high:+}]"));
        Self {
            arm,
            what,
            pairs: found.pairs,
            median: format!("{:+}", found.median),
            interval: interval.unwrap_or_else(|| "too few pairs".to_owned()),
            verdict,
            class,
            low: String::new(),
            high: String::new(),
            at: String::new(),
            found,
        }
    }
}

/// Gives all differences their places on one axis, with 0 on it; its ends, and 0's place.
fn place(differences: &mut [Difference]) -> ([String; 2], String) {
    let all = |found: &Found| {
        let [low, high] = found.interval.unwrap_or([found.median; 2]);
        [low, high, found.median]
    };
    let values = || differences.iter().flat_map(|one| all(&one.found));
    let least = values().min().unwrap_or(0).min(0);
    let most = values().max().unwrap_or(0).max(0);
    let width = u64::try_from(most - least).unwrap_or(u64::MAX);
    let at = |value: i128| figures::place(u64::try_from(value - least).unwrap_or(u64::MAX), width);
    for one in &mut *differences {
        one.at = at(one.found.median);
        if let Some([low, high]) = one.found.interval {
            (one.low, one.high) = (at(low), at(high));
        }
    }
    let label = |end: i128| {
        if end == 0 {
            "0".to_owned()
        } else {
            format!("{end:+}")
        }
    };
    ([least, most].map(label), at(0))
}

fn said(differences: &[Difference], slope: Option<&Slope>) -> String {
    let clause = |one: &Difference| {
        let way = if one.found.median > 0 {
            "longer"
        } else {
            "shorter"
        };
        let name = crate::text::shown(one.arm.as_bytes());
        let what = one.what;
        match one.verdict {
            "resolved" => {
                let mut ends = one.found.interval.unwrap_or_default().map(i128::abs);
                ends.sort_unstable();
                format!(
                    "{name} takes {} ns [{}, {}] {way} than a {what}",
                    one.found.median.abs(),
                    ends[0],
                    ends[1]
                )
            }
            _ => format!("no difference between {name} and a is resolved {what}"),
        }
    };
    let arms = differences.iter().filter(|one| one.verdict != "null");
    let clauses: Vec<String> = arms.take(4).map(clause).collect();
    let slope = slope.map(|slope| slope.said.clone()).unwrap_or_default();
    match clauses.is_empty() {
        true => slope,
        false => format!("In startup, {}. {slope}", clauses.join("; "))
            .trim_end()
            .to_owned(),
    }
}
