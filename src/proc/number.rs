//! Numbers and words in kernel text, with every overflow checked.
//!
//! The kernel prints unsigned numbers without sign or separator; anything else is
//! not a number here.

/// A decimal number; all of `digits` must belong to it.
#[must_use]
pub fn decimal(digits: &[u8]) -> Option<u64> {
    parse(digits, 10)
}

/// A hexadecimal number without `0x`, in either case; all of `digits` must belong to it.
#[must_use]
pub fn hex(digits: &[u8]) -> Option<u64> {
    parse(digits, 16)
}

/// A size such as `  8 kB`, in KiB. The kernel writes `kB` and means 1,024 bytes
/// (`show_val_kb` in fs/proc/meminfo.c). A missing unit means that the text was cut.
#[must_use]
pub fn kib(text: &[u8]) -> Option<u64> {
    let (digits, unit) = word(text)?;
    if unit.trim_ascii() != b"kB" {
        return None;
    }
    decimal(digits)
}

/// The first word, blanks before it skipped, and what follows it, blanks included.
/// `None` if there are only blanks.
#[must_use]
pub fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let blank = text.iter().position(u8::is_ascii_whitespace);
    let (word, rest) = text.split_at(blank.unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

/// What stands before and after the first `separator`.
#[must_use]
pub fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let at = position(text, separator)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Where the first such byte is; eight are looked at together.
#[must_use]
pub fn position(text: &[u8], wanted: u8) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHEST: u64 = u64::from_ne_bytes([0x80; 8]);
    let all = u64::from_ne_bytes([wanted; 8]);
    let (words, rest) = text.as_chunks();
    for (nth, word) in words.iter().enumerate() {
        let other = u64::from_le_bytes(*word) ^ all;
        // The highest bit of each byte that is 0, and perhaps of some behind the first.
        let found = other.wrapping_sub(ONES) & !other & HIGHEST;
        if found > 0 {
            return Some(8 * nth + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| *byte == wanted)?;
    Some(8 * words.len() + at)
}

fn parse(digits: &[u8], radix: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |value, byte| {
        let digit = char::from(*byte).to_digit(radix)?;
        let shifted = value.checked_mul(u64::from(radix))?;
        shifted.checked_add(u64::from(digit))
    })
}

/// How many numbers a list like `0-3,8` names, as the kernel prints sets of CPUs and nodes
/// (`bitmap_print_to_pagebuf`, lib/bitmap-str.c). `None` if it is no such list.
#[must_use]
pub fn count_listed(text: &[u8]) -> Option<u64> {
    let span = |part: &[u8]| match split_once(part, b'-') {
        Some((first, last)) => decimal(last)?.checked_sub(decimal(first)?)?.checked_add(1),
        None => decimal(part).map(|_| 1),
    };
    let mut parts = text.split(|&byte| byte == b',');
    parts.try_fold(0_u64, |sum, part| sum.checked_add(span(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_byte_is_found_wherever_it_is() {
        // Bytes that differ from it in the lowest or highest bit, before and behind it.
        for other in [0, 1, b'<', b'<' ^ 1, b'<' ^ 0x80, 0x7f, 0x80, 0xff] {
            for len in 0..40 {
                for at in 0..len {
                    for wanted in [b'=', 0, 0xff] {
                        let mut text = std::vec![other; len];
                        let first = if other == wanted { 0 } else { at };
                        text[at..].fill(wanted ^ 1);
                        text[at] = wanted;
                        assert_eq!(position(&text, wanted), Some(first), "{text:?}");
                        let none = position(&text[..first], wanted);
                        assert_eq!(none, None, "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn decimal_takes_digits_only() {
        let cases: [(&[u8], Option<u64>); 11] = [
            (b"0", Some(0)),
            (b"247030", Some(247_030)),
            (b"007", Some(7)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"100000000000000000000", None),
            (b"", None),
            (b"-1", None),
            (b"+1", None),
            (b"1 ", None),
            (b"\xd9\xa1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(decimal(text), expected, "{text:?}");
        }
    }

    #[test]
    fn hex_takes_both_cases_and_sixteen_digits() {
        let cases: [(&[u8], Option<u64>); 8] = [
            (b"00000000", Some(0)),
            (b"7ffd7574d000", Some(0x7ffd_7574_d000)),
            (b"DeadBeef", Some(0xdead_beef)),
            (b"ffffffffffffffff", Some(u64::MAX)),
            (b"10000000000000000", None),
            (b"fffffffffffffffffffff", None),
            (b"0x41", None),
            (b"", None),
        ];
        for (text, expected) in cases {
            assert_eq!(hex(text), expected, "{text:?}");
        }
    }

    #[test]
    fn sizes_need_their_unit() {
        let cases: [(&[u8], Option<u64>); 9] = [
            (b"                   8 kB", Some(8)),
            (b"24684092 kB\r", Some(24_684_092)),
            (b"0 kB", Some(0)),
            (b"   8", None),
            (b"   8 k", None),
            (b"   8 MB", None),
            (b"   8 kB kB", None),
            (b" kB", None),
            (b"100000000000000000000 kB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(kib(text), expected, "{text:?}");
        }
    }

    #[test]
    fn words_leave_the_rest_untouched() {
        assert_eq!(word(b"  one  two "), Some((&b"one"[..], &b"  two "[..])));
        assert_eq!(word(b"one"), Some((&b"one"[..], &b""[..])));
        assert_eq!(word(b" \t\r\n"), None);
        assert_eq!(word(b""), None);
    }

    #[test]
    fn the_first_separator_splits() {
        assert_eq!(split_once(b"a:b:c", b':'), Some((&b"a"[..], &b"b:c"[..])));
        assert_eq!(split_once(b"a:", b':'), Some((&b"a"[..], &b""[..])));
        assert_eq!(split_once(b"a", b':'), None);
    }

    #[test]
    fn lists_are_counted() {
        let known: [(&[u8], Option<u64>); 6] = [
            (b"0", Some(1)),
            (b"0-1", Some(2)),
            (b"0-3,8,10-11", Some(7)),
            (b"", None),
            (b"3-1", None),
            (b"0-3\n", None),
        ];
        for (text, count) in known {
            assert_eq!(count_listed(text), count, "{text:?}");
        }
    }
}
