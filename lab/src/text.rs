//! Foreign text in messages: always one line, and not longer than a reader wants.

/// `bytes` with control characters escaped and what is not UTF-8 replaced.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut printable = String::new();
    for character in String::from_utf8_lossy(bytes).chars() {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown(b"a\x1b[2J\tb\xff"), "a\\u{1b}[2J\\tb\u{fffd}");
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
