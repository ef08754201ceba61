//! Rates and shares of split pages, in headlines, sentences and tables.

use super::seal::resealed;
use super::{BENCH, has, page, text};

#[test]
fn the_published_figures_come_out_as_the_published_headlines() {
    let text = text(&page(&["published.csv"], ""));
    has(
        &text,
        &[
            "On Linux 6.17.0-1018-oracle (aarch64, 4 KiB pages), reading with proc left every \
             shared page shared; reading with vmread gave the target a copy of its own of every \
             page that fork had shared.",
            "of shared pages split by proc 0 %",
            "of shared pages split by vmread 100 %",
            "faster cold read with proc at 256 KiB, contiguous 3.9×",
            "faster warm read with vmread at 256 KiB, contiguous +29 %",
        ],
    );
}

#[test]
fn figures_are_the_summarys() {
    let text = text(&page(&["bench.csv", "again.csv"], ""));
    has(
        &text,
        &[
            "20 of 20 cases ok",
            "vmread 1.25× faster than proc [1.25, 1.25]",
            "proc 4.00× faster than vmread [4.00, 4.00]",
            "contiguous 64 KiB cold vmread 10 500.00 500.00 500.00 500.00 500.00 500.00 0",
            "0 of 2560 pages",
            "cowitness bench --mb=1 '--label=rack 4, \"left\"'",
        ],
    );
}

/// Rows that nobody looked behind show no share, and a case that cannot be is no loss.
#[test]
fn shares_need_evidence_and_cases_that_apply() {
    let blind = resealed(&BENCH.replace(",pfn,", ",none,"));
    let shown = text(&page(&["-"], blind.as_bytes()));
    has(
        &shown,
        &["of shared pages split by vmread unknown (6 of 6 cases lost)"],
    );
    assert!(
        !shown.contains("100 %") && !shown.contains("unknown %"),
        "{shown}"
    );

    let mut rows = 0;
    let cannot: String = BENCH
        .split_inclusive('\n')
        .map(|line| {
            rows += usize::from(line.contains(",vmread,"));
            if line.contains(",vmread,") && rows > 4 {
                line.replace(",ok\n", ",skipped:segments-are-not-whole-huge-pages\n")
            } else {
                line.to_owned()
            }
        })
        .collect();
    let shown = text(&page(&["-"], resealed(&cannot).as_bytes()));
    has(
        &shown,
        &["10 of 12 cases ok, 2 do not apply", "split by vmread 100 %"],
    );
    assert!(!shown.contains("lost"), "{shown}");
}

/// Tables have figures as they are; drawings and sentences round them.
#[test]
fn tables_have_exact_rates() {
    let html = page(&["bench.csv"], "");
    has(&html, &[">2000.00</td>"]);
}
