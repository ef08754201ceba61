//! This run: the program, what it was asked, and what it runs on.

use super::parse::add;
use super::record::{Finding, Record};
use crate::emit::crc::{Crc32, Tables};
use crate::sys::clock::unix_seconds;
use crate::sys::cpu::ARCH;
use crate::{TARGET, VERSION};
use rustix::process::geteuid;

/// Writes everything that needs no file of /proc or /sys, and the checksum of the program.
pub fn note_all(record: &mut Record) {
    let context = record.context;
    record.text("command", context.command);
    let label = context.common.label;
    record.text("label", if label.is_empty() { "none" } else { label });
    record.number("seed", context.common.seed);
    record.number("started_unix", unix_seconds());
    match context.cpu {
        Some(cpu) => record.number("pinned_cpu", cpu as u64),
        None => record.text("pinned_cpu", "none"),
    }
    record.text("clock", context.clock.path());
    // The number of anybody else is nobody's business.
    record.text("euid", if geteuid().is_root() { "0" } else { "nonzero" });
    record.text("version", VERSION);
    record.text("target", TARGET);
    let found = exe_crc32(record);
    record.note("exe_crc32", found);
    record.text("arch", ARCH);
    record.number("page_bytes", context.page_bytes as u64);
    add(&mut record.value, record.files.kernel.release_bytes());
    record.note("kernel", Ok(()));
    add(&mut record.value, record.files.kernel.version_bytes());
    record.note("kernel_version", Ok(()));
}

/// CRC-32 of the file this process runs, so that a result can be traced to a build.
fn exe_crc32(record: &mut Record) -> Finding {
    let (mut crc, tables) = (Crc32::new(), Tables::new());
    let mut take = |bytes: &[u8]| crc.update_long(bytes, &tables);
    record.files.all(b"/proc/self/exe", &mut take)?;
    record.value.hex(crc.value());
    Ok(())
}

/// Writes one line `option_NAME=VALUE` for each option in effect; a switch is `on`.
/// `--segment-pages` becomes `option_segment_pages`.
pub fn note_options(record: &mut Record) {
    for (name, word) in record.context.effective {
        if matches!(*name, "--label" | "--seed") {
            // They have a line of their own.
            continue;
        }
        add(
            &mut record.value,
            if word.is_empty() { b"on" } else { word },
        );
        record.note_as(
            "option",
            name.as_bytes().get(1..).unwrap_or_default(),
            Ok(()),
        );
    }
}
