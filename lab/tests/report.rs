//! `report`: the page that comes of rows. What it looks like is for `tests/browser`.

mod common;

mod seal;

use common::{Ran, lab};
use flate2::Compression;
use flate2::write::GzEncoder;
use seal::resealed;
use std::io::Write;

const BENCH: &str = include_str!("data/bench.csv");
const PROBE: &str = include_str!("data/probe.csv");

/// The page on standard output, which nothing is warned of.
fn page(files: &[&str], input: &[u8]) -> String {
    let arguments = [&["report", "-o", "-"], files].concat();
    let ran = lab(&arguments, input);
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

fn has(text: &str, wanted: &[&str]) {
    // The page's style is nothing to read in a failure.
    let (_, body) = text.split_once("Skip to the report").unwrap_or(("", text));
    for want in wanted {
        assert!(text.contains(want), "{want}\nnot in\n{body}");
    }
}

#[test]
fn the_published_figures_come_out_as_the_published_headlines() {
    let text = text(&page(&["published.csv"], b""));
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
fn a_section_is_there_when_its_rows_are() {
    let ids = |html: &str| -> Vec<String> {
        let sections = html.split("<section id=\"").skip(1);
        sections
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect()
    };
    let bench = page(&["bench.csv"], b"");
    assert_eq!(
        ids(&bench),
        ["verdict", "throughput", "copy-on-write", "method"]
    );
    let probe = page(&["probe.csv"], b"");
    assert_eq!(ids(&probe), ["verdict", "semantics", "method"]);
    has(
        &text(&probe),
        &["a page that is PROT_NONE gives: read by proc and EFAULT by vmread"],
    );
    let several = page(&["bench.csv", "published.csv"], b"");
    let all = [
        "verdict",
        "throughput",
        "copy-on-write",
        "kernels",
        "method",
    ];
    assert_eq!(ids(&several), all);
}

#[test]
fn figures_are_the_summarys() {
    let text = text(&page(&["bench.csv", "again.csv"], b""));
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

#[test]
fn what_a_read_gave_and_changed_is_in_its_cell() {
    let html = page(&["probe.csv", "probe-refused.csv"], b"");
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

/// No name in a file may become markup.
#[test]
fn everything_from_a_file_is_escaped() {
    let html = page(&["markup.csv"], b"");
    for bad in [
        "<script>alert",
        "<img",
        "<b>6.1",
        "<i>",
        "<u>",
        "\"'>",
        "&amp;amp;<",
    ] {
        let count = html.matches(bad).count();
        assert_eq!(count, 0, "{bad}");
    }
    assert_eq!(html.matches("<script").count(), 1);
    has(&html, &["&#60;script&#62;alert(1)&#60;/script&#62;"]);
}

#[test]
fn the_page_asks_for_nothing() {
    let html = page(&["bench.csv", "probe.csv"], b"");
    for bad in [
        "http:",
        "https:",
        "@import",
        " src=",
        "srcset",
        "<link rel=\"stylesheet",
    ] {
        assert!(!html.contains(bad), "{bad}");
    }
    let urls = html.split("url(").skip(1);
    let links = html.split("href=\"").skip(1);
    for target in urls.chain(links) {
        assert!(
            target.starts_with('#') || target.starts_with("data:,\""),
            "{target:.60}"
        );
    }
    has(
        &html,
        &["default-src &#39;none&#39;; style-src &#39;sha256-"],
    );
}

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

#[test]
fn an_input_is_not_written_over() {
    let folder = std::env::temp_dir().join(format!("cowitness-over-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let [file, link] = ["self.csv", "link.csv"].map(|name| folder.join(name));
    std::fs::write(&file, BENCH).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let over = [&file, &link].map(|out| {
        let ran = lab(
            &[
                "report",
                file.to_str().unwrap(),
                "-o",
                out.to_str().unwrap(),
            ],
            b"",
        );
        (ran.status, ran.stderr)
    });
    let kept = std::fs::read_to_string(&file).unwrap();
    let out = folder.join("page.html");
    let ran = lab(
        &[
            "report",
            file.to_str().unwrap(),
            "-o",
            out.to_str().unwrap(),
        ],
        b"",
    );
    let left = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(kept, BENCH);
    for (status, stderr) in over {
        assert_eq!(status, Some(2), "{stderr}");
        has(
            &stderr,
            &["would be written over its input", "hint: name another file"],
        );
    }
    assert_eq!((ran.status, left), (Some(0), 3), "{}", ran.stderr);
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn packed_inputs_are_unpacked() {
    let plain = page(&["-"], BENCH.as_bytes());
    assert_eq!(page(&["-"], &packed(BENCH)), plain);
    assert_eq!(page(&["-"], &packed(&BENCH.replace('\n', "\r\n"))), plain);
    // Two members one after the other are one file.
    let (head, tail) = BENCH.split_at(500);
    assert_eq!(page(&["-"], &[packed(head), packed(tail)].concat()), plain);
    let summary = lab(&["summary", "-"], &packed(BENCH));
    assert_eq!(summary.stdout, include_str!("data/bench.txt"));
}

#[test]
fn packed_inputs_that_are_damaged_are_refused() {
    let whole = packed(BENCH);
    for keep in [whole.len() - 9, whole.len() / 2, 12] {
        let ran = lab(&["report", "-o", "-", "-"], &whole[..keep]);
        assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("error: standard input"),
            "{}",
            ran.stderr
        );
    }
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 0x55;
    let ran = lab(&["report", "-o", "-", "-"], &damaged);
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""), "{}", ran.stderr);
    // What was cut is taken when asked for, and the page says so.
    let ran = lab(
        &["report", "--partial", "-o", "-", "-"],
        &whole[..whole.len() - 60],
    );
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("warning"), "{}", ran.stderr);
    has(&ran.stdout, &["Partial: something is missing"]);
}

#[test]
fn a_console_log_is_as_good_as_a_file() {
    let text = text(&page(&["console.log"], b""));
    has(
        &text,
        &[
            "Linux 6.1.0-test",
            "Linux 6.18.44",
            "too few pairs for an interval",
        ],
    );
}

#[test]
fn nothing_is_written_of_an_input_that_is_refused() {
    let out = std::env::temp_dir().join(format!("cowitness-report-{}.html", std::process::id()));
    let cut = &BENCH.as_bytes()[..BENCH.len() - 20];
    let ran = lab(&["report", "-o", out.to_str().unwrap(), "-"], cut);
    assert_eq!(
        (ran.status, out.exists()),
        (Some(3), false),
        "{}",
        ran.stderr
    );
    let ran = lab(&["report", "-o", out.to_str().unwrap(), "bench.csv"], b"");
    let written = std::fs::read_to_string(&out);
    let _ = std::fs::remove_file(&out);
    let quiet = Ran {
        status: Some(0),
        stdout: String::new(),
        stderr: String::new(),
    };
    assert_eq!(ran, quiet);
    assert_eq!(written.unwrap(), page(&["bench.csv"], b""));
    let twice = lab(&["report", "-o", "-", "bench.csv", "bench.csv"], b"");
    assert_eq!((twice.status, &*twice.stdout), (Some(3), ""));
}

/// The table that lies beside a matrix's streams is no stream, and `out/*.csv` names it, too.
#[test]
fn the_matrix_table_is_passed_over() {
    let table = b"record,machine,kernel\nmatrix,6.1-x86_64,6.1.0\n";
    let ran = lab(&["report", "-o", "-", "-", "bench.csv"], table);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("passed over\n"), "{}", ran.stderr);
    assert_eq!(ran.stdout, page(&["bench.csv"], b""));
}

#[test]
fn a_stream_that_is_cut_before_its_first_row_makes_the_page_partial() {
    let head: Vec<&str> = PROBE.lines().take(6).collect();
    let input = head.join("\n") + "\n";
    let ran = lab(
        &["report", "--partial", "-o", "-", "bench.csv", "-"],
        input.as_bytes(),
    );
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    has(
        &text(&ran.stdout),
        &[
            "Partial: something is missing",
            "standard input, stream 1: cut after 0 of 5 rows",
        ],
    );
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

/// An empty column is no zero.
#[test]
fn side_effects_that_are_unknown_are_marked() {
    let none = text(&page(&["probe.csv"], b""));
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

/// What a row's name hides is shown, and a long one fills no screen.
#[test]
fn hidden_characters_and_long_names_do_no_harm() {
    let odd = BENCH
        .replace("6.1.0-test", "6.1\u{202e}\u{7}x")
        .replace(",contiguous,", ",conti\u{1b}guous,")
        .replace("\"rack 4, \"\"left\"\"\"", &"l".repeat(3000))
        .replace("rack 4, \"left\"", &"l".repeat(3000));
    let odd = resealed(&odd);
    for files in [&["-"][..], &["-", "published.csv"]] {
        let html = page(files, odd.as_bytes());
        let hidden = |c: char| c != '\n' && c.is_control() || c == '\u{202e}';
        assert!(!html.contains(hidden), "{files:?}");
        has(&html, &["6.1\\u{202e}\\u{7}x", "conti\\u{1b}guous"]);
        let (head, _) = html.split_once("<section id=\"throughput\"").unwrap();
        assert!(!head.contains(&"l".repeat(61)), "{files:?}");
    }
}

#[test]
fn a_page_keeps_its_mode_and_is_not_written_through_a_link_to_nothing() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let scratch = cowitness_lab::scratch::Scratch::new().unwrap();
    let page = scratch.path().join("page.html");
    std::fs::write(&page, "old").unwrap();
    std::fs::set_permissions(&page, std::fs::Permissions::from_mode(0o640)).unwrap();
    let ran = lab(&["report", "bench.csv", "-o", page.to_str().unwrap()], b"");
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!"));
    let mode = std::fs::metadata(&page).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    let link = scratch.path().join("link.html");
    symlink("nowhere/page.html", &link).unwrap();
    let ran = lab(&["report", "bench.csv", "-o", link.to_str().unwrap()], b"");
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("is a link to nothing"),
        "{}",
        ran.stderr
    );
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 2);
}

/// Two hosts in one file are two machines; what one command alone notes makes no second one.
#[test]
fn machines_are_told_apart_by_their_environment_and_not_by_their_file() {
    let bench = include_str!("data/bench.csv");
    let again = include_str!("data/again.csv");
    let probe = include_str!("data/probe.csv");
    let with = |text: &str, notes: &str| text.replace("#command=", &format!("{notes}#command="));
    let runs = |text: String| {
        let ran = lab(&["report", "-o", "-", "-"], text.as_bytes());
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
        ran.stdout.contains("<select")
    };
    let (one, two) = ("#cpu_model=One\n", "#cpu_model=Two\n");
    assert!(runs(with(bench, one) + &with(again, two)));
    assert!(runs(with(bench, one) + &with(probe, two)));
    let own = "#cpu_model=One\n#binfmt_misc_entries=3\n#target_stopped=yes\n#clocksource=tsc\n";
    assert!(!runs(with(bench, one) + &with(probe, own)));
}

/// One row a kernel, although probe has switched on what its kinds need.
#[test]
fn bench_and_probe_of_one_console_are_one_machine() {
    let consoles = ["consoles/6.12-x86_64.log", "consoles/5.10-aarch64.log"];
    let html = page(&consoles, b"");
    let rows = html.split("data-name=\"kernels\"").nth(1).unwrap();
    let rows = rows.split("</table>").next().unwrap();
    assert_eq!(rows.matches("<th scope=\"row\">").count(), 2, "{rows}");
    assert_eq!(html.matches("<option value=").count(), 2);
}

/// What is not known of the machine is on the checklist, and so is what only one stream says.
#[test]
fn the_checklist_has_what_is_unknown_and_every_streams_value() {
    let bench = include_str!("data/bench.csv");
    let again = include_str!("data/again.csv");
    let with = |text: &str, load: &str| {
        let notes = format!("#smt=unknown:EACCES\n#loadavg={load}\n#command=");
        text.replace("#command=", &notes)
    };
    let both = with(bench, "3.50 0 0") + &with(again, "7.25 0 0");
    let page = lab(&["report", "-o", "-", "-"], both.as_bytes()).stdout;
    assert!(page.contains("not known, so it may be as recommended or not"));
    assert!(page.contains("3.50 0 0; 7.25 0 0"));
}

/// Tables have figures as they are; drawings and sentences round them.
#[test]
fn tables_have_exact_rates() {
    let html = page(&["bench.csv"], b"");
    has(&html, &[">2000.00</td>"]);
}
