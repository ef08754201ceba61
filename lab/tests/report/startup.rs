//! The section of `startup`: two programs, and lines over numbers of objects.

use super::seal::resealed;
use super::{has, page, section};

/// What startup makes of its options is no state of the machine.
#[test]
fn startup_stands_with_the_same_machines_others() {
    let own = "#rounds=20\n#rounds_in_a_block=6\n#compared=programs\n#command=";
    let startup = include_str!("../data/startup.csv").replace("#command=", own);
    let html = page(&["bench.csv", "audit.csv", "-"], &startup);
    assert!(!html.contains("<select"), "one machine");
}

#[test]
fn startup_is_resolved_beyond_the_null_arm_alone() {
    let html = page(&["startup.csv"], "");
    let text = section(&html, "startup");
    has(
        &text,
        &[
            "b until exec 20 +20000 [+20000, +20000] resolved",
            "null until exec 20 +1000 [+1000, +1000] null",
            // All of the interval is above 0, and it is not three times the null's.
            "b until the end 20 +2500 [+2500, +2500] unresolved",
            "1 of 61 starts is no measurement: skipped: timeout (1).",
            "a direct 20 510000 520000 530000 810000 820000 830000 80",
        ],
    );
    has(
        &section(&html, "verdict"),
        &[
            "b takes 20000 ns [20000, 20000] longer than a until exec; no difference between b and a is resolved until the end",
        ],
    );
}

/// A run that `startup` refused afterwards, or that was killed, has rows and no result.
#[test]
fn startup_without_a_result_has_no_verdict() {
    const WHY: &str = "No result follows: the run was refused or cut.";
    for (file, resolved) in [
        (
            "startup",
            "b until exec 20 +20000 [+20000, +20000] resolved",
        ),
        ("slope", "until exec 5 5000 100000 1 0"),
    ] {
        let whole = std::fs::read_to_string(format!("tests/data/{file}.csv")).unwrap();
        let second = whole.rfind("#cowitness 1\n").unwrap();
        let html = page(&["-"], &whole[..second]);
        let text = section(&html, "startup");
        has(&text, &[WHY]);
        assert!(!text.contains(resolved), "{text}");
        has(
            &section(&html, "verdict"),
            &["In startup, no result follows: the run was refused or cut."],
        );
        assert!(!section(&page(&["-"], &whole), "startup").contains(WHY));
    }
    let whole = include_str!("../data/startup.csv");
    let second = whole.rfind("#cowitness 1\n").unwrap();
    let text = section(&page(&["-"], &whole[..second]), "startup");
    has(
        &text,
        &["b until exec 20 +20000 [+20000, +20000] no result"],
    );
}

#[test]
fn startup_names_programs_and_says_when_only_sums_are_there() {
    let text = section(&page(&["startup.csv"], ""), "startup");
    has(&text, &["a /bin/a b /bin/b --fast"]);
    let text = section(&page(&["startup-sums.csv"], ""), "startup");
    has(
        &text,
        &["Only sums of startup are here; the rows of the starts they are made of are missing."],
    );
}

/// Cold starts are never mixed with warm ones.
#[test]
fn cold_and_warm_starts_are_apart() {
    let rows = include_str!("../data/startup.csv");
    let cold = rows.replace(
        ",b,direct,,520000,802500,0,80,0,0,ok,warm",
        ",b,direct,,520000,802500,0,80,0,0,ok,cold",
    );
    assert_ne!(cold, rows);
    let text = section(&page(&["-"], resealed(&cold)), "startup");
    has(&text, &["b direct, cold 4 520000"]);
    // Its 16 other starts are 530000 to 560000, four of each.
    has(&text, &["b direct 16 537500", "b until exec 16 +20000"]);
    assert!(!text.contains("b, cold until exec"), "{text}");
}

#[test]
fn startup_without_a_null_arm_resolves_nothing() {
    let rows = include_str!("../data/startup.csv");
    let bare: String = rows
        .split_inclusive('\n')
        .filter(|line| !line.contains(",null,"))
        .collect();
    let text = section(&page(&["-"], resealed(&bare)), "startup");
    has(
        &text,
        &[
            "b until exec 20 +20000 [+20000, +20000] unresolved",
            "There is no null arm",
        ],
    );
    assert!(!text.contains("] resolved "), "{text}");
}

#[test]
fn a_slope_is_a_line_with_its_control() {
    let html = page(&["slope.csv"], "");
    has(
        &section(&html, "startup"),
        &[
            "until exec 5 5000 100000 1 0",
            "until the end 5 5000 200000 1 0",
            "until exec 16 3 180000 180000.0 0.0",
            "until exec, the static control takes 90000 ns.",
        ],
    );
    has(
        &section(&html, "verdict"),
        &["Each further object takes 5000 ns until exec (R² 1)."],
    );
    let rows = include_str!("../data/slope.csv");
    let few: String = rows
        .split_inclusive('\n')
        .filter(|line| !line.contains(",n=8,") && !line.contains(",n=16,"))
        .collect();
    let text = section(&page(&["-"], resealed(&few)), "startup");
    has(
        &text,
        &[
            "until exec: no slope; it takes at least 4 different numbers of objects, and there are 3.",
        ],
    );
}
