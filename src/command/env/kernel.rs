//! Which kernel this is.
//!
//! uname(2) only: /proc/version also names who built the kernel and where. The host name
//! that uname carries as well is never looked at.

use rustix::system::{Uname, uname};

/// Which kernel this is.
pub struct Kernel(Uname);

impl Kernel {
    /// Asks the kernel. uname(2) cannot fail with a valid buffer.
    #[must_use]
    pub fn read() -> Self {
        Self(uname())
    }

    /// As `uname -r`; `?` if that is not UTF-8.
    #[must_use]
    pub fn release(&self) -> &str {
        self.0.release().to_str().unwrap_or("?")
    }

    /// As `uname -r`.
    pub(super) fn release_bytes(&self) -> &[u8] {
        self.0.release().to_bytes()
    }

    /// As `uname -v`.
    pub(super) fn version_bytes(&self) -> &[u8] {
        self.0.version().to_bytes()
    }
}
