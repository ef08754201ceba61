//! What a read costs and what it changes: the order of cases, the timed pass, and the
//! evidence before and after it. Nothing here prints.

pub mod audit;
pub mod case;
pub mod census;
pub mod charge;
pub mod doubts;
pub mod evidence;
pub mod fate;
mod flags;
pub mod footprint;
pub mod pass;
pub mod plan;
pub mod probe;
pub mod rounds;
mod tally;
