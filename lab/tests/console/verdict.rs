//! What stands around the rows: verdicts, init's own lines, the kernel's, selftest, texts.

use super::help::{COMMANDS, OLD, is_damaged, judged, judged_as, outcome};
use cowitness_lab::guest::Ending;
use cowitness_lab::matrix::outcome::Outcome;

#[test]
fn a_selftest_that_passed_nothing_does_not_pass() {
    let selftest = |text: &str| {
        format!(
            "cowitness: init: run: selftest\r\n{text}cowitness: init: end: status 0\r\n\
             cowitness: verdict: pass\r\n"
        )
    };
    let found = |text: &str| judged_as(&selftest(text), &Ending::Off, "", None);
    let start = OLD.find("ok clock").unwrap();
    let checks = &OLD[start..OLD.find("18 passed").unwrap()];
    let skipped = checks.replace("ok ", "skip ") + "0 passed, 0 failed, 18 skipped\r\n";
    let skipped = found(&skipped);
    let nothing = Outcome::Empty("selftest: no check has passed".to_owned());
    assert_eq!(skipped.outcome, nothing);
    is_damaged(
        &found("0 passed, 0 failed, 0 skipped\r\n").outcome,
        "selftest without its check 'clock'",
    );
    let one = checks.replacen("ok smaps: ", "skip smaps: no, ", 1);
    let one = found(&(one + "17 passed, 0 failed, 1 skipped\r\n"));
    assert_eq!(one.outcome, Outcome::Pass);
    assert!(one.skips[0].starts_with("smaps: no, "), "{:?}", one.skips);
    assert!(one.text.starts_with("$ selftest\nok clock"), "{}", one.text);
    let late = format!("{checks}18 passed, 0 failed, 0 skipped\r\nfail hole: no\r\n");
    is_damaged(
        &found(&late).outcome,
        "after its closing count: fail hole: no",
    );
}

#[test]
fn there_is_one_verdict_and_nothing_but_the_kernel_after_it() {
    let verdict = "cowitness: verdict: pass\r\n";
    let after = |text: &str| OLD.replacen(verdict, &format!("{verdict}{text}"), 1);
    is_damaged(&outcome(&after(verdict), &Ending::Off), "2 verdicts");
    is_damaged(
        &outcome(&after("bench,late\r\n"), &Ending::Off),
        "after the verdict: bench,late",
    );
    let worse =
        after("cowitness: init: error: cannot become /sh: EACCES\r\ncowitness: verdict: error\r\n");
    let wanted = Outcome::Error("init: cannot become /sh: EACCES".to_owned());
    assert_eq!(outcome(&worse, &Ending::Off), wanted);
    for kernels in [
        "[    2.0] reboot: Power down\r\n",
        "reboot: System halted\r\n",
    ] {
        assert_eq!(outcome(&after(kernels), &Ending::Off), Outcome::Pass);
    }
    // A program that init became says what it likes.
    let line = format!("--on-done=shell /sh {}", COMMANDS.join(" then "));
    let shell = judged_as(&after("# _\r\n"), &Ending::Ended, &line, None);
    assert_eq!(shell.outcome, Outcome::Pass);
}

#[test]
fn an_error_of_init_is_told() {
    let console = "cowitness: init: error: --on-done 'sleep': must be poweroff\r\n\
                   cowitness: verdict: error\r\n";
    let found = judged_as(console, &Ending::Off, "--on-done=sleep", None).outcome;
    assert_eq!(found.detail(), "init: --on-done 'sleep': must be poweroff");
}

#[test]
fn an_emulator_that_dies_after_the_verdict_is_lost() {
    let found = outcome(OLD, &Ending::Lost("status 139".into()));
    assert_eq!(
        found,
        Outcome::LostQemu("after the verdict: status 139".to_owned())
    );
    assert_eq!(outcome(OLD, &Ending::Interrupted), Outcome::Interrupted);
    assert_eq!(outcome(OLD, &Ending::Ended), Outcome::Pass);
}

#[test]
fn a_kernel_that_is_broken_measures_nothing() {
    for (line, wanted) in [
        (
            "[    1.0] BUG: unable to handle page fault for address: 0",
            "BUG: unable to handle",
        ),
        (
            "[    1.0] WARNING: CPU: 0 PID: 1 at mm/gup.c:1 a+0x1/0x2",
            "WARNING: CPU: 0",
        ),
        ("[    1.0] Oops: 0000 [#1] SMP", "Oops: 0000"),
        (
            "[    1.0] BUG: Bad page state in process init  pfn:1",
            "BUG: Bad page state",
        ),
        (
            "[    1.0] Internal error: Oops: 96000004 [#1] SMP",
            "Internal error: ",
        ),
        (
            "cowitness: init: kernel tainted: 512",
            "kernel tainted: 512",
        ),
    ] {
        let console = format!("{line}\r\n{OLD}");
        let judged = judged(console.as_bytes(), &Ending::Off);
        let Outcome::Oops(told) = &judged.outcome else {
            panic!("{line}: {:?}", judged.outcome);
        };
        assert!(told.starts_with(wanted), "{told}");
        assert_eq!(judged.csv, "");
    }
    let harmless = format!("[    1.0] Spectre V2 : WARNING: eBPF is enabled\r\n{OLD}");
    assert_eq!(outcome(&harmless, &Ending::Off), Outcome::Pass);
}

#[test]
fn what_is_no_stream_is_not_damaged() {
    let said = |line: &str, text: &str| {
        let console = format!(
            "cowitness: init: run: {line}\r\n{text}cowitness: init: end: status 0\r\n\
             cowitness: verdict: pass\r\n"
        );
        judged_as(&console, &Ending::Off, line, None)
    };
    assert_eq!(
        said("bench --help", "bench: time readers\r\n").outcome,
        Outcome::Pass
    );
    assert_eq!(
        said("--version", "cowitness 0.1.0\r\n").outcome,
        Outcome::Pass
    );
    is_damaged(&said("--version", "").outcome, "'--version' says nothing");
    let env = said("env", "#cowitness 1\r\n#command=env\r\n#kernel=6.1\r\n");
    assert_eq!(env.outcome, Outcome::Pass);
    assert_eq!(env.text, "$ env\n#cowitness 1\n#command=env\n#kernel=6.1\n");
    is_damaged(
        &said("env", "#cowitness 1\r\n#command=env\r\nnoise\r\n").outcome,
        "'noise'",
    );
    is_damaged(
        &said("env", "#kernel=6.1\r\n").outcome,
        "env does not begin with",
    );
}

#[test]
fn what_others_said_is_not_cut_before_its_cause() {
    let cause = "x".repeat(200) + ": ENOMEM";
    let failed = OLD
        .replacen("ok hole: ", &format!("fail hole: {cause} "), 1)
        .replacen("verdict: pass", "verdict: fail", 1)
        .replace("status 0", "status 4");
    let found = outcome(&failed, &Ending::Off);
    assert!(found.detail().contains(": ENOMEM"), "{}", found.detail());
}
