//! One stream, read to its checked end.

use super::effects::Settings;
use super::others::{Identity, Others};
use super::probes::Probes;
use super::{Machine, notes, sample};
use crate::matrix::split::is_not_applicable;
use crate::stream::{ENV, Note, Row, Stream, StreamError, Told, told};
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Record;
use cowitness::emit::summary::Sample;
use std::io::BufRead;

/// A stream as it is read.
pub(super) struct Taken {
    pub(super) machine: Option<Machine>,
    /// Whether its rows are of files.
    pub(super) is_files: bool,
    pub(super) samples: Vec<Sample>,
    pub(super) effects: Settings,
    pub(super) probes: Probes,
    pub(super) others: Others,
    pub(super) record: String,
    pub(super) rows: u64,
    pub(super) not_applicable: u64,
}

impl Taken {
    pub(super) fn read<R: BufRead>(
        stream: &mut Stream<'_, R>,
        number: u32,
        notes: &[Note],
    ) -> Result<Self, StreamError> {
        let mut taken = Self {
            machine: None,
            is_files: false,
            samples: Vec::new(),
            effects: Settings::default(),
            probes: Probes::default(),
            others: Others::default(),
            record: String::new(),
            rows: 0,
            not_applicable: 0,
        };
        while let Some(row) = stream.next_row()? {
            let found = taken.row(&row, number)?;
            taken.of(&row, &found, notes)?;
            taken.rows += 1;
        }
        if taken.rows == 0 && notes::value(notes, "command") == Some(ENV) {
            taken.record = ENV.to_owned();
            taken.machine = Some(noted(notes));
        }
        for starts in &mut taken.others.startup {
            let arms = notes.iter().filter_map(|note| {
                let arm = note.key.strip_prefix(notes::ARM)?;
                Some((arm.to_owned(), note.value.clone()))
            });
            starts.programs = arms.collect();
        }
        Ok(taken)
    }

    fn row<'r>(&mut self, row: &Row<'r>, number: u32) -> Result<Identity<'r>, StreamError> {
        let (label, kernel, arch, page_bytes) = match row.record() {
            BenchRow::NAME => {
                let bench: BenchRow<'_> = row.parse()?;
                if is_not_applicable(bench.status) {
                    self.not_applicable += 1;
                } else {
                    let sample = sample(row, &bench, number)?;
                    self.effects.add(&bench, &sample);
                    self.samples.push(sample);
                }
                (bench.label, bench.kernel, bench.arch, bench.page_bytes)
            }
            ProbeRow::NAME => {
                let probe: ProbeRow<'_> = row.parse()?;
                self.probes.add(&probe);
                (probe.label, probe.kernel, probe.arch, probe.page_bytes)
            }
            _ => return self.others.row(row),
        };
        Ok(Identity {
            label,
            machine: Some((kernel, arch)),
            page_bytes: Some(page_bytes),
        })
    }

    /// The reader sees to it that all rows of a stream agree in these.
    fn of(
        &mut self,
        row: &Row<'_>,
        found: &Identity<'_>,
        notes: &[Note],
    ) -> Result<(), StreamError> {
        if self.machine.is_some() {
            return Ok(());
        }
        row.record().clone_into(&mut self.record);
        self.is_files = found.machine.is_none();
        let (kernel, arch) = found.machine.unwrap_or_default();
        let noted = || notes::value(notes, "page_bytes")?.parse().ok();
        let machine = Machine {
            label: found.label.to_owned(),
            kernel: kernel.to_owned(),
            arch: arch.to_owned(),
            page_bytes: found.page_bytes.or_else(noted),
        };
        if !self.is_files {
            notes::agree(notes, row, &machine)?;
        }
        self.machine = Some(machine);
        Ok(())
    }
}

/// The machine that notes alone are of.
fn noted(notes: &[Note]) -> Machine {
    let said = |key| match told(notes, key) {
        Told::Value(value) => value.to_owned(),
        _ => String::new(),
    };
    Machine {
        // What rows have as nothing is `none` in notes.
        label: Some(said("label"))
            .filter(|label| label != "none")
            .unwrap_or_default(),
        kernel: said("kernel"),
        arch: said("arch"),
        page_bytes: said("page_bytes").parse().ok(),
    }
}
