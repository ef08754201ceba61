//! What became of one machine. Everything but [`Outcome::Pass`] is a failure, silence too.

use super::findings::Findings;
use crate::console::{self, Console, Section, Sign, Verdict};
use crate::guest::Ending;
use crate::stream::StreamError;

/// Commands whose output is not framed rows.
const UNFRAMED: [&str; 3] = ["selftest", "env", "help"];

/// What became of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Verdict, frames, counts and checksums are right, and so is what was found.
    Pass,
    /// All is whole, and something is not as expected.
    Mismatch(String),
    /// A check of selftest failed.
    Fail(String),
    /// A measurement was not valid or not possible.
    Invalid(String),
    /// A command failed.
    Error(String),
    /// The kernel panicked.
    Panic(String),
    /// The kernel could not execute init.
    NoInit(String),
    /// The kernel says that it is stuck.
    Stalled(String),
    /// No verdict in time.
    Deadline(String),
    /// The emulator was lost before the verdict.
    LostQemu(String),
    /// The guest ended without a verdict.
    NoVerdict(String),
    /// A verdict, and no power-off.
    StillUp,
    /// What came over the console cannot be trusted.
    Damaged(String),
    /// Its kernel's image is cut, or not what was fetched.
    BadImage(String),
    /// It could not be booted at all.
    NotReady(String),
    /// A real machine that brought nothing back.
    Failed(String),
    /// The lab was ended.
    Interrupted,
}

impl Outcome {
    /// One word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Mismatch(_) => "mismatch",
            Self::Fail(_) => "fail",
            Self::Invalid(_) => "invalid",
            Self::Error(_) => "error",
            Self::Panic(_) => "panic",
            Self::NoInit(_) => "no-init",
            Self::Stalled(_) => "stalled",
            Self::Deadline(_) => "deadline",
            Self::LostQemu(_) => "lost-qemu",
            Self::NoVerdict(_) => "no-verdict",
            Self::StillUp => "still-up",
            Self::Damaged(_) => "damaged",
            Self::BadImage(_) => "bad-image",
            Self::NotReady(_) => "not-ready",
            Self::Failed(_) => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// What more there is to say, in one line.
    #[must_use]
    pub fn detail(&self) -> &str {
        match self {
            Self::Pass | Self::Interrupted => "",
            Self::StillUp => "a verdict came, but the guest did not power off",
            Self::Mismatch(detail)
            | Self::Fail(detail)
            | Self::Invalid(detail)
            | Self::Error(detail)
            | Self::Panic(detail)
            | Self::NoInit(detail)
            | Self::Stalled(detail)
            | Self::Deadline(detail)
            | Self::LostQemu(detail)
            | Self::NoVerdict(detail)
            | Self::Damaged(detail)
            | Self::BadImage(detail)
            | Self::NotReady(detail)
            | Self::Failed(detail) => detail,
        }
    }
}

/// What a console gives: the outcome, the streams that are whole, what they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Before anything is compared with expectations.
    pub outcome: Outcome,
    /// The whole streams, to the byte as they were written.
    pub csv: String,
    /// Of those.
    pub findings: Findings,
}

/// Judges a guest by its console and its ending. `commands` are what it was to run;
/// `name` is the console's, for messages.
#[must_use]
pub fn judge(name: &str, bytes: &[u8], ending: &Ending, commands: &[String]) -> Judged {
    let console = console::read(bytes);
    let (csv, damage) = streams(name, &console);
    let read = || Findings::read(name, csv.as_bytes());
    let (findings, unsound) = match (!csv.is_empty()).then(read).transpose() {
        Ok(findings) => (findings.unwrap_or_default(), None),
        Err(error) => (Findings::default(), Some(error.to_string())),
    };
    let mixed = findings.mixed.as_ref();
    let mixed = mixed.map(|other| format!("rows of several machines, one of them {other}"));
    let trusted = || match damage.or(unsound).or(mixed) {
        Some(damage) => Some(damage),
        None => contradiction(&console, commands),
    };
    let outcome = cut_short(&console, ending)
        .or_else(|| told(&console))
        .or_else(|| trusted().map(Outcome::Damaged))
        .or_else(|| (*ending == Ending::StillUp).then_some(Outcome::StillUp))
        .unwrap_or(Outcome::Pass);
    Judged {
        outcome,
        csv,
        findings,
    }
}

/// Why there is no verdict, or none that matters.
fn cut_short(console: &Console, ending: &Ending) -> Option<Outcome> {
    let not_executed = console.signs.iter().find_map(|sign| match sign {
        Sign::NotExecuted(what) => Some(what),
        _ => None,
    });
    let dead = console.signs.iter().find_map(|sign| match sign {
        Sign::Panic(reason) => Some(match not_executed {
            Some(what) => Outcome::NoInit(not_executable(what)),
            None => Outcome::Panic(reason.clone()),
        }),
        Sign::Stall(what) => Some(Outcome::Stalled(what.clone())),
        _ => None,
    });
    if dead.is_some() || console.verdict().is_some() {
        return dead;
    }
    let last = match &*console.last {
        "" => "the console is empty".to_owned(),
        last => format!("last on the console: {last}"),
    };
    Some(match ending {
        Ending::Interrupted => Outcome::Interrupted,
        Ending::Lost(how) => Outcome::LostQemu(format!("{how}; {last}")),
        Ending::Deadline(seconds) => {
            Outcome::Deadline(format!("no verdict within {seconds} s; {last}"))
        }
        // The last three follow a verdict or a sign of death.
        Ending::Off | Ending::Ended | Ending::Dead | Ending::StillUp => Outcome::NoVerdict(last),
    })
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
    let blamed = || blamed.collect::<Vec<_>>().join("; ");
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
    let mut said = said.filter(|line| line.starts_with("cowitness: error: "));
    match (failures.is_empty(), said.next()) {
        (false, _) if name == "selftest" => format!("{name}: {}", failures.join(", ")),
        (_, Some(said)) => format!("{name}: {end}: {said}"),
        _ => format!("{name}: {end}"),
    }
}

/// What contradicts a verdict of pass.
fn contradiction(console: &Console, commands: &[String]) -> Option<String> {
    let ran = console.sections.iter().map(|section| &section.command);
    if !ran.eq(commands) {
        let ran: Vec<&str> = console.sections.iter().map(|s| &*s.command).collect();
        let (ran, asked) = (ran.join(" then "), commands.join(" then "));
        return Some(format!("the console shows '{ran}', asked was '{asked}'"));
    }
    console.sections.iter().find_map(|section| {
        let name = section.name();
        match section.end.as_deref() {
            Some("status 0") if name == "selftest" => miscounted(section),
            Some("status 0") => None,
            Some(end) => Some(format!("verdict pass, but {name} ended with {end}")),
            None => Some(format!("verdict pass, but {name} has no end")),
        }
    })
}

fn miscounted(section: &Section) -> Option<String> {
    let found = console::selftest(&section.text);
    let [passed, failed, skipped] = found.lines;
    match found.closing {
        None => Some("selftest has no closing count".to_owned()),
        Some(closing) if closing != found.lines => {
            let [a, b, c] = closing;
            Some(format!(
                "selftest counts {a} passed, {b} failed, {c} skipped; \
                 its lines are {passed}, {failed}, {skipped}"
            ))
        }
        Some([_, 0, _]) => None,
        Some(_) => Some("verdict pass, but checks of selftest failed".to_owned()),
    }
}

/// All streams that are whole, and the first that is not.
fn streams(name: &str, console: &Console) -> (String, Option<String>) {
    let (mut csv, mut damage) = (String::new(), None);
    for section in &console.sections {
        let framed = !UNFRAMED.contains(&section.name());
        match framed.then(|| whole(name, section)) {
            Some(Ok(stream)) => csv += &stream,
            Some(Err(error)) => damage = damage.or(Some(error.to_string())),
            None => {}
        }
    }
    (csv, damage)
}

/// The streams of a command, without what came around them.
fn whole(name: &str, section: &Section) -> Result<String, StreamError> {
    // Lines in front, so that places are lines of the console.
    let placed = "\n".repeat(section.line) + &section.text;
    Findings::read(name, placed.as_bytes())?;
    let (mut csv, mut within) = (String::new(), false);
    for line in section.text.split_inclusive('\n') {
        let line = line.replace('\r', "");
        // Something may have been left on the first line before it.
        let begin = line
            .rfind(cowitness::emit::stream::MAGIC)
            .filter(|_| !within);
        within |= begin.is_some();
        if within {
            csv += &line[begin.unwrap_or(0)..];
        }
        within &= !line.starts_with("#end ");
    }
    Ok(csv)
}
