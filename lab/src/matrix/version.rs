//! The version of a kernel, as `uname` tells it.

/// Major, minor and patch number.
pub(super) type Version = (u32, u32, u32);

/// The version of a kernel by its release and its `uname -v`; (0, 0, 0) if they tell none.
///
/// Debian's release has the number of its ABI where the patch number would be (`6.1.0-53`), and
/// `uname -v` has the version: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-11-12)`.
pub(super) fn version(release: &str, uname_v: &str) -> Version {
    let debian = uname_v.split_once(" Debian ");
    numbers(debian.map_or(release, |(_, version)| version))
}

fn numbers(text: &str) -> Version {
    let first = text.split(['-', '+', '~', ' ']).next().unwrap_or_default();
    let mut parts = first.split('.').map(|part| part.parse().ok());
    let mut next = || parts.next().flatten();
    match (next(), next()) {
        (Some(major), Some(minor)) => (major, minor, next().unwrap_or_default()),
        _ => (0, 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debian_tells_the_patch_number_elsewhere() {
        let of = |release, uname_v| version(release, uname_v);
        let debian = "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-11-12)";
        assert_eq!(of("6.1.0-53-cloud-amd64", debian), (6, 1, 176));
        assert_eq!(of("6.1.0-53-cloud-amd64", ""), (6, 1, 0));
        assert_eq!(of("6.12.117+deb13-cloud-amd64", ""), (6, 12, 117));
        assert_eq!(
            of("7.3~rc2-amd64", "#1 SMP Debian 7.3~rc2-1~exp1"),
            (7, 3, 0)
        );
        assert_eq!(of("6.18.44", "#1 SMP"), (6, 18, 44));
        assert_eq!(of("?", ""), (0, 0, 0));
    }
}
