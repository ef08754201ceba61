//! Why a reader may not read a process, as far as that can be told.

use super::super::live;
use crate::error::{Denial, Error};
use crate::proc::number::decimal;
use crate::proc::status::field;
use crate::reader::Method;
use crate::sys::Errno;
use crate::sys::file::{Process, read_proc};

/// The error of a reader that the kernel refused. The process's page table was looked at before, so
/// what a reader needs beyond that comes first.
pub(super) fn refused(pid: i32, method: Method, errno: Errno) -> Error {
    let denial = match (method, errno) {
        (Method::Kcore, Errno::PERM | Errno::ACCESS) => Some(Denial::KernelMemory),
        (Method::MapFiles, Errno::PERM) => Some(Denial::MappedFiles),
        (Method::Ptrace, Errno::PERM) if is_traced(pid) => Some(Denial::Traced),
        _ => live::denial(pid, errno),
    };
    Error::Reader(method.name(), pid, errno, denial)
}

/// Whether a debugger or strace(1) has attached to it: there can be one only (ptrace(2)).
fn is_traced(pid: i32) -> bool {
    let mut buffer = [0; 4096];
    let status = read_proc(Process::Id(pid), "status", &mut buffer).ok();
    let tracer = status.and_then(|text| decimal(field(text, b"TracerPid")?));
    tracer.is_some_and(|tracer| tracer > 0)
}
