//! The record of `audit`: one pass of one reader over a live process.

use super::fixed::Centi;
use super::record::Status;
use crate::record;

record! {
    /// Every readable mapping of a process, read once. The first pass of a reader is cold,
    /// those after it are warm.
    ///
    /// `target_*` are after-minus-before over this pass, taken from the whole process; an
    /// empty field was not or could not be known.
    pub struct AuditRow<'a> = "audit" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// Bytes in a page.
        page_bytes: u64,
        /// The process.
        pid: u64,
        /// The reader.
        method: &'a str,
        /// Bytes asked for by one read.
        block_bytes: u64,
        /// Which pass of this reader, from 1, the cold one.
        repeat: u64,
        /// The reader's place in the list that was asked for, from 1.
        position: u64,
        /// Bytes that came.
        bytes_per_pass: Option<u64>,
        /// Nanoseconds of the reader's calls, if this pass is the cold one.
        cold_ns: Option<u64>,
        /// Nanoseconds of the reader's calls, if this pass is a warm one.
        warm_ns: Option<u64>,
        /// MiB/s, if this pass is the cold one.
        cold_mib_s: Option<Centi>,
        /// MiB/s, if this pass is a warm one.
        warm_mib_s: Option<Centi>,
        /// How sharing was decided: `pfn` or `exclusive`.
        evidence: &'a str,
        /// Anonymous pages that others mapped, too, just before they were read.
        tracked_pages: Option<u64>,
        /// The same number, by definition.
        shared_before: Option<u64>,
        /// Tracked pages that were as before just after.
        shared_after: Option<u64>,
        /// Tracked pages that the process had a copy of its own of just after.
        split_pages: Option<u64>,
        /// Minor faults charged to the process.
        target_minflt: Option<i64>,
        /// Major faults charged to the process.
        target_majflt: Option<i64>,
        /// Minor faults charged to the tool, if this pass is the cold one.
        reader_minflt_cold: Option<u64>,
        /// Minor faults charged to the tool, if this pass is a warm one.
        reader_minflt_warm: Option<u64>,
        /// Rss of the process.
        target_rss_kib: Option<i64>,
        /// Pss of the process.
        target_pss_kib: Option<i64>,
        /// Shared_Dirty of the process.
        target_shared_dirty_kib: Option<i64>,
        /// Private_Clean plus Private_Dirty (USS) of the process.
        target_private_kib: Option<i64>,
        /// What the page table, looked at before the pass began, lets expect of
        /// `split_pages`.
        predicted_split_pages: Option<u64>,
        /// Pages that changed in a way that reading does not explain: the process or its
        /// relatives wrote, forked, ended or were reclaimed meanwhile.
        raced_pages: Option<u64>,
        /// Pages that were absent just before they were read and present just after.
        faulted_in_pages: Option<u64>,
        /// The same of pages that were swapped out.
        swapped_in_pages: Option<u64>,
        /// Readable VMAs that were read, wholly or in part.
        vmas: Option<u64>,
        /// VMAs of the process, readable or not.
        vma_change: Option<i64>,
        /// Bytes of these VMAs, but for those left out.
        readable_bytes: Option<u64>,
        /// Of these, bytes that did not come.
        unread_bytes: Option<u64>,
        /// Runs of such bytes.
        unread_runs: Option<u64>,
        /// What the first of them gave, by name.
        errno: &'a str,
        /// Bytes of readable VMAs that are not read: of devices, of userfaultfd, of reserves
        /// that were never touched.
        left_out_bytes: Option<u64>,
        /// How the pass ended.
        status: Status<'a>,
        /// Of `split_pages`, those that bit 56 had called the process's own; empty where frames
        /// cannot be seen.
        split_exclusive_pages: Option<u64>,
        /// Faults charged to the tool beyond the pages that it split or brought in, in windows
        /// looked at again.
        unexplained_faults: Option<u64>,
        /// AnonHugePages of the process.
        target_anon_huge_kib: Option<i64>,
        /// Pages that `hybrid` left unread: swapped out.
        left_swapped_pages: Option<u64>,
        /// Of guard regions.
        left_guard_pages: Option<u64>,
        /// Served by userfaultfd.
        left_served_pages: Option<u64>,
        /// Not mapped any more.
        left_unmapped_pages: Option<u64>,
        /// Of files, or the kernel's own, and not in memory.
        left_not_in_memory_pages: Option<u64>,
        /// What the page table, looked at before the pass began, lets expect of
        /// `faulted_in_pages` and `swapped_in_pages` together.
        predicted_faulted_in_pages: Option<u64>,
        /// Pages that `hybrid` left unread: of files that could not be opened, or were not to be.
        left_file_not_opened_pages: Option<u64>,
        /// Faults charged to `hybrid` within its calls that pin.
        pin_faults: Option<u64>,
        /// Pages that `hybrid` left unread: marks in the page table, neither pages nor in swap.
        left_marked_pages: Option<u64>,
        /// Pages that were certainly split, whatever others did; empty where there are no bounds.
        split_at_least_pages: Option<u64>,
        /// Pages that were split at most.
        split_at_most_pages: Option<u64>,
        /// Size of all mappings of the process.
        target_vm_size_kib: Option<i64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::bench_row::BenchRow;
    use crate::emit::record::Record;

    /// What the two have in common stands in the same order.
    #[test]
    fn columns_of_bench_keep_their_names_and_order() {
        let from_method = BenchRow::COLUMNS
            .iter()
            .skip_while(|&&column| column != "method");
        let mut shared = from_method.filter(|column| AuditRow::COLUMNS.contains(column));
        let mut own = AuditRow::COLUMNS.iter().skip(5);
        assert!(shared.all(|column| own.any(|found| found == column)));
        assert_eq!(AuditRow::COLUMNS[4], "pid");
        // What came later stands behind it.
        assert_eq!(AuditRow::COLUMNS[38], "status");
    }
}
