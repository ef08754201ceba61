//! Processes that cannot be looked at: the cause is named.

use super::common::{command_as_nobody, is_root, run};
use super::helpers::{Target, state, until};
use super::nobodys;
use std::fs;
use std::process::{Command, Output};

fn says(output: &Output, text: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(text), "{stderr}");
    assert!(output.stdout.is_empty());
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn refusals_name_their_cause() {
    says(&run("audit 4194303"), "ENOENT: there is no such process");
    // This very process, which runs: of what a reader that splits did to it bounds would be told.
    let own = run(&format!("audit --method proc {}", std::process::id()));
    assert!(own.status.success(), "{own:?}");
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        for program in ["audit", "survey"] {
            says(&run(&format!("{program} 2")), "kernel thread");
        }
    }
}

#[test]
fn what_belongs_to_another_user_is_said_to() {
    let target = Target::new("import sys; print(1, flush=True); sys.stdin.read()");
    for program in ["audit", "survey"] {
        let words = format!("{program} {}", target.pid());
        let Some((mut other, _folder)) = command_as_nobody(&words) else {
            return;
        };
        let output = other.output().unwrap();
        says(&output, "it belongs to another user or group");
    }
}

/// Nobody's own, who has said that it may not be looked at.
#[test]
fn what_is_not_dumpable_is_said_to_be() {
    const NOT_DUMPABLE: &str = "import ctypes, sys; ctypes.CDLL(None).prctl(4, 0); \
                                print(1, flush=True); sys.stdin.read()";
    if !is_root() {
        eprintln!("skipped: it takes root to become nobody");
        return;
    }
    let hidden = Target::of(&mut nobodys(NOT_DUMPABLE));
    let (mut nobody, _folder) = command_as_nobody(&format!("audit {}", hidden.pid())).unwrap();
    says(&nobody.output().unwrap(), "it is yours but not dumpable");
}

/// The first thread has ended, another lives on.
#[test]
fn a_process_without_its_first_thread_is_told_by_its_others() {
    const LEADERLESS: &str = "import ctypes, platform, sys, threading, time\n\
        number = {'x86_64': 60, 'aarch64': 93}[platform.machine()]\n\
        threading.Thread(target=time.sleep, args=(600,)).start()\n\
        print(1, flush=True); ctypes.CDLL(None).syscall(number, 0)";
    let leaderless = Target::new(LEADERLESS);
    until("its first thread ends", || {
        state(&leaderless.pid().to_string()) == 'Z'
    });
    let output = run(&format!("audit {}", leaderless.pid()));
    says(&output, "give the id of one of those");
}

/// As somebody else with these capabilities.
fn with_caps(caps: &str, words: &str) -> Option<Output> {
    let (nobody, _folder) = command_as_nobody("")?;
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args(["--inh-caps", caps, "--ambient-caps", caps])
        .arg(nobody.get_program())
        .args(words.split(' '))
        .current_dir("/")
        .output();
    match output {
        Ok(output) if output.status.code() != Some(127) => Some(output),
        _ => {
            eprintln!("skipped: setpriv does not work here");
            None
        }
    }
}

/// pagemap has the mode 0400.
#[test]
fn the_capabilities_that_are_named_are_those_it_takes() {
    let target = Target::new("import sys; print(1, flush=True); sys.stdin.read()");
    let audit = |caps, option: &str| {
        with_caps(
            caps,
            &format!("audit -q{option} --method proc {}", target.pid()),
        )
    };
    let Some(refused) = audit("+sys_ptrace", "") else {
        return;
    };
    says(&refused, "give CAP_DAC_READ_SEARCH, too");
    let both = audit("+sys_ptrace,+dac_read_search", "").unwrap();
    assert!(both.status.success(), "{both:?}");
    let stopped = audit("+sys_ptrace,+dac_read_search", " --stop").unwrap();
    says(&stopped, "root or CAP_KILL): EPERM");
    let three = audit("+sys_ptrace,+dac_read_search,+kill", " --stop").unwrap();
    assert!(three.status.success(), "{three:?}");
}
