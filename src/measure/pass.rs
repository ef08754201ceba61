//! The timed pass. Between the two clock readings stands the reader's loop and nothing
//! else; the fault counters are read outside of them.

use crate::fixture::content;
use crate::reader::{End, Pass, Reader};
use crate::sys::process::{Faults, own_faults};
use crate::sys::{Clock, RemoteAddr, Segments};
use core::hint::black_box;

/// One pass over an arena, timed.
#[derive(Clone, Copy, Debug)]
pub struct TimedPass {
    /// Between the two clock readings; 0 is no time: a clock that stood still, went back or
    /// could not be read.
    pub ns: u64,
    /// Charged to the tool meanwhile; `None` where the counters cannot be read.
    pub faults: Option<Faults>,
    /// What the reader did.
    pub pass: Pass,
}

/// Writes to so much of the stack below the caller: a first write to a page is a fault of the tool's
/// own, and after a fork every write is a first one.
#[inline(never)]
pub fn touch_stack<const BYTES: usize>() {
    black_box([0_u8; BYTES]);
}

/// Reads every segment once, timed.
#[inline(never)]
pub fn timed(
    reader: &mut dyn Reader,
    clock: Clock,
    segments: &Segments,
    block_bytes: usize,
    buffer: &mut [u8],
) -> TimedPass {
    let mut spans = segments.spans();
    let before = own_faults();
    let start = clock.now_ns();
    let pass = reader.pass(&mut spans, block_bytes, buffer, None);
    let end = clock.now_ns();
    let after = own_faults();
    TimedPass {
        ns: end.saturating_sub(start),
        faults: after.zip(before).map(|(after, before)| after.since(before)),
        pass,
    }
}

/// Reads every segment once more, untimed, and looks at each byte. The second value is
/// where content first was not what belongs there.
pub fn verifying(
    reader: &mut dyn Reader,
    segments: &Segments,
    block_bytes: usize,
    buffer: &mut [u8],
) -> (Pass, Option<RemoteAddr>) {
    let mut wrong = None;
    let mut check = |at, block: &[u8]| {
        if wrong.is_none() && !content::is_intact(at, block) {
            wrong = Some(at);
        }
    };
    let pass = reader.pass(&mut segments.spans(), block_bytes, buffer, Some(&mut check));
    (pass, wrong)
}

impl TimedPass {
    /// Whether all of it was read and what the front of the buffer still holds is what
    /// belongs there: the last block of the timed pass itself.
    #[must_use]
    pub fn is_sound(&self, segments: &Segments, buffer: &[u8]) -> bool {
        let complete = self.pass.end == End::Complete
            && self.pass.bytes == segments.shape().readable_bytes() as u64;
        let last = self.pass.last;
        let held = buffer.get(..last.len as usize);
        complete && held.is_some_and(|block| content::is_intact(last.start, block))
    }
}
