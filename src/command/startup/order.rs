//! What is said of the order of rounds.

use crate::emit::Sink;
use crate::emit::stream::{Preamble, StreamError};
use crate::measure::rounds::block;
use crate::text::Text;

/// Notes how many rounds there are, and how many make a balanced block.
pub(super) fn note<S: Sink>(
    arms: usize,
    rounds: u64,
    preamble: &mut Preamble<S>,
) -> Result<(), StreamError<S::Error>> {
    preamble.note("rounds", Text::new().number(rounds).read()?)?;
    let block = block(arms);
    preamble.note("rounds_in_a_block", Text::new().number(block).read()?)
}

/// Adds that the places are not balanced, if they are not.
pub(super) fn say(arms: usize, rounds: u64, words: &mut Text) {
    let block = block(arms);
    if !rounds.is_multiple_of(block) {
        words.add(" (no whole blocks of ").number(block);
        words.add(": places are not balanced)");
    }
}
