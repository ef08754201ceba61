//! What leaves the program: records as CSV rows, the framed stream around them, and the
//! summary in words. Pure: it formats, it never measures, and it writes only through
//! [`Sink`].

pub mod audit_row;
pub mod bench_row;
pub mod crc;
pub mod fixed;
pub mod memmap_row;
pub mod probe_row;
pub mod record;
pub mod sharing_row;
pub mod sizes_row;
pub mod startup_row;
pub mod stream;
pub mod summary;
pub mod survey_row;

/// Where bytes go: standard output, a file, a buffer in a test.
pub trait Sink {
    /// What can go wrong.
    type Error;

    /// Takes all of `bytes`.
    ///
    /// # Errors
    /// The sink's own; after one, what was written is of no use.
    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Self::Error>;
}
