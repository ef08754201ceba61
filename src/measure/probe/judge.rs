//! Whether the state was what the kind is, and whether the question was answered.

use super::look::{Pages, State, flagged};
use super::{Content, NOT_HERE, NOT_PERMITTED, Probed, Question, Stop, skip};
use crate::emit::record::Status;
use crate::fixture::kinds::{Before, Ground, Holds, Kind, Op, Place, reason};
use crate::measure::evidence::{Both, Evidence, Found};
use crate::reader::End;
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
    let kib = |pages: u64| pages * ground.seen_page_bytes() / 1024;
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
    let Some(answer) = probed.answer else {
        return Status::Ok;
    };
    let readable = kind.readable && question.op != Op::Cross;
    match (answer.bytes, answer.end) {
        (0, End::Failed(errno)) if is_refusal(errno) => return refusal(errno),
        (bytes, End::Failed(errno)) if readable && bytes < probed.requested => {
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
        _ if answer.content == want => Status::Ok,
        _ => Status::Skipped("wrong-bytes"),
    }
}

/// Whether a reader is not to be had here at all, whatever is read.
fn is_refusal(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::NOSYS | Errno::PERM | Errno::ACCESS | Errno::SRCH
    )
}

pub(super) fn refusal(errno: Errno) -> Status<'static> {
    match errno {
        Errno::NOSYS => Status::Skipped(NOT_HERE),
        Errno::PERM | Errno::ACCESS => Status::Skipped(NOT_PERMITTED),
        _ => Status::Errno(errno::name_or_unknown(errno)),
    }
}
