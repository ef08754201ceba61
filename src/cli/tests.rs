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
    fn check<T: HasCommon>(spec: &CommandSpec<T>) {
        let common = common_options::<T>();
        assert!(spec.options.len() + common.len() <= OPTIONS_MAX);
        for option in spec.options.iter().chain(&common) {
            let word = &option.word;
            if !word.default.is_empty() {
                let set = (option.set)(&mut T::default(), word.default.as_bytes());
                assert_eq!(set, Ok(()), "{} {}", word.name, word.default);
            }
            let line: String = [word.name, word.help, word.allowed].concat();
            assert!(line.is_ascii() && !word.help.is_empty() && !word.allowed.is_empty());
        }
    }
    check(&bench::SPEC);
    check(&env::SPEC);
    check(&startup::AB);
    check(&startup::SLOPE);
}
