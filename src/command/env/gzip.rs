//! One gzip member: RFC 1952 around [`inflate`].
//!
//! Knows nothing of files. The kernel compresses its configuration as a stream without a
//! name (kernel/Makefile, `gzip -n`), so a header that announces more is refused.

use super::record::Why;
use crate::emit::crc::{Crc32, Tables};
use crate::proc::inflate::inflate;

/// Unpacks all of `packed` and tells how long it was before.
///
/// # Errors
/// `NotGzip`, `GzipCut`, `GzipCorrupt`; `TooLong` if it does not fit into `plain`.
pub fn unpack(packed: &[u8], plain: &mut [u8]) -> Result<usize, Why> {
    // Magic, DEFLATE, no flags; time, extra flags, operating system; behind the blocks
    // checksum and length.
    let [0x1f, 0x8b, 8, 0, _, _, _, _, _, _, rest @ ..] = packed else {
        return Err(Why::NotGzip);
    };
    let (blocks, trailer) = rest.split_last_chunk::<8>().ok_or(Why::GzipCut)?;
    let trailer = u64::from_le_bytes(*trailer);
    let (crc, len) = (trailer as u32, (trailer >> 32) as usize);
    let mut input = blocks.iter();
    let written = inflate(&mut input, plain);
    let used_up = input.as_slice().is_empty();
    if written.is_err() && used_up {
        return Err(Why::GzipCut);
    }
    let plain = plain.get(..len).ok_or(Why::TooLong)?;
    let mut actual = Crc32::new();
    actual.update_long(plain, &Tables::new());
    match written == Ok(len) && used_up && actual.value() == crc {
        true => Ok(len),
        false => Err(Why::GzipCorrupt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    /// By `tests/data/env/make.py`: [`plain`] in DEFLATE blocks of all three types.
    const PACKED: &[u8] = include_bytes!("../../../tests/data/env/config.gz");
    const HEADER: usize = 10;
    const TRAILER: usize = 8;

    fn plain() -> Vec<u8> {
        let line = |option: usize| match option * option % 7 {
            1 => std::format!("CONFIG_OPTION_{option}=y\n"),
            _ => std::format!("# CONFIG_OPTION_{option} is not set\n"),
        };
        (0..1500)
            .flat_map(|option| line(option).into_bytes())
            .collect()
    }

    fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Why> {
        let mut room = vec![0; 60_000];
        let len = unpack(packed, &mut room)?;
        room.truncate(len);
        Ok(room)
    }

    /// Short enough to try everything with it.
    fn short() -> (Vec<u8>, Vec<u8>) {
        let plain = plain()[..700].to_vec();
        let mut crc = Crc32::new();
        crc.update(&plain);
        let blocks = miniz_oxide::deflate::compress_to_vec(&plain, 6);
        let trailer = [crc.value(), plain.len() as u32].map(u32::to_le_bytes);
        let packed = [&PACKED[..HEADER], &blocks, trailer.as_flattened()].concat();
        (plain, packed)
    }

    #[test]
    fn all_of_it_comes_back() {
        assert!(unpacked(PACKED) == Ok(plain()));
        let (plain, packed) = short();
        assert!(unpacked(&packed) == Ok(plain.clone()));
        let mut room = plain;
        assert_eq!(unpack(&packed, &mut room), Ok(room.len()));
        room.truncate(300);
        assert_eq!(unpack(&packed, &mut room), Err(Why::TooLong));
    }

    #[test]
    fn cut_anywhere_it_is_cut() {
        let (_, packed) = short();
        for end in 0..packed.len() {
            let want = if end < HEADER {
                Why::NotGzip
            } else {
                Why::GzipCut
            };
            assert_eq!(unpacked(&packed[..end]), Err(want), "{end}");
        }
        let ends = (HEADER..PACKED.len()).step_by(97);
        for end in ends {
            assert_eq!(unpacked(&PACKED[..end]), Err(Why::GzipCut), "{end}");
        }
    }

    /// Padding between blocks may be anything; what comes out may not.
    #[test]
    fn no_changed_byte_changes_the_text() {
        let (plain, packed) = short();
        for at in 0..8 * packed.len() {
            let mut packed = packed.clone();
            packed[at / 8] ^= 1 << (at % 8);
            let got = unpacked(&packed);
            assert!(got.is_err() || got.as_ref() == Ok(&plain), "{at}");
        }
        for at in (0..PACKED.len()).step_by(97) {
            let mut packed = PACKED.to_vec();
            packed[at] ^= 0x10;
            let got = unpacked(&packed);
            assert!(got.is_err() || got == Ok(self::plain()), "{at}");
        }
    }

    #[test]
    fn the_trailer_is_checked() {
        for back in 1..=TRAILER {
            let mut packed = PACKED.to_vec();
            packed[PACKED.len() - back] ^= 1;
            // The two high bytes of the length ask for more room than there is.
            let want = if back < 3 {
                Why::TooLong
            } else {
                Why::GzipCorrupt
            };
            assert_eq!(unpacked(&packed), Err(want), "{back}");
        }
        let (blocks, trailer) = PACKED.split_at(PACKED.len() - TRAILER);
        let longer = [blocks, b"\0", trailer].concat();
        assert_eq!(unpacked(&longer), Err(Why::GzipCorrupt));
        let empty = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0";
        assert_eq!(unpacked(empty), Ok(vec![]));
        assert_eq!(unpacked(&[PACKED, empty].concat()), Err(Why::GzipCorrupt));
    }

    #[test]
    fn other_headers_are_refused() {
        let headers: [&[u8]; 6] = [
            b"\x1f\x8c\x08\0\0\0\0\0\0\x03",
            b"\x1f\x8b\x07\0\0\0\0\0\0\x03",
            b"\x1f\x8b\x08\x20\0\0\0\0\0\x03",
            b"\x1f\x8b\x08\x08\0\0\0\0\0\x03config\0",
            b"\x1f\x8b\x08\x04\0\0\0\0\0\x03\0\0",
            b"# CONFIG_KSM is not set",
        ];
        for header in headers {
            let packed = [header, &PACKED[HEADER..]].concat();
            assert_eq!(
                unpacked(&packed),
                Err(Why::NotGzip),
                "{}",
                header.escape_ascii()
            );
        }
    }
}
