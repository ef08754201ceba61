//! What the cases of `bench` changed beside split pages, summed up by setting: rows by the
//! million keep no columns of their own for it.

use super::probes::WRONG_BYTES;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::record::Status;
use cowitness::emit::summary::{Name, Sample};
use std::collections::HashMap;

/// How a row is asked for a column of side effects.
type Get = fn(&BenchRow<'_>) -> Option<i64>;

/// How many of them.
const COUNT: usize = 9;

/// Their names, in the order of [`Effects::signs`].
pub const NAMES: [&str; COUNT] = [
    "target_minflt",
    "target_majflt",
    "reader_minflt_cold",
    "reader_minflt_warm",
    "target_rss_kib",
    "target_pss_kib",
    "target_shared_dirty_kib",
    "target_private_kib",
    "partner_pss_kib",
];

/// In the order of [`NAMES`].
const COLUMNS: [Get; COUNT] = [
    |row| row.target_minflt,
    |row| row.target_majflt,
    |row| signed(row.reader_minflt_cold),
    |row| signed(row.reader_minflt_warm),
    |row| row.target_rss_kib,
    |row| row.target_pss_kib,
    |row| row.target_shared_dirty_kib,
    |row| row.target_private_kib,
    |row| row.partner_pss_kib,
];

/// One reader in one layout and block.
type Setting = (Name, Name, Option<u64>, u64, Name);

/// In how many cases a column fell, stayed and grew. A case that did not end well, or does not
/// tell, is in none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs {
    cases: [u64; 3],
}

/// What the cases of one setting changed.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// By column, as in [`NAMES`].
    pub signs: [Signs; COUNT],
    /// Cases in which other bytes came than the memory held.
    pub wrong: u64,
}

/// Of all settings.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    by_setting: HashMap<Setting, Effects>,
    none: Effects,
}

impl Settings {
    /// Adds a row, of which `sample` is kept.
    pub fn add(&mut self, row: &BenchRow<'_>, sample: &Sample) {
        let found = self.by_setting.entry(setting(sample)).or_default();
        found.wrong += u64::from(row.status == Status::Skipped(WRONG_BYTES));
        if row.status != Status::Ok {
            return;
        }
        for (signs, get) in found.signs.iter_mut().zip(COLUMNS) {
            if let Some(change) = get(row) {
                let place = usize::from(change >= 0) + usize::from(change > 0);
                signs.cases[place] += 1;
            }
        }
    }

    /// Adds all that another stream has.
    pub fn extend(&mut self, other: Self) {
        for (setting, effects) in other.by_setting {
            let found = self.by_setting.entry(setting).or_default();
            found.wrong += effects.wrong;
            for (signs, more) in found.signs.iter_mut().zip(effects.signs) {
                for (count, more) in signs.cases.iter_mut().zip(more.cases) {
                    *count += more;
                }
            }
        }
    }

    /// Of the setting that a sample is of.
    #[must_use]
    pub fn of(&self, sample: &Sample) -> &Effects {
        self.by_setting.get(&setting(sample)).unwrap_or(&self.none)
    }
}

impl Signs {
    /// Whether the column falls (-1) or grows (1) in at least half of the cases; 0: neither,
    /// or both. `None`: no case tells.
    #[must_use]
    pub fn kind(self) -> Option<i8> {
        let all: u64 = self.cases.iter().sum();
        let [fell, _, grew] = self.cases.map(|count| count * 2 >= all);
        (all > 0).then(|| i8::from(grew) - i8::from(fell))
    }

    /// Whether any case has fewer, and whether any has more.
    #[must_use]
    pub fn any(self) -> [bool; 2] {
        let [fell, _, grew] = self.cases;
        [fell > 0, grew > 0]
    }

    /// `unchanged`, `grew in 30 of 30 cases`.
    #[must_use]
    pub fn words(self) -> String {
        let all: u64 = self.cases.iter().sum();
        let [fell, _, grew] = self.cases;
        let ways = [(fell, "fell"), (grew, "grew")];
        let words: Vec<String> = ways
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, way)| format!("{way} in {count} of {all} cases"))
            .collect();
        match words.is_empty() {
            true => "unchanged".to_owned(),
            false => words.join(" and "),
        }
    }
}

fn setting(sample: &Sample) -> Setting {
    let (layout, pages, segment_pages, block_bytes) = sample.group();
    (layout, pages, segment_pages, block_bytes, sample.method)
}

fn signed(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_cases_make_a_change() {
        let kind = |cases| Signs { cases }.kind();
        assert_eq!(kind([0, 0, 0]), None);
        assert_eq!(kind([0, 9, 1]), Some(0));
        assert_eq!(kind([0, 5, 5]), Some(1));
        assert_eq!(kind([6, 4, 0]), Some(-1));
        let words = Signs { cases: [0, 9, 1] }.words();
        assert_eq!(words, "grew in 1 of 10 cases");
    }
}
