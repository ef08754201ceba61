//! `startup` with programs that do known things: what is started, how often, in which order
//! and surroundings, and what becomes of the figures. No time is asserted.

mod common;
#[path = "common/startup.rs"]
mod helpers;

use common::{BINARY, Row, command_as_nobody, is_root, number, stdout};
use helpers::{Scratch, ab, rows, startup};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The median with the midpoint rounded half up, and the ends of the interval that the sign
/// test gives: 1-based ranks from tables of the binomial distribution.
fn middle(mut values: Vec<i64>, rank: usize) -> [i64; 3] {
    values.sort_unstable();
    let n = values.len();
    let sum = values[(n - 1) / 2] + values[n / 2];
    [(sum + 1).div_euclid(2), values[rank - 1], values[n - rank]]
}

/// What rows say of a program of this CPU that no entry of binfmt_misc takes: where its
/// entries cannot be read, nobody knows.
fn direct() -> &'static str {
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    let is_there = known.contains("\tbinfmt_misc\n");
    let is_mounted = fs::exists("/proc/sys/fs/binfmt_misc/status").unwrap();
    if is_there && !is_mounted {
        "unknown"
    } else {
        "direct"
    }
}

/// Times by metric, arm and round.
type Times = BTreeMap<(&'static str, String, i64), i64>;

const METRICS: [&str; 2] = ["exec", "total"];

fn times(execs: &[Row]) -> Times {
    let mut times = Times::new();
    for row in execs {
        for metric in METRICS {
            let key = (metric, row["arm"].clone(), number(row, "round").unwrap());
            let ns = number(row, &format!("{metric}_ns")).unwrap();
            assert_eq!(times.insert(key, ns), None, "{row:?}");
        }
    }
    times
}

#[test]
fn every_round_starts_each_arm_once() {
    let options = "-q --rounds 16 --label x,y";
    let text = stdout(&ab(options, &["/bin/true"], &["/bin/sh", "-c", "exit 0"]));
    let (execs, _) = rows(&text);
    let rounds = (1..=16).flat_map(|round| ["a", "null", "b", "null-b"].map(|arm| (round, arm)));
    let mut started: Vec<(i64, &str)> = execs
        .iter()
        .map(|row| (number(row, "round").unwrap(), &*row["arm"]))
        .collect();
    started.sort_unstable();
    // The programs run equally often, or the one that runs more often would be the faster.
    let mut wanted: Vec<_> = rounds.collect();
    wanted.sort_unstable();
    assert_eq!(started, wanted);
    let mut places = BTreeMap::new();
    for row in &execs {
        let get = |column: &str| number(row, column).unwrap();
        assert_eq!(row["record"], "startup");
        assert_eq!((&*row["label"], &*row["status"]), ("x,y", "ok"));
        assert_eq!((&*row["dispatch"], &*row["cache"]), (direct(), "warm"));
        assert_eq!((&*row["exit_status"], &*row["n_objects"]), ("0", ""));
        assert!(0 < get("exec_ns") && get("exec_ns") <= get("total_ns"));
        assert!(get("minflt") > 0, "a program touches its pages");
        let place = (row["arm"].clone(), get("position"));
        *places.entry(place).or_insert(0) += 1;
    }
    assert_eq!(places.len(), 16);
    assert!(places.values().all(|&count| count == 4), "{places:?}");
}

/// That a row of the result is that of these times, of 16 rounds.
fn is_of(row: &Row, times: &Times) {
    let of = |arm: &str| -> Vec<i64> {
        let key = |round| (&*row["metric"], arm.to_owned(), round);
        (1..=16).map(|round| times[&key(round)]).collect()
    };
    let less = |arm| -> Vec<i64> {
        let pairs = of("a").into_iter().zip(of(arm));
        pairs.map(|(a, b)| a - b).collect()
    };
    let get = |columns: [&str; 3]| columns.map(|column| number(row, column).unwrap());
    // Of 16 pairs: P(Bin(16, 1/2) < 4) = 697/65536, so the fourth from either
    // end, with 97.8729 %, of which no more is said than there is.
    let difference = middle(less("b"), 4);
    assert_eq!(get(["difference_ns", "low_ns", "high_ns"]), difference);
    let null = middle(less("null"), 4);
    let columns = ["null_difference_ns", "null_low_ns", "null_high_ns"];
    assert_eq!(get(columns), null);
    assert_eq!(number(row, "a_median_ns"), Some(middle(of("a"), 1)[0]));
    assert_eq!(number(row, "b_median_ns"), Some(middle(of("b"), 1)[0]));
    let known = (&*row["pairs"], &*row["confidence_percent"]);
    assert_eq!(known, ("16", "97.872"));
    let [middle, low, high] = difference;
    let resolved = (low > 0 || high < 0) && middle.abs() > 3 * null[0].abs();
    assert_eq!(row["verdict"] == "resolved", resolved, "{row:?}");
}

#[test]
fn the_result_is_that_of_its_rows() {
    let command = ["/bin/sh", "-c", "exit 0"];
    let text = stdout(&ab("-q --rounds 16", &["/bin/true"], &command));
    let (execs, results) = rows(&text);
    let metrics: Vec<&str> = results.iter().map(|row| &*row["metric"]).collect();
    assert_eq!(metrics, METRICS);
    let times = times(&execs);
    for row in &results {
        is_of(row, &times);
    }
}

/// The kernel hands no second `--` to the first process.
#[test]
fn without_a_dash_word_the_other_arm_ends_the_words() {
    let text = stdout(&startup(&[
        "ab",
        "-q",
        "--rounds=1",
        "--b",
        "/bin/true",
        "x",
        "--a",
        "/bin/true",
        "y",
    ]));
    assert!(
        text.contains("\n#arm_b=/bin/true x\n#arm_a=/bin/true y\n"),
        "{text}"
    );
}

#[test]
fn the_seed_decides_the_order() {
    let order = |seed: u64| -> Vec<String> {
        let options = format!("-q --rounds=9 --seed {seed}");
        let (execs, _) = rows(&stdout(&ab(&options, &["/bin/true"], &["/bin/true"])));
        execs.into_iter().map(|row| row["arm"].clone()).collect()
    };
    assert_eq!(order(4), order(4));
    assert_ne!(order(4), order(5));
}

/// No environment, /dev/null three times, no signal blocked, those that the tool itself
/// handles or ignores at their defaults, a process group of its own.
#[test]
fn the_surroundings_are_always_the_same() {
    const LOOK: &str = "e=$(cat /proc/$$/environ); f=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2); \
        s=$(grep -E '^Sig(Blk|Ign)' /proc/$$/status); p=$(cut -d' ' -f1,5 /proc/$$/stat); \
        printf '%s\\n' \"<$e>\" \"$f\" \"$s\" \"$p\" > $0";
    let seen = Scratch::new("surroundings");
    let output = Command::new(BINARY)
        .args(["startup", "ab", "-q", "--rounds=1", "--b", "/bin/true"])
        .args(["--", "--a", "/bin/sh", "-c", LOOK, seen.path()])
        .env("COWITNESS_TEST", "1")
        .output()
        .unwrap();
    stdout(&output);
    let text = fs::read_to_string(&seen.0).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..4], ["<>", "/dev/null", "/dev/null", "/dev/null"]);
    let bits = |line: &str| u64::from_str_radix(line.split_once(":\t").unwrap().1, 16).unwrap();
    assert_eq!(bits(lines[4]), 0, "{text}");
    // SIGINT, SIGPIPE, SIGTERM, SIGXFSZ.
    let taken = [2, 13, 15, 25].map(|signal| 1u64 << (signal - 1));
    assert!(taken.iter().all(|bit| bits(lines[5]) & bit == 0), "{text}");
    let (pid, group) = lines[6].split_once(' ').unwrap();
    assert_eq!(pid, group);
}

/// binfmt_misc is asked before the kernel's own handlers, so an entry may take an ELF file.
#[test]
fn an_entry_that_takes_an_elf_file_is_told() {
    const SCRIPT: &str = r#"
        folder=/proc/sys/fs/binfmt_misc
        mount -t binfmt_misc binfmt_misc $folder 2> /dev/null
        echo ":$2:E::$2::/bin/true:" > $folder/register || exit 77
        trap 'echo -1 > $folder/$2' EXIT
        "$0" startup ab -q --rounds=1 --a "$1" -- --b /bin/false -- --allow-failure
    "#;
    if !is_root() {
        eprintln!("skipped: only root can register with binfmt_misc");
        return;
    }
    let extension = format!("cowitness{}", std::process::id());
    let program = Scratch::new(&format!("elf.{extension}"));
    fs::copy("/bin/false", &program.0).unwrap();
    let output = Command::new("unshare")
        .args([
            "--mount",
            "sh",
            "-c",
            SCRIPT,
            BINARY,
            program.path(),
            &extension,
        ])
        .output()
        .unwrap();
    if output.status.code() == Some(77) {
        eprintln!("skipped: nothing can be registered with binfmt_misc here");
        return;
    }
    let (execs, results) = rows(&stdout(&output));
    for row in execs {
        let of_a = !row["arm"].ends_with('b');
        // /bin/true ran in place of /bin/false.
        let want = if of_a {
            ("registered", "0")
        } else {
            ("direct", "1")
        };
        assert_eq!((&*row["dispatch"], &*row["exit_status"]), want);
    }
    assert!(results.iter().all(|row| row["a_dispatch"] == "registered"));
}

/// What the program does shows that it is the one that was asked for, with its words.
#[test]
fn a_program_is_reached_in_three_ways() {
    let seen = Scratch::new("reached");
    for (how, dispatch) in [
        ("execve", direct()),
        ("memfd", "memfd"),
        ("native", "native"),
    ] {
        let output = ab(
            &format!("-q --rounds=6 --a-via {how}"),
            &[
                "/bin/sh",
                "-c",
                "echo \"$1\" > \"$0\"",
                seen.path(),
                "one word",
            ],
            &[BINARY, "--version"],
        );
        let (execs, results) = rows(&stdout(&output));
        for row in &execs {
            let want = if row["arm"].ends_with('b') {
                direct()
            } else {
                dispatch
            };
            assert_eq!((&*row["dispatch"], &*row["exit_status"]), (want, "0"));
        }
        assert!(
            results
                .iter()
                .all(|row| row["a_dispatch"] == dispatch && row["pairs"] == "6")
        );
        assert_eq!(fs::read_to_string(&seen.0).unwrap(), "one word\n", "{how}");
        fs::remove_file(&seen.0).unwrap();
    }
}

/// Six programs: twelve rounds a block, so 204 and not 200.
#[test]
fn a_slope_takes_whole_blocks() {
    let arms = [
        "1=/bin/true",
        "2=/bin/true",
        "3=/bin/true",
        "4=/bin/true",
        "5=/bin/true",
    ];
    let control = format!("static={BINARY}");
    let words = [&["slope", "-q", "--allow-failure"], &arms[..], &[&control]].concat();
    let (execs, results) = rows(&stdout(&startup(&words)));
    assert_eq!(execs.len(), 6 * 204);
    let mut places = BTreeMap::new();
    for row in &execs {
        *places.entry((&row["arm"], &row["position"])).or_insert(0) += 1;
    }
    assert_eq!(places.len(), 36);
    assert!(places.values().all(|&count| count == 34), "{places:?}");
    assert!(results.iter().all(|row| row["samples"] == "204"));
}

/// The median of an arm's times.
fn median(execs: &[Row], arm: &str, metric: &str) -> f64 {
    let rows = execs.iter().filter(|row| row["arm"] == arm);
    let ns = rows.map(|row| number(row, &format!("{metric}_ns")).unwrap());
    middle(ns.collect(), 1)[0] as f64
}

/// Slope and intercept by least squares.
fn line(points: [(f64, f64); 4]) -> (f64, f64) {
    let mean = |value: &dyn Fn((f64, f64)) -> f64| {
        points.iter().map(|&point| value(point)).sum::<f64>() / 4.0
    };
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let slope = mean(&|(px, py)| (px - x) * (py - y)) / mean(&|(px, _)| (px - x) * (px - x));
    (slope, y - slope * x)
}

/// The medians of a slope, and the least squares through them, from the rows.
#[test]
fn the_line_is_that_of_the_medians() {
    // The control says what it takes, with status 2.
    let options = ["slope", "-q", "--rounds", "5", "--allow-failure"];
    let control = format!("static={BINARY}");
    let (one, two) = (
        ["1=/bin/true", "4=/bin/true"],
        ["9=/bin/true", "2=/bin/true"],
    );
    let output = startup(&[&options[..], &one, &[&control], &two].concat());
    let (execs, results) = rows(&stdout(&output));
    assert_eq!((execs.len(), results.len()), (25, 10));
    let arms = execs.iter().map(|row| (&*row["arm"], &*row["n_objects"]));
    let want = [
        ("n=1", "1"),
        ("n=2", "2"),
        ("n=4", "4"),
        ("n=9", "9"),
        ("static", ""),
    ];
    assert_eq!(arms.collect::<BTreeSet<_>>(), BTreeSet::from(want));
    for row in &results {
        let median = |arm: &str| median(&execs, arm, &row["metric"]);
        let (slope, intercept) = line([1.0, 2.0, 4.0, 9.0].map(|n| (n, median(&format!("n={n}")))));
        let get = |column: &str| row[column].parse::<f64>().unwrap();
        let (at, height) = match &*row["arm"] {
            "static" => (0.0, median("static")),
            arm => (get("n_objects"), median(arm)),
        };
        for (column, want) in [
            ("median_ns", height),
            ("slope_ns", slope),
            ("intercept_ns", intercept),
            ("residual_ns", height - intercept - slope * at),
        ] {
            let differs = (get(column) - want).abs();
            assert!(differs < 0.01, "{column}: {row:?} {want}");
        }
        assert_eq!(row["samples"], "5");
    }
    let metrics: BTreeSet<&str> = results.iter().map(|row| &*row["metric"]).collect();
    assert_eq!(metrics, BTreeSet::from(METRICS));
}

/// Drops the caches of this machine four times a round, so there is one.
#[test]
fn cold_is_shown_and_said_in_every_row_and_takes_root() {
    let words = "startup ab -q --cold --rounds 1 --warmup 1 --a /bin/true -- --b /bin/true";
    let Some((mut command, _folder)) = command_as_nobody(words) else {
        return;
    };
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("EACCES: it takes root"), "{stderr}");
    assert!(output.stdout.is_empty());
    let cold = |a: &str, b: &str| ab("-q --cold --rounds=1 --warmup=1", &[a], &[b]);
    let copies = ["a", "b"].map(|name| {
        let name = format!("cold-{}-{name}", std::process::id());
        Scratch(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    });
    for copy in &copies {
        fs::copy("/bin/true", &copy.0).unwrap();
    }
    let (execs, results) = rows(&stdout(&cold(copies[0].path(), copies[1].path())));
    let mut all = execs.iter().chain(&results);
    assert!(all.all(|row| row["cache"] == "cold"));
    assert_eq!(execs.len(), 4);
    // What is in memory alone cannot be dropped.
    let held = Scratch(PathBuf::from("/dev/shm").join(copies[0].0.file_name().unwrap()));
    if fs::copy("/bin/true", &held.0).is_err() {
        eprintln!("skipped: no /dev/shm here");
        return;
    }
    let output = cold(copies[0].path(), held.path());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("stay in memory although"), "{stderr}");
    assert!(output.stdout.is_empty());
}

/// The tool by the name that scripts/binfmt-experiment gives a copy ends at once, whatever
/// it is handed; by any other it does not.
#[test]
fn the_interpreter_is_a_name() {
    use std::os::unix::process::CommandExt;
    let by_name = |name: &str| {
        Command::new(BINARY)
            .arg0(name)
            .arg("/some/file")
            .output()
            .unwrap()
    };
    let output = by_name("/tmp/x/cowitness-interpreter");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    assert_eq!(by_name("/tmp/x/cowitness").status.code(), Some(2));
}
