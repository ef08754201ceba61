//! A command line as one line of text.

use crate::text::Text;

/// Most bytes of it that are shown.
const BYTES_MAX: usize = 800;

/// The words with blanks between; what is not UTF-8 is a question mark, and what does not
/// fit is said to be cut.
pub(super) fn joined(words: &mut dyn Iterator<Item = &[u8]>) -> Text {
    let mut text = Text::new();
    let (mut left, mut blank) = (BYTES_MAX, "");
    for word in words {
        let Some(rest) = left.checked_sub(word.len() + 1) else {
            text.add(" [cut]");
            break;
        };
        left = rest;
        text.add(blank);
        blank = " ";
        for chunk in word.utf8_chunks() {
            text.add_printable(chunk.valid());
            text.add(if chunk.invalid().is_empty() { "" } else { "?" });
        }
    }
    text
}
