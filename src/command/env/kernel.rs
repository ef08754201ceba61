//! Which kernel this is.
//!
//! uname(2) only: /proc/version also names who built the kernel and where. The host name
//! that uname carries as well is never looked at.

use crate::proc::number::decimal;
use crate::sys::machine::Names;

/// The first that charges a fault to who reads another's memory, not to its owner or nobody: 5.9
/// (mm/memory.c, `mm_account_fault`).
pub const CHARGES_READER: (u64, u64) = (5, 9);
/// The first that does so of hugetlb pages, too: before it `follow_hugetlb_page` of mm/hugetlb.c
/// served such a fault by itself.
pub const CHARGES_READER_FOR_HUGETLB: (u64, u64) = (6, 5);

/// Which kernel this is.
pub struct Kernel(Names);

impl Kernel {
    /// Asks the kernel.
    #[must_use]
    pub fn read() -> Self {
        Self(Names::now())
    }

    /// As `uname -r`; empty where a filter denies that, `?` if it is not UTF-8.
    #[must_use]
    pub fn release(&self) -> &str {
        str::from_utf8(self.0.release()).unwrap_or("?")
    }

    /// Whether it is that version or a later one, by a release like `5.10.0-33-amd64`.
    #[must_use]
    pub fn is_since(&self, version: (u64, u64)) -> bool {
        self::version(self.release()) >= version
    }

    /// As `uname -r`.
    pub(super) fn release_bytes(&self) -> &[u8] {
        self.0.release()
    }

    /// As `uname -v`.
    pub(super) fn version_bytes(&self) -> &[u8] {
        self.0.version()
    }
}

/// The first two numbers of a release; 0 for one that is not there.
fn version(release: &str) -> (u64, u64) {
    let mut rest = release.as_bytes();
    let mut number = || {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, behind) = rest.split_at(digits);
        rest = behind.strip_prefix(b".").unwrap_or(&[]);
        decimal(number).unwrap_or(0)
    };
    (number(), number())
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn releases() {
        for (release, want) in [
            ("5.9.0", (5, 9)),
            ("5.10.0-33-amd64", (5, 10)),
            ("6.1.0-test", (6, 1)),
            ("6.18.44-fc-v657", (6, 18)),
            ("7.2", (7, 2)),
            ("10.0.1", (10, 0)),
            ("5.8-9", (5, 8)),
            ("3.10.99-9.9", (3, 10)),
            ("7-rc1.9", (7, 0)),
            ("", (0, 0)),
            ("?", (0, 0)),
        ] {
            assert_eq!(version(release), want, "{release}");
        }
    }
}
