//! The summary in words.

use super::census::Hidden;
use super::row::{Common, fit};
use super::tally::Tally;
use super::verdict::{Doubt, Share};
use crate::cli::sharing::{Arm, Options};
use crate::emit::fixed::Milli;
use crate::emit::sharing_row::SharingFitRow;
use crate::sys::stdio::Output;
use crate::sys::{Errno, cpu};
use crate::text::{Full, Text};
use rustix::process::geteuid;

/// Below it a fit is no description of the points, thousandths.
const R2_LEAST: i64 = 900;

/// Writes it.
pub(super) fn write(
    out: Output,
    common: &Common<'_>,
    options: &Options,
    tallies: &[Tally<'_>],
    reference: &Tally<'_>,
) -> Result<(), Errno> {
    let mut head = Text::new();
    head.add("cowitness sharing: Linux ").add(common.kernel);
    head.add(", ").add(cpu::ARCH).add(": ");
    let sum = |of: fn(&Tally<'_>) -> u64| tallies.iter().map(of).sum();
    head.number(sum(|tally| tally.rows_ok))
        .add(" of ")
        .number(sum(|tally| tally.rows))
        .add(" processes ok\n\n");
    head.add("PSS(N) = a + b/N, KiB, by least squares over the medians of each N\n");
    head.add("  arm").pad_to(10);
    for (title, width) in COLUMNS {
        head.right(width, &|part| {
            part.add(title);
        });
    }
    send(out, head.add("  verdict\n"))?;
    for tally in tallies {
        send(out, &line(common, tally, reference))?;
    }
    for tally in tallies {
        remarks(out, common, options, (tally, reference))?;
    }
    if options.n.len() < 3 {
        send(
            out,
            Text::new().add("  Two numbers of processes make a line, not evidence: no R2.\n"),
        )?;
    }
    Ok(())
}

const COLUMNS: [(&str, usize); 6] = [
    ("a", 12),
    ("b", 12),
    ("R2", 8),
    ("worst", 10),
    ("USS min", 10),
    ("private", 9),
];

fn line(common: &Common<'_>, tally: &Tally<'_>, reference: &Tally<'_>) -> Text {
    let row = fit(common, tally, reference);
    let uss = row.uss_min_kb.and_then(|kb| i64::try_from(kb).ok());
    let cells = [
        row.a_kb,
        row.b_kb,
        row.r2,
        row.max_resid_kb,
        uss.map(|kb| Milli(kb.saturating_mul(1000))),
        row.private_fraction,
    ];
    let mut line = Text::new();
    line.add("  ").add(row.arm).pad_to(10);
    for (cell, (_, width)) in cells.iter().zip(COLUMNS) {
        line.right(width, &|part| match cell {
            Some(Milli(milli)) => {
                part.thousandths(*milli);
            }
            None => {
                part.add("-");
            }
        });
    }
    line.add("  ").add(row.verdict).add("\n");
    line
}

/// What has to be said about an arm.
fn remarks(
    out: Output,
    common: &Common<'_>,
    options: &Options,
    (tally, reference): (&Tally<'_>, &Tally<'_>),
) -> Result<(), Errno> {
    let row = fit(common, tally, reference);
    let mut text = Text::new();
    text.add("  ").add(row.arm);
    if let (Arm::Static(path), Some(_)) = (tally.arm, options.program) {
        text.add(" (").add(path).add(", another program)");
    }
    text.add(": ");
    match tally.doubt(reference) {
        Some(doubt) => text.add(of_doubt(doubt)),
        None if row.verdict == "dirty-cache" => text.add(dirty(options.program.is_some())),
        None if row.verdict == "shared" => text.add(shared(&tally.arm)),
        None if row.verdict == "copied-shmem" => text.add(shared_memory(&tally.arm)),
        None => text.add(meaning(row.verdict)),
    };
    text.add("\n");
    shares(&mut text, &row, tally.bystanders == Some(0));
    let by_uss = tally.decided_by_uss(reference).and_then(Share::milli);
    let by_private_share = !matches!(row.verdict, "invalid" | "dirty-cache" | "copied-shmem");
    if let Some(milli) = by_uss.filter(|_| by_private_share && !matches!(tally.arm, Arm::Elf)) {
        text.add("    by USS, which decides, the private fraction is ");
        text.thousandths(milli);
        text.add(": a is no sound base\n");
    }
    if tally.swap_kb > 0 {
        text.add("    up to ").number(tally.swap_kb);
        text.add(" KiB of a process were in swap, and so in no PSS\n");
    }
    bystanders(&mut text, tally);
    if let Some(Milli(r2)) = row.r2.filter(|r2| r2.0 < R2_LEAST) {
        text.add("    R2 is ").thousandths(r2);
        text.add(": this fit should not be used; PSS does not follow a + b/N\n");
    } else if row.a_kb.is_some() && row.r2.is_none() {
        text.add("    there is no R2: PSS is the same for every N, or N has two values\n");
    }
    send(out, &text)
}

/// What a, b and USS are, in words that depend on them.
fn shares(text: &mut Text, row: &SharingFitRow<'_>, alone: bool) {
    let (Some(Milli(a)), Some(Milli(b))) = (row.a_kb, row.b_kb) else {
        return;
    };
    if b < 0 {
        text.add("    b is below 0: PSS does not fall with N, nothing is seen to be shared\n");
    } else if let Some(percent) = (b.saturating_mul(100)).checked_div(a.saturating_add(b)) {
        text.add("    of the PSS of a single process ");
        text.add(if alone { "" } else { "at least " });
        text.signed(percent);
        text.add(" % is divided among several (b)");
        if let Some(uss) = row.uss_min_kb {
            text.add("; none had less than ").number(uss);
            text.add(" KiB\n    for itself (USS)");
        }
        text.add("\n");
    }
}

fn bystanders(text: &mut Text, tally: &Tally<'_>) {
    match tally.bystanders {
        Some(0) => return,
        Some(count) => {
            text.add("    ");
            text.add(tally.hidden.map_or("", |_| "at least "));
            text.number(count);
            text.add(" other processes map the same files");
        }
        None => {
            text.add("    whether other processes map the same files could not be seen");
        }
    }
    if let Some(hidden) = tally.hidden {
        text.add(":\n    ");
        match hidden {
            Hidden::Process(pid) => text
                .add("process ")
                .signed(pid.into())
                .add(" does not let itself be looked at"),
            Hidden::Many => text.add("/proc does not show all (hidepid, or a PID namespace)"),
            Hidden::Overlay => text.add("on overlayfs the same pages have other numbers elsewhere"),
        };
        if hidden != Hidden::Overlay && !geteuid().is_root() {
            text.add(" (root can look)");
        }
    }
    text.add(
        ";\n    what is shared with them is missing from b, a lower bound, and partly in a, an\n    \
         upper bound\n",
    );
}

/// Why an arm is invalid, and what helps.
pub(super) fn of_doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::NotMeasured => "not every process, of it or of elf, was measured as it must be",
        Doubt::Swapped => {
            "part of a process was in swap, and so in no PSS; repeat with more memory free, or \
             without swap"
        }
        Doubt::Lag => {
            "only root can make the kernel count Shmem as exactly as so small a program needs; \
             larger --n help, too"
        }
        Doubt::Company => {
            "others used shared memory of the machine meanwhile, so what the processes took of \
             it is not known; repeat on a quieter machine, with more --reps or larger --n"
        }
    }
}

fn dirty(has_program: bool) -> &'static str {
    match has_program {
        true => {
            "pages of its files were dirty: written and not stored yet, or on a file system\n    \
             without a disk (tmpfs, initramfs); copy the program to a disk"
        }
        false => "pages of its file were dirty: --dir is on a file system without a disk",
    }
}

fn shared(arm: &Arm) -> &'static str {
    match arm {
        // Its private fraction is 0 whatever it shares.
        Arm::Elf => "what the others are compared with, so shared by definition",
        _ => "no more of it is private than in elf",
    }
}

fn shared_memory(arm: &Arm) -> &'static str {
    match arm {
        Arm::Memfd => "every process costs the machine a copy of the file as shared memory",
        _ => {
            "every process makes at least as much shared memory of its own as its file has;\n    \
             nothing of the file is copied there"
        }
    }
}

fn meaning(verdict: &str) -> &'static str {
    match verdict {
        "copied-anon" => "every process has a copy of the segments in memory of its own",
        // Some field is missing.
        "invalid" => "this kernel does not tell all that a verdict needs",
        _ => {
            "some of the segments became private, not nearly all; what a program writes to is\n    \
             private in elf already"
        }
    }
}

fn send(out: Output, text: &Text) -> Result<(), Errno> {
    let text = text.read().map_err(|Full| Errno::FBIG)?;
    out.write_all(text.as_bytes())
}
