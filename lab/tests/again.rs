//! The commands that the page gives to measure again are those of the real appliance, which
//! takes each of them. It is the one beside the lab, if it was built.

use cowitness_lab::scratch::Scratch;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A process to look at, that goes when the test does.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(folder: &Path, script: &str) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new("sh")
        .args(["-c", script])
        .env("PATH", format!("{}:{path}", folder.display()))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The commands of a page, as they are copied from it.
fn commands(html: &str) -> Vec<String> {
    let parts = html.split("aria-label=\"Command\"><code>").skip(1);
    let unescaped = |text: &str| {
        let text = text.replace("&#39;", "'").replace("&#34;", "\"");
        text.replace("&#60;", "<")
            .replace("&#62;", ">")
            .replace("&#38;", "&")
    };
    parts
        .map(|rest| unescaped(rest.split("</code>").next().unwrap()))
        .collect()
}

#[test]
fn every_command_of_the_page_runs() {
    let lab = Path::new(env!("CARGO_BIN_EXE_cowitness-lab"));
    let folder = lab.parent().unwrap();
    if !folder.join("cowitness").exists() {
        eprintln!("skipped: no appliance in {}", folder.display());
        return;
    }
    let sleeper = Sleeper(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = sleeper.0.id();
    // Before, it has other mappings, and is on its way to these.
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let start = Instant::now();
    while !stat().contains("(sleep) S ") {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "never: it sleeps"
        );
        sleep(Duration::from_millis(5));
    }
    let asked = [
        format!("survey --label \"it's\" {pid}"),
        format!("audit --stop --method proc {pid}"),
        "startup ab --rounds 2 --warmup 1 --a /bin/true -- --b /bin/sh -c true".to_owned(),
        "startup slope --rounds 2 --warmup 1 1=/bin/true 2=/bin/true 3=/bin/true 4=/bin/true \
         static=/bin/true"
            .to_owned(),
        "memmap --mode heap --mb 1 --csv --label 'a b'".to_owned(),
        "memmap --mode mmap-file /bin/sh --csv".to_owned(),
        "sharing --arm elf --n 1,2 --reps 1 -- cat".to_owned(),
        "bench --mb 1 --repeats 1 --block 64K --layout contiguous --label ';'".to_owned(),
        "probe --kind hole".to_owned(),
    ];
    let scratch = Scratch::new().unwrap();
    for (number, words) in asked.iter().enumerate() {
        let rows = scratch.path().join(format!("{number}.csv"));
        let ran = shell(folder, &format!("cowitness {words}"));
        fs::write(&rows, &ran.stdout).unwrap();
        // What may not be done here, or does not come to rows, has no command either.
        if ran.stdout.is_empty() {
            eprintln!("skipped: {words}: {}", String::from_utf8_lossy(&ran.stderr));
            continue;
        }
        let page = Command::new(lab)
            .args(["report", "-o", "-"])
            .arg(&rows)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&page.stderr).into_owned();
        assert!(page.status.success(), "{words}: {errors}");
        let html = String::from_utf8(page.stdout).unwrap();
        let found = commands(&html);
        assert!(!found.is_empty(), "{words}");
        for command in found {
            let name = words.split(' ').next().unwrap();
            assert!(
                command.starts_with(&format!("cowitness {name} ")),
                "{command}"
            );
            let again = shell(folder, &command);
            let errors = String::from_utf8_lossy(&again.stderr);
            assert_eq!(
                again.status.code(),
                ran.status.code(),
                "{command}: {errors}"
            );
        }
    }
}
