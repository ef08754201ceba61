//! Rows of `audit` are read, and refused where they contradict themselves.

mod seal;

use cowitness::emit::audit_row::AuditRow;
use cowitness_lab::stream::{StreamReader, Tolerance};
use seal::resealed;

/// A pass of 100 pages, of which 40 were shared and 30 were split.
const ONE: &str = "\
#cowitness 1
#rows=1
record,label,kernel,arch,page_bytes,pid,method,block_bytes,repeat,position,bytes_per_pass,cold_ns,\
warm_ns,cold_mib_s,warm_mib_s,evidence,tracked_pages,shared_before,shared_after,split_pages,\
target_minflt,target_majflt,reader_minflt_cold,reader_minflt_warm,target_rss_kib,target_pss_kib,\
target_shared_dirty_kib,target_private_kib,predicted_split_pages,raced_pages,faulted_in_pages,\
swapped_in_pages,vmas,vma_change,readable_bytes,unread_bytes,unread_runs,errno,left_out_bytes,status,\
split_exclusive_pages,unexplained_faults,target_anon_huge_kib,left_swapped_pages,left_guard_pages,\
left_served_pages,left_unmapped_pages,left_not_in_memory_pages,predicted_faulted_in_pages,\
left_file_not_opened_pages,pin_faults,left_marked_pages,split_at_least_pages,split_at_most_pages,\
target_vm_size_kib
audit,,6.18,x86_64,4096,7,vmread,1048576,1,1,405504,1000,,386.72,,pfn,40,40,8,30,0,0,30,,0,60,-120,\
120,30,2,0,0,3,0,409600,4096,1,EFAULT,0,ok,0,0,0,,,,,,0,,,,29,31,0
#end rows=1 crc32=00000000
";

/// What is wrong with the first row, or its split pages.
fn read(text: &str) -> Result<Option<u64>, String> {
    let text = resealed(text);
    let mut reader = StreamReader::new("a.csv", text.as_bytes(), Tolerance::Whole);
    let mut stream = reader.next_stream().unwrap().unwrap();
    let row = stream.next_row().unwrap().unwrap();
    let row = row.parse::<AuditRow<'_>>();
    row.map(|row| row.split_pages)
        .map_err(|error| error.to_string())
}

#[test]
fn a_sound_row_is_read() {
    assert_eq!(read(ONE), Ok(Some(30)));
    // A pass that was cut short has not come to every byte.
    assert_eq!(
        read(
            &ONE.replace(",405504,", ",4096,")
                .replace(",0,ok", ",0,errno:ESRCH")
        ),
        Ok(Some(30))
    );
}

#[test]
fn what_cannot_be_is_refused() {
    for (is, would_be, why) in [
        (
            ",40,40,8,30,",
            ",40,40,11,30,",
            "41 pages split or still shared of 40 tracked",
        ),
        (
            ",1,1,405504,",
            ",1,1,409600,",
            "413696 bytes read or not to be read of 409600 readable",
        ),
        (
            ",1,1,405504,",
            ",1,1,4096,",
            "8192 bytes read or not to be read make no 409600",
        ),
        (
            ",1000,,386.72,",
            ",1000,1000,386.72,",
            "a pass that is both cold and warm",
        ),
        (
            ",1000,,386.72,,",
            ",,1000,,386.72,",
            "a first pass that is warm",
        ),
        (
            ",29,31,0",
            ",31,31,0",
            "31 pages split at least of 30 split",
        ),
        (",29,31,0", ",29,29,0", "30 pages split of 29 split at most"),
    ] {
        let said = read(&ONE.replace(is, would_be)).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}
