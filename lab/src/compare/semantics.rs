//! What must not change between two runs: pages split, and what reads give and do.

use crate::matrix::split::Split;
use crate::runs::probes::{Answer, Cell, Probes};
use cowitness::emit::summary::{Outcome, Sample};

/// What was compared, and what differs.
#[derive(Debug, Default)]
pub(super) struct Semantics {
    /// Settings with split pages on both sides.
    pub(super) splits: usize,
    /// Those that differ, a line each.
    pub(super) changed_splits: Vec<String>,
    /// Questions asked on both sides.
    pub(super) answers: usize,
    /// Those answered otherwise, a line each.
    pub(super) changed_answers: Vec<String>,
}

impl Semantics {
    /// One reader in one layout and block, on both sides.
    pub(super) fn split(&mut self, place: &str, method: &str, a: &[Sample], b: &[Sample]) {
        self.splits += 1;
        let (first, second) = (Kept::of(method, a), Kept::of(method, b));
        if !first.is_like(&second) {
            let (first, second) = (first.words(), second.words());
            self.changed_splits
                .push(format!("{place} {method}: {first} in A, {second} in B"));
        }
    }

    /// Every question that both have asked.
    pub(super) fn probes(&mut self, a: &Probes, b: &Probes) {
        for first in &a.cells {
            let Some(second) = b.cell(&first.kind, &first.op, &first.method) else {
                continue;
            };
            self.answers += 1;
            if !agree(&first.answers, &second.answers) {
                let Cell {
                    kind, op, method, ..
                } = first;
                let (first, second) = (words(&first.answers), words(&second.answers));
                let line = format!("{kind}, {op}, {method}: {first} in A, {second} in B");
                self.changed_answers
                    .push(crate::text::printable(line.as_bytes()));
            }
        }
    }
}

/// What is kept of the cases of one reader.
struct Kept {
    split: Split,
    /// Cases of which a read failed or ended early.
    failed: usize,
}

impl Kept {
    fn of(method: &str, samples: &[Sample]) -> Self {
        let failed = samples
            .iter()
            .filter(|one| matches!(one.outcome, Outcome::Short | Outcome::Errno));
        Self {
            split: crate::groups::split(method, samples.iter()),
            failed: failed.count(),
        }
    }

    /// The same share, and reads fail in both or in neither. A case that was skipped is no
    /// finding of its own.
    fn is_like(&self, other: &Self) -> bool {
        let cross = |a: &Split, b: &Split| u128::from(a.split) * u128::from(b.tracked);
        let (a, b) = (&self.split, &other.split);
        (a.tracked == 0) == (b.tracked == 0)
            && cross(a, b) == cross(b, a)
            && (self.failed == 0) == (other.failed == 0)
    }

    fn words(&self) -> String {
        let share = crate::groups::percent(&self.split);
        match self.failed {
            0 => format!("{share} split"),
            failed => format!("{share} split, {failed} cases failed"),
        }
    }
}

/// Whether the same different answers were seen.
fn agree(a: &[Answer], b: &[Answer]) -> bool {
    a.iter().all(|one| b.contains(one)) && b.iter().all(|one| a.contains(one))
}

fn words(answers: &[Answer]) -> String {
    let one = |answer: &Answer| {
        let marks: Vec<String> = answer
            .changes
            .iter()
            .map(|(mark, count)| format!("{mark}{count}"))
            .collect();
        let zero = if answer.content == "zero" {
            " (zeros)"
        } else {
            ""
        };
        let space = if marks.is_empty() { "" } else { " " };
        format!("{}{zero}{space}{}", answer.words(None), marks.join(" "))
    };
    answers.iter().map(one).collect::<Vec<_>>().join(" or ")
}
