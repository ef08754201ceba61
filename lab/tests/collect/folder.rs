//! Files in the folder, and beside it: packed, of no host, in the way.

use super::{CONSOLE, collect, program, put, rows};
use cowitness_lab::scratch::Scratch;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::Path;

#[test]
fn what_a_folder_holds_is_not_passed_over_in_silence() {
    let hosts = Scratch::new().unwrap();
    let at = |name: &str| hosts.path().join(name);
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(rows().as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    fs::write(at("alpha.csv.gz"), &packed).unwrap();
    put(&at("alpha.log"), CONSOLE);
    fs::create_dir(at("beta")).unwrap();
    fs::write(at("beta/results.csv.gz"), &packed).unwrap();
    put(&at("gamma.log"), CONSOLE);
    let panic = "[ 9.0] Kernel panic - not syncing: Oops\n";
    put(&at("delta.log"), panic);
    put(&at("delta.txt"), "");
    put(&at("notes.md"), "");
    fs::write(at("cut.csv.gz"), &packed[..packed.len() / 2]).unwrap();
    let (ran, text, lines) = collect(&hosts);
    let found: Vec<(&str, &str)> = lines.iter().map(|line| (&line[1], &line[15])).collect();
    let wanted = [
        ("alpha", "pass"),
        ("beta", "pass"),
        ("cut", "damaged"),
        ("delta", "panic"),
        ("gamma", "failed"),
    ];
    assert_eq!(found, wanted, "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("nothing of a host's: notes.md\n"), "{said}");
    assert!(
        said.contains("alpha and beta have a stream in common"),
        "{said}"
    );
    let page = at("page.html");
    for name in ["cut.csv.gz", "notes.md"] {
        fs::remove_file(at(name)).unwrap();
    }
    fs::remove_dir_all(at("beta")).unwrap();
    let report = |folder: &Path| {
        let mut command = program(&["report", "-o"]);
        command.arg(&page).arg(folder).output().unwrap()
    };
    let ran = report(hosts.path());
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("gamma has no rows\n"), "{said}");
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("6.12.117+deb13-cloud-amd64"));
    let ran = report(Scratch::new().unwrap().path());
    assert_eq!(ran.status.code(), Some(1));
}

#[test]
fn the_table_is_told_even_if_it_cannot_be_written_and_one_lab_writes_at_a_time() {
    let (hosts, out) = (Scratch::new().unwrap(), Scratch::new().unwrap());
    put(&hosts.path().join("alpha/results.csv"), &rows());
    // A directory of that name that is not empty cannot be replaced.
    put(&out.path().join("matrix.csv/there"), "");
    let matrix = || {
        let mut command = program(&["matrix", "--collect"]);
        command.arg(hosts.path()).arg("-o").arg(out.path());
        command.output().unwrap()
    };
    let ran = matrix();
    assert_eq!(ran.status.code(), Some(1));
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.contains("| alpha "), "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("cannot write ") && said.contains("matrix.csv: "),
        "{said}"
    );
    let held = fs::File::open(out.path()).unwrap();
    held.lock().unwrap();
    let ran = matrix();
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(1), &b""[..]));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("another cowitness-lab is at work in "),
        "{said}"
    );
}

#[test]
fn a_matrix_among_the_files_of_summary_is_passed_over() {
    let hosts = Scratch::new().unwrap();
    let (file, matrix) = (hosts.path().join("a.csv"), hosts.path().join("matrix.csv"));
    put(&file, &rows());
    put(&matrix, "record,machine,kernel\n");
    let ran = program(&["summary"])
        .arg(file)
        .arg(matrix)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.contains("matrix.csv is the matrix's table"), "{said}");
}
