//! Whom a reader reads.

use super::{Learned, Manners};
use crate::sys::Segments;
use crate::sys::process::Child;

/// A process to read: a child of ours, or anybody's.
#[derive(Clone, Copy)]
pub struct Target<'t> {
    /// Its process id.
    pub pid: i32,
    /// Bytes in a page.
    pub page_bytes: usize,
    /// The child, if it is one of ours: its id is not given to anybody else while this lives.
    pub child: Option<&'t Child>,
    /// What fork put at the same addresses in it; only the in-process copy needs this.
    pub segments: Option<&'t Segments>,
    /// What `hybrid` may do; the other readers do what they do.
    pub manners: Manners,
    /// What `hybrid` and `map-files` know from passes before.
    pub learned: Learned,
}

impl<'t> Target<'t> {
    /// A child of ours, and what it shares with us.
    #[must_use]
    pub fn child(child: &'t Child, segments: &'t Segments, page_bytes: usize) -> Self {
        Self {
            pid: child.pid(),
            page_bytes,
            child: Some(child),
            segments: Some(segments),
            manners: Manners::default(),
            learned: Learned::default(),
        }
    }

    /// Any process.
    #[must_use]
    pub fn process(pid: i32, page_bytes: usize) -> Self {
        Self {
            pid,
            page_bytes,
            child: None,
            segments: None,
            manners: Manners::default(),
            learned: Learned::default(),
        }
    }
}
