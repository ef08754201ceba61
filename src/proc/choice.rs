//! Files that list their choices and bracket the one in force, such as
//! /sys/kernel/mm/transparent_hugepage/enabled: `always [madvise] never`.
//!
//! Source: Documentation/admin-guide/mm/transhuge.rst.

/// The bracketed word. `None` if no word is bracketed on both sides.
#[must_use]
pub fn selected(text: &[u8]) -> Option<&[u8]> {
    text.split(u8::is_ascii_whitespace)
        .find_map(|word| word.strip_prefix(b"[")?.strip_suffix(b"]"))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracketed_word_is_selected() {
        let cases: [(&[u8], Option<&[u8]>); 12] = [
            (b"always [madvise] never\n", Some(b"madvise")),
            (b"[always] madvise never\n", Some(b"always")),
            (b"always madvise [never]", Some(b"never")),
            (b"always inherit madvise [never]\r\n", Some(b"never")),
            (
                b"always defer [defer+madvise] madvise never\n",
                Some(b"defer+madvise"),
            ),
            (b"always [madv", None),
            (b"always madvise] never", None),
            (b"always madvise never\n", None),
            (b"[]", None),
            (b"[", None),
            (b"[\xff]", Some(b"\xff")),
            (b"", None),
        ];
        for (text, expected) in cases {
            assert_eq!(selected(text), expected, "{}", text.escape_ascii());
        }
    }
}
