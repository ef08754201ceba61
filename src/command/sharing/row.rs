//! From what was seen to the rows.

use super::batch::{Outcome, Slot, Together};
use super::tally::Tally;
use super::verdict::Share;
use crate::emit::fixed::Milli;
use crate::emit::record::Status;
use crate::emit::sharing_row::{SharingFitRow, SharingRow};
use crate::emit::stream::Rows;
use crate::error::Error;
use crate::proc::rollup::place;
use crate::stats::{InverseFit, ratio_milli};
use crate::sys::process::Ending;
use crate::sys::stdio::Output;
use crate::sys::{cpu, errno};
use crate::text::{Full, Text};

/// What is the same in every row of a run.
pub(super) struct Common<'c> {
    pub(super) label: &'c str,
    pub(super) kernel: &'c str,
}

/// Writes the row of one process: number, repetition and index are in `(n, rep, idx)`.
pub(super) fn write(
    common: &Common<'_>,
    tally: &Tally<'_>,
    (n, rep, idx): (u64, u64, u64),
    slot: &Slot,
    together: &Together,
    rows: &mut Rows<Output>,
) -> Result<(), Error> {
    let mut reason = Text::new();
    let status = status(slot.outcome, &mut reason)?;
    let kb = |at: usize| slot.rollup[at];
    let processes = i64::try_from(n).ok().filter(|n| *n > 0);
    rows.row(&SharingRow {
        label: common.label,
        kernel: common.kernel,
        arch: cpu::ARCH,
        arm: tally.arm.name(),
        n,
        rep,
        idx,
        pid: slot.pid.map(|pid| pid.cast_unsigned().into()),
        settle_us: slot.settle_us,
        Rss: kb(const { place("Rss") }),
        Pss: kb(const { place("Pss") }),
        Pss_Dirty: kb(const { place("Pss_Dirty") }),
        Pss_Anon: kb(const { place("Pss_Anon") }),
        Pss_File: kb(const { place("Pss_File") }),
        Pss_Shmem: kb(const { place("Pss_Shmem") }),
        Shared_Clean: kb(const { place("Shared_Clean") }),
        Shared_Dirty: kb(const { place("Shared_Dirty") }),
        Private_Clean: kb(const { place("Private_Clean") }),
        Private_Dirty: kb(const { place("Private_Dirty") }),
        Referenced: kb(const { place("Referenced") }),
        Anonymous: kb(const { place("Anonymous") }),
        KSM: kb(const { place("KSM") }),
        LazyFree: kb(const { place("LazyFree") }),
        AnonHugePages: kb(const { place("AnonHugePages") }),
        ShmemPmdMapped: kb(const { place("ShmemPmdMapped") }),
        FilePmdMapped: kb(const { place("FilePmdMapped") }),
        Shared_Hugetlb: kb(const { place("Shared_Hugetlb") }),
        Private_Hugetlb: kb(const { place("Private_Hugetlb") }),
        Swap: kb(const { place("Swap") }),
        SwapPss: kb(const { place("SwapPss") }),
        Locked: kb(const { place("Locked") }),
        shmem_delta_kb: together.shmem_grown_kb.zip(processes).map(|(kb, n)| kb / n),
        bystanders: together.bystanders,
        sum_filesz_kb: Some(tally.sum_filesz_kb()),
        status,
    })?;
    Ok(())
}

fn status(outcome: Outcome, reason: &mut Text) -> Result<Status<'_>, Error> {
    match outcome {
        Outcome::Ok => return Ok(Status::Ok),
        Outcome::Errno(errno) => return Ok(Status::Errno(errno::name_or_unknown(errno))),
        Outcome::Skipped(why) => reason.add(why),
        Outcome::Ended(Ending::Exited(status)) => reason.add("exited-").signed(status.into()),
        Outcome::Ended(Ending::Killed(signal)) => {
            reason.add("killed-by-signal-").signed(signal.into())
        }
    };
    let reason = reason.read().map_err(|Full| Error::TooLong)?;
    Ok(Status::Skipped(reason))
}

/// The row of an arm's fit; `reference` is `elf`.
pub(super) fn fit<'c>(
    common: &Common<'c>,
    tally: &Tally<'_>,
    reference: &Tally<'_>,
) -> SharingFitRow<'c> {
    let (fit, from_2) = (tally.fit(), tally.fit_from_2());
    let part =
        |fit: Option<InverseFit>, field: fn(&InverseFit) -> i64| fit.map(|fit| Milli(field(&fit)));
    SharingFitRow {
        label: common.label,
        kernel: common.kernel,
        arch: cpu::ARCH,
        arm: tally.arm.name(),
        a_kb: part(fit, |fit| fit.a_milli),
        b_kb: part(fit, |fit| fit.b_milli),
        b_over_a: fit
            .and_then(|fit| ratio_milli(fit.b_milli.into(), fit.a_milli.into()))
            .map(Milli),
        r2: fit.and_then(|fit| fit.r2_milli).map(Milli),
        max_resid_kb: part(fit, |fit| fit.max_residual_milli),
        a_n2plus_kb: part(from_2, |fit| fit.a_milli),
        b_n2plus_kb: part(from_2, |fit| fit.b_milli),
        private_fraction: tally.private(reference).and_then(Share::milli).map(Milli),
        uss_min_kb: tally.uss_min_kb,
        verdict: tally.verdict(reference),
    }
}
