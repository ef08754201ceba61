//! The record of `survey`: one VMA of a live process, or all of them together.

use super::record::Status;
use crate::record;

record! {
    /// What one VMA holds, and what each reader would split in it. Nothing was read but
    /// the page table.
    ///
    /// An empty field was not or could not be known.
    pub struct SurveyRow<'a> = "survey" {
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
        /// First address, hexadecimal; empty in the total.
        start: &'a str,
        /// First address behind it, hexadecimal; empty in the total.
        end: &'a str,
        /// As in /proc/PID/maps, `rwxp`; empty in the total.
        perms: &'a str,
        /// As in /proc/PID/maps, cut to 256 bytes; `[total]` in the last row.
        name: &'a str,
        /// Pages that are mapped.
        present_pages: Option<u64>,
        /// Of these, anonymous and mapped by nobody else.
        exclusive_pages: Option<u64>,
        /// Of these, anonymous and perhaps mapped by others; the zero page is not among them.
        shared_anon_pages: Option<u64>,
        /// Of these, of a file or of shared anonymous memory.
        file_pages: Option<u64>,
        /// Pages that are in swap, those of shared memory among them.
        swapped_pages: Option<u64>,
        /// Pages that were never touched or are not mapped now.
        absent_pages: Option<u64>,
        /// Pages that `proc` would split.
        proc_split_pages: Option<u64>,
        /// Pages that `vmread` would split.
        vmread_split_pages: Option<u64>,
        /// Memory that this would take.
        vmread_extra_kib: Option<u64>,
        /// Pages that `hybrid` would split.
        hybrid_split_pages: Option<u64>,
        /// Whether the VMA was looked at.
        status: Status<'a>,
        /// Absent and swapped-out pages that `proc` would bring in, at most.
        proc_faulted_pages: Option<u64>,
        /// The same of `vmread`.
        vmread_faulted_pages: Option<u64>,
        /// The same of `hybrid`.
        hybrid_faulted_pages: Option<u64>,
        /// Pages of guard regions, which are neither swapped out nor absent.
        guard_pages: Option<u64>,
        /// KiB that `proc` and `vmread` would bring in, at most.
        faulted_kib: Option<u64>,
        /// The reader to take, in the total.
        advice: &'a str,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on, copied from the interface document, not from here.
    const INTERFACE: &str = "record,label,kernel,arch,page_bytes,pid,start,end,perms,name,\
        present_pages,exclusive_pages,shared_anon_pages,file_pages,swapped_pages,absent_pages,\
        proc_split_pages,vmread_split_pages,vmread_extra_kib,hybrid_split_pages,status,\
        proc_faulted_pages,vmread_faulted_pages,hybrid_faulted_pages,\
        guard_pages,faulted_kib,advice";

    #[test]
    fn columns_are_the_interface() {
        assert!(
            INTERFACE
                .split(',')
                .skip(1)
                .eq(SurveyRow::COLUMNS.iter().copied())
        );
    }
}
