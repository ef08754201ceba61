//! Times of machines that are emulated, or may be.

use super::SLOW;
use super::common::lab;

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
