//! The answers as a table on standard error: a line for each question, a column for each
//! reader.

use crate::emit::probe_row::reason;
use crate::emit::record::Status;
use crate::fixture::kinds::{Kind, Op};
use crate::measure::plan::LIST_MAX;
use crate::measure::probe::{Content, Probed};
use crate::reader::{End, Method};
use crate::sys::stdio::Output;
use crate::sys::{Errno, errno};
use crate::text::{Full, Text};
use heapless::Vec;

/// Most questions: two ops of 64 kinds.
const LINES_MAX: usize = 128;
/// Where the op and the first reader's column begin, and how wide a column is.
const OP: usize = 24;
const FIRST: usize = 30;
const WIDTH: usize = 10;

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gave {
    /// Not asked.
    Nothing,
    /// All, as written or unknown.
    All,
    /// All, zeros.
    Zeros,
    /// So many pages, then the errno, if any.
    Part(u64, &'static str),
    /// No byte, but an errno.
    Refused(&'static str),
    /// No answer.
    Skipped(&'static str),
}

/// One read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) gave: Gave,
    /// Bit n: [`EFFECTS`] n.
    pub(super) effects: u8,
}

/// A side effect.
pub(super) struct Effect {
    letter: &'static str,
    /// For the line below the table.
    meaning: &'static str,
    /// For a sentence about kinds.
    pub(super) does: &'static str,
    shows: fn(&Probed) -> bool,
}

/// The gravest first; the last is what reclaim alone looks at.
pub(super) static EFFECTS: [Effect; 8] = [
    Effect {
        letter: "S",
        meaning: "split shared pages",
        does: "splits pages",
        shows: |probed| {
            probed
                .changes
                .is_some_and(|changes| changes.all_split() > 0)
        },
    },
    Effect {
        letter: "H",
        meaning: "broke a huge page up",
        does: "breaks huge pages up",
        shows: |probed| probed.target.is_some_and(|target| target.anon_huge_kib < 0),
    },
    Effect {
        letter: "W",
        meaning: "swapped in",
        does: "swaps in",
        shows: |probed| probed.changes.is_some_and(|changes| changes.swapped_in > 0),
    },
    Effect {
        letter: "F",
        meaning: "faulted pages in",
        does: "faults pages in",
        shows: |probed| {
            let absent = |probed: &Probed| probed.changes.is_some_and(|c| c.faulted_in > 0);
            absent(probed)
                || probed
                    .target
                    .is_some_and(|target| target.rss_kib > 0 && !swapped(probed))
        },
    },
    Effect {
        letter: "V",
        meaning: "changed mappings, or made one longer",
        does: "changes mappings",
        shows: |probed| {
            let more_or_fewer = probed.target.is_some_and(|target| target.vmas != 0);
            more_or_fewer || probed.target_vm_size_kib.is_some_and(|kib| kib != 0)
        },
    },
    Effect {
        letter: "P",
        meaning: "changed what the parent maps",
        does: "changes what the parent maps",
        shows: |probed| {
            let partner = probed.changes.and_then(|changes| changes.partner);
            partner.is_some_and(|pages| pages > 0)
        },
    },
    Effect {
        letter: "D",
        meaning: "marked pages as soft-dirty",
        does: "marks pages as soft-dirty",
        shows: |probed| {
            let dirty = probed.changes.and_then(|changes| changes.soft_dirty);
            dirty.is_some_and(|pages| pages > 0)
        },
    },
    Effect {
        letter: "A",
        meaning: "marked pages as accessed",
        does: "marks pages as accessed",
        shows: |probed| {
            let referenced = probed.target.map(|target| target.referenced_kib);
            referenced.is_some_and(|kib| kib != 0)
        },
    },
];
/// Number of the last of [`EFFECTS`].
pub(super) const ACCESSED: usize = EFFECTS.len() - 1;

fn swapped(probed: &Probed) -> bool {
    probed.changes.is_some_and(|changes| changes.swapped_in > 0)
}

impl Cell {
    const NONE: Self = Self {
        gave: Gave::Nothing,
        effects: 0,
    };

    fn of(probed: &Probed, page_bytes: u64) -> Self {
        let said = |end| match end {
            End::Failed(errno) => errno::name_or_unknown(errno),
            End::Complete | End::Short => "",
        };
        let gave = match (probed.status, probed.answer) {
            (Status::Skipped(reason), _) => Gave::Skipped(reason),
            (Status::Errno(name), _) => Gave::Refused(name),
            (_, None) => Gave::Nothing,
            (_, Some(answer)) => match (answer.bytes, answer.content) {
                (0, _) => Gave::Refused(said(answer.end)),
                (bytes, Some(Content::Zero)) if bytes == probed.requested => Gave::Zeros,
                (bytes, _) if bytes == probed.requested => Gave::All,
                (bytes, _) => Gave::Part(bytes / page_bytes, said(answer.end)),
            },
        };
        let bits = EFFECTS.iter().enumerate();
        let effects = bits.fold(0, |effects, (bit, effect)| {
            effects | u8::from((effect.shows)(probed)) << bit
        });
        Self { gave, effects }
    }

    /// The letter of the gravest effect, if there is one.
    fn gravest(&self) -> &'static str {
        let first = EFFECTS.get(self.effects.trailing_zeros() as usize);
        first.map_or("", |effect| effect.letter)
    }

    fn write(&self, line: &mut Text) {
        match self.gave {
            Gave::Nothing => line.add(""),
            Gave::All => line.add("all"),
            Gave::Zeros => line.add("zero"),
            Gave::Part(pages, errno) => line.number(pages).add(self.gravest()).add(" ").add(errno),
            Gave::Refused("") => line.add("none"),
            Gave::Refused(errno) => line.add(errno),
            Gave::Skipped(why) => line.add(short(why)),
        };
        // There is no room for more.
        if matches!(self.gave, Gave::Part(..)) {
            return;
        }
        for (bit, effect) in EFFECTS.iter().enumerate() {
            if self.effects >> bit & 1 == 1 {
                line.add(if self.effects.trailing_zeros() as usize == bit {
                    " "
                } else {
                    ""
                });
                line.add(effect.letter);
            }
        }
    }
}

/// A reason in a column's width.
fn short(why: &str) -> &'static str {
    match why {
        reason::BLOCKED => "blocks",
        reason::NOT_PRESENT => "absent",
        reason::NO_FILE => "no file",
        reason::NOT_THE_FILES => "copied",
        reason::LEFT_UNREAD => "left",
        reason::FALSE_ZEROS => "false 0",
        reason::NOT_HERE => "-",
        reason::NOT_PERMITTED => "denied",
        _ => "?",
    }
}

/// The answers to one question.
pub(super) struct Line {
    pub(super) kind: &'static Kind,
    pub(super) op: Op,
    pub(super) cells: [Cell; LIST_MAX],
    count: usize,
    /// Why there is none.
    unasked: Option<&'static str>,
}

/// The lines so far.
pub(super) struct Grid {
    pub(super) lines: Vec<Line, LINES_MAX>,
}

impl Grid {
    pub(super) const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Begins the line of a question.
    pub(super) fn next(&mut self, kind: &'static Kind, op: Op) {
        let line = Line {
            kind,
            op,
            cells: [Cell::NONE; LIST_MAX],
            count: 0,
            unasked: None,
        };
        // There is room for every question.
        let _ = self.lines.push(line);
    }

    /// Adds an answer to the last line. Controls have no column, but tell whether the kind
    /// is to be had.
    pub(super) fn note(&mut self, method: Option<Method>, probed: &Probed, page_bytes: u64) {
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        match (method, probed.status) {
            (None, Status::Skipped(why)) => line.unasked = Some(why),
            (None, _) => {}
            (Some(_), _) => {
                line.cells[line.count] = Cell::of(probed, page_bytes);
                line.count += 1;
            }
        }
    }

    pub(super) fn write(&self, out: Output, methods: &[Method]) -> Result<(), Errno> {
        heading(out, methods)?;
        for lines in self.lines.chunk_by(|a, b| a.kind.name == b.kind.name) {
            let same =
                |line: &Line| line.cells == lines[0].cells && line.unasked == lines[0].unasked;
            let all_same = lines.iter().all(same);
            let shown = if all_same { &lines[..1] } else { lines };
            for line in shown {
                line.write(out, if all_same { "" } else { line.op.name() })?;
            }
        }
        let mut legend = Text::new();
        legend
            .add("all, zero: every byte came; N ERRNO: N pages came, then the errno; NX ERRNO: X ");
        legend
            .add("is the gravest that\nreading these did (of cross, which begins in front of the ");
        legend.add("kind, no sentence below); reading");
        for effect in &EFFECTS {
            legend
                .add("\n  ")
                .add(effect.letter)
                .add(": ")
                .add(effect.meaning);
        }
        legend.add("\n  left: by hybrid, which would have to change something or found nothing; -: no such reader here");
        legend.add("\n  false 0: zeros came that are not what lies there");
        send(out, &legend)
    }
}

impl Line {
    fn write(&self, out: Output, op: &str) -> Result<(), Errno> {
        let mut line = Text::new();
        line.add("  ").add(self.kind.name);
        if !op.is_empty() {
            line.pad_to(OP).add(op);
        }
        match self.unasked {
            Some(why) => {
                line.pad_to(FIRST).add("skipped: ").add(why);
            }
            None => {
                for (index, cell) in self.cells[..self.count].iter().enumerate() {
                    line.pad_to(FIRST + index * WIDTH);
                    cell.write(&mut line);
                }
            }
        }
        send(out, &line)
    }
}

/// Names of readers, at a dash on two lines.
fn heading(out: Output, methods: &[Method]) -> Result<(), Errno> {
    let mut lines = [Text::new(), Text::new()];
    lines[0].add("cowitness probe");
    for (index, method) in methods.iter().enumerate() {
        let column = FIRST + index * WIDTH;
        let (first, second) = method.name().split_once('-').unwrap_or((method.name(), ""));
        lines[0].pad_to(column).add(first);
        if !second.is_empty() {
            lines[0].add("-");
            lines[1].pad_to(column).add(second);
        }
    }
    lines.iter().try_for_each(|line| send(out, line))
}

pub(super) fn send(out: Output, line: &Text) -> Result<(), Errno> {
    let line = line.read().map_err(|Full| Errno::FBIG)?;
    out.write_all(line.as_bytes())?;
    out.write_all(b"\n")
}
