//! What the records beside `bench` and `probe` say, owned: `survey`, `audit`, `memmap`,
//! `sharing` with its fits, `startup`, `sizes`.

use crate::stream::{Row, StreamError};
use cowitness::emit::audit_row::AuditRow;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::record::{Record, Status};
use cowitness::emit::sharing_row::{SharingFitRow, SharingRow};
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::startup_row::{StartupAbRow, StartupFitRow, StartupRow};
use cowitness::emit::survey_row::SurveyRow;

/// All of one run.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Processes that were surveyed, a stream each.
    pub surveys: Vec<Survey>,
    /// Passes over live processes.
    pub audits: Vec<Audit>,
    /// Allocations that were touched.
    pub memmap: Vec<Touch>,
    /// Processes that stood at a barrier.
    pub sharing: Vec<Subject>,
    /// Fits that came with them.
    pub fits: Vec<Fit>,
    /// Programs that were started, a stream each.
    pub startup: Vec<Starts>,
    /// Rows that sum starts up: they can be had from the starts again.
    pub sums: usize,
    /// Closures under storage models, a stream each.
    pub sizes: Vec<Sizes>,
}

/// Which machine a row is of, as far as its columns tell.
pub struct Identity<'r> {
    /// What `--label` said.
    pub label: &'r str,
    /// Kernel and CPU; `None` of files, which are no machine's.
    pub machine: Option<(&'r str, &'r str)>,
    /// Bytes in a page, if there is such a column.
    pub page_bytes: Option<u64>,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Which one.
    pub pid: u64,
    /// Its mappings, in the order of their addresses.
    pub vmas: Vec<Vma>,
    /// The row `[total]`; `None` if it is cut off.
    pub total: Option<Vma>,
}

/// One pass of one reader over a live process.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Which process.
    pub pid: u64,
    /// The reader.
    pub method: String,
    /// Which pass, the cold one being 1.
    pub pass: u64,
    /// Hundredths of MiB/s.
    pub rate: Option<u64>,
    /// Bytes that came, did not come, and were not to be read.
    pub bytes: [Option<u64>; 3],
    /// Pages that were shared, that are split now, and that were expected to be.
    pub pages: [Option<u64>; 3],
    /// Pages faulted in, swapped in, and changed by others.
    pub moved: [Option<u64>; 3],
    /// What Rss, Pss and USS gained, KiB.
    pub gained_kib: [Option<i64>; 3],
    /// What the first read that failed gave.
    pub errno: String,
    /// Why it is no measurement.
    pub why: Option<String>,
}

/// One mapping, or all of them.
#[derive(Clone, Debug, Default)]
pub struct Vma {
    /// `7f00-7f10`; empty for all.
    pub range: String,
    /// `rw-p`.
    pub perms: String,
    /// Its name.
    pub name: String,
    /// Present, exclusive, shared anonymous, file, swapped and absent pages.
    pub pages: [Option<u64>; 6],
    /// Pages that proc, vmread and hybrid would split.
    pub splits: [Option<u64>; 3],
    /// What vmread's would take, KiB.
    pub extra_kib: Option<u64>,
    /// Why it was not looked at; `None`: it was.
    pub why: Option<String>,
}

/// One allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// `stack`, `heap`, ...
    pub mode: String,
    /// Whether a heap was the program break: `yes` or `no`.
    pub brk: String,
    /// The file that was mapped; empty in other modes.
    pub file: String,
    /// What madvise was told.
    pub advise: String,
    /// Bytes of it.
    pub bytes: u64,
    /// Pages of it.
    pub pages: u64,
    /// The mode of huge pages.
    pub thp: String,
    /// Bytes mapped around a file fault.
    pub fault_around: Option<u64>,
    /// Bytes per write of the file.
    pub write: Option<u64>,
    /// VMAs, minor and major faults, RSS gained, huge, RSS after advice (KiB).
    pub counts: [Option<i64>; 6],
    /// Why it was not done.
    pub why: Option<String>,
}

/// One process at the barrier.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The storage arm.
    pub arm: String,
    /// Processes at the same time.
    pub n: u64,
    /// Its proportional share, KiB.
    pub pss_kib: Option<u64>,
    /// What it has alone (clean and dirty), KiB.
    pub uss_kib: Option<u64>,
    /// Other processes that map the same files.
    pub bystanders: Option<u64>,
    /// Why it is no measurement.
    pub why: Option<String>,
}

/// The fit of an arm. All numbers are thousandths, `a` and `b` of KiB.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The storage arm.
    pub arm: String,
    /// a, b, b/a, R², largest residual, a and b of N ≥ 2, private fraction.
    pub milli: [Option<i64>; 8],
    /// The least USS, KiB.
    pub uss_min_kib: Option<u64>,
    /// What it comes to.
    pub verdict: String,
}

/// The programs of one stream.
#[derive(Clone, Debug, Default)]
pub struct Starts {
    /// In the order they were started.
    pub execs: Vec<Exec>,
    /// Arms and their programs, as far as the notes name them.
    pub programs: Vec<(String, String)>,
    /// Whether the result that `startup` writes when it has proved the programs unchanged
    /// follows in the same file.
    pub has_result: bool,
}

/// One start.
#[derive(Clone, Debug)]
pub struct Exec {
    /// Which round.
    pub round: u64,
    /// The arm.
    pub arm: String,
    /// How it was reached.
    pub dispatch: String,
    /// `warm`, or `cold` if its files were dropped before.
    pub cache: String,
    /// Objects that are loaded.
    pub n_objects: Option<u64>,
    /// Until exec and until the end, ns.
    pub ns: [Option<u64>; 2],
    /// Minor faults.
    pub minflt: Option<u64>,
    /// Why it is no measurement.
    pub why: Option<String>,
}

/// The curve of one stream.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// In the order of the rows.
    pub rows: Vec<Size>,
}

/// So many roots.
#[derive(Clone, Debug)]
pub struct Size {
    /// How many.
    pub r: u64,
    /// Their objects, and the distinct ones.
    pub objects: [Option<u64>; 2],
    /// Bytes of private closures, a store, a store with symbols, chunks.
    pub bytes: [Option<u64>; 4],
    /// Page size of the stores.
    pub page_size: u64,
    /// Average chunk asked for.
    pub avg_chunk: u64,
    /// Why it is no measurement.
    pub why: Option<String>,
}

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

    /// The processes that were looked at or read, each once.
    #[must_use]
    pub fn pids(&self) -> Vec<u64> {
        let read = self.audits.iter().map(|audit| audit.pid);
        let mut pids: Vec<u64> = self
            .surveys
            .iter()
            .map(|survey| survey.pid)
            .chain(read)
            .collect();
        pids.dedup();
        pids
    }

    /// Adds all that another stream has.
    pub fn extend(&mut self, other: Self) {
        let Self {
            surveys,
            audits,
            memmap,
            sharing,
            fits,
            startup,
            sums,
            sizes,
        } = other;
        self.audits.extend(audits);
        self.sums += sums;
        self.surveys.extend(surveys);
        self.memmap.extend(memmap);
        self.sharing.extend(sharing);
        self.fits.extend(fits);
        self.startup.extend(startup);
        self.sizes.extend(sizes);
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
