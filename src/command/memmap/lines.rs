//! The lines of its contract, and those of `--advise` and `--report` behind them.

use super::figures::{Figures, Vmas};
use super::measured::Measured;
use super::problem::Problem;
use super::subject::{STEPS, Subject};
use crate::cli::memmap::{Mode, Options};
use crate::error::Error;
use crate::sys::Errno;
use crate::sys::file::read_whole;
use crate::sys::stdio::{Output, stdout};
use crate::text::{Full, Text};
use heapless::Vec;

type Done<'p> = Result<(), Problem<'p>>;

/// What is known before anything is touched.
#[inline(never)]
pub(super) fn head(subject: &Subject<'_>) -> Done<'static> {
    let mut line = Text::new();
    line.add("memmap: mode=").add(subject.mode.name());
    line.add(" bytes=").number(subject.bytes as u64);
    line.add(" pages=").number(subject.pages() as u64);
    send(&mut line)?;
    if subject.mode != Mode::FaultWalk {
        return Ok(());
    }
    let out = stdout();
    let written = out
        .write_all(b"memmap: walk file=")
        .and_then(|()| put(out, subject.path.bytes()))
        .and_then(|()| out.write_all(b" steps=8\n"));
    written.map_err(|errno| Error::Output(errno).into())
}

/// What touching has shown.
#[inline(never)]
pub(super) fn body<'p>(subject: &Subject<'p>, options: &Options, measured: &Measured) -> Done<'p> {
    if subject.mode == Mode::FaultWalk {
        steps(subject, measured)?;
    }
    let mut line = Text::new();
    send(line.add("memmap: maps excerpt"))?;
    Vmas::each(&measured.promise.range(), &mut |vma| excerpt(subject, vma))?;
    let (before, after) = (&measured.before, &measured.after);
    let mut line = Text::new();
    line.add("memmap: vmrss_before=").number(before.rss_kib);
    line.add("KB vmrss_after=").number(after.rss_kib).add("KB");
    send(&mut line)?;
    let faults = measured.faults();
    let mut line = Text::new();
    line.add("memmap: faults minor=").number(faults.minor);
    send(line.add(" major=").number(faults.major))?;
    advice(options, measured)?;
    report("before", before)?;
    report("after", after)?;
    overcommit(before, after)
}

fn steps(subject: &Subject<'_>, measured: &Measured) -> Done<'static> {
    for (index, step) in measured.steps.iter().enumerate() {
        let mut line = Text::new();
        line.add("memmap: step=").number(index as u64 + 1);
        line.add("/").number(STEPS as u64);
        line.add(" pages=").number(subject.step_pages(index) as u64);
        line.add(" minor=").number(step.minor);
        send(line.add(" major=").number(step.major))?;
    }
    Ok(())
}

/// A line of maps as the kernel prints it, marked, in one write(2) if its path is no longer
/// than 4,096 bytes as printed; else in several.
#[inline(never)]
fn excerpt<'p>(subject: &Subject<'_>, vma: &[u8]) -> Done<'p> {
    let parts: [&[u8]; 5] = [
        b"memmap:   ",
        vma,
        b"   <-- target (mode=",
        subject.mode.name().as_bytes(),
        b")\n",
    ];
    let mut line = Vec::<u8, EXCERPT_BYTES>::new();
    let fits = parts
        .iter()
        .all(|part| line.extend_from_slice(part).is_ok());
    let written = match fits {
        true => stdout().write_all(&line),
        false => parts.iter().try_for_each(|part| stdout().write_all(part)),
    };
    written.map_err(|errno| Error::Output(errno).into())
}

/// What is around a path has less than 200 bytes.
const EXCERPT_BYTES: usize = 4096 + 200;

/// What advice was given, and what came of it: of touching if it was given before, else of
/// the advice itself and of touching again.
#[inline(never)]
fn advice(options: &Options, measured: &Measured) -> Done<'static> {
    let Some(advised) = options.advised else {
        return Ok(());
    };
    let huge = |usage: &Option<crate::proc::smaps::Usage>| usage.map(|usage| usage.anon_huge_kib);
    let touched = (measured.after.rss_kib, huge(&measured.usage));
    let (when, from, to, faults) = match &measured.again {
        None => (
            "before-touching",
            (measured.before.rss_kib, None),
            touched,
            measured.faults(),
        ),
        Some(again) => (
            "after-touching",
            touched,
            (again.rss_kib, huge(&again.usage)),
            again.faults,
        ),
    };
    let mut line = Text::new();
    line.add("memmap: advise=").add(advised.name);
    line.add(" given=").add(when);
    line.add(" vmrss_from=").number(from.0).add("KB");
    line.add(" vmrss_to=").number(to.0).add("KB");
    // Before it is there, no target has huge pages to be counted.
    if measured.again.is_some() {
        amount(&mut line, " anon_huge_from=", from.1);
    }
    amount(&mut line, " anon_huge_to=", to.1);
    let touch = if measured.again.is_some() {
        "again"
    } else {
        "touch"
    };
    line.add(" ").add(touch).add("_minor=").number(faults.minor);
    line.add(" ").add(touch).add("_major=").number(faults.major);
    send(&mut line)
}

fn report(when: &str, figures: &Figures) -> Done<'static> {
    let Some(report) = &figures.report else {
        return Ok(());
    };
    let mut line = Text::new();
    line.add("memmap: report ").add(when);
    amount(&mut line, " vsz=", report.vsz_kib);
    amount(&mut line, " rss=", Some(figures.rss_kib));
    amount(&mut line, " pss=", report.pss_kib);
    amount(&mut line, " uss=", report.uss_kib);
    amount(&mut line, " swap=", report.swap_kib);
    send(&mut line)
}

#[inline(never)]
fn overcommit(before: &Figures, after: &Figures) -> Done<'static> {
    let (Some(before), Some(after)) = (&before.report, &after.report) else {
        return Ok(());
    };
    let mut line = Text::new();
    line.add("memmap: overcommit");
    for (name, path) in [
        (" memory=", c"/proc/sys/vm/overcommit_memory"),
        (" ratio=", c"/proc/sys/vm/overcommit_ratio"),
        (" kbytes=", c"/proc/sys/vm/overcommit_kbytes"),
    ] {
        let mut buffer = [0; 32];
        let text = read_whole(path, &mut buffer).unwrap_or_default();
        let text = str::from_utf8(text.trim_ascii()).unwrap_or_default();
        line.add(name)
            .add(if text.is_empty() { "unknown" } else { text });
    }
    amount(&mut line, " commit_limit=", after.commit_limit_kib);
    amount(&mut line, " committed_before=", before.committed_kib);
    amount(&mut line, " committed_after=", after.committed_kib);
    send(&mut line)
}

fn amount(line: &mut Text, name: &str, kib: Option<u64>) {
    line.add(name);
    match kib {
        Some(kib) => line.number(kib).add("KB"),
        None => line.add("unknown"),
    };
}

fn send(line: &mut Text) -> Done<'static> {
    let line = line.add("\n").read().map_err(|Full| Error::TooLong)?;
    let written = stdout().write_all(line.as_bytes());
    written.map_err(|errno| Error::Output(errno).into())
}

/// Writes what a person chose; a control character becomes `?`, so that it
/// stays one line and leaves a terminal alone.
pub(super) fn put(out: Output, bytes: &[u8]) -> Result<(), Errno> {
    for part in bytes.chunk_by(|a, b| a.is_ascii_control() == b.is_ascii_control()) {
        match part {
            [control, ..] if control.is_ascii_control() => {
                part.iter().try_for_each(|_| out.write_all(b"?"))?;
            }
            _ => out.write_all(part)?,
        }
    }
    Ok(())
}
