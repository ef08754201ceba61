//! What the records beside `bench` and `probe` say, owned: `survey`, `audit`, `memmap`,
//! `sharing` with its fits, `startup`, `sizes`.

mod rows;

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

impl Others {
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
}
