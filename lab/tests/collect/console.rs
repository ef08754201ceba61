//! Consoles, and what commands without rows print.

use super::{CONSOLE, of_file, rows};

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
