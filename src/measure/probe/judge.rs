//! Whether the state was what the kind is, and whether the question was answered.

use super::look::{Pages, State, flagged};
use super::{Content, Probed, Question, Stop, skip};
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
    let kind = question.kind;
    let changes = probed.changes.unwrap_or_default();
    if changes.vanished > 0 {
        return Status::Skipped("tracked-pages-vanished");
    }
    // A copy, or the kernel moved them: what it was cannot be told.
    if changes.moved > 0 {
        return Status::Skipped(reason::PAGES_MOVED);
    }
    let (Some(method), Some(answer)) = (question.method, probed.answer) else {
        return Status::Ok;
    };
    // These read what they can, and say of the rest that they do not.
    let picks = matches!(method, Method::Kcore | Method::MapFiles | Method::Hybrid);
    let readable = kind.readable && question.op != Op::Cross;
    match (answer.bytes, answer.end) {
        // The child is there: pagemap has no such address.
        (0, End::Failed(Errno::SRCH)) if method == Method::Kcore => {
            return Status::Skipped(reason::NOT_PRESENT);
        }
        (0, End::Failed(errno)) if method.refusal(errno).is_some() || errno == Errno::SRCH => {
            return refusal(method, errno);
        }
        (bytes, End::Failed(errno))
            if readable
                && bytes < probed.requested
                && !(picks && method.refusal(errno).is_some()) =>
        {
            return Status::Errno(errno::name_or_unknown(errno));
        }
        (bytes, End::Short) if readable => return Status::Short(bytes),
        _ => {}
    }
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
            match bytes < probed.requested && !matches!(answer.end, End::Failed(_)) {
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
