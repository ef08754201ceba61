//! The sections of `sizes`, `memmap`, `survey` and `audit`.

use super::seal::resealed;
use super::{has, page, section};

#[test]
fn sizes_have_crossovers_that_last() {
    let text = section(&page(&["sizes.csv"], ""), "sizes");
    has(
        &text,
        &[
            "store private R = 2",
            "store, symbols private R = 3",
            "chunks private R = 2",
            "chunks store R = 3",
            "chunks store, symbols R = 1",
            "12 60 15 12000000 4400000 4960000 3900000",
            "cowitness-lab sizes --label=programs",
        ],
    );
}

#[test]
fn memmap_counts_stand_together_where_the_same_was_asked() {
    let text = section(&page(&["memmap.csv"], ""), "memmap");
    has(
        &text,
        &[
            "heap none 64 MiB 16384 2 16384 to 16385 1.00 0 65536 0 1 madvise 64 KiB",
            "mmap-anon hugepage 64 MiB 16384 1 32 512.00 0 65536 65536 1",
            // The same size, and not the same allocation.
            "heap --brk none 64 MiB 16384 1 16384 1.00",
            "mmap-file /srv/a none 32 MiB 8192 1 512 16.00",
            "mmap-file /srv/b, c none 32 MiB 8192 1 256 32.00",
            "1 of 8 allocations is no measurement: failed: ENOSPC (1).",
        ],
    );
    // The one command that takes no `=`.
    has(
        &section(&page(&["memmap.csv"], ""), "method"),
        &["cowitness memmap --mode heap"],
    );
}

#[test]
fn a_survey_says_what_would_be_split() {
    let html = page(&["survey.csv"], "");
    let text = section(&html, "survey");
    has(
        &text,
        &[
            "proc 0 of 500 vmread 250 of 500 hybrid unknown",
            "[heap] rw-p 300 50 250 0 0 3 0 250 1000 5600-5600000",
            "[vsyscall] --xp ffff-ffff000 skipped: not-user-memory",
        ],
    );
    has(
        &section(&html, "verdict"),
        &[
            "Reading process 4711 would split 0 with proc and 250 with vmread, of 500 pages present.",
        ],
    );
    let moved = include_str!("../data/survey.csv").replace(
        ",[total],500,50,250,200,0,3,0,250,1000,,ok",
        ",[total],500,50,250,200,0,3,0,250,1000,,skipped:mappings-changed",
    );
    let html = page(&["-"], resealed(&moved));
    has(
        &section(&html, "survey"),
        &["The sum does not hold: skipped: mappings-changed."],
    );
    has(
        &section(&html, "verdict"),
        &["What readers would split in process 4711 is not known."],
    );
}

#[test]
fn an_audit_stands_beside_what_was_expected() {
    let html = page(&["audit.csv"], "");
    has(
        &section(&html, "audit"),
        &[
            "vmread, process 4711 250 of 250",
            "hybrid, process 4711 unknown",
            "vmread 4711 cold 400.00 250 250 250 0 0 0 +0 +500 +1000 2 MiB 4 KiB 0 B EIO",
            "vmread 4711 warm 1 7000.00 0 0 0",
            "1 of 4 passes is no measurement: skipped: process-ended (1).",
        ],
    );
    has(
        &section(&html, "verdict"),
        &["Reading process 4711 with vmread split 250 of 250 shared pages; 250 were expected."],
    );
    let rows =
        include_str!("../data/audit.csv").replace("#command=", "#emulated=qemu-tcg\n#command=");
    let text = section(&page(&["-"], &rows), "audit");
    has(
        &text,
        &["This machine is emulated", "vmread 4711 cold 250 250 250"],
    );
}
