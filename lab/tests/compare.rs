//! `compare`: what differs between two runs.

mod common;

mod seal;

use common::lab;
use seal::resealed;

const BENCH: &str = include_str!("data/bench.csv");
const PROBE: &str = include_str!("data/probe.csv");
const SLOW: &str = include_str!("data/slow.csv");

#[test]
fn a_file_is_the_same_as_itself() {
    for file in ["bench.csv", "published.csv", "probe.csv", "small.csv"] {
        let ran = lab(&["compare", "--threshold", "0", file, file], b"");
        assert_eq!(
            (ran.status, &*ran.stderr),
            (Some(0), ""),
            "{file}: {}",
            ran.stdout
        );
        assert!(ran.stdout.contains("\n  no change; "), "{}", ran.stdout);
        for word in ["| faster", "| slower", "| unresolved"] {
            assert!(!ran.stdout.contains(word), "{file}: {}", ran.stdout);
        }
    }
}

/// As the first process of a machine, probe switches on what its kinds need, and notes that: the
/// default streams of the matrix are of one machine.
#[test]
fn streams_of_one_machine_are_compared_whatever_probe_has_set_up() {
    for console in ["consoles/6.12-x86_64.log", "consoles/5.10-aarch64.log"] {
        let ran = lab(&["compare", console, console], b"");
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""), "{console}");
        assert!(ran.stdout.contains("\n  no change; "), "{}", ran.stdout);
        let both = "compared: 2 settings' split pages, ";
        assert!(ran.stdout.contains(both), "{}", ran.stdout);
        assert!(!ran.stdout.contains(" 0 answers"), "{}", ran.stdout);
    }
    // What probe does not switch on makes another machine all the same.
    let text = include_str!("data/consoles/6.12-x86_64.log");
    let bench = text.find("#aslr=2").unwrap();
    let other = format!("{}#aslr=0{}", &text[..bench], &text[bench + 7..]);
    let ran = lab(
        &["compare", "-", "consoles/6.12-x86_64.log"],
        other.as_bytes(),
    );
    assert_eq!(ran.status, Some(3), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("settings: aslr is '0' in "),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_change_of_split_pages_is_said_first_and_always_counts() {
    let ran = lab(&["compare", "slow.csv", "quick.csv"], b"");
    assert_eq!(ran.status, Some(4));
    assert_eq!(
        ran.stderr,
        "cowitness-lab: error: changed: 1 splits, 0 answers, 0 rates\n"
    );
    let change =
        "\n  changed: contiguous 64 KiB vmread: 100 % split in A, 0 % split in B\n  1 changed; ";
    let split = ran
        .stdout
        .find(change)
        .unwrap_or_else(|| panic!("{}", ran.stdout));
    let rates = ran.stdout.find("\nRates: ").unwrap();
    assert!(split < rates);
    assert!(
        ran.stdout
            .contains("4 faster, 0 slower, 0 same, 0 unresolved; "),
        "{}",
        ran.stdout
    );
    let row = "| contiguous | 64 KiB | cold | proc   | 2000    | 4000    | 2.00 | [2.00, 2.00] | faster  |";
    assert!(ran.stdout.contains(row), "{}", ran.stdout);
}

#[test]
fn an_answer_that_is_another_counts() {
    let ran = lab(&["compare", "probe.csv", "probe-refused.csv"], b"");
    assert_eq!(ran.status, Some(4));
    let want = "  changed: prot-none, page, proc: read in A, EIO in B\n  1 changed; compared: 0 \
                settings' split pages, 4 answers\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

/// Each time of proc is 1.3 times as long; split pages are as they were.
fn slower_proc() -> String {
    resealed(&timed(SLOW, 650_000))
}

/// Times of 500 us become `cold_ns`, those of the warm passes in proportion, and so the rates.
fn timed(text: &str, cold_ns: u64) -> String {
    let rate = |mib: u64, ns: u64| {
        let centi = (mib * 100_000_000_000 + ns / 2) / ns;
        format!("{}.{:02}", centi / 100, centi % 100)
    };
    let (warm_ns, pass) = (4 * cold_ns, cold_ns * 4 / 5);
    let rates = format!("{},{}", rate(1, cold_ns), rate(5, warm_ns));
    let times = format!(",{cold_ns},{warm_ns},{pass},{pass},{rates},");
    text.replace(",500000,2000000,400000,400000,2000.00,2500.00,", &times)
}

#[test]
fn the_threshold_makes_a_change_of_rate_a_failure() {
    let slower = slower_proc().replace("=1764439400", "=1764439401");
    let status = |threshold: &[&str]| {
        let arguments = [&["compare"], threshold, &["slow.csv", "-"]].concat();
        let ran = lab(&arguments, slower.as_bytes());
        assert!(
            ran.stdout
                .contains("0 faster, 2 slower, 2 same, 0 unresolved; "),
            "{}",
            ran.stdout
        );
        ran.status
    };
    assert_eq!(status(&[]), Some(0));
    assert_eq!(status(&["--threshold", "5"]), Some(4));
    assert_eq!(status(&["--threshold=40"]), Some(0));
}

/// What is not called faster or slower is beyond no threshold.
#[test]
fn what_noise_may_have_made_is_no_failure() {
    let slower = slower_proc().replace("=1764439400", "=1764439401");
    let ran = lab(
        &["compare", "--noise=50", "--threshold=5", "slow.csv", "-"],
        slower.as_bytes(),
    );
    assert!(
        ran.stdout.contains("0 faster, 0 slower, 4 same"),
        "{}",
        ran.stdout
    );
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
}

#[test]
fn the_labs_word_for_an_emulator_is_taken() {
    let guest = SLOW.replace("#command=", "#emulated=qemu-tcg\n#command=");
    let ran = lab(
        &["compare", "--allow-mismatch", "quick.csv", "-"],
        guest.as_bytes(),
    );
    assert!(
        ran.stdout.contains("Rates are not compared"),
        "{}",
        ran.stdout
    );
}

#[test]
fn sides_that_were_not_measured_alike_are_refused_and_what_differs_is_named() {
    let ran = lab(&["compare", "bench.csv", "larger.csv"], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert_eq!(
        ran.stderr,
        "cowitness-lab: error: mismatched settings: option_mb is '1' in A and '2' in B\n\
         cowitness-lab: hint: measure both alike, or say --allow-mismatch\n"
    );
    let ran = lab(
        &["compare", "--allow-mismatch", "bench.csv", "larger.csv"],
        b"",
    );
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    assert!(
        ran.stdout
            .contains("\ndiffers: option_mb is '1' in A and '2' in B\n"),
        "{}",
        ran.stdout
    );
    // One pair has no interval.
    assert!(
        ran.stdout.contains("| too few cases | unresolved |"),
        "{}",
        ran.stdout
    );

    let other = lab(&["compare", "bench.csv", "published.csv"], b"");
    assert_eq!(other.status, Some(3));
    for want in [
        "CPU is 'x86_64' in A and 'aarch64' in B",
        "kernel series is '6.1' in A and '6.17' in B",
    ] {
        assert!(other.stderr.contains(want), "{}", other.stderr);
    }
    let pages = BENCH.replace("x86_64,4096,", "x86_64,16384,");
    let pages = pages.replace("crc32=", "crc32=0");
    let damaged = lab(&["compare", "bench.csv", "-"], pages.as_bytes());
    assert_eq!((damaged.status, &*damaged.stdout), (Some(3), ""));
}

#[test]
fn a_side_is_one_machine() {
    let ran = lab(&["compare", "console.log", "bench.csv"], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert!(
        ran.stderr
            .contains("console.log, stream 1 and console.log, stream 2 are of different machines"),
        "{}",
        ran.stderr
    );
}

#[test]
fn sides_without_anything_in_common_are_no_comparison() {
    let ran = lab(&["compare", "bench.csv", "probe.csv"], b"");
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert!(ran.stderr.contains("nothing to compare"), "{}", ran.stderr);
}

#[test]
fn emulated_times_are_not_compared() {
    let emulated = SLOW.replace("#command=", "#hypervisor=TCGTCGTCGTCG\n#command=");
    let ran = lab(
        &[
            "compare",
            "--allow-mismatch",
            "--threshold=0",
            "quick.csv",
            "-",
        ],
        emulated.as_bytes(),
    );
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 splits, 0 answers, 0 rates"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.contains("Rates are not compared"),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_is_cut_is_said_on_standard_output() {
    let cut: Vec<&str> = SLOW.lines().take(11).collect();
    let ran = lab(
        &["compare", "--partial", "slow.csv", "-"],
        (cut.join("\n") + "\n").as_bytes(),
    );
    let want = "partial: B: standard input, stream 1: cut after 3 of 20 rows\n";
    assert!(ran.stdout.contains(want), "{}{}", ran.stdout, ran.stderr);
}

/// As the appliance writes them: bytes came, and the row is no measurement.
#[test]
fn wrong_bytes_are_another_answer_than_the_right_ones() {
    let right = "proc,page,4096,4096,,ok,pfn,1,0,,,,,,,,,,,,,,,,,ok";
    for (row, want) in [
        (
            "proc,page,4096,4096,,wrong,pfn,1,0,,,,,,,,,,,,,,,,,skipped:wrong-bytes",
            "read in A, wrong bytes in B",
        ),
        (
            "proc,page,4096,4096,,zero,pfn,1,0,,,,,,,,,,,,,,,,,skipped:false-zeros",
            "read in A, false-zeros in B",
        ),
        (
            "proc,page,4096,0,EIO,,pfn,1,0,,,,,,,,,,,,,,,,,errno:EIO",
            "read in A, EIO in B",
        ),
    ] {
        let other = changed(PROBE, right, row).replace("=1764439500", "=1764439501");
        let ran = lab(&["compare", "probe.csv", "-"], other.as_bytes());
        let want = format!("changed: prot-none, page, proc: {want}\n");
        assert!(ran.stdout.contains(&want), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.status, Some(4), "{row}");
    }
    let skipped = |line: &str| match line.contains(",vmread,") {
        true => line.replace(",,ok", ",,skipped:wrong-bytes"),
        false => line.to_owned(),
    };
    let lines: Vec<String> = SLOW.lines().map(skipped).collect();
    let wrong = resealed(&(lines.join("\n") + "\n")).replace("=17644394", "=17644395");
    assert!(wrong.contains("skipped:wrong-bytes"), "{wrong}");
    for (files, side) in [(["slow.csv", "-"], "B"), (["-", "slow.csv"], "A")] {
        let ran = lab(&["compare", files[0], files[1]], wrong.as_bytes());
        assert_eq!(ran.status, Some(4), "{}{}", ran.stdout, ran.stderr);
        let want = format!(" cases gave wrong bytes in {side}");
        assert!(ran.stdout.contains(&want), "{}", ran.stdout);
    }
}

/// Large folios and what is mapped around a fault make more or less of the same change; what was
/// split or swapped in is counted.
#[test]
fn how_much_was_faulted_in_is_no_semantics_and_how_much_was_split_is() {
    let row = |effects: &str| format!("vmread,cross,8192,4096,EFAULT,ok,pfn,16,{effects}");
    let known = |effects: &str| {
        let from = "vmread,cross,8192,4096,EFAULT,ok,pfn,1,1,,,,,,,,";
        changed(PROBE, from, &row(effects)).replace("=1764439500", "=1764439502")
    };
    let scratch = cowitness_lab::scratch::Scratch::new().unwrap();
    let before = scratch.path().join("before.csv");
    std::fs::write(&before, known("1,16,0,3,0,0,0,64,")).unwrap();
    for (effects, status, want) in [
        ("1,1,0,3,0,0,0,4,", 0, "not counted: hole, cross, vmread: "),
        ("1,0,0,3,0,0,0,4,", 4, "changed: hole, cross, vmread: "),
        ("2,16,0,3,0,0,0,64,", 4, "changed: hole, cross, vmread: "),
        ("1,16,0,3,0,0,0,-64,", 4, "changed: hole, cross, vmread: "),
    ] {
        let ran = lab(
            &["compare", before.to_str().unwrap(), "-"],
            known(effects)
                .replace("=1764439502", "=1764439503")
                .as_bytes(),
        );
        assert_eq!(ran.status, Some(status), "{effects}: {}", ran.stdout);
        assert!(ran.stdout.contains(want), "{effects}: {}", ran.stdout);
    }
}

/// Columns of `bench` beside split pages.
#[test]
fn a_side_effect_of_a_setting_counts() {
    let columns: Vec<&str> = SLOW
        .lines()
        .find(|line| line.starts_with("record,"))
        .unwrap()
        .split(',')
        .collect();
    for name in [
        "target_private_kib",
        "target_rss_kib",
        "target_pss_kib",
        "target_minflt",
        "target_majflt",
        "reader_minflt_warm",
    ] {
        let place = columns.iter().position(|column| *column == name).unwrap();
        let with = |value: &str| {
            let line = |line: &str| {
                let mut fields: Vec<&str> = line.split(',').collect();
                if line.starts_with("bench,") && line.contains(",proc,") {
                    // The label has a comma of its own, within quotes.
                    fields[place + 1] = value;
                }
                fields.join(",")
            };
            let lines: Vec<String> = SLOW.lines().map(line).collect();
            resealed(&(lines.join("\n") + "\n"))
        };
        let scratch = cowitness_lab::scratch::Scratch::new().unwrap();
        let before = scratch.path().join("before.csv");
        std::fs::write(&before, with("0")).unwrap();
        let ran = lab(
            &["compare", before.to_str().unwrap(), "-"],
            with("7").as_bytes(),
        );
        assert_eq!(ran.status, Some(4), "{}{}", ran.stdout, ran.stderr);
        let want = format!("proc: {name} unchanged in A, grew in ");
        assert!(ran.stdout.contains(&want), "{}", ran.stdout);
    }
}

/// `text` with one change, its checksum right, a moment later.
fn changed(text: &str, from: &str, to: &str) -> String {
    let other = text.replace(from, to);
    assert_ne!(other, text, "{from}");
    resealed(&other).replace("=17644394", "=17644395")
}

/// What nobody knows of a side is no change of it.
#[test]
fn what_is_unknown_is_not_compared_and_listed() {
    let lost = changed(SLOW, "500.00,3125.00,pfn", "500.00,3125.00,none");
    let ran = lab(&["compare", "slow.csv", "-"], lost.as_bytes());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let want = "  no change; compared: 1 settings' split pages, 0 answers\n  not compared: \
                contiguous 64 KiB vmread: split pages unknown in B\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);

    let skipped = PROBE.replace(
        "proc,page,4096,4096,,ok,pfn,1,0,,,,,,,,,,,,,,,,,ok",
        "proc,page,4096,,,,none,,,,,,,,,,,,,,,,,,,skipped:no-proc",
    );
    let skipped = resealed(&skipped).replace("=1764439500", "=1764439501");
    let ran = lab(&["compare", "probe.csv", "-"], skipped.as_bytes());
    assert_eq!(ran.status, Some(0), "{}{}", ran.stdout, ran.stderr);
    let want = "  not compared: prot-none, page, proc: unknown in B\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

#[test]
fn no_line_is_dropped_in_silence() {
    let cold = changed(
        SLOW,
        ",5,2000000,1600000,320000,320000,500.00,3125.00,",
        ",0,2000000,,,,500.00,,",
    );
    let ran = lab(&["compare", "slow.csv", "-"], cold.as_bytes());
    let want = "  not compared: contiguous 64 KiB warm vmread: no rate in B\n";
    assert!(ran.stdout.contains(want), "{}{}", ran.stdout, ran.stderr);

    let fewer: Vec<&str> = PROBE
        .lines()
        .filter(|line| !line.contains("hole,proc"))
        .collect();
    let fewer = resealed(&(fewer.join("\n") + "\n")).replace("=1764439500", "=1764439501");
    for (files, side) in [(["probe.csv", "-"], "A"), (["-", "probe.csv"], "B")] {
        let ran = lab(&["compare", files[0], files[1]], fewer.as_bytes());
        let want = format!("  not compared: hole, cross, proc only in {side}\n");
        assert!(ran.stdout.contains(&want), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn side_effects_of_which_one_side_does_not_tell_are_no_change() {
    let known = PROBE.replace(
        "proc,page,4096,4096,,ok,pfn,1,0,,",
        "proc,page,4096,4096,,ok,pfn,1,0,3,",
    );
    let known = resealed(&known).replace("=1764439500", "=1764439501");
    let ran = lab(&["compare", "probe.csv", "-"], known.as_bytes());
    assert_eq!(ran.status, Some(0), "{}", ran.stdout);
    let want = "  not compared: prot-none, page, proc: side effects F unknown in A\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
}

/// So many cold passes of 1 MiB by one reader, `ns` each and up to 4 % more; one in a hundred
/// takes twenty times as long.
fn quiet(cases: u64, ns: u64) -> String {
    let header = SLOW
        .lines()
        .find(|line| line.starts_with("record,"))
        .unwrap();
    let mut text = format!("#cowitness 1\n#command=bench\n#label=none\n#rows=0\n{header}\n");
    for case in 1..=cases {
        let longer = if case % 100 == 7 {
            2000
        } else {
            100 + case * 7919 % 5
        };
        let cold_ns = ns * longer / 100;
        let centi = (100_000_000_000 + cold_ns / 2) / cold_ns;
        text += &format!(
            "bench,,6.1.0,x86_64,4096,contiguous,small,,1,1048576,proc,65536,{case},1,1048576,0,\
             {cold_ns},,,,{}.{:02},,pfn,256,256,256,0,,,,,,,,,,,ok\n",
            centi / 100,
            centi % 100
        );
    }
    resealed(&(text + "#end rows=0 crc32=00000000\n"))
}

/// More cases tell more, not less, and rare outliers are no noise.
#[test]
fn half_the_speed_is_slower_however_many_cases_there_are() {
    for cases in [10, 1000] {
        let scratch = cowitness_lab::scratch::Scratch::new().unwrap();
        let before = scratch.path().join("before.csv");
        std::fs::write(&before, quiet(cases, 500_000)).unwrap();
        let before = before.to_str().unwrap();
        let after = |ns| lab(&["compare", before, "-"], quiet(cases, ns).as_bytes()).stdout;
        for (ns, want) in [
            (1_000_000, "\n0 faster, 1 slower, 0 same, 0 unresolved; "),
            (250_000, "\n1 faster, 0 slower, 0 same, 0 unresolved; "),
            (510_000, "\n0 faster, 0 slower, 1 same, 0 unresolved; "),
        ] {
            let found = after(ns);
            assert!(found.contains(want), "{cases} cases of {ns} ns: {found}");
        }
    }
}

#[test]
fn a_threshold_within_the_noise_is_said_to_be() {
    let said = "The threshold of 5 % lies within the noise: what counts has to be faster or \
                slower, beyond 10 %\n";
    for (threshold, wanted) in [("5", true), ("10", false), ("40", false)] {
        let ran = lab(
            &["compare", "--threshold", threshold, "slow.csv", "slow.csv"],
            b"",
        );
        assert_eq!(ran.stdout.contains(said), wanted, "{}", ran.stdout);
    }
}

/// A huge page of the target that is split, and what the two processes have alone.
#[test]
fn every_side_effect_of_a_probe_counts() {
    let columns: Vec<&str> = PROBE
        .lines()
        .find(|line| line.starts_with("record,"))
        .unwrap()
        .split(',')
        .collect();
    let row = PROBE
        .lines()
        .find(|line| line.contains("prot-none,proc,page,"))
        .unwrap();
    for (column, mark) in [
        ("target_anon_huge_kib", "H-2048"),
        ("target_private_kib", "U-2048"),
        ("target_pss_kib", "B-2048"),
        ("target_shared_dirty_kib", "E-2048"),
        ("partner_private_kib", "O-2048"),
        ("target_minflt", "m-2048"),
        ("target_majflt", "M-2048"),
        ("reader_minflt", "q2048"),
        ("reader_majflt", "Q2048"),
    ] {
        let place = columns.iter().position(|name| *name == column).unwrap();
        let with = |value: &str| {
            let mut fields: Vec<&str> = row.split(',').collect();
            // The label has a comma of its own, within quotes.
            let more = fields.len() - columns.len();
            fields[place + more] = value;
            resealed(&PROBE.replace(row, &fields.join(",")))
        };
        let count = mark.trim_start_matches(char::is_alphabetic);
        let scratch = cowitness_lab::scratch::Scratch::new().unwrap();
        let before = scratch.path().join("before.csv");
        std::fs::write(&before, with("0")).unwrap();
        let ran = lab(
            &["compare", before.to_str().unwrap(), "-"],
            with(count).as_bytes(),
        );
        assert_eq!(
            ran.status,
            Some(4),
            "{column}: {}{}",
            ran.stdout,
            ran.stderr
        );
        let want = format!("changed: prot-none, page, proc: read in A, read {mark} in B");
        assert!(ran.stdout.contains(&want), "{want}: {}", ran.stdout);
        let page = lab(&["report", "-o", "-", "-"], with(count).as_bytes()).stdout;
        assert!(
            page.contains(&format!(">{mark}<")) || page.contains(mark),
            "{column}"
        );
    }
}

/// Nothing proves that a machine is real, or emulated: times stand, and the doubt with them.
#[test]
fn times_that_may_be_emulated_are_doubted() {
    let said = "Nothing tells whether this machine is emulated; if it is, its times say nothing.";
    for note in [
        "#emulated=unreadable:EACCES\n",
        "#emulated=empty\n",
        "#emulated=absent\n#hypervisor=unknown:no instruction tells\n#devicetree=linux,dummy-virt\n",
    ] {
        let perhaps = SLOW.replace("#command=", &format!("{note}#command="));
        let perhaps = perhaps.replace("=17644394", "=17644395");
        let ran = lab(
            &["compare", "--allow-mismatch", "slow.csv", "-"],
            perhaps.as_bytes(),
        );
        let line = format!("\ndoubt: B: {said}\n| layout");
        assert!(ran.stdout.contains(&line), "{note}: {}", ran.stdout);
        let ran = lab(&["summary", "-"], perhaps.as_bytes());
        assert!(
            ran.stdout.starts_with(&format!("doubt: {said}\n")),
            "{note}"
        );
        assert!(ran.stdout.contains("Throughput"), "{note}: {}", ran.stdout);
    }
    let known = lab(&["compare", "slow.csv", "slow.csv"], b"");
    assert!(!known.stdout.contains("doubt"), "{}", known.stdout);
}

#[test]
fn what_makes_two_of_one_side_is_named_and_is_no_command() {
    let machine = "#kernel=6.1.0-test\n#thp_enabled=";
    let bench = BENCH.replace("#command=", &format!("{machine}always\n#command="));
    let probe = PROBE.replace("#command=", &format!("{machine}never\n#command="));
    let ran = lab(&["compare", "-", "bench.csv"], (bench + &probe).as_bytes());
    assert_eq!(ran.status, Some(3));
    let want = "thp_enabled is 'always' in the first and 'never' in the second";
    assert!(ran.stderr.contains(want), "{}", ran.stderr);
}

/// The child had written every page itself, as with `--exclusive all`.
#[test]
fn where_no_page_was_shared_there_is_nothing_to_split() {
    let line = |line: &str| {
        let none = line.replace(",pfn,256,256,256,0,", ",pfn,0,0,0,0,");
        none.replace(",pfn,256,256,0,256,", ",pfn,0,0,0,0,")
    };
    let lines: Vec<String> = SLOW.lines().map(line).collect();
    let alone = resealed(&(lines.join("\n") + "\n"));
    let ran = lab(&["summary", "-"], alone.as_bytes());
    let want = "  proc                none: no page was shared, in 10 cases\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
    let page = lab(&["report", "-o", "-", "-"], alone.as_bytes()).stdout;
    let want = "reading with proc and vmread could split nothing: no page was shared.";
    assert!(
        page.contains(want) && !page.contains("nobody knows"),
        "{page}"
    );
    let ran = lab(&["compare", "slow.csv", "-"], alone.as_bytes());
    assert_eq!(ran.status, Some(4), "{}", ran.stdout);
    let want = "proc: 0 % split in A, no page shared in B\n";
    assert!(ran.stdout.contains(want), "{}", ran.stdout);
    let scratch = cowitness_lab::scratch::Scratch::new().unwrap();
    let before = scratch.path().join("before.csv");
    std::fs::write(&before, &alone).unwrap();
    let again = alone.replace("=17644394", "=17644395");
    let ran = lab(
        &["compare", before.to_str().unwrap(), "-"],
        again.as_bytes(),
    );
    assert!(!ran.stdout.contains("unknown"), "{}", ran.stdout);
}
