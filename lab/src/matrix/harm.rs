//! What readers must not change that are there to change nothing.

use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Status;

/// Readers that change nothing in the target, on any kernel: hybrid, since that is what it is
/// for; kcore and map-files, since they do not go through the target's mappings at all.
const HARMLESS: [&str; 3] = ["hybrid", "kcore", "map-files"];

/// What such a reader has changed all the same, in words; `None`: nothing, or it is another
/// reader. What has to be known of a question that was answered, and is not, counts as changed.
pub(super) fn harm(row: &ProbeRow<'_>) -> Option<String> {
    if !HARMLESS.contains(&row.method) {
        return None;
    }
    let must = |must: Must| match must {
        Must::BeKnown => row.status == Status::Ok,
        // hugetlb pages are in no Rss and no Pss (fs/proc/task_mmu.c, `smaps_hugetlb_range`).
        Must::BeKnownOfSmall => row.status == Status::Ok && row.kind != "hugetlb",
        Must::NotBeOtherwise => false,
    };
    let changed = changes(row)
        .into_iter()
        .filter_map(|(name, change, known)| match change {
            Some(0) => None,
            Some(change) => Some(format!("{name} {change}")),
            None => must(known).then(|| format!("{name} unknown")),
        });
    let changed: Vec<String> = changed.collect();
    let question = format!("{} {} by {}", row.kind, row.op, row.method);
    (!changed.is_empty()).then(|| format!("{question} changed {}", changed.join(", ")))
}

/// What a column has to be besides 0.
#[derive(Clone, Copy)]
enum Must {
    /// Known.
    BeKnown,
    /// The same, of pages that are in Rss.
    BeKnownOfSmall,
    /// It may be unknown: not every kernel shows it to everybody, nor has every stream it.
    NotBeOtherwise,
}

type Change = (&'static str, Option<i64>, Must);

/// By the names of the columns. Accessed marks are left out: reading sets them.
fn changes(row: &ProbeRow<'_>) -> [Change; 14] {
    use Must::{BeKnown, BeKnownOfSmall, NotBeOtherwise};
    let pages = |count: Option<u64>| count.map(u64::cast_signed);
    [
        ("split_pages", pages(row.split_pages), BeKnown),
        ("faulted_in_pages", pages(row.faulted_in_pages), BeKnown),
        ("swapped_in_pages", pages(row.swapped_in_pages), BeKnown),
        ("target_minflt", row.target_minflt, BeKnown),
        ("target_majflt", row.target_majflt, BeKnown),
        ("target_rss_kib", row.target_rss_kib, BeKnownOfSmall),
        ("target_pss_kib", row.target_pss_kib, BeKnownOfSmall),
        ("target_private_kib", row.target_private_kib, BeKnown),
        ("target_anon_huge_kib", row.target_anon_huge_kib, BeKnown),
        ("vma_change", row.vma_change, BeKnown),
        // Streams of before this column was added do not have it.
        ("target_vm_size_kib", row.target_vm_size_kib, NotBeOtherwise),
        ("partner_private_kib", row.partner_private_kib, BeKnown),
        (
            "soft_dirty_pages",
            pages(row.soft_dirty_pages),
            NotBeOtherwise,
        ),
        (
            "partner_changed_pages",
            pages(row.partner_changed_pages),
            NotBeOtherwise,
        ),
    ]
}
