//! Any of the readers, chosen by name.

use super::{
    Care, Hybrid, Kcore, Learned, MapFiles, Memcpy, Method, ProcMem, ProcSeek, Ptrace, Reader,
    Target, Vmread, VmreadBatch,
};
use crate::sys::Errno;

/// Any of the readers, chosen by name.
#[allow(
    clippy::large_enum_variant,
    reason = "one lives at a time, on the stack, and there is no allocator to box it with"
)]
pub enum AnyReader<'t> {
    /// `proc`.
    Proc(ProcMem),
    /// `proc-seek`.
    ProcSeek(ProcSeek),
    /// `vmread`.
    Vmread(Vmread),
    /// `vmread-batch`.
    VmreadBatch(VmreadBatch),
    /// `ptrace`.
    Ptrace(Ptrace<'t>),
    /// `kcore`.
    Kcore(Kcore),
    /// `map-files`.
    MapFiles(MapFiles),
    /// `hybrid`.
    Hybrid(Hybrid),
    /// `memcpy`.
    Memcpy(Memcpy<'t>),
}

impl<'t> AnyReader<'t> {
    /// Opens `method` for a process.
    ///
    /// # Errors
    /// The mechanism's own, which [`Method::refusal`] puts in words; `EINVAL` for `memcpy`
    /// without segments.
    pub fn open(method: Method, target: &Target<'t>) -> Result<Self, Errno> {
        let pid = target.pid;
        Ok(match method {
            Method::Proc => Self::Proc(ProcMem::open(pid)?),
            Method::ProcSeek => Self::ProcSeek(ProcSeek::open(pid)?),
            Method::Vmread => Self::Vmread(Vmread::new(pid)),
            Method::VmreadBatch => Self::VmreadBatch(VmreadBatch::new(pid)),
            Method::Ptrace => Self::Ptrace(Ptrace::attach(target)?),
            Method::Kcore => Self::Kcore(Kcore::open(target)?),
            Method::MapFiles => Self::MapFiles(MapFiles::open(target)?),
            Method::Hybrid => Self::Hybrid(Hybrid::open(target)?),
            Method::Memcpy => Self::Memcpy(Memcpy::new(target.segments.ok_or(Errno::INVAL)?)),
        })
    }

    /// The reader.
    pub fn any(&mut self) -> &mut dyn Reader {
        match self {
            Self::Proc(reader) => reader,
            Self::ProcSeek(reader) => reader,
            Self::Vmread(reader) => reader,
            Self::VmreadBatch(reader) => reader,
            Self::Ptrace(reader) => reader,
            Self::Kcore(reader) => reader,
            Self::MapFiles(reader) => reader,
            Self::Hybrid(reader) => reader,
            Self::Memcpy(reader) => reader,
        }
    }

    /// What became of the pages, if the reader is one that takes care.
    #[must_use]
    pub const fn care(&self) -> Option<&Care> {
        match self {
            Self::Hybrid(reader) => Some(reader.care()),
            _ => None,
        }
    }

    /// What it has learned of the process, for the reader of the next pass.
    #[must_use]
    pub fn learned(&self) -> Learned {
        match self {
            Self::Hybrid(reader) => reader.learned(),
            Self::MapFiles(reader) => reader.learned(),
            _ => Learned::default(),
        }
    }
}
