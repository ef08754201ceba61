//! Opening inputs: files and standard input, compressed with gzip or not.

use crate::failure::Failure;
use crate::stream::Tolerance;
use crate::text::printable;
use flate2::bufread::GzDecoder;
use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::rc::Rc;
use thiserror::Error;

/// What a gzip file begins with (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// How much of an input can be looked at before it is read: [`BufRead::fill_buf`] shows that
/// much, if it is there.
pub(crate) const HEAD_BYTES: usize = 64;

/// How much is read at a time.
const BUFFER_BYTES: usize = 1 << 16;

/// What is wrong with a packed input.
#[derive(Clone, Copy, Debug, Error)]
pub enum Damage {
    /// The packed data ends too early.
    #[error("the packed data ends too early")]
    Cut,
    /// A member is not what was packed.
    #[error("the checksum of the packed data does not match")]
    Checksum,
    /// The packed data make no sense.
    #[error("the packed data are damaged")]
    Inside,
    /// Behind the packed data lies something else. Zeros are padding (gzip(1)).
    #[error("behind the packed data lies something that is neither packed nor padding")]
    Tail,
}

impl Damage {
    /// What an error says; `None`: the input could not be read, so nothing is known about it.
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        let own = error.get_ref().and_then(|own| own.downcast_ref::<Self>());
        own.copied()
    }

    /// What to do about it, in one line.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Cut => "measure or copy it again; --partial takes the whole rows that are there",
            Self::Checksum | Self::Inside => {
                "measure or copy it again; --partial takes the streams that end before the damage"
            }
            Self::Tail => {
                "take what lies behind it off, or copy it again; --partial takes what lies before"
            }
        }
    }
}

/// What was lost of an input that is taken as far as it goes.
pub(crate) type Lost = Rc<OnceCell<Damage>>;

/// An input.
pub(crate) struct Input {
    /// What to call it.
    pub(crate) name: String,
    /// Its bytes, unpacked.
    pub(crate) bytes: Box<dyn BufRead>,
    /// Set once it has been read, if it is taken although it is not whole.
    pub(crate) lost: Lost,
}

/// Opens an input, `-` being standard input. What a gzip file holds is recognised by its first
/// bytes, whatever its name.
///
/// # Errors
/// [`Failure::Open`].
pub(crate) fn open(file: &OsStr, tolerance: Tolerance) -> Result<Input, Failure> {
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
    let lost = Lost::default();
    let bytes: Box<dyn BufRead> = if packed {
        let unpacked = Unpacked {
            member: Some(GzDecoder::new(whole)),
            forgiving: tolerance == Tolerance::Partial,
            lost: Rc::clone(&lost),
        };
        Box::new(BufReader::with_capacity(BUFFER_BYTES, unpacked))
    } else {
        Box::new(whole)
    };
    Ok(Input { name, bytes, lost })
}

/// What a gzip file holds: its members, one after the other.
struct Unpacked<R> {
    /// The one that is read; `None` at the end.
    member: Option<GzDecoder<R>>,
    /// Whether a file that ends too early just ends, and one that is damaged ends there.
    forgiving: bool,
    lost: Lost,
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = self.member.as_mut().filter(|_| !buffer.is_empty()) {
            match member.read(buffer) {
                Ok(0) => {
                    let rest = self.member.take().map(GzDecoder::into_inner);
                    self.member = match rest.map(next_member) {
                        Some(Err(error)) => return self.end(error),
                        found => found.transpose()?.flatten(),
                    };
                }
                Err(error) => return self.end(named(error)),
                read => return read,
            }
        }
        Ok(0)
    }
}

impl<R> Unpacked<R> {
    /// Ends it before its time. What is damaged may have given wrong bytes before it showed:
    /// only an end that is missing is a plain end.
    fn end(&mut self, error: io::Error) -> io::Result<usize> {
        self.member = None;
        let damage = Damage::of(&error).filter(|_| self.forgiving);
        match damage {
            None => Err(error),
            Some(damage) => {
                let _ = self.lost.set(damage);
                match damage {
                    Damage::Cut | Damage::Tail => Ok(0),
                    Damage::Checksum | Damage::Inside => Err(error),
                }
            }
        }
    }
}

/// The member that comes next, if one does.
fn next_member<R: BufRead>(mut rest: R) -> io::Result<Option<GzDecoder<R>>> {
    let mut padded = false;
    loop {
        let bytes = rest.fill_buf()?;
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        match bytes.get(zeros) {
            Some(first) if !padded && zeros == 0 && *first == GZIP[0] => break,
            Some(_) => return Err(Damage::Tail.into()),
            None if zeros == 0 => return Ok(None),
            None => padded = true,
        }
        rest.consume(zeros);
    }
    let member = GzDecoder::new(rest);
    // Only a whole header is one.
    match member.header() {
        Some(_) => Ok(Some(member)),
        None => match { member }.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(Damage::Cut.into()),
            _ => Err(Damage::Tail.into()),
        },
    }
}

/// What is wrong, if it is the packed data and not the reading.
fn named(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Damage::Cut.into(),
        // The crate has the same kind for all that is damaged.
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            match error.to_string().contains("checksum") {
                true => Damage::Checksum.into(),
                false => Damage::Inside.into(),
            }
        }
        _ => error,
    }
}

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> Self {
        Self::new(ErrorKind::InvalidData, damage)
    }
}
