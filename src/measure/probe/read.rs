//! The read of a question: by the tool itself, or by a helper where it may never return.

use super::content::{Content, Expected};
use super::{Answer, Question, Stop, failed, judge};
use crate::fixture::kinds::{Blocks, Ground};
use crate::fixture::{Fixture, bounded};
use crate::reader::{End, Method, Reader, Target};
use crate::sys::process::{Faults, own_faults};
use crate::sys::remote::RemoteSpan;
use crate::sys::{Clock, Errno, Region, RemoteAddr};

/// A read that may never return is given up after this long, or a second of sleep.
const BOUND_NS: u64 = 60_000_000_000;

/// What a read gave, and what it took.
pub(super) struct Given {
    pub(super) answer: Option<Answer>,
    pub(super) faults: Option<Faults>,
    pub(super) blocked: bool,
}

/// The read of a question.
pub(super) struct Read<'r> {
    question: &'r Question<'r>,
    fixture: &'r Fixture,
    ground: &'r Ground,
    span: RemoteSpan,
    expected: Expected<'r>,
}

impl<'r> Read<'r> {
    pub(super) fn new(
        fixture: &'r Fixture,
        ground: &'r Ground,
        question: &'r Question<'r>,
        own: &'r mut Region,
    ) -> Result<Self, Stop> {
        let span = ground.span(question.op);
        Ok(Self {
            question,
            fixture,
            ground,
            span,
            expected: Expected::of(question.kind.holds, ground, span, own).map_err(failed)?,
        })
    }

    /// Reads what lies so many pages farther on.
    pub(super) fn skip(&mut self, pages: usize) {
        let bytes = (pages * self.ground.page_bytes()) as u64;
        self.span.start = self.span.start.plus(bytes);
    }

    /// Opens the reader and lends it to `then`. It gets none for a control, nor where a helper
    /// will do the reading.
    pub(super) fn with_reader(
        &self,
        then: &mut dyn FnMut(Option<&mut dyn Reader>),
    ) -> Result<(), Stop> {
        match self.question.method {
            Some(method) if !self.is_bounded() => {
                let lent = self.lend(method, &mut |reader| then(Some(reader)));
                lent.map_err(|errno| self.refused(errno))
            }
            _ => {
                then(None);
                Ok(())
            }
        }
    }

    /// Whether the read may never return.
    fn is_bounded(&self) -> bool {
        self.question.kind.blocks != Blocks::Never
    }

    /// What the errno of a reader that cannot be opened says.
    fn refused(&self, errno: Errno) -> Stop {
        let method = self.question.method;
        method.map_or(failed(errno), |method| {
            Stop::Status(judge::refusal(method, errno))
        })
    }

    fn lend(&self, method: Method, then: &mut dyn FnMut(&mut dyn Reader)) -> Result<(), Errno> {
        let target = Target {
            child: Some(self.fixture.child()),
            ..Target::process(self.fixture.child().pid(), self.ground.page_bytes())
        };
        method.lend(&target, then)
    }

    /// The tool's own pages that fork made copy-on-write are written to here.
    pub(super) fn rehearse(&self, reader: &mut dyn Reader, buffer: &mut [u8]) {
        // Where the kind has no other page: one of the program's constants.
        let elsewhere = self.ground.elsewhere().unwrap_or(self.constant());
        give(reader, elsewhere, &self.expected, buffer);
    }

    pub(super) fn give(
        &self,
        reader: Option<&mut dyn Reader>,
        buffer: &mut [u8],
        clock: Clock,
    ) -> Result<Given, Stop> {
        if let Some(method) = self.question.method
            && self.is_bounded()
        {
            return self.give_bounded(method, buffer.len(), clock);
        }
        let faults = own_faults();
        let (span, expected) = (self.span, &self.expected);
        let answer = reader.map(|reader| give(reader, span, expected, buffer));
        let charged = own_faults()
            .zip(faults)
            .map(|(after, before)| after.since(before));
        Ok(Given {
            answer,
            faults: charged,
            blocked: false,
        })
    }

    /// By a helper, which is killed if it does not come back.
    fn give_bounded(&self, method: Method, bytes: usize, clock: Clock) -> Result<Given, Stop> {
        let fixture = self.fixture;
        let give_up = &mut || fixture.kill_server();
        let words = bounded(clock, BOUND_NS, give_up, &mut || match self
            .give_as_helper(method, bytes)
        {
            Ok(given) => given.write(),
            Err(errno) => Words::Refused(errno).write(),
        })
        .map_err(Stop::Run)?;
        // A helper that traced it has let it go.
        self.fixture.wait_until_asleep().map_err(Stop::Run)?;
        match words.map(Words::read) {
            None => Ok(Given {
                answer: None,
                faults: None,
                blocked: true,
            }),
            Some(Words::Refused(errno)) => Err(self.refused(errno)),
            Some(Words::Given(answer, faults)) => Ok(Given {
                answer,
                faults,
                blocked: false,
            }),
        }
    }

    /// In the helper. Its stack is shared with the tool by fork: the same steps are done twice,
    /// so that the faults of the second time are those of the read.
    fn give_as_helper(&self, method: Method, bytes: usize) -> Result<Words, Errno> {
        // The tool's own buffer does not exist in children.
        let mut buffer = Region::new(bytes)?;
        buffer.touch(self.ground.page_bytes());
        let mut given = Words::Given(None, None);
        self.lend(method, &mut |reader| {
            for span in [self.constant(), self.span] {
                let faults = own_faults();
                let answer = give(reader, span, &self.expected, buffer.bytes_mut());
                let charged = own_faults().zip(faults);
                let charged = charged.map(|(after, before)| after.since(before));
                given = Words::Given(Some(answer), charged);
            }
        })?;
        Ok(given)
    }

    /// The page of one of the program's constants, for a rehearsal.
    fn constant(&self) -> RemoteSpan {
        let page_bytes = self.ground.page_bytes() as u64;
        let constant = crate::fixture::kinds::KINDS.as_ptr().addr() as u64;
        RemoteSpan {
            start: RemoteAddr(constant - constant % page_bytes),
            len: page_bytes,
        }
    }

    /// Numbers of the pages that are read, among those that are looked at.
    pub(super) fn pages(&self, page_bytes: u64) -> core::ops::Range<usize> {
        let seen = self.ground.seen().start.0;
        let start = self.ground.untagged(self.span.start).0.saturating_sub(seen) / page_bytes;
        start as usize..(start + self.span.len / page_bytes) as usize
    }
}

/// What a helper tells.
enum Words {
    /// The reader is not to be had.
    Refused(Errno),
    /// As in [`Given`].
    Given(Option<Answer>, Option<Faults>),
}

impl Words {
    const KINDS: [Content; 3] = [Content::Intact, Content::Zero, Content::Wrong];

    fn write(self) -> [u64; 6] {
        let (answer, faults) = match self {
            Self::Given(answer, faults) => (answer, faults),
            Self::Refused(errno) => return [1, number(errno), 0, 0, 0, 0],
        };
        let (bytes, end, content) = answer.map_or((0, End::Short, None), |answer| {
            (answer.bytes, answer.end, answer.content)
        });
        let end = match end {
            End::Complete => 0,
            End::Short => u64::MAX,
            End::Failed(errno) => number(errno),
        };
        let place = |content| Self::KINDS.iter().position(|&kind| kind == content);
        let content = content.and_then(place).unwrap_or(Self::KINDS.len());
        let faults = faults.map_or([u64::MAX; 2], |faults| [faults.minor, faults.major]);
        [0, bytes, end, content as u64, faults[0], faults[1]]
    }

    fn read([refused, bytes, end, content, minor, major]: [u64; 6]) -> Self {
        if refused != 0 {
            return Self::Refused(Errno::from_raw_os_error(bytes as i32));
        }
        let end = match end {
            0 => End::Complete,
            u64::MAX => End::Short,
            errno => End::Failed(Errno::from_raw_os_error(errno as i32)),
        };
        let answer = Answer {
            bytes,
            end,
            content: Self::KINDS.get(content as usize).copied(),
        };
        let faults = (minor != u64::MAX).then_some(Faults { minor, major });
        Self::Given(Some(answer), faults)
    }
}

fn number(errno: Errno) -> u64 {
    errno.raw_os_error().unsigned_abs().into()
}

/// One pass over the range in one block, and what came.
fn give(
    reader: &mut dyn Reader,
    span: RemoteSpan,
    expected: &Expected<'_>,
    buffer: &mut [u8],
) -> Answer {
    let mut content = None;
    let mut see = |at: RemoteAddr, block: &[u8]| content = expected.judge(at, block, content);
    let spans = &mut [span].into_iter();
    let pass = reader.pass(spans, span.len as usize, buffer, Some(&mut see));
    Answer {
        bytes: pass.bytes,
        end: pass.end,
        content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A helper without descriptors left says so, and not that it may not.
    #[test]
    fn words_survive_the_pipe() {
        for errno in [Errno::MFILE, Errno::PERM, Errno::NOSYS] {
            let Words::Refused(read) = Words::read(Words::Refused(errno).write()) else {
                panic!("{errno:?}");
            };
            assert_eq!(read, errno);
        }
        let answer = Answer {
            bytes: 4096,
            end: End::Failed(Errno::IO),
            content: Some(Content::Zero),
        };
        let faults = Faults { minor: 1, major: 2 };
        let words = Words::Given(Some(answer), Some(faults)).write();
        assert_eq!(words, [0, 4096, 5, 1, 1, 2]);
        assert!(matches!(
            Words::read(words),
            Words::Given(Some(answer), Some(faults))
                if answer.bytes == 4096 && answer.end == End::Failed(Errno::IO)
                    && answer.content == Some(Content::Zero) && faults.major == 2
        ));
    }
}
