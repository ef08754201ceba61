//! /proc/PID/stat, as far as it is needed: who it is, how it is, what it faulted, what it maps.
//!
//! Source: proc_pid_stat(5); `do_task_stat` in fs/proc/array.c.

use super::number::{decimal, split_once};

/// Some fields of /proc/PID/stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Process id in the reader's namespace.
    pub pid: i32,
    /// State letter: `R`, `S`, `D`, `T`, `t`, `Z`, `X`, …
    pub state: u8,
    /// Parent's process id; 0 if the reader's namespace does not have it.
    pub ppid: i32,
    /// Minor faults charged to this process (all its threads), without its children's.
    pub minflt: u64,
    /// Major faults, likewise.
    pub majflt: u64,
    /// Bytes of all its mappings (`vsize`; the same as VmSize in its status: both are the memory
    /// map's `total_vm`); 0 once it has none.
    pub mapped_bytes: u64,
}

impl Stat {
    /// Reads the whole file. The process chooses its name, which may hold blanks,
    /// parentheses and line feeds; no later field holds a parenthesis, so the name ends
    /// at the last one.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (pid, _) = split_once(text, b'(')?;
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut fields = text[name_end + 1..]
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let &[state] = fields.next()? else {
            return None;
        };
        let ppid = process_id(fields.next()?)?;
        // pgrp, session, tty_nr, tpgid and flags stand between.
        let minflt = decimal(fields.nth(5)?)?;
        // cminflt stands between.
        let majflt = decimal(fields.nth(1)?)?;
        // cmajflt and what else comes up to starttime stand between.
        let mapped_bytes = decimal(fields.nth(10)?)?;
        // With rss begun, vsize is not cut.
        fields.next()?;
        Some(Self {
            pid: process_id(pid.trim_ascii_end())?,
            state,
            ppid,
            minflt,
            majflt,
            mapped_bytes,
        })
    }
}

fn process_id(text: &[u8]) -> Option<i32> {
    i32::try_from(decimal(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::samples::STAT;

    #[test]
    fn the_sample_reads() {
        let expected = Stat {
            pid: 3512,
            state: b'R',
            ppid: 3505,
            minflt: 102,
            majflt: 7,
            mapped_bytes: 3_133_440,
        };
        assert_eq!(Stat::parse(STAT), Some(expected));
    }

    #[test]
    fn no_name_confuses_it() {
        let names: [&[u8]; 7] = [
            b"",
            b"tmux: server",
            b"a) R 1 2 3 (b",
            b"))))",
            b"((",
            b"\n) Z 9\n",
            b"\xff\xfe \x01",
        ];
        for name in names {
            let mut text = std::vec::Vec::new();
            text.extend(b"41 (");
            text.extend(name);
            text.extend(b") S 40 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 -20 0 1 0 99 8192 2\n");
            let expected = Stat {
                pid: 41,
                state: b'S',
                ppid: 40,
                minflt: 5,
                majflt: 7,
                mapped_bytes: 8192,
            };
            assert_eq!(
                Stat::parse(&text),
                Some(expected),
                "{}",
                name.escape_ascii()
            );
        }
    }

    #[test]
    fn what_is_cut_or_no_number_is_refused() {
        let cases: [&[u8]; 15] = [
            b"",
            b"41",
            b"41 (a",
            b")(",
            b"41 (a)",
            b"41 (a) S 40 41 41 0 -1 4194304 5 60 7",
            b"41 (a) S 40 41 41 0 -1 4194304 5 60 7 80",
            b"41 (a) S 40 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 20 0 1 0 99 81",
            b"41 (a) S 40 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 20 0 1 0 99 -1 2",
            b"41 (a) SS 40 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 20 0 1 0 99 8192 2",
            b"41 (a) S -1 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 20 0 1 0 99 8192 2",
            b"2147483648 (a) S 40 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 20 0 1 0 99 8192 2",
            b"41 (a) S 40 41 41 0 -1 4194304 111111111111111111111 60 7 80 1 2 3 4 20 0 1 0 99 8 2",
            b"41 (a) S 40 41 41 0 -1 4194304 5 60 x 80 1 2 3 4 20 0 1 0 99 8192 2",
            b"x (a) S 40 41 41 0 -1 4194304 5 60 7 80 1 2 3 4 20 0 1 0 99 8192 2",
        ];
        for text in cases {
            assert_eq!(Stat::parse(text), None, "{}", text.escape_ascii());
        }
    }
}
