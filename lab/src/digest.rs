//! SHA-256 of whatever is written to it, or read through it.

use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};

/// A SHA-256.
pub(crate) type Hash = [u8; 32];

/// Takes bytes, keeps their hash.
#[derive(Default)]
pub(crate) struct Hashing(Sha256);

impl Hashing {
    /// The hash of all that was written.
    pub(crate) fn hash(self) -> Hash {
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

/// An input, and the hash of what was read of it.
pub(crate) struct Hashed<R> {
    pub(crate) input: R,
    pub(crate) hash: Hashing,
}

impl<R> Hashed<R> {
    /// Of `input`, of which nothing was read.
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            hash: Hashing::default(),
        }
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.hash.0.update(&buffer[..count]);
        Ok(count)
    }
}

/// The hash of `bytes`.
pub(crate) fn hash(bytes: &[u8]) -> Hash {
    Sha256::digest(bytes).into()
}

/// A hash in hexadecimal.
pub(crate) fn hexadecimal(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
