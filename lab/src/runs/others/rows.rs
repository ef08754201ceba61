//! From rows to what is kept of them.

use super::{Audit, Exec, Fit, Identity, Others, Size, Sizes, Starts, Subject, Survey, Touch, Vma};
use crate::stream::{Row, StreamError};
use cowitness::emit::audit_row::AuditRow;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::record::{Record, Status};
use cowitness::emit::sharing_row::{SharingFitRow, SharingRow};
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::startup_row::{StartupAbRow, StartupFitRow, StartupRow};
use cowitness::emit::survey_row::SurveyRow;

/// Why a row is no measurement; `None`: it is one.
fn why(status: Status<'_>) -> Option<String> {
    match status {
        Status::Ok => None,
        Status::Short(bytes) => Some(format!("ended after {bytes} bytes")),
        Status::Errno(name) => Some(format!("failed: {name}")),
        Status::Skipped(reason) => Some(format!("skipped: {reason}")),
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Others {
    /// Adds a row of a record that is one of these.
    ///
    /// # Errors
    /// As [`Row::parse`].
    pub fn row<'r>(&mut self, row: &Row<'r>) -> Result<Identity<'r>, StreamError> {
        Ok(match row.record() {
            SurveyRow::NAME => self.survey(&row.parse()?),
            AuditRow::NAME => self.audit(&row.parse()?),
            MemmapRow::NAME => self.memmap(&row.parse()?),
            SharingRow::NAME => self.sharing(&row.parse()?),
            SharingFitRow::NAME => self.fit(&row.parse()?),
            StartupRow::NAME => self.startup(&row.parse()?),
            StartupAbRow::NAME => {
                let sum: StartupAbRow<'_> = row.parse()?;
                self.sum(sum.label, sum.kernel, sum.arch)
            }
            StartupFitRow::NAME => {
                let sum: StartupFitRow<'_> = row.parse()?;
                self.sum(sum.label, sum.kernel, sum.arch)
            }
            // The reader knows no other record.
            _ => self.sizes(&row.parse()?),
        })
    }

    fn survey<'r>(&mut self, row: &SurveyRow<'r>) -> Identity<'r> {
        if self.surveys.last().is_none_or(|last| last.pid != row.pid) {
            self.surveys.push(Survey {
                pid: row.pid,
                ..Survey::default()
            });
        }
        if let Some(survey) = self.surveys.last_mut() {
            let vma = Vma::of(row);
            if vma.range.is_empty() {
                survey.total = Some(vma);
            } else {
                survey.vmas.push(vma);
            }
        }
        identity(row.label, row.kernel, row.arch, Some(row.page_bytes))
    }

    fn audit<'r>(&mut self, row: &AuditRow<'r>) -> Identity<'r> {
        self.audits.push(Audit {
            pid: row.pid,
            method: row.method.to_owned(),
            pass: row.repeat,
            rate: row.cold_mib_s.or(row.warm_mib_s).map(|rate| rate.0),
            bytes: [row.bytes_per_pass, row.unread_bytes, row.left_out_bytes],
            pages: [
                row.tracked_pages,
                row.split_pages,
                row.predicted_split_pages,
            ],
            moved: [row.faulted_in_pages, row.swapped_in_pages, row.raced_pages],
            gained_kib: [
                row.target_rss_kib,
                row.target_pss_kib,
                row.target_private_kib,
            ],
            errno: row.errno.to_owned(),
            why: why(row.status),
        });
        identity(row.label, row.kernel, row.arch, Some(row.page_bytes))
    }

    fn sum<'r>(&mut self, label: &'r str, kernel: &'r str, arch: &'r str) -> Identity<'r> {
        self.sums += 1;
        identity(label, kernel, arch, None)
    }

    fn memmap<'r>(&mut self, row: &MemmapRow<'r>) -> Identity<'r> {
        self.memmap.push(Touch::of(row));
        identity(row.label, row.kernel, row.arch, Some(row.page_bytes))
    }

    fn sharing<'r>(&mut self, row: &SharingRow<'r>) -> Identity<'r> {
        let private = row.Private_Clean.zip(row.Private_Dirty);
        self.sharing.push(Subject {
            arm: row.arm.to_owned(),
            n: row.n,
            pss_kib: row.Pss,
            uss_kib: private.map(|(clean, dirty)| clean.saturating_add(dirty)),
            bystanders: row.bystanders,
            why: why(row.status),
        });
        identity(row.label, row.kernel, row.arch, None)
    }

    fn fit<'r>(&mut self, row: &SharingFitRow<'r>) -> Identity<'r> {
        let milli = [
            row.a_kb,
            row.b_kb,
            row.b_over_a,
            row.r2,
            row.max_resid_kb,
            row.a_n2plus_kb,
            row.b_n2plus_kb,
            row.private_fraction,
        ];
        self.fits.push(Fit {
            arm: row.arm.to_owned(),
            milli: milli.map(|value| value.map(|value| value.0)),
            uss_min_kib: row.uss_min_kb,
            verdict: row.verdict.to_owned(),
        });
        identity(row.label, row.kernel, row.arch, None)
    }

    fn startup<'r>(&mut self, row: &StartupRow<'r>) -> Identity<'r> {
        let exec = Exec {
            round: row.round,
            arm: row.arm.to_owned(),
            dispatch: row.dispatch.to_owned(),
            cache: row.cache.to_owned(),
            n_objects: row.n_objects,
            ns: [row.exec_ns, row.total_ns],
            minflt: row.minflt,
            why: why(row.status),
        };
        match self.startup.last_mut() {
            Some(stream) => stream.execs.push(exec),
            None => self.startup.push(Starts {
                execs: vec![exec],
                ..Starts::default()
            }),
        }
        identity(row.label, row.kernel, row.arch, None)
    }

    fn sizes<'r>(&mut self, row: &SizesRow<'r>) -> Identity<'r> {
        let size = Size {
            r: row.r,
            objects: [row.objects, row.distinct_objects],
            bytes: [
                row.bytes_private,
                row.bytes_store,
                row.bytes_store_symbols,
                row.bytes_chunks,
            ],
            page_size: row.page_size,
            avg_chunk: row.avg_chunk,
            why: why(row.status),
        };
        match self.sizes.last_mut() {
            Some(stream) => stream.rows.push(size),
            None => self.sizes.push(Sizes { rows: vec![size] }),
        }
        Identity {
            label: row.label,
            machine: None,
            page_bytes: None,
        }
    }
}

fn identity<'r>(
    label: &'r str,
    kernel: &'r str,
    arch: &'r str,
    page_bytes: Option<u64>,
) -> Identity<'r> {
    Identity {
        label,
        machine: Some((kernel, arch)),
        page_bytes,
    }
}

impl Vma {
    fn of(row: &SurveyRow<'_>) -> Self {
        let range = if row.start.is_empty() {
            String::new()
        } else {
            format!("{}-{}", row.start, row.end)
        };
        Self {
            range,
            perms: row.perms.to_owned(),
            name: row.name.to_owned(),
            pages: [
                row.present_pages,
                row.exclusive_pages,
                row.shared_anon_pages,
                row.file_pages,
                row.swapped_pages,
                row.absent_pages,
            ],
            splits: [
                row.proc_split_pages,
                row.vmread_split_pages,
                row.hybrid_split_pages,
            ],
            extra_kib: row.vmread_extra_kib,
            why: why(row.status),
        }
    }
}

impl Touch {
    fn of(row: &MemmapRow<'_>) -> Self {
        let rss = row.rss_before_kib.zip(row.rss_after_kib);
        let gained = rss.and_then(|(before, after)| after.checked_signed_diff(before));
        Self {
            mode: row.mode.to_owned(),
            brk: row.brk.to_owned(),
            file: row.file.to_owned(),
            advise: row.advise.to_owned(),
            bytes: row.bytes,
            pages: row.pages,
            thp: row.thp.to_owned(),
            fault_around: row.fault_around_bytes,
            write: row.write_bytes,
            counts: [
                row.vmas.map(signed),
                row.minor_faults.map(signed),
                row.major_faults.map(signed),
                gained,
                row.anon_huge_kib.map(signed),
                row.advised_rss_kib.map(signed),
            ],
            why: why(row.status),
        }
    }
}
