//! The read of a question, watched: the state before it, the read, the state after it.

use super::look::{Look, Pages, State};
use super::read::{Given, Read};
use super::{Question, Stop, failed, judge, own_stack, skip};
use crate::fixture::Fixture;
use crate::fixture::kinds::Ground;
use crate::measure::evidence::Evidence;
use crate::reader::Reader;
use crate::sys::Clock;

/// What is needed for it.
pub(super) struct Watch<'w> {
    pub(super) question: &'w Question<'w>,
    pub(super) fixture: &'w Fixture,
    pub(super) ground: &'w Ground,
    pub(super) look: &'w Look<'w>,
    pub(super) read: &'w Read<'w>,
    pub(super) buffer: &'w mut [u8],
    pub(super) before: &'w mut Pages,
    pub(super) after: &'w mut Pages,
    pub(super) clock: Clock,
    pub(super) evidence: Evidence,
}

/// What was seen; the pages are where they were looked at.
pub(super) struct Seen {
    pub(super) before: State,
    pub(super) given: Given,
    pub(super) after: State,
}

impl Watch<'_> {
    /// Opens the reader, reads, and looks while it still is open.
    pub(super) fn all(&mut self) -> Result<Seen, Stop> {
        let mut seen = Err(skip("no-reader"));
        let read = self.read;
        read.with_reader(&mut |reader| seen = self.with(reader))?;
        seen
    }

    fn with(&mut self, mut reader: Option<&mut dyn Reader>) -> Result<Seen, Stop> {
        if let Some(reader) = reader.as_deref_mut() {
            self.read.rehearse(reader, self.buffer);
        }
        own_stack(self.question.stack);
        // The first look is a rehearsal, too. It counts pages where the last one will: that place
        // is part of this stack, and perhaps in another page than the place of the second.
        self.look.now(self.after)?;
        let before = self.look.now(self.before)?;
        let kind = self.question.kind;
        judge::prove(kind, self.ground, self.before, &before, self.evidence)?;
        let given = self.read.give(reader, self.buffer, self.clock)?;
        if !self.fixture.is_parked().map_err(failed)? {
            return Err(skip("target-did-not-stay-parked"));
        }
        let after = self.look.now(self.after)?;
        Ok(Seen {
            before,
            given,
            after,
        })
    }
}
