//! Times of machines that are emulated, or may be.

use super::{BENCH, has, page, section, text};

/// Emulated machines have no rate on the page; of one that may be, only if all may be.
#[test]
fn emulated_times_are_not_shown() {
    let emulated = BENCH.replace("#command=", "#hypervisor=TCGTCGTCGTCG\n#command=");
    let html = page(&["-"], emulated.as_bytes());
    has(&html, &["This machine is emulated, or may be"]);
    assert!(!html.contains("class=\"chart\"") && !text(&html).contains("MiB/s of 3125"));
    assert!(!text(&html).contains("times as fast"));

    let board = BENCH.replace("#command=", "#devicetree=linux,dummy-virt\n#command=");
    let alone = page(&["-"], board.as_bytes());
    has(
        &alone,
        &[
            "Nothing tells whether this machine is emulated",
            "class=\"chart\"",
        ],
    );
    let beside = text(&page(&["-", "published.csv"], board.as_bytes()));
    has(
        &beside,
        &[
            "This machine is emulated, or may be",
            "may be emulated 0 % 100 %",
        ],
    );
    assert!(!beside.contains("vmread 1.25× faster"), "{beside}");
}

/// On aarch64 only the lab's own word tells of an emulator, and it does in any stream.
#[test]
fn the_labs_word_for_an_emulator_is_taken() {
    let word = "#devicetree=linux,dummy-virt\n#emulated=qemu-tcg\n#command=";
    let guest = BENCH.replace("#command=", word);
    for files in [&["-"][..], &["-", "published.csv"]] {
        let html = page(files, guest.as_bytes());
        has(&html, &["This machine is emulated, or may be"]);
        assert!(!html.contains("may be emulated"), "{files:?}");
        assert!(!text(&html).contains("vmread 1.25× faster"), "{files:?}");
        assert_eq!(html.contains("class=\"chart\""), files.len() == 2);
    }
}

/// The same doubt wherever times stand.
#[test]
fn times_that_may_be_emulated_are_doubted() {
    let said = "Nothing tells whether this machine is emulated; if it is, its times say nothing.";
    for (rows, ids) in [
        (
            include_str!("../data/startup.csv"),
            &["startup", "verdict"][..],
        ),
        (include_str!("../data/audit.csv"), &["audit"]),
        (BENCH, &["throughput", "verdict"]),
    ] {
        let perhaps = rows.replace("#command=", "#emulated=unreadable:EACCES\n#command=");
        let html = page(&["-"], &perhaps);
        for id in ids {
            has(&section(&html, id), &[said]);
        }
        let html = page(&["-"], rows);
        assert!(!html.contains(said));
    }
}

#[test]
fn times_of_emulated_machines_are_not_shown() {
    let rows =
        include_str!("../data/startup.csv").replace("#command=", "#emulated=qemu-tcg\n#command=");
    let html = page(&["-"], &rows);
    let text = section(&html, "startup");
    has(&text, &["This machine is emulated, or may be"]);
    assert!(!html.contains("20000"), "{text}");
}
