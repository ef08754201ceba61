//! Files of `Name:  value` lines: /proc/PID/status and /proc/meminfo.
//!
//! Source: proc_pid_status(5), proc_meminfo(5); fs/proc/array.c, fs/proc/meminfo.c. The
//! kernel escapes line feeds in the one value a process chooses (its name), so no
//! process can forge a line.

use super::lines::complete;
use super::number::{hex, kib, split_once};

/// The value of the first line that begins with `name` and a colon, blanks around it
/// removed; it may be empty. A last line without line feed does not count: it may have
/// been cut.
#[must_use]
pub fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    complete(text)
        .filter_map(|line| split_once(line, b':'))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.trim_ascii())
}

/// A size in KiB, such as `MemAvailable` or `VmRSS`.
#[must_use]
pub fn kib_field(text: &[u8], name: &[u8]) -> Option<u64> {
    kib(field(text, name)?)
}

/// A hexadecimal mask without `0x`, such as `CapEff`.
#[must_use]
pub fn hex_field(text: &[u8], name: &[u8]) -> Option<u64> {
    hex(field(text, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::samples::{MEMINFO, STATUS};

    #[test]
    fn fields_of_the_samples() {
        assert_eq!(field(STATUS, b"Name"), Some(&b"head"[..]));
        assert_eq!(field(STATUS, b"State"), Some(&b"R (running)"[..]));
        assert_eq!(field(STATUS, b"Uid"), Some(&b"0\t0\t0\t0"[..]));
        assert_eq!(field(STATUS, b"Groups"), Some(&b""[..]));
        assert_eq!(field(STATUS, b"VmSwap"), Some(&b"0 kB"[..]));
        assert_eq!(kib_field(STATUS, b"VmRSS"), Some(1764));
        assert_eq!(hex_field(STATUS, b"CapEff"), Some(0x1ff_feff_ffff));
        assert_eq!(hex_field(STATUS, b"CapInh"), Some(0));
        assert_eq!(kib_field(MEMINFO, b"MemTotal"), Some(24_684_092));
        assert_eq!(kib_field(MEMINFO, b"MemFree"), Some(24_370_700));
        assert_eq!(kib_field(MEMINFO, b"MemAvailable"), Some(24_359_820));
    }

    #[test]
    fn names_match_whole_and_exactly() {
        assert_eq!(field(STATUS, b"Nam"), None);
        assert_eq!(field(STATUS, b"ame"), None);
        assert_eq!(field(STATUS, b"Pid"), Some(&b"3513"[..]));
        assert_eq!(field(MEMINFO, b"Mem"), None);
        assert_eq!(field(MEMINFO, b"SwapTotal"), None);
        assert_eq!(field(MEMINFO, b""), None);
    }

    #[test]
    fn unknown_is_none_and_never_0() {
        let cases: [(&[u8], Option<u64>); 9] = [
            (b"MemTotal:       24684092 kB\r\n", Some(24_684_092)),
            (b"MemTotal:       24684092 kB", None),
            (b"MemTotal:       246", None),
            (b"MemTotal:       24684092\n", None),
            (b"MemTotal: kB\n", None),
            (b"MemTotal:\n", None),
            (b"MemTotal\n", None),
            (b"MemTotal: 111111111111111111111 kB\n", None),
            (b"MemTotal: \xff\xfe kB\n", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                kib_field(text, b"MemTotal"),
                expected,
                "{}",
                text.escape_ascii()
            );
        }
        assert_eq!(hex_field(b"CapEff:\t000001ff", b"CapEff"), None);
        assert_eq!(hex_field(b"CapEff:\t0x1ff\n", b"CapEff"), None);
        assert_eq!(hex_field(b"CapEff:\t11111111111111111\n", b"CapEff"), None);
    }

    #[test]
    fn the_first_line_of_a_name_wins() {
        assert_eq!(field(b"A:\t1\nA:\t2\n", b"A"), Some(&b"1"[..]));
    }
}
