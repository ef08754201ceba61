//! Lines of /proc/locks.
//!
//! Source: proc_locks(5); `lock_get_status` in fs/locks.c.

/// Of a lock by flock(2) that is held: the process, and the file as `MAJOR:MINOR:INODE`, device
/// numbers in hexadecimal of at least two digits.
#[must_use]
pub fn flock(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let words = line.split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty());
    // One that is waited for has an arrow in front of its type.
    if words.nth(1)? != b"FLOCK" {
        return None;
    }
    let process = words.nth(2)?;
    Some((process, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_held_locks_of_files_count() {
        let held = b"4: FLOCK  ADVISORY  WRITE 1712 00:17:2 0 EOF";
        assert_eq!(flock(held), Some((&b"1712"[..], &b"00:17:2"[..])));
        for other in [
            &b"4: -> FLOCK  ADVISORY  WRITE 1713 00:17:2 0 EOF"[..],
            b"1: POSIX  ADVISORY  READ  5433 08:01:7864448 128 128",
            b"2: FLOCK  ADVISORY  WRITE",
            b"",
        ] {
            assert_eq!(flock(other), None);
        }
    }
}
