//! The walk over argv, against the real tables.

use super::*;
use crate::measure::plan::Order;
use crate::reader::Method;
use std::boxed::Box;
use std::ffi::CString;
use std::string::{String, ToString};
use std::vec::Vec;

/// Parses a command line; the words live as long as the test program.
fn request(line: &str) -> Result<(Request, Asked), UsageError> {
    let words: Vec<&'static CStr> = ["cowitness"]
        .into_iter()
        .chain(line.split_ascii_whitespace())
        .map(|word| &*Box::leak(CString::new(word).unwrap().into_boxed_c_str()))
        .collect();
    let mut asked = Asked::default();
    let request = parse(&|index| words.get(index).copied(), &mut asked)?;
    Ok((request, asked))
}

fn bench(line: &str) -> bench::Options {
    match request(line) {
        Ok((Request::Run(Topic::Bench), asked)) => asked.bench,
        other => panic!("{line}: {other:?}"),
    }
}

/// The published experiment, from the interface document.
#[test]
fn defaults_are_the_published_experiment() {
    let options = bench("bench");
    assert_eq!(options.cuts[..], [bench::Cut::Contiguous, bench::Cut::Vma]);
    assert_eq!((options.mb, options.warm, options.repeats), (32, 5, 10));
    assert_eq!(options.segment_pages[..], [16, 64]);
    assert_eq!(options.blocks[..], [4096, 65536, 262_144]);
    assert_eq!(options.methods[..], [Method::Proc, Method::Vmread]);
    assert_eq!(options.order, Order::Balanced);
    assert_eq!(options.pages, bench::Pages::Small);
    assert_eq!(options.pin, bench::Pin::Current);
    assert!(!options.first_write && !options.common.quiet);
}

#[test]
fn options_come_in_any_order_and_both_spellings() {
    let a = bench("bench --mb 8 -q --block=16,1M --cpu none --method all --first-write");
    assert_eq!((a.mb, a.common.quiet, a.first_write), (8, true, true));
    assert_eq!(a.blocks[..], [16, 1 << 20]);
    assert_eq!(a.pin, bench::Pin::None);
    assert_eq!(a.methods.len(), Method::ALL.len() - 2);
    assert!(a.methods.iter().all(|method| method.is_general()));
    assert_eq!(bench("bench --mb 8 --mb=9").mb, 9);
    assert_eq!(bench("bench --cpu 3").pin, bench::Pin::Cpu(3));
}

#[test]
fn what_is_in_effect_is_known_defaults_included() {
    let (_, asked) = request("bench --mb 8 --first-write").unwrap();
    let of = |name| {
        asked
            .effective
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    };
    assert_eq!(of("--mb"), Some(&b"8"[..]));
    assert_eq!(of("--warm"), Some(&b"5"[..]));
    assert_eq!(of("--first-write"), Some(&b""[..]));
    assert_eq!(of("--label"), None);
}

#[test]
fn help_and_version_win_wherever_they_stand() {
    let cases = [
        ("--help", Request::Help(Topic::Program)),
        ("bench --mb 8 -h", Request::Help(Topic::Bench)),
        ("env --help", Request::Help(Topic::Env)),
        ("env -V", Request::Version),
    ];
    for (line, want) in cases {
        assert_eq!(request(line).unwrap().0, want, "{line}");
    }
}

/// Each of these runs nothing and names the word.
#[test]
fn every_senseless_line_names_its_word() {
    let cases = [
        ("", "", "NoCommand"),
        ("bunch", "bunch", "UnknownCommand"),
        ("--mb 3 bench", "--mb", "UnknownOption"),
        ("bench --mib 3", "--mib", "UnknownOption"),
        ("bench -x", "-x", "UnknownOption"),
        ("bench --mb", "--mb", "MissingValue"),
        ("bench --quiet=yes", "--quiet=yes", "NoValueTaken"),
        ("bench 32", "32", "StrayWord"),
        ("bench --mb 0", "0", "BadValue"),
        ("bench --mb 1048577", "1048577", "BadValue"),
        (
            "bench --mb 99999999999999999999",
            "99999999999999999999",
            "BadValue",
        ),
        ("bench --mb -1", "-1", "BadValue"),
        ("bench --mb=", "", "BadValue"),
        ("bench --block 0", "0", "BadValue"),
        ("bench --block 15", "15", "BadValue"),
        ("bench --block 17179869184G", "17179869184G", "BadValue"),
        ("bench --block 4K,4096", "4K,4096", "BadValue"),
        ("bench --repeats 0", "0", "BadValue"),
        ("bench --repeats 10001", "10001", "BadValue"),
        ("bench --warm 1001", "1001", "BadValue"),
        ("bench --method fast", "fast", "BadValue"),
        ("bench --method proc,proc", "proc,proc", "BadValue"),
        ("bench --method both,ptrace", "both,ptrace", "BadValue"),
        ("bench --layout flat", "flat", "BadValue"),
        ("bench --segment-pages 0", "0", "BadValue"),
        ("bench --order random", "random", "BadValue"),
        ("bench --pages huge", "huge", "BadValue"),
        ("bench --cpu 1024", "1024", "BadValue"),
        ("bench --cpu all", "all", "BadValue"),
        ("bench --clock sundial", "sundial", "BadValue"),
        ("env --mb 3", "--mb", "UnknownOption"),
    ];
    for (line, word, problem) in cases {
        let error = request(line).expect_err(line);
        assert_eq!(error.word.escape_ascii().to_string(), word, "{line}");
        let named = std::format!("{:?}", error.problem);
        assert!(named.starts_with(problem), "{line}: {named}");
    }
}

/// Every default is accepted by its own option, and the tables fit where they are kept.
#[test]
fn tables_fit() {
    fn check<T: HasCommon>(spec: &'static CommandSpec<T>) {
        assert!(spec.options.len() + COMMON.len() <= OPTIONS_MAX);
        for (index, word) in (0..).map_while(|index| Some((index, spec.word(index)?))) {
            if !word.default.is_empty() {
                let set = spec.set(index, &mut T::default(), word.default.as_bytes());
                assert_eq!(set, Ok(()), "{} {}", word.name, word.default);
            }
            let line: String = [word.name, word.help, word.allowed].concat();
            assert!(line.is_ascii() && !word.help.is_empty() && !word.allowed.is_empty());
        }
    }
    check(&audit::SPEC);
    check(&bench::SPEC);
    check(&env::SPEC);
    check(&memmap::SPEC);
    check(&probe::SPEC);
    check(&startup::AB);
    check(&startup::SLOPE);
    check(&sharing::SPEC);
    check(&survey::SPEC);
}

#[test]
fn a_program_stands_behind_two_dashes_with_its_own_options() {
    let sharing = |line| match request(line) {
        Ok((Request::Run(Topic::Sharing), asked)) => asked,
        other => panic!("{line}: {other:?}"),
    };
    let effective = |asked: &Asked| {
        let mut all = asked.effective.iter();
        all.find(|(name, _)| *name == "--program").unwrap().1
    };
    let asked = sharing("sharing --n 1,2 -- python3 -c x --n 9 -- --help");
    assert_eq!(asked.sharing.program, Some(5));
    assert_eq!(asked.sharing.n[..], [1, 2]);
    assert_eq!(effective(&asked), b"python3");
    let asked = sharing("sharing");
    assert_eq!(asked.sharing.program, None);
    assert_eq!(effective(&asked), b"built-in");
    let arms: Vec<&str> = asked.sharing.arms.iter().map(sharing::Arm::name).collect();
    assert_eq!(arms, ["elf", "native", "memfd"]);
    assert_eq!(asked.sharing.n[..], [1, 2, 4, 8, 16, 32]);
    assert_eq!((asked.sharing.reps, asked.sharing.settle_s), (3, 30));
}
