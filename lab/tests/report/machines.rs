//! Which streams are of one machine, and how machines are told apart in sentences.

use super::common::lab;
use super::seal::resealed;
use super::{BENCH, PROBE, has, page, text};

/// A stream of another kernel, whose vmread splits nothing if `spares` says so.
fn kernel(release: &str, spares: bool) -> String {
    let text = BENCH.replace("6.1.0-test", release);
    resealed(&if spares {
        text.replace(",pfn,256,256,0,256,", ",pfn,256,256,256,0,")
    } else {
        text
    })
}

#[test]
fn a_range_of_kernels_holds_for_all_in_between() {
    let all = ["5.10.1", "6.1.9", "7.3.2"].map(|release| kernel(release, true));
    let range = text(&page(&["-"], all.concat().as_bytes()));
    has(
        &range,
        &["On 3 machines, Linux 5.10.1 to 7.3.2, reading with"],
    );
    let between = all.concat() + &kernel("6.12.1", false);
    let listed = text(&page(&["-"], between.as_bytes()));
    assert!(!listed.contains("5.10.1 to 7.3.2"), "{listed}");
    has(
        &listed,
        &[
            "On Linux 5.10.1 (x86_64, 4 KiB pages), Linux 6.1.9 (x86_64, 4 KiB pages) and Linux \
             7.3.2 (x86_64, 4 KiB pages), reading with proc and vmread left",
            "; on Linux 6.12.1 (x86_64, 4 KiB pages), reading with proc left",
            // The large figures are of one machine, and say of which.
            "of shared pages split by vmread on Linux 5.10.1 (x86_64, 4 KiB pages)",
        ],
    );
}

/// One kernel twice: by the label, and by the setting that differs.
#[test]
fn runs_of_one_kernel_are_told_apart_in_every_sentence() {
    let noted =
        |text: &str, smt: &str| text.replace("#command=", &format!("#smt={smt}\n#command="));
    let (one, two) = (
        noted(BENCH, "on"),
        noted(&kernel("6.1.0-test", true), "off"),
    );
    let settings = page(&["-"], (one + &two).as_bytes());
    let kernel = "Linux 6.1.0-test (x86_64, 4 KiB pages)";
    let on = |mark: &str| format!("n {kernel} with {mark}, reading with proc");
    has(
        &text(&settings),
        &[
            &on("smt 'on'"),
            &on("smt 'off'"),
            &format!("split by vmread on {kernel} with smt 'on'"),
            &format!("memory on {kernel} with smt 'on', "),
            "rack 4, \"left\" (2): Linux 6.1.0-test (x86_64, 4 KiB pages), smt 'off'",
            "rack 4, \"left\" (2), smt 'off'",
        ],
    );
    let (rack, other) = ("\"rack 4, \"\"left\"\"\"", "idle");
    let two = self::kernel("6.1.0-test", true).replace(rack, other);
    let two = resealed(&two.replace("#label=rack 4, \"left\"", "#label=idle"));
    let labels = text(&page(&["-"], (BENCH.to_owned() + &two).as_bytes()));
    has(
        &labels,
        &[&on("label 'rack 4, \"left\"'"), &on("label 'idle'")],
    );
    // Of which the same is said they are one place.
    let two = resealed(
        &BENCH
            .replace(rack, other)
            .replace("#label=rack 4, \"left\"", "#label=idle"),
    );
    let alike = text(&page(&["-"], (BENCH.to_owned() + &two).as_bytes()));
    has(&alike, &[&format!("On {kernel}, reading with proc")]);
}

/// Two hosts in one file are two machines; what one command alone notes makes no second one.
#[test]
fn machines_are_told_apart_by_their_environment_and_not_by_their_file() {
    let again = include_str!("../data/again.csv");
    let with = |text: &str, notes: &str| text.replace("#command=", &format!("{notes}#command="));
    let runs = |text: String| {
        let ran = lab(&["report", "-o", "-", "-"], text.as_bytes());
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
        ran.stdout.contains("<select")
    };
    let (one, two) = ("#cpu_model=One\n", "#cpu_model=Two\n");
    assert!(runs(with(BENCH, one) + &with(again, two)));
    assert!(runs(with(BENCH, one) + &with(PROBE, two)));
    let own = "#cpu_model=One\n#binfmt_misc_entries=3\n#target_stopped=yes\n#clocksource=tsc\n";
    assert!(!runs(with(BENCH, one) + &with(PROBE, own)));
}

/// One row a kernel, although probe has switched on what its kinds need.
#[test]
fn bench_and_probe_of_one_console_are_one_machine() {
    let consoles = ["consoles/6.12-x86_64.log", "consoles/5.10-aarch64.log"];
    let html = page(&consoles, "");
    let rows = html.split("data-name=\"kernels\"").nth(1).unwrap();
    let rows = rows.split("</table>").next().unwrap();
    assert_eq!(rows.matches("<th scope=\"row\">").count(), 2, "{rows}");
    assert_eq!(html.matches("<option value=").count(), 2);
}

/// What is not known of the machine is on the checklist, and so is what only one stream says.
#[test]
fn the_checklist_has_what_is_unknown_and_every_streams_value() {
    let again = include_str!("../data/again.csv");
    let with = |text: &str, load: &str| {
        let notes = format!("#smt=unknown:EACCES\n#loadavg={load}\n#command=");
        text.replace("#command=", &notes)
    };
    let both = with(BENCH, "3.50 0 0") + &with(again, "7.25 0 0");
    let page = lab(&["report", "-o", "-", "-"], both.as_bytes()).stdout;
    assert!(page.contains("not known, so it may be as recommended or not"));
    assert!(page.contains("3.50 0 0; 7.25 0 0"));
}
