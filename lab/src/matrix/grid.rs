//! Whether the rows of a stream are all that its command makes: each question once to each
//! reader, and as many of both as its options say. A stream that was cut down, counted and
//! checksummed anew, shows here.

use crate::stream::Note;
use cowitness::emit::audit_row::AuditRow;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use std::collections::BTreeSet;

/// The method of the row that reads nothing, which every question of `probe` has.
const CONTROL: &str = "none";

/// What `probe` asks of each kind of memory that every machine has, each way: always, unless it
/// was told which kinds to look at, and these are not among them.
const ASKED: [&str; 8] = [
    "anon-fork-shared page",
    "anon-fork-shared whole",
    "prot-none page",
    "prot-none cross",
    "prot-none-untouched page",
    "prot-none-untouched cross",
    "hole page",
    "hole cross",
];

/// What was asked, and of which readers.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    cases: BTreeSet<(String, String)>,
    questions: BTreeSet<String>,
    methods: BTreeSet<String>,
    rows: usize,
}

impl Grid {
    pub(super) fn bench(&mut self, row: &BenchRow<'_>) {
        let BenchRow {
            layout,
            block_bytes,
            repeat,
            ..
        } = row;
        let segment = row
            .segment_pages
            .map_or_else(String::new, |pages| pages.to_string());
        self.add(
            format!("{layout} {segment} {block_bytes} {repeat}"),
            row.method,
        );
    }

    pub(super) fn probe(&mut self, row: &ProbeRow<'_>) {
        self.add(format!("{} {}", row.kind, row.op), row.method);
    }

    pub(super) fn audit(&mut self, row: &AuditRow<'_>) {
        self.add(format!("pass {}", row.repeat), row.method);
    }

    fn add(&mut self, question: String, method: &str) {
        self.rows += 1;
        self.methods.insert(method.to_owned());
        self.questions.insert(question.clone());
        self.cases.insert((question, method.to_owned()));
    }

    /// What is missing, or too much, in a stream with these notes.
    pub(super) fn gap(&self, notes: &[Note]) -> Option<String> {
        let all = self.questions.len() * self.methods.len();
        if self.cases.len() != self.rows {
            return Some("a case stands there twice".to_owned());
        }
        if self.rows != all {
            let (rows, questions, methods) = (self.rows, self.questions.len(), self.methods.len());
            return Some(format!(
                "{rows} rows, where {questions} questions to {methods} readers make {all}"
            ));
        }
        let options = Options(notes);
        if options.value("command") == Some("probe")
            && let Some(question) = self.unasked(options.value("option_kind"))
        {
            return Some(format!("probe without its question '{question}'"));
        }
        let counts = [
            (
                "readers",
                options.methods(&self.methods),
                self.methods.len(),
            ),
            ("questions", options.questions(), self.questions.len()),
        ];
        let wrong = counts
            .into_iter()
            .find(|(_, wanted, found)| wanted.is_some_and(|w| w != *found));
        wrong.map(|(what, wanted, found)| {
            let wanted = wanted.unwrap_or_default();
            format!("{found} {what}, its options speak of {wanted}")
        })
    }

    /// What `probe` should have asked and has not, of these kinds or all.
    fn unasked(&self, kinds: Option<&str>) -> Option<String> {
        let kinds = kinds.filter(|kinds| *kinds != "all");
        let named = || kinds.into_iter().flat_map(|kinds| kinds.split(','));
        let of = |question: &str| question.split(' ').next().unwrap_or_default().to_owned();
        let asked = |kind: &str| kinds.is_none() || named().any(|named| named == kind);
        let mut basic = ASKED.iter().filter(|question| asked(&of(question)));
        let missing = basic.find(|question| !self.questions.contains(**question));
        // Of another kind it is not known here which ways there are.
        let nothing = |kind: &&str| !self.questions.iter().any(|question| of(question) == **kind);
        let missing = missing.map(|question| (*question).to_owned());
        missing.or_else(|| named().find(nothing).map(str::to_owned))
    }
}

/// The options of a command as its notes tell them.
struct Options<'n>(&'n [Note]);

impl Options<'_> {
    fn value(&self, key: &str) -> Option<&str> {
        let note = self.0.iter().find(|note| note.key == key);
        note.map(|note| &*note.value)
    }

    fn count(&self, key: &str) -> Option<usize> {
        self.value(key).map(|list| list.split(',').count())
    }

    /// How many readers; `None`: it does not say. `all` is as many as there are.
    fn methods(&self, found: &BTreeSet<String>) -> Option<usize> {
        let control = usize::from(self.value("command") == Some("probe"));
        if control == 1 && !found.contains(CONTROL) {
            return Some(found.len() + 1);
        }
        match self.value("option_method")? {
            "all" => None,
            "both" => Some(2 + control),
            list => Some(list.split(',').count() + control),
        }
    }

    /// How many cases of one reader `bench` makes.
    fn questions(&self) -> Option<usize> {
        let layouts = self.value("option_layout")?.split(',');
        let layouts = layouts.map(|layout| match layout {
            "vma" => self.count("option_segment_pages"),
            _ => Some(1),
        });
        let layouts: usize = layouts.sum::<Option<_>>()?;
        let repeats: usize = self.value("option_repeats")?.parse().ok()?;
        layouts
            .checked_mul(self.count("option_block")?)?
            .checked_mul(repeats)
    }
}
