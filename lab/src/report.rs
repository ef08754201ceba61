//! `report`: one self-contained page of everything that rows say.
//!
//! The page asks for nothing: style, drawings and script are in it, and its own policy
//! forbids the rest. All text of a file goes through templates that escape it.

mod again;
mod audit;
mod changes;
mod environment;
mod kernels;
mod kinds;
mod line;
mod many;
mod memmap;
mod names;
mod place;
mod plot;
mod semantics;
mod sharing;
mod sizes;
mod startup;
mod survey;
mod throughput;
mod verdict;

use crate::answer::Answer;
use crate::cli::ReportOptions;
use crate::failure::Failure;
use crate::figures;
use crate::groups;
use crate::matrix::collect::failed;
use crate::matrix::folder::Folder;
use crate::runs::{Real, Run, Runs};
use crate::stream::{Told, Tolerance, told};
use crate::text::{printable_lines, shown};
use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use place::Place;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::path::Path;

const STYLE: &str = include_str!("../templates/report.css");
const SCRIPT: &str = include_str!("../templates/report.js");

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    policy: String,
    style: &'static str,
    script: &'static str,
    version: &'static str,
    verdict: verdict::Verdict,
    chips: Vec<String>,
    kernels: Option<kernels::Kernels>,
    views: Vec<View>,
    /// Streams that are no machine's.
    sizes: Vec<sizes::Sizes>,
    /// The run that is shown first: one with charts, if there is one.
    first: usize,
    /// Of all runs, in their order.
    layouts: Vec<String>,
    /// What is cut.
    cut: Vec<String>,
    has: Has,
}

/// Said in the place of times that mean nothing.
const TIMELESS: &str =
    "This machine is emulated, or may be: its times say nothing, and are not shown.";

/// Said where starts are summed up and not there themselves.
const UNSTARTED: &str =
    "Only sums of startup are here; the rows of the starts they are made of are missing.";

/// Which sections there are.
struct Has {
    throughput: bool,
    changes: bool,
    semantics: bool,
    survey: bool,
    audit: bool,
    memmap: bool,
    sharing: bool,
    startup: bool,
}

impl Has {
    fn of(views: &[View]) -> Self {
        let any = |has: fn(&View) -> bool| views.iter().any(has);
        Self {
            throughput: any(|view| view.throughput.is_some() || !view.timeless.is_empty()),
            changes: any(|view| view.changes.is_some()),
            semantics: any(|view| view.semantics.is_some()),
            survey: any(|view| view.survey.is_some()),
            audit: any(|view| view.audit.is_some()),
            memmap: any(|view| view.memmap.is_some()),
            sharing: any(|view| view.sharing.is_some()),
            startup: any(|view| !view.startup.is_empty() || !view.startless.is_empty()),
        }
    }
}

/// One run.
struct View {
    id: usize,
    heading: String,
    machine: String,
    throughput: Option<throughput::Throughput>,
    /// Why no times are shown although there are some; empty: they are.
    timeless: String,
    /// What is to be known before the times are looked at.
    doubt: &'static str,
    cases: String,
    changes: Option<changes::Changes>,
    semantics: Option<semantics::Semantics>,
    survey: Option<survey::Survey>,
    audit: Option<audit::Audit>,
    memmap: Option<memmap::Memmap>,
    sharing: Option<sharing::Sharing>,
    startup: Vec<startup::Startup>,
    /// Why no starts are shown although there are some; empty: they are.
    startless: &'static str,
    environment: environment::Environment,
}

/// Reads the inputs and writes the page. `warn` is told, a line each, what was taken
/// although it is not whole.
///
/// # Errors
/// [`Failure`]; the first input that fails ends it, and nothing is written.
pub fn run(options: &ReportOptions, warn: &dyn Fn(&str)) -> Result<Answer, Failure> {
    let (files, missing) = files(&options.files, warn)?;
    let options = &ReportOptions {
        files,
        ..options.clone()
    };
    let place = Place::of(options)?;
    let mut runs = Runs::read(&options.files, options.tolerance, warn)?;
    let failure = Failure::HostsMissing(missing.len());
    let failure =
        Some(failure).filter(|_| !missing.is_empty() && options.tolerance == Tolerance::Whole);
    runs.cut.extend(missing);
    let page = page(runs);
    // The template writes to a String, which takes everything.
    let html = page
        .render()
        .map_err(|error| Failure::Page(error.to_string()))?;
    // No name in a row may control or turn round what stands beside it.
    let html = printable_lines(&html);
    Ok(Answer {
        text: place.put(html)?,
        failure,
    })
}

/// The inputs, with the rows of each host in the place of a folder; and the hosts that brought
/// none, a line each.
fn files(given: &[OsString], warn: &dyn Fn(&str)) -> Result<(Vec<OsString>, Vec<String>), Failure> {
    let mut files = Vec::new();
    let mut missing = Vec::new();
    for file in given {
        if file == "-" || !Path::new(file).is_dir() {
            files.push(file.clone());
            continue;
        }
        for host in Folder::read(Path::new(file))?.hosts {
            let name = &host.name;
            let why = match failed(&host.failed) {
                Some(why) => format!("{name} has failed: {why}"),
                None if host.is_log || !host.results.exists() => format!("{name} has no rows"),
                None => {
                    files.push(host.results.into());
                    continue;
                }
            };
            warn(&why);
            missing.push(why);
        }
    }
    Ok((files, missing))
}

fn page(all: Runs) -> Page {
    let runs = &*all.runs;
    let names = names::names(runs);
    let views: Vec<View> = runs
        .iter()
        .zip(&names)
        .enumerate()
        .map(|(id, (run, name))| View::of(id, run, name, runs))
        .collect();
    let sizes: Vec<sizes::Sizes> = sizes::all(&all.files);
    let mut layouts: Vec<String> = Vec::new();
    for layout in views
        .iter()
        .flat_map(|view| &view.throughput)
        .flat_map(|found| &found.layouts)
    {
        if !layouts.contains(layout) {
            layouts.push(layout.clone());
        }
    }
    Page {
        policy: policy(),
        style: STYLE,
        script: SCRIPT,
        version: env!("CARGO_PKG_VERSION"),
        verdict: verdict::of(runs, others_said(&views, &sizes), doubts(&views)),
        first: views
            .iter()
            .position(|view| view.throughput.is_some())
            .unwrap_or(0),
        chips: chips(runs),
        kernels: kernels::of(runs, &names),
        layouts,
        cut: all.cut,
        has: Has::of(&views),
        sizes,
        views,
    }
}

impl View {
    fn of(id: usize, run: &Run, name: &str, all: &[Run]) -> Self {
        let groups = groups::groups(&run.samples);
        let real = kernels::is_real(run, all);
        let throughput = throughput::Throughput::of(&groups);
        let starts = startup::of(run);
        let startless = match real {
            Real::No if !starts.is_empty() => TIMELESS,
            _ if starts.is_empty() && run.others.sums > 0 => UNSTARTED,
            _ => "",
        };
        let timeless = match real {
            Real::No if throughput.is_some() => TIMELESS.to_owned(),
            _ => String::new(),
        };
        let doubt = real.doubt().unwrap_or_default();
        Self {
            id,
            heading: names::heading(run, name, all),
            machine: run.machine.words(),
            throughput: throughput.filter(|_| timeless.is_empty()),
            timeless,
            doubt,
            cases: if run.samples.is_empty() {
                String::new()
            } else {
                run.cases()
            },
            changes: changes::Changes::of(run, &groups),
            semantics: semantics::Semantics::of(&run.probes),
            survey: survey::Survey::of(run),
            audit: audit::Audit::of(run, real != Real::No),
            memmap: memmap::Memmap::of(run),
            sharing: sharing::Sharing::of(run),
            startup: if startless.is_empty() {
                starts
            } else {
                Vec::new()
            },
            startless,
            environment: environment::Environment::of(run),
        }
    }
}

/// What the sections of one record say, over all views.
type Said = fn(&View) -> Vec<String>;

/// Records beside `bench` and `probe`, the one first that says most about reading memory.
const SAID: [Said; 5] = [
    |view| view.audit.iter().flat_map(|one| one.said.clone()).collect(),
    |view| {
        view.survey
            .iter()
            .flat_map(|one| one.said.clone())
            .collect()
    },
    |view| {
        view.sharing
            .iter()
            .flat_map(|one| one.said.clone())
            .collect()
    },
    |view| view.startup.iter().map(|one| one.said.clone()).collect(),
    |view| {
        view.memmap
            .iter()
            .flat_map(|one| one.said.clone())
            .collect()
    },
];

/// What the first record says that says anything. Each section says its own.
fn others_said(views: &[View], sizes: &[sizes::Sizes]) -> Vec<String> {
    let several = views.len() > 1;
    let of_views = |said: Said| -> Vec<String> {
        let of_view = |view: &View| -> Vec<String> {
            let place = match several {
                true => &view.heading,
                false => &view.machine,
            };
            let said = said(view).into_iter().filter(|said| !said.is_empty());
            said.map(|said| format!("{place}: {said}")).collect()
        };
        views.iter().flat_map(of_view).collect()
    };
    let mut records = SAID.into_iter().map(of_views);
    let first = records.find(|said| !said.is_empty());
    let sizes = sizes.iter().map(|found| found.said.clone());
    first.unwrap_or_else(|| sizes.filter(|said| !said.is_empty()).collect())
}

/// What is to be known before the times of the verdict are looked at.
fn doubts(views: &[View]) -> Vec<String> {
    let several = views.len() > 1;
    let doubted = views.iter().filter(|view| {
        !view.doubt.is_empty() && (view.throughput.is_some() || !view.startup.is_empty())
    });
    let words = |view: &View| match several {
        true => format!("{}: {}", view.heading, view.doubt),
        false => view.doubt.to_owned(),
    };
    doubted.map(words).collect()
}

/// What stands under the title.
fn chips(runs: &[Run]) -> Vec<String> {
    let [run] = runs else {
        if runs.is_empty() {
            return Vec::new();
        }
        return vec![format!("{} machines or settings", runs.len())];
    };
    let model = match told(&run.sources[0].notes, "cpu_model") {
        Told::Value(model) => Some(shown(model.as_bytes())),
        _ => None,
    };
    let cpu = [Some(shown(run.machine.arch.as_bytes())), model];
    let mut chips = vec![
        cpu.into_iter().flatten().collect::<Vec<_>>().join(" / "),
        format!("Linux {}", shown(run.machine.kernel.as_bytes())),
    ];
    let pages = run.machine.page_bytes.map(figures::bytes);
    chips.extend(pages.map(|size| format!("{size} pages")));
    if !run.samples.is_empty() {
        chips.push(run.cases());
    }
    if !run.machine.label.is_empty() {
        chips.push(shown(run.machine.label.as_bytes()));
    }
    chips
}

/// Nothing may be loaded, and no script or style runs but the page's own.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}
