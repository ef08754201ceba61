//! An input that is waited for without being deaf to signals: a pipe may stay silent for
//! ever, and a read that a signal interrupts goes on by itself.

use super::error::SizesError;
use crate::failure::Failure;
use crate::host::Interrupt;
use crate::input;
use crate::stream::Tolerance;
use std::ffi::{OsStr, OsString};
use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// How much is read at a time.
const BLOCK_BYTES: u64 = 1 << 16;

/// How soon a signal is noticed.
const PATIENCE: Duration = Duration::from_millis(100);

type Block = Result<Vec<u8>, Failure>;

/// The input.
pub(super) struct Patient<'i> {
    blocks: Receiver<Block>,
    block: Cursor<Vec<u8>>,
    interrupt: &'i Interrupt,
    /// What a read's error stands for.
    pub(super) failure: Option<Failure>,
}

impl<'i> Patient<'i> {
    /// Opens an input, `-` being standard input.
    ///
    /// # Errors
    /// [`SizesError::Thread`].
    pub(super) fn open(file: &OsStr, interrupt: &'i Interrupt) -> Result<Self, SizesError> {
        let (sender, blocks) = sync_channel(2);
        let file = file.to_owned();
        // It ends with its input, or with the program.
        let thread = thread::Builder::new().spawn(move || send(&file, &sender));
        thread.map_err(SizesError::Thread)?;
        Ok(Self {
            blocks,
            block: Cursor::default(),
            interrupt,
            failure: None,
        })
    }

    /// The next block; an empty one is the end.
    fn wait(&mut self) -> Block {
        loop {
            super::go_on(self.interrupt)?;
            match self.blocks.recv_timeout(PATIENCE) {
                Ok(block) => return block,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            }
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.block.position() == self.block.get_ref().len() as u64 {
            match self.wait() {
                Ok(block) => self.block = Cursor::new(block),
                Err(failure) => {
                    let said = failure.to_string();
                    self.failure = Some(failure);
                    return Err(io::Error::other(said));
                }
            }
        }
        self.block.read(buffer)
    }
}

/// Reads all of `file`; whoever is not listened to any more stops.
fn send(file: &OsString, blocks: &SyncSender<Block>) {
    let mut input = match input::open(file, Tolerance::Whole) {
        Ok(input) => input.bytes,
        Err(failure) => {
            let _ = blocks.send(Err(failure));
            return;
        }
    };
    loop {
        let mut block = Vec::new();
        let read = input.by_ref().take(BLOCK_BYTES).read_to_end(&mut block);
        let failed = |error| Failure::from(SizesError::Unreadable(error));
        let block = read.map(|_| block).map_err(failed);
        let last = !matches!(&block, Ok(block) if !block.is_empty());
        if blocks.send(block).is_err() || last {
            return;
        }
    }
}
