//! Programs and kernels that `matrix` and `kernels` need.

use super::{program, put};
use cowitness_lab::scratch::Scratch;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

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
