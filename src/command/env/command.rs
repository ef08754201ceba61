//! The `env` command: the record alone.

use super::{Context, write};
use crate::cli::{Common, Effective};
use crate::emit::stream::Preamble;
use crate::error::Error;
use crate::sys::Clock;
use crate::sys::auxv::Auxv;
use crate::sys::stdio::stdout;

/// Prints the record.
///
/// # Errors
/// Only that standard output takes no more.
#[inline(never)]
pub fn run(common: &Common, effective: &Effective, auxv: &Auxv) -> Result<(), Error> {
    let context = Context {
        command: "env",
        effective,
        common: *common,
        clock: Clock::best(auxv),
        page_bytes: auxv.page_bytes(),
        cpu: None,
    };
    let mut preamble = Preamble::begin(stdout())?;
    write(&mut preamble, &context)?;
    Ok(())
}
