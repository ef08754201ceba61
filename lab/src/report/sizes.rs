//! Bytes of the first R closures under storage models, and where one becomes smaller.

use super::environment::Stream;
use super::many::{grouped, losses};
use super::plot::{Across, Given, Plot, bytes_unit};
use crate::figures::lasting;
use crate::runs::Files;
use crate::runs::others::Size;
use crate::text::shown;

/// The most rows of one table: of more, some in even steps are shown.
const ROWS_MAX: usize = 300;

/// The most curves of one stream; `sizes` itself writes eight.
const CURVES_MAX: usize = 12;

/// The models, in the order of the columns.
const MODELS: [&str; 4] = ["private", "store", "store, symbols", "chunks"];

/// Model pairs whose crossover is asked for: which becomes smaller than which.
const CROSSOVERS: [(usize, usize); 5] = [(1, 0), (2, 0), (3, 0), (3, 1), (3, 2)];

/// One stream.
pub struct Sizes {
    pub name: String,
    pub curves: Vec<Curves>,
    pub remarks: Vec<String>,
    /// The same in a sentence.
    pub said: String,
    /// Its notes.
    pub stream: Stream,
}

/// One page size and average chunk.
pub struct Curves {
    pub heading: String,
    pub plot: Option<Plot>,
    pub rows: Vec<Row>,
    /// A smaller model, a larger one, from which R on.
    pub crossovers: Vec<[String; 3]>,
    pub note: String,
}

/// So many roots.
pub struct Row {
    pub r: u64,
    pub objects: [String; 2],
    /// By model.
    pub bytes: Vec<String>,
}

/// Of all streams: of several each sentence says whose it is.
pub fn all(files: &[Files]) -> Vec<Sizes> {
    let several = files.len() > 1;
    files
        .iter()
        .map(|files| Sizes::of(files, several))
        .collect()
}

impl Sizes {
    fn of(files: &Files, several: bool) -> Self {
        let rows = || files.sizes.rows.iter();
        let is_whole = rows().all(|row| row.why.is_none());
        let sound = rows().filter(|row| row.why.is_none());
        let settings = grouped(sound.map(|row| ((row.page_size, row.avg_chunk), row)));
        let curves = settings.iter().take(CURVES_MAX);
        let curves = curves.map(|(setting, rows)| Curves::of(*setting, rows, is_whole));
        let name = match &*files.label {
            "" => files.source.place.clone(),
            label => shown(label.as_bytes()),
        };
        let said = settings
            .first()
            .and_then(|(setting, rows)| said(*setting, rows));
        let said = said.map(|said| match several {
            true => format!("{name}: {said}"),
            false => said,
        });
        let left_out = settings.len().saturating_sub(CURVES_MAX);
        let left_out = (left_out > 0).then(|| {
            format!(
                "{CURVES_MAX} of {} page sizes and averages are shown.",
                settings.len()
            )
        });
        let lost = losses(rows().map(|row| row.why.as_deref()), "rows");
        let remarks = lost.into_iter().chain(left_out).collect();
        Self {
            name,
            said: said.unwrap_or_default(),
            curves: curves.collect(),
            remarks,
            stream: Stream::of(&files.source),
        }
    }
}

impl Curves {
    /// `is_whole`: every number of roots is known.
    fn of((page_size, avg_chunk): (u64, u64), rows: &[&Size], is_whole: bool) -> Self {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| row.r);
        let step = rows.len().div_ceil(ROWS_MAX).max(1);
        let last = rows.len().saturating_sub(1);
        let listed = rows
            .iter()
            .enumerate()
            .filter(|(at, _)| at % step == 0 || *at == last);
        let row = |(_, size): (usize, &&Size)| Row {
            r: size.r,
            objects: size.objects.map(text),
            bytes: size.bytes.map(text).to_vec(),
        };
        let [page, chunk] = [page_size, avg_chunk].map(crate::figures::bytes);
        Self {
            heading: format!("Pages of {page}, chunks of {chunk} on average"),
            plot: plot(&rows),
            crossovers: crossovers(&rows, is_whole),
            rows: listed.map(row).collect(),
            note: match step {
                1 => String::new(),
                step => format!(
                    "Of {} rows one in {step} is listed, and the last.",
                    rows.len()
                ),
            },
        }
    }
}

/// What is unknown is empty.
fn text(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

fn plot(rows: &[&Size]) -> Option<Plot> {
    let points = |model: usize| -> Vec<(f64, f64)> {
        let known = rows
            .iter()
            .filter_map(|row| Some((row.r as f64, row.bytes[model]? as f64)));
        known.collect()
    };
    let all = (0..MODELS.len()).map(|model| (model, points(model)));
    let most = all
        .clone()
        .flat_map(|(_, points)| points)
        .map(|point| point.1)
        .fold(0.0, f64::max);
    let given = all.map(|(model, line)| Given {
        name: MODELS[model].to_owned(),
        points: marks(&line),
        line,
    });
    Plot::of(
        "Bytes by the number of roots, under each storage model".to_owned(),
        ("R, roots", Across::Even),
        ("size", &bytes_unit(most)),
        given.collect(),
    )
}

/// A few of the points: their marks tell the lines apart.
fn marks(line: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = line.len().div_ceil(8).max(1);
    line.iter().copied().skip(step - 1).step_by(step).collect()
}

fn crossovers(rows: &[&Size], is_whole: bool) -> Vec<[String; 3]> {
    let row = |(small, large): (usize, usize)| {
        let words = crossover(rows, (small, large), is_whole);
        [MODELS[small].to_owned(), MODELS[large].to_owned(), words]
    };
    CROSSOVERS.into_iter().map(row).collect()
}

/// From which R on one model is smaller than another, to the last row that knows both. That it
/// is never is known only if that row is of all roots.
fn crossover(rows: &[&Size], (small, large): (usize, usize), is_whole: bool) -> String {
    let last = rows.last().map(|row| row.bytes);
    let is_known = last.is_some_and(|last| last[small].is_some() && last[large].is_some());
    let both = rows
        .iter()
        .filter_map(|row| Some((row.r, row.bytes[small]? < row.bytes[large]?)));
    match lasting(both) {
        Some(r) => format!("R = {r}"),
        None if is_whole && is_known => "none".to_owned(),
        None => "unknown".to_owned(),
    }
}

/// In a sentence; `None`: nothing can be said.
fn said((_, avg_chunk): (u64, u64), rows: &[&Size]) -> Option<String> {
    let last = rows.iter().max_by_key(|row| row.r)?;
    let name = |model: usize| match MODELS[model] {
        "chunks" => format!("chunks of {} on average", crate::figures::bytes(avg_chunk)),
        name => name.to_owned(),
    };
    let share = |model: usize| {
        let [part, whole] = [last.bytes[model]?, last.bytes[0]?];
        let times = whole as f64 / part.max(1) as f64;
        Some(format!("{times:.2} times as large as {}", name(model)))
    };
    let shares: Vec<String> = (1..MODELS.len()).filter_map(share).collect();
    let roots = match last.r {
        1 => "1 root".to_owned(),
        r => format!("{r} roots"),
    };
    let shares = (!shares.is_empty()).then(|| crate::figures::list(&shares))?;
    Some(format!("At {roots} private closures are {shares}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(r: u64, private: u64, store: Option<u64>) -> Size {
        Size {
            r,
            objects: [Some(r), Some(r)],
            bytes: [Some(private), store, None, None],
            page_size: 4096,
            avg_chunk: 16384,
            why: None,
        }
    }

    #[test]
    fn a_crossover_lasts() {
        let curve = |stores: [Option<u64>; 4], is_whole| {
            let rows: Vec<Size> = (1..)
                .zip(stores)
                .map(|(r, store)| size(r, 100 * r, store))
                .collect();
            crossover(&rows.iter().collect::<Vec<_>>(), (1, 0), is_whole)
        };
        assert_eq!(
            curve([Some(150), Some(199), Some(250), Some(300)], true),
            "R = 2"
        );
        assert_eq!(
            curve([Some(50), Some(250), Some(250), Some(300)], true),
            "R = 3"
        );
        assert_eq!(
            curve([Some(150), Some(250), Some(250), Some(400)], true),
            "none"
        );
        assert_eq!(curve([Some(50), None, None, None], true), "R = 1");
        // Nobody knows of what is missing.
        let above = [Some(150), Some(250), Some(350), Some(450)];
        assert_eq!(curve(above, true), "none");
        assert_eq!(curve(above, false), "unknown");
        assert_eq!(curve([Some(150), Some(250), None, None], true), "unknown");
    }

    #[test]
    fn a_sentence_names_the_average() {
        let mut one = size(1, 300, Some(200));
        one.bytes[3] = Some(100);
        assert_eq!(
            said((4096, 16384), &[&one]).as_deref(),
            Some(
                "At 1 root private closures are 1.50 times as large as store and 3.00 times as \
                 large as chunks of 16 KiB on average."
            )
        );
    }
}
