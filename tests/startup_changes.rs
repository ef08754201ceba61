//! `startup` while what it measures changes: files, handlers, what is in memory. Only what is
//! known to be one program in every round is made a result of.

mod common;
#[path = "common/startup.rs"]
mod helpers;

use common::{BINARY, Row, command, is_root, stdout};
use helpers::{Scratch, ab, rows};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// The output of a shell's script in a mount namespace of its own, `$0` being the tool; `None`
/// if it ends with 77, or nobody may make one.
fn unshared(script: &str, words: &[&str]) -> Option<Output> {
    if !is_root() {
        eprintln!("skipped: only root can mount");
        return None;
    }
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, BINARY])
        .args(words)
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: nothing can be registered with binfmt_misc here");
        return None;
    }
    Some(output)
}

/// No row of a round in which it changed, and no result.
fn has_no_result(output: &Output, why: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains(why), "{stderr}");
    assert!(!stdout.contains("startup-ab"), "{stdout}");
    assert!(!stdout.contains("\nstartup,"), "{stdout}");
}

/// As many bytes, in the same inode, with the time of the contents put back.
#[test]
fn a_program_that_is_overwritten_and_dated_back_has_no_result() {
    let program = Scratch::new("dated");
    let dated = |words: &str| {
        let done = Command::new("sh")
            .args(["-c", words, program.path()])
            .status();
        assert!(done.is_ok_and(|status| status.success()));
    };
    dated("cp /bin/true \"$0\" && touch -d @1000000000 \"$0\"");
    let overwrite =
        "printf x | /bin/dd of=$0 bs=1 seek=9 conv=notrunc; /bin/touch -d @1000000000 $0";
    let output = ab(
        "-q --rounds=1",
        &["/bin/sh", "-c", overwrite, program.path()],
        &[program.path()],
    );
    has_no_result(&output, "was replaced or written to during the run");
}

/// A family whose objects are found beside the program: one is replaced by a copy of itself.
#[test]
fn an_object_that_is_replaced_during_a_slope_leaves_no_line() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let folder = folder.join(format!("slope-{}", std::process::id()));
    let family = folder.to_str().unwrap();
    let build = r#"
        mkdir "$0" && cd "$0" || exit
        echo 'int one(void) { return 0; }' > one.c
        echo 'int one(void); int main(void) { return one(); }' > main.c
        cc -shared -fPIC -o libone.so one.c && cc -static -o static main.c one.c
        cc -o program main.c -L. -lone -Wl,-rpath,'$ORIGIN'
        # Replaces the object, if it is there, and runs the program.
        printf '#!/bin/sh\ncp libone.so new.so && mv new.so libone.so; exec ./program\n' > touches
        chmod 755 touches
    "#;
    let built = Command::new("sh").args(["-c", build, family]).status();
    let words = [
        "-q",
        "--rounds=10",
        "1=./program",
        "2=./program",
        "3=./program",
        "static=./static",
    ];
    let slope = |last: &str| {
        let mut slope = command("startup slope");
        slope
            .args(words)
            .arg(last)
            .current_dir(&folder)
            .output()
            .unwrap()
    };
    let (calm, touched) = (slope("4=./program"), slope("4=./touches"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(built.is_ok_and(|status| status.success()));
    let calm = stdout(&calm);
    assert!(calm.contains("\n#compared=programs; *.so* beside them; ld.so.cache\n"));
    assert_eq!(rows(&calm).1.len(), 10);
    let stderr = String::from_utf8_lossy(&touched.stderr);
    assert_eq!(touched.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("a shared object beside it, or /etc/ld.so.cache, was replaced"),
        "{stderr}"
    );
    let touched = String::from_utf8(touched.stdout).unwrap();
    assert!(!touched.contains("\nstartup-fit,"));
}

const MOUNTED: &str = r#"
    folder=/proc/sys/fs/binfmt_misc
    mount -t binfmt_misc binfmt_misc $folder 2> /dev/null
    test -e $folder/register || exit 77
"#;

/// An entry that takes the program for less than a round.
#[test]
fn an_entry_that_comes_and_goes_within_a_round_is_noticed() {
    let extension = format!("passing{}", std::process::id());
    let program = Scratch::new(&format!("elf.{extension}"));
    fs::copy("/bin/false", &program.0).unwrap();
    let script = format!(
        r#"{MOUNTED}
        pass="echo :$2:E::$2::/bin/true: > $folder/register; echo -1 > $folder/$2"
        "$0" startup ab -q --rounds=1 --warmup=1 --a /bin/sh -c "$pass" -- --b "$1" -- --allow-failure
    "#
    );
    if let Some(output) = unshared(&script, &[program.path(), &extension]) {
        has_no_result(
            &output,
            "the entries of binfmt_misc were changed during the run",
        );
    }
}

/// Nothing was claimed before, so nothing is wrong afterwards.
#[test]
fn mounting_binfmt_misc_meanwhile_changes_nothing() {
    let script = r#"
        folder=/proc/sys/fs/binfmt_misc
        umount -a -t binfmt_misc 2> /dev/null
        grep -q binfmt_misc /proc/filesystems && ! test -e $folder/status || exit 77
        mount="/bin/mount -t binfmt_misc binfmt_misc $folder || :"
        "$0" startup ab -q --rounds=1 --a /bin/sh -c "$mount" -- --b /bin/true
        status=$?
        test -e $folder/status || exit 77
        exit $status
    "#;
    let Some(output) = unshared(script, &[]) else {
        return;
    };
    let (execs, results) = rows(&stdout(&output));
    assert!(execs.iter().all(|row| row["dispatch"] == "unknown"));
    assert_eq!(results.len(), 2);
}

/// Ends the processes that run this file, by their numbers.
struct Held(Scratch);

impl Drop for Held {
    fn drop(&mut self) {
        for process in fs::read_dir("/proc").unwrap().flatten() {
            if fs::read_link(process.path().join("exe")).is_ok_and(|file| file == self.0.0) {
                let pid = process.file_name();
                let _ = Command::new("kill").arg("-KILL").arg(pid).status();
            }
        }
    }
}

/// A process that keeps the program's pages once the rounds have begun.
#[test]
fn a_start_that_is_not_cold_is_no_figure() {
    if !is_root() {
        eprintln!("skipped: only root can drop the cache");
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let [held, shell, count] = ["held", "shell", "count"].map(|name| {
        let name = format!("cold-{}-{name}", std::process::id());
        Scratch(folder.join(name))
    });
    fs::copy("/bin/sleep", &held.0).unwrap();
    // Others run the machine's own all the time.
    fs::copy("/bin/sh", &shell.0).unwrap();
    let held = Held(held);
    let path = held.0.path();
    // The third start of this is the first within a round.
    let hold = "echo >> $0; test $(/usr/bin/wc -l < $0) -ne 3 && exit 0; /usr/bin/setsid $1 600 & /bin/sleep 1";
    let output = ab(
        "-q --cold --rounds=2 --warmup=1",
        &[shell.path(), "-c", hold, count.path(), path],
        &[path, "0"],
    );
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (execs, _) = rows(&String::from_utf8(output.stdout).unwrap());
    let is_warm = |row: &&Row| row["status"] == "skipped:not-cold";
    let warm: Vec<_> = execs.iter().filter(is_warm).collect();
    assert!(!warm.is_empty());
    for row in warm {
        assert!(row["arm"].ends_with('b'), "{row:?}");
        assert!(row["exec_ns"].is_empty() && row["total_ns"].is_empty());
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// fanotify(7) asks somebody who never answers.
#[test]
fn an_exec_that_hangs_ends_with_the_timeout() {
    const SOURCE: &str = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <stdio.h>\n#include <sys/fanotify.h>\n\
        #include <unistd.h>\nint main(int n, char **word) {\n\
        int asked = fanotify_init(FAN_CLASS_CONTENT, O_RDONLY);\n\
        if (asked < 0 || fanotify_mark(asked, FAN_MARK_ADD, FAN_OPEN_EXEC_PERM, AT_FDCWD, word[1])) return 77;\n\
        puts(\"asked\"); fflush(stdout); sleep(600); return n; }\n";
    let [source, guard, program] = ["ask.c", "ask", "asked"].map(Scratch::new);
    fs::write(&source.0, SOURCE).unwrap();
    let words = ["-o", guard.path(), source.path()];
    let compiled = Command::new("cc").args(words).status();
    assert!(compiled.is_ok_and(|status| status.success()));
    fs::copy("/bin/true", &program.0).unwrap();
    let guard = Command::new(guard.path())
        .arg(program.path())
        .stdout(Stdio::piped())
        .spawn();
    let mut guard = Killed(guard.unwrap());
    let mut said = [0; 6];
    let said = std::io::Read::read_exact(guard.0.stdout.as_mut().unwrap(), &mut said);
    if said.is_err() {
        eprintln!("skipped: fanotify asks nobody here");
        return;
    }
    let words = "startup ab -q --rounds=1 --warmup=1 --timeout=1 --a /bin/true -- --b ";
    let output = command(&format!("{words}{}", program.path()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let (execs, _) = rows(&String::from_utf8(output.stdout).unwrap());
    for row in execs {
        let of_b = row["arm"].ends_with('b');
        let want = if of_b { "skipped:timeout" } else { "ok" };
        assert_eq!((&*row["status"], row["total_ns"].is_empty()), (want, of_b));
    }
}

/// Each limit, with the way that needs what it keeps back.
#[test]
fn a_limit_that_keeps_a_program_from_starting_is_named() {
    for (limit, via, want) in [
        ("-n 50", "native", "EBADF: raise ulimit -n to 101 or more"),
        (
            "-f 8",
            "memfd",
            "EFBIG: it is over 1 GiB, or over ulimit -f",
        ),
    ] {
        let script = format!(
            "ulimit {limit}; exec \"$0\" startup ab --a-via={via} --a /bin/sh -c : -- --b /bin/true"
        );
        let output = Command::new("sh")
            .args(["-c", &script, BINARY])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains(want), "{stderr}");
    }
}

#[test]
fn rounds_that_make_no_whole_blocks_are_said() {
    for (rounds, is_whole) in [("10", false), ("8", true)] {
        let output = ab(
            &format!("--rounds {rounds}"),
            &["/bin/true"],
            &["/bin/true"],
        );
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said = stderr.contains("(no whole blocks of 8: places are not balanced)");
        assert_eq!(said, !is_whole, "{stderr}");
        let notes = format!("\n#rounds={rounds}\n#rounds_in_a_block=8\n");
        assert!(stdout(&output).contains(&notes));
    }
}

#[test]
fn a_cpu_that_is_not_there_ends_with_no_usage_of_another_command() {
    let output = ab("--cpu=1023", &["/bin/true"], &["/bin/true"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("--cpu none") && !stderr.contains("bench"),
        "{stderr}"
    );
}
