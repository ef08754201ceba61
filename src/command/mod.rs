//! The commands, one file or folder each: they join fixtures, readers and measurement
//! to what is emitted.

mod apart;
pub mod audit;
pub mod bench;
mod command_line;
pub mod env;
mod forecast;
mod live;
pub mod memmap;
pub mod probe;
mod progress;
mod room;
pub mod selftest;
pub mod sharing;
pub mod startup;
pub mod survey;

use crate::emit::Sink;
use crate::emit::stream::StreamError;
use crate::error::Error;
use crate::sys::Errno;
use crate::sys::stdio::Output;

impl Sink for Output {
    type Error = Errno;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        Output::write_all(*self, bytes)
    }
}

impl From<StreamError<Errno>> for Error {
    fn from(error: StreamError<Errno>) -> Self {
        match error {
            StreamError::Sink(errno) => Self::Output(errno),
            StreamError::TooLong => Self::TooLong,
        }
    }
}
