//! Files that are read (packed, cut, damaged, of another kind) and the file that is written.

use super::common::{Ran, lab};
use super::{BENCH, PROBE, has, page, text};
use cowitness_lab::scratch::Scratch;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn packed_inputs_are_unpacked() {
    let plain = page(&["-"], BENCH.as_bytes());
    assert_eq!(page(&["-"], packed(BENCH)), plain);
    assert_eq!(page(&["-"], packed(&BENCH.replace('\n', "\r\n"))), plain);
    // Two members one after the other are one file.
    let (head, tail) = BENCH.split_at(500);
    assert_eq!(page(&["-"], [packed(head), packed(tail)].concat()), plain);
    let summary = lab(&["summary", "-"], &packed(BENCH));
    assert_eq!(summary.stdout, include_str!("../data/bench.txt"));
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
    let text = text(&page(&["console.log"], ""));
    has(
        &text,
        &[
            "Linux 6.1.0-test",
            "Linux 6.18.44",
            "too few pairs for an interval",
        ],
    );
}

/// The table that lies beside a matrix's streams is no stream, and `out/*.csv` names it, too.
#[test]
fn the_matrix_table_is_passed_over() {
    let table = b"record,machine,kernel\nmatrix,6.1-x86_64,6.1.0\n";
    let ran = lab(&["report", "-o", "-", "-", "bench.csv"], table);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("passed over\n"), "{}", ran.stderr);
    assert_eq!(ran.stdout, page(&["bench.csv"], ""));
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

/// It is listed with the rows it has, and no checksum proves them.
#[test]
fn a_stream_that_is_cut_is_listed_as_it_is() {
    let cut = &BENCH[..BENCH.find("vmread,65536,6").unwrap()];
    let ran = lab(&["report", "--partial", "-o", "-", "-"], cut.as_bytes());
    has(
        &text(&ran.stdout),
        &["standard input, stream 1: 11 rows of bench, cut of 12, no crc32; its"],
    );
    assert!(!ran.stdout.contains("rows of bench, crc32"));
}

#[test]
fn an_input_is_not_written_over() {
    let folder = Scratch::new().unwrap();
    let [file, link, other] =
        ["self.csv", "link.csv", "page.html"].map(|name| folder.path().join(name));
    std::fs::write(&file, BENCH).unwrap();
    symlink(&file, &link).unwrap();
    let to = |out: &Path| {
        let [file, out] = [&file, out].map(|path| path.to_str().unwrap());
        lab(&["report", file, "-o", out], b"")
    };
    for out in [&file, &link] {
        let ran = to(out);
        assert_eq!(ran.status, Some(2), "{}", ran.stderr);
        has(
            &ran.stderr,
            &["would be written over its input", "hint: name another file"],
        );
    }
    let ran = to(&other);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!((ran.status, left), (Some(0), 3), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), BENCH);
}

#[test]
fn nothing_is_written_of_an_input_that_is_refused() {
    let folder = Scratch::new().unwrap();
    let out = folder.path().join("page.html");
    let cut = &BENCH.as_bytes()[..BENCH.len() - 20];
    let ran = lab(&["report", "-o", out.to_str().unwrap(), "-"], cut);
    assert_eq!(
        (ran.status, out.exists()),
        (Some(3), false),
        "{}",
        ran.stderr
    );
    let ran = lab(&["report", "-o", out.to_str().unwrap(), "bench.csv"], b"");
    let written = std::fs::read_to_string(&out).unwrap();
    let quiet = Ran {
        status: Some(0),
        stdout: String::new(),
        stderr: String::new(),
    };
    assert_eq!(ran, quiet);
    assert_eq!(written, page(&["bench.csv"], ""));
    let twice = lab(&["report", "-o", "-", "bench.csv", "bench.csv"], b"");
    assert_eq!((twice.status, &*twice.stdout), (Some(3), ""));
}

#[test]
fn a_page_keeps_its_mode_and_is_not_written_through_a_link_to_nothing() {
    let scratch = Scratch::new().unwrap();
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
