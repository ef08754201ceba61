//! In which order the arms of a round are started.

use super::plan::{LIST_MAX, Random};

/// Most arms: a list of them, and a control.
pub const ARMS_MAX: usize = LIST_MAX + 1;

/// Rounds in which each arm stands twice at each position.
#[must_use]
pub const fn block(arms: usize) -> u64 {
    2 * arms as u64
}

/// Rounds in a shuffled order that is balanced: of k arms, over 2 k rounds each stands twice
/// at each position. Such a block is made of the k rotations of one order, drawn anew for
/// each block, and of the same backwards; so each neighbour comes from either side. With
/// three arms these are all six orders there are.
pub struct Rounds {
    arms: usize,
    random: Random,
    base: [usize; ARMS_MAX],
    turns: [usize; 2 * ARMS_MAX],
}

impl Rounds {
    /// Of so many arms, at most [`ARMS_MAX`].
    #[must_use]
    pub fn new(arms: usize, seed: u64) -> Self {
        Self {
            arms,
            random: Random::new(seed, 0),
            base: core::array::from_fn(|arm| arm),
            turns: core::array::from_fn(|turn| turn),
        }
    }

    /// The arms of the round of this number, from 0; rounds are asked for one after the other.
    pub fn round(&mut self, number: u64) -> impl Iterator<Item = usize> + use<> {
        let arms = self.arms;
        let place = (number % block(arms)) as usize;
        if place == 0 {
            self.random.shuffle(&mut self.base[..arms]);
            self.random.shuffle(&mut self.turns[..2 * arms]);
        }
        let (base, turn) = (self.base, self.turns[place]);
        (0..arms).map(move |position| {
            let along = if turn < arms {
                position
            } else {
                arms - 1 - position
            };
            base[(along + turn) % arms]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    #[test]
    fn every_block_has_each_arm_twice_at_each_position() {
        for arms in [2, 3, 7, ARMS_MAX] {
            let mut rounds = Rounds::new(arms, 5);
            for block in 0..3 {
                let mut seen = BTreeMap::new();
                for round in 0..2 * arms {
                    let number = (block * 2 * arms + round) as u64;
                    let round: Vec<usize> = rounds.round(number).collect();
                    assert_eq!(round.len(), arms);
                    for place in round.into_iter().enumerate() {
                        *seen.entry(place).or_insert(0) += 1;
                    }
                }
                assert_eq!(seen.len(), arms * arms);
                assert!(seen.values().all(|&count| count == 2), "{seen:?}");
            }
        }
    }

    #[test]
    fn three_arms_come_in_all_six_orders() {
        let mut rounds = Rounds::new(3, 1);
        let mut orders: Vec<Vec<usize>> =
            (0..6).map(|round| rounds.round(round).collect()).collect();
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn the_seed_decides_the_order() {
        let orders = |seed| {
            let mut rounds = Rounds::new(3, seed);
            (0..60)
                .flat_map(|round| rounds.round(round))
                .collect::<Vec<_>>()
        };
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }
}
