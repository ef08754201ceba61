//! `report`: the page that comes of rows. What it looks like is for `tests/browser`. The figures
//! wanted of records beside `bench` and `probe` are those of `data/make`, where they are round.

mod answers;
#[path = "../common/mod.rs"]
mod common;
mod emulated;
mod figures;
mod files;
mod machines;
mod markup;
mod memory;
mod records;
#[path = "../seal/mod.rs"]
mod seal;
mod sharing;
mod startup;

use common::lab;

const BENCH: &str = include_str!("../data/bench.csv");
const PROBE: &str = include_str!("../data/probe.csv");

/// The page on standard output, which nothing is warned of.
fn page(files: &[&str], input: impl AsRef<[u8]>) -> String {
    let arguments = [&["report", "-o", "-"], files].concat();
    let ran = lab(&arguments, input.as_ref());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{files:?}");
    ran.stdout
}

/// The text between the tags, white space made single.
fn text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, after)) = rest.split_once('<') {
        text += before;
        text.push(' ');
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    let text = text.replace("&#34;", "\"").replace("&#39;", "'");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a section, white space made single.
fn section(html: &str, id: &str) -> String {
    let (_, rest) = html
        .split_once(&format!("<section id=\"{id}\""))
        .unwrap_or_else(|| panic!("no section {id}"));
    text(rest.split("</section>").next().unwrap())
}

/// The ids of a page's sections, in its order.
fn sections(html: &str) -> Vec<&str> {
    let starts = html.split("<section id=\"").skip(1);
    starts.map(|rest| rest.split('"').next().unwrap()).collect()
}

fn has(text: &str, wanted: &[&str]) {
    // The page's style is nothing to read in a failure.
    let (_, body) = text.split_once("Skip to the report").unwrap_or(("", text));
    for want in wanted {
        assert!(text.contains(want), "{want}\nnot in\n{body}");
    }
}

#[test]
fn a_section_is_there_when_its_rows_are() {
    let bench = page(&["bench.csv"], "");
    assert_eq!(
        sections(&bench),
        ["verdict", "throughput", "copy-on-write", "method"]
    );
    let probe = page(&["probe.csv"], "");
    assert_eq!(sections(&probe), ["verdict", "semantics", "method"]);
    has(
        &text(&probe),
        &["a page that is PROT_NONE gives: read by proc and EFAULT by vmread"],
    );
    let several = page(&["bench.csv", "published.csv"], "");
    let all = [
        "verdict",
        "throughput",
        "copy-on-write",
        "kernels",
        "method",
    ];
    assert_eq!(sections(&several), all);
}

#[test]
fn blocks_sort_by_their_bytes_and_a_run_with_charts_is_shown_first() {
    let emulated = BENCH.replace("#command=", "#emulated=qemu-tcg\n#command=");
    let html = page(&["-", "published.csv"], emulated.as_bytes());
    has(
        &html,
        &[
            "<td data-v=\"65536\">64 KiB</td>",
            "<option value=\"0\">",
            "<option value=\"1\" selected>",
        ],
    );
}
