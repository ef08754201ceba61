//! The kernel command line, /proc/cmdline, read as the kernel reads it.
//!
//! Source: `next_arg` in lib/cmdline.c, `parse_args` and `parameq` in kernel/params.c.

use core::iter::from_fn;

/// The value of the last word `key=value`, without quotes around it; it may be empty.
///
/// Double quotes keep blanks in a word and cannot be escaped; `-` and `_` are equal in
/// keys; what follows a lone `--` belongs to init. A key without `=` has no value and
/// does not undo an earlier one.
#[must_use]
pub fn last_value<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    parameters(text)
        .filter(|word| word.is(key))
        .filter_map(|word| word.value)
        .last()
}

/// The kernel's own words in their order, those for init left out.
pub fn parameters(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    words(text).take_while(|word| !word.ends_parameters())
}

/// A word of the command line, without quotes around it or its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    /// What stands before the `=`, or all of it.
    pub key: &'a [u8],
    /// What stands behind; it may be empty.
    pub value: Option<&'a [u8]>,
}

impl<'a> Word<'a> {
    /// Whether this is the parameter `key`; `-` and `_` are equal.
    #[must_use]
    pub fn is(&self, key: &[u8]) -> bool {
        same_key(self.key, key)
    }

    fn parse(word: &'a [u8]) -> Self {
        let (word, quoted) = open_quote(word);
        // An `=` in front is part of the key.
        let equals = word.iter().skip(1).position(|byte| *byte == b'=');
        let Some(key_len) = equals.map(|at| at + 1) else {
            let key = close_quote(word, quoted);
            return Self { key, value: None };
        };
        let (value, value_quoted) = open_quote(&word[key_len + 1..]);
        Self {
            key: &word[..key_len],
            value: Some(close_quote(value, quoted || value_quoted)),
        }
    }

    fn ends_parameters(&self) -> bool {
        self.value.is_none() && self.key == b"--"
    }
}

fn open_quote(text: &[u8]) -> (&[u8], bool) {
    match text.strip_prefix(b"\"") {
        Some(inner) => (inner, true),
        None => (text, false),
    }
}

fn close_quote(text: &[u8], quoted: bool) -> &[u8] {
    match text.strip_suffix(b"\"") {
        Some(inner) if quoted => inner,
        _ => text,
    }
}

fn words(mut text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    from_fn(move || {
        let start = text.iter().position(|byte| !is_space(*byte))?;
        let (word, rest) = split_word(&text[start..]);
        text = rest;
        Some(Word::parse(word))
    })
}

/// Splits before the first blank outside quotes. A quote that never closes takes all.
fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let mut quoted = false;
    let end = text.iter().position(|byte| {
        quoted ^= *byte == b'"';
        !quoted && is_space(*byte)
    });
    text.split_at(end.unwrap_or(text.len()))
}

/// The kernel's isspace: Latin-1, so the no-break space is one (lib/ctype.c).
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0)
}

fn same_key(left: &[u8], right: &[u8]) -> bool {
    let dashed = |byte: &u8| if *byte == b'-' { b'_' } else { *byte };
    left.iter().map(dashed).eq(right.iter().map(dashed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::samples::CMDLINE;

    #[test]
    fn values_of_the_sample() {
        assert_eq!(
            last_value(CMDLINE, b"mitigations"),
            Some(&b"auto,no_guest_host"[..])
        );
        assert_eq!(last_value(CMDLINE, b"random.trust_cpu"), Some(&b"1"[..]));
        assert_eq!(last_value(CMDLINE, b"console"), Some(&b"ttyS0"[..]));
        assert_eq!(last_value(CMDLINE, b"quiet"), None);
        assert_eq!(last_value(CMDLINE, b"addr"), None);
        assert_eq!(last_value(CMDLINE, b"--addr"), None);
        assert_eq!(last_value(CMDLINE, b""), None);
    }

    #[test]
    fn words_are_cut_as_the_kernel_cuts_them() {
        let cases: [(&[u8], Option<&[u8]>); 28] = [
            (b"key=1", Some(b"1")),
            (b"key=1\n", Some(b"1")),
            (b"\t key=1\r\n", Some(b"1")),
            (b"key=1 key=2", Some(b"2")),
            (b"key=1 key", Some(b"1")),
            (b"key=1 key=", Some(b"")),
            (b"key", None),
            (b"keys=1 ke=2 xkey=3", None),
            (b"key=a=b", Some(b"a=b")),
            (b"=key=1", None),
            (b"key=\"a b\" c", Some(b"a b")),
            (b"\"key=a b\" c", Some(b"a b")),
            (b"key=a\" \"b c", Some(b"a\" \"b")),
            (b"\"key=\"v\"\"", Some(b"v\"")),
            (b"key=\"a b", Some(b"a b")),
            (b"key=\"", Some(b"")),
            (b"\"key=", Some(b"")),
            (b"\"", None),
            (b"other=\"key=1\" x", None),
            (b"key=1 -- key=2", Some(b"1")),
            (b"key=1 \"--\" key=2", Some(b"1")),
            (b"key=1 --x key=2", Some(b"2")),
            (b"key=1 --=x key=2", Some(b"2")),
            (b"-- key=2", None),
            (b"key=\xff\xfe", Some(b"\xff\xfe")),
            (b"key=1\xa0key=2", Some(b"2")),
            (b"KEY=1", None),
            (b"", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                last_value(text, b"key"),
                expected,
                "{}",
                text.escape_ascii()
            );
        }
    }

    #[test]
    fn parameters_with_and_without_value() {
        let all = parameters(b"nosmt mem=\"1G\" nosmt=force -- quiet");
        let pairs = all.map(|word| (word.key, word.value));
        let want: [(&[u8], Option<&[u8]>); 3] = [
            (b"nosmt", None),
            (b"mem", Some(b"1G")),
            (b"nosmt", Some(b"force")),
        ];
        assert!(pairs.eq(want));
    }

    #[test]
    fn dash_and_underscore_are_one() {
        let text = b"proc-mem.force_override=never a=b-c";
        assert_eq!(
            last_value(text, b"proc_mem.force-override"),
            Some(&b"never"[..])
        );
        assert_eq!(last_value(text, b"a"), Some(&b"b-c"[..]));
    }
}
