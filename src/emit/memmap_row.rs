//! The record of `memmap`: one kind of allocation, touched.

use super::record::Status;
use crate::record;

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
        /// AnonHugePages of the target's VMAs after it.
        anon_huge_kib: Option<u64>,
        /// VmRSS after the advice that is given after touching (`dontneed`, `free`).
        advised_rss_kib: Option<u64>,
        /// The mode of transparent huge pages in force; empty if the kernel has none.
        thp: &'a str,
        /// Bytes around a file fault that are mapped with it; empty if it is not shown.
        fault_around_bytes: Option<u64>,
        /// Bytes per write(2) of the file that was walked.
        write_bytes: Option<u64>,
        /// Whether it was done.
        status: Status<'a>,
    }
}
