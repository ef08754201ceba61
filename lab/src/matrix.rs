//! `matrix`: the same appliance on many kernels, and what each of them does when memory is
//! read. Boots emulated machines, or collects what real ones have brought back.

mod boot;
mod collect;
mod expect;
pub mod findings;
pub mod outcome;
mod table;

use crate::answer::Answer;
use crate::cli::{self, MatrixOptions};
use crate::failure::Failure;
use crate::host::{self, HostError, Interrupt};
use crate::kernels::cache::Cache;
use crate::kernels::table::{Kernel, Table};
use boot::{Booter, Image, Machine};
use std::fs;
use std::path::Path;
use table::Line;

/// Runs the matrix. `say` is told, a line each, what becomes of each machine.
///
/// # Errors
/// [`Failure`]: nothing could be run at all. What became of the machines is the report's.
pub fn run(options: &MatrixOptions, say: &(dyn Fn(&str) + Sync)) -> Result<Answer, Failure> {
    let out = Path::new(&options.out);
    fs::create_dir_all(out).map_err(HostError::file("create", out))?;
    let lines = match &options.collect {
        Some(directory) => collect::collect(Path::new(directory))?,
        None => boot_all(options, out, say)?,
    };
    let csv = out.join("matrix.csv");
    fs::write(&csv, table::csv(&lines)).map_err(HostError::file("write", &csv))?;
    let signal = lines.iter().find_map(|line| line.interrupted_by);
    Ok(Answer {
        text: table::text(&lines),
        failure: signal.map(Failure::Signal).or_else(|| failure(&lines)),
    })
}

/// What the machines together come to.
fn failure(lines: &[Line]) -> Option<Failure> {
    let failed = lines.iter().filter(|line| line.has_failed()).count();
    (failed > 0).then(|| Failure::Machines {
        failed,
        of: lines.len(),
        untrusted: lines.iter().any(Line::is_untrusted),
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
    let cache = Cache::open(host::cache_directory(options.cache.as_deref())?)?;
    let interrupt = Interrupt::watch().map_err(Failure::Signals)?;
    let booter = Booter::prepare(options, &table, &cache, &interrupt, out, &machines, say)?;
    Ok(booter.all(&machines))
}

/// What is to be booted.
fn machines<'t>(options: &MatrixOptions, table: &'t Table) -> Result<Vec<Machine<'t>>, Failure> {
    let usage = |problem| Failure::Usage(cli::matrix_usage(problem));
    if let Some(image) = &options.vmlinuz {
        let problem = "--vmlinuz needs --arch: an image does not say what it is for".to_owned();
        let arch = options.arch.ok_or_else(|| usage(problem))?;
        let name = Path::new(image).file_name().unwrap_or(image);
        let name = crate::text::printable(name.as_encoded_bytes());
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
