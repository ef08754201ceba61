//! SHA-256 of whatever is written to it.

use sha2::{Digest, Sha256};
use std::io::{self, Write};

/// A SHA-256.
pub(super) type Hash = [u8; 32];

/// Takes bytes, keeps their hash.
#[derive(Default)]
pub(super) struct Hashing(Sha256);

impl Hashing {
    /// The hash of all that was written.
    pub(super) fn hash(self) -> Hash {
        self.0.finalize().into()
    }
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The hash of `bytes`.
pub(super) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}
