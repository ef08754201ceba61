//! `matrix --collect` over folders as `scripts/` brings them back, and what `kernels` and
//! `matrix` say when a program is missing. Nothing is booted.

mod seal;

use cowitness::emit::record::Record;
use cowitness::emit::survey_row::SurveyRow;
use cowitness_lab::scratch::Scratch;
use flate2::Compression;
use flate2::write::GzEncoder;
use seal::resealed;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONSOLE: &str = include_str!("data/consoles/6.12-x86_64.log");

/// The first two streams of a real console, as a file has them.
fn rows() -> String {
    let start = CONSOLE.find("#cowitness 1").unwrap();
    let end = CONSOLE.rfind("#end ").unwrap();
    let end = end + CONSOLE[end..].find('\n').unwrap() + 1;
    let streams = CONSOLE[start..end].replace('\r', "");
    let lines = streams.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("cowitness: "))
        .collect()
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cowitness-lab"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn collect(hosts: &Scratch) -> (Output, String, Vec<csv::StringRecord>) {
    let out = Scratch::new().unwrap();
    let mut command = program(&["matrix", "--collect"]);
    let ran = command
        .arg(hosts.path())
        .arg("-o")
        .arg(out.path())
        .output()
        .unwrap();
    let text = String::from_utf8(ran.stdout.clone()).unwrap();
    let csv = fs::read(out.path().join("matrix.csv")).unwrap_or_default();
    let rows = csv::Reader::from_reader(&*csv)
        .records()
        .map(Result::unwrap)
        .collect();
    (ran, text, rows)
}

#[test]
fn hosts_become_lines_and_what_failed_decides_the_status() {
    let hosts = Scratch::new().unwrap();
    let at = |name: &str| hosts.path().join(name);
    put(&at("alpha/results.csv"), &rows());
    put(&at("beta.csv"), &rows());
    put(&at("notes.txt"), "of no host");
    put(&at("matrix.csv"), "record,machine\n");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(0), "{text}");
    let names: Vec<&str> = lines.iter().map(|line| &line[1]).collect();
    assert_eq!(names, ["alpha", "beta"]);
    let fields: Vec<&str> = lines[0].iter().skip(2).collect();
    let wanted = [
        "6.12.117+deb13-cloud-amd64",
        "x86_64",
        "4096",
        "emulated",
        // By probe where bench did not ask.
        "0",
        "0",
        "100",
        "100",
        "read",
        "EFAULT",
        "EIO",
        "EFAULT",
        "",
        "pass",
        "",
        "",
        "0",
        "read",
        "EFAULT",
        "read",
        "EIO",
        "EFAULT",
        "EIO",
        // hybrid's.
        "0",
        "read",
        "EIO",
    ];
    assert_eq!(fields, wanted);

    put(&at("gamma/failed"), "no route to host\nand more\n");
    put(&at("delta/log"), "");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(1));
    let outcomes: Vec<(&str, &str)> = lines.iter().map(|line| (&line[1], &line[15])).collect();
    let failed = [
        ("alpha", "pass"),
        ("beta", "pass"),
        ("delta", "failed"),
        ("gamma", "failed"),
    ];
    assert_eq!(outcomes, failed);
    assert!(
        text.ends_with("\ngamma: failed: no route to host\n"),
        "{text}"
    );
    assert!(text.contains("delta: failed: cannot read "), "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.contains("cowitness-lab: error: 2 of 4 machines failed\n"),
        "{said}"
    );

    put(
        &at("alpha/results.csv"),
        &rows().replacen(",proc,", ",ptrace,", 1),
    );
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!((&lines[0][15], &lines[0][2]), ("damaged", ""));
    assert!(lines[0][16].contains("bad checksum"), "{text}");
}

#[test]
fn rows_of_two_machines_or_of_one_that_failed_are_not_believed() {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), &rows());
    let old = include_str!("data/consoles/5.10-aarch64.log");
    let start = old.find("#cowitness 1").unwrap();
    let end = old[start..].find("cowitness: init: end").unwrap();
    let two = rows() + &old[start..start + end].replace('\r', "");
    put(&hosts.path().join("beta/results.csv"), &two);
    let (ran, _, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(3));
    assert_eq!((&lines[1][15], &lines[1][2]), ("damaged", ""));
    let mixed = "one of them 5.10.0-32-cloud-arm64, aarch64, pages of 4096 bytes";
    assert!(lines[1][16].ends_with(mixed), "{}", &lines[1][16]);
    fs::remove_dir_all(hosts.path().join("beta")).unwrap();
    put(&hosts.path().join("alpha/failed"), "timed out\n");
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(ran.status.code(), Some(1));
    assert_eq!(
        (&lines[0][15], &lines[0][16], &lines[0][2]),
        ("failed", "timed out", ""),
        "{text}"
    );
}

/// The outcome and its detail of a host whose file is `text`.
fn of_file(text: &str) -> (String, String) {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), text);
    let (ran, _, lines) = collect(&hosts);
    let (outcome, detail) = (lines[0][15].to_owned(), lines[0][16].to_owned());
    assert_eq!(ran.status.code() == Some(0), outcome == "pass", "{outcome}");
    (outcome, detail)
}

#[test]
fn rows_that_come_to_nothing_do_not_pass() {
    let lines = |keep: &dyn Fn(&str) -> bool| {
        let all = rows();
        resealed(
            &all.split_inclusive('\n')
                .filter(|line| keep(line))
                .collect::<String>(),
        )
    };
    let is = |text: &str, outcome: &str, detail: &str| {
        let found = of_file(text);
        assert!(found.0 == outcome && found.1.contains(detail), "{found:?}");
    };
    is(&rows(), "pass", "");
    let none = lines(&|line| !line.starts_with("bench,") && !line.starts_with("probe,"));
    is(&none, "damaged", "0 readers, its options speak of 2");
    let unsaid = none
        .replace("#option_", "#opted_")
        .replace("#command=probe", "#command=x");
    is(&unsaid, "empty", "stream 1 has no row");
    let skipped = resealed(&rows().replace(",ok\n", ",skipped:no-evidence\n"));
    is(
        &skipped,
        "empty",
        "no row counts, the first is proc's, skipped: no-evidence",
    );
    let one = resealed(&rows().replacen(",ok\n", ",errno:EIO\n", 1));
    is(
        &one,
        "invalid",
        "1 of 74 rows lost, the first is proc's, failed: EIO",
    );
    let cut = lines(&|line| !line.contains(",hole,vmread,"));
    is(
        &cut,
        "damaged",
        "70 rows, where 8 questions to 9 readers make 72",
    );
    let without = lines(&|line| !line.contains(",hole,"));
    is(
        &without,
        "damaged",
        "probe without its question 'hole page'",
    );
    let without = lines(&|line| !line.contains(",cross,"));
    is(
        &without,
        "damaged",
        "probe without its question 'prot-none cross'",
    );
    is(
        &(rows() + &rows()),
        "damaged",
        "streams 1 and 3 are the same",
    );
    let foreign = rows().replacen("#kernel=6.12", "#kernel=6.1", 1);
    is(&foreign, "damaged", "its note 'kernel' is 6.1.117+deb13");
}

/// A stream with sums that are right.
fn sealed(command: &str, header: &str, rows: &[&str]) -> String {
    let notes = "#kernel=6.1\n#arch=x86_64\n#page_bytes=4096\n#rows=0\n";
    let rows = rows.join("\n");
    resealed(&format!(
        "#cowitness 1\n#command={command}\n{notes}{header}\n{rows}\n#end rows=0 crc32=00000000\n"
    ))
}

#[test]
fn a_mapping_that_nobody_reads_is_no_loss_to_a_survey() {
    let header = std::iter::once("record").chain(SurveyRow::COLUMNS.iter().copied());
    let header = header.collect::<Vec<_>>().join(",");
    let row = |name: &str, status: &str| {
        let counts = ",1".repeat(10);
        format!("survey,,6.1,x86_64,4096,7,0,1000,r-xp,{name}{counts},{status},1,1,0,0,4,")
    };
    let of = |status: &str| {
        let rows = [row("[stack]", "ok"), row("[vsyscall]", status)];
        of_file(&sealed("survey", &header, &[&rows[0], &rows[1]]))
    };
    for nobody_reads in ["not-user-memory", "device-memory", "userfaultfd"] {
        assert_eq!(of(&format!("skipped:{nobody_reads}")).0, "pass");
    }
    let lost = of("skipped:mappings-changed");
    assert_eq!(lost.0, "invalid", "{}", lost.1);
}

#[test]
fn a_console_is_believed_only_if_it_ends_well() {
    assert_eq!(of_file(CONSOLE).0, "pass");
    assert_eq!(of_file(&CONSOLE.replace('\r', "")).0, "pass");
    let is = |from: &str, to: &str, outcome: &str, detail: &str| {
        assert!(CONSOLE.contains(from), "{from}");
        let found = of_file(&CONSOLE.replacen(from, to, 1));
        assert!(found.0 == outcome && found.1.contains(detail), "{found:?}");
    };
    let verdict = "cowitness: verdict: pass\r\n";
    let error = "cowitness: verdict: error\r\n";
    is(verdict, error, "error", "");
    is(
        "end: status 0",
        "end: status 4",
        "damaged",
        "ended with status 4",
    );
    is(verdict, "", "no-verdict", "last on the console: ");
    let panic = "[ 9.0] Kernel panic - not syncing: Oops\r\n";
    is(verdict, &format!("{panic}{verdict}"), "panic", "Oops");
    let selftest = CONSOLE.find("cowitness: init: run: selftest").unwrap();
    let alone = CONSOLE[selftest..].replace("verdict: pass", "verdict: error");
    assert_eq!(of_file(&alone).0, "error");
    assert_eq!(of_file(&(rows() + panic)).0, "panic");
}

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
fn rows_that_contradict_themselves_are_damaged() {
    let is = |from: &str, to: &str, wanted: &str| {
        let all = rows();
        assert!(all.contains(from), "{from}");
        let found = of_file(&resealed(&all.replacen(from, to, 1)));
        assert_eq!(found.0, "damaged", "{to}: {}", found.1);
        let said = format!("contradicts itself: {wanted}");
        assert!(found.1.contains(&said), "{}", found.1);
    };
    let pages = ",pfn,256,256,256,0,";
    is(
        pages,
        ",pfn,256,256,256,257,",
        "257 pages split of 256 tracked",
    );
    is(
        pages,
        ",pfn,256,256,255,0,",
        "255 pages still shared and 0 split do not make 256",
    );
    is(
        pages,
        ",pfn,257,257,257,0,",
        "257 tracked pages in an arena of 1048576 bytes",
    );
    is(
        ",hole,vmread,page,4096,0,EFAULT,",
        ",hole,vmread,page,4096,8192,EFAULT,",
        "8192 bytes came, 4096 were asked for",
    );
    is(
        ",hole,vmread,page,4096,0,EFAULT,",
        ",hole,vmread,page,4096,4096,EFAULT,",
        "all 4096 bytes came, and EFAULT",
    );
    is(
        ",hole,vmread,page,4096,0,EFAULT,",
        ",hole,vmread,page,4096,0,,",
        "nothing came, and no errno",
    );
}

#[test]
fn output_of_commands_without_rows_is_called_what_it_is() {
    let env = of_file("#cowitness 1\n#command=env\n#kernel=6.1\n");
    assert_eq!(env.0, "empty");
    assert!(env.1.contains("`cowitness env`"), "{}", env.1);
    let checks = CONSOLE.replace('\r', "");
    let start = checks.find("ok clock").unwrap();
    let end = checks.find("18 passed").unwrap();
    let checks = &checks[start..end];
    let counts =
        |passed, failed, skipped| format!("{passed} passed, {failed} failed, {skipped} skipped\n");
    let all = format!("{checks}{}", counts(18, 0, 0));
    assert_eq!(of_file(&all).0, "pass");
    assert_eq!(of_file(&format!("{all}\n \n")).0, "pass");
    let one = checks.replacen("ok hole: ", "fail hole: no, ", 1) + &counts(17, 1, 0);
    let bad = of_file(&one);
    assert!(
        bad.0 == "fail" && bad.1.starts_with("selftest: hole: no"),
        "{bad:?}"
    );
    let none = checks.replace("ok ", "skip ") + &counts(0, 0, 18);
    assert_eq!(of_file(&none).0, "empty");
    let late = of_file(&format!("{all}fail hole: no\n"));
    let told = "selftest, after its closing count: fail hole: no";
    assert_eq!(late, ("damaged".to_owned(), told.to_owned()));
    let fewer = of_file(&("ok clock\n".to_owned() + &counts(1, 0, 0)));
    let told = "selftest without its check 'fault-counters'";
    assert_eq!(fewer, ("damaged".to_owned(), told.to_owned()));
    assert_eq!(
        of_file("ok a\n2 passed, 0 failed, 0 skipped\n").0,
        "damaged"
    );
    assert_eq!(of_file("").0, "damaged");
}

#[test]
fn the_reason_of_a_failure_is_shown_to_its_end() {
    let hosts = Scratch::new().unwrap();
    let reason = "fatal: the task at line 40 ended: ssh: connect to host rack-4.example port 22: \
                  Connection refused";
    put(&hosts.path().join("alpha/failed"), reason);
    let (ran, text, lines) = collect(&hosts);
    assert_eq!(&lines[0][16], reason);
    assert!(text.contains(reason), "{text}");
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(!said.contains(".log"), "{said}");
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

/// A page that lacks hosts says which, and why.
#[test]
fn hosts_that_failed_stand_in_the_page() {
    let hosts = Scratch::new().unwrap();
    put(&hosts.path().join("alpha/results.csv"), &rows());
    put(&hosts.path().join("beta/failed"), "no route to host\n");
    let report = |options: &[&str]| {
        let ran = program(&["report", "-o", "-"])
            .args(options)
            .arg(hosts.path())
            .output()
            .unwrap();
        let page = String::from_utf8(ran.stdout).unwrap();
        assert!(page.contains("beta has failed: no route to host"), "{page}");
        ran.status.code()
    };
    assert_eq!(report(&[]), Some(3));
    assert_eq!(report(&["--partial"]), Some(0));
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

#[test]
fn a_fetch_that_waits_for_another_says_so_and_can_be_ended() {
    let (cache, out) = (Scratch::new().unwrap(), Scratch::new().unwrap());
    let lock = fs::File::create(cache.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let tools = Scratch::new().unwrap();
    let names = [
        "qemu-system-x86_64",
        "setpriv",
        "apt-get",
        "apt-cache",
        "dpkg-deb",
    ];
    for name in names {
        put(&tools.path().join(name), "never run");
    }
    let appliance = tools.path().join("appliance");
    put(&appliance, "never run");
    let mut command = program(&["matrix", "--kernel=6.1-x86_64", "--arch=x86_64"]);
    command
        .arg("--cache")
        .arg(cache.path())
        .arg("-o")
        .arg(out.path());
    command
        .arg("--appliance")
        .arg(&appliance)
        .env("PATH", tools.path());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let waits = said.find(|line| line.as_ref().unwrap().contains("waiting for another"));
    assert!(waits.is_some());
    let kill = Command::new("kill").arg(child.id().to_string()).status();
    assert!(kill.unwrap().success());
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(143));
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.contains("| interrupted "), "{text}");
}

#[test]
fn a_folder_without_hosts_is_an_error() {
    let hosts = Scratch::new().unwrap();
    let (ran, text, _) = collect(&hosts);
    assert_eq!((ran.status.code(), &*text), (Some(1), ""));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.starts_with("cowitness-lab: error: no host in "),
        "{said}"
    );
}

#[test]
fn missing_programs_are_named_with_their_packages() {
    let (nothing, out) = (Scratch::new().unwrap(), Scratch::new().unwrap());
    let mut command = program(&["matrix", "-o"]);
    command.arg(out.path()).env("PATH", nothing.path());
    let ran = command.output().unwrap();
    assert_eq!((ran.status.code(), &*ran.stdout), (Some(1), &b""[..]));
    assert_eq!(
        String::from_utf8(ran.stderr).unwrap(),
        "cowitness-lab: error: not installed here: qemu-system-aarch64, qemu-system-x86_64, \
         setpriv\ncowitness-lab: hint: on Debian and Ubuntu: apt-get install qemu-system-arm \
         qemu-system-x86 util-linux\n"
    );
    let mut command = program(&["kernels", "--fetch", "--kernel=6.1-x86_64", "--cache"]);
    command
        .arg(out.path().join("cache"))
        .env("PATH", nothing.path());
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let said = String::from_utf8(ran.stderr).unwrap();
    let wanted = "6.1-x86_64: not installed here: apt-get, apt-cache, dpkg-deb; on Debian and \
                  Ubuntu: apt-get install apt dpkg";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn kernels_are_listed_without_a_network() {
    let cache = Scratch::new().unwrap();
    let mut command = program(&["kernels", "--arch=aarch64", "--cache"]);
    let ran = command.arg(cache.path()).env("PATH", "").output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    let text = String::from_utf8(ran.stdout).unwrap();
    let rows: Vec<&str> = text.lines().skip(2).collect();
    assert!(
        rows.iter()
            .all(|row| row.contains("| aarch64 ") && row.contains("| no ")),
        "{text}"
    );
    assert!(rows.iter().any(|row| row.contains("| 16 KiB ")), "{text}");
    let ran = program(&["kernels", "--kernel=6.13"]).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        said.starts_with("cowitness-lab: error: unknown kernel '6.13'; kernels are 5.10-x86_64, ")
    );
    assert!(
        said.ends_with("usage: cowitness-lab kernels [options]\n"),
        "{said}"
    );
}
