//! Whether KSM has joined pages, of one process or of any.

use crate::proc::lines::complete;
use crate::proc::status;
use crate::sys::Errno;
use crate::sys::file::{Process, read_number, read_proc};

/// Whether KSM runs, its scans, and the joined pages that it knows of; 0, as long as it has never run.
fn counts() -> [Result<u64, Errno>; 3] {
    let files = [
        c"/sys/kernel/mm/ksm/run",
        c"/sys/kernel/mm/ksm/full_scans",
        c"/sys/kernel/mm/ksm/pages_shared",
    ];
    files.map(read_number)
}

const NEVER: [Result<u64, Errno>; 3] = [Ok(0); 3];

/// Whether KSM is not running and never has: nothing is joined, and no scan was counted. Unknown is
/// no.
#[must_use]
pub fn merging_was_never_used() -> bool {
    counts() == NEVER
}

/// Whether KSM has joined none of the target's pages: a pin takes a joined page apart even
/// where only one process maps it. Unknown is no.
///
/// `pages_shared` alone does not tell: of a joined page whose processes have ended, a child of one
/// may hold the last copy, which counts nowhere until KSM comes by. So KSM must never have joined
/// any: it does so in its second scan at the earliest (mm/ksm.c, `cmp_and_merge_page`: a page must
/// have been seen with the same checksum), and only taking all of them apart sets the count of
/// scans back to 0 (`unmerge_and_remove_all_rmap_items`). Or no VMA of the target is mergeable, as
/// /proc/PID/ksm_stat says where it has the line (`ksm_process_mergeable`): joined pages are in such
/// VMAs only, also those that came with a fork, and MADV_UNMERGEABLE takes them apart. Else
/// smaps_rollup counts the target's own, where it has the field (Linux 6.7), for a walk through its
/// page table; `ksm_merging_pages` does not count those that came with a fork.
#[must_use]
pub fn nothing_is_joined(pid: i32) -> bool {
    let counts = counts();
    if counts == NEVER {
        return true;
    }
    let mut buffer = [0; 4096];
    let stat = read_proc(Process::Id(pid), "ksm_stat", &mut buffer);
    if stat.is_ok_and(|text| complete(text).any(|line| line == b"ksm_mergeable: no")) {
        return true;
    }
    let rollup = read_proc(Process::Id(pid), "smaps_rollup", &mut buffer);
    if rollup.is_ok_and(|text| status::kib_field(text, b"KSM") == Some(0)) {
        return true;
    }
    // No sysfs here, or a kernel without KSM, which has not the process's own count either.
    let own = read_proc(Process::Id(pid), "ksm_merging_pages", &mut buffer).map(drop);
    counts == [Err(Errno::NOENT); 3] && own == Err(Errno::NOENT)
}
