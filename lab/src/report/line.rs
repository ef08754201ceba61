//! Straight lines through points, by least squares.

/// y = a + b x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// Where x is 0.
    pub a: f64,
    /// The slope.
    pub b: f64,
    /// Share of the variance that the line explains; `None` if there is none.
    pub r2: Option<f64>,
    /// The largest departure.
    pub max_residual: f64,
}

impl Line {
    /// Through `points`; `None` of fewer than two places.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            points
                .iter()
                .map(|point| of(point.0 - x, point.1 - y))
                .sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        // Places that are the same, or too many to be told apart.
        if points.len() < 2 || !xx.is_normal() {
            return None;
        }
        let b = xy / xx;
        let line = Self {
            a: y - b * x,
            b,
            r2: None,
            max_residual: 0.0,
        };
        let residual = |point: &(f64, f64)| point.1 - line.at(point.0);
        let left: f64 = points.iter().map(|point| residual(point).powi(2)).sum();
        let largest = points.iter().map(|point| residual(point).abs());
        Some(Self {
            r2: (yy > 0.0).then(|| (1.0 - left / yy).clamp(0.0, 1.0)),
            max_residual: largest.fold(0.0, f64::max),
            ..line
        })
    }

    /// Its height at `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.a + self.b * x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By numpy's `polyfit([1, 2, 3, 5], [2, 4, 5, 9], 1)`, whose R² is 1 - SSres / SStot.
    #[test]
    fn a_line_is_the_least_squares_one() {
        let line = Line::through(&[(1.0, 2.0), (2.0, 4.0), (3.0, 5.0), (5.0, 9.0)]).unwrap();
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6;
        assert!(
            near(line.a, REFERENCE[0]) && near(line.b, REFERENCE[1]),
            "{line:?}"
        );
        assert!(near(line.r2.unwrap(), REFERENCE[2]), "{line:?}");
        assert!(near(line.max_residual, REFERENCE[3]), "{line:?}");
    }

    const REFERENCE: [f64; 4] = [0.285_714, 1.714_286, 0.989_011, 0.428_571];

    #[test]
    fn a_line_needs_two_places() {
        assert_eq!(Line::through(&[]), None);
        assert_eq!(Line::through(&[(1.0, 2.0)]), None);
        assert_eq!(Line::through(&[(1.0, 2.0), (1.0, 3.0)]), None);
        let level = Line::through(&[(1.0, 2.0), (2.0, 2.0)]).unwrap();
        assert_eq!((level.b, level.r2), (0.0, None));
    }
}
