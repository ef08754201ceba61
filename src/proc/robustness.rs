//! No text makes a parser panic: every sample is given to every parser cut at each byte,
//! begun at each byte, and with each byte replaced.

use super::lines::LineBuffer;
use super::maps::MapsLine;
use super::smaps::UsageSum;
use super::{
    buddyinfo, choice, cmdline, cpuinfo, kconfig, number, rollup, samples, stat, status, syscall,
    vmstat,
};

/// What the replaced byte becomes: nothing, separators, digits, not UTF-8.
const REPLACEMENTS: &[u8] = b"\0\n :-(\")9f\xff";

const ONE_LINERS: [&[u8]; 6] = [
    b"Node 0, zone   Normal  49684  36925  19936   8712   5606   3519 ",
    b"7fcb90b1f000-7fcb90b45000 r-xs 00026000 fe:0a 326279    /usr/lib/libc.so.6 (deleted)",
    b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
    b"# CONFIG_KSM is not set",
    b"CONFIG_KSM=y",
    b"always [madvise] never\n",
];

const TEXTS: [&[u8]; 8] = [
    samples::ROLLUP.as_bytes(),
    samples::SMAPS_2_6_38.as_bytes(),
    samples::STAT,
    samples::STATUS,
    samples::MEMINFO,
    samples::CMDLINE,
    samples::CPUINFO_X86,
    samples::CPUINFO_ARM,
];

fn parse_with_everything(text: &[u8]) {
    let _ = number::decimal(text);
    let _ = number::hex(text);
    let _ = number::kib(text);
    let _ = buddyinfo::pages_below(text, 4);
    let _ = syscall::call(text);
    let _ = rollup::parse(text, &mut [None; rollup::FIELD_COUNT]);
    let _ = MapsLine::parse(text);
    let _ = stat::Stat::parse(text);
    let _ = status::kib_field(text, b"MemTotal");
    let _ = status::hex_field(text, b"CapEff");
    let _ = vmstat::Moves::parse(text);
    let _ = kconfig::setting(text);
    let _ = cmdline::last_value(text, b"rdinit");
    let _ = choice::selected(text);
    let _ = cpuinfo::model(text);
    sum_smaps(text);
}

fn sum_smaps(text: &[u8]) {
    let mut lines = LineBuffer::<64>::new();
    let mut sum = UsageSum::whole();
    let mut rest = text;
    let mut read = |space: &mut [u8]| -> Result<usize, ()> {
        let n = rest.len().min(space.len()).min(24);
        space[..n].copy_from_slice(&rest[..n]);
        rest = &rest[n..];
        Ok(n)
    };
    while let Ok(Some(line)) = lines.read_line(&mut read) {
        if sum.line(line.bytes).is_err() {
            return;
        }
    }
    let _ = sum.finish();
}

fn mutilate(sample: &[u8]) {
    for at in 0..=sample.len() {
        parse_with_everything(&sample[..at]);
        parse_with_everything(&sample[at..]);
    }
    let mut text = sample.to_vec();
    for at in 0..sample.len() {
        for byte in REPLACEMENTS {
            text[at] = *byte;
            parse_with_everything(&text);
        }
        text[at] = sample[at];
    }
}

#[test]
fn no_mutilated_line_panics() {
    ONE_LINERS.into_iter().for_each(mutilate);
}

#[test]
fn no_mutilated_text_panics() {
    TEXTS.into_iter().for_each(mutilate);
}
