//! Lines of a kernel configuration: /proc/config.gz or /boot/config-*.
//!
//! Source: Documentation/kbuild/kconfig.rst; scripts/kconfig/confdata.c.

use super::number::split_once;

/// The option that `line` is about, with its `CONFIG_`, and what it says about it: the value as
/// printed (`y`, `m`, `65536`, a string with its quotes), `n` where the line says that it is not
/// set. `None` if the line is about something else.
///
/// An option that no line mentions does not exist in that kernel, or depends on one
/// that is off. The line must be whole: a cut number cannot be recognised.
#[must_use]
pub fn setting(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    if let Some(comment) = line.strip_prefix(b"# ") {
        return Some((comment.strip_suffix(b" is not set")?, b"n"));
    }
    split_once(line, b'=').filter(|(_, value)| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(line: &'a [u8], option: &[u8]) -> Option<&'a [u8]> {
        let about = setting(line).filter(|(name, _)| *name == option);
        about.map(|(_, value)| value)
    }

    type Case = (&'static [u8], &'static [u8], Option<&'static [u8]>);

    #[test]
    fn the_line_decides() {
        let cases: [Case; 16] = [
            (b"CONFIG_KSM=y", b"CONFIG_KSM", Some(b"y")),
            (b"CONFIG_ZRAM=m", b"CONFIG_ZRAM", Some(b"m")),
            (b"CONFIG_KSM=y\r", b"CONFIG_KSM", Some(b"y")),
            (b"CONFIG_HZ=250\n", b"CONFIG_HZ", Some(b"250")),
            (b"CONFIG_BASE=0x1000", b"CONFIG_BASE", Some(b"0x1000")),
            (
                b"CONFIG_LSM=\"yama,bpf\"",
                b"CONFIG_LSM",
                Some(b"\"yama,bpf\""),
            ),
            (
                b"CONFIG_CMDLINE=\"a=b\"",
                b"CONFIG_CMDLINE",
                Some(b"\"a=b\""),
            ),
            (b"CONFIG_NAME=\"\xff\"", b"CONFIG_NAME", Some(b"\"\xff\"")),
            (b"# CONFIG_KSM is not set", b"CONFIG_KSM", Some(b"n")),
            (b"# CONFIG_KSM is not set\r", b"CONFIG_KSM", Some(b"n")),
            (b"# CONFIG_KSM is not s", b"CONFIG_KSM", None),
            (b"#CONFIG_KSM is not set", b"CONFIG_KSM", None),
            (b"# CONFIG_KSM=y", b"CONFIG_KSM", None),
            (b"CONFIG_KSM=", b"CONFIG_KSM", None),
            (b"CONFIG_KSM", b"CONFIG_KSM", None),
            (b"", b"CONFIG_KSM", None),
        ];
        for (line, option, expected) in cases {
            assert_eq!(value(line, option), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_longer_or_shorter_name_is_another_option() {
        let lines: [&[u8]; 4] = [
            b"CONFIG_SWAP_X=y",
            b"# CONFIG_SWAP_X is not set",
            b"# CONFIG_SWAPX is not set",
            b"CONFIG_SWA=y",
        ];
        for line in lines {
            assert_eq!(value(line, b"CONFIG_SWAP"), None, "{}", line.escape_ascii());
        }
    }
}
