//! From what was probed to a row.

use crate::emit::probe_row::ProbeRow;
use crate::fixture::kinds::{Kind, Need, Op};
use crate::measure::probe::{Answer, Content, Probed, Prober};
use crate::proc::smaps::UsageDelta;
use crate::reader::{End, Method};
use crate::sys::{cpu, errno};

/// What is the same in every row of a run.
pub(super) struct Common<'c> {
    pub(super) label: &'c str,
    pub(super) kernel: &'c str,
    pub(super) page_bytes: u64,
}

/// The row of one probe.
pub(super) fn make<'c>(
    common: &Common<'c>,
    kind: &Kind,
    op: Op,
    method: Option<Method>,
    prober: &Prober,
    probed: &Probed,
) -> ProbeRow<'c> {
    let answer = probed.answer.as_ref();
    let changes = probed.changes;
    let target = |field: fn(&UsageDelta) -> i64| probed.target.as_ref().map(field);
    // Of hugetlb pages smaps has only how much is shared and private.
    let small =
        |field: fn(&UsageDelta) -> i64| target(field).filter(|_| kind.needs != Need::ReservedPages);
    ProbeRow {
        label: common.label,
        kernel: common.kernel,
        arch: cpu::ARCH,
        page_bytes: common.page_bytes,
        kind: kind.name,
        method: method.map_or("none", Method::name),
        op: op.name(),
        requested_bytes: probed.requested,
        returned_bytes: answer.map(|answer| answer.bytes),
        errno: answer.map_or("", said),
        content: answer
            .and_then(|answer| answer.content)
            .map_or("", content_name),
        evidence: prober.evidence.name(),
        tracked_pages: changes.map(|changes| changes.tracked),
        split_pages: changes.map(|changes| changes.split),
        faulted_in_pages: changes.map(|changes| changes.faulted_in),
        swapped_in_pages: changes.map(|changes| changes.swapped_in),
        target_minflt: probed.target_faults.map(|faults| faults.0),
        target_majflt: probed.target_faults.map(|faults| faults.1),
        reader_minflt: probed.reader_faults.map(|faults| faults.minor),
        reader_majflt: probed.reader_faults.map(|faults| faults.major),
        target_rss_kib: small(|delta| delta.rss_kib),
        target_pss_kib: small(|delta| delta.pss_kib),
        target_private_kib: target(UsageDelta::private_kib),
        target_shared_dirty_kib: small(|delta| delta.shared_dirty_kib),
        target_anon_huge_kib: target(|delta| delta.anon_huge_kib),
        target_referenced_kib: small(|delta| delta.referenced_kib),
        soft_dirty_pages: changes.and_then(|changes| changes.soft_dirty),
        vma_change: target(|delta| delta.vmas),
        partner_changed_pages: changes.and_then(|changes| changes.partner),
        partner_private_kib: probed.partner.as_ref().map(UsageDelta::private_kib),
        status: probed.status,
        target_vm_size_kib: probed.target_vm_size_kib,
    }
}

fn said(answer: &Answer) -> &'static str {
    match answer.end {
        End::Failed(errno) => errno::name_or_unknown(errno),
        End::Complete | End::Short => "",
    }
}

const fn content_name(content: Content) -> &'static str {
    match content {
        Content::Intact => "ok",
        Content::Zero => "zero",
        Content::Wrong => "wrong",
    }
}
