//! The table in words: what each reader gets and changes here, the worst first, and which to
//! choose for what.

use super::table::{ACCESSED, EFFECTS, Gave, Grid, Line, send};
use crate::emit::probe_row::reason;
use crate::fixture::kinds::Op;
use crate::measure::plan::List;
use crate::reader::Method;
use crate::sys::Errno;
use crate::sys::stdio::Output;
use crate::text::Text;

/// Columns of a line of names.
const COLUMNS: usize = 98;
/// Where its further lines begin.
const INDENT: usize = 6;

/// Kinds that never came back, and those that showed each of [`EFFECTS`]: the gravest first.
type Harm = [usize; 1 + EFFECTS.len()];
/// In a [`Harm`].
const NEVER_RETURNS: usize = 0;

/// What one reader did, in kinds.
#[derive(Clone, Copy)]
struct Score {
    column: usize,
    method: Method,
    harm: Harm,
    /// Kinds of which the first page came.
    got: usize,
}

/// The gravest that a reader did.
enum Worst {
    Nothing,
    /// Accessed marks, and nothing else.
    Accessed,
    More,
}

impl Score {
    /// What it does to the target, the least first. How many kinds a reader has marked as accessed
    /// says nothing: to read once more, as a reader of many words does, may take the mark away.
    /// That it stops the target is no effect on its memory, but is one.
    fn disturbance(&self) -> (Harm, bool) {
        let mut harm = self.harm;
        harm[1 + ACCESSED] = harm[1 + ACCESSED].min(1);
        (harm, self.method.stops_target())
    }

    /// In words, behind how many kinds it gets.
    fn how(&self) -> &'static str {
        match self.method.stops_target() {
            true => ", with the target stopped",
            false => "",
        }
    }

    fn worst(&self) -> Worst {
        let shown = |bit: usize| self.harm[bit] > 0;
        match (0..self.harm.len()).find(|&bit| bit != 1 + ACCESSED && shown(bit)) {
            Some(_) => Worst::More,
            None if shown(1 + ACCESSED) => Worst::Accessed,
            None => Worst::Nothing,
        }
    }
}

/// Writes it.
pub(super) fn write(out: Output, grid: &Grid, methods: &[Method]) -> Result<(), Errno> {
    let scores = scores(grid, methods);
    let mut title = Text::new();
    title.add("\nWhat reading does on this kernel, the reader that changes most first");
    send(out, &title)?;
    for score in &scores {
        reader(out, grid, score)?;
    }
    choice(out, &scores)
}

/// The worst first; readers that got nothing, and came back, are left out.
fn scores(grid: &Grid, methods: &[Method]) -> List<Score> {
    let mut scores = List::<Score>::new();
    for (column, &method) in methods.iter().enumerate() {
        let count = |shows: &dyn Fn(&Line) -> bool| kinds(grid, shows).count();
        let mut harm = Harm::default();
        for (bit, kinds) in harm.iter_mut().enumerate() {
            *kinds = count(&|line| shows(line, column, bit));
        }
        let got = count(&|line| got(line, column));
        if got > 0 || harm[NEVER_RETURNS] > 0 {
            // As many as there are methods, which are in a list of the same length.
            let score = Score {
                column,
                method,
                harm,
                got,
            };
            let disturbs = score.disturbance();
            let better = scores
                .iter()
                .position(|other| other.disturbance() < disturbs);
            let _ = scores.insert(better.unwrap_or(scores.len()), score);
        }
    }
    scores
}

/// Kinds with a line that shows something, once each.
fn kinds<'g>(
    grid: &'g Grid,
    shows: &'g dyn Fn(&Line) -> bool,
) -> impl Iterator<Item = &'static str> + 'g {
    let kinds = grid.lines.chunk_by(|a, b| a.kind.name == b.kind.name);
    let shown = kinds.filter(move |lines| lines.iter().any(shows));
    shown.map(|lines| lines[0].kind.name)
}

/// Whether a read of the kind itself did what stands there in a [`Harm`]. What is read in front
/// of a kind (`cross`) is not the kind's.
fn shows(line: &Line, column: usize, bit: usize) -> bool {
    let cell = line.cells[column];
    match bit.checked_sub(1) {
        Some(effect) => line.op != Op::Cross && cell.effects >> effect & 1 == 1,
        None => cell.gave == Gave::Skipped(reason::BLOCKED),
    }
}

fn got(line: &Line, column: usize) -> bool {
    line.op == Op::Page && matches!(line.cells[column].gave, Gave::All | Gave::Zeros)
}

fn reader(out: Output, grid: &Grid, score: &Score) -> Result<(), Errno> {
    let mut head = Text::new();
    head.add("  ").add(score.method.name());
    head.add(": gets ").number(score.got as u64);
    head.add(if score.got == 1 { " kind" } else { " kinds" });
    head.add(match score.worst() {
        Worst::Nothing => " and changes none",
        Worst::Accessed => " and changes none but for accessed marks",
        Worst::More => "",
    });
    head.add(score.how());
    send(out, &head)?;
    let column = score.column;
    for (bit, _) in score
        .harm
        .iter()
        .enumerate()
        .filter(|(_, kinds)| **kinds > 0)
    {
        let does = match bit.checked_sub(1) {
            Some(effect) => EFFECTS[effect].does,
            None => "never returns",
        };
        names(out, does, kinds(grid, &|line| shows(line, column, bit)))?;
    }
    let false_zeros = |line: &Line| line.cells[column].gave == Gave::Skipped(reason::FALSE_ZEROS);
    if kinds(grid, &false_zeros).next().is_some() {
        names(
            out,
            "gives zeros that are not what lies there",
            kinds(grid, &false_zeros),
        )?;
    }
    let others = |line: &Line| (0..line.cells.len()).any(|other| got(line, other));
    let missed = |line: &Line| line.op == Op::Page && others(line) && !got(line, column);
    match kinds(grid, &missed).next() {
        Some(_) => names(out, "does not get what others get", kinds(grid, &missed)),
        None => Ok(()),
    }
}

/// A sentence about kinds, on as many lines as it takes.
fn names(out: Output, does: &str, kinds: impl Iterator<Item = &'static str>) -> Result<(), Errno> {
    let mut line = Text::new();
    line.add("    ").add(does).add(": ");
    let mut used = 4 + does.len() + 2;
    let mut first = true;
    for kind in kinds {
        line.add(if first { "" } else { "," });
        used += kind.len() + 2;
        if used > COLUMNS && !first {
            send(out, &line)?;
            line = Text::new();
            line.pad_to(INDENT);
            used = INDENT + kind.len();
        } else if !first {
            line.add(" ");
        }
        line.add(kind);
        first = false;
    }
    send(out, &line)
}

/// The reader that changes least, of those that get three quarters at least of what the best one
/// gets: who reads little changes little. And of those that get most, the one that changes least.
fn choose(scores: &[Score]) -> Option<(&Score, &Score)> {
    let most = scores.iter().map(|score| score.got).max()?;
    let gentlest = |least: usize| {
        let useful = scores.iter().filter(move |score| score.got >= least.max(1));
        useful.min_by_key(|score| (score.disturbance(), usize::MAX - score.got))
    };
    gentlest((3 * most).div_ceil(4)).zip(gentlest(most))
}

/// Which reader for what.
fn choice(out: Output, scores: &[Score]) -> Result<(), Errno> {
    let Some((gentlest, fullest)) = choose(scores) else {
        return Ok(());
    };
    let name = |lines: &mut Text, score: &Score| {
        lines.add(score.method.name()).add(", ");
        lines.number(score.got as u64);
        lines.add(if score.got == 1 { " kind" } else { " kinds" });
        lines.add(score.how());
    };
    let mut lines = Text::new();
    lines.add("Which to choose here\n  to change least: ");
    name(&mut lines, gentlest);
    lines.add(match gentlest.worst() {
        Worst::Nothing => "; it changed nothing that was looked at",
        Worst::Accessed => "; it changed accessed marks alone",
        Worst::More => "",
    });
    lines.add(" (of those that get 3/4 of what the best gets)\n  to get most: ");
    name(&mut lines, fullest);
    lines.add("\n");
    lines.add("  to be fast: cowitness bench tells, and counts what splitting costs");
    send(out, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(method: Method, got: usize, harms: &[(usize, usize)]) -> Score {
        let mut harm = Harm::default();
        for &(place, kinds) in harms {
            harm[place] = kinds;
        }
        Score {
            column: 0,
            method,
            harm,
            got,
        }
    }

    #[test]
    fn who_reads_little_is_not_advised() {
        let scores = [
            score(Method::Vmread, 21, &[(0, 2), (1, 6)]),
            score(Method::Ptrace, 26, &[(0, 1), (4, 7)]),
            score(Method::Proc, 26, &[(4, 7)]),
            score(Method::Hybrid, 20, &[(1 + ACCESSED, 10)]),
            score(Method::MapFiles, 6, &[]),
        ];
        let advised = choose(&scores).map(|(least, most)| (least.method, most.method));
        assert_eq!(advised, Some((Method::Hybrid, Method::Proc)));
        // A part of a read that waits for ever is worse than any number of splits.
        let advised = choose(&scores[..2]).map(|(least, _)| least.method);
        assert_eq!(advised, Some(Method::Ptrace));
        assert!(choose(&[score(Method::Vmread, 0, &[(0, 1)])]).is_none());
    }

    /// A mark less is none: ptrace accesses a page more often, which may take the mark away.
    #[test]
    fn to_stop_the_target_is_not_made_good_by_a_mark_less() {
        let scores = [
            score(Method::Ptrace, 30, &[(4, 7), (1 + ACCESSED, 9)]),
            score(Method::Proc, 30, &[(4, 7), (1 + ACCESSED, 10)]),
        ];
        let fullest = choose(&scores).map(|(_, most)| most.method);
        assert_eq!(fullest, Some(Method::Proc));
        let fullest = choose(&scores[..1]).map(|(_, most)| most.method);
        assert_eq!(fullest, Some(Method::Ptrace));
    }
}
