//! The record of `bench`: one case.

use super::fixed::Centi;
use super::record::Status;
use crate::record;

/// Why `bench` skips a case that the layout rules out: the only reason that leaves the
/// measurement as a whole valid.
pub const NOT_APPLICABLE: &str = "segments-are-not-whole-huge-pages";

record! {
    /// One case: a fresh fork, one cold pass and `warm_passes` warm ones.
    ///
    /// `target_*` are after-minus-before over the cold pass, taken from the child;
    /// an empty field was not or could not be known.
    pub struct BenchRow<'a> = "bench" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// Bytes in a page.
        page_bytes: u64,
        /// `contiguous` or `vma`.
        layout: &'a str,
        /// Backing of the arena: `small` or `thp`.
        pages: &'a str,
        /// Pages in a segment; empty for `contiguous`.
        segment_pages: Option<u64>,
        /// Readable VMAs of the arena.
        vmas: u64,
        /// Readable bytes of the arena.
        arena_bytes: u64,
        /// The reader.
        method: &'a str,
        /// Bytes asked for by one read.
        block_bytes: u64,
        /// Which repeat, from 1.
        repeat: u64,
        /// The method's place in its (layout, block, repeat), from 1.
        position: u64,
        /// Bytes the cold pass returned.
        bytes_per_pass: Option<u64>,
        /// Warm passes measured.
        warm_passes: u64,
        /// Nanoseconds of the cold pass.
        cold_ns: Option<u64>,
        /// Nanoseconds of all warm passes together.
        warm_ns: Option<u64>,
        /// The fastest warm pass.
        warm_min_ns: Option<u64>,
        /// The slowest warm pass.
        warm_max_ns: Option<u64>,
        /// MiB/s of the cold pass.
        cold_mib_s: Option<Centi>,
        /// MiB/s over the warm passes.
        warm_mib_s: Option<Centi>,
        /// How sharing was decided: `pfn`, `exclusive` or `none`.
        evidence: &'a str,
        /// Pages whose frame parent and child shared before the read.
        tracked_pages: Option<u64>,
        /// Pages shared before; all tracked ones, by definition.
        shared_before: Option<u64>,
        /// Tracked pages still shared after the cold pass.
        shared_after: Option<u64>,
        /// Tracked pages whose frame now differs.
        split_pages: Option<u64>,
        /// Minor faults charged to the child.
        target_minflt: Option<i64>,
        /// Major faults charged to the child.
        target_majflt: Option<i64>,
        /// Minor faults charged to the tool during the cold pass.
        reader_minflt_cold: Option<u64>,
        /// Minor faults charged to the tool during the warm passes.
        reader_minflt_warm: Option<u64>,
        /// Rss of the arena in the child.
        target_rss_kib: Option<i64>,
        /// Pss of the arena in the child.
        target_pss_kib: Option<i64>,
        /// Shared_Dirty of the arena in the child.
        target_shared_dirty_kib: Option<i64>,
        /// Private_Clean plus Private_Dirty (USS) of the arena in the child.
        target_private_kib: Option<i64>,
        /// Pss of the arena in the parent.
        partner_pss_kib: Option<i64>,
        /// Nanoseconds of the child's own first write to each page, with `--first-write`.
        first_write_ns: Option<u64>,
        /// How the case ended.
        status: Status<'a>,
        /// Pages that `hybrid` pinned in the cold pass; empty for the other readers.
        pinned_pages: Option<u64>,
        /// Why `hybrid` copied all anonymous pages at the end of the cold pass, see
        /// [`Obstacle`](crate::reader::hybrid::Obstacle); empty if it did not.
        not_pinned: &'a str,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on, copied from the interface document, not from here.
    const INTERFACE: &str = "record,label,kernel,arch,page_bytes,layout,pages,segment_pages,vmas,\
        arena_bytes,method,block_bytes,repeat,position,bytes_per_pass,warm_passes,cold_ns,warm_ns,\
        warm_min_ns,warm_max_ns,cold_mib_s,warm_mib_s,evidence,tracked_pages,shared_before,\
        shared_after,split_pages,target_minflt,target_majflt,reader_minflt_cold,reader_minflt_warm,\
        target_rss_kib,target_pss_kib,target_shared_dirty_kib,target_private_kib,partner_pss_kib,\
        first_write_ns,status,pinned_pages,not_pinned";

    #[test]
    fn columns_are_the_interface() {
        assert!(
            INTERFACE
                .split(',')
                .skip(1)
                .eq(BenchRow::COLUMNS.iter().copied())
        );
    }
}
