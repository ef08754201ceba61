//! Points and lines over two axes. Places are in per cent of the drawing, so that it fits a
//! phone as well as a desk; a series is told by mark and dashes, colour comes on top.

use super::throughput::Tick;

/// So many marks, dashes and colours there are; more series share them, and the table beneath
/// still tells them apart.
const LOOKS: usize = 8;

/// The most points a line is drawn of.
const POINTS_MAX: usize = 300;

/// Lines are drawn on a square of this many units, which is stretched.
const SQUARE: f64 = 1000.0;

/// One drawing.
pub struct Plot {
    /// What it shows, for those who do not see it.
    pub about: String,
    pub x_name: String,
    pub y_name: String,
    pub x_ticks: Vec<Tick>,
    pub y_ticks: Vec<Tick>,
    pub series: Vec<Series>,
}

/// One line, or some points.
pub struct Series {
    pub name: String,
    /// From 0 to 7: mark, dashes and colour.
    pub look: usize,
    pub points: Vec<[String; 2]>,
    /// `0,1000 500,20.5`; empty: none.
    pub line: String,
}

/// What is to be drawn.
#[derive(Default)]
pub struct Given {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub line: Vec<(f64, f64)>,
}

/// How x is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Across {
    /// From 0 in equal steps.
    Even,
    /// Each doubling takes the same space.
    Doubling,
}

/// A name, and what a value is divided by to be shown.
pub struct Unit {
    pub name: &'static str,
    pub size: f64,
}

/// Units of bytes, the largest of which at least four fit into `most`.
pub fn bytes_unit(most: f64) -> Unit {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = |(_, power): &&(&str, i32)| most >= 4.0 * 2_f64.powi(*power);
    let (name, power) = units.iter().find(fits).copied().unwrap_or(("bytes", 0));
    Unit {
        name,
        size: 2_f64.powi(power),
    }
}

impl Plot {
    /// Draws `given`; `None` if there is no point, or none that can be drawn.
    pub fn of(
        about: String,
        x: (&str, Across),
        y: (&str, &Unit),
        given: Vec<Given>,
    ) -> Option<Self> {
        let sound = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let all = || {
            given
                .iter()
                .flat_map(|one| one.points.iter().chain(&one.line))
                .filter(sound)
        };
        let most = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(f64::MIN, f64::max);
        let least = all().map(|point| point.0).fold(f64::MAX, f64::min);
        all().next()?;
        let (name, unit) = y;
        let across = Scale::new(x.1, least, most(|point| point.0));
        let end = round_up(most(|point| point.1) / unit.size);
        let up = |value: f64| (value / unit.size / end).clamp(0.0, 1.0);
        let place = |point: &(f64, f64)| (across.place(point.0), 1.0 - up(point.1));
        Some(Self {
            about,
            x_name: x.0.to_owned(),
            y_name: format!("{name}, {}", unit.name)
                .trim_end_matches(", ")
                .to_owned(),
            x_ticks: across.ticks(),
            y_ticks: (0..=4)
                .map(|quarter| y_tick(f64::from(quarter), end))
                .collect(),
            series: given
                .iter()
                .enumerate()
                .map(|(index, one)| Series::of(index, one, &place))
                .collect(),
        })
    }
}

/// From values to places, both from 0 to 1.
type Place<'p> = dyn Fn(&(f64, f64)) -> (f64, f64) + 'p;

impl Series {
    fn of(index: usize, given: &Given, place: &Place<'_>) -> Self {
        let sound = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let points = thinned(&given.points).filter(sound).map(place);
        let line: Vec<String> = thinned(&given.line)
            .filter(sound)
            .map(place)
            .map(|(x, y)| format!("{:.1},{:.1}", x * SQUARE, y * SQUARE))
            .collect();
        Self {
            name: given.name.clone(),
            look: index % LOOKS,
            points: points.map(|(x, y)| [percent(x), percent(y)]).collect(),
            line: line.join(" "),
        }
    }
}

/// Not more than can be told apart, first and last among them.
fn thinned(points: &[(f64, f64)]) -> impl Iterator<Item = &(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.iter().enumerate();
    kept.filter(move |(index, _)| index % step == 0 || *index == last)
        .map(|(_, point)| point)
}

fn percent(part: f64) -> String {
    format!("{:.2}%", part * 100.0)
}

/// How values of x become places from 0 to 1.
struct Scale {
    kind: Across,
    least: f64,
    most: f64,
}

impl Scale {
    fn new(kind: Across, least: f64, most: f64) -> Self {
        match kind {
            Across::Even => Self {
                kind,
                least: 0.0,
                most: round_up(most),
            },
            Across::Doubling => {
                let least = least.max(1.0).log2().floor();
                Self {
                    kind,
                    least,
                    most: most.max(1.0).log2().max(least + 1.0),
                }
            }
        }
    }

    fn place(&self, value: f64) -> f64 {
        let value = match self.kind {
            Across::Even => value,
            Across::Doubling => value.max(1.0).log2(),
        };
        ((value - self.least) / (self.most - self.least)).clamp(0.0, 1.0)
    }

    fn ticks(&self) -> Vec<Tick> {
        let tick = |value: f64| {
            let at = self.place(value);
            Tick {
                at: percent(at),
                label: number(value),
                anchor: anchor(at),
            }
        };
        match self.kind {
            Across::Even => (0..=4)
                .map(|part| tick(self.most / 4.0 * f64::from(part)))
                .collect(),
            Across::Doubling => {
                let step = ((self.most - self.least) / 6.0).ceil().max(1.0);
                let powers = (0..=6).map(|part| self.least + step * f64::from(part));
                let within = powers.filter(|power| *power <= self.most + 1e-9);
                within.map(|power| tick(power.exp2())).collect()
            }
        }
    }
}

fn anchor(at: f64) -> &'static str {
    match at {
        at if at < 0.05 => "start",
        at if at > 0.95 => "end",
        _ => "middle",
    }
}

fn y_tick(quarter: f64, end: f64) -> Tick {
    Tick {
        at: percent(1.0 - quarter / 4.0),
        label: number(end / 4.0 * quarter),
        anchor: "end",
    }
}

/// The end of an axis: round, not below `value`, and round in four equal parts, too.
fn round_up(value: f64) -> f64 {
    if !value.is_normal() || value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 4.0, 4.8, 6.0, 8.0, 10.0];
    let fits = |step: &&f64| **step * power >= value * (1.0 - 1e-9);
    steps.iter().find(fits).copied().unwrap_or(10.0) * power
}

/// As short as it can be: `0`, `0.25`, `12`, `4e12`.
pub fn number(value: f64) -> String {
    if value.abs() >= 1e7 {
        return format!("{value:.3e}").replace(".000e", "e");
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Unit = Unit {
        name: "KiB",
        size: 1.0,
    };

    fn given(points: &[(f64, f64)]) -> Vec<Given> {
        vec![Given {
            name: "one".to_owned(),
            points: points.to_vec(),
            line: points.to_vec(),
        }]
    }

    #[test]
    fn places_are_where_the_axes_say() {
        let points = [(1.0, 100.0), (2.0, 50.0), (4.0, 0.0)];
        let plot = Plot::of(
            String::new(),
            ("N", Across::Doubling),
            ("PSS", &PLAIN),
            given(&points),
        );
        let plot = plot.unwrap();
        let at: Vec<&str> = plot.series[0]
            .points
            .iter()
            .flatten()
            .map(|at| &**at)
            .collect();
        assert_eq!(
            at,
            ["0.00%", "0.00%", "50.00%", "50.00%", "100.00%", "100.00%"]
        );
        assert_eq!(plot.series[0].line, "0.0,0.0 500.0,500.0 1000.0,1000.0");
        let labels: Vec<&str> = plot.x_ticks.iter().map(|tick| &*tick.label).collect();
        assert_eq!(labels, ["1", "2", "4"]);
        let labels: Vec<&str> = plot.y_ticks.iter().map(|tick| &*tick.label).collect();
        assert_eq!(labels, ["0", "25", "50", "75", "100"]);
        assert_eq!(plot.y_name, "PSS, KiB");
    }

    #[test]
    fn whatever_comes_stays_within_the_drawing() {
        let odd = [
            (0.0, 0.0),
            (u64::MAX as f64, u64::MAX as f64),
            (f64::NAN, 1.0),
            (1.0, f64::INFINITY),
            (5.0, -3.0),
        ];
        for across in [Across::Even, Across::Doubling] {
            let plot = Plot::of(String::new(), ("x", across), ("y", &PLAIN), given(&odd)).unwrap();
            assert_eq!(plot.series[0].points.len(), 3);
            let places = plot.series[0].points.iter().flatten();
            let ticks = plot
                .x_ticks
                .iter()
                .chain(&plot.y_ticks)
                .map(|tick| &tick.at);
            for place in places.chain(ticks) {
                let percent: f64 = place.trim_end_matches('%').parse().unwrap();
                assert!((0.0..=100.0).contains(&percent), "{place}");
            }
        }
        assert!(
            Plot::of(
                String::new(),
                ("x", Across::Even),
                ("y", &PLAIN),
                given(&[])
            )
            .is_none()
        );
    }

    #[test]
    fn many_points_are_thinned_and_the_last_is_kept() {
        let many: Vec<(f64, f64)> = (0..1001).map(|x| (f64::from(x), 1.0)).collect();
        let kept: Vec<f64> = thinned(&many).map(|point| point.0).collect();
        assert!(
            kept.len() <= POINTS_MAX + 1 && kept.last() == Some(&1000.0),
            "{}",
            kept.len()
        );
    }

    #[test]
    fn numbers_are_short() {
        for (value, want) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (12.0, "12"),
            (4e12, "4e12"),
            (2.5e9, "2.500e9"),
        ] {
            assert_eq!(number(value), want);
        }
        assert_eq!(bytes_unit(5e6).name, "MiB");
        assert_eq!(bytes_unit(12.0).name, "bytes");
    }
}
