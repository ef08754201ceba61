//! Real guests that go wrong in one way each, and one that does not: the outcome, the exit
//! status, and that it comes within the deadline with no emulator left behind.
//!
//! They boot Debian's 5.10 for aarch64, the quickest to its verdict, fetched into the
//! user's cache on first use.
#![cfg(target_os = "linux")]

mod help;
mod memmap;
mod modules;

use help::{
    BENCH, ENDLESS, KERNEL, appliance, becomes, fetch, is_alive, kernel_image, lab, outcome,
    running, running_with, signal, temporary, until,
};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_guest_that_is_well_passes_and_leaves_streams_for_summary() {
    let out = temporary();
    let mut arguments = vec!["--kernel", KERNEL];
    arguments.extend(BENCH);
    arguments.extend(["then", "selftest"]);
    let ran = becomes(&out, &arguments, 0, "pass", "");
    let table = String::from_utf8(ran.stdout).unwrap();
    assert!(
        table.contains("| 5.10-aarch64 ") && table.contains("| as expected "),
        "{table}"
    );
    let rows = out.path().join(format!("{KERNEL}.csv"));
    let lab = env!("CARGO_BIN_EXE_cowitness-lab");
    let summary = Command::new(lab).arg("summary").arg(rows).output().unwrap();
    let text = String::from_utf8(summary.stdout).unwrap();
    assert!(
        text.contains("aarch64, 4 KiB pages: 2 of 2 cases ok"),
        "{text}"
    );
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_guest_with_64_mib_of_memory_passes() {
    let out = temporary();
    let mut arguments = vec!["--kernel", KERNEL, "--memory=64"];
    arguments.extend(["--", "bench", "--mb=4", "--block=64K", "--repeats=1", "-q"]);
    arguments.extend([
        "then", "probe", "-q", "then", "survey", "1", "-q", "then", "selftest",
    ]);
    becomes(&out, &arguments, 0, "pass", "");
    let rows = fs::read_to_string(out.path().join(format!("{KERNEL}.csv"))).unwrap();
    let memory = rows.lines().find_map(|line| line.strip_prefix("#ram_kib="));
    assert!(
        memory.unwrap().parse::<u64>().unwrap() < 64 * 1024,
        "{memory:?}"
    );
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn whatever_comes_last_is_judged_rightly() {
    let cases: [(&[&str], &str, &str); 6] = [
        (&["--on-done=halt", "selftest"], "pass", ""),
        (&["--on-done", "halt", "env", "then"], "pass", ""),
        (&["--on-done=reboot", "bench", "--help"], "pass", ""),
        (&["--on-done", "shell", "/init", "selftest"], "pass", ""),
        (
            &["--on-done=shell", "/nowhere", "selftest"],
            "error",
            "init: cannot become /nowhere: ENOENT",
        ),
        (
            &["--on-done=sleep"],
            "error",
            "must be poweroff, reboot, halt or shell PATH",
        ),
    ];
    for (words, word, detail) in cases {
        let out = temporary();
        let arguments = [&["--kernel", KERNEL, "--"], words].concat();
        let started = Instant::now();
        becomes(&out, &arguments, i32::from(word != "pass"), word, detail);
        assert!(started.elapsed() < Duration::from_secs(60), "{words:?}");
    }
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_kernel_that_does_not_do_what_is_expected_is_a_mismatch() {
    let out = temporary();
    let never = "proc_mem.force_override=never";
    let arguments = ["--kernel=6.12-aarch64", "--append", never];
    let detail =
        "prot-none by proc: EIO, expected read; prot-none by proc-seek: EIO, expected read";
    becomes(&out, &arguments, 1, "mismatch", detail);
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn the_appliance_of_another_cpu_is_no_init() {
    let out = temporary();
    let other = appliance("x86_64");
    let other = other.to_str().unwrap();
    let arguments = ["--arch=aarch64", "--kernel", KERNEL, "--appliance", other];
    becomes(&out, &arguments, 1, "no-init", "/init (error -8)");
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_truncated_image_is_not_booted() {
    let out = temporary();
    let image = fs::read(kernel_image(KERNEL, "arm64")).unwrap();
    let cut = out.path().join("cut");
    fs::write(&cut, &image[..image.len() / 2]).unwrap();
    let arguments = ["--arch=aarch64", "--vmlinuz", cut.to_str().unwrap()];
    becomes(
        &out,
        &arguments,
        1,
        "bad-image",
        "is truncated: its header speaks of ",
    );
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_kernel_without_init_that_hangs_is_seen_by_its_panic() {
    let out = temporary();
    let started = Instant::now();
    let nowhere = "init=/nowhere rdinit=/nowhere panic=0";
    let arguments = ["--kernel", KERNEL, "--append", nowhere, "--deadline=60"];
    becomes(&out, &arguments, 1, "panic", "VFS: Unable to mount root fs");
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_guest_that_says_nothing_is_ended_at_its_deadline() {
    let out = temporary();
    let nothing = out.path().join("nothing");
    // Zeros are no instruction of this CPU: the guest spins in exceptions, silently.
    fs::write(&nothing, vec![0; 1 << 20]).unwrap();
    let started = Instant::now();
    let image = nothing.to_str().unwrap();
    let arguments = ["--arch=aarch64", "--vmlinuz", image, "--deadline=5"];
    becomes(
        &out,
        &arguments,
        1,
        "deadline",
        "no verdict within 5 s; the console is empty (too little memory for this kernel?)",
    );
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_guest_that_is_too_slow_is_ended_at_its_deadline() {
    let out = temporary();
    let mut arguments = vec!["--kernel", KERNEL, "--deadline=12"];
    arguments.extend(ENDLESS);
    let started = Instant::now();
    becomes(
        &out,
        &arguments,
        1,
        "deadline",
        "no verdict within 12 s; last on the console: ",
    );
    assert!(started.elapsed() < Duration::from_secs(24));
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn an_emulator_killed_midway_is_lost() {
    let out = temporary();
    let (child, emulator) = running(&out);
    signal("KILL", emulator);
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let (word, detail) = outcome(&out);
    assert_eq!(word, "lost-qemu");
    assert!(
        detail.starts_with("signal 9; last on the console: "),
        "{detail}"
    );
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn an_interrupted_lab_leaves_no_emulator() {
    for (name, status) in [("INT", 130), ("TERM", 143)] {
        let out = temporary();
        let (child, emulator) = running(&out);
        signal(name, child.id());
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(status));
        assert!(!is_alive(emulator));
        assert_eq!(outcome(&out).0, "interrupted");
    }
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_killed_lab_leaves_no_emulator() {
    let out = temporary();
    let (mut child, emulator) = running(&out);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the emulator's end", || (!is_alive(emulator)).then_some(()));
    // Temporary files would be here, too.
    let left = fs::read_dir(out.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [format!("{KERNEL}.log").as_str()]);
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_guest_that_stands_still_is_seen_to_have_stalled() {
    let out = temporary();
    // The kernel's own watchdog barks after twice its threshold.
    let (mut child, emulator) = running_with(&out, &["--append", "watchdog_thresh=5"]);
    // Not every time: it may be fed before it looks.
    for _ in 0..6 {
        signal("STOP", emulator);
        thread::sleep(Duration::from_secs(14));
        signal("CONT", emulator);
        thread::sleep(Duration::from_secs(2));
        if child.try_wait().unwrap().is_some() {
            break;
        }
    }
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let (word, detail) = outcome(&out);
    assert_eq!(word, "stalled", "{detail}");
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn a_row_changed_on_its_way_is_damage() {
    let (out, tools) = (temporary(), temporary());
    // Between the guest and the lab: one digit of one row.
    let wrapper = tools.path().join("qemu-system-aarch64");
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nPATH='{path}'\nqemu-system-aarch64 \"$@\" | sed -u '/^bench,/s/,65536,/,65537,/'\n"
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let mut arguments = vec!["--kernel", KERNEL];
    arguments.extend(BENCH);
    let mut command = lab(&out, &arguments);
    let ran = command
        .env("PATH", format!("{}:{path}", tools.path().display()))
        .output();
    let ran = ran.unwrap();
    assert_eq!(ran.status.code(), Some(3), "{ran:?}");
    let (word, detail) = outcome(&out);
    assert_eq!(word, "damaged");
    assert!(
        detail.contains("5.10-aarch64.log, stream 1, line "),
        "{detail}"
    );
    assert!(detail.contains("bad checksum: "), "{detail}");
    assert!(!out.path().join(format!("{KERNEL}.csv")).exists());
}

#[test]
#[ignore = "boots kernels in QEMU; scripts/test runs it"]
fn one_machine_that_fails_does_not_stop_the_others() {
    let (out, cache) = (temporary(), temporary());
    let kernels = cache.path().join("kernels");
    fs::create_dir(&kernels).unwrap();
    let other = "5.10-x86_64";
    for (name, debian) in [(KERNEL, "arm64"), (other, "amd64")] {
        let image = kernel_image(name, debian);
        for file in [&image, &image.with_extension("modules")] {
            fs::copy(file, kernels.join(file.file_name().unwrap())).unwrap();
        }
        let record = format!("bullseye-linux-image-cloud-{debian}.toml");
        fs::copy(image.with_file_name(&record), kernels.join(&record)).unwrap();
    }
    // The other image is altered by a byte.
    let altered = kernel_image(other, "amd64");
    let altered = kernels.join(altered.file_name().unwrap());
    let mut bytes = fs::read(&altered).unwrap();
    bytes[1 << 20] ^= 1;
    fs::write(&altered, bytes).unwrap();
    let both = format!("{other},{KERNEL}");
    let mut command = lab(&out, &["--kernel", &both, "--cache"]);
    let ran = command
        .arg(cache.path())
        .args(["--", "selftest"])
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    let table = String::from_utf8(ran.stdout).unwrap();
    let told = "is not the file that was fetched: sha256 is ";
    assert!(
        table.contains("| bad-image ") && table.contains(told),
        "{table}"
    );
    assert!(table.contains("| as expected "), "{table}");
}

#[test]
#[ignore = "fetches from Debian's archive; scripts/test runs it"]
fn an_empty_cache_is_filled_and_an_altered_image_is_replaced() {
    let cache = temporary();
    let directory = ["--cache", cache.path().to_str().unwrap()];
    // The kind of package that has the image in another place.
    let name = "forky-x86_64";
    let fetched = fetch(name, &directory);
    let images = fs::read_dir(cache.path().join("kernels")).unwrap();
    let mut images = images.map(|entry| entry.unwrap().path());
    let image = images.find(|path| path.extension().is_some_and(|end| end == "vmlinuz"));
    let image = image.unwrap();
    let bytes = fs::read(&image).unwrap();
    // The boot protocol's magic, from Documentation/arch/x86/boot.rst.
    assert_eq!(&bytes[0x202..0x206], b"HdrS");
    // What zram of 7.x depends on, but for what is built in, comes before it; each is an ELF file.
    let modules = fs::read(image.with_extension("modules")).unwrap();
    let first = |bytes: &[u8]| modules.windows(bytes.len()).position(|at| at == bytes);
    let names = ["00-lz4hc_compress.ko\0", "\x7fELF", "01-zram.ko\0"];
    let places = names.map(|name| first(name.as_bytes()).unwrap());
    assert!(places.is_sorted(), "{places:?}");
    fs::write(&image, b"altered").unwrap();
    assert_eq!(fetch(name, &directory), fetched);
    assert_eq!(fs::read(&image).unwrap(), bytes);
    let left = fs::read_dir(cache.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, ["apt", "kernels", "lock"]);
}
