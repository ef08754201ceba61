//! Values of options: numbers, sizes, lists, labels.

use super::{Refused, Word};
use crate::measure::plan::List;
use crate::proc::number;

/// A decimal number within bounds, both included.
///
/// # Errors
/// Anything else.
pub fn number(word: Word, least: u64, most: u64) -> Result<u64, Refused> {
    number::decimal(word)
        .filter(|value| (least..=most).contains(value))
        .ok_or(Refused)
}

/// A size in bytes: a decimal number, with `K`, `M` or `G` for the binary multiples.
///
/// # Errors
/// Anything else, and what 64 bits do not hold.
pub fn size(word: Word) -> Result<u64, Refused> {
    let (digits, unit) = match word {
        [digits @ .., b'K'] => (digits, 1 << 10),
        [digits @ .., b'M'] => (digits, 1 << 20),
        [digits @ .., b'G'] => (digits, 1 << 30),
        digits => (digits, 1),
    };
    number(digits, 0, u64::MAX)?
        .checked_mul(unit)
        .ok_or(Refused)
}

/// The elements of a comma-separated list, each read by `element`.
///
/// # Errors
/// An element that `element` refuses, one that stands twice, an empty list, or more than
/// [`LIST_MAX`](crate::measure::plan::LIST_MAX) elements.
pub fn list<T: PartialEq>(
    word: Word,
    element: impl Fn(Word) -> Result<T, Refused>,
) -> Result<List<T>, Refused> {
    let mut list = List::new();
    for part in word.split(|&byte| byte == b',') {
        let value = element(part)?;
        if list.contains(&value) {
            return Err(Refused);
        }
        list.push(value).map_err(|_| Refused)?;
    }
    Ok(list)
}

/// Free text that is safe in a comment line and in a CSV field.
///
/// # Errors
/// More than 64 bytes, not UTF-8, or an ASCII control character in it.
pub fn label(word: Word) -> Result<&'static str, Refused> {
    core::str::from_utf8(word)
        .ok()
        .filter(|text| text.len() <= 64 && !text.bytes().any(|byte| byte.is_ascii_control()))
        .ok_or(Refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::plan::LIST_MAX;

    #[test]
    fn sizes() {
        let cases: [(Word, Result<u64, Refused>); 10] = [
            (b"16", Ok(16)),
            (b"4K", Ok(4096)),
            (b"32M", Ok(32 << 20)),
            (b"1G", Ok(1 << 30)),
            (b"17179869183G", Ok(u64::MAX - (1 << 30) + 1)),
            (b"17179869184G", Err(Refused)),
            (b"", Err(Refused)),
            (b"K", Err(Refused)),
            (b"-4K", Err(Refused)),
            (b"4KiB", Err(Refused)),
        ];
        for (word, want) in cases {
            assert_eq!(size(word), want, "{}", word.escape_ascii());
        }
    }

    #[test]
    fn lists_refuse_doubles_gaps_and_too_many() {
        assert_eq!(list(b"4K,64K", size).unwrap()[..], [4096, 65536]);
        for bad in [&b""[..], b"4K,", b",4K", b"4K,4096", b"4K 64K"] {
            assert_eq!(
                list(bad, size).err(),
                Some(Refused),
                "{}",
                bad.escape_ascii()
            );
        }
        let many = b"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17";
        assert!(list(many, size).is_err());
        assert_eq!(list(&many[..many.len() - 3], size).unwrap().len(), LIST_MAX);
    }

    #[test]
    fn labels_cannot_break_a_line() {
        assert_eq!(label(b"a, \"quoted\" one"), Ok("a, \"quoted\" one"));
        for bad in [&b"two\nlines"[..], b"\xff", b"\x1b[31m", &[b'x'; 65]] {
            assert_eq!(label(bad), Err(Refused));
        }
    }
}
