//! Whether the state was what the kind is, and whether the question was answered.

use super::look::{Pages, State, flagged};
use super::{Answer, Content, Probed, Question, Stop, skip};
use crate::emit::probe_row::reason::BLOCKED;
use crate::emit::record::Status;
use crate::fixture::kinds::{Before, Ground, Holds, Kind, Op, Place, reason};
use crate::measure::evidence::{Both, Evidence, Found};
use crate::reader::{End, Method};
use crate::sys::{Errno, errno};

/// Proves that the memory is of its kind.
pub(super) fn prove(
    kind: &Kind,
    ground: &Ground,
    pages: &mut Pages,
    state: &State,
    evidence: Evidence,
) -> Result<(), Stop> {
    let from = ground.front_pages();
    let is: fn(Both, Evidence) -> bool = match kind.before {
        Before::Unseen => return Ok(()),
        Before::Shared | Before::SharedHuge | Before::SharedFlagged(_) => {
            |page, evidence| page.judge(evidence) == Found::Shared
        }
        Before::Alone => {
            |page, evidence| page.child.present() && page.judge(evidence) != Found::Shared
        }
        Before::Absent => |page, _| !page.child.present() && !page.child.swapped(),
        Before::ZeroPage => |page, _| page.child.present(),
        Before::Swapped => |page, _| page.child.swapped() && !page.child.guard(),
        Before::Marked => |page, _| !page.child.present() && page.child.swapped(),
    };
    let all = pages.len() > from && (from..pages.len()).all(|page| is(pages.at(page), evidence));
    let kib = |pages: u64| pages * ground.page_bytes() as u64 / 1024;
    let also = match kind.before {
        Before::SharedHuge => state.target.anon_huge_kib >= kib((pages.len() - from) as u64),
        Before::SharedFlagged(bits) => all && flagged(pages, from, bits)?,
        // The zero page is no memory of the process.
        Before::ZeroPage => state.target.rss_kib == kib(from as u64),
        _ => true,
    };
    match (all && also, kind.optional) {
        (true, _) => Ok(()),
        (false, true) => Err(skip(reason::NOT_GIVEN)),
        (false, false) if kind.before == Before::Shared => Err(skip("not-all-pages-shared")),
        (false, false) => Err(skip("not-in-its-state")),
    }
}

/// Whether the question was answered: the pages stayed, and what came is what lies there.
pub(super) fn judge(question: &Question<'_>, page_bytes: u64, probed: &Probed) -> Status<'static> {
    if let Some(reason) = disturbed(probed) {
        return Status::Skipped(reason);
    }
    let (Some(method), Some(answer)) = (question.method, probed.answer) else {
        return Status::Ok;
    };
    let failed = failure(question, method, &answer, probed.requested);
    failed.unwrap_or_else(|| came(question, page_bytes, method, &answer, probed.requested))
}

/// Of a read that did not return. Where the kernel moved pages meanwhile, it is asked again, as any other.
pub(super) fn blocked(probed: &Probed) -> Status<'static> {
    Status::Skipped(disturbed(probed).unwrap_or(BLOCKED))
}

/// What somebody else did to the pages meanwhile.
fn disturbed(probed: &Probed) -> Option<&'static str> {
    let changes = probed.changes.unwrap_or_default();
    // A copy is clean, too, but lies in another frame.
    let seen = [probed.target, probed.partner].into_iter().flatten();
    let cleaned = seen.map(|delta| delta.dirty_kib()).any(|kib| kib < 0);
    match () {
        () if changes.vanished > 0 => Some("tracked-pages-vanished"),
        // A copy, or the kernel moved them: what it was cannot be told.
        () if changes.moved > 0 => Some(reason::PAGES_MOVED),
        () if cleaned && changes.all_split() == 0 => Some(reason::WRITTEN_BACK),
        () => None,
    }
}

/// What an errno, or the end, says but of the memory that was asked for.
fn failure(
    question: &Question<'_>,
    method: Method,
    answer: &Answer,
    requested: u64,
) -> Option<Status<'static>> {
    // These read what they can, and say of the rest that they do not.
    let picks = matches!(method, Method::Kcore | Method::MapFiles | Method::Hybrid);
    let readable = question.kind.readable && question.op != Op::Cross;
    match (answer.bytes, answer.end) {
        (_, End::Failed(errno)) if is_the_tools(errno) => Some(refusal(method, errno)),
        // The child is there: pagemap has no such address.
        (0, End::Failed(Errno::SRCH)) if method == Method::Kcore => {
            Some(Status::Skipped(reason::NOT_PRESENT))
        }
        (0, End::Failed(errno)) if method.refusal(errno).is_some() || errno == Errno::SRCH => {
            Some(refusal(method, errno))
        }
        (bytes, End::Failed(errno)) if readable && bytes < requested => {
            let left = picks && method.refusal(errno).is_some();
            (!left).then(|| Status::Errno(errno::name_or_unknown(errno)))
        }
        (bytes, End::Short) if readable => Some(Status::Short(bytes)),
        _ => None,
    }
}

/// Whether it is a want of the tool's own, whatever the memory: descriptors, memory, a lock on
/// what it reads from.
const fn is_the_tools(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS | Errno::AGAIN
    )
}

/// Whether what came is what lies there.
fn came(
    question: &Question<'_>,
    page_bytes: u64,
    method: Method,
    answer: &Answer,
    requested: u64,
) -> Status<'static> {
    let kind = question.kind;
    let in_front = question.op == Op::Cross && kind.place != Place::Last;
    let beyond_front = !in_front || answer.bytes > page_bytes;
    let want = match kind.holds {
        Holds::Unknown if beyond_front => None,
        Holds::Zeros if beyond_front => Some(Content::Zero),
        _ => Some(Content::Intact),
    };
    match answer.bytes {
        0 => Status::Ok,
        // It reads on behind what it leaves, and so has no errno to say.
        bytes if answer.content == want && method == Method::Hybrid => {
            match bytes < requested && !matches!(answer.end, End::Failed(_)) {
                true => Status::Skipped(reason::LEFT_UNREAD),
                false => Status::Ok,
            }
        }
        _ if answer.content == want => Status::Ok,
        // What is not in the kernel's direct map reads as zeros there.
        _ if method == Method::Kcore && answer.content == Some(Content::Zero) => {
            Status::Skipped(reason::FALSE_ZEROS)
        }
        _ => Status::Skipped("wrong-bytes"),
    }
}

/// What an errno of a reader says of the question: it is not to be had here, or it failed.
pub(super) fn refusal(method: Method, errno: Errno) -> Status<'static> {
    match method.refusal(errno) {
        Some(reason) => Status::Skipped(reason),
        None => Status::Errno(errno::name_or_unknown(errno)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::probe::Changes;
    use crate::proc::smaps::UsageDelta;

    /// The kernel has a second to move them in.
    #[test]
    fn what_was_moved_while_a_read_was_blocked_is_no_answer() {
        let after = |moved| {
            blocked(&Probed {
                changes: Some(Changes {
                    moved,
                    ..Changes::default()
                }),
                ..Probed::nothing(4096, Status::Ok)
            })
        };
        assert_eq!(after(0), Status::Skipped(BLOCKED));
        assert_eq!(after(1), Status::Skipped(reason::PAGES_MOVED));
    }

    /// A copy is clean where the original is dirty, and so is what was written back; only that
    /// stays in its frame.
    #[test]
    fn what_became_clean_in_its_place_was_written_back() {
        let cleaned = UsageDelta {
            shared_dirty_kib: -64,
            shared_clean_kib: 64,
            ..UsageDelta::default()
        };
        let probed = |split, target, partner| Probed {
            changes: Some(Changes {
                split,
                ..Changes::default()
            }),
            target: Some(target),
            partner: Some(partner),
            ..Probed::nothing(4096, Status::Ok)
        };
        let unchanged = UsageDelta::default();
        let written_back = Some(reason::WRITTEN_BACK);
        assert_eq!(disturbed(&probed(0, cleaned, cleaned)), written_back);
        assert_eq!(disturbed(&probed(0, unchanged, cleaned)), written_back);
        assert_eq!(disturbed(&probed(16, cleaned, unchanged)), None);
        assert_eq!(disturbed(&probed(0, unchanged, unchanged)), None);
        // Nobody else maps it any more.
        let alone = UsageDelta {
            shared_dirty_kib: -64,
            private_dirty_kib: 64,
            ..unchanged
        };
        assert_eq!(disturbed(&probed(0, alone, unchanged)), None);
    }
}
