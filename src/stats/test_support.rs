//! What the tests of this module share: reading reference files, and a generator.

use std::vec::Vec;

/// The records of a reference file: its first line names the columns, the others have
/// `N` fields each.
pub fn records<const N: usize>(text: &str) -> impl Iterator<Item = [&str; N]> {
    assert!(
        text.lines().count() > 1,
        "an empty reference proves nothing"
    );
    text.lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        fields.try_into().expect(line)
    })
}

/// The numbers of one field, separated by spaces.
pub fn numbers(field: &str) -> Vec<u64> {
    field.split(' ').map(|n| n.parse().expect(field)).collect()
}

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Between 1 and `longest` numbers in `0..bound`.
    pub fn sample(&mut self, longest: u64, bound: u64) -> Vec<u64> {
        (0..=self.below(longest))
            .map(|_| self.below(bound))
            .collect()
    }
}
