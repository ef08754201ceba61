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

/// Thousandths, signed. Three decimals; overflows beyond 9.2e15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Milli(pub i64);

impl Milli {
    /// Reads a minus sign perhaps, digits, a point, three digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (sign, plain) = match text.strip_prefix('-') {
            Some(plain) => (-1, plain),
            None => (1, text),
        };
        let (whole, fraction) = plain.split_once('.')?;
        let number = |digits: &str| {
            let number = crate::proc::number::decimal(digits.as_bytes())?;
            i64::try_from(number).ok()
        };
        let fraction = number(fraction).filter(|_| fraction.len() == 3)?;
        let thousandths = number(whole)?.checked_mul(1000)?.checked_add(fraction)?;
        Some(Self(sign * thousandths))
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

    #[test]
    fn thousandths_come_back() {
        for (text, want) in [
            ("0.000", 0),
            ("-0.001", -1),
            ("12.345", 12_345),
            ("-7.100", -7_100),
        ] {
            assert_eq!(Milli::parse(text), Some(Milli(want)));
            let mut out = crate::text::Text::new();
            out.thousandths(want);
            assert_eq!(out.read().unwrap(), text);
        }
        for bad in [
            "", "1", "1.00", "1.0000", "+1.000", "--1.000", "1.-01", "-.001",
        ] {
            assert_eq!(Milli::parse(bad), None, "{bad}");
        }
    }
}
