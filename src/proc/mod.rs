//! Pure parsers over bytes the kernel printed. They know formats, never files.
//!
//! Every input is untrusted: what is cut, missing or too large gives `None` or an
//! error, never a panic and never a 0 in place of an unknown. Where a format allows
//! it, a number that may have been cut short is refused too: it must be followed by
//! what the kernel always prints after it (a unit, a blank, a line feed).

pub mod buddyinfo;
pub mod choice;
pub mod cmdline;
pub mod cpuinfo;
pub mod inflate;
pub mod kconfig;
pub mod lines;
pub mod locks;
pub mod maps;
pub mod mountinfo;
pub mod number;
pub mod pagemap;
pub mod rollup;
pub mod smaps;
pub mod stat;
pub mod status;
pub mod syscall;
mod usage;
pub mod vmstat;

#[cfg(test)]
mod robustness;
#[cfg(test)]
mod samples;
