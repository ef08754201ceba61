//! Which cases, in which order.
//!
//! Within a layout, every repeat takes each block once, and within a block each method
//! once: the unit that comparisons are paired in. `balanced` shuffles the blocks of each
//! repeat and rotates the methods, so that over as many repeats as there are methods
//! each stands once at each position; where the rotation starts is drawn anew for every
//! such round.

use crate::reader::Method;
use heapless::Vec;

/// Most methods, and most blocks, of a plan.
pub const LIST_MAX: usize = 16;

/// Some of them, in the order given.
pub type List<T> = Vec<T, LIST_MAX>;

/// How the order of the cases is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Shuffled; each method stands at each position equally often.
    #[default]
    Balanced,
    /// As listed, then reversed, in turn.
    Alternate,
    /// As listed.
    Fixed,
}

/// One case of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The reader.
    pub method: Method,
    /// Bytes asked for by one read.
    pub block_bytes: usize,
    /// From 1.
    pub repeat: u64,
    /// The method's place among those of the same block and repeat, from 1.
    pub position: u64,
}

/// Everything that decides the order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// As listed.
    pub methods: List<Method>,
    /// As listed, in bytes.
    pub blocks: List<usize>,
    /// Of each.
    pub repeats: u64,
    /// How.
    pub order: Order,
    /// Where shuffling starts from.
    pub seed: u64,
}

impl Plan {
    /// Cases of one layout.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.methods.len() as u64 * self.blocks.len() as u64 * self.repeats
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cases of the layout with this number (it only moves the shuffle).
    #[must_use]
    pub fn cases(&self, layout: u64) -> Cases<'_> {
        Cases {
            plan: self,
            next: 0,
            random: Random::new(self.seed, layout),
            blocks: [0; LIST_MAX],
            starts: [0; LIST_MAX],
        }
    }

    /// Which method stands at a position.
    fn method_at(&self, repeat: u64, position: usize, start: usize) -> usize {
        let methods = self.methods.len();
        match self.order {
            Order::Fixed => position,
            Order::Alternate if repeat.is_multiple_of(2) => position,
            Order::Alternate => methods - 1 - position,
            Order::Balanced => (start + position + (repeat % methods as u64) as usize) % methods,
        }
    }
}

/// The cases of one layout, in order.
pub struct Cases<'p> {
    plan: &'p Plan,
    next: u64,
    random: Random,
    /// The blocks of the current repeat in their order, by number.
    blocks: [usize; LIST_MAX],
    /// Where the rotation of the current round starts, for each block by number.
    starts: [usize; LIST_MAX],
}

impl Cases<'_> {
    fn begin_repeat(&mut self, repeat: u64) {
        let count = self.plan.blocks.len();
        self.blocks = core::array::from_fn(|number| number);
        if self.plan.order == Order::Balanced {
            self.random.shuffle(&mut self.blocks[..count]);
        }
        let methods = self.plan.methods.len();
        if repeat.is_multiple_of(methods as u64) {
            for start in &mut self.starts[..count] {
                *start = self.random.below(methods);
            }
        }
    }
}

impl Iterator for Cases<'_> {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        let plan = self.plan;
        if self.next == plan.len() {
            return None;
        }
        let methods = plan.methods.len();
        let per_repeat = (methods * plan.blocks.len()) as u64;
        let (repeat, within) = (self.next / per_repeat, (self.next % per_repeat) as usize);
        if within == 0 {
            self.begin_repeat(repeat);
        }
        self.next += 1;
        let block = self.blocks[within / methods];
        let position = within % methods;
        Some(Case {
            method: plan.methods[plan.method_at(repeat, position, self.starts[block])],
            block_bytes: plan.blocks[block],
            repeat: repeat + 1,
            position: position as u64 + 1,
        })
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// OOPSLA 2014): enough to shuffle a few cases, the same on every machine.
pub(crate) struct Random(u64);

impl Random {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed);
        random.0 = random.next() ^ stream.wrapping_mul(Self::GAMMA);
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(Self::GAMMA);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `limit`, at least 1. The bias, limit / 2^64, is of no account here.
    fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// Fisher and Yates.
    pub(crate) fn shuffle(&mut self, items: &mut [usize]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    fn plan(order: Order, methods: &[Method], repeats: u64) -> Plan {
        Plan {
            methods: List::from_slice(methods).unwrap(),
            blocks: List::from_slice(&[4096, 65536, 262_144]).unwrap(),
            repeats,
            order,
            seed: 1,
        }
    }

    const SIX: [Method; 6] = [
        Method::Proc,
        Method::ProcSeek,
        Method::Vmread,
        Method::VmreadBatch,
        Method::Ptrace,
        Method::Memcpy,
    ];
    const BOTH: [Method; 2] = [Method::Proc, Method::Vmread];

    #[test]
    fn every_case_once_whatever_the_order() {
        for order in [Order::Balanced, Order::Alternate, Order::Fixed] {
            let plan = plan(order, &Method::ALL, 10);
            let mut seen = BTreeMap::new();
            for case in plan.cases(0) {
                *seen
                    .entry((case.repeat, case.block_bytes, case.method.name()))
                    .or_insert(0) += 1;
            }
            assert_eq!(seen.len() as u64, plan.len());
            assert!(seen.values().all(|&count| count == 1));
        }
    }

    /// Methods of one block and repeat follow each other directly: that is what pairs them.
    #[test]
    fn the_members_of_a_pair_are_neighbours() {
        let cases: Vec<Case> = plan(Order::Balanced, &BOTH, 10).cases(0).collect();
        for pair in cases.chunks_exact(2) {
            assert_eq!(pair[0].block_bytes, pair[1].block_bytes);
            assert_eq!(pair[0].repeat, pair[1].repeat);
            assert_eq!((pair[0].position, pair[1].position), (1, 2));
        }
    }

    #[test]
    fn balanced_puts_each_method_equally_often_at_each_position() {
        let plan = plan(Order::Balanced, &SIX, 12);
        let mut counts = BTreeMap::new();
        for case in plan.cases(3) {
            let key = (case.block_bytes, case.method.name(), case.position);
            *counts.entry(key).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 3 * 6 * 6);
        assert!(counts.values().all(|&count| count == 2), "{counts:?}");
    }

    #[test]
    fn the_seed_decides_the_order_and_layouts_differ() {
        let order = |seed, layout| {
            let plan = Plan {
                seed,
                ..plan(Order::Balanced, &BOTH, 10)
            };
            plan.cases(layout).collect::<Vec<_>>()
        };
        assert_eq!(order(7, 0), order(7, 0));
        assert_ne!(order(7, 0), order(8, 0));
        assert_ne!(order(7, 0), order(7, 1));
    }

    #[test]
    fn alternate_turns_round_and_fixed_does_not() {
        let first = |order: Order| -> Vec<Method> {
            let plan = plan(order, &BOTH, 4);
            let heads = plan.cases(0).filter(|case| case.position == 1);
            heads
                .filter(|case| case.block_bytes == 4096)
                .map(|case| case.method)
                .collect()
        };
        let [proc, vmread] = BOTH;
        assert_eq!(first(Order::Fixed), [proc; 4]);
        assert_eq!(first(Order::Alternate), [proc, vmread, proc, vmread]);
    }

    /// The generator's published test value: the first outputs from state 0 (Vigna,
    /// splitmix64.c).
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random(0);
        assert_eq!(random.next(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.next(), 0x6e78_9e6a_a1b9_65f4);
    }
}
