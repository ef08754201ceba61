//! Whether the bytes that came are those that lie there.

use crate::fixture::content::is_intact;
use crate::fixture::kinds::{Ground, Holds};
use crate::sys::remote::{RemoteSpan, process_vm_readv};
use crate::sys::{Errno, Region, RemoteAddr};
use rustix::process::getpid;

/// What the bytes that came are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// As they were written.
    Intact,
    /// All zero.
    Zero,
    /// Neither.
    Wrong,
}

/// What has to come.
pub(super) struct Expected<'e> {
    holds: Holds,
    ground: &'e Ground,
    page_bytes: u64,
    own: &'e [u8],
}

impl<'e> Expected<'e> {
    /// Of what a kind holds, of which `span` is read; `own` gets the tool's own page at the
    /// same address, if that is it.
    pub(super) fn of(
        holds: Holds,
        ground: &'e Ground,
        span: RemoteSpan,
        own: &'e mut Region,
    ) -> Result<Self, Errno> {
        let page_bytes = ground.page_bytes() as u64;
        let own = own.bytes_mut();
        if holds == Holds::Same {
            process_vm_readv(getpid().as_raw_nonzero().get(), own, &[span])?;
        }
        Ok(Self {
            holds,
            ground,
            page_bytes,
            own,
        })
    }

    /// Of a block at `at`, behind a front that is `front`.
    pub(super) fn judge(
        &self,
        at: RemoteAddr,
        block: &[u8],
        front: Option<Content>,
    ) -> Option<Content> {
        let mut found = front;
        let mut at = self.ground.untagged(at);
        let mut rest = block;
        while !rest.is_empty() {
            let left = (self.page_bytes - at.0 % self.page_bytes) as usize;
            let (part, behind) = rest.split_at(left.min(rest.len()));
            let Some(next) = self.part(at, part) else {
                // What nobody knows hides no wrong front.
                return found.filter(|&front| front != Content::Intact);
            };
            found = Some(next.after(found));
            at = at.plus(part.len() as u64);
            rest = behind;
        }
        found
    }

    /// Of bytes within one page.
    fn part(&self, at: RemoteAddr, bytes: &[u8]) -> Option<Content> {
        let within = (at.0 % self.page_bytes) as usize;
        let memory = self.ground.first_page();
        let intact = match self.holds {
            Holds::Repeated if at >= memory => is_intact(memory.plus(within as u64), bytes),
            Holds::Same => self.own.get(within..within + bytes.len()) == Some(bytes),
            Holds::Unknown if at >= memory => return None,
            Holds::HalfPage if at >= memory => {
                let of_file = (self.page_bytes as usize / 2).saturating_sub(within);
                let (of_file, behind) = bytes.split_at(of_file.min(bytes.len()));
                is_intact(at, of_file) && behind.iter().all(|&byte| byte == 0)
            }
            _ => is_intact(at, bytes),
        };
        Some(match intact {
            true => Content::Intact,
            false if bytes.iter().all(|&byte| byte == 0) => Content::Zero,
            false => Content::Wrong,
        })
    }
}

impl Content {
    /// Of a range whose front holds `front`. Zeros may follow what was written: memory
    /// that was never touched, behind memory that was. The other way round is wrong.
    fn after(self, front: Option<Self>) -> Self {
        match (front, self) {
            (None | Some(Self::Intact), found) => found,
            (Some(Self::Zero), Self::Zero) => Self::Zero,
            _ => Self::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::kinds::{KINDS, Op, Sizes};

    /// What lies behind the front of a hole is unknown, the front is not.
    #[test]
    fn a_wrong_front_of_unknown_memory_is_seen() {
        const PAGE: usize = 4096;
        let kind = KINDS.iter().find(|kind| kind.name == "hole").unwrap();
        let ground = Ground::make(kind, Sizes::read(PAGE), RemoteAddr(0)).unwrap();
        let mut own = Region::new(PAGE).unwrap();
        let span = ground.span(Op::Cross);
        let expected = Expected::of(kind.holds, &ground, span, &mut own).unwrap();
        let mut block = [0x55; 2 * PAGE];
        assert_eq!(
            expected.judge(span.start, &block, None),
            Some(Content::Wrong)
        );
        block[..PAGE].fill(0);
        assert_eq!(
            expected.judge(span.start, &block, None),
            Some(Content::Zero)
        );
        crate::fixture::content::fill(span.start, &mut block[..PAGE]);
        assert_eq!(expected.judge(span.start, &block, None), None);
    }

    /// The rest of a file's last page is zeros, and behind that page nothing is right.
    #[test]
    fn a_file_ends_in_the_middle_of_a_page() {
        const PAGE: usize = 4096;
        let kind = KINDS.iter().find(|kind| kind.name == "file-end").unwrap();
        let ground = Ground::make(kind, Sizes::read(PAGE), RemoteAddr(0)).unwrap();
        let mut own = Region::new(PAGE).unwrap();
        let span = ground.span(Op::Cross);
        let expected = Expected::of(kind.holds, &ground, span, &mut own).unwrap();
        let judge = |block: &[u8]| expected.judge(span.start, block, None);
        let mut block = [0; 2 * PAGE];
        crate::fixture::content::fill(span.start, &mut block);
        assert_eq!(judge(&block[..PAGE / 2]), Some(Content::Intact));
        assert_eq!(judge(&block[..PAGE]), Some(Content::Wrong));
        block[PAGE / 2..].fill(0);
        assert_eq!(judge(&block[..PAGE]), Some(Content::Intact));
        assert_eq!(judge(&block), Some(Content::Zero));
        block[PAGE - 1] = 1;
        assert_eq!(judge(&block[..PAGE]), Some(Content::Wrong));
        block[PAGE - 1] = 0;
        block[..PAGE / 2].fill(0);
        assert_eq!(judge(&block[..PAGE]), Some(Content::Zero));
    }

    #[test]
    fn zeros_may_follow_content_and_not_precede_it() {
        use Content::{Intact, Wrong, Zero};
        let fold = |parts: &[Content]| {
            parts
                .iter()
                .fold(None, |front, part| Some(part.after(front)))
        };
        assert_eq!(fold(&[Intact, Intact]), Some(Intact));
        assert_eq!(fold(&[Intact, Zero, Zero]), Some(Zero));
        assert_eq!(fold(&[Zero, Intact]), Some(Wrong));
        assert_eq!(fold(&[Intact, Wrong, Intact]), Some(Wrong));
    }
}
