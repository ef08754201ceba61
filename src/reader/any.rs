//! Any of the readers, chosen by name.

use super::{Memcpy, Method, ProcMem, ProcSeek, Ptrace, Reader, Vmread, VmreadBatch};
use crate::sys::process::Child;
use crate::sys::{Errno, Segments};

/// Any of the readers, chosen by name.
#[allow(
    clippy::large_enum_variant,
    reason = "one lives at a time, on the stack, and there is no allocator to box it with"
)]
pub enum AnyReader<'c> {
    /// `proc`.
    Proc(ProcMem),
    /// `proc-seek`.
    ProcSeek(ProcSeek),
    /// `vmread`.
    Vmread(Vmread),
    /// `vmread-batch`.
    VmreadBatch(VmreadBatch),
    /// `ptrace`.
    Ptrace(Ptrace<'c>),
    /// `memcpy`.
    Memcpy(Memcpy<'c>),
}

impl<'c> AnyReader<'c> {
    /// Opens `method` for `child`; `segments` are what the in-process copy reads.
    ///
    /// # Errors
    /// The mechanism's own.
    pub fn open(
        method: Method,
        child: &'c Child,
        segments: Option<&'c Segments>,
    ) -> Result<Self, Errno> {
        Ok(match method {
            Method::Proc => Self::Proc(ProcMem::open(child.pid())?),
            Method::ProcSeek => Self::ProcSeek(ProcSeek::open(child.pid())?),
            Method::Vmread => Self::Vmread(Vmread::new(child.pid())),
            Method::VmreadBatch => Self::VmreadBatch(VmreadBatch::new(child.pid())),
            Method::Ptrace => Self::Ptrace(Ptrace::attach(child)?),
            Method::Memcpy => Self::Memcpy(Memcpy::new(segments.ok_or(Errno::INVAL)?)),
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
            Self::Memcpy(reader) => reader,
        }
    }
}
