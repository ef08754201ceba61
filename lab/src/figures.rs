//! Figures as text. The page's geometry is in per cent of a drawing's width, so that it
//! fits a phone as well as a desk.

use cowitness::stats::{PARTS, rounded};

/// A number of bytes in the largest binary unit that divides it.
pub fn bytes(count: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let whole = |(size, _): &&(u64, &str)| count >= *size && count.is_multiple_of(*size);
    let (size, unit) = units.iter().find(whole).copied().unwrap_or((1, "B"));
    format!("{} {unit}", count / size)
}

/// Hundredths of MiB/s in the parts in which their quantiles are exact.
pub const fn parts(centi: u64) -> u64 {
    centi.saturating_mul(PARTS)
}

/// MiB/s in parts of hundredths, as [`parts`] gives them: whole numbers from 100 on, two decimals
/// below, as the summary has them.
pub fn rate(parts: u64) -> String {
    match rounded(parts, PARTS) {
        0..10_000 => exact(parts),
        _ => rounded(parts, 100 * PARTS).to_string(),
    }
}

/// The same with two decimals, for tables.
pub fn exact(parts: u64) -> String {
    let centi = rounded(parts, PARTS);
    format!("{}.{:02}", centi / 100, centi % 100)
}

/// A ratio in parts per million, two decimals.
pub fn ratio(ppm: u64) -> String {
    let centi = cowitness::emit::fixed::Centi::from_ppm(ppm).0;
    format!("{}.{:02}", centi / 100, centi % 100)
}

/// How much faster, as people say it: `3.9×` from one and a half on, `+29 %` below.
pub fn gain(ppm: u64) -> String {
    if ppm < 1_500_000 {
        return format!("+{} %", (ppm.saturating_sub(1_000_000) + 5_000) / 10_000);
    }
    let tenths = (ppm + 50_000) / 100_000;
    format!("{}.{}×", tenths / 10, tenths % 10)
}

/// `part` of `whole` in per cent with two decimals, for a drawing; at most 100.
pub fn place(part: u64, whole: u64) -> String {
    let part = part.min(whole);
    let centi = match u128::from(whole) {
        0 => 0,
        whole => u128::from(part) * 10_000 / whole,
    };
    format!("{}.{:02}%", centi / 100, centi % 100)
}

/// The end of an axis: round, not below `value`, and round in four equal parts, too.
pub fn round_up(value: u64) -> u64 {
    let mut power = 1_u64;
    while power.saturating_mul(10) < value {
        power = power.saturating_mul(10);
    }
    let steps = [10, 12, 16, 20, 24, 28, 32, 40, 48, 60, 80, 100];
    let step = steps
        .iter()
        .map(|step| (power / 10).max(1).saturating_mul(*step));
    step.filter(|step| *step >= value).min().unwrap_or(value)
}

/// `one, two and three`.
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// Of places in order, each with whether something holds there: the first from which on it
/// holds at all of them. `None`: it does not hold at the last, or there is none.
pub fn lasting(places: impl IntoIterator<Item = (u64, bool)>) -> Option<u64> {
    let mut since = None;
    for (place, holds) in places {
        since = holds.then(|| since.unwrap_or(place));
    }
    since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_does_so_to_the_end() {
        let lasts = |holds: &[bool]| lasting((1..).zip(holds.iter().copied()));
        assert_eq!(lasts(&[false, false, true, true]), Some(3));
        assert_eq!(lasts(&[true, true]), Some(1));
        assert_eq!(lasts(&[true, false, true]), Some(3));
        assert_eq!(lasts(&[true, false]), None);
        assert_eq!(lasts(&[]), None);
    }

    #[test]
    fn figures_read_as_people_say_them() {
        assert_eq!(
            (gain(3_895_000), gain(1_287_000)),
            ("3.9×".into(), "+29 %".into())
        );
        assert_eq!(
            (rate(parts(329_049)), rate(parts(9_999))),
            ("3290".into(), "99.99".into())
        );
        assert_eq!(
            (bytes(262_144), bytes(1000)),
            ("256 KiB".into(), "1000 B".into())
        );
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(
            (list(&words), list(&words[..1])),
            ("a, b and c".into(), "a".into())
        );
    }

    #[test]
    fn places_stay_within_the_drawing() {
        for (part, whole, at) in [(1, 3, "33.33%"), (5, 4, "100.00%"), (0, 0, "0.00%")] {
            assert_eq!(place(part, whole), at);
        }
        assert_eq!(place(u64::MAX, u64::MAX), "100.00%");
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [
            (1, 10),
            (812_900, 1_000_000),
            (1_217_600, 1_600_000),
            (770_000, 800_000),
            (200, 200),
            (201, 240),
        ] {
            assert_eq!(round_up(value), end, "{value}");
        }
        assert_eq!(round_up(u64::MAX), u64::MAX);
    }
}
