//! Sections of the page for records beside `bench` and `probe`. The figures wanted are those of
//! `data/make`, where they are round.

mod common;
mod seal;

use common::lab;
use seal::resealed;

fn page(files: &[&str], input: &str) -> String {
    let arguments = [&["report", "-o", "-"], files].concat();
    let ran = lab(&arguments, input.as_bytes());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{files:?}");
    ran.stdout
}

/// The text of a section, white space made single.
fn section(html: &str, id: &str) -> String {
    let (_, rest) = html
        .split_once(&format!("<section id=\"{id}\""))
        .unwrap_or_else(|| panic!("no section {id}"));
    let mut rest = rest.split("</section>").next().unwrap();
    let mut text = String::new();
    while let Some((before, after)) = rest.split_once('<') {
        text += before;
        text.push(' ');
        rest = after.split_once('>').map_or("", |(_, rest)| rest);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn has(text: &str, wanted: &[&str]) {
    for want in wanted {
        assert!(text.contains(want), "{want}\nnot in\n{text}");
    }
}

const FILES: [&str; 8] = [
    "bench.csv",
    "survey.csv",
    "audit.csv",
    "memmap.csv",
    "sharing.csv",
    "startup.csv",
    "slope.csv",
    "sizes.csv",
];

#[test]
fn every_record_has_its_section_and_machines_stand_together() {
    let html = page(&FILES, "");
    let ids: Vec<&str> = html
        .split("<section id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let wanted = [
        "verdict",
        "throughput",
        "copy-on-write",
        "survey",
        "audit",
        "memmap",
        "sharing",
        "startup",
        "sizes",
        "method",
    ];
    assert_eq!(ids, wanted);
    assert!(!html.contains("<select"), "one machine");
    for id in &wanted[3..9] {
        assert!(html.contains(&format!("href=\"#{id}\"")), "{id}");
    }
}

/// What startup makes of its options is no state of the machine.
#[test]
fn startup_stands_with_the_same_machines_others() {
    let own = "#rounds=20\n#rounds_in_a_block=6\n#compared=programs\n#command=";
    let startup = include_str!("data/startup.csv").replace("#command=", own);
    let html = page(&["bench.csv", "audit.csv", "-"], &startup);
    assert!(!html.contains("<select"), "one machine");
}

/// One or two sentences, of what says most; each section has its own.
#[test]
fn the_verdict_is_short_and_sections_say_their_own() {
    let html = page(&FILES, "");
    assert_eq!(html.matches("<p class=\"verdict\">").count(), 2);
    let text = section(&html, "verdict");
    has(&text, &["reading with proc left every shared page shared"]);
    for (id, says) in [
        ("survey", "Reading process 4711 would split 0 with proc"),
        ("audit", "Reading process 4711 with vmread split 250 of 250"),
        ("memmap", "Touching 64 MiB of heap"),
        ("sharing", "Of the arms of sharing, "),
        ("startup", "Each further object takes 5000 ns until exec"),
        ("sizes", "private closures are "),
    ] {
        has(&section(&html, id), &[says]);
        assert!(!text.contains(says), "{text}");
        let alone = page(
            &[FILES
                .iter()
                .find(|file| {
                    file.contains(match id {
                        "startup" => "slope",
                        id => id,
                    })
                })
                .unwrap()],
            "",
        );
        assert!(alone.matches("<p class=\"verdict\">").count() <= 2, "{id}");
        let verdict = section(&alone, "verdict");
        has(&verdict, &[says]);
        // Files are of no kernel.
        let kernel = "Linux 6.1.0-test (x86_64, 4 KiB pages): ";
        assert_eq!(verdict.contains(kernel), id != "sizes", "{verdict}");
    }
}

/// `sharing.csv` with other fits.
fn fits(from: &str, to: &str) -> String {
    let rows = include_str!("data/sharing.csv");
    assert!(rows.contains(from), "{from}");
    resealed(&rows.replace(from, to))
}

#[test]
fn a_curve_that_does_not_fit_makes_no_headline() {
    let rows = include_str!("data/sharing.csv");
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
        section(&page(&["-"], &fits(elf, &fields.join(","))), "verdict")
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

/// The same doubt wherever times stand.
#[test]
fn times_that_may_be_emulated_are_doubted() {
    let said = "Nothing tells whether this machine is emulated; if it is, its times say nothing.";
    for (rows, ids) in [
        (
            include_str!("data/startup.csv"),
            &["startup", "verdict"][..],
        ),
        (include_str!("data/audit.csv"), &["audit"]),
        (include_str!("data/bench.csv"), &["throughput", "verdict"]),
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
        &["elf takes 400 KiB for each process and 4800 KiB once for all"],
    );
    assert!(html.matches("<polyline").count() == 2 && html.contains("<use class=\"k-1\""));
}

/// One N makes no curve: the points are there, and nothing else.
#[test]
fn one_number_of_processes_makes_no_fit() {
    let rows = include_str!("data/sharing-unfitted.csv");
    let alone: String = rows
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("sharing,") || line.contains(",elf,1,"))
        .collect();
    let html = page(&["-"], &resealed(&alone));
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
    let whole = include_str!("data/startup.csv");
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
    let rows = include_str!("data/startup.csv");
    let cold = rows.replace(
        ",b,direct,,520000,802500,0,80,0,0,ok,warm",
        ",b,direct,,520000,802500,0,80,0,0,ok,cold",
    );
    assert_ne!(cold, rows);
    let text = section(&page(&["-"], &resealed(&cold)), "startup");
    has(&text, &["b direct, cold 4 520000"]);
    // Its 16 other starts are 530000 to 560000, four of each.
    has(&text, &["b direct 16 537500", "b until exec 16 +20000"]);
    assert!(!text.contains("b, cold until exec"), "{text}");
}

#[test]
fn startup_without_a_null_arm_resolves_nothing() {
    let rows = include_str!("data/startup.csv");
    let bare: String = rows
        .split_inclusive('\n')
        .filter(|line| !line.contains(",null,"))
        .collect();
    let text = section(&page(&["-"], &resealed(&bare)), "startup");
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
    let rows = include_str!("data/slope.csv");
    let few: String = rows
        .split_inclusive('\n')
        .filter(|line| !line.contains(",n=8,") && !line.contains(",n=16,"))
        .collect();
    let text = section(&page(&["-"], &resealed(&few)), "startup");
    has(
        &text,
        &[
            "until exec: no slope; it takes at least 4 different numbers of objects, and there are 3.",
        ],
    );
}

#[test]
fn times_of_emulated_machines_are_not_shown() {
    let rows =
        include_str!("data/startup.csv").replace("#command=", "#emulated=qemu-tcg\n#command=");
    let html = page(&["-"], &rows);
    let text = section(&html, "startup");
    has(&text, &["This machine is emulated, or may be"]);
    assert!(!html.contains("20000"), "{text}");
}

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
    let moved = include_str!("data/survey.csv").replace(
        ",[total],500,50,250,200,0,3,0,250,1000,,ok",
        ",[total],500,50,250,200,0,3,0,250,1000,,skipped:mappings-changed",
    );
    let html = page(&["-"], &resealed(&moved));
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
    let rows = include_str!("data/audit.csv").replace("#command=", "#emulated=qemu-tcg\n#command=");
    let text = section(&page(&["-"], &rows), "audit");
    has(
        &text,
        &["This machine is emulated", "vmread 4711 cold 250 250 250"],
    );
}

#[test]
fn everything_from_these_records_is_escaped() {
    let html = page(&["markup-others.csv"], "");
    for bad in ["<script>alert", "<img", "<b>6.1", "\"'>"] {
        assert_eq!(html.matches(bad).count(), 0, "{bad}");
    }
    assert_eq!(html.matches("<script").count(), 1);
    for id in ["sharing", "startup", "sizes", "memmap", "survey", "audit"] {
        has(
            &section(&html, id),
            &["&#60;script&#62;alert(1)&#60;/script&#62;"],
        );
    }
}

/// Columns that bound each other, in each record.
#[test]
fn rows_that_contradict_themselves_are_refused() {
    for (file, from, to, problem) in [
        (
            "sharing",
            ",5300,5200,",
            ",5300,5301,",
            "5301 KiB of PSS of 5300 of RSS",
        ),
        (
            "sharing",
            ",elf,1,1,1,",
            ",elf,1,1,2,",
            "process 2 of 1 in repetition 1",
        ),
        (
            "sharing",
            ",12.000,1.000,",
            ",12.000,1.001,",
            "a share of 1001/1000 of the variance",
        ),
        (
            "startup",
            ",540000,840000,",
            ",540000,539999,",
            "540000 ns until exec of 539999 in all",
        ),
        (
            "sizes",
            "programs,2,10,5,",
            "programs,2,10,11,",
            "11 distinct objects of 10 objects",
        ),
        (
            "memmap",
            ",67108864,16384,",
            ",67108864,16385,",
            "67108864 bytes are 16384 pages, not 16385",
        ),
        (
            "survey",
            "[heap],300,50,250,",
            "[heap],300,50,301,",
            "301 shared anonymous of 300 pages present",
        ),
    ] {
        let path = format!("{}/tests/data/{file}.csv", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(from), "{file}: {from}");
        let odd = resealed(&text.replacen(from, to, 1));
        for command in [
            &["report", "-o", "-", "-"][..],
            &["summary", "-"],
            &["compare", "-", "bench.csv"],
        ] {
            let ran = lab(command, odd.as_bytes());
            assert_eq!(
                (ran.status, &*ran.stdout),
                (Some(3), ""),
                "{file}: {}",
                ran.stderr
            );
            has(&ran.stderr, &[problem]);
        }
    }
}

/// Beside rows of bench other records do no harm, and a file of theirs alone is told from them.
#[test]
fn summary_and_compare_pass_over_what_they_do_not_know() {
    let bench = include_str!("data/bench.csv");
    for file in &FILES[1..] {
        let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let both = format!("{text}{bench}");
        let summary = lab(&["summary", "-"], both.as_bytes());
        assert_eq!(
            summary.stdout,
            include_str!("data/bench.txt"),
            "{file}: {}",
            summary.stderr
        );
        let compared = lab(&["compare", "-", "slow.csv"], both.as_bytes());
        let plain = lab(&["compare", "-", "slow.csv"], bench.as_bytes());
        assert_eq!(
            (compared.status, &compared.stderr),
            (plain.status, &plain.stderr),
            "{file}"
        );
        let told = |line: &&str| !line.starts_with("  not compared: rows of ");
        let rest: Vec<&str> = compared.stdout.lines().filter(told).collect();
        assert_eq!(rest, plain.stdout.lines().collect::<Vec<_>>(), "{file}");
        // Files are no machine's, and no side of a comparison.
        let passed_over = compared.stdout.lines().count() > rest.len();
        assert_eq!(passed_over, *file != "sizes.csv", "{file}");
        let alone = lab(&["summary", "-"], text.as_bytes());
        assert_eq!((alone.status, &*alone.stdout), (Some(3), ""), "{file}");
    }
}
