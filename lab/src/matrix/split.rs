//! Pages that readers have split, row by row.

use cowitness::emit::bench_row::NOT_APPLICABLE;
use cowitness::emit::probe_row::{ProbeRow, is_loss};
use cowitness::emit::record::Status;

/// How sharing can have been decided.
const EVIDENCE: [&str; 2] = ["pfn", "exclusive"];

/// Why `survey` passes over a mapping that nobody reads: the kernel's own, a device's, or one whose
/// pages another process serves. That is no loss.
const NOBODY_READS: [&str; 3] = ["not-user-memory", "device-memory", "userfaultfd"];

/// Pages that a reader has split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// The reader.
    pub method: String,
    /// Pages that were shared before.
    pub tracked: u64,
    /// Of those, not shared afterwards.
    pub split: u64,
    /// Cases that count.
    pub ok: u64,
    /// Cases that do not.
    pub not_ok: u64,
}

impl Split {
    /// Per cent with two decimals where it is not whole, rounded down, and never to 0; the
    /// count of cases that do not count comes with it.
    #[must_use]
    pub fn percent(&self) -> String {
        let lost = match self.not_ok {
            0 => String::new(),
            lost => format!(" ({lost} of {} cases lost)", self.ok + lost),
        };
        if self.tracked == 0 {
            return format!("unknown{lost}");
        }
        let hundredths = u128::from(self.split) * 10_000 / u128::from(self.tracked);
        let percent = match (self.split, hundredths) {
            (0, _) => "0".to_owned(),
            (split, _) if split == self.tracked => "100".to_owned(),
            (_, 0) => "< 0.01".to_owned(),
            (_, shown) => format!("{}.{:02}", shown / 100, shown % 100),
        };
        percent + &lost
    }

    /// Whether it is exactly `percent` (0 or 100) of the pages, in every case.
    #[must_use]
    pub fn is_exactly(&self, percent: u64) -> bool {
        let wanted = u128::from(self.tracked) * u128::from(percent);
        self.tracked > 0 && self.not_ok == 0 && u128::from(self.split) * 100 == wanted
    }
}

/// What a row says of split pages.
pub(super) struct Pages<'r> {
    pub(super) method: &'r str,
    pub(super) status: Status<'r>,
    pub(super) evidence: &'r str,
    /// Tracked pages, and those split.
    pub(super) counts: (Option<u64>, Option<u64>),
}

/// Whether a row says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    Ok,
    Lost,
    NotApplicable,
}

impl Weight {
    /// Of a row whose status tells all.
    pub(super) fn of(status: Status<'_>) -> Self {
        match status {
            Status::Ok => Self::Ok,
            _ => Self::Lost,
        }
    }

    /// Of a row of `probe`, where what a machine does not have is no loss.
    pub(super) fn of_probe(row: &ProbeRow<'_>) -> Self {
        match (row.status, is_loss(row.method, row.status)) {
            (Status::Ok, _) => Self::Ok,
            (_, true) => Self::Lost,
            (_, false) => Self::NotApplicable,
        }
    }

    /// Of a row of `survey`: a mapping that nobody reads has nothing to forecast.
    pub(super) fn of_survey(status: Status<'_>) -> Self {
        match status {
            Status::Skipped(why) if NOBODY_READS.contains(&why) => Self::NotApplicable,
            status => Self::of(status),
        }
    }
}

/// Tracked pages and those split, if somebody looked: else they are not unchanged, but unknown.
pub(crate) fn counts(evidence: &str, pages: (Option<u64>, Option<u64>)) -> Option<(u64, u64)> {
    let looked = EVIDENCE.contains(&evidence);
    pages.0.zip(pages.1).filter(|_| looked)
}

/// Whether a case was skipped because it cannot be: no loss.
pub(crate) fn is_not_applicable(status: Status<'_>) -> bool {
    status == Status::Skipped(NOT_APPLICABLE)
}

impl Pages<'_> {
    pub(super) fn weight(&self) -> Weight {
        match (self.status, counts(self.evidence, self.counts)) {
            (status, _) if is_not_applicable(status) => Weight::NotApplicable,
            (Status::Ok, Some(_)) => Weight::Ok,
            _ => Weight::Lost,
        }
    }
}

/// Puts a row to those of its reader.
pub(super) fn count(splits: &mut Vec<Split>, pages: &Pages<'_>) {
    let place = splits.iter().position(|split| split.method == pages.method);
    let place = place.unwrap_or_else(|| {
        splits.push(Split {
            method: pages.method.to_owned(),
            ..Split::default()
        });
        splits.len() - 1
    });
    let split = &mut splits[place];
    match pages.weight() {
        Weight::NotApplicable => {}
        Weight::Lost => split.not_ok += 1,
        Weight::Ok => {
            split.ok += 1;
            split.tracked += pages.counts.0.unwrap_or(0);
            split.split += pages.counts.1.unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(split: u64, tracked: u64, not_ok: u64) -> Split {
        Split {
            method: "proc".to_owned(),
            tracked,
            split,
            ok: 2,
            not_ok,
        }
    }

    #[test]
    fn nothing_is_rounded_to_none_or_all() {
        for (pages, percent) in [
            (0, "0"),
            (1, "< 0.01"),
            (100, "0.01"),
            (499_999, "49.99"),
            (999_999, "99.99"),
            (1_000_000, "100"),
        ] {
            assert_eq!(split(pages, 1_000_000, 0).percent(), percent);
        }
    }

    #[test]
    fn what_is_not_known_matches_nothing() {
        assert_eq!(split(0, 0, 3).percent(), "unknown (3 of 5 cases lost)");
        assert!(!split(0, 0, 0).is_exactly(0));
        assert!(!split(0, 10, 1).is_exactly(0));
        assert!(split(10, 10, 0).is_exactly(100) && !split(9, 10, 0).is_exactly(100));
    }
}
