//! `probe`: kinds of memory × readers.

mod row;
mod setup;
mod summary;
mod table;
mod zram;

use super::env::{self, Context, Kernel};
use crate::cli::Effective;
use crate::cli::probe::Options;
use crate::emit::probe_row::{ProbeRow, is_loss};
use crate::emit::record::Status;
use crate::emit::stream::{Preamble, Rows};
use crate::error::Error;
use crate::fixture::kinds::{KINDS, Kind, Kinds, Op, reason};
use crate::measure::probe::{Probed, Prober};
use crate::reader::Method;
use crate::sys::auxv::Auxv;
use crate::sys::process::proc_is_ours;
use crate::sys::stdio::{Output, stderr, stdout};
use crate::sys::{Clock, cpu};
use heapless::Vec;
use row::Common;
use setup::Ours;
use table::Grid;

/// Asks everything.
///
/// # Errors
/// See [`Error`]. Rows of probes that ended before are already written.
#[inline(never)]
pub fn run(options: &Options, effective: &Effective, auxv: &Auxv) -> Result<(), Error> {
    if options.setup || setup::is_run_by_init() {
        let probe = &mut |ours: &Ours| every_question(options, effective, auxv, ours);
        let how = (options.common.quiet, options.setup);
        return setup::around(how, auxv.page_bytes(), probe);
    }
    every_question(options, effective, auxv, &Ours::default())
}

fn every_question(
    options: &Options,
    effective: &Effective,
    auxv: &Auxv,
    ours: &Ours,
) -> Result<(), Error> {
    let clock = Clock::best(auxv).proved().ok_or(Error::NO_CLOCK)?;
    let pinned = cpu::current().map_err(Error::kernel("ask for the current CPU"))?;
    cpu::pin(pinned).map_err(|errno| Error::Cpu(pinned, errno))?;
    let kernel = Kernel::read();
    let context = Context {
        command: "probe",
        effective,
        common: options.common,
        clock,
        page_bytes: auxv.page_bytes(),
        cpu: Some(pinned),
    };
    let mut run = Run {
        prober: prober(clock, auxv.page_bytes())?,
        common: Common {
            label: options.common.label,
            kernel: kernel.release(),
            page_bytes: auxv.page_bytes() as u64,
        },
        methods: &options.methods,
        kinds: options.kinds,
        ours,
        met: KINDS.iter().map(|kind| kind.needs.met().is_ok()).collect(),
        grid: Grid::new(),
        ending: Ok(()),
    };
    if ours.merging {
        run.prober.merging_is_ours();
    }
    let mut preamble = Preamble::begin(stdout())?;
    env::write(&mut preamble, &context)?;
    let mut rows = preamble.header::<ProbeRow<'_>>(run.total())?;
    run.every_kind(&mut rows)?;
    rows.end()?;
    if !options.common.quiet {
        // The table is a courtesy of standard error.
        let _ = run
            .grid
            .write(stderr(), run.methods)
            .and_then(|()| summary::write(stderr(), &run.grid, run.methods));
    }
    run.ending
}

/// What all probes share.
pub(super) fn prober(clock: Clock, page_bytes: usize) -> Result<Prober, Error> {
    if !proc_is_ours() {
        return Err(Error::NO_PROC);
    }
    Prober::new(clock, page_bytes).map_err(Error::kernel("prepare to look at memory"))
}

/// How often a question is asked whose pages the kernel has moved, or written back, meanwhile.
const TRIES: u64 = 3;

/// What a run carries from probe to probe.
struct Run<'r> {
    prober: Prober,
    common: Common<'r>,
    methods: &'r [Method],
    kinds: Kinds,
    ours: &'r Ours,
    /// Of each kind, whether what it needs was there in the beginning.
    met: Vec<bool, 64>,
    grid: Grid,
    /// The worst that was seen.
    ending: Result<(), Error>,
}

impl Run<'_> {
    fn total(&self) -> u64 {
        let questions: usize = self.kinds.chosen().map(|kind| kind.ops.len()).sum();
        (questions * (self.methods.len() + 1)) as u64
    }

    /// One row's. What the kernel has done meanwhile is tried again: what a reader does, it does
    /// each time.
    fn probed(&mut self, kind: &Kind, op: Op, method: Option<Method>) -> Result<Probed, Error> {
        let mut tries = 1;
        loop {
            let probed = self.prober.probe(kind, op, method)?;
            let disturbed = matches!(
                probed.status,
                Status::Skipped(reason::PAGES_MOVED | reason::WRITTEN_BACK)
            );
            if tries == TRIES || !disturbed {
                return Ok(probed);
            }
            tries += 1;
        }
    }

    fn every_kind(&mut self, rows: &mut Rows<Output>) -> Result<(), Error> {
        for kind in self.kinds.chosen() {
            for &op in kind.ops {
                self.grid.next(kind, op);
                let control = core::iter::once(None);
                for method in control.chain(self.methods.iter().copied().map(Some)) {
                    let mut probed = self.probed(kind, op, method)?;
                    self.note_taken_away(kind, probed.status);
                    if probed.status == Status::Skipped(reason::NEEDS_SETUP)
                        && self.ours.denies(kind.needs)
                    {
                        probed.status = Status::Skipped(reason::NEEDS_PRIVILEGE);
                    }
                    let row = row::make(&self.common, kind, op, method, &self.prober, &probed);
                    rows.row(&row)?;
                    self.grid.note(method, &probed, self.common.page_bytes);
                    if method.is_none() && probed.status == Status::Ok && probed.change().is_some()
                    {
                        self.ending = Err(Error::Invalid(
                            "reading nothing showed a change: see the rows of method none",
                        ));
                    }
                    self.note(&row);
                }
            }
        }
        Ok(())
    }

    /// What was there in the beginning, set up or not, has to stay.
    fn note_taken_away(&mut self, kind: &Kind, status: Status<'_>) {
        let mut met = KINDS.iter().zip(&self.met);
        let was_there = met.any(|(other, &met)| met && other.name == kind.name);
        if was_there && status == Status::Skipped(reason::NEEDS_SETUP) && self.ending.is_ok() {
            self.ending = Err(Error::Invalid(
                "somebody has taken away what a kind needs and had: see the rows of needs-setup, \
                 and start again",
            ));
        }
    }

    fn note(&mut self, row: &ProbeRow<'_>) {
        if self.ending.is_ok() && is_loss(row.method, row.status) {
            self.ending = Err(Error::Invalid(
                "not every question was answered: see the status column",
            ));
        }
    }
}
