//! `memmap` in two kernels, one with pages of 16 KiB: what it counts there, by its lines and
//! by its rows.

use super::help::{becomes, temporary};
use std::fs;

/// The words: the same allocation as lines and as a row, then the others as rows.
const WORDS: &str = "memmap --mode heap --advise nohugepage -q \
    then memmap --mode heap --advise nohugepage --csv -q \
    then memmap --mode stack --csv -q \
    then memmap --mode fault-walk --mb 16 --csv -q";

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn two_kernels_charge_a_fault_for_each_page() {
    for (kernel, page) in [("5.10-aarch64", 4096), ("6.12-aarch64-16k", 16384)] {
        let out = temporary();
        let mut arguments = vec!["--kernel", kernel, "--"];
        arguments.extend(WORDS.split_ascii_whitespace());
        becomes(&out, &arguments, 0, "pass", "");
        let read = |end: &str| fs::read_to_string(out.path().join(format!("{kernel}.{end}")));
        let (text, rows) = (read("txt").unwrap(), read("csv").unwrap());
        let pages = (64 << 20) / page;
        let head = format!("memmap: mode=heap bytes=67108864 pages={pages}\n");
        assert!(text.contains(&head), "{text}");
        let faults = format!("memmap: faults minor={} major=0\n", pages + 1);
        assert!(text.contains(&faults), "{text}");
        let counted: Vec<(&str, u64)> = rows
            .lines()
            .filter(|line| line.starts_with("memmap,"))
            .map(|line| line.split(',').collect::<Vec<_>>())
            // Columns as METHOD.md has them: mode, and minor faults.
            .map(|fields| (fields[5], fields[10].parse().unwrap()))
            .collect();
        let frame = (4 << 20) / page;
        assert_eq!(counted[0], ("heap", pages + 1), "{rows}");
        assert!(
            counted[1].0 == "stack" && (frame..=frame + 1).contains(&counted[1].1),
            "{rows}"
        );
        // One for each 64 KiB, and one more if the mapping begins between two of them.
        assert!(
            counted[2].0 == "fault-walk" && (256..=257).contains(&counted[2].1),
            "{rows}"
        );
        assert_eq!(counted.len(), 3, "{rows}");
    }
}
