//! The records of `sharing`: one process at the barrier, and the fit of an arm.

use super::fixed::Milli;
use super::record::Status;
use crate::record;

record! {
    /// One process, swept once while all of its arm stood at the barrier.
    ///
    /// An empty field is one this kernel does not have, or that could not be known.
    #[allow(non_snake_case, reason = "the columns are the kernel's own field names")]
    pub struct SharingRow<'a> = "sharing" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// The storage arm: `elf`, `native`, `memfd` or `static`.
        arm: &'a str,
        /// Processes that ran at the same time.
        n: u64,
        /// Which repetition, from 1.
        rep: u64,
        /// Which of the processes, from 1.
        idx: u64,
        /// Its process ID.
        pid: Option<u64>,
        /// Microseconds from its start until all were at the barrier.
        settle_us: Option<u64>,
        /// The kernel's `Rss`, KiB.
        Rss: Option<u64>,
        /// The kernel's `Pss`, KiB.
        Pss: Option<u64>,
        /// The kernel's `Pss_Dirty`, KiB.
        Pss_Dirty: Option<u64>,
        /// The kernel's `Pss_Anon`, KiB.
        Pss_Anon: Option<u64>,
        /// The kernel's `Pss_File`, KiB.
        Pss_File: Option<u64>,
        /// The kernel's `Pss_Shmem`, KiB.
        Pss_Shmem: Option<u64>,
        /// The kernel's `Shared_Clean`, KiB.
        Shared_Clean: Option<u64>,
        /// The kernel's `Shared_Dirty`, KiB.
        Shared_Dirty: Option<u64>,
        /// The kernel's `Private_Clean`, KiB.
        Private_Clean: Option<u64>,
        /// The kernel's `Private_Dirty`, KiB.
        Private_Dirty: Option<u64>,
        /// The kernel's `Referenced`, KiB.
        Referenced: Option<u64>,
        /// The kernel's `Anonymous`, KiB.
        Anonymous: Option<u64>,
        /// The kernel's `KSM`, KiB.
        KSM: Option<u64>,
        /// The kernel's `LazyFree`, KiB.
        LazyFree: Option<u64>,
        /// The kernel's `AnonHugePages`, KiB.
        AnonHugePages: Option<u64>,
        /// The kernel's `ShmemPmdMapped`, KiB.
        ShmemPmdMapped: Option<u64>,
        /// The kernel's `FilePmdMapped`, KiB.
        FilePmdMapped: Option<u64>,
        /// The kernel's `Shared_Hugetlb`, KiB.
        Shared_Hugetlb: Option<u64>,
        /// The kernel's `Private_Hugetlb`, KiB.
        Private_Hugetlb: Option<u64>,
        /// The kernel's `Swap`, KiB.
        Swap: Option<u64>,
        /// The kernel's `SwapPss`, KiB.
        SwapPss: Option<u64>,
        /// The kernel's `Locked`, KiB.
        Locked: Option<u64>,
        /// Growth of the machine's `Shmem` per process, KiB.
        shmem_delta_kb: Option<i64>,
        /// Other processes that map the same files; at least so many, if some could not be
        /// looked at.
        bystanders: Option<u64>,
        /// Sum of the file sizes of the program's load segments, KiB, rounded up; for
        /// `native` with those of its interpreter, which are copied as well.
        sum_filesz_kb: Option<u64>,
        /// Whether the process was measured.
        status: Status<'a>,
    }
}

record! {
    /// PSS(N) = a + b/N, by least squares over the medians of one arm.
    pub struct SharingFitRow<'a> = "sharing-fit" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// The storage arm.
        arm: &'a str,
        /// PSS that each process has for itself, KiB.
        a_kb: Option<Milli>,
        /// PSS that all of them share, KiB.
        b_kb: Option<Milli>,
        /// Their ratio; it decides nothing.
        b_over_a: Option<Milli>,
        /// Share of the variance that the fit explains.
        r2: Option<Milli>,
        /// The largest departure from the fit, KiB.
        max_resid_kb: Option<Milli>,
        /// `a_kb` of a fit without N = 1.
        a_n2plus_kb: Option<Milli>,
        /// `b_kb` of a fit without N = 1.
        b_n2plus_kb: Option<Milli>,
        /// (a of this arm - a of `elf`) / file sizes of the load segments.
        private_fraction: Option<Milli>,
        /// The least USS of a process, KiB.
        uss_min_kb: Option<u64>,
        /// `invalid`, `dirty-cache`, `copied-shmem`, `copied-anon`, `shared` or `mixed`.
        verdict: &'a str,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on, as the protocol has it.
    const INTERFACE: &str = "record,label,kernel,arch,arm,n,rep,idx,pid,settle_us,Rss,Pss,Pss_Dirty,Pss_Anon,\
        Pss_File,Pss_Shmem,Shared_Clean,Shared_Dirty,Private_Clean,Private_Dirty,Referenced,\
        Anonymous,KSM,LazyFree,AnonHugePages,ShmemPmdMapped,FilePmdMapped,Shared_Hugetlb,\
        Private_Hugetlb,Swap,SwapPss,Locked,shmem_delta_kb,bystanders,sum_filesz_kb,status";

    #[test]
    fn columns_are_the_interface() {
        let columns = SharingRow::COLUMNS.iter().copied();
        assert!(INTERFACE.split(',').skip(1).eq(columns));
    }
}
