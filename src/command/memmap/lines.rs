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
use crate::text::{Full, TEXT_MAX, Text};
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
    let parts = [b"memmap: walk file=", subject.path.bytes(), b" steps=8"];
    let written = write_line(stdout(), &parts, Shown::Printable);
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

/// A line of maps as the kernel prints it, marked.
#[inline(never)]
fn excerpt<'p>(subject: &Subject<'_>, vma: &[u8]) -> Done<'p> {
    let parts = [
        b"memmap:   ",
        vma,
        b"   <-- target (mode=",
        subject.mode.name().as_bytes(),
        b")",
    ];
    let written = write_line(stdout(), &parts, Shown::AsIs);
    written.map_err(|errno| Error::Output(errno).into())
}

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

/// How the bytes of a line are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    AsIs,
    /// A control character as `?`, so that what a person chose stays one line and leaves a
    /// terminal alone.
    Printable,
}

/// A path has less than 4,096 bytes, what is around it less than a text.
const LINE_BYTES: usize = 4096 + TEXT_MAX;

/// Writes a line of these parts in one write(2); in several only if a line of maps, which may
/// print a byte as four, is longer than a path can be.
#[inline(never)]
pub(super) fn write_line(out: Output, parts: &[&[u8]], shown: Shown) -> Result<(), Errno> {
    let mut line = Vec::<u8, LINE_BYTES>::new();
    let mut all = parts.iter();
    if !all.all(|part| line.extend_from_slice(part).is_ok()) || line.is_full() {
        parts.iter().try_for_each(|part| out.write_all(part))?;
        return out.write_all(b"\n");
    }
    if shown == Shown::Printable {
        let controls = line.iter_mut().filter(|byte| byte.is_ascii_control());
        controls.for_each(|byte| *byte = b'?');
    }
    // There is room, as was just seen.
    let _ = line.push(b'\n');
    out.write_all(&line)
}
