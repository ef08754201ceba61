//! What became of one machine. Everything but [`Outcome::Pass`] is a failure, silence too.

use super::findings::Findings;

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
    /// The kernel says that something in it is broken.
    Oops(String),
    /// No verdict in time.
    Deadline(String),
    /// The emulator was lost, before the verdict or after it.
    LostQemu(String),
    /// The guest ended without a verdict.
    NoVerdict(String),
    /// A verdict, and no power-off.
    StillUp,
    /// What came over the console cannot be trusted.
    Damaged(String),
    /// Whole and sound, and there is no row that counts.
    Empty(String),
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
    /// Why rows that are whole and sound come to nothing, or not to all; `None`: they do not.
    #[must_use]
    pub(super) fn of_lost(found: &Findings) -> Option<Self> {
        if let Some(at) = found.streams.iter().position(|seen| seen.rows == 0) {
            return Some(Self::Empty(format!("stream {} has no row", at + 1)));
        }
        let (rows, lost) = (found.rows(), found.lost_rows);
        let first = found.first_lost.as_deref().unwrap_or_default();
        if rows > 0 && found.ok_rows == 0 {
            return Some(Self::Empty(format!("no row counts, the first is {first}")));
        }
        (lost > 0)
            .then(|| Self::Invalid(format!("{lost} of {rows} rows lost, the first is {first}")))
    }

    /// Whether rows that are sound by themselves are worth keeping: the machine came to its
    /// end, and nothing says that its kernel or its console was broken.
    #[must_use]
    pub fn leaves_rows(&self) -> bool {
        matches!(
            self,
            Self::Pass
                | Self::Mismatch(_)
                | Self::Fail(_)
                | Self::Invalid(_)
                | Self::Error(_)
                | Self::StillUp
                | Self::Empty(_)
        )
    }

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
            Self::Oops(_) => "oops",
            Self::Deadline(_) => "deadline",
            Self::LostQemu(_) => "lost-qemu",
            Self::NoVerdict(_) => "no-verdict",
            Self::StillUp => "still-up",
            Self::Damaged(_) => "damaged",
            Self::Empty(_) => "empty",
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
            | Self::Oops(detail)
            | Self::Deadline(detail)
            | Self::LostQemu(detail)
            | Self::NoVerdict(detail)
            | Self::Damaged(detail)
            | Self::Empty(detail)
            | Self::BadImage(detail)
            | Self::NotReady(detail)
            | Self::Failed(detail) => detail,
        }
    }
}
