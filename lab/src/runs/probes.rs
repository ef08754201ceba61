//! What `probe` found, owned: one cell a question, every different answer to it.

use cowitness::emit::probe_row::{ProbeRow, reason};
use cowitness::emit::record::Status;

/// The method of the rows that read nothing.
pub const CONTROL: &str = "none";

/// What a row says of bytes that are not those of the memory that was read.
const WRONG: &str = "wrong";

/// Why such a row is no measurement; what came stands in it all the same.
pub const WRONG_BYTES: &str = "wrong-bytes";

/// All questions, in the order of their first rows.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// A cell each.
    pub cells: Vec<Cell>,
}

/// One kind, reader and operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The kind of memory.
    pub kind: String,
    /// `page`, `cross` or `whole`.
    pub op: String,
    /// The reader.
    pub method: String,
    /// Different answers; at least one.
    pub answers: Vec<Answer>,
}

/// What one read gave and changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What came.
    pub gave: Gave,
    /// `ok`, `zero`, `wrong` or empty.
    pub content: String,
    /// Marks of [`CHANGES`] that are not 0, in their order, and how many; `None`: unknown.
    /// Empty if nothing was read.
    pub changes: Vec<(&'static str, Option<i64>)>,
}

/// What came of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gave {
    /// All bytes that were asked for.
    All(u64),
    /// Some, and the errno that ended it; empty: none.
    Part(u64, String),
    /// None, and the errno; empty: none.
    Nothing(String),
    /// The question was not answered.
    Unanswered(String),
}

/// Reasons of rows without a read that are the reader's own answer: it gives nothing there, as
/// it would on any machine. All others say that the question could not be asked here.
const ANSWERS: [&str; 6] = [
    reason::FALSE_ZEROS,
    reason::BLOCKED,
    reason::LEFT_UNREAD,
    reason::NOT_PRESENT,
    reason::NO_FILE,
    reason::NOT_THE_FILES,
];

/// What a read says of a target that has ended: nothing was asked of its memory.
const GONE: &str = "ESRCH";

/// A side effect that a row can tell of.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// What stands in a cell.
    pub mark: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// How two answers are compared in it.
    pub weight: Weight,
    get: fn(&ProbeRow<'_>) -> Option<i64>,
}

/// What of a side effect makes another answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// How many.
    Amount,
    /// Whether there are any, more or fewer: how many come at once depends on how large the
    /// folios happen to be, and on what the kernel maps around a fault (mm/memory.c,
    /// `do_fault_around`; mm/filemap.c, `filemap_map_pages`).
    Presence,
    /// Nothing: the kernel ages accessed marks on its own, so that two unchanged runs differ.
    Nothing,
}

/// Side effects, the gravest first.
pub const CHANGES: [Change; 18] = [
    Change {
        mark: "S",
        meaning: "pages split: they were shared, and each is now a copy of its own",
        weight: Weight::Amount,
        get: |row| signed(row.split_pages),
    },
    Change {
        mark: "F",
        meaning: "absent pages faulted into the target",
        weight: Weight::Presence,
        get: |row| signed(row.faulted_in_pages),
    },
    Change {
        mark: "W",
        meaning: "pages swapped in",
        weight: Weight::Amount,
        get: |row| signed(row.swapped_in_pages),
    },
    Change {
        mark: "V",
        meaning: "mappings of the target changed",
        weight: Weight::Amount,
        get: |row| row.vma_change,
    },
    Change {
        mark: "G",
        meaning: "KiB by which the target's mappings grew: below a stack, for good",
        weight: Weight::Presence,
        get: |row| row.target_vm_size_kib,
    },
    Change {
        mark: "P",
        meaning: "pages for which the other process now maps another frame",
        weight: Weight::Amount,
        get: |row| signed(row.partner_changed_pages),
    },
    Change {
        mark: "D",
        meaning: "pages became soft-dirty",
        weight: Weight::Presence,
        get: |row| signed(row.soft_dirty_pages),
    },
    Change {
        mark: "R",
        meaning: "KiB by which the target's resident set grew",
        weight: Weight::Presence,
        get: |row| row.target_rss_kib,
    },
    Change {
        mark: "H",
        meaning: "KiB of huge pages that the target gained, or lost: a split one is lost",
        weight: Weight::Presence,
        get: |row| row.target_anon_huge_kib,
    },
    Change {
        mark: "U",
        meaning: "KiB by which what the target has alone grew",
        weight: Weight::Presence,
        get: |row| row.target_private_kib,
    },
    Change {
        mark: "B",
        meaning: "KiB by which the target's proportional share (Pss) grew",
        weight: Weight::Presence,
        get: |row| row.target_pss_kib,
    },
    Change {
        mark: "E",
        meaning: "KiB by which the target's dirty pages that others share grew",
        weight: Weight::Presence,
        get: |row| row.target_shared_dirty_kib,
    },
    Change {
        mark: "O",
        meaning: "KiB by which what the other process has alone grew",
        weight: Weight::Presence,
        get: |row| row.partner_private_kib,
    },
    Change {
        mark: "M",
        meaning: "major faults charged to the target",
        weight: Weight::Presence,
        get: |row| row.target_majflt,
    },
    Change {
        mark: "m",
        meaning: "minor faults charged to the target",
        weight: Weight::Presence,
        get: |row| row.target_minflt,
    },
    Change {
        mark: "Q",
        meaning: "major faults charged to the reader",
        weight: Weight::Presence,
        get: |row| signed(row.reader_majflt),
    },
    Change {
        mark: "q",
        meaning: "minor faults charged to the reader",
        weight: Weight::Presence,
        get: |row| signed(row.reader_minflt),
    },
    Change {
        mark: "A",
        meaning: "KiB by which what is marked as accessed grew",
        weight: Weight::Nothing,
        get: |row| row.target_referenced_kib,
    },
];

fn signed(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

impl Probes {
    /// Adds a row. The control's rows are no answer.
    pub fn add(&mut self, row: &ProbeRow<'_>) {
        if row.method != CONTROL {
            self.insert(row.kind, row.op, row.method, Answer::of(row));
        }
    }

    fn insert(&mut self, kind: &str, op: &str, method: &str, answer: Answer) {
        let mut cells = self.cells.iter_mut();
        let same = |cell: &&mut Cell| cell.kind == kind && cell.op == op && cell.method == method;
        match cells.find(same) {
            Some(cell) if cell.answers.contains(&answer) => {}
            Some(cell) => cell.answers.push(answer),
            None => self.cells.push(Cell {
                kind: kind.to_owned(),
                op: op.to_owned(),
                method: method.to_owned(),
                answers: vec![answer],
            }),
        }
    }

    /// Adds all that another stream has found.
    pub fn extend(&mut self, other: Self) {
        for cell in other.cells {
            for answer in cell.answers {
                self.insert(&cell.kind, &cell.op, &cell.method, answer);
            }
        }
    }

    /// The cell of a question.
    #[must_use]
    pub fn cell(&self, kind: &str, op: &str, method: &str) -> Option<&Cell> {
        let mut cells = self.cells.iter();
        cells.find(|cell| cell.kind == kind && cell.op == op && cell.method == method)
    }
}

impl Cell {
    /// All that came.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words: Vec<String> = Vec::new();
        for answer in &self.answers {
            let found = answer.words(None);
            if !words.contains(&found) {
                words.push(found);
            }
        }
        words.join(" or ")
    }

    /// [`Answer::class`] of all answers; where they differ, `part`, but `wrong` before all.
    #[must_use]
    pub fn class(&self) -> &'static str {
        let mut classes = self.answers.iter().map(Answer::class);
        let first = classes.next().unwrap_or_default();
        let joined = |one, other| match (one, other) {
            (one, other) if one == other => one,
            ("wrong", _) | (_, "wrong") => "wrong",
            _ => "part",
        };
        classes.fold(first, joined)
    }
}

impl Answer {
    fn of(row: &ProbeRow<'_>) -> Self {
        let gave = Gave::of(row);
        // A reader that left it unread has changed nothing, and is not watched.
        let read = matches!(
            row.status,
            Status::Ok | Status::Short(_) | Status::Skipped(WRONG_BYTES)
        );
        let changes = CHANGES
            .iter()
            .filter(|_| read)
            .map(|change| (change.mark, (change.get)(row)))
            .filter(|(_, count)| *count != Some(0));
        Self {
            gave,
            content: row.content.to_owned(),
            changes: changes.collect(),
        }
    }

    /// Whether the reader gave nothing without reading: what it changed was not looked at.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        matches!(&self.gave, Gave::Nothing(why) if ANSWERS.contains(&&**why))
    }

    /// What is not known of it: marks of [`CHANGES`].
    pub fn unknown(&self) -> impl Iterator<Item = &'static str> {
        let marks = self.changes.iter();
        marks.filter_map(|(mark, count)| count.is_none().then_some(*mark))
    }

    /// How much of one side effect; `None`: unknown.
    fn count(&self, mark: &str) -> Option<i64> {
        let found = self.changes.iter().find(|(one, _)| *one == mark);
        found.map_or(Some(0), |(_, count)| *count)
    }

    /// The same, as far as both are known and what is compared of them goes.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let same = |change: &Change| {
            let both = self.count(change.mark).zip(other.count(change.mark));
            both.is_none_or(|(one, two)| match change.weight {
                Weight::Amount => one == two,
                Weight::Presence => one.signum() == two.signum(),
                Weight::Nothing => true,
            })
        };
        self.gave == other.gave && self.content == other.content && CHANGES.iter().all(same)
    }

    /// `read`, `part`, `refused`, `unknown` or `wrong`.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match &self.gave {
            _ if self.content == WRONG => "wrong",
            Gave::All(_) => "read",
            Gave::Part(..) => "part",
            Gave::Nothing(_) => "refused",
            Gave::Unanswered(_) => "unknown",
        }
    }

    /// What came, in few words: `read`, an errno, `4096 of 8192 bytes, then EIO`, `wrong bytes`.
    #[must_use]
    pub fn words(&self, requested: Option<u64>) -> String {
        let then = |errno: &str| match errno {
            "" => String::new(),
            errno => format!(", then {errno}"),
        };
        match &self.gave {
            _ if self.content == WRONG => "wrong bytes".to_owned(),
            Gave::All(_) => "read".to_owned(),
            Gave::Part(bytes, errno) => match requested {
                Some(of) => format!("{bytes} of {of} bytes{}", then(errno)),
                None => format!("{bytes} bytes{}", then(errno)),
            },
            Gave::Nothing(errno) if errno.is_empty() => "nothing".to_owned(),
            Gave::Nothing(errno) => errno.clone(),
            Gave::Unanswered(why) => why.clone(),
        }
    }
}

impl Gave {
    fn of(row: &ProbeRow<'_>) -> Self {
        let errno = row.errno.to_owned();
        match (row.status, row.returned_bytes) {
            (Status::Skipped(why), _) if ANSWERS.contains(&why) => Self::Nothing(why.to_owned()),
            (Status::Skipped(why), _) if why != WRONG_BYTES => {
                Self::Unanswered(format!("skipped: {why}"))
            }
            // What the read itself said of memory that can be read is its answer; what failed
            // around it is none.
            (Status::Errno(name), _) if name != row.errno || name == GONE => {
                Self::Unanswered(format!("failed: {name}"))
            }
            (_, None | Some(0)) => Self::Nothing(errno),
            (_, Some(bytes)) if bytes < row.requested_bytes => Self::Part(bytes, errno),
            (_, Some(bytes)) => Self::All(bytes),
        }
    }
}
