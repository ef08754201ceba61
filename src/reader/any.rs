//! Any of the readers, chosen by name.

use super::{
    Hybrid, Kcore, MapFiles, Memcpy, Method, ProcMem, ProcSeek, Ptrace, Reader, Target, Vmread,
    VmreadBatch,
};
use crate::sys::Errno;

impl Method {
    /// Opens this reader for a process, and lends it to `then`.
    ///
    /// It lives on the stack, where `hybrid` takes some 70 KiB and `proc` one descriptor. So each of
    /// the large ones has a frame of its own: in one they would take the largest's, whoever reads.
    ///
    /// # Errors
    /// The mechanism's own, which [`refusal`](Self::refusal) puts in words; `EINVAL` for `memcpy`
    /// without segments. Then `then` was not called.
    pub fn lend(
        self,
        target: &Target<'_>,
        then: &mut dyn FnMut(&mut dyn Reader),
    ) -> Result<(), Errno> {
        let pid = target.pid;
        match self {
            Self::Proc => then(&mut ProcMem::open(pid)?),
            Self::ProcSeek => then(&mut ProcSeek::open(pid)?),
            Self::Vmread => then(&mut Vmread::new(pid)),
            Self::VmreadBatch => lend_batch(pid, then),
            Self::Ptrace => then(&mut Ptrace::attach(target)?),
            Self::Kcore => lend_kcore(target, then)?,
            Self::MapFiles => lend_map_files(target, then)?,
            Self::Hybrid => lend_hybrid(target, then)?,
            Self::Memcpy => then(&mut Memcpy::new(target.segments.ok_or(Errno::INVAL)?)),
        }
        Ok(())
    }
}

type Then<'a> = &'a mut dyn FnMut(&mut dyn Reader);

#[inline(never)]
fn lend_batch(pid: i32, then: Then<'_>) {
    then(&mut VmreadBatch::new(pid));
}

#[inline(never)]
fn lend_kcore(target: &Target<'_>, then: Then<'_>) -> Result<(), Errno> {
    lend_opened(&mut Kcore::open(target), then)
}

#[inline(never)]
fn lend_map_files(target: &Target<'_>, then: Then<'_>) -> Result<(), Errno> {
    lend_opened(&mut MapFiles::open(target), then)
}

#[inline(never)]
fn lend_hybrid(target: &Target<'_>, then: Then<'_>) -> Result<(), Errno> {
    lend_opened(&mut Hybrid::open(target), then)
}

/// From where it is: out of the result would be a copy more.
fn lend_opened<R: Reader>(opened: &mut Result<R, Errno>, then: Then<'_>) -> Result<(), Errno> {
    match opened {
        Ok(reader) => {
            then(reader);
            Ok(())
        }
        Err(errno) => Err(*errno),
    }
}
