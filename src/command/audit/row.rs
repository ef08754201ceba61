//! From a pass to a row.

use super::pass::{Expected, Passed};
use crate::emit::audit_row::AuditRow;
use crate::emit::fixed::Centi;
use crate::emit::record::Status;
use crate::measure::evidence::Evidence;
use crate::proc::smaps::UsageDelta;
use crate::reader::Method;
use crate::reader::hybrid::decide::Why;
use crate::stats::mib_s_centi;
use crate::sys::{cpu, errno};

/// What is the same in every row of a run.
pub(super) struct Common<'c> {
    pub(super) label: &'c str,
    pub(super) kernel: &'c str,
    pub(super) page_bytes: u64,
    pub(super) pid: i32,
    pub(super) block_bytes: u64,
}

/// Which pass it is.
pub(super) struct Place {
    pub(super) method: Method,
    /// Of the reader in the list, from 1.
    pub(super) position: u64,
    /// Of the pass among those of the reader, from 1.
    pub(super) repeat: u64,
}

/// The row of a pass that was not made.
#[inline(never)]
pub(super) fn skipped<'c>(
    common: &Common<'c>,
    place: &Place,
    reason: &'static str,
) -> AuditRow<'c> {
    AuditRow {
        label: common.label,
        kernel: common.kernel,
        arch: cpu::ARCH,
        page_bytes: common.page_bytes,
        pid: common.pid.unsigned_abs().into(),
        method: place.method.name(),
        block_bytes: common.block_bytes,
        repeat: place.repeat,
        position: place.position,
        bytes_per_pass: None,
        cold_ns: None,
        warm_ns: None,
        cold_mib_s: None,
        warm_mib_s: None,
        evidence: Evidence::None.name(),
        tracked_pages: None,
        shared_before: None,
        shared_after: None,
        split_pages: None,
        target_minflt: None,
        target_majflt: None,
        reader_minflt_cold: None,
        reader_minflt_warm: None,
        target_rss_kib: None,
        target_pss_kib: None,
        target_shared_dirty_kib: None,
        target_private_kib: None,
        predicted_split_pages: None,
        raced_pages: None,
        faulted_in_pages: None,
        swapped_in_pages: None,
        vmas: None,
        vma_change: None,
        readable_bytes: None,
        unread_bytes: None,
        unread_runs: None,
        errno: "",
        left_out_bytes: None,
        status: Status::Skipped(reason),
        split_exclusive_pages: None,
        unexplained_faults: None,
        target_anon_huge_kib: None,
        left_swapped_pages: None,
        left_guard_pages: None,
        left_served_pages: None,
        left_unmapped_pages: None,
        left_not_in_memory_pages: None,
        predicted_faulted_in_pages: None,
        left_file_not_opened_pages: None,
        pin_faults: None,
        left_marked_pages: None,
        split_at_least_pages: None,
        split_at_most_pages: None,
        target_vm_size_kib: None,
    }
}

/// The row of one pass; `predicted` is what was expected of the cold one.
pub(super) fn make<'c>(
    common: &Common<'c>,
    place: &Place,
    predicted: Option<Expected>,
    passed: &Passed,
) -> AuditRow<'c> {
    let row = AuditRow {
        status: passed.status(),
        ..skipped(common, place, "")
    };
    if passed.tally.readable == 0 {
        return row;
    }
    let predicted = predicted.filter(|_| passed.cold);
    let row = AuditRow {
        predicted_split_pages: predicted.and_then(|expected| expected.split),
        predicted_faulted_in_pages: predicted.and_then(|expected| expected.brought_in),
        ..row
    };
    pages(passed, bytes(passed, row))
}

/// With what was read, how fast, and what it did to the process as a whole.
#[inline(always)]
fn bytes<'c>(passed: &Passed, row: AuditRow<'c>) -> AuditRow<'c> {
    let tally = &passed.tally;
    // 0 is no time.
    let ns = Some(tally.ns).filter(|&ns| ns > 0);
    let (cold, warm) = match passed.cold {
        true => (ns, None),
        false => (None, ns),
    };
    let rate = |ns: Option<u64>| mib_s_centi(tally.bytes, ns?).map(Centi);
    let minor = tally.faults.map(|faults| faults.minor);
    let kib = |field: fn(&UsageDelta) -> i64| passed.usage.as_ref().map(field);
    AuditRow {
        bytes_per_pass: Some(tally.bytes),
        cold_ns: cold,
        warm_ns: warm,
        cold_mib_s: rate(cold),
        warm_mib_s: rate(warm),
        target_minflt: passed.faults.map(|(minor, _)| minor),
        target_majflt: passed.faults.map(|(_, major)| major),
        reader_minflt_cold: minor.filter(|_| passed.cold),
        reader_minflt_warm: minor.filter(|_| !passed.cold),
        target_rss_kib: kib(|usage| usage.rss_kib),
        target_pss_kib: kib(|usage| usage.pss_kib),
        target_shared_dirty_kib: kib(|usage| usage.shared_dirty_kib),
        target_private_kib: kib(UsageDelta::private_kib),
        target_anon_huge_kib: kib(|usage| usage.anon_huge_kib),
        vmas: Some(tally.vmas),
        vma_change: passed.vma_change,
        target_vm_size_kib: passed.vm_size_kib,
        readable_bytes: Some(tally.readable),
        unread_bytes: Some(tally.unread),
        unread_runs: Some(tally.unread_runs),
        errno: tally.errno.map_or("", errno::name_or_unknown),
        left_out_bytes: Some(tally.left_out),
        ..row
    }
}

/// With what became of the pages.
#[inline(always)]
fn pages<'c>(passed: &Passed, row: AuditRow<'c>) -> AuditRow<'c> {
    let fate = &passed.tally.fate;
    let evidence = match passed.pfn {
        true => Evidence::Pfn,
        false => Evidence::Exclusive,
    };
    let left = |why: Why| passed.care.map(|care| care.left[why as usize]);
    AuditRow {
        evidence: evidence.name(),
        tracked_pages: Some(passed.tracked()),
        shared_before: Some(passed.tracked()),
        shared_after: Some(fate.still_shared),
        split_pages: passed.split(),
        raced_pages: Some(fate.raced).filter(|_| passed.pfn),
        faulted_in_pages: passed.faulted_in(),
        swapped_in_pages: passed.swapped_in(),
        split_exclusive_pages: passed
            .split()
            .and(Some(fate.split_exclusive))
            .filter(|_| passed.pfn && !fate.is_mixed),
        unexplained_faults: passed.tally.faults.map(|_| passed.tally.unexplained),
        left_swapped_pages: left(Why::Swapped),
        left_guard_pages: left(Why::Guard),
        left_served_pages: left(Why::Served),
        left_unmapped_pages: left(Why::Unmapped),
        left_not_in_memory_pages: left(Why::NotInMemory),
        left_file_not_opened_pages: left(Why::FileNotOpened),
        pin_faults: passed.care.and_then(|care| care.pin_faults),
        left_marked_pages: left(Why::Marked),
        split_at_least_pages: passed.split_bounds().map(|(least, _)| least),
        split_at_most_pages: passed.split_bounds().map(|(_, most)| most),
        ..row
    }
}
