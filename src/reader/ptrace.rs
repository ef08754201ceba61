//! PTRACE_PEEKDATA: eight bytes a call, the target stopped (kernel/ptrace.c,
//! `generic_ptrace_peekdata`, which ends in the same copy as /proc/PID/mem).

use super::{BlockReader, Target};
use crate::sys::process::Child;
use crate::sys::ptrace::Stopped;
use crate::sys::{Errno, RemoteAddr};
use core::marker::PhantomData;

/// `ptrace`: words until the block is full.
pub struct Ptrace<'t> {
    stopped: Stopped,
    /// A child must not be reaped before it is let go.
    _child: PhantomData<&'t Child>,
}

impl<'t> Ptrace<'t> {
    /// Attaches to the process and stops it (of its threads, the first); dropping lets it go.
    ///
    /// # Errors
    /// `EPERM` (Yama, another tracer), `ESRCH` (gone).
    pub fn attach(target: &Target<'t>) -> Result<Self, Errno> {
        Ok(Self {
            stopped: Stopped::seize(target.pid)?,
            _child: PhantomData,
        })
    }
}

impl BlockReader for Ptrace<'_> {
    /// Peeks aligned words only, which never cross a page, and takes what belongs to the
    /// block.
    #[inline]
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < block.len() {
            let at = start.0 + done as u64;
            let skipped = (at % 8) as usize;
            match self.stopped.peek(RemoteAddr(at - skipped as u64)) {
                Ok(word) => {
                    let wanted = &mut block[done..];
                    let count = wanted.len().min(8 - skipped);
                    wanted[..count].copy_from_slice(&word[skipped..skipped + count]);
                    done += count;
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }
}
