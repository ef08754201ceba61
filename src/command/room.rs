//! How much memory there is to be had, before it is taken.

use crate::error::Error;
use crate::proc::status;
use crate::sys::Errno;
use crate::sys::file::{read_number, read_whole};
use core::ffi::CStr;

/// A container's memory limit as the container sees it, cgroup v2 and v1. What is in use
/// already is not subtracted: it is mostly page cache, which makes room.
const CGROUP_LIMITS: [&CStr; 2] = [
    c"/sys/fs/cgroup/memory.max",
    c"/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// MemAvailable, or a container's limit if that is less.
///
/// # Errors
/// /proc/meminfo cannot be read or does not say.
pub(super) fn available_bytes() -> Result<u64, Error> {
    let mut buffer = [0; 8192];
    let text =
        read_whole(c"/proc/meminfo", &mut buffer).map_err(Error::kernel("read /proc/meminfo"))?;
    let available_kib = status::kib_field(text, b"MemAvailable").ok_or(Error::Kernel(
        "find MemAvailable in /proc/meminfo",
        Errno::NODATA,
    ))?;
    let mut available_bytes = available_kib.saturating_mul(1024);
    for limit in CGROUP_LIMITS {
        // Where there is no limit the file is absent, says `max`, or a number beyond any
        // memory.
        available_bytes = available_bytes.min(read_number(limit).unwrap_or(u64::MAX));
    }
    Ok(available_bytes)
}
