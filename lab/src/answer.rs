//! What a command has to say when it may have failed all the same: its text goes out first.

use crate::failure::Failure;
use comfy_table::{ContentArrangement, Table, presets};

/// Text for standard output, and why the exit status is not 0.
#[derive(Debug)]
pub struct Answer {
    /// The text, its lines ended.
    pub text: String,
    /// `None`: all is well.
    pub failure: Option<Failure>,
}

/// As [`table`], without the columns of `expendable`, the first ones first, that a terminal of
/// `width` has no room for; a line below says which.
#[must_use]
pub fn table_within(
    headings: &[&str],
    mut rows: Vec<Vec<String>>,
    width: Option<usize>,
    expendable: &[&str],
) -> String {
    let mut kept = headings.to_vec();
    let mut gone: Vec<&str> = Vec::new();
    let mut expendable = expendable.iter();
    loop {
        let text = table(&kept, rows.clone());
        let is_wide = |width| text.lines().any(|line| line.chars().count() > width);
        let next = expendable.next().filter(|_| width.is_some_and(is_wide));
        let place = next.and_then(|name| kept.iter().position(|one| one == name));
        let Some(place) = place else {
            return match gone.is_empty() {
                true => text,
                false => format!("{text}left out on a narrow terminal: {}\n", gone.join(", ")),
            };
        };
        gone.push(kept.remove(place));
        for row in &mut rows {
            row.remove(place);
        }
    }
}

/// A table as Markdown has it, which is also fit to be read as it stands.
#[must_use]
pub fn table(headings: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings.to_vec());
    for row in rows {
        table.add_row(row);
    }
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_fewer_columns() {
        let rows = || vec![["1", "22222", "3"].map(str::to_owned).to_vec()];
        let of = |width| table_within(&["a", "b", "c"], rows(), width, &["b", "c"]);
        let whole = table(&["a", "b", "c"], rows());
        assert_eq!((of(None), of(Some(80))), (whole.clone(), whole));
        let narrow = table(&["a", "c"], vec![["1", "3"].map(str::to_owned).to_vec()]);
        assert_eq!(of(Some(12)), narrow + "left out on a narrow terminal: b\n");
        assert!(of(Some(1)).ends_with("left out on a narrow terminal: b, c\n"));
    }
}
