//! Inputs that cannot be trusted or read: the exact line, the hint, the exit status.

mod common;
mod seal;

use common::lab;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness_lab::stream::{StreamReader, Tolerance};
use seal::resealed;

const BENCH: &str = include_str!("data/bench.csv");
const SMALL: &str = include_str!("data/small.csv");

const MORE_MAPPED: &str = "survey writes more rows than it announced if the process maps more meanwhile (cowitness ended with status 3): \
     stop the process, and survey it again; else the stream was damaged";
const DAMAGED: &str =
    "the stream was damaged, or other output was mixed in: measure or copy it again";
const CUT: &str = "measure or copy it again; --partial takes the whole rows that are there";
const NEWER: &str = "use the cowitness-lab that belongs to the cowitness which wrote it";
const EDITED: &str =
    "the file was edited or comes from another version: use it as cowitness wrote it";

/// `small.csv` with the first `from` replaced.
fn small(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    SMALL.replacen(from, to, 1)
}

fn refused(arguments: &[&str], input: &[u8], status: i32, problem: &str, hint: &str) {
    let ran = lab(arguments, input);
    let mut want = format!("cowitness-lab: error: {problem}\n");
    if !hint.is_empty() {
        want += &format!("cowitness-lab: hint: {hint}\n");
    }
    assert_eq!(ran.stderr, want);
    assert_eq!((ran.status, &*ran.stdout), (Some(status), ""), "{problem}");
}

/// Each is refused with and without `--partial`.
fn damaged(input: &str, problem: &str, hint: &str) {
    let problem = format!("standard input, {problem}");
    for arguments in [&["summary", "-"][..], &["summary", "--partial", "-"]] {
        refused(arguments, input.as_bytes(), 3, &problem, hint);
    }
}

#[test]
fn no_stream() {
    let hint = "give the appliance's standard output, or a console log that holds it";
    let problem = "standard input: no stream found: no line is '#cowitness 1'";
    refused(&["summary", "-"], b"", 3, problem, hint);
    let problem = "standard input, line 2: no stream found: no line is '#cowitness 1'";
    refused(
        &["summary", "-"],
        b"boot\n# cowitness 1\n",
        3,
        problem,
        hint,
    );
    refused(
        &["summary", "no-rows.csv"],
        b"",
        3,
        "no row to summarise",
        "",
    );
}

#[test]
fn inputs_that_cannot_be_read_are_no_verdict_on_them() {
    let problem = "cannot open absent.csv: No such file or directory (os error 2)";
    refused(&["summary", "absent.csv"], b"", 1, problem, "");
    let problem = "/: cannot read on: Is a directory (os error 21)";
    refused(
        &["summary", "bench.csv", "/"],
        b"",
        1,
        problem,
        "check the file and its permissions",
    );
}

#[test]
fn the_first_line_and_the_notes() {
    for (input, problem, hint) in [
        (
            small("#cowitness 1", "#cowitness 2"),
            "stream 1, line 1: schema version '2' is unknown; this program reads version 1",
            NEWER,
        ),
        (
            small("#cowitness 1", "#cowitnes 1"),
            "line 5: 'record,label,kernel,arch,page_bytes,layout,pages,segment_pag...' belongs to a stream whose first line, '#cowitness 1', is missing or damaged",
            DAMAGED,
        ),
        (
            small("#seed=1", "[  1.5] random: crng init done"),
            "stream 1, line 3: '[  1.5] random: crng init done' is neither a note '#key=value' nor a header 'record,...'",
            DAMAGED,
        ),
        (
            small("#rows=1\n", ""),
            "stream 1, line 4: the header comes without '#rows=N' before it: the number of rows is not announced",
            DAMAGED,
        ),
        (
            small("#rows=1", "#rows=one"),
            "stream 1, line 4: '#rows=one' announces no number of rows",
            DAMAGED,
        ),
        (
            small("#rows=1", "#rows=1\n#rows=1"),
            "stream 1, line 5: '#rows=' stands here for the second time",
            DAMAGED,
        ),
        (
            small("#rows=1\n", "#end rows=0 crc32=00000000\n"),
            "stream 1, line 4: the stream ends before its header",
            DAMAGED,
        ),
        (
            small("#seed=1", &format!("#seed={}", "1".repeat(65536))),
            "stream 1, line 3: the line is longer than 65536 bytes",
            DAMAGED,
        ),
    ] {
        damaged(&input, problem, hint);
    }
}

#[test]
fn the_rows() {
    let row = SMALL.lines().nth(5).unwrap();
    let twice = format!("{row}\n{}\n", row.replace("6.1.0", "6.2.0"));
    for (input, problem, hint) in [
        (
            small("bench,", "survey2,"),
            "stream 1, line 6 (row 1): unknown record 'survey2'; this program reads: bench, probe, survey, audit, memmap, sharing, sharing-fit, startup, startup-ab, startup-fit, sizes",
            NEWER,
        ),
        (
            small("layout", "shape"),
            "stream 1, line 6 (row 1): column 6 of the header is 'shape' where 'bench' has 'layout'",
            EDITED,
        ),
        (
            small("x86_64,4096", "x86_64,4K"),
            "stream 1, line 6 (row 1): '4K' is no value of column 'page_bytes'",
            EDITED,
        ),
        (
            small("proc", "process_vm_readv2"),
            "stream 1, line 6 (row 1): 'process_vm_readv2' is no value of column 'method'",
            EDITED,
        ),
        (
            small(&format!("{row}\n"), &twice),
            "stream 1, line 7 (row 2): mismatched settings: 'kernel' is '6.2.0-test', in the stream's first row '6.1.0-test'",
            EDITED,
        ),
        (
            small("bench,", "[    2.718281] clocksource: tsc\nbench,"),
            "stream 1, line 6 (row 1): field count 1, the header's is 38: '[    2.718281] clocksource: tsc'",
            DAMAGED,
        ),
        (
            small("bench,", "\nbench,"),
            "stream 1, line 6 (row 1): field count 0, the header's is 38: ''",
            DAMAGED,
        ),
        (
            small("bench,#end", "bench,\"a\nb\""),
            "stream 1, line 6 (row 1): a quoted field is not closed on its line: 'bench,\"a'",
            DAMAGED,
        ),
        // The first is what Python's zlib says.
        (
            small("6.1.0-test", "6.1.1-test"),
            "stream 1, line 7: bad checksum: header and rows have crc32 c1ee3acb, '#end' says b042e28c",
            DAMAGED,
        ),
    ] {
        damaged(&input, problem, hint);
    }
}

#[test]
fn bytes_that_are_no_text() {
    let mut input = SMALL.as_bytes().to_vec();
    let at = SMALL.find("6.1.0").unwrap();
    input[at] = 0xff;
    let problem = "standard input, stream 1, line 6 (row 1): the line is not UTF-8: \
                   'bench,#end,\u{fffd}.1.0-test,x86_64,4096,contiguous,small,,1,104857...'";
    refused(&["summary", "-"], &input, 3, problem, DAMAGED);
}

#[test]
fn the_end() {
    for (input, problem, hint) in [
        (
            small("#end rows=1", "#end rows=2"),
            "stream 1, line 7: '#end' says rows=2, the row count is 1",
            DAMAGED,
        ),
        (
            small("#rows=1", "#rows=0"),
            "stream 1, line 7: '#rows=' says 0, the row count is 1",
            MORE_MAPPED,
        ),
        (
            small("b042e28c", "B042E28C"),
            "stream 1, line 7: '#end rows=1 crc32=B042E28C' is not '#end rows=N crc32=' and eight lower-case hexadecimal digits",
            DAMAGED,
        ),
        (
            include_str!("data/unknown-record.csv").to_owned(),
            "stream 1, line 4 (row 1): unknown record 'survey2'; this program reads: bench, probe, survey, audit, memmap, sharing, sharing-fit, startup, startup-ab, startup-fit, sizes",
            NEWER,
        ),
        (
            include_str!("data/unknown-header.csv").to_owned(),
            "stream 1, line 4: the header is of no known record; this program reads: bench, probe, survey, audit, memmap, sharing, sharing-fit, startup, startup-ab, startup-fit, sizes",
            NEWER,
        ),
    ] {
        damaged(&input, problem, hint);
    }
    let second = SMALL.to_owned() + "#end rows=1 crc32=b042e28c\n";
    let problem = "standard input, line 8: '#end rows=1 crc32=b042e28c' belongs to a stream whose first line, '#cowitness 1', is missing or damaged";
    refused(&["summary", "-"], second.as_bytes(), 3, problem, DAMAGED);
}

#[test]
fn truncated_inputs_point_to_the_option() {
    let begun = BENCH.find("#option_mb").unwrap();
    let stopped = small("#rows=1", "#rows=10");
    for (input, problem) in [
        (
            &BENCH[..begun],
            "stream 1, line 4: truncated: no whole '#end' line, so no checksum; 0 of an unknown number of rows are there",
        ),
        (
            &BENCH[..BENCH.len() - 1],
            "stream 1, line 20: truncated: no whole '#end' line, so no checksum; 12 of 12 rows are there",
        ),
        (
            &stopped,
            "stream 1, line 7: ended early: 1 of 10 rows are there",
        ),
    ] {
        refused(
            &["summary", "-"],
            input.as_bytes(),
            3,
            &format!("standard input, {problem}"),
            CUT,
        );
    }
}

/// The first stream of `memmap.csv`, with one change of its row.
fn touched(is: &str, would_be: &str) -> Result<u64, String> {
    let text = include_str!("data/memmap.csv");
    let end = text.match_indices("#cowitness").nth(1).unwrap().0;
    assert!(text[..end].contains(is), "{is}");
    let text = resealed(&text[..end].replacen(is, would_be, 1));
    let mut reader = StreamReader::new("a.csv", text.as_bytes(), Tolerance::Whole);
    let mut stream = reader.next_stream().unwrap().unwrap();
    let row = stream.next_row().unwrap().unwrap();
    let row = row.parse::<MemmapRow<'_>>();
    row.map(|row| row.pages).map_err(|error| error.to_string())
}

/// Touching a page costs a fault at most, and something.
#[test]
fn counts_that_no_touching_charges_are_refused() {
    const COUNTS: &str = ",16384,1,16385,0,";
    // The program's own faults are no contradiction, nor is what was not measured.
    assert_eq!(touched(COUNTS, ",16384,1,16384,9,"), Ok(16384));
    assert_eq!(
        touched(
            ",16385,0,900,66436,0,,madvise,65536,,ok",
            ",,,,,,,madvise,65536,,errno:EPERM"
        ),
        Ok(16384)
    );
    for (is, would_be, why) in [
        (
            COUNTS,
            ",16384,1,16384,1000,",
            "17384 faults of 16384 pages",
        ),
        (
            COUNTS,
            ",16384,1,0,0,",
            "it was touched, and no fault was counted",
        ),
        (
            COUNTS,
            ",16384,1,,,",
            "it was touched, and no fault was counted",
        ),
        (
            COUNTS,
            ",16384,0,16385,0,",
            "it was touched, and is in no VMA",
        ),
        (
            COUNTS,
            ",16385,1,16385,0,",
            "67108864 bytes are 16384 pages, not 16385",
        ),
        (",heap,", ",pile,", "unknown mode 'pile'"),
        (
            ",66436,0,,madvise,65536,,ok,,",
            ",66436,2048,,madvise,65536,,ok,1024,",
            "2048 KiB in huge pages of 1024 KiB of RSS",
        ),
        (",ok,,,,,", ",ok,,,99999,0,", "99999 faults of 16384 pages"),
    ] {
        let said = touched(is, would_be).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

/// A row of `small.csv` whose columns cannot all be true.
#[test]
fn passes_that_no_clock_gives_and_foreign_words_are_refused() {
    // 5 warm passes of 400 us each.
    const TIMES: &str = ",5,500000,2000000,400000,400000,";
    for (is, would_be, why) in [
        (
            TIMES,
            ",5,500000,2000000,400001,400001,",
            "2000005 ns if all were the fastest of 2000000 ns for all passes",
        ),
        (
            TIMES,
            ",5,500000,2000000,2,399999,",
            "2000000 ns for all passes of 1999995 ns if all were the slowest",
        ),
        (
            ",5,500000,2000000,400000,400000,2000.00,2500.00,",
            ",0,500000,2000000,,,2000.00,,",
            "2000000 ns for no warm pass",
        ),
        (",pfn,", ",guess,", "unknown evidence 'guess'"),
        (",small,", ",medium,", "unknown backing 'medium'"),
    ] {
        let text = resealed(&small(is, would_be));
        refused(
            &["summary", "-"],
            text.as_bytes(),
            3,
            &format!("standard input, stream 1, line 6 (row 1): the row contradicts itself: {why}"),
            EDITED,
        );
    }
    let probe = include_str!("data/probe.csv").replacen(",pfn,", ",,", 1);
    let ran = lab(&["report", "-o", "-", "-"], resealed(&probe).as_bytes());
    assert_eq!((ran.status, &*ran.stdout), (Some(3), ""));
    assert!(ran.stderr.contains("unknown evidence ''"), "{}", ran.stderr);
}

/// `env` writes notes and nothing more; a line that is cut, or another command's stream that is,
/// stays refused.
#[test]
fn notes_alone_are_a_whole_stream_of_env() {
    const ENV: &str = "#cowitness 1\n#command=env\n#label=none\n#kernel=6.1.0\n#arch=x86_64\n";
    let other = ENV.replace("6.1.0", "6.2.0");
    for input in [ENV.to_owned(), format!("boot\n{ENV}{other}")] {
        let ran = lab(&["report", "-o", "-", "-"], input.as_bytes());
        assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
        assert!(ran.stdout.contains("Linux 6.1.0"), "{}", ran.stdout);
    }
    let ran = lab(&["summary", "-"], format!("{ENV}{BENCH}").as_bytes());
    assert_eq!((ran.status, &*ran.stderr), (Some(0), ""));
    let ran = lab(&["report", "-o", "-", "-"], ENV.repeat(2).as_bytes());
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    for cut in [ENV.trim_end().to_owned(), ENV.replace("=env", "=bench")] {
        let ran = lab(&["report", "-o", "-", "-"], cut.as_bytes());
        assert_eq!(ran.status, Some(3), "{}", ran.stderr);
        assert!(ran.stderr.contains("truncated"), "{}", ran.stderr);
    }
}
