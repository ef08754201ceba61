//! # cowitness-lab: what do the measured rows say?
//!
//! The appliance measures and writes framed CSV; this program reads it on any system and
//! never touches a process. Argv becomes a request (`cli`), each input is read as framed
//! streams that prove themselves whole (`stream`), and a command turns their rows into
//! text (`summary`). What a record is, and what a summary says, is defined once, in the
//! crate `cowitness`.
#![forbid(unsafe_code)]

pub mod app;
pub mod cli;
pub mod failure;
pub mod stream;
pub mod summary;

mod text;
