//! The record of `memmap`: one kind of allocation, touched.

use super::record::Status;
use crate::record;

/// What `mode` may be.
pub const MODES: [&str; 5] = ["stack", "heap", "mmap-anon", "mmap-file", "fault-walk"];

record! {
    /// What the kernel charged for touching one allocation.
    ///
    /// An empty field was not or could not be known.
    pub struct MemmapRow<'a> = "memmap" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// Bytes in a page.
        page_bytes: u64,
        /// `stack`, `heap`, `mmap-anon`, `mmap-file` or `fault-walk`.
        mode: &'a str,
        /// What madvise(2) was told, or `none`.
        advise: &'a str,
        /// Bytes of the target.
        bytes: u64,
        /// Pages of the target, rounded up.
        pages: u64,
        /// VMAs that overlap the target.
        vmas: Option<u64>,
        /// Minor faults charged while the target was touched.
        minor_faults: Option<u64>,
        /// Major faults charged while the target was touched.
        major_faults: Option<u64>,
        /// VmRSS before the target was touched.
        rss_before_kib: Option<u64>,
        /// VmRSS after it.
        rss_after_kib: Option<u64>,
        /// AnonHugePages of the target's VMAs after it; of a stack, of all of it.
        anon_huge_kib: Option<u64>,
        /// VmRSS after the advice that is given after touching (`dontneed`, `free`).
        advised_rss_kib: Option<u64>,
        /// The mode of transparent huge pages in force, or `off-by-prctl`, `madvise-by-prctl`,
        /// or `none` if the kernel has none; then other sizes that are on, ` +64KiB:always`, or
        /// ` +sizes` if they are many. Empty if it is unknown.
        thp: &'a str,
        /// Bytes around a file fault that are mapped with it; empty if it is not shown.
        fault_around_bytes: Option<u64>,
        /// Bytes per write(2) of the file that was walked.
        write_bytes: Option<u64>,
        /// Whether it was done.
        status: Status<'a>,
        /// Rss of the target's VMAs after it, by smaps: exact where VmRSS is not. Of a stack,
        /// of all of it.
        target_rss_kib: Option<u64>,
        /// AnonHugePages of the target's VMAs after the advice that is given after touching.
        advised_anon_huge_kib: Option<u64>,
        /// Minor faults of touching once more after that advice.
        again_minor_faults: Option<u64>,
        /// Major faults of the same.
        again_major_faults: Option<u64>,
        /// VmSize before; this and all that follow only with `--report`.
        vsz_before_kib: Option<u64>,
        /// VmSize after touching.
        vsz_after_kib: Option<u64>,
        /// Pss of the process before.
        pss_before_kib: Option<u64>,
        /// Pss after touching.
        pss_after_kib: Option<u64>,
        /// Private_Clean and Private_Dirty of the process before.
        uss_before_kib: Option<u64>,
        /// The same after touching.
        uss_after_kib: Option<u64>,
        /// VmSwap before.
        swap_before_kib: Option<u64>,
        /// VmSwap after touching.
        swap_after_kib: Option<u64>,
        /// Committed_AS of the machine before.
        committed_before_kib: Option<u64>,
        /// Committed_AS after touching.
        committed_after_kib: Option<u64>,
        /// CommitLimit of the machine.
        commit_limit_kib: Option<u64>,
        /// Whether a heap was the program break: `yes` or `no`.
        brk: &'a str,
        /// The file of `mmap-file`; of a path longer than 256 bytes the end, after `...`.
        file: &'a str,
    }
}
