//! Lines of /proc/buddyinfo.
//!
//! Source: Documentation/filesystems/proc.rst; `frag_show_print` in mm/vmstat.c.

use super::number::decimal;

/// Pages of a zone that are free in blocks of fewer than 2^`orders` pages.
#[must_use]
pub fn pages_below(line: &[u8], orders: usize) -> Option<u64> {
    // `Node 0, zone   Normal` and then a count of blocks for each order from 0 on.
    let words = line.split(u8::is_ascii_whitespace);
    let mut words = words.filter(|word| !word.is_empty());
    if words.next()? != b"Node" || words.nth(1)? != b"zone" {
        return None;
    }
    words.next()?;
    let mut pages = 0u64;
    for order in 0..orders {
        let blocks = decimal(words.next()?)?;
        pages = pages.checked_add(blocks.checked_mul(1 << order)?)?;
    }
    Some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: &[u8] =
        b"Node 0, zone   Normal  49684  36925  19936   8712   5606   3519   3134   1473   1463   1530   2705 ";

    #[test]
    fn blocks_of_the_lowest_orders_count() {
        assert_eq!(pages_below(NORMAL, 1), Some(49_684));
        assert_eq!(pages_below(NORMAL, 2), Some(49_684 + 2 * 36_925));
        let four = 49_684 + 2 * 36_925 + 4 * 19_936 + 8 * 8712;
        assert_eq!(pages_below(NORMAL, 4), Some(four));
        let other = b"Node 12, zone    DMA32      1      0      0      2";
        assert_eq!(pages_below(other, 4), Some(17));
    }

    #[test]
    fn what_is_no_such_line_is_unknown() {
        for line in [
            &b""[..],
            b"Node 0, zone",
            b"Node 0, zone Normal",
            b"Node 0, zone Normal 1 2",
            b"Node 0, zone Normal 1 2 x 4",
            b"Node 0, zone Normal 1 2 -3 4",
            b"Node 0, zone Normal 1 2 3 18446744073709551615",
            b"Page block order: 9",
        ] {
            assert_eq!(pages_below(line, 4), None, "{}", line.escape_ascii());
        }
    }
}
