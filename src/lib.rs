//! # cowitness: what does reading another process's memory cost, and what does it change?
//!
//! This library is the appliance without its entry point. Data flows one way: bytes of
//! argv become options (`cli`), options become a plan of cases (`measure::plan`), each
//! case reads a freshly forked child in a proved state (`fixture`) through one mechanism
//! (`reader`), what it cost and changed is taken before and after (`measure`), and every
//! case leaves as one CSV row (`emit`). `sys` is the home of assembly, of every `unsafe`
//! block and of the system calls that rustix lacks; `text` is what all of them format with.
//!
//! Without the default feature `appliance` only the pure parts remain: the records, the
//! statistics, the summary, the parsers. The lab builds on those, on any system.
#![no_std]
#![deny(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod boot_line;
pub mod emit;
pub mod proc;
pub mod stats;
pub mod text;

#[cfg(feature = "appliance")]
pub mod app;
#[cfg(feature = "appliance")]
pub mod cli;
#[cfg(feature = "appliance")]
pub mod command;
#[cfg(feature = "appliance")]
pub mod error;
#[cfg(feature = "appliance")]
pub mod fixture;
#[cfg(feature = "appliance")]
pub mod init;
#[cfg(feature = "appliance")]
pub mod measure;
#[cfg(feature = "appliance")]
pub mod reader;
#[cfg(feature = "appliance")]
pub mod sys;

/// Version of the tool, as in Cargo.toml.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The target triple it was built for.
pub const TARGET: &str = env!("COWITNESS_TARGET");
