//! CRC-32 as IEEE 802.3, zlib and `crc32(1)` compute it.

/// A running checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32 {
    /// Of no bytes.
    #[must_use]
    pub const fn new() -> Self {
        Self(!0)
    }

    /// Takes more bytes in.
    pub fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = step(self.0 ^ u32::from(byte));
        }
    }

    /// As [`update`](Self::update), of many bytes.
    pub fn update_long(&mut self, bytes: &[u8], Tables(tables): &Tables) {
        let (words, rest) = bytes.as_chunks();
        let value = |behind: usize, byte: u8| tables[behind << 8 | usize::from(byte)];
        let mut register = self.0;
        for word in words {
            let word = u64::from_le_bytes(*word) ^ u64::from(register);
            let [a, b, c, d, e, f, g, h]: [u8; 8] = word.to_le_bytes();
            // The last four first: they do not wait for the register.
            register = value(0, h)
                ^ value(1, g)
                ^ value(2, f)
                ^ value(3, e)
                ^ value(4, d)
                ^ value(5, c)
                ^ value(6, b)
                ^ value(7, a);
        }
        self.0 = register;
        self.update(rest);
    }

    /// The checksum of all bytes so far.
    #[must_use]
    pub const fn value(self) -> u32 {
        !self.0
    }
}

/// What becomes of the register after each byte; then with one more behind it, up to seven. They are
/// made for who has kilobytes to take in: kept, they would be eight kilobytes of the program.
pub struct Tables([u32; 8 * 256]);

impl Tables {
    /// Made anew.
    #[must_use]
    pub fn new() -> Self {
        let mut tables = [0; 8 * 256];
        for at in 0..tables.len() {
            tables[at] = match at.checked_sub(256) {
                None => step(at as u32),
                Some(before) => {
                    let value: u32 = tables[before];
                    value >> 8 ^ tables[(value & 0xff) as usize]
                }
            };
        }
        Self(tables)
    }
}

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

/// The register a byte later, the byte in its lowest eight bits.
fn step(mut value: u32) -> u32 {
    for _ in 0..2 {
        value = value >> 4 ^ TABLE[(value & 0xf) as usize];
    }
    value
}

/// What four steps of the reflected polynomial make of each half byte.
static TABLE: [u32; 16] = {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let mut table = [0; 16];
    let mut index = 0;
    while index < 16 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 4 {
            value = value >> 1 ^ if value & 1 == 1 { POLYNOMIAL } else { 0 };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_at_a_time_is_as_one_at_a_time() {
        let bytes: std::vec::Vec<u8> = (0..5000_u32).map(|at| (at * at / 7) as u8).collect();
        let tables = Tables::new();
        for piece in [1, 7, 8, 100, 5000] {
            let (mut long, mut short) = (Crc32::new(), Crc32::new());
            let pieces = bytes.chunks(piece);
            pieces.for_each(|piece| long.update_long(piece, &tables));
            short.update(&bytes);
            assert_eq!((long, long.value()), (short, crc32fast::hash(&bytes)));
        }
    }

    /// The check value of the CRC catalogue (CRC-32/ISO-HDLC), and zlib's of "".
    #[test]
    fn check_values() {
        let mut crc = Crc32::new();
        assert_eq!(crc.value(), 0);
        crc.update(b"12345");
        crc.update(b"6789");
        assert_eq!(crc.value(), 0xcbf4_3926);
    }
}
