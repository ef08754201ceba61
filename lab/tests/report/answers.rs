//! What `probe` was answered, and what its reads changed.

use super::seal::resealed;
use super::{PROBE, has, page, text};

#[test]
fn what_a_read_gave_and_changed_is_in_its_cell() {
    let html = page(&["probe.csv", "probe-refused.csv"], "");
    has(
        &text(&html),
        &[
            // Two streams of one machine that disagree.
            "prot-none private anonymous memory, written, then made PROT_NONE page one page 4 KiB read or EIO EFAULT",
            "cross from readable memory into it 4 KiB, EIO 4 KiB, EFAULT S",
            "S pages split: they were shared, and each is now a copy of its own",
        ],
    );
    assert!(!html.contains("m-W"), "a legend of what did not happen");
}

/// Bytes of something else are no bytes that were read, wherever they are told of.
#[test]
fn wrong_bytes_are_called_so_everywhere() {
    let wrong = resealed(&PROBE.replace("proc,page,4096,4096,,ok", "proc,page,4096,4096,,wrong"));
    let alone = page(&["-"], wrong.as_bytes());
    has(
        &text(&alone),
        &["a page that is PROT_NONE gives: wrong bytes by proc"],
    );
    has(&alone, &["<td class=\"a-wrong\">wrong bytes"]);
    let beside = page(&["-", "published.csv"], wrong.as_bytes());
    let (_, kernels) = beside.split_once("id=\"kernels\"").unwrap();
    has(kernels, &["<td class=\"a-wrong\">wrong bytes</td>"]);
    // One answer of several is enough.
    let again = wrong.replace("=1764439500", "=1764439501");
    let both = page(&["probe.csv", "-"], again.as_bytes());
    has(&text(&both), &["gives: read or wrong bytes by proc"]);
    has(&both, &["<td class=\"a-wrong\">4 KiB read or wrong bytes"]);
}

/// An empty column is no zero.
#[test]
fn side_effects_that_are_unknown_are_marked() {
    let none = text(&page(&["probe.csv"], ""));
    has(
        &none,
        &["Unknown of every read here: absent pages faulted into the target; pages swapped in;"],
    );
    assert!(!none.contains("EFAULT ?"), "{none}");
    // One row knows how many pages were faulted in: now the others' not knowing shows.
    let one = PROBE.replace(
        "proc,page,4096,4096,,ok,pfn,1,0,,",
        "proc,page,4096,4096,,ok,pfn,1,0,0,",
    );
    let html = page(&["-"], resealed(&one).as_bytes());
    let shown = text(&html);
    has(
        &shown,
        &[
            "page one page 4 KiB read EFAULT ? hole",
            "? some side effects are unknown here",
            "Unknown of every read here: pages swapped in;",
        ],
    );
    has(
        &html,
        &["title=\"unknown: absent pages faulted into the target\""],
    );
}

#[test]
fn every_kernel_that_was_only_probed_is_in_the_verdict() {
    let other = PROBE
        .replace("6.1.0-test", "7.3.2")
        .replace("proc,page,4096,4096,,ok", "proc,page,4096,,EIO,");
    let both = PROBE.to_owned() + &resealed(&other);
    has(
        &text(&page(&["-"], both.as_bytes())),
        &[
            "On Linux 6.1.0-test (x86_64, 4 KiB pages), a page that is PROT_NONE gives: read by proc",
            "; on Linux 7.3.2 (x86_64, 4 KiB pages), a page that is PROT_NONE gives: EIO by proc",
        ],
    );
}
