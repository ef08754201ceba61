//! Who shares: PSS of N processes at the same time, and a + b/N through it.

use super::line::Line;
use super::many::{ROWS_MAX, SERIES_MAX, cut, grouped, losses};
use super::plot::{Across, Given, Plot, Unit, number};
use crate::runs::Run;
use crate::runs::others::{Fit, Subject};
use crate::text::shown;
use cowitness::stats::Summary;

/// Below it a fit should not be used.
const R2_LEAST: f64 = 0.9;

/// Fewer numbers of processes make no curve of which something can be said.
const SIZES_LEAST: usize = 3;

/// Memory of less than so many KiB is none.
const KIB_HALF: f64 = 0.5;

/// What an arm is called of which the appliance found that it proves nothing.
const INVALID: &str = "invalid";

/// Said of a curve that did not come with the rows.
const OWN: &str = "fitted here";

/// Places of a curve, between one process and the most.
const CURVE: u32 = 60;

/// The section of one run.
pub struct Sharing {
    pub plot: Option<Plot>,
    /// A row an arm and N.
    pub points: Vec<Point>,
    /// A row an arm.
    pub fits: Vec<Row>,
    pub remarks: Vec<String>,
    /// The same in a sentence; none: nothing can be said.
    pub said: Vec<String>,
}

/// One arm with so many processes.
pub struct Point {
    pub arm: String,
    pub n: u64,
    pub processes: usize,
    pub min: String,
    pub median: String,
    pub max: String,
    pub fitted: String,
    pub residual: String,
}

/// The fit of one arm; a and b in KiB.
pub struct Row {
    pub arm: String,
    /// a, b, b/a, R², largest residual, a and b of N ≥ 2, private fraction, least USS.
    pub figures: Vec<String>,
    pub verdict: String,
    /// `own`: made here.
    pub origin: &'static str,
}

/// One arm.
struct Arm {
    name: String,
    /// N with the order statistics of PSS.
    sizes: Vec<(u64, usize, Option<Summary>)>,
    uss_min: Option<u64>,
    given: Option<Fit>,
    own: [Option<Line>; 2],
}

impl Sharing {
    /// Of a run; `None` if no process was measured or fitted.
    pub fn of(run: &Run) -> Option<Self> {
        let (subjects, fits) = (&run.others.sharing, &run.others.fits);
        if subjects.is_empty() && fits.is_empty() {
            return None;
        }
        let rows = subjects.iter().map(|one| (one.arm.clone(), one));
        let mut arms: Vec<Arm> = grouped(rows)
            .into_iter()
            .map(|(name, rows)| Arm::of(name, &rows, fits))
            .collect();
        let measured: Vec<String> = arms.iter().map(|arm| arm.name.clone()).collect();
        let only_fits = fits.iter().filter(|fit| !measured.contains(&fit.arm));
        arms.extend(only_fits.map(|fit| Arm::fitted(fit.clone())));
        let mut points: Vec<Point> = arms.iter().flat_map(Arm::points).collect();
        let mut rows: Vec<Row> = arms.iter().filter_map(Arm::row).collect();
        let mut remarks = remarks(subjects, &arms);
        remarks.push(cut(&mut points, ROWS_MAX, "points"));
        remarks.push(cut(&mut rows, ROWS_MAX, "arms"));
        remarks.retain(|remark| !remark.is_empty());
        Some(Self {
            plot: plot(&arms),
            said: said(&arms),
            points,
            fits: rows,
            remarks,
        })
    }
}

impl Arm {
    fn of(name: String, rows: &[&Subject], fits: &[Fit]) -> Self {
        let sound = || rows.iter().filter(|one| one.why.is_none());
        let mut sizes: Vec<(u64, usize, Option<Summary>)> =
            grouped(sound().map(|one| (one.n, one.pss_kib)))
                .into_iter()
                .map(|(n, pss)| {
                    let mut known: Vec<u64> = pss.iter().flatten().copied().collect();
                    (n, pss.len(), Summary::new(&mut known))
                })
                .collect();
        sizes.sort_by_key(|size| size.0);
        let from = |least: u64| {
            let points: Vec<(f64, f64)> = sizes
                .iter()
                .filter(|size| size.0 >= least)
                .filter_map(|(n, _, pss)| Some((1.0 / *n as f64, pss.as_ref()?.median as f64)))
                .collect();
            Line::through(&points)
        };
        Self {
            own: [from(1), from(2)],
            uss_min: sound().filter_map(|one| one.uss_kib).min(),
            given: fits.iter().find(|fit| fit.arm == name).cloned(),
            sizes,
            name,
        }
    }

    fn fitted(fit: Fit) -> Self {
        Self {
            name: fit.arm.clone(),
            sizes: Vec::new(),
            uss_min: None,
            given: Some(fit),
            own: [None, None],
        }
    }

    /// a and b: those that came with the rows, else those found here.
    fn curve(&self) -> Option<Line> {
        let Some(fit) = &self.given else {
            return self.own[0];
        };
        let [a, b, _, r2, residual, ..] = fit.milli.map(|value| value.map(thousandth));
        Some(Line {
            a: a?,
            b: b?,
            r2,
            max_residual: residual.unwrap_or(0.0),
        })
    }

    fn points(&self) -> Vec<Point> {
        let curve = self.curve();
        let point = |(n, processes, pss): &(u64, usize, Option<Summary>)| {
            let kib = |of: fn(&Summary) -> u64| {
                pss.as_ref()
                    .map_or_else(String::new, |pss| of(pss).to_string())
            };
            let fitted = curve.map(|curve| curve.at(1.0 / *n as f64));
            let residual = fitted
                .zip(pss.as_ref())
                .map(|(at, pss)| pss.median as f64 - at);
            Point {
                arm: self.name.clone(),
                n: *n,
                processes: *processes,
                min: kib(|pss| pss.min),
                median: kib(|pss| pss.median),
                max: kib(|pss| pss.max),
                fitted: fitted.map_or_else(String::new, tenth),
                residual: residual.map_or_else(String::new, tenth),
            }
        };
        self.sizes.iter().map(point).collect()
    }

    fn row(&self) -> Option<Row> {
        let own = |line: Option<Line>| [line.map(|line| line.a), line.map(|line| line.b)];
        let (origin, figures, verdict) = match &self.given {
            Some(fit) => (
                "given",
                fit.milli.map(|value| value.map(thousandth)),
                &*fit.verdict,
            ),
            None => {
                let [a, b] = own(self.own[0]);
                let [a2, b2] = own(self.own[1]);
                let ratio = a.zip(b).map(|(a, b)| b / a);
                let r2 = self.own[0]?.r2;
                let residual = Some(self.own[0]?.max_residual);
                ("own", [a, b, ratio, r2, residual, a2, b2, None], "")
            }
        };
        let words = |value: &Option<f64>| {
            value
                .filter(|v| v.is_finite())
                .map_or_else(String::new, number)
        };
        let uss = self
            .given
            .as_ref()
            .and_then(|fit| fit.uss_min_kib)
            .or(self.uss_min);
        let mut figures: Vec<String> = figures.iter().map(words).collect();
        figures.push(uss.map_or_else(String::new, |uss| uss.to_string()));
        Some(Row {
            arm: self.name.clone(),
            figures,
            verdict: verdict.to_owned(),
            origin,
        })
    }
}

fn thousandth(milli: i64) -> f64 {
    milli as f64 / 1000.0
}

/// One decimal, and no zero below zero.
pub fn tenth(value: f64) -> String {
    match format!("{value:.1}") {
        zero if zero == "-0.0" => "0.0".to_owned(),
        text => text,
    }
}

fn plot(arms: &[Arm]) -> Option<Plot> {
    let drawn = arms
        .iter()
        .filter(|arm| !arm.sizes.is_empty())
        .take(SERIES_MAX);
    let given = drawn.map(|arm| {
        let most = arm.sizes.last().map_or(1, |size| size.0) as f64;
        let step = |index: u32| most.powf(f64::from(index) / f64::from(CURVE));
        let curve = arm.curve();
        Given {
            name: arm.name.clone(),
            points: arm
                .sizes
                .iter()
                .filter_map(|(n, _, pss)| Some((*n as f64, pss.as_ref()?.median as f64)))
                .collect(),
            line: curve.map_or_else(Vec::new, |curve| {
                (0..=CURVE)
                    .map(step)
                    .map(|n| (n, curve.at(1.0 / n)))
                    .collect()
            }),
        }
    });
    Plot::of(
        "Median PSS of a process by the number of processes, for each arm, with its fitted curve"
            .to_owned(),
        ("N, processes at the same time", Across::Doubling),
        (
            "median PSS",
            &Unit {
                name: "KiB",
                size: 1.0,
            },
        ),
        given.collect(),
    )
}

fn remarks(subjects: &[Subject], arms: &[Arm]) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(losses(
        subjects.iter().map(|one| one.why.as_deref()),
        "processes",
    ));
    let mut without = Vec::new();
    for arm in arms {
        let name = shown(arm.name.as_bytes());
        match arm.curve() {
            None => remarks.push(format!("{name}: no fit; it takes two different N.")),
            Some(Line { r2: Some(r2), .. }) if r2 < R2_LEAST => remarks.push(format!(
                "{name}: the fit explains {:.1} % of the variance; below 90 % it should not be used.",
                r2 * 100.0
            )),
            Some(_) => {}
        }
        if arm.given.is_none() && arm.curve().is_some() {
            without.push(name);
        }
    }
    if !without.is_empty() {
        remarks.push(format!(
            "Fitted here, by least squares over the medians, as the rows came without a fit: {}.",
            without.join(", ")
        ));
    }
    let others = subjects
        .iter()
        .filter_map(|one| one.bystanders)
        .max()
        .unwrap_or(0);
    if others > 0 {
        remarks.push(format!(
            "Up to {others} other processes map the same files: they take a share, too, and b is a lower bound."
        ));
    }
    if arms.len() > SERIES_MAX {
        remarks.push(format!(
            "Drawn are the first {SERIES_MAX} of {} arms.",
            arms.len()
        ));
    }
    remarks
}

/// Why nothing is said of a curve; `None`: it fits.
fn doubt(arm: &Arm, curve: &Line) -> Option<&'static str> {
    let is_invalid = arm.given.as_ref().is_some_and(|fit| fit.verdict == INVALID);
    let few = arm.given.is_none() && arm.sizes.len() < SIZES_LEAST;
    let is_flat = curve.b.abs() < KIB_HALF;
    match curve.r2 {
        _ if is_invalid => Some("the run is invalid"),
        _ if few => Some("any curve goes through two points"),
        None if !is_flat => Some("nothing tells how well a curve fits"),
        Some(r2) if r2 < R2_LEAST => Some("no curve fits"),
        _ if curve.a <= -KIB_HALF || curve.b <= -KIB_HALF => {
            Some("the curve that fits has negative memory")
        }
        _ => None,
    }
}

/// `of a program's memory, ... has ... for itself`.
fn said(arms: &[Arm]) -> Vec<String> {
    let clause = |arm: &Arm| {
        let curve = arm.curve()?;
        let name = shown(arm.name.as_bytes());
        let own = arm.given.is_none().then(|| OWN.to_owned());
        if let Some(why) = doubt(arm, &curve) {
            let r2 = curve.r2.map(|r2| format!("R² {}", number(r2)));
            let marks: Vec<String> = own.into_iter().chain(r2).collect();
            let marks = match &*marks {
                [] => String::new(),
                marks => format!(" ({})", marks.join(", ")),
            };
            return Some(format!("what {name} takes is not known: {why}{marks}"));
        }
        let given = arm.given.as_ref().map(|fit| shown(fit.verdict.as_bytes()));
        let verdict = given.or(own).unwrap_or_default();
        Some(format!(
            "{name} ({verdict}) takes {:.0} KiB for each process and {:.0} KiB once for all",
            curve.a, curve.b
        ))
    };
    let clauses: Vec<String> = arms.iter().take(4).filter_map(clause).collect();
    if clauses.is_empty() {
        return Vec::new();
    }
    vec![format!("Of the arms of sharing, {}.", clauses.join("; "))]
}
