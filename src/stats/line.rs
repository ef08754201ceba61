//! A straight line through points, by least squares, in exact integers.
//!
//! Sums are whole (`i128`); only the results are rounded, half away from zero. With k
//! points, slope = Sxy / Sxx and R2 = Sxy^2 / (Sxx Syy), where Sxy = k sum xy - sum x sum y
//! and so on (Draper & Smith, *Applied Regression Analysis*, 3rd ed. 1998, ch. 1).

/// y = intercept + slope x, in thousandths of the unit of y.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it begins, at x = 0.
    pub intercept_milli: i64,
    /// How much y grows with 1 of x.
    pub slope_milli: i64,
    /// Share of the variance of y that the line explains, in thousandths, rounded down:
    /// 1000 is all of it. `None` if y does not vary.
    pub r2_milli: Option<i64>,
    sums: Sums,
}

/// Why there is no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineError {
    /// Fewer than two different x.
    OneX,
    /// More or larger points than this is for.
    OutOfBounds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    points: i128,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
}

/// Bounds within which no sum or product below overflows: xx stays below 2^56, y times xx
/// below 2^110.
const POINTS_MAX: usize = 1 << 6;
const X_MAX: u64 = 1 << 20;
const Y_MAX: u64 = 1 << 48;

impl Line {
    /// The line through `points`, of which two have different x. At most 64 points, x up to
    /// 2^20, y up to 2^48.
    ///
    /// # Errors
    /// [`LineError`].
    pub fn through(points: &[(u64, u64)]) -> Result<Self, LineError> {
        if points.len() > POINTS_MAX || points.iter().any(|(x, y)| *x > X_MAX || *y > Y_MAX) {
            return Err(LineError::OutOfBounds);
        }
        let sum = |term: &dyn Fn(i128, i128) -> i128| -> i128 {
            points.iter().map(|&(x, y)| term(x.into(), y.into())).sum()
        };
        let count = points.len() as i128;
        let (x, y) = (sum(&|x, _| x), sum(&|_, y| y));
        let sums = Sums {
            points: count,
            x,
            y,
            xx: count * sum(&|x, _| x * x) - x * x,
            xy: count * sum(&|x, y| x * y) - x * y,
        };
        if sums.xx == 0 {
            return Err(LineError::OneX);
        }
        let yy = count * sum(&|_, y| y * y) - y * y;
        Ok(Self {
            intercept_milli: -sums.above(0, 0),
            slope_milli: milli(sums.xy, sums.xx),
            r2_milli: explained(sums.xx, yy, sums.xy),
            sums,
        })
    }

    /// How far a point lies above the line, in thousandths. x up to 2^20, y up to 2^48.
    #[must_use]
    pub fn residual_milli(&self, x: u64, y: u64) -> i64 {
        self.sums.above(x, y)
    }
}

impl Sums {
    /// y - intercept - slope x, over one divisor.
    fn above(&self, x: u64, y: u64) -> i64 {
        let height = self.points * i128::from(y.min(Y_MAX)) - self.y;
        let along = self.points * i128::from(x.min(X_MAX)) - self.x;
        milli(self.xx * height - self.xy * along, self.points * self.xx)
    }
}

/// `dividend / divisor` in thousandths, rounded half away from zero; the divisor is above 0,
/// and a thousand times it fits.
fn milli(dividend: i128, divisor: i128) -> i64 {
    let (whole, rest) = (dividend.abs() / divisor, dividend.abs() % divisor);
    let value = whole * 1000 + (rest * 1000 + divisor / 2) / divisor;
    // A slope or height within the bounds is far below 2^63 thousandths.
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    if dividend < 0 { -value } else { value }
}

/// xy^2 / (xx yy) in thousandths, rounded down; `None` if yy is 0. The product may not fit:
/// xx and yy lose an even number of low bits until 58 are left, xy half as many of each,
/// which is less than one part in 2^28 wherever R2 is a thousandth or more.
fn explained(xx: i128, yy: i128, xy: i128) -> Option<i64> {
    let (xx, yy, xy) = (xx.unsigned_abs(), yy.unsigned_abs(), xy.unsigned_abs());
    let half = |value: u128| (128 - value.leading_zeros()).saturating_sub(58).div_ceil(2);
    let (by_x, by_y) = (half(xx), half(yy));
    let whole = (xx >> (2 * by_x)) * (yy >> (2 * by_y));
    let part = xy >> (by_x + by_y);
    let milli = (part * part).saturating_mul(1000).checked_div(whole)?;
    i64::try_from(milli.min(1000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python, with fractions: R2 floored, the others rounded half away from zero.
    #[test]
    fn lines_agree_with_the_reference() {
        type Known<'k> = (&'k [(u64, u64)], i64, i64, Option<i64>, &'k [i64]);
        let known: [Known<'_>; 4] = [
            (
                &[
                    (1, 409113),
                    (2, 431870),
                    (4, 466001),
                    (8, 540777),
                    (16, 701234),
                    (32, 1012345),
                ],
                389321040,
                19451012,
                Some(999),
                &[340948, 3646936, -1124088, -4152136, 696767, 591574],
            ),
            (
                &[(1, 7), (2, 7), (4, 7), (8, 7)],
                7000,
                0,
                None,
                &[0, 0, 0, 0],
            ),
            (
                &[(0, 10), (1, 8), (2, 5), (3, 5), (7, 1)],
                8952,
                -1212,
                Some(917),
                &[1048, 260, -1527, -315, 534],
            ),
            (
                &[
                    (1, 3600000000000),
                    (100000, 2),
                    (50000, 1700000000000),
                    (7, 3599999999999),
                ],
                3581948960179704,
                -36183375825,
                Some(999),
                &[
                    18087223196120,
                    36388622296442,
                    -72780168942631,
                    18304323450069,
                ],
            ),
        ];
        for (points, intercept, slope, r2, residuals) in known {
            let line = Line::through(points).unwrap();
            assert_eq!(line.intercept_milli, intercept, "{points:?}");
            assert_eq!(line.slope_milli, slope, "{points:?}");
            assert_eq!(line.r2_milli, r2, "{points:?}");
            for ((x, y), residual) in points.iter().zip(residuals) {
                assert_eq!(line.residual_milli(*x, *y), *residual, "{x} {y}");
            }
        }
    }

    #[test]
    fn what_has_no_line_says_why() {
        assert_eq!(Line::through(&[]), Err(LineError::OneX));
        assert_eq!(Line::through(&[(3, 1), (3, 9)]), Err(LineError::OneX));
        for far in [(X_MAX + 1, 0), (0, Y_MAX + 1)] {
            assert_eq!(Line::through(&[(1, 2), far]), Err(LineError::OutOfBounds));
        }
        let many = [(1, 1); POINTS_MAX + 1];
        assert_eq!(Line::through(&many), Err(LineError::OutOfBounds));
    }

    /// The corners of what is allowed, where a sum that overflowed would panic.
    #[test]
    fn the_bounds_hold() {
        let mut points = [(0, Y_MAX); POINTS_MAX];
        points[POINTS_MAX - 1] = (X_MAX, 0);
        let down = Line::through(&points).unwrap();
        assert_eq!(down.slope_milli, -1000 * (Y_MAX / X_MAX).cast_signed());
        assert_eq!(
            (down.r2_milli, down.residual_milli(X_MAX, 0)),
            (Some(1000), 0)
        );
        points
            .iter_mut()
            .for_each(|point| point.1 = Y_MAX - point.1);
        let up = Line::through(&points).unwrap();
        assert_eq!((up.slope_milli, up.intercept_milli), (-down.slope_milli, 0));
    }
}
