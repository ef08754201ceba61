//! The judgement of a guest, by its console and its ending alone. Nothing passes that is
//! not there in full and is not what was asked for.

use super::findings::Findings;
use super::outcome::Outcome;
use super::section::{self, Read};
use crate::asked::{self, Asked, Task};
use crate::console::{self, Console, Section, Sign, Verdict};
use crate::guest::Ending;

/// A guest that is over.
#[derive(Clone, Copy, Debug)]
pub struct Case<'c> {
    /// The console's name, for messages.
    pub name: &'c str,
    /// Everything that came over it.
    pub console: &'c [u8],
    /// Why it is over.
    pub ending: &'c Ending,
    /// What it was to do.
    pub asked: &'c Asked,
    /// CRC-32 of the appliance that it was given; `None`: any.
    pub exe_crc32: Option<u32>,
}

/// What a console gives: the outcome, the streams that are whole, what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Before anything is compared with expectations.
    pub outcome: Outcome,
    /// The whole streams, to the byte as they were written; empty unless all is sound.
    pub csv: String,
    /// What commands without rows have written, each under its name.
    pub text: String,
    /// Of the streams.
    pub findings: Findings,
    /// The checks that selftest has skipped, with its reasons.
    pub skips: Vec<String>,
    /// The known fields that its smaps_rollup lacks; `None`: selftest does not say.
    pub rollup_lacks: Option<Vec<String>>,
}

/// Judges a guest.
#[must_use]
pub fn judge(case: &Case<'_>) -> Judged {
    let console = console::read(case.console);
    let read: Vec<Read> = console
        .sections
        .iter()
        .map(|section| section::read(case.name, section))
        .collect();
    let mut csv: String = read.iter().filter_map(Read::csv).collect();
    let whole = || Findings::read(case.name, csv.as_bytes());
    let (findings, unsound) = match (!csv.is_empty()).then(whole).transpose() {
        Ok(findings) => (findings.unwrap_or_default(), None),
        Err(error) => (Findings::default(), Some(error.to_string())),
    };
    let damage = read.iter().find_map(|read| read.damage.clone());
    let damage = damage.or(unsound).or_else(|| findings.doubt.clone());
    let is_sound = damage.is_none();
    let trusted = || {
        damage
            .or_else(|| contradiction(&console, &read, case))
            .or_else(|| after_verdict(&console, case.asked))
    };
    let outcome = cut_short(&console, case.ending)
        .or_else(|| told(&console))
        .or_else(|| trusted().map(Outcome::Damaged))
        .or_else(|| {
            read.iter()
                .find_map(|read| read.nothing.clone())
                .map(Outcome::Empty)
        })
        .or_else(|| Outcome::of_lost(&findings))
        .or_else(|| (*case.ending == Ending::StillUp).then_some(Outcome::StillUp))
        .unwrap_or(Outcome::Pass);
    if !is_sound || !outcome.leaves_rows() {
        csv.clear();
    }
    Judged {
        outcome,
        csv,
        text: read
            .iter()
            .filter_map(|read| read.text.as_deref())
            .collect(),
        findings,
        rollup_lacks: read.iter().find_map(|read| read.rollup_lacks.clone()),
        skips: read.into_iter().flat_map(|read| read.skips).collect(),
    }
}

/// Why there is no verdict, or none that matters.
fn cut_short(console: &Console, ending: &Ending) -> Option<Outcome> {
    if let Some(dead) = dead(console) {
        return Some(dead);
    }
    let last = match &*console.last {
        "" => "the console is empty (too little memory for this kernel?)".to_owned(),
        last => format!("last on the console: {last}"),
    };
    if console.verdict().is_some() {
        return match ending {
            Ending::Lost(how) => Some(Outcome::LostQemu(format!("after the verdict: {how}"))),
            Ending::Interrupted => Some(Outcome::Interrupted),
            Ending::Flood => Some(flood()),
            _ => None,
        };
    }
    Some(match ending {
        Ending::Interrupted => Outcome::Interrupted,
        Ending::Lost(how) => Outcome::LostQemu(format!("{how}; {last}")),
        Ending::Deadline(seconds) => {
            Outcome::Deadline(format!("no verdict within {seconds} s; {last}"))
        }
        Ending::Flood => flood(),
        // The last three follow a verdict or a sign of death.
        Ending::Off | Ending::Ended | Ending::Dead | Ending::StillUp => Outcome::NoVerdict(last),
    })
}

fn flood() -> Outcome {
    let most = crate::guest::CONSOLE_MAX >> 20;
    Outcome::Damaged(format!("the console has more than {most} MiB"))
}

/// What the kernel says of itself, if it is dead, stuck or broken.
fn dead(console: &Console) -> Option<Outcome> {
    let signs = || console.signs.iter();
    let not_executed = signs().find_map(|sign| match sign {
        Sign::NotExecuted(what) => Some(what),
        _ => None,
    });
    let oops = signs().find_map(|sign| match sign {
        Sign::Oops(what) => Some(what.clone()),
        _ => None,
    });
    let end = signs().find_map(|sign| match (sign, not_executed) {
        (Sign::Panic(_), Some(what)) => Some(Outcome::NoInit(not_executable(what))),
        (Sign::Panic(reason), None) => Some(Outcome::Panic(match &oops {
            Some(oops) => format!("{reason}; before it: {oops}"),
            None => reason.clone(),
        })),
        (Sign::Stall(what), _) => Some(Outcome::Stalled(what.clone())),
        _ => None,
    });
    end.or_else(|| oops.map(Outcome::Oops))
}

/// What the kernel says of an init that it cannot execute, and what that means.
fn not_executable(what: &str) -> String {
    let meaning = match what.contains("(error -8)") {
        true => "; ENOEXEC: it is for another CPU, or no program",
        false => "",
    };
    format!("the kernel could not execute {what}{meaning}")
}

/// A verdict other than pass, and who brought it about.
fn told(console: &Console) -> Option<Outcome> {
    let bad = |section: &&Section| section.end.as_deref() != Some("status 0");
    let blamed = console.sections.iter().filter(bad).map(blame);
    let init = console.signs.iter().filter_map(|sign| match sign {
        Sign::InitError(error) => Some(format!("init: {error}")),
        _ => None,
    });
    let blamed = || blamed.chain(init).collect::<Vec<_>>().join("; ");
    match console.verdict()? {
        Verdict::Pass => None,
        Verdict::Fail => Some(Outcome::Fail(blamed())),
        Verdict::Invalid => Some(Outcome::Invalid(blamed())),
        Verdict::Error => Some(Outcome::Error(blamed())),
    }
}

fn blame(section: &Section) -> String {
    let name = section.name();
    let end = section.end.as_deref().unwrap_or("no end");
    let failures = console::selftest(&section.text).failures;
    let said = section.text.lines().rev().map(str::trim_end);
    let mut said = said.filter(|line| {
        line.starts_with("cowitness: error: ") || line.starts_with("memmap: error: ")
    });
    match (failures.is_empty(), said.next()) {
        (false, _) if name == "selftest" => format!("{name}: {}", failures.join(", ")),
        (_, Some(said)) => format!("{name}: {end}: {said}"),
        _ => format!("{name}: {end}"),
    }
}

/// What contradicts a verdict of pass.
fn contradiction(console: &Console, read: &[Read], case: &Case<'_>) -> Option<String> {
    let asked = &case.asked.commands;
    let ran: Vec<&str> = console
        .sections
        .iter()
        .map(|section| &*section.command)
        .collect();
    let lines: Vec<String> = asked.iter().map(Task::line).collect();
    if ran != lines {
        let then = format!(" {} ", asked::then());
        let (ran, asked) = (ran.join(&then), lines.join(&then));
        return Some(format!("the console shows '{ran}', asked was '{asked}'"));
    }
    let mut sections = console.sections.iter().zip(read).zip(asked);
    sections.find_map(|((section, read), task)| {
        let name = section.name();
        match section.end.as_deref() {
            Some("status 0") => section::contradiction(section, read, task, case.exe_crc32),
            Some(end) => Some(format!("verdict pass, but {name} ended with {end}")),
            None => Some(format!("verdict pass, but {name} has no end")),
        }
    })
}

/// What comes after a verdict of pass and must not.
fn after_verdict(console: &Console, asked: &Asked) -> Option<String> {
    // The program that init became may say anything; a verdict that is worse has counted.
    if asked.becomes {
        return None;
    }
    match console.verdicts().count() {
        0 | 1 => {}
        verdicts => return Some(format!("{verdicts} verdicts")),
    }
    let stray = console.stray.as_ref();
    stray.map(|line| format!("after the verdict: {line}"))
}
