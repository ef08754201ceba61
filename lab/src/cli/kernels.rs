//! The command line of `kernels`.

use super::{Command, Request, Topic, UsageError, Word};
use crate::kernels::table::Arch;
use lexopt::{Arg, Parser};
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    topic: Topic::Kernels,
    name: "kernels",
    purpose: "the kernels of the matrix, and which are in the cache",
    usage: "usage: cowitness-lab kernels [options]",
    help: include_str!("kernels.txt"),
    options: "--fetch, --kernel, --arch, --cache, -h, --help, -V, --version",
    parse,
};

/// What `kernels` is to list, and whether to fetch it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelsOptions {
    /// Fetch what is not there, or not current.
    pub fetch: bool,
    /// Of this CPU; `None`: of any.
    pub arch: Option<Arch>,
    /// These; empty: all.
    pub kernels: Vec<String>,
    /// Where the cache is; `None`: where the user's caches are.
    pub cache: Option<OsString>,
}

fn parse(parser: &mut Parser) -> Result<Request, UsageError> {
    let mut options = KernelsOptions::default();
    loop {
        let name = match COMMAND.next(parser)? {
            None => return Ok(Request::Kernels(options)),
            Some(Word::Answer(request)) => return Ok(request),
            Some(Word::Other(Arg::Long(name))) => name.to_owned(),
            Some(Word::Other(other)) => return Err(COMMAND.unknown(&other)),
        };
        match &*name {
            "fetch" => options.fetch = true,
            "kernel" => COMMAND.names(parser, &mut options.kernels)?,
            "arch" => options.arch = Some(COMMAND.arch(parser)?),
            "cache" => options.cache = Some(COMMAND.value(parser)?),
            other => return Err(COMMAND.unknown(&Arg::Long(other))),
        }
    }
}
