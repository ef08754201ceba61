//! y = a + b/n by least squares, in integers.

/// One observation: `n`, and what was seen with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// At least 1.
    pub n: u64,
    /// In thousandths of the caller's unit.
    pub y_milli: i64,
}

/// The line through a + b/n. All but `r2_milli` are thousandths of the unit of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InverseFit {
    /// What stays for large n.
    pub a_milli: i64,
    /// What is divided by n.
    pub b_milli: i64,
    /// Share of the variance that the fit explains, in thousandths, rounded down: what is not
    /// good enough does not look so. `None` if there are fewer than three points, which any
    /// line through two fits, or if all are equal.
    pub r2_milli: Option<i64>,
    /// The largest departure of a point from the line, without its sign.
    pub max_residual_milli: i64,
}

/// 1/n is a multiple of this part; so b/n is exact to b / 2^25.
const ONE: i128 = 1 << 24;
/// Beyond it the sums could overflow: 10^12 units.
const Y_MAX: i64 = 1_000_000_000_000_000;
/// Likewise.
const POINTS_MAX: usize = 256;

impl InverseFit {
    /// Fits. `None` with fewer than two different n, with more than 256 points, with an n of
    /// 0, or with values beyond 10^15 thousandths.
    #[must_use]
    pub fn through(points: &[Point]) -> Option<Self> {
        let fits = |point: &Point| point.n > 0 && point.y_milli.abs() <= Y_MAX;
        if points.len() > POINTS_MAX || !points.iter().all(fits) {
            return None;
        }
        let count = points.len() as i128;
        let sum = |value: &dyn Fn(&Point) -> i128| points.iter().map(value).sum::<i128>();
        let (x, y) = (sum(&inverse), sum(&height));
        let spread = count * sum(&|point| inverse(point) * inverse(point)) - x * x;
        if spread <= 0 {
            return None;
        }
        let slope = count * sum(&|point| inverse(point) * height(point)) - x * y;
        let mut fit = Self {
            a_milli: narrow(divide(y * spread - slope * x, count * spread))?,
            b_milli: narrow(divide(slope * ONE, spread))?,
            r2_milli: None,
            max_residual_milli: 0,
        };
        fit.judge(points, count, y)?;
        Some(fit)
    }

    /// How well it fits. The residuals are rounded to a thousandth.
    fn judge(&mut self, points: &[Point], count: i128, y: i128) -> Option<()> {
        let (mut left, mut all) = (0, 0);
        for point in points {
            let fitted = divide(inverse(point) * i128::from(self.b_milli), ONE);
            let residual = height(point) - i128::from(self.a_milli) - fitted;
            let from_mean = count * height(point) - y;
            left += residual * residual;
            // Of single points, to stay within 128 bits.
            all += divide(from_mean * from_mean, count * count);
            self.max_residual_milli = self.max_residual_milli.max(narrow(residual.abs())?);
        }
        if points.len() > 2 && all > 0 {
            self.r2_milli = Some(1000 - narrow((left * 1000 + all - 1) / all)?);
        }
        Some(())
    }
}

fn inverse(point: &Point) -> i128 {
    divide(ONE, i128::from(point.n))
}

fn height(point: &Point) -> i128 {
    point.y_milli.into()
}

/// A ratio in thousandths, rounded half away from 0; `None` if there is none, or beyond 64 bits.
#[must_use]
pub fn ratio_milli(part: i128, whole: i128) -> Option<i64> {
    match whole {
        0 => None,
        _ => narrow(divide(part * 1000 * whole.signum(), whole.abs())),
    }
}

/// Rounded half away from 0; `by` is above 0.
fn divide(value: i128, by: i128) -> i128 {
    let half = if value < 0 { -by / 2 } else { by / 2 };
    (value + half) / by
}

fn narrow(value: i128) -> Option<i64> {
    i64::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn points(of: impl Fn(f64) -> f64, ns: &[u64]) -> Vec<Point> {
        let point = |&n: &u64| Point {
            n,
            y_milli: (of(n as f64) * 1000.0).round() as i64,
        };
        ns.iter().map(point).collect()
    }

    /// The textbook's formulas, in floating point.
    fn expected(points: &[Point]) -> (f64, f64, f64) {
        let xy: Vec<(f64, f64)> = points
            .iter()
            .map(|point| (1.0 / point.n as f64, point.y_milli as f64 / 1000.0))
            .collect();
        let count = xy.len() as f64;
        let mean = |value: &dyn Fn(&(f64, f64)) -> f64| xy.iter().map(value).sum::<f64>() / count;
        let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
        let b = xy.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
            / xy.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
        let a = y - b * x;
        let left: f64 = xy.iter().map(|p| (p.1 - a - b * p.0).powi(2)).sum();
        let all: f64 = xy.iter().map(|p| (p.1 - y).powi(2)).sum();
        (a, b, 1.0 - left / all)
    }

    #[test]
    fn a_curve_without_noise_is_found() {
        let fit =
            InverseFit::through(&points(|n| 73.0 + 5120.0 / n, &[1, 2, 4, 8, 16, 32])).unwrap();
        assert_eq!((fit.a_milli, fit.b_milli), (73_000, 5_120_000));
        assert_eq!((fit.r2_milli, fit.max_residual_milli), (Some(1000), 0));
        let thirds = InverseFit::through(&points(|n| -40.0 + 900.0 / n, &[3, 7, 999])).unwrap();
        assert!((thirds.a_milli + 40_000).abs() <= 1 && (thirds.b_milli - 900_000).abs() <= 5);
    }

    #[test]
    fn noise_gives_what_the_textbook_gives() {
        for shift in 0..20 {
            let noise = |n: f64| (n * 7.77 + f64::from(shift) * 3.1).sin() * 128.0;
            let noisy = points(|n| 100.0 + 3000.0 / n + noise(n), &[1, 2, 3, 5, 8, 16, 64]);
            let fit = InverseFit::through(&noisy).unwrap();
            let (a, b, r2) = expected(&noisy);
            assert!(
                (fit.a_milli as f64 / 1000.0 - a).abs() < 0.01,
                "{fit:?} {a}"
            );
            assert!(
                (fit.b_milli as f64 / 1000.0 - b).abs() < 0.01,
                "{fit:?} {b}"
            );
            let got = fit.r2_milli.unwrap() as f64 / 1000.0;
            assert!((got - r2).abs() < 0.001, "{fit:?} {r2}");
        }
    }

    #[test]
    fn what_is_explained_is_never_rounded_up() {
        for percent in 1..100 {
            let noisy = points(|n| 9.0 / n + (n * f64::from(percent)).sin(), &[1, 2, 4, 8]);
            let (_, _, r2) = expected(&noisy);
            let milli = InverseFit::through(&noisy).unwrap().r2_milli.unwrap() as f64 / 1000.0;
            // Values are cut to thousandths.
            assert!(milli <= r2 + 1e-5 && r2 < milli + 0.00101, "{milli} {r2}");
        }
    }

    #[test]
    fn a_ratio_is_rounded_to_the_nearest() {
        let cases = [
            ((9496, 10_000), Some(950)),
            ((9494, 10_000), Some(949)),
            ((-504, 10_000), Some(-50)),
            ((-506, 10_000), Some(-51)),
            ((506, -10_000), Some(-51)),
            ((1, 0), None),
            ((1 << 100, 1), None),
        ];
        for ((part, whole), want) in cases {
            assert_eq!(ratio_milli(part, whole), want, "{part}/{whole}");
        }
    }

    #[test]
    fn what_cannot_be_known_is_none() {
        assert_eq!(InverseFit::through(&[]), None);
        assert_eq!(InverseFit::through(&points(|_| 5.0, &[4])), None);
        assert_eq!(InverseFit::through(&points(|_| 5.0, &[4, 4])), None);
        assert_eq!(InverseFit::through(&points(|_| 5.0, &[0, 4])), None);
        let two = InverseFit::through(&points(|n| n, &[1, 2])).unwrap();
        assert_eq!(
            (two.a_milli, two.b_milli, two.r2_milli),
            (3000, -2000, None)
        );
        let flat = InverseFit::through(&points(|_| 5.5, &[1, 2, 4])).unwrap();
        assert_eq!((flat.a_milli, flat.b_milli, flat.r2_milli), (5500, 0, None));
    }

    #[test]
    fn the_largest_values_do_not_overflow() {
        let largest: Vec<Point> = (1..=256)
            .map(|n| Point {
                n,
                y_milli: if n % 2 == 0 { Y_MAX } else { -Y_MAX },
            })
            .collect();
        assert!(InverseFit::through(&largest).is_some());
        let more = [
            Point {
                n: 1,
                y_milli: Y_MAX + 1,
            },
            largest[1],
        ];
        assert_eq!(InverseFit::through(&more), None);
    }
}
