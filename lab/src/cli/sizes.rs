//! The command line of `sizes`.

use super::{Command, Request, Topic, UsageError, Word, quoted};
use crate::sizes::chunks::AVERAGES;
use lexopt::{Arg, Parser};
use std::ffi::OsString;

pub(super) const COMMAND: Command = Command {
    topic: Topic::Sizes,
    name: "sizes",
    purpose: "bytes that R programs take, as copies, in one store, in chunks",
    usage: "usage: cowitness-lab sizes --manifest FILE [options]",
    help: include_str!("sizes.txt"),
    options: "--manifest, --avg, --page-size, --label, --scratch, -h, --help, -V, --version",
    parse,
};

/// Page sizes that SQLite has (its file format, 1.3.2).
const PAGES: [u64; 2] = [512, 65536];

/// How many average sizes are taken: each has a pack of its own on disk.
const AVERAGES_MAX: usize = 8;

/// A label of this many bytes leaves room for the row.
const LABEL_MAX: usize = 256;

/// What `sizes` is to store, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizesOptions {
    /// The manifest; `-` is standard input.
    pub manifest: OsString,
    /// Average sizes of chunks in bytes.
    pub averages: Vec<u64>,
    /// Page size of every SQLite file in bytes.
    pub page_bytes: u64,
    /// Copied to every row.
    pub label: String,
    /// Where the stores are built; `None`: where temporary files are.
    pub scratch: Option<OsString>,
}

fn parse(parser: &mut Parser) -> Result<Request, UsageError> {
    let mut options = SizesOptions {
        manifest: OsString::new(),
        averages: vec![4 << 10, 16 << 10, 64 << 10],
        page_bytes: 4096,
        label: String::new(),
        scratch: None,
    };
    let mut given = Vec::new();
    while let Some(word) = COMMAND.next(parser)? {
        if let Word::Other(Arg::Long(name)) = &word {
            once(name, &mut given)?;
        }
        match word {
            Word::Answer(request) => return Ok(request),
            Word::Other(Arg::Long("manifest")) => options.manifest = COMMAND.value(parser)?,
            Word::Other(Arg::Long("avg")) => options.averages = averages(parser)?,
            Word::Other(Arg::Long("page-size")) => options.page_bytes = page(parser)?,
            Word::Other(Arg::Long("label")) => options.label = label(parser)?,
            Word::Other(Arg::Long("scratch")) => options.scratch = Some(COMMAND.value(parser)?),
            Word::Other(option) => return Err(COMMAND.unknown(&option)),
        }
    }
    if options.manifest.is_empty() {
        return Err(COMMAND.error("no --manifest given; '-' is standard input".to_owned()));
    }
    Ok(Request::Sizes(options))
}

/// Refuses an option that was given before.
fn once(name: &str, given: &mut Vec<String>) -> Result<(), UsageError> {
    if given.iter().any(|before| before == name) {
        let name = quoted(name.as_ref());
        return Err(COMMAND.error(format!("--{name} is given twice")));
    }
    given.push(name.to_owned());
    Ok(())
}

fn averages(parser: &mut Parser) -> Result<Vec<u64>, UsageError> {
    let text = COMMAND.text(parser)?;
    let mut averages = Vec::new();
    for word in text.split(',') {
        let average = size(word).filter(|size| is_power_within(*size, AVERAGES));
        let average = average.ok_or_else(|| wrong(word, "--avg", AVERAGES))?;
        if averages.contains(&average) {
            return Err(COMMAND.error(format!(
                "'{}' is given twice in --avg",
                quoted(word.as_ref())
            )));
        }
        averages.push(average);
    }
    if averages.len() > AVERAGES_MAX {
        return Err(COMMAND.error(format!("--avg takes at most {AVERAGES_MAX} sizes")));
    }
    Ok(averages)
}

fn page(parser: &mut Parser) -> Result<u64, UsageError> {
    let text = COMMAND.text(parser)?;
    let page = size(&text).filter(|size| is_power_within(*size, PAGES));
    page.ok_or_else(|| wrong(&text, "--page-size", PAGES))
}

fn label(parser: &mut Parser) -> Result<String, UsageError> {
    let label = COMMAND.text(parser)?;
    if label.len() > LABEL_MAX || label.chars().any(char::is_control) {
        let problem = format!("--label takes at most {LABEL_MAX} bytes, none a control character");
        return Err(COMMAND.error(problem));
    }
    Ok(label)
}

/// Plain bytes, or with K, M or G behind them.
fn size(text: &str) -> Option<u64> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let unit = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((text, 0));
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| plain)?;
    number.checked_mul(1 << shift)
}

fn is_power_within(size: u64, [least, most]: [u64; 2]) -> bool {
    size.is_power_of_two() && (least..=most).contains(&size)
}

fn wrong(word: &str, option: &str, [least, most]: [u64; 2]) -> UsageError {
    let word = quoted(word.as_ref());
    COMMAND.error(format!(
        "'{word}' for {option} is no power of two from {least} to {most} bytes, like 16K"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(words: &[&str]) -> Result<SizesOptions, String> {
        let words = ["cowitness-lab", "sizes"].iter().chain(words);
        match crate::cli::parse(Parser::from_iter(words)) {
            Ok(Request::Sizes(options)) => Ok(options),
            Ok(other) => Err(format!("{other:?}")),
            Err(error) => Err(error.problem),
        }
    }

    #[test]
    fn defaults_are_the_protocols() {
        let options = sizes(&["--manifest", "m"]).unwrap();
        assert_eq!(options.averages, [4096, 16384, 65536]);
        assert_eq!((options.page_bytes, &*options.label), (4096, ""));
    }

    #[test]
    fn sizes_are_powers_of_two() {
        let options = sizes(&["--manifest=-", "--avg=256,1K,4M", "--page-size=65536"]).unwrap();
        assert_eq!(options.averages, [256, 1024, 4 << 20]);
        assert_eq!(options.page_bytes, 65536);
        for (option, values) in [
            (
                "--avg",
                &["", "128", "8M", "5000", "4K,", "4K,4096", "+4096", "4k"][..],
            ),
            (
                "--page-size",
                &["256", "128K", "4095", "K", "17179869185G"][..],
            ),
        ] {
            for value in values {
                let problem = sizes(&["--manifest=m", option, value]).unwrap_err();
                assert!(problem.contains(option), "{value}: {problem}");
            }
        }
    }

    #[test]
    fn an_option_is_given_once() {
        for (option, value) in [
            ("--manifest", "n"),
            ("--avg", "4K"),
            ("--page-size", "4K"),
            ("--label", "a"),
            ("--scratch", "s"),
        ] {
            let words = ["--manifest=m", option, value, option, value];
            let words = if option == "--manifest" {
                &words[..3]
            } else {
                &words
            };
            let problem = sizes(words).unwrap_err();
            assert_eq!(problem, format!("{option} is given twice"));
        }
    }

    #[test]
    fn a_manifest_is_needed() {
        let problem = sizes(&["--avg", "4K"]).unwrap_err();
        assert!(problem.starts_with("no --manifest given"), "{problem}");
    }
}
