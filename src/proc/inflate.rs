//! DEFLATE, the compressed part of a gzip file, inflated into memory that holds it all.
//!
//! Source: RFC 1951, whose sections are named below. Every block and every symbol takes at
//! least one bit of input, so the work is bounded by the input and by the room for output.

use core::slice;

/// The input is not what a compressor wrote, does not fit, or ends too early: then all of
/// it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// Inflates blocks up to the one that says it is the last, takes no byte of the input
/// behind it, and tells how many bytes were written.
///
/// # Errors
/// [`Broken`]; what was written by then is not to be relied on.
// Its large frame would make every access to the caller's longer.
#[inline(never)]
pub fn inflate(input: &mut slice::Iter<'_, u8>, output: &mut [u8]) -> Result<usize, Broken> {
    let bytes = input.as_slice();
    let mut stream = Stream {
        input: bytes,
        output,
        written: 0,
        bits: 0,
        held: 0,
    };
    let inflated = stream.blocks();
    // Whole bytes that were read ahead are given back.
    let behind = stream.input.len() + stream.held as usize / 8;
    *input = bytes[bytes.len() - behind..].iter();
    inflated.map(|()| stream.written)
}

/// A symbol below this one is a byte, a symbol above it a length.
const END: u16 = 256;
/// Symbols in the fixed code. The last two must not appear in a block.
const SYMBOLS_MAX: usize = 288;
/// The same of distances.
const DISTANCES_MAX: usize = 32;
/// Words have 1 to 15 bits.
const LENGTHS: usize = 16;

/// Lengths of words for the symbols and, behind them, for the distances; 0 is none.
type Lengths = [u16; SYMBOLS_MAX + DISTANCES_MAX];

/// The codes that are not described in the block (3.2.6), and how many symbols there are.
fn fixed(lengths: &mut Lengths) -> usize {
    for (symbol, length) in lengths.iter_mut().enumerate() {
        *length = match symbol {
            0..144 | 280..288 => 8,
            144..256 => 9,
            256..280 => 7,
            _ => 5,
        };
    }
    SYMBOLS_MAX
}

/// Words of at most so many bits are looked up.
const SHORT: u32 = 9;

/// A Huffman code. The lengths of its words are enough to know them (3.2.2).
struct Code {
    /// By the next [`SHORT`] bits of the input, the word that they begin with: 16 times its symbol
    /// and its length; 0 for a longer word, or none.
    short: [u16; 1 << SHORT],
    /// How many words there are of each length; the first number counts for nothing.
    counts: [u16; LENGTHS],
    /// What the words stand for, short words first.
    symbols: [u16; SYMBOLS_MAX],
}

impl Code {
    const EMPTY: Self = Self {
        short: [0; 1 << SHORT],
        counts: [0; LENGTHS],
        symbols: [0; SYMBOLS_MAX],
    };

    /// Takes the length of each symbol's word, 0 for none. Every sequence of bits must
    /// begin with a word, unless there is only one, of one bit, or none.
    fn set(&mut self, lengths: &[u16]) -> Result<(), Broken> {
        *self = Self::EMPTY;
        for &length in lengths {
            let count = self.counts.get_mut(usize::from(length));
            *count.ok_or(Broken)? += 1;
        }
        // Of the next word of each length its place among all, and the word.
        let mut next = [(0, 0_u16); LENGTHS];
        let (mut words, mut free, mut first) = (0, 1, 0);
        for (count, next) in self.counts.iter().zip(&mut next).skip(1) {
            *next = (words, first);
            words += *count;
            free = 2 * free - i32::from(*count);
            first = first.wrapping_add(*count) << 1;
        }
        if free < 0 || free > 0 && words != self.counts[1] {
            return Err(Broken);
        }
        for (symbol, &length) in (0..).zip(lengths).filter(|(_, length)| **length > 0) {
            let (place, word) = next.get_mut(usize::from(length)).ok_or(Broken)?;
            *self.symbols.get_mut(usize::from(*place)).ok_or(Broken)? = symbol;
            // In the input a word's first bit comes first, which is the lowest there.
            let bits = (*word << (u16::BITS as u16 - length)).reverse_bits();
            if u32::from(length) <= SHORT {
                for entry in self.short.iter_mut().skip(bits.into()).step_by(1 << length) {
                    *entry = symbol << 4 | length;
                }
            }
            *place += 1;
            *word += 1;
        }
        Ok(())
    }
}

/// The order in which a block gives the lengths for the code of lengths (3.2.7).
const ORDER: [u8; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// No length of a word: a repetition of it is refused.
const NO_LENGTH: u16 = LENGTHS as u16;

struct Stream<'s> {
    input: &'s [u8],
    output: &'s mut [u8],
    written: usize,
    /// Bits that were read and not used yet, the next one lowest.
    bits: u64,
    /// How many.
    held: u32,
}

impl Stream<'_> {
    /// Everything, up to the end of the last block.
    fn blocks(&mut self) -> Result<(), Broken> {
        let (mut symbols, mut distances) = (Code::EMPTY, Code::EMPTY);
        // 3.2.3: a block begins with whether it is the last, and how it is written.
        loop {
            let last = self.bits(1)?;
            let mut lengths = [0; SYMBOLS_MAX + DISTANCES_MAX];
            let kind = self.bits(2)?;
            if kind == 0 {
                self.stored()?;
            } else {
                let symbol_count = match kind {
                    1 => fixed(&mut lengths),
                    2 => self.lengths(&mut lengths, &mut symbols)?,
                    _ => return Err(Broken),
                };
                let (of_symbols, of_distances) =
                    lengths.split_at_checked(symbol_count).ok_or(Broken)?;
                symbols.set(of_symbols)?;
                distances.set(of_distances)?;
                self.compressed(&symbols, &distances)?;
            }
            if last == 1 {
                return Ok(());
            }
        }
    }

    /// Reads ahead: at least 32 bits, if there are as many. A word and the extra bits behind it are
    /// fewer.
    #[inline(always)]
    fn fill(&mut self) {
        if self.held >= 32 {
            return;
        }
        if let Some((bytes, rest)) = self.input.split_first_chunk() {
            self.bits |= u64::from(u32::from_le_bytes(*bytes)) << self.held;
            self.held += 32;
            self.input = rest;
            return;
        }
        while let Some((byte, rest)) = self.input.split_first() {
            self.bits |= u64::from(*byte) << self.held;
            self.held += 8;
            self.input = rest;
        }
    }

    /// The next bits as a number, at most 16 of them (3.1.1).
    fn bits(&mut self, count: u32) -> Result<u16, Broken> {
        self.fill();
        self.held_bits(count)
    }

    /// As [`bits`](Self::bits), of those that were read.
    #[inline(always)]
    fn held_bits(&mut self, count: u32) -> Result<u16, Broken> {
        if self.held < count {
            // All of it was taken.
            self.held = 0;
            return Err(Broken);
        }
        let [low, high, ..] = (self.bits & ((1 << count) - 1)).to_le_bytes();
        self.bits >>= count;
        self.held -= count;
        Ok(u16::from_le_bytes([low, high]))
    }

    /// The next symbol. The words of one length are consecutive numbers; those of the next
    /// length continue where they end, one bit longer (3.2.2).
    fn symbol(&mut self, code: &Code) -> Result<u16, Broken> {
        self.fill();
        let short = code.short[self.bits as usize % code.short.len()];
        if short > 0 {
            self.held_bits(u32::from(short % 16))?;
            return Ok(short / 16);
        }
        let (mut word, mut first, mut shorter) = (0_u16, 0, 0);
        for count in &code.counts[1..] {
            word = word << 1 | self.bits(1)?;
            // Never negative: the word is past all shorter ones.
            let nth = word - first;
            if nth < *count {
                let symbol = code.symbols.get(usize::from(shorter + nth));
                return symbol.copied().ok_or(Broken);
            }
            shorter += *count;
            first = (first + *count) << 1;
        }
        Err(Broken)
    }

    /// A length or a distance, counted from the least one. Symbols below 2^FINE are
    /// numbers; behind them each 2^FINE symbols have one extra bit more, and cover twice
    /// as much, as the 2^FINE before (the tables in 3.2.5).
    fn number(&mut self, symbol: u16, fine: u32) -> Result<u16, Broken> {
        let one = 1 << fine;
        if symbol < one {
            return Ok(symbol);
        }
        let extra = u32::from(symbol >> fine) - 1;
        Ok((one | symbol & (one - 1)) << extra | self.held_bits(extra)?)
    }

    /// Writes the low byte of `byte`.
    fn put(&mut self, byte: u16) -> Result<(), Broken> {
        let slot = self.output.get_mut(self.written);
        [*slot.ok_or(Broken)?, _] = byte.to_le_bytes();
        self.written += 1;
        Ok(())
    }

    /// Writes `count` bytes that were written `distance` before; a distance that is less repeats
    /// them.
    fn again(&mut self, count: usize, distance: usize) -> Result<(), Broken> {
        let from = self.written.checked_sub(distance).ok_or(Broken)?;
        self.written += count;
        let (known, new) = self
            .output
            .get_mut(from..self.written)
            .and_then(|copied| copied.split_at_mut_checked(distance))
            .ok_or(Broken)?;
        match known.get(..count) {
            Some(known) => new.copy_from_slice(known),
            None => {
                for (at, byte) in new.iter_mut().enumerate() {
                    *byte = known[at % distance];
                }
            }
        }
        Ok(())
    }

    /// A block of bytes as they are, from the next whole byte on (3.2.4).
    fn stored(&mut self) -> Result<(), Broken> {
        self.bits(self.held % 8)?;
        let count = self.bits(16)?;
        if self.bits(16)? != !count {
            return Err(Broken);
        }
        for _ in 0..count {
            let byte = self.bits(8)?;
            self.put(byte)?;
        }
        Ok(())
    }

    /// The codes that are described in the block, and how many symbols there are. The
    /// description is in a code, `code`, whose own lengths come first (3.2.7).
    fn lengths(&mut self, lengths: &mut Lengths, code: &mut Code) -> Result<usize, Broken> {
        let symbol_count = usize::from(self.bits(5)?) + 257;
        let distance_count = usize::from(self.bits(5)?) + 1;
        let order_count = usize::from(self.bits(4)?) + 4;
        if symbol_count > 286 || distance_count > 30 {
            return Err(Broken);
        }
        for at in ORDER.iter().take(order_count) {
            lengths[usize::from(*at)] = self.bits(3)?;
        }
        code.set(&lengths[..ORDER.len()])?;

        let lengths = &mut lengths[..symbol_count + distance_count];
        let (mut at, mut length) = (0, NO_LENGTH);
        while at < lengths.len() {
            let repeat;
            (length, repeat) = match self.symbol(code)? {
                16 => (length, 3 + self.bits(2)?),
                17 => (0, 3 + self.bits(3)?),
                18 => (0, 11 + self.bits(7)?),
                length => (length, 1),
            };
            for _ in 0..repeat {
                *lengths.get_mut(at).ok_or(Broken)? = length;
                at += 1;
            }
        }
        // Without a word for the end the block has none: the input runs out.
        Ok(symbol_count)
    }

    /// Bytes and copies of what was written before, up to the end of the block (3.2.5).
    fn compressed(&mut self, symbols: &Code, distances: &Code) -> Result<(), Broken> {
        loop {
            let count = match self.symbol(symbols)? {
                END => return Ok(()),
                byte @ 0..END => {
                    self.put(byte)?;
                    continue;
                }
                length @ 257..=284 => 3 + self.number(length - 257, 2)?,
                285 => 258,
                _ => return Err(Broken),
            };
            let distance = match self.symbol(distances)? {
                distance @ 0..30 => usize::from(1 + self.number(distance, 1)?),
                _ => return Err(Broken),
            };
            self.again(usize::from(count), distance)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec;
    use miniz_oxide::inflate::decompress_to_vec_with_limit;
    use std::vec;
    use std::vec::Vec;

    /// xorshift64*: the same data in every run.
    struct Noise(u64);

    impl Noise {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
        }

        fn bytes(&mut self, count: usize, kinds: usize) -> Vec<u8> {
            (0..count).map(|_| self.below(kinds) as u8).collect()
        }
    }

    /// Much alike, as a configuration is.
    fn text(lines: usize) -> Vec<u8> {
        let line = |number| std::format!("# CONFIG_OPTION_{number} is not set\n");
        (0..lines)
            .flat_map(|number| line(number * number).into_bytes())
            .collect()
    }

    /// What was inflated, and how many bytes of input are left.
    fn inflated(packed: &[u8], room: usize) -> Result<(Vec<u8>, usize), Broken> {
        let mut output = vec![0xa5; room];
        let mut input = packed.iter();
        let result = inflate(&mut input, &mut output);
        let written = result?;
        output.truncate(written);
        Ok((output, input.len()))
    }

    fn samples() -> Vec<Vec<u8>> {
        let mut noise = Noise(1);
        let mut samples = vec![
            vec![],
            vec![0],
            vec![b'x'; 70_000],
            noise.bytes(40_000, 256),
            noise.bytes(5_000, 2),
            text(1000),
        ];
        // Pieces of what stands up to 32 KiB before, of all lengths.
        let mut mixed = noise.bytes(100, 256);
        while mixed.len() < 80_000 {
            let reach = mixed.len().min(32 << 10);
            let from = mixed.len() - 1 - noise.below(reach);
            let count = 1 + noise.below(300);
            (from..from + count).for_each(|at| mixed.push(mixed[at]));
            mixed.extend(noise.bytes(noise.0 as usize % 5, 256));
        }
        samples.push(mixed);
        // Each byte half as often as the one before: words of all lengths.
        let rare = |noise: &mut Noise| (1 + noise.below(0xffff) as u16).leading_zeros() as u8;
        samples.push((0..200_000).map(|_| rare(&mut noise)).collect());
        samples
    }

    #[test]
    fn what_was_compressed_comes_back() {
        for (number, sample) in samples().iter().enumerate() {
            for level in 0..=10 {
                let mut packed = compress_to_vec(sample, level);
                packed.extend_from_slice(b"behind");
                let (plain, rest) = inflated(&packed, sample.len()).unwrap();
                assert!(plain == *sample, "sample {number}, level {level}");
                assert_eq!(rest, 6, "sample {number}, level {level}");
                let room = sample.len().wrapping_sub(1);
                assert!(sample.is_empty() || inflated(&packed, room) == Err(Broken));
            }
        }
    }

    fn short_samples() -> impl Iterator<Item = Vec<u8>> {
        let text = text(30);
        let noise = Noise(2).bytes(40, 256);
        let mixed = [&text[..600], &noise, &text[200..700]].concat();
        [0, 1, 6, 9]
            .into_iter()
            .map(move |level| compress_to_vec(&mixed, level))
    }

    #[test]
    fn cut_anywhere_it_is_broken_and_used_up() {
        for packed in short_samples() {
            for end in 0..packed.len() {
                let mut input = packed[..end].iter();
                assert_eq!(inflate(&mut input, &mut [0; 2000]), Err(Broken), "{end}");
                assert_eq!(input.len(), 0, "{end}");
            }
        }
    }

    /// What is inflated in spite of a defect is what the judge makes of it, too.
    fn judged(packed: &[u8]) -> bool {
        let Ok((plain, _)) = inflated(packed, 5000) else {
            return false;
        };
        let judge = decompress_to_vec_with_limit(packed, 5000);
        assert!(
            judge.is_ok_and(|judge| judge == plain),
            "{}",
            packed.escape_ascii()
        );
        true
    }

    #[test]
    fn no_corruption_does_harm() {
        let mut noise = Noise(3);
        let (mut broken, mut whole) = (0, 0);
        let mut count = |packed: &[u8]| match judged(packed) {
            true => whole += 1,
            false => broken += 1,
        };
        for packed in short_samples() {
            for at in 0..packed.len() {
                for bit in 0..8 {
                    let mut packed = packed.clone();
                    packed[at] ^= 1 << bit;
                    count(&packed);
                    packed[noise.below(at + 1)] = noise.below(256) as u8;
                    count(&packed);
                }
            }
        }
        assert!(
            broken > 5000 && whole > 5000,
            "{broken} broken, {whole} whole"
        );
    }

    #[test]
    fn no_noise_does_harm() {
        let mut noise = Noise(4);
        for _ in 0..20_000 {
            let count = noise.below(120);
            let mut packed = noise.bytes(count, 256);
            judged(&packed);
            // The same as one last block that describes its codes.
            if let Some(first) = packed.first_mut() {
                *first = *first & !7 | 0b101;
                judged(&packed);
            }
        }
    }

    /// Numbers with their widths as DEFLATE packs them; negative widths mark the words of
    /// a code, which stand with their first bit first.
    fn packed(parts: &[(u32, i32)]) -> Vec<u8> {
        let mut bits = Vec::new();
        for &(value, width) in parts {
            for bit in 0..width.abs() {
                let place = if width < 0 { -width - 1 - bit } else { bit };
                bits.push(value >> place & 1);
            }
        }
        let byte = |bits: &[u32]| {
            bits.iter()
                .rev()
                .fold(0, |byte, bit| byte << 1 | *bit as u8)
        };
        bits.chunks(8).map(byte).collect()
    }

    const A: (u32, i32) = (0x30 + b'a' as u32, -8);
    const FIXED: [(u32, i32); 2] = [(1, 1), (1, 2)];

    #[test]
    fn blocks_by_hand() {
        let good: [(Vec<u8>, &[u8]); 4] = [
            (packed(&[&FIXED[..], &[(0, -7)]].concat()), b""),
            // A byte, then 258 and 3 of it, one back.
            (
                packed(
                    &[
                        &FIXED[..],
                        &[A, (0b1100_0101, -8), (0, -5), (1, -7), (0, -5), (0, -7)],
                    ]
                    .concat(),
                ),
                &[b'a'; 262],
            ),
            (
                packed(&[
                    (0, 1),
                    (0, 2),
                    (0, 5),
                    (2, 16),
                    (0xfffd, 16),
                    (0x6261, 16),
                    (1, 1),
                    (1, 2),
                    (0, -7),
                ]),
                b"ab",
            ),
            (
                packed(&[(1, 1), (0, 2), (0x1f, 5), (0, 16), (0xffff, 16)]),
                b"",
            ),
        ];
        for (packed, want) in good {
            assert_eq!(
                inflated(&packed, 262),
                Ok((want.to_vec(), 0)),
                "{packed:02x?}"
            );
        }
        let bad: [&[(u32, i32)]; 6] = [
            // The fourth kind of block.
            &[(1, 1), (3, 2)],
            // Stored: the second number is not the complement of the first.
            &[(1, 1), (0, 2), (0, 5), (1, 16), (0xffff, 16), (0, 8)],
            // Two back behind one byte; one back behind none.
            &[(1, 1), (1, 2), A, (1, -7), (1, -5), (0, -7)],
            &[(1, 1), (1, 2), (1, -7), (0, -5), (0, -7)],
            // Length 286, distance 30: words without a meaning.
            &[(1, 1), (1, 2), A, (0b1100_0110, -8), (0, -5), (0, -7)],
            &[(1, 1), (1, 2), A, (1, -7), (30, -5), (0, -7)],
        ];
        for parts in bad {
            assert_eq!(inflated(&packed(parts), 262), Err(Broken), "{parts:?}");
        }
    }

    /// Farther back than 32 KiB, although there is as much.
    #[test]
    fn distances_are_bounded() {
        let stored = [
            &[(0, 1), (0, 2), (0, 5), (40_000, 16), (!40_000 & 0xffff, 16)][..],
            &[(7, 8); 40_000],
        ];
        for (distance, extra, good) in [(29, 13, true), (30, 14, false)] {
            let copied = [&FIXED[..], &[(1, -7), (distance, -5), (0, extra), (0, -7)]];
            let packed = packed(&[stored.concat(), copied.concat()].concat());
            assert_eq!(inflated(&packed, 50_000).is_ok(), good, "{distance}");
        }
    }

    /// A last block whose symbols and distances have these lengths, spelled in a code that
    /// has all 16 lengths and the repetitions as words of 4 and 5 bits.
    fn described(symbols: u32, distances: u32, lengths: &[u32], behind: &[(u32, i32)]) -> Vec<u8> {
        let mut parts = vec![
            (1, 1),
            (2, 2),
            (symbols - 257, 5),
            (distances - 1, 5),
            (15, 4),
        ];
        // 19 words: 13 of 4 bits, 6 of 5 bits.
        let width = |symbol: u32| if symbol < 13 { 4 } else { 5 };
        parts.extend(ORDER.iter().map(|symbol| (width((*symbol).into()), 3)));
        let word = |symbol: &u32| match *symbol {
            short @ 0..13 => (short, -4),
            long => (26 + long - 13, -5),
        };
        for length in lengths {
            // Repetitions stand as symbol and, from bit 8 on, their number.
            parts.push(word(&(length & 0xff)));
            match length & 0xff {
                16 => parts.push((length >> 8, 2)),
                17 => parts.push((length >> 8, 3)),
                18 => parts.push((length >> 8, 7)),
                _ => {}
            }
        }
        parts.extend_from_slice(behind);
        packed(&parts)
    }

    #[test]
    fn described_codes() {
        let zeros = |count: u32| 18 | (count - 11) << 8;
        let all = [zeros(138), zeros(118)];
        // The end alone, as one bit, and no distance.
        let end = [&all[..], &[1, 0]].concat();
        assert_eq!(
            inflated(&described(257, 1, &end, &[(0, -1)]), 9),
            Ok((vec![], 0))
        );
        // The other bit is no word.
        assert_eq!(
            inflated(&described(257, 1, &end, &[(1, -1)]), 9),
            Err(Broken)
        );
        let bad: [&[u32]; 7] = [
            // No word but one of a byte, so no end.
            &[zeros(97), 1, zeros(138), zeros(22)],
            // Nothing to repeat.
            &[16, zeros(138), zeros(115), 1, 0],
            // One more than there are symbols and distances.
            &[zeros(138), zeros(118), 1, 17],
            // The end in two bits: half of the words are missing.
            &[zeros(138), zeros(118), 2, 0],
            // Three words of one bit.
            &[1, 1, zeros(138), zeros(116), 1, 0],
            // A single distance in two bits.
            &[zeros(138), zeros(118), 1, 2],
            // Cut in the lengths.
            &[zeros(138)],
        ];
        for lengths in bad {
            let packed = described(257, 1, lengths, &[(0, -1)]);
            assert_eq!(inflated(&packed, 9), Err(Broken), "{lengths:x?}");
        }
        // More symbols or distances than there are.
        for (symbols, distances) in [(287, 1), (257, 31)] {
            let packed = described(
                symbols,
                distances,
                &[zeros(138), zeros(118), 1, zeros(31)],
                &[(0, -1)],
            );
            assert_eq!(inflated(&packed, 9), Err(Broken), "{symbols} {distances}");
        }
    }
}
