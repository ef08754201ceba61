//! The median time over the number of objects, and a straight line through it.

use super::{Key, WHAT};
use crate::report::line::Line;
use crate::report::many::{ROWS_MAX, cut};
use crate::report::plot::{Across, Given, Plot, Unit, number};
use crate::report::sharing::tenth;
use crate::runs::others::Exec;
use cowitness::stats::Summary;

/// Fewer numbers of objects make no slope.
const PLACES_LEAST: usize = 4;

/// The arm that loads no object.
const CONTROL: &str = "static";

/// What a line has to explain of the variance before it is spoken of.
const R2_LEAST: f64 = 0.9;

/// One slope for each thing that is timed.
pub struct Slope {
    pub plot: Option<Plot>,
    pub points: Vec<Point>,
    /// A row for each thing that is timed: objects, slope and intercept (ns), R², residual.
    pub fits: Vec<[String; 6]>,
    pub remarks: Vec<String>,
    /// The same in a sentence.
    pub said: String,
    /// Whether that is about a line that fits.
    fits_well: bool,
}

/// One number of objects. Times in ns.
pub struct Point {
    pub what: &'static str,
    pub objects: u64,
    pub n: u64,
    pub median: u64,
    pub fitted: String,
    pub residual: String,
}

impl Slope {
    /// `None` if no arm says how many objects it loads.
    pub fn of(groups: &[(Key, Vec<&Exec>)]) -> Option<Self> {
        let is_control = |key: &Key| key.0 == CONTROL;
        let counted = |(key, _): &&(Key, Vec<&Exec>)| key.2.is_some() && !is_control(key);
        let cache = &groups.iter().find(counted)?.0.3;
        // Cold starts and warm ones make no line together: the first kind counts.
        let groups = || groups.iter().filter(|(key, _)| key.3 == *cache);
        let mut slope = Self {
            plot: None,
            points: Vec::new(),
            fits: Vec::new(),
            remarks: Vec::new(),
            said: String::new(),
            fits_well: false,
        };
        let mut given = Vec::new();
        for (which, what) in WHAT.into_iter().enumerate() {
            let counted = groups().filter(|(key, _)| !is_control(key));
            let mut medians: Vec<(u64, u64, u64)> = counted
                .filter_map(|(key, execs)| Some((key.2?, median(execs, which)?)))
                .map(|(objects, (n, median))| (objects, n, median))
                .collect();
            medians.sort_unstable();
            let control = groups().find(|(key, _)| is_control(key));
            let control = control.and_then(|(_, execs)| median(execs, which));
            given.extend(slope.add(what, &medians, control));
        }
        slope.plot = Plot::of(
            "Median time by the number of objects, with a straight line through it".to_owned(),
            ("objects", Across::Even),
            (
                "median",
                &Unit {
                    name: "µs",
                    size: 1000.0,
                },
            ),
            given,
        );
        let note = cut(&mut slope.points, ROWS_MAX, "points");
        slope.remarks.push(note);
        slope.remarks.retain(|remark| !remark.is_empty());
        Some(slope)
    }

    /// One thing that is timed: (objects, N, median), and the control's.
    fn add(
        &mut self,
        what: &'static str,
        medians: &[(u64, u64, u64)],
        control: Option<(u64, u64)>,
    ) -> Vec<Given> {
        let points: Vec<(f64, f64)> = medians
            .iter()
            .map(|(objects, _, median)| (*objects as f64, *median as f64))
            .collect();
        let places = medians.chunk_by(|one, two| one.0 == two.0).count();
        let line = Line::through(&points).filter(|_| places >= PLACES_LEAST);
        let point = |(objects, n, median): &(u64, u64, u64)| {
            let fitted = line.map(|line| line.at(*objects as f64));
            Point {
                what,
                objects: *objects,
                n: *n,
                median: *median,
                fitted: fitted.map_or_else(String::new, tenth),
                residual: fitted.map_or_else(String::new, |at| tenth(*median as f64 - at)),
            }
        };
        self.points.extend(medians.iter().map(point));
        match line {
            Some(line) => self.fitted(what, places, &line, doubt(&line, medians, control)),
            None => self.remarks.push(format!(
                "{what}: no slope; it takes at least {PLACES_LEAST} different numbers of objects, and there are {places}."
            )),
        }
        match control {
            Some((_, ns)) => self
                .remarks
                .push(format!("{what}, the static control takes {ns} ns.")),
            None => self.remarks.push(format!(
                "{what}: there is no static control, which has to be flat."
            )),
        }
        let ends = points.iter().map(|point| point.0);
        let most = ends.fold(0.0, f64::max);
        let level = |height: f64| vec![(0.0, height), (most, height)];
        let mut given = vec![Given {
            name: what.to_owned(),
            line: line.map_or_else(Vec::new, |line| {
                vec![(0.0, line.at(0.0)), (most, line.at(most))]
            }),
            points,
        }];
        given.extend(control.map(|(_, ns)| Given {
            name: format!("{CONTROL}, {what}"),
            points: vec![(0.0, ns as f64)],
            line: level(ns as f64),
        }));
        given
    }

    fn fitted(
        &mut self,
        what: &'static str,
        places: usize,
        line: &Line,
        doubt: Option<&'static str>,
    ) {
        // Down, as in the rows: it must not look like more than it is.
        let r2 = line.r2.map(|r2| (r2 * 1000.0).floor() / 1000.0);
        let r2 = r2.map_or_else(String::new, number);
        self.fits.push([
            what.to_owned(),
            places.to_string(),
            number(line.b),
            number(line.a),
            r2.clone(),
            number(line.max_residual),
        ]);
        match doubt {
            None if !self.fits_well => {
                self.fits_well = true;
                self.said = format!(
                    "Each further object takes {:.0} ns {what} (R² {r2}).",
                    line.b
                );
            }
            Some(why) if self.said.is_empty() => {
                self.said = format!("What an object takes {what} is not known: {why} (R² {r2}).");
            }
            _ => {}
        }
    }
}

/// Why nothing is said of a line; `None`: it fits, and the control is good. A control is good
/// that was measured and takes less than every program that loads objects.
fn doubt(
    line: &Line,
    medians: &[(u64, u64, u64)],
    control: Option<(u64, u64)>,
) -> Option<&'static str> {
    let least = medians.iter().map(|(_, _, ns)| *ns).min();
    match (line.r2, control) {
        (Some(r2), _) if r2 < R2_LEAST => Some("no line fits"),
        (None, _) => Some("the times are all the same"),
        (_, None) => Some("there is no static control"),
        (_, Some((_, ns))) if least.is_some_and(|least| ns >= least) => {
            Some("the static control takes as long as a program with objects")
        }
        _ => None,
    }
}

/// How many starts, and their median.
fn median(execs: &[&Exec], which: usize) -> Option<(u64, u64)> {
    let sound = execs.iter().filter(|exec| exec.why.is_none());
    let mut ns: Vec<u64> = sound.filter_map(|exec| exec.ns[which]).collect();
    Summary::new(&mut ns).map(|found| (found.n, found.median))
}
