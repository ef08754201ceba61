//! # cowitness-lab: what do the measured rows say, and on which kernels?
//!
//! The appliance measures and writes framed CSV; this program reads it and never looks
//! into a process. Argv becomes a request (`cli`), each input (`input`) is read as framed
//! streams that prove themselves whole (`stream`), streams of one machine are put together
//! (`runs`), and a command turns them into text (`summary`, `compare`) or a page (`report`).
//! `sizes` counts what closures of programs take under storage models. `matrix` boots the appliance on the machines of a table (`kernels`, `guest`)
//! and judges each by its console alone (`console`), against what it was asked (`asked`) and
//! what its kernel's sources let expect. What a record is, and what a summary
//! says, is defined once, in the crate `cowitness`.
#![forbid(unsafe_code)]

pub mod answer;
pub mod app;
pub mod appliance;
pub mod asked;
pub mod cli;
pub mod compare;
pub mod console;
pub mod failure;
pub mod guest;
pub mod host;
pub mod input;
pub mod kernels;
pub mod matrix;
pub mod readers;
pub mod report;
pub mod runs;
pub mod scratch;
pub mod sizes;
pub mod stream;
pub mod summary;

mod digest;
mod figures;
mod groups;
mod out;
mod progress;
mod text;
