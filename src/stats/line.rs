//! A straight line through points, by least squares, in exact integers.
//!
//! Sums are kept whole (`i128`); only the results are rounded, half away from zero. With k
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
    /// A sum does not fit.
    Overflow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    points: i128,
    x: i128,
    y: i128,
    xx: i128,
    xy: i128,
}

impl Line {
    /// The line through `points`, of which two have different x.
    ///
    /// # Errors
    /// [`LineError`].
    pub fn through(points: &[(u64, u64)]) -> Result<Self, LineError> {
        Self::sums(points).ok_or(LineError::Overflow)?
    }

    fn sums(points: &[(u64, u64)]) -> Option<Result<Self, LineError>> {
        let count = points.len() as i128;
        let [mut x, mut y, mut xx, mut yy, mut xy] = [0i128; 5];
        for &(px, py) in points {
            let (px, py) = (i128::from(px), i128::from(py));
            x += px;
            y += py;
            xx = xx.checked_add(px.checked_mul(px)?)?;
            yy = yy.checked_add(py.checked_mul(py)?)?;
            xy = xy.checked_add(px.checked_mul(py)?)?;
        }
        let centered = |sum: i128, left: i128, right: i128| {
            count
                .checked_mul(sum)?
                .checked_sub(left.checked_mul(right)?)
        };
        let (xx, yy, xy) = (
            centered(xx, x, x)?,
            centered(yy, y, y)?,
            centered(xy, x, y)?,
        );
        if xx == 0 {
            return Some(Err(LineError::OneX));
        }
        let sums = Sums {
            points: count,
            x,
            y,
            xx,
            xy,
        };
        Some(Ok(Self {
            // (y - slope x) / k, over one divisor.
            intercept_milli: milli(
                y.checked_mul(xx)?.checked_sub(xy.checked_mul(x)?)?,
                count.checked_mul(xx)?,
            )?,
            slope_milli: milli(xy, xx)?,
            r2_milli: explained(xx, yy, xy),
            sums,
        }))
    }

    /// How far a point lies above the line, in thousandths; `None` if it does not fit.
    #[must_use]
    pub fn residual_milli(&self, x: u64, y: u64) -> Option<i64> {
        let Sums {
            points,
            x: sum_x,
            y: sum_y,
            xx,
            xy,
        } = self.sums;
        let (x, y) = (i128::from(x), i128::from(y));
        let height = points.checked_mul(y)?.checked_sub(sum_y)?;
        let along = points.checked_mul(x)?.checked_sub(sum_x)?;
        let above = xx
            .checked_mul(height)?
            .checked_sub(xy.checked_mul(along)?)?;
        milli(above, points.checked_mul(xx)?)
    }
}

/// `dividend / divisor` in thousandths, rounded half away from zero; the divisor is above 0.
fn milli(dividend: i128, divisor: i128) -> Option<i64> {
    let divisor = divisor.unsigned_abs();
    let magnitude = dividend.unsigned_abs();
    let (whole, rest) = (magnitude / divisor, magnitude % divisor);
    let part = rest.checked_mul(1000)?.checked_add(divisor / 2)? / divisor;
    let value = i64::try_from(whole.checked_mul(1000)?.checked_add(part)?).ok()?;
    Some(if dividend < 0 { -value } else { value })
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
                assert_eq!(line.residual_milli(*x, *y), Some(*residual), "{x} {y}");
            }
        }
    }

    #[test]
    fn what_has_no_line_says_why() {
        assert_eq!(Line::through(&[]), Err(LineError::OneX));
        assert_eq!(Line::through(&[(3, 1), (3, 9)]), Err(LineError::OneX));
        let far = [(0, 0), (u64::MAX, u64::MAX), (1 << 63, 5)];
        assert_eq!(Line::through(&far), Err(LineError::Overflow));
    }
}
