//! Foreign text in messages: always one line, and not longer than a reader wants.

use std::ops::RangeInclusive;

/// Characters that show nothing and change how others show: the category Cf of Unicode 16,
/// which can turn text round, and the separators of lines and paragraphs.
const FORMAT: [RangeInclusive<char>; 21] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{890}'..='\u{891}',
    '\u{8e2}'..='\u{8e2}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{2064}',
    '\u{2066}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{110bd}'..='\u{110bd}',
    '\u{110cd}'..='\u{110cd}',
    '\u{13430}'..='\u{1343f}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e0001}',
    '\u{e0020}'..='\u{e007f}',
];

fn is_hidden(character: char) -> bool {
    character.is_control() || FORMAT.iter().any(|range| range.contains(&character))
}

/// `bytes` with characters that control or format escaped, and what is not UTF-8 replaced.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut printable = String::new();
    for character in String::from_utf8_lossy(bytes).chars() {
        if is_hidden(character) {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// As [`printable`], each line for itself.
pub(crate) fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| printable(line.as_bytes()))
        .collect();
    lines.join("\n")
}

/// As [`printable`], cut after 60 characters: a value in the middle of a message.
pub(crate) fn shown(bytes: &[u8]) -> String {
    cut(bytes, 60)
}

/// As [`printable`], cut after 400 characters: what somebody else said of a failure, whose
/// cause often comes last.
pub(crate) fn sentence(bytes: &[u8]) -> String {
    cut(bytes, 400)
}

fn cut(bytes: &[u8], most: usize) -> String {
    // Four bytes are the longest character, so the head holds all that is shown.
    let head = &bytes[..bytes.len().min(4 * (most + 1))];
    let text = String::from_utf8_lossy(head);
    let Some((cut, _)) = text.char_indices().nth(most) else {
        return printable(bytes);
    };
    printable(&text.as_bytes()[..cut]) + "..."
}

/// How much deeper a line goes on that was wrapped.
const INDENT: usize = 4;

/// Wrapped between words; what has no space stays in one piece.
pub(crate) fn wrapped(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let own = line.len() - line.trim_start().len();
    let deeper = " ".repeat(own + INDENT);
    let mut text = " ".repeat(own);
    let mut used = own;
    // Runs of spaces are the columns of those who are faster: they are kept within a line.
    for (index, word) in line.trim_start().split(' ').enumerate() {
        let needed = word.chars().count() + usize::from(index > 0);
        if index > 0 && used + needed > width && !word.is_empty() {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text += &deeper;
            used = deeper.len() + needed - 1;
        } else {
            text.push_str(if index > 0 { " " } else { "" });
            used += needed;
        }
        text += word;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown(b"a\x1b[2J\tb\xff"), "a\\u{1b}[2J\\tb\u{fffd}");
    }

    #[test]
    fn what_turns_text_round_is_escaped() {
        let text = "a\u{202e}b\u{2028}c\u{e0041}d é";
        assert_eq!(
            printable(text.as_bytes()),
            "a\\u{202e}b\\u{2028}c\\u{e0041}d é"
        );
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        for character in ["x", "é", "\u{1f980}"] {
            let (fits, cut) = (character.repeat(60), character.repeat(61));
            assert_eq!(shown(fits.as_bytes()), fits);
            assert_eq!(shown(cut.as_bytes()), fits.clone() + "...");
            assert_eq!(shown(character.repeat(9000).as_bytes()), fits + "...");
        }
    }
}
