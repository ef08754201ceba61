//! The same rows for the second time: counted twice they would look like more evidence. One
//! rule for all commands. A case that a stream itself repeats is refused where it is read.

use super::Source;
use super::notes::value;
use crate::failure::Failure;
use crate::stream::ENV;
use cowitness::emit::memmap_row::MemmapRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Record;
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::survey_row::SurveyRow;

/// Records without times or process numbers that differ: two machines, and two moments, may
/// well have the same rows, and nothing of them is counted.
const REPEATABLE: [&str; 5] = [
    ENV,
    ProbeRow::NAME,
    SurveyRow::NAME,
    MemmapRow::NAME,
    SizesRow::NAME,
];

/// Whether two streams are the same rows of the same moment, whatever their notes say.
fn are_same(one: &Source, two: &Source) -> bool {
    let noted = one.notes == two.notes;
    // The same environment to the last note, the load and the second it began among them:
    // another cut of the same run.
    let begun = value(&one.notes, "started_unix").is_some();
    let cut = noted && begun && (one.partial || two.partial);
    let alike = one.checksum == two.checksum;
    let is_certain = noted || !REPEATABLE.contains(&&*one.record);
    one.record == two.record && (alike && is_certain || cut)
}

/// Refuses a stream that is one of `earlier`.
///
/// # Errors
/// [`Failure::Twice`].
pub fn refuse<'s>(
    source: &Source,
    earlier: impl Iterator<Item = &'s Source>,
) -> Result<(), Failure> {
    let mut earlier = earlier;
    match earlier.find(|first| are_same(first, source)) {
        None => Ok(()),
        Some(first) => Err(Failure::Twice {
            place: source.place.clone(),
            first_place: first.place.clone(),
        }),
    }
}
