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
