//! The record of `probe`: one kind of memory, one reader, one operation.

use super::record::Status;
use crate::record;

/// Reasons for the `status` column that are no loss: this machine, as it is, has no answer to
/// that question.
pub mod reason {
    /// This kernel, or this CPU, has no such kind of memory.
    pub const NO_SUCH_KIND: &str = "no-such-kind-here";
    /// The kernel could give it, and did not: memory is short, or in pieces, or something else
    /// lies there.
    pub const NOT_GIVEN: &str = "kernel-did-not-give-it";
    /// Something has to be set up first, which `--setup` does.
    pub const NEEDS_SETUP: &str = "needs-setup";
    /// The kind, or the proof of its state, takes more rights.
    pub const NEEDS_PRIVILEGE: &str = "needs-privilege";
    /// This kernel does not show what would prove the state.
    pub const CANNOT_BE_PROVED: &str = "cannot-be-proved";
    /// The read was asleep for a second, or had not returned after a minute, and was killed.
    pub const BLOCKED: &str = "blocked";
    /// `kcore`: the page is not in memory.
    pub const NOT_PRESENT: &str = "page-not-present";
    /// `map-files`: no file is behind the mapping.
    pub const NO_FILE: &str = "no-file-behind-it";
    /// `map-files`: the page is a copy that the file does not have.
    pub const NOT_THE_FILES: &str = "page-is-not-the-files";
    /// `hybrid`: reading it would change something.
    pub const LEFT_UNREAD: &str = "left-unread";
    /// `kcore`: zeros came, and are not what lies there: the page is not in the kernel's
    /// direct map (memfd_secret; fs/proc/kcore.c gives zeros for what it cannot copy).
    pub const FALSE_ZEROS: &str = "false-zeros";
    /// A page that nobody shared lies in another frame now: copied, or moved by the kernel.
    pub const PAGES_MOVED: &str = "pages-moved";
    /// Dirty pages became clean where they lie: the kernel has written them back meanwhile.
    pub const WRITTEN_BACK: &str = "pages-written-back";
    /// All that are no loss.
    pub const NO_LOSS: [&str; 11] = [
        FALSE_ZEROS,
        LEFT_UNREAD,
        NOT_PRESENT,
        NO_FILE,
        NOT_THE_FILES,
        NO_SUCH_KIND,
        NOT_GIVEN,
        NEEDS_SETUP,
        NEEDS_PRIVILEGE,
        CANNOT_BE_PROVED,
        BLOCKED,
    ];
    /// The kernel has no such reader: a loss, but for the readers in [`OPTIONAL`].
    pub const NOT_HERE: &str = "not-in-this-kernel";
    /// The reader may not be used here: likewise.
    pub const NOT_PERMITTED: &str = "not-permitted";
    /// Readers that many machines lack, or allow to root alone.
    pub const OPTIONAL: [&str; 2] = ["kcore", "map-files"];
}

/// Whether a reader's row of this status leaves a question open that should have been answered.
#[must_use]
pub fn is_loss(method: &str, status: Status<'_>) -> bool {
    match status {
        Status::Ok => false,
        Status::Skipped(reason::NOT_HERE | reason::NOT_PERMITTED) => {
            !reason::OPTIONAL.contains(&method)
        }
        Status::Skipped(why) => !reason::NO_LOSS.contains(&why),
        Status::Errno(_) | Status::Short(_) => true,
    }
}

record! {
    /// One read of one range in a fresh fork, and everything it changed.
    ///
    /// `target_*` are after-minus-before, taken from the child. An empty field was not
    /// or could not be known; an errno in `errno` is an answer, not a failure.
    pub struct ProbeRow<'a> = "probe" {
        /// What `--label` said.
        label: &'a str,
        /// `uname -r`.
        kernel: &'a str,
        /// `uname -m`.
        arch: &'a str,
        /// Bytes in a page.
        page_bytes: u64,
        /// The kind of memory that was read.
        kind: &'a str,
        /// The reader; `none` is the control, which reads nothing.
        method: &'a str,
        /// `page` (within the kind), `cross` (starts readable, runs into it) or `whole`.
        op: &'a str,
        /// Bytes asked for.
        requested_bytes: u64,
        /// Bytes that came; empty for the control and where nothing was read.
        returned_bytes: Option<u64>,
        /// What the read said where it could go no further; empty if it said nothing.
        errno: &'a str,
        /// Of the bytes that came: `ok` (as written), `zero`, `wrong`, or empty.
        content: &'a str,
        /// How sharing was decided: `pfn`, `exclusive` or `none`.
        evidence: &'a str,
        /// Pages of the range whose frame parent and child shared before.
        tracked_pages: Option<u64>,
        /// Tracked pages whose frame now differs.
        split_pages: Option<u64>,
        /// Pages that were absent in the child and are present now.
        faulted_in_pages: Option<u64>,
        /// Pages that were swapped out in the child and are present now.
        swapped_in_pages: Option<u64>,
        /// Minor faults charged to the child.
        target_minflt: Option<i64>,
        /// Major faults charged to the child.
        target_majflt: Option<i64>,
        /// Minor faults charged to the tool.
        reader_minflt: Option<u64>,
        /// Major faults charged to the tool.
        reader_majflt: Option<u64>,
        /// Rss.
        target_rss_kib: Option<i64>,
        /// Pss.
        target_pss_kib: Option<i64>,
        /// Private_Clean plus Private_Dirty (USS).
        target_private_kib: Option<i64>,
        /// Shared_Dirty.
        target_shared_dirty_kib: Option<i64>,
        /// AnonHugePages.
        target_anon_huge_kib: Option<i64>,
        /// Referenced.
        target_referenced_kib: Option<i64>,
        /// Pages of the range that became soft-dirty.
        soft_dirty_pages: Option<u64>,
        /// VMAs; one that grew is none more: see the last column.
        vma_change: Option<i64>,
        /// Pages of the range whose entry in the parent's page table changed its frame.
        partner_changed_pages: Option<u64>,
        /// Private_Clean plus Private_Dirty of the parent.
        partner_private_kib: Option<i64>,
        /// Whether the question was answered.
        status: Status<'a>,
        /// VmSize of the child, all of it: what its mappings grew by, populated or not.
        target_vm_size_kib: Option<i64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on, copied from the interface document, not from here.
    const INTERFACE: &str = "record,label,kernel,arch,page_bytes,kind,method,op,requested_bytes,\
        returned_bytes,errno,content,evidence,tracked_pages,split_pages,faulted_in_pages,\
        swapped_in_pages,target_minflt,target_majflt,reader_minflt,reader_majflt,target_rss_kib,\
        target_pss_kib,target_private_kib,target_shared_dirty_kib,target_anon_huge_kib,\
        target_referenced_kib,soft_dirty_pages,vma_change,partner_changed_pages,\
        partner_private_kib,status,target_vm_size_kib";

    #[test]
    fn columns_are_the_interface() {
        assert!(
            INTERFACE
                .split(',')
                .skip(1)
                .eq(ProbeRow::COLUMNS.iter().copied())
        );
    }
}
