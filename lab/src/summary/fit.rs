//! The summary on a terminal that is narrower than its table: columns are left out and said to
//! be, sentences wrapped. Piped, it is never touched.

use crate::text::wrapped;

/// Columns of the table of distributions in the order they are left out.
const LEFT_OUT: [&str; 7] = ["P95", "min", "max", "outliers", "P25", "P75", "N"];

/// `text` in lines of at most `width` characters, where that can be done.
pub(super) fn fit(text: &str, width: usize) -> String {
    let mut fitted = String::new();
    let mut cut: Option<Cut> = None;
    for line in text.lines() {
        if is_header(line) {
            cut = Some(Cut::new(line, width));
        } else if !line.starts_with("  ") {
            fitted += &cut.take().map_or_else(String::new, |cut| cut.note(width));
        }
        fitted += &match &cut {
            Some(cut) => cut.apply(line),
            None => wrapped(line, width),
        };
        fitted.push('\n');
    }
    fitted + &cut.map_or_else(String::new, |cut| cut.note(width))
}

/// The line of headings, as the appliance writes it.
fn is_header(line: &str) -> bool {
    line.trim_start().starts_with("layout ") && line.ends_with(" outliers")
}

/// The figures of a line, from left to right.
const FIGURES: [&str; 8] = ["N", "min", "P25", "median", "P75", "P95", "max", "outliers"];

/// Columns of one table that have to go.
struct Cut {
    names: Vec<&'static str>,
}

impl Cut {
    fn new(header: &str, width: usize) -> Self {
        let mut cut = Self { names: Vec::new() };
        for name in LEFT_OUT {
            if cut.apply(header).chars().count() <= width {
                break;
            }
            cut.names.push(name);
        }
        cut
    }

    /// Figures are right-aligned: each goes with the spaces before it.
    fn apply(&self, line: &str) -> String {
        let mut rest = line;
        let mut kept = Vec::new();
        for name in FIGURES.iter().rev() {
            let figure = rest.rfind(' ').map_or(0, |space| space + 1);
            let start = rest[..figure].trim_end().len();
            if !self.names.contains(name) {
                kept.push(&rest[start..]);
            }
            rest = &rest[..start];
        }
        kept.push(rest);
        kept.into_iter().rev().collect()
    }

    fn note(&self, width: usize) -> String {
        if self.names.is_empty() {
            return String::new();
        }
        let names = self.names.join(", ");
        let note = format!("  left out, as the terminal is narrow: {names}");
        wrapped(&note, width) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = include_str!("../../tests/data/bench.txt");

    #[test]
    fn a_wide_terminal_changes_nothing() {
        assert_eq!(fit(WHOLE, 110), WHOLE);
    }

    #[test]
    fn a_narrow_one_gets_whole_figures_in_short_lines() {
        for width in [60, 72, 80, 100] {
            let text = fit(WHOLE, width);
            let long = text.lines().find(|line| line.chars().count() > width);
            assert_eq!(long, None, "{width}");
        }
        let text = fit(WHOLE, 80);
        let table = text
            .lines()
            .skip_while(|line| !line.starts_with("  layout"));
        let words: Vec<Vec<&str>> = table
            .map(|line| line.split_whitespace().collect())
            .collect();
        let heading = [
            "layout", "block", "pass", "method", "N", "P25", "median", "P75",
        ];
        assert_eq!(words[0], heading);
        let row = [
            "contiguous",
            "64",
            "KiB",
            "cold",
            "proc",
            "6",
            "2000",
            "2000",
            "2000",
        ];
        assert_eq!(words[1], row);
        let note = "  left out, as the terminal is narrow: P95, min, max, outliers\n";
        assert!(text.ends_with(note), "{text}");
    }

    #[test]
    fn words_are_the_same_however_they_are_wrapped() {
        let head = WHOLE.split("\nThroughput").next().unwrap();
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        assert_eq!(words(&fit(head, 40)), words(head));
    }

    #[test]
    fn a_figure_wider_than_its_column_is_whole() {
        let row = WHOLE.lines().last().unwrap();
        let wide = row.replacen("  6 ", "  1000 ", 1);
        let header = WHOLE.lines().find(|line| is_header(line)).unwrap();
        let text = fit(&format!("{header}\n{wide}\n"), 80);
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words[5..], ["1000", "3125", "3125", "3125"]);
    }
}
