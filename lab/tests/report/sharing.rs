//! The section of `sharing`, and the fits it shows.

use super::seal::resealed;
use super::{has, page, section};

/// `sharing.csv` with other fits.
fn fits(from: &str, to: &str) -> String {
    let rows = include_str!("../data/sharing.csv");
    assert!(rows.contains(from), "{from}");
    resealed(&rows.replace(from, to))
}

#[test]
fn a_curve_that_does_not_fit_makes_no_headline() {
    let rows = include_str!("../data/sharing.csv");
    let elf = rows
        .lines()
        .find(|line| line.starts_with("sharing-fit,") && line.contains(",elf,"));
    let elf = elf.unwrap();
    let columns: Vec<&str> = rows
        .lines()
        .find(|line| line.starts_with("record,") && line.contains(",b_over_a,"))
        .unwrap()
        .split(',')
        .collect();
    let with = |column: &str, value: &str| {
        let place = columns.iter().position(|name| *name == column).unwrap();
        let mut fields: Vec<&str> = elf.split(',').collect();
        // The label has a comma of its own, within quotes.
        let more = fields.len() - columns.len();
        fields[place + more] = value;
        section(&page(&["-"], fits(elf, &fields.join(","))), "verdict")
    };
    for (column, value, why) in [
        ("r2", "0.612", "no curve fits (R² 0.612)"),
        (
            "a_kb",
            "-120.000",
            "the curve that fits has negative memory",
        ),
        ("b_kb", "-1.000", "the curve that fits has negative memory"),
        ("verdict", "invalid", "the run is invalid"),
        ("r2", "", "nothing tells how well a curve fits"),
    ] {
        let text = with(column, value);
        has(&text, &[&format!("what elf takes is not known: {why}")]);
        assert!(!text.contains("elf (shared) takes"), "{text}");
    }
}

#[test]
fn sharing_shows_the_fit_that_came_with_it() {
    let text = section(&page(&["sharing.csv"], ""), "sharing");
    has(
        &text,
        &[
            "elf shared 400 4800 12 1 0 400 4800 0 200",
            "native copied-anon 5200 16 0.003 0.85 0 1 2600",
            "elf 8 16 1000 1000 1000 1000.0 0.0",
            "native: the fit explains 85.0 % of the variance; below 90 % it should not be used.",
            "Up to 2 other processes map the same files: they take a share, too, and b is a lower bound.",
            "1 of 61 processes is no measurement: skipped: not-at-the-barrier (1).",
        ],
    );
    assert!(!text.contains("Fitted here"), "{text}");
}

#[test]
fn sharing_without_a_fit_is_fitted_and_says_so() {
    let html = page(&["sharing-unfitted.csv"], "");
    let text = section(&html, "sharing");
    has(
        &text,
        &[
            "elf fitted here 400 4800 12 1 0 400 4800 200",
            "native fitted here 5200 16 0.003 1 0 5200 16 2600",
            "Fitted here, by least squares over the medians, as the rows came without a fit: elf, native.",
        ],
    );
    has(
        &section(&html, "verdict"),
        &["elf (fitted here) takes 400 KiB for each process and 4800 KiB once for all"],
    );
    assert!(html.matches("<polyline").count() == 2 && html.contains("<use class=\"k-1\""));
}

/// One N makes no curve: the points are there, and nothing else.
#[test]
fn one_number_of_processes_makes_no_fit() {
    let rows = include_str!("../data/sharing-unfitted.csv");
    let alone: String = rows
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("sharing,") || line.contains(",elf,1,"))
        .collect();
    let html = page(&["-"], resealed(&alone));
    let text = section(&html, "sharing");
    has(
        &text,
        &[
            "elf: no fit; it takes two different N.",
            "elf 1 2 5200 5200 5200",
        ],
    );
    assert!(
        !html.contains("<polyline") && !text.contains("fitted here"),
        "{text}"
    );
}
