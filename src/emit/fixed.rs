//! Fixed-point numbers: integers that are printed with a decimal point.

/// Hundredths. Two decimals; overflows above 1.8e17.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Centi(pub u64);

impl Centi {
    /// From parts per million, rounded half up.
    #[must_use]
    pub const fn from_ppm(ppm: u64) -> Self {
        Self(ppm / 10_000 + (ppm % 10_000 >= 5_000) as u64)
    }

    /// Reads digits, a point, two digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.')?;
        let number = |digits: &str| crate::proc::number::decimal(digits.as_bytes());
        let fraction = number(fraction).filter(|_| fraction.len() == 2)?;
        number(whole)?
            .checked_mul(100)?
            .checked_add(fraction)
            .map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_decimals_come_back() {
        for (value, text) in [
            (0, "0.00"),
            (5, "0.05"),
            (1234, "12.34"),
            (u64::MAX, "184467440737095516.15"),
        ] {
            assert_eq!(Centi::parse(text), Some(Centi(value)));
        }
        for bad in [
            "",
            ".",
            "1",
            "1.5",
            "1.500",
            ".50",
            "-1.00",
            "1.+5",
            "184467440737095516.16",
        ] {
            assert_eq!(Centi::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn ppm_round_half_up() {
        for (ppm, centi) in [(4_999, 0), (5_000, 1), (1_000_000, 100), (3_895_000, 390)] {
            assert_eq!(Centi::from_ppm(ppm), Centi(centi));
        }
    }
}
