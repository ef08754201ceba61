//! What must not change between two runs: pages split, and what reads give and do.

use crate::groups::{Arm, is_unshared};
use crate::matrix::split::Split;
use crate::runs::Run;
use crate::runs::effects::{Effects, NAMES};
use crate::runs::probes::{Answer, CHANGES, Cell, Gave, Probes, Weight};
use cowitness::emit::summary::Outcome;

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
    /// Differences that are no change, a line each.
    pub(super) noted: Vec<String>,
    /// What could not be compared, a line each, and why.
    pub(super) unknown: Vec<String>,
}

impl Semantics {
    /// One reader in one layout and block, on both sides.
    pub(super) fn split(&mut self, place: &str, method: &str, a: Side<'_>, b: Side<'_>) {
        let (first, second) = (Kept::of(method, a), Kept::of(method, b));
        let place = format!("{place} {method}");
        self.effects(&place, a.effects(), b.effects());
        if first.ends() == second.ends() && !(first.is_known() && second.is_known()) {
            let sides = unknown(first.is_known(), second.is_known());
            self.unknown
                .push(format!("{place}: split pages unknown in {sides}"));
            return;
        }
        self.splits += 1;
        if !first.is_like(&second) {
            let (first, second) = (first.words(), second.words());
            self.changed_splits
                .push(format!("{place}: {first} in A, {second} in B"));
        }
    }

    /// What else the reader changed in that setting. A change counts where half of the cases
    /// have it: a single case may have met something else.
    fn effects(&mut self, place: &str, a: &Effects, b: &Effects) {
        let mut unknown_in: [Vec<&str>; 2] = [Vec::new(), Vec::new()];
        for (index, name) in NAMES.iter().enumerate() {
            let (first, second) = (a.signs[index], b.signs[index]);
            let line = || {
                let (first, second) = (first.words(), second.words());
                format!("{place}: {name} {first} in A, {second} in B")
            };
            match (first.kind(), second.kind()) {
                (Some(one), Some(two)) if one != two => self.changed_answers.push(line()),
                (Some(_), Some(_)) if first.any() != second.any() => self.noted.push(line()),
                (None, Some(_)) => unknown_in[0].push(name),
                (Some(_), None) => unknown_in[1].push(name),
                _ => {}
            }
        }
        for (side, names) in ["A", "B"].into_iter().zip(unknown_in) {
            if !names.is_empty() {
                let names = names.join(", ");
                self.unknown
                    .push(format!("{place}: side effects {names} unknown in {side}"));
            }
        }
    }

    /// Every question that both have asked.
    pub(super) fn probes(&mut self, a: &Probes, b: &Probes) {
        self.only("A", a, b);
        self.only("B", b, a);
        for first in &a.cells {
            if let Some(second) = b.cell(&first.kind, &first.op, &first.method) {
                self.answers(first, second);
            }
        }
    }

    fn answers(&mut self, a: &Cell, b: &Cell) {
        let place = place(a);
        let (first, second) = (answered(a), answered(b));
        if first.is_empty() || second.is_empty() {
            let sides = unknown(!first.is_empty(), !second.is_empty());
            self.unknown.push(format!("{place}: unknown in {sides}"));
            return;
        }
        self.answers += 1;
        for (side, known, lacking) in [("A", &second, &first), ("B", &first, &second)] {
            let marks = unknown_marks(known, lacking);
            if !marks.is_empty() {
                let marks = marks.join(", ");
                self.unknown
                    .push(format!("{place}: side effects {marks} unknown in {side}"));
            }
        }
        if !agree(&first, &second) {
            let (first, second) = (words(&first, false), words(&second, false));
            let line = format!("{place}: {first} in A, {second} in B");
            self.changed_answers
                .push(crate::text::printable(line.as_bytes()));
        } else if words(&first, true) != words(&second, true) {
            let (first, second) = (words(&first, true), words(&second, true));
            let line = format!("{place}: {first} in A, {second} in B");
            self.noted.push(crate::text::printable(line.as_bytes()));
        }
    }

    /// Questions that only this side has asked.
    fn only(&mut self, side: &str, probes: &Probes, other: &Probes) {
        if other.cells.is_empty() && !probes.cells.is_empty() {
            self.unknown.push(format!(
                "{} questions of probe only in {side}",
                probes.cells.len()
            ));
            return;
        }
        let lacks = |cell: &&Cell| other.cell(&cell.kind, &cell.op, &cell.method).is_none();
        let lines = probes.cells.iter().filter(lacks);
        self.unknown
            .extend(lines.map(|cell| format!("{} only in {side}", place(cell))));
    }
}

fn place(cell: &Cell) -> String {
    let Cell {
        kind, op, method, ..
    } = cell;
    crate::text::printable(format!("{kind}, {op}, {method}").as_bytes())
}

/// Answers that are some: a question that was skipped, or failed, has none.
fn answered(cell: &Cell) -> Vec<&Answer> {
    let answers = cell.answers.iter();
    answers
        .filter(|answer| !matches!(answer.gave, Gave::Unanswered(_)))
        .collect()
}

/// Side effects that one side knows of and the other does not.
fn unknown_marks(known: &[&Answer], lacking: &[&Answer]) -> Vec<&'static str> {
    let is_unknown = |answers: &[&Answer], mark: &str| {
        let mut marks = answers.iter().flat_map(|answer| answer.unknown());
        marks.any(|one| one == mark)
    };
    let compared = CHANGES
        .iter()
        .filter(|change| change.weight != Weight::Nothing);
    compared
        .map(|change| change.mark)
        .filter(|mark| is_unknown(lacking, mark) && !is_unknown(known, mark))
        .collect()
}

/// Where something is unknown that is not known in both.
fn unknown(known_in_a: bool, known_in_b: bool) -> &'static str {
    match (known_in_a, known_in_b) {
        (true, _) => "B",
        (_, true) => "A",
        _ => "both",
    }
}

/// The cases of one reader in one setting, and what they have changed.
#[derive(Clone, Copy)]
pub(super) struct Side<'r> {
    pub(super) run: &'r Run,
    pub(super) arm: Arm<'r>,
}

impl<'r> Side<'r> {
    fn effects(self) -> &'r Effects {
        self.run.effects.of(&self.arm.0[0])
    }
}

/// What is kept of the cases of one reader.
struct Kept {
    split: Split,
    /// Cases of which a read failed or ended early.
    failed: usize,
    /// Cases in which other bytes came than the memory held.
    wrong: u64,
}

impl Kept {
    fn of(method: &str, side: Side<'_>) -> Self {
        let samples = side.arm.0;
        let failed = samples
            .iter()
            .filter(|one| matches!(one.outcome, Outcome::Short | Outcome::Errno));
        Self {
            split: crate::groups::split(method, samples.iter()),
            failed: failed.count(),
            wrong: side.effects().wrong,
        }
    }

    fn is_known(&self) -> bool {
        self.split.tracked > 0 || is_unshared(&self.split)
    }

    /// Whether reads failed, and whether they gave wrong bytes.
    fn ends(&self) -> [bool; 2] {
        [self.failed > 0, self.wrong > 0]
    }

    /// The same share, and reads fail, or give wrong bytes, in both or in neither. A case that
    /// was skipped for another reason is no finding of its own.
    fn is_like(&self, other: &Self) -> bool {
        let cross = |a: &Split, b: &Split| u128::from(a.split) * u128::from(b.tracked);
        let (a, b) = (&self.split, &other.split);
        let alike = is_unshared(a) == is_unshared(b) && cross(a, b) == cross(b, a);
        alike && self.ends() == other.ends()
    }

    fn words(&self) -> String {
        let share = crate::groups::percent(&self.split);
        let mut words = match is_unshared(&self.split) {
            true => share,
            false => format!("{share} split"),
        };
        if self.failed > 0 {
            words += &format!(", {} cases failed", self.failed);
        }
        if self.wrong > 0 {
            words += &format!(", {} cases gave wrong bytes", self.wrong);
        }
        words
    }
}

/// Whether the same different answers were seen, as far as both are known.
fn agree(a: &[&Answer], b: &[&Answer]) -> bool {
    let has = |all: &[&Answer], one: &&Answer| all.iter().any(|other| other.is_like(one));
    a.iter().all(|one| has(b, one)) && b.iter().all(|one| has(a, one))
}

/// `all`: with the marks that make no other answer.
fn words(answers: &[&Answer], all: bool) -> String {
    let is_compared = |mark: &str| {
        let mut changes = CHANGES.iter();
        changes.any(|change| change.mark == mark && (all || change.weight != Weight::Nothing))
    };
    let one = |answer: &&Answer| {
        let marks: Vec<String> = answer
            .changes
            .iter()
            .filter(|(mark, _)| is_compared(mark))
            .filter_map(|(mark, count)| Some(format!("{mark}{}", (*count)?)))
            .collect();
        let zero = if answer.content == "zero" && !answer.is_unread() {
            " (zeros)"
        } else {
            ""
        };
        let space = if marks.is_empty() { "" } else { " " };
        format!("{}{zero}{space}{}", answer.words(None), marks.join(" "))
    };
    answers.iter().map(one).collect::<Vec<_>>().join(" or ")
}
