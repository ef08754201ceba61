//! Opening inputs: files and standard input, compressed with gzip or not.

use crate::failure::Failure;
use crate::stream::Tolerance;
use crate::text::printable;
use flate2::bufread::MultiGzDecoder;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// What a gzip file begins with (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How much of an input can be looked at before it is read: [`BufRead::fill_buf`] shows that
/// much, if it is there.
pub(crate) const HEAD_BYTES: usize = 64;

/// How much is read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// Opens an input, `-` being standard input; also what to call it. What a gzip file holds is
/// recognised by its first bytes, whatever its name.
///
/// # Errors
/// [`Failure::Open`].
pub(crate) fn open(
    file: &OsStr,
    tolerance: Tolerance,
) -> Result<(String, Box<dyn BufRead>), Failure> {
    let (name, mut input): (String, Box<dyn BufRead>) = if file == "-" {
        ("standard input".to_owned(), Box::new(io::stdin().lock()))
    } else {
        let name = printable(file.as_encoded_bytes());
        match File::open(file) {
            Ok(file) => (name, Box::new(BufReader::with_capacity(BUFFER_BYTES, file))),
            Err(error) => return Err(Failure::Open { name, error }),
        }
    };
    let mut head = Vec::new();
    // An error shows again when the rest is read, with its place.
    let _ = input
        .by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head);
    let packed = head.starts_with(&GZIP);
    let whole = Cursor::new(head).chain(input);
    if !packed {
        return Ok((name, Box::new(whole)));
    }
    let unpacked = Unpacked {
        decoder: MultiGzDecoder::new(whole),
        forgiving: tolerance == Tolerance::Partial,
    };
    let buffered = BufReader::with_capacity(BUFFER_BYTES, unpacked);
    Ok((name, Box::new(buffered)))
}

/// What a gzip file holds.
struct Unpacked<R> {
    decoder: MultiGzDecoder<R>,
    /// Whether a file that ends too early just ends.
    forgiving: bool,
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.decoder.read(buffer) {
            Err(error) if self.forgiving && error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}
