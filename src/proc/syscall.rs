//! /proc/PID/syscall: the system call a process is blocked in.
//!
//! Source: proc_pid_syscall(5); `proc_pid_syscall` in fs/proc/base.c.

use super::number::{decimal, hex, word};

/// Number and first argument of the call. `None` if the process runs, is blocked outside of
/// a call, or the text is of another form.
#[must_use]
pub fn call(text: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = word(text)?;
    let (first, rest) = word(rest)?;
    // Seven more follow; with the second begun, the first is not cut.
    word(rest)?;
    Some((decimal(number)?, hex(first.strip_prefix(b"0x")?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_blocked_call_has_a_number() {
        let blocked = b"0 0x0 0x7ffd7573c000 0x20000 0x22 0x0 0x0 0x7ffd 0x7f1c\n";
        assert_eq!(call(blocked), Some((0, 0)));
        let other = b"63 0x3 0x1 0x2 0x0 0x0 0x0 0x1 0x2\n";
        assert_eq!(call(other), Some((63, 3)));
        let none: [&[u8]; 5] = [
            b"running\n",
            b"-1 0x7ffd7573c000 0x7f1c\n",
            b"0 0x0",
            b"0 3 0x1 0x2",
            b"",
        ];
        for text in none {
            assert_eq!(call(text), None, "{}", text.escape_ascii());
        }
    }
}
