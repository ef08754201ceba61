//! From what was measured to a row.

use super::prepare::Laid;
use crate::emit::bench_row::BenchRow;
use crate::emit::fixed::Centi;
use crate::emit::record::Status;
use crate::fixture::Layout;
use crate::measure::case::Measured;
use crate::measure::plan::Case;
use crate::reader::hybrid::Obstacle;
use crate::stats::mib_s_centi;
use crate::sys::cpu;
use crate::text::Text;

/// What is the same in every row of a run.
pub(super) struct Common<'c> {
    pub(super) label: &'c str,
    pub(super) kernel: &'c str,
    pub(super) page_bytes: u64,
    pub(super) pages: &'static str,
}

/// The row of one case.
pub(super) fn make<'c>(
    common: &Common<'c>,
    laid: &Laid,
    case: &Case,
    measured: &Measured,
) -> BenchRow<'c> {
    let cold = measured.cold;
    let warm = Some(measured.warm).filter(|warm| warm.passes > 0);
    let after = measured.after;
    let cold_bytes = cold.map(|cold| cold.pass.bytes);
    let warm_bytes = warm.and_then(|warm| cold_bytes?.checked_mul(warm.passes));
    // A case that cannot be trusted may have a time, but no rate to be compared.
    let sound = measured.status == Status::Ok;
    let rate = |bytes: Option<u64>, ns: Option<u64>| {
        let (bytes, ns) = (bytes.filter(|_| sound)?, ns?);
        mib_s_centi(bytes, ns).map(Centi)
    };
    let target =
        |field: fn(&crate::proc::smaps::UsageDelta) -> i64| measured.target.as_ref().map(field);
    BenchRow {
        label: common.label,
        kernel: common.kernel,
        arch: cpu::ARCH,
        page_bytes: common.page_bytes,
        layout: laid.layout.name(),
        pages: common.pages,
        segment_pages: laid.layout.segment_pages(),
        vmas: laid.shape.segments as u64,
        arena_bytes: laid.shape.readable_bytes() as u64,
        method: case.method.name(),
        block_bytes: case.block_bytes as u64,
        repeat: case.repeat,
        position: case.position,
        bytes_per_pass: cold_bytes,
        warm_passes: measured.warm.passes,
        cold_ns: cold.map(|cold| cold.ns).filter(|&ns| ns > 0),
        warm_ns: warm.map(|warm| warm.ns),
        warm_min_ns: warm.map(|warm| warm.min_ns),
        warm_max_ns: warm.map(|warm| warm.max_ns),
        cold_mib_s: rate(cold_bytes, cold.map(|cold| cold.ns)),
        warm_mib_s: rate(warm_bytes, warm.map(|warm| warm.ns)),
        evidence: measured.evidence.name(),
        tracked_pages: measured.tracked,
        shared_before: measured.tracked,
        shared_after: after.map(|after| after.shared),
        split_pages: after.map(|after| after.split),
        target_minflt: measured.target_faults.map(|faults| faults.0),
        target_majflt: measured.target_faults.map(|faults| faults.1),
        reader_minflt_cold: cold.and_then(|cold| Some(cold.faults?.minor)),
        reader_minflt_warm: warm.and_then(|warm| warm.minor_faults),
        target_rss_kib: target(|delta| delta.rss_kib),
        target_pss_kib: target(|delta| delta.pss_kib),
        target_shared_dirty_kib: target(|delta| delta.shared_dirty_kib),
        target_private_kib: target(crate::proc::smaps::UsageDelta::private_kib),
        partner_pss_kib: measured.partner.map(|delta| delta.pss_kib),
        first_write_ns: measured.first_write_ns,
        status: measured.status,
        pinned_pages: measured.pinned.map(|(pages, _)| pages),
        not_pinned: (measured.pinned.and_then(|(_, why)| why)).map_or("", Obstacle::name),
    }
}

/// What the progress line says: the layout and, once it is filled, the case.
pub(super) fn title(layout: Layout, case: Option<&Case>) -> Text {
    let mut text = Text::new();
    text.add(layout.name());
    if let Some(pages) = layout.segment_pages() {
        text.add(" S=").number(pages);
    }
    match case {
        None => text.add(" populating"),
        Some(case) => text
            .add(" ")
            .number(case.block_bytes as u64)
            .add(" bytes ")
            .add(case.method.name())
            .add(" #")
            .number(case.repeat),
    };
    text
}
