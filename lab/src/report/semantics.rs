//! What each kind of memory gives to each reader, and what the read changed.

use super::kinds::KINDS;
use crate::runs::probes::{Answer, CHANGES, Cell as Question, Gave, Probes, Weight};

/// What the operations are.
const OPS: [(&str, &str); 3] = [
    ("page", "one page"),
    ("cross", "from readable memory into it"),
    ("whole", "all of it"),
];

/// The section of one run.
pub struct Semantics {
    /// The readers, in the order of their first rows.
    pub methods: Vec<String>,
    /// A row for each kind and operation.
    pub rows: Vec<Row>,
    /// The marks that occur, with their meanings.
    pub legend: Vec<(&'static str, &'static str)>,
    /// Side effects of which no read here tells.
    pub untold: Vec<&'static str>,
}

/// One kind and operation.
pub struct Row {
    pub kind: String,
    /// How many rows the kind has, in its first; else 0.
    pub span: usize,
    pub about: &'static str,
    pub op: String,
    pub op_about: &'static str,
    pub cells: Vec<Cell>,
}

/// What one reader got.
#[derive(Default)]
pub struct Cell {
    /// What came; several answers stand one after the other.
    pub text: String,
    /// `read`, `part`, `refused`, `unknown` or `wrong`.
    pub class: &'static str,
    /// `S16`, `F`.
    pub marks: Vec<Mark>,
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub mark: &'static str,
    pub count: i64,
    pub meaning: String,
}

/// Stands for what is known of other reads of the run.
const UNKNOWN: (&str, &str) = (
    "?",
    "some side effects are unknown here, which are known of other reads",
);

const ZERO: (&str, &str) = ("Z", "zeros came, of memory that was never written");

impl Semantics {
    /// `None` if nothing was asked.
    pub fn of(probes: &Probes) -> Option<Self> {
        let mut methods: Vec<String> = Vec::new();
        let mut questions: Vec<(&str, Vec<&str>)> = Vec::new();
        for cell in &probes.cells {
            if !methods.contains(&cell.method) {
                methods.push(cell.method.clone());
            }
            let place = questions.iter().position(|(kind, _)| *kind == cell.kind);
            let place = place.unwrap_or_else(|| {
                questions.push((&cell.kind, Vec::new()));
                questions.len() - 1
            });
            if !questions[place].1.contains(&&*cell.op) {
                questions[place].1.push(&cell.op);
            }
        }
        let untold = untold(probes);
        let rows: Vec<Row> = questions
            .iter()
            .flat_map(|(kind, ops)| rows(probes, &methods, kind, ops, &untold))
            .collect();
        let legend = legend(&rows);
        (!rows.is_empty()).then_some(Self {
            methods,
            rows,
            legend,
            untold: CHANGES
                .iter()
                .filter(|change| untold.contains(&change.mark))
                .map(|change| change.meaning)
                .collect(),
        })
    }
}

/// Marks that are unknown of every read.
fn untold(probes: &Probes) -> Vec<&'static str> {
    let answers = probes.cells.iter().flat_map(|cell| &cell.answers);
    let read: Vec<&Answer> = answers
        .filter(|answer| !matches!(answer.gave, Gave::Unanswered(_)) && !answer.is_unread())
        .collect();
    let nowhere = |mark: &&str| {
        let mut read = read.iter();
        read.all(|answer| answer.unknown().any(|one| one == *mark))
    };
    let marks = CHANGES.iter().map(|change| change.mark);
    marks
        .filter(|mark| !read.is_empty() && nowhere(mark))
        .collect()
}

fn rows(
    probes: &Probes,
    methods: &[String],
    kind: &str,
    ops: &[&str],
    untold: &[&str],
) -> Vec<Row> {
    let row = |(index, op): (usize, &&str)| Row {
        kind: kind.to_owned(),
        span: if index == 0 { ops.len() } else { 0 },
        about: about(&KINDS, kind),
        op: (*op).to_owned(),
        op_about: about(&OPS, op),
        cells: methods
            .iter()
            .map(|method| {
                probes
                    .cell(kind, op, method)
                    .map(|question| Cell::of(question, untold))
                    .unwrap_or_default()
            })
            .collect(),
    };
    ops.iter().enumerate().map(row).collect()
}

fn about(table: &[(&str, &'static str)], name: &str) -> &'static str {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, about)| about)
}

/// The marks of the rows, in the order of their table.
fn legend(rows: &[Row]) -> Vec<(&'static str, &'static str)> {
    let marks: Vec<&str> = rows
        .iter()
        .flat_map(|row| &row.cells)
        .flat_map(|cell| cell.marks.iter().map(|mark| mark.mark))
        .collect();
    let changes = CHANGES.iter().map(|change| (change.mark, change.meaning));
    let all = changes.chain([ZERO, UNKNOWN]);
    all.filter(|(mark, _)| marks.contains(mark)).collect()
}

impl Cell {
    fn of(question: &Question, untold: &[&str]) -> Self {
        let texts: Vec<String> = question.answers.iter().map(text).collect();
        let mut marks: Vec<Mark> = Vec::new();
        for answer in &question.answers {
            for mark in marks_of(answer, untold) {
                if !marks.contains(&mark) {
                    marks.push(mark);
                }
            }
        }
        Self {
            text: texts.join(" or "),
            class: question.class(),
            marks,
        }
    }
}

fn text(answer: &Answer) -> String {
    match &answer.gave {
        _ if answer.class() == "wrong" => answer.words(None),
        Gave::All(bytes) => format!("{} read", crate::figures::bytes(*bytes)),
        Gave::Part(bytes, errno) => format!("{}, {errno}", crate::figures::bytes(*bytes)),
        _ => answer.words(None),
    }
}

fn marks_of(answer: &Answer, untold: &[&str]) -> Vec<Mark> {
    let mark = |mark, count, meaning: &str| Mark {
        mark,
        count,
        meaning: meaning.to_owned(),
    };
    // Almost every read leaves accessed marks.
    let shown = |mark: &str| {
        let mut changes = CHANGES.iter();
        changes.find(|change| change.mark == mark && change.weight != Weight::Nothing)
    };
    let meaning = |mark: &str| shown(mark).map_or("", |change| change.meaning);
    let changes = answer.changes.iter();
    let mut marks: Vec<Mark> = changes
        .filter_map(|&(name, count)| Some(mark(name, count?, shown(name)?.meaning)))
        .collect();
    if answer.content == "zero" && !answer.is_unread() {
        marks.push(mark(ZERO.0, 1, ZERO.1));
    }
    let unknown: Vec<&str> = answer
        .unknown()
        .filter(|mark| !untold.contains(mark))
        .map(meaning)
        .filter(|meaning| !meaning.is_empty())
        .collect();
    if !unknown.is_empty() {
        let unknown = format!("unknown: {}", unknown.join("; "));
        marks.push(mark(UNKNOWN.0, 1, &unknown));
    }
    marks
}
