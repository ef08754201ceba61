//! The summary in words.

use super::row::{Common, fit};
use super::tally::Tally;
use crate::cli::sharing::Options;
use crate::emit::fixed::Milli;
use crate::sys::stdio::Output;
use crate::sys::{Errno, cpu};
use crate::text::{Full, Text};

/// Below it a fit is no description of the points, thousandths.
const R2_LEAST: i64 = 900;

/// Writes it.
pub(super) fn write(
    out: Output,
    common: &Common<'_>,
    options: &Options,
    tallies: &[Tally],
    reference: &Tally,
) -> Result<(), Errno> {
    let mut head = Text::new();
    head.add("cowitness sharing: Linux ").add(common.kernel);
    head.add(", ").add(cpu::ARCH).add(": ");
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum();
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
        remarks(out, common, tally, reference)?;
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

fn line(common: &Common<'_>, tally: &Tally, reference: &Tally) -> Text {
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
    tally: &Tally,
    reference: &Tally,
) -> Result<(), Errno> {
    let row = fit(common, tally, reference);
    let mut text = Text::new();
    text.add("  ").add(row.arm).add(": ");
    text.add(meaning(row.verdict)).add("\n");
    match tally.bystanders {
        Some(0) => {}
        Some(count) => {
            text.add("    ").number(count);
            text.add(
                " other processes map the same files: what is shared with them is missing\n    \
                 from b, which is a lower bound\n",
            );
        }
        None => {
            text.add(
                "    whether other processes map the same files could not be seen (root can);\n    \
                 if so, b is a lower bound\n",
            );
        }
    }
    if let Some(Milli(r2)) = row.r2.filter(|r2| r2.0 < R2_LEAST) {
        text.add("    R2 is ").thousandths(r2);
        text.add(": this fit should not be used; PSS does not follow a + b/N\n");
    } else if row.a_kb.is_some() && row.r2.is_none() {
        text.add("    there is no R2: PSS is the same for every N, or N has two values\n");
    }
    send(out, &text)
}

fn meaning(verdict: &str) -> &'static str {
    match verdict {
        "invalid" => "not every process, of it or of elf, was measured as it must be",
        "dirty-cache" => {
            "pages of files were dirty: not stored, or on a file system without a disk (--dir)"
        }
        "copied-shmem" => "every process costs the machine a copy of the file as shared memory",
        "copied-anon" => "every process has a copy of the segments in memory of its own",
        "shared" => "processes share the program's pages; a is what each has for itself",
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
