//! PTRACE_PEEKDATA: eight bytes a call, the target stopped (kernel/ptrace.c,
//! `generic_ptrace_peekdata`, which ends in the same copy as /proc/PID/mem).

use super::BlockReader;
use crate::sys::process::Child;
use crate::sys::ptrace::Stopped;
use crate::sys::{Errno, RemoteAddr};

/// `ptrace`: words until the block is full.
pub struct Ptrace<'c>(Stopped<'c>);

impl<'c> Ptrace<'c> {
    /// Attaches to the child and stops it; dropping lets it go.
    ///
    /// # Errors
    /// `EPERM` (Yama, another tracer), `ESRCH` (gone).
    pub fn attach(child: &'c Child) -> Result<Self, Errno> {
        Stopped::seize(child).map(Self)
    }
}

impl BlockReader for Ptrace<'_> {
    /// The last word of a block that is no multiple of eight is read whole, from
    /// further down, so that nothing past the block is touched.
    #[inline]
    fn read(&mut self, start: RemoteAddr, block: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while done < block.len() {
            let left = block.len() - done;
            let back = 8usize.saturating_sub(left).min(done);
            let at = start.plus((done - back) as u64);
            match self.0.peek(at) {
                Ok(word) => {
                    let count = left.min(8 - back);
                    block[done..done + count].copy_from_slice(&word[back..back + count]);
                    done += count;
                }
                Err(errno) if done == 0 => return Err(errno),
                Err(_) => break,
            }
        }
        Ok(done)
    }
}
