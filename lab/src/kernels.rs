//! `kernels`: which kernels the matrix knows, and which of them are in the cache.

mod apt;
pub mod cache;
pub mod image;
pub mod modules;
pub mod table;

use crate::answer::{self, Answer};
use crate::cli::KernelsOptions;
use crate::failure::Failure;
use crate::host::{self, HostError, Interrupt};
use cache::{Cache, Record};
use table::{Kernel, Table};

/// Lists the kernels; with `--fetch`, fetches them first. `say` is told what is fetched.
///
/// # Errors
/// [`Failure`]. A kernel that cannot be fetched is part of the report.
pub fn run(options: &KernelsOptions, say: &dyn Fn(&str)) -> Result<Answer, Failure> {
    let table = Table::built_in();
    let chosen = table.choose(options.arch, &options.kernels);
    let chosen = chosen.map_err(|problem| Failure::Usage(crate::cli::kernels_usage(problem)))?;
    // Signals end this command by themselves.
    let directory = host::cache_directory(options.cache.as_deref())?;
    let cache = Cache::open(directory, Interrupt::default())?;
    let mut failed = 0;
    let mut rows = Vec::new();
    for kernel in &chosen {
        let fetched = fetch(&cache, &table, kernel, options.fetch, say);
        failed += usize::from(fetched.is_err());
        rows.push(row(kernel, fetched));
    }
    let headings = [
        "name", "CPU", "pages", "cached", "suite", "option", "reason",
    ];
    let failure = (failed > 0).then_some(Failure::NotFetched {
        failed,
        of: chosen.len(),
    });
    Ok(Answer {
        text: answer::table(&headings, rows),
        failure,
    })
}

fn fetch(
    cache: &Cache,
    table: &Table,
    kernel: &Kernel,
    wanted: bool,
    say: &dyn Fn(&str),
) -> Result<String, HostError> {
    if !wanted {
        let record = cache.record(kernel);
        return Ok(record.map_or_else(|| "no".to_owned(), |record| record.version));
    }
    let record = cache.fetch(table, kernel, say);
    match &record {
        Ok(record) => {
            let Record {
                package, version, ..
            } = record;
            say(&format!("{}: {package} {version}", kernel.name));
            if let Some(lack) = record.lack() {
                say(&format!("{}: {lack}", kernel.name));
            }
        }
        Err(error) => say(&format!("{}: {}", kernel.name, error.with_remedy())),
    }
    record.map(|record| record.version)
}

fn row(kernel: &Kernel, fetched: Result<String, HostError>) -> Vec<String> {
    let cached = fetched.unwrap_or_else(|_| "failed".to_owned());
    vec![
        kernel.name.clone(),
        kernel.arch.to_string(),
        format!("{} KiB", kernel.page_kib),
        cached,
        kernel.suite.clone(),
        kernel.append.clone(),
        kernel.reason.clone(),
    ]
}
