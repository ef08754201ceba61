//! `matrix`: the same appliance on many kernels, and what each of them does when memory is
//! read. Boots emulated machines, or collects what real ones have brought back.

mod boot;
pub(crate) mod collect;
mod expect;
pub mod findings;
pub(crate) mod folder;
mod grid;
mod harm;
pub mod judge;
pub mod outcome;
mod section;
pub mod split;
mod table;
mod version;

use crate::answer::Answer;
use crate::cli::{self, MatrixOptions};
use crate::failure::Failure;
use crate::host::{self, HostError, Interrupt};
use crate::kernels::cache::Cache;
use crate::kernels::table::{Kernel, Table};
use crate::scratch::Scratch;
use boot::{Booter, Image, Machine};
use std::fs::{self, File, TryLockError};
use std::path::Path;
use table::Line;

/// The table as CSV, among the files that are left.
pub const MATRIX_CSV: &str = "matrix.csv";

/// Runs the matrix. `say` is told, a line each, what becomes of each machine.
///
/// # Errors
/// [`Failure`]: nothing could be run at all. What became of the machines is the report's.
pub fn run(options: &MatrixOptions, say: &(dyn Fn(&str) + Sync)) -> Result<Answer, Failure> {
    let out = Path::new(&options.out);
    fs::create_dir_all(out).map_err(HostError::file("create", out))?;
    let _held = hold(out)?;
    let lines = match &options.collect {
        Some(directory) => collect::collect(Path::new(directory), say)?,
        None => boot_all(options, out, say)?,
    };
    let signal = lines.iter().find_map(|line| line.interrupted_by);
    let mut failure = signal.map(Failure::Signal).or_else(|| failure(&lines));
    // What was found is told even if there is no room to write it down.
    if let Err(error) = write_csv(out, &lines) {
        say(&error.to_string());
        failure = failure.or(Some(Failure::Host(error)));
    }
    Ok(Answer {
        text: table::text(&lines),
        failure,
    })
}

/// Keeps other labs out of `out`, by a lock on the directory itself.
fn hold(out: &Path) -> Result<File, HostError> {
    let directory = File::open(out).map_err(HostError::file("open", out))?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(HostError::Busy(out.to_owned())),
        Err(TryLockError::Error(error)) => Err(HostError::file("lock", out)(error)),
    }
}

/// Whole or not at all.
fn write_csv(out: &Path, lines: &[Line]) -> Result<(), HostError> {
    let scratch = Scratch::within(out)?;
    let path = scratch.path().join(MATRIX_CSV);
    fs::write(&path, table::csv(lines)).map_err(HostError::file("write", &path))?;
    scratch.keep(MATRIX_CSV, &out.join(MATRIX_CSV))
}

/// What the machines together come to.
fn failure(lines: &[Line]) -> Option<Failure> {
    let failed = lines.iter().filter(|line| line.has_failed()).count();
    (failed > 0).then(|| Failure::Machines {
        failed,
        of: lines.len(),
        untrusted: lines.iter().any(Line::is_untrusted),
        has_log: lines.iter().any(|line| line.has_failed() && line.has_log),
    })
}

fn boot_all(
    options: &MatrixOptions,
    out: &Path,
    say: &(dyn Fn(&str) + Sync),
) -> Result<Vec<Line>, Failure> {
    let table = Table::built_in();
    let machines = machines(options, &table)?;
    let mut programs: Vec<&str> = machines
        .iter()
        .map(|m| &*table.board(m.arch).qemu)
        .collect();
    programs.sort_unstable();
    programs.push("setpriv");
    host::require(&programs)?;
    let interrupt = Interrupt::watch().map_err(Failure::Signals)?;
    let directory = host::cache_directory(options.cache.as_deref())?;
    let cache = Cache::open(directory, interrupt.clone())?;
    let booter = Booter::prepare(options, &table, &cache, &interrupt, out, &machines, say)?;
    Ok(booter.all(&machines))
}

/// What is to be booted.
fn machines<'t>(options: &MatrixOptions, table: &'t Table) -> Result<Vec<Machine<'t>>, Failure> {
    let usage = |problem| Failure::Usage(cli::matrix_usage(problem));
    // The command line has seen to it that there is a CPU.
    if let (Some(image), Some(arch)) = (&options.vmlinuz, options.arch) {
        let path = Path::new(image);
        let is_suffixed = path.extension().is_some_and(|end| end == "vmlinuz");
        let name = if is_suffixed {
            path.file_stem()
        } else {
            path.file_name()
        };
        let name = crate::text::printable(name.unwrap_or(image).as_encoded_bytes());
        return Ok(vec![Machine {
            name: format!("{name}-{arch}"),
            arch,
            image: Image::Own(image.into()),
        }]);
    }
    let chosen = table
        .choose(options.arch, &options.kernels)
        .map_err(usage)?;
    let machine = |kernel: &'t Kernel| Machine {
        name: kernel.name.clone(),
        arch: kernel.arch,
        image: Image::Listed(kernel),
    };
    Ok(chosen.into_iter().map(machine).collect())
}
