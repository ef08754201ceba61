//! Rows that contradict themselves: no program wrote them, whatever their checksum says.

use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Status;
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::survey_row::SurveyRow;

/// The method of the rows of `probe` that read nothing.
const CONTROL: &str = "none";

/// A record whose columns bound each other.
pub trait Sound {
    /// What of the row cannot be, in words; `None`: nothing.
    fn contradiction(&self) -> Option<String>;
}

impl Sound for BenchRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let (tracked, split) = (self.tracked_pages, self.split_pages);
        let both = self.shared_after.zip(split);
        let sum = tracked.zip(both).and_then(|(tracked, (after, split))| {
            (after.checked_add(split) != Some(tracked)).then(|| {
                format!("{after} pages still shared and {split} split do not make {tracked}")
            })
        });
        let large = tracked.and_then(|tracked| {
            let bytes = tracked.checked_mul(self.page_bytes);
            let fits = bytes.is_some_and(|bytes| bytes <= self.arena_bytes);
            let arena = self.arena_bytes;
            (!fits).then(|| format!("{tracked} tracked pages in an arena of {arena} bytes"))
        });
        too_many(tracked, split).or(sum).or(large)
    }
}

impl Sound for ProbeRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let (asked, errno) = (self.requested_bytes, self.errno);
        let came = self.returned_bytes.unwrap_or(0);
        let returned = match (came, self.status) {
            (came, _) if came > asked => Some(format!("{came} bytes came, {asked} were asked for")),
            (came, _) if came > 0 && came == asked && !errno.is_empty() => {
                Some(format!("all {asked} bytes came, and {errno}"))
            }
            (0, Status::Ok) if errno.is_empty() && self.method != CONTROL => {
                Some("nothing came, and no errno".to_owned())
            }
            _ => None,
        };
        too_many(self.tracked_pages, self.split_pages).or(returned)
    }
}

/// It predicts: no column bounds another.
impl Sound for SurveyRow<'_> {
    fn contradiction(&self) -> Option<String> {
        None
    }
}

/// What is distinct is among all; the index is among the chunks' bytes.
impl Sound for SizesRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let bounds = [
            (
                "distinct objects",
                Some(self.distinct_objects),
                Some(self.objects),
            ),
            (
                "bytes of them",
                Some(self.distinct_bytes),
                Some(self.bytes_private),
            ),
            ("distinct chunks", self.distinct_chunks, self.chunks),
            ("bytes of index", self.index_bytes, self.bytes_chunks),
        ];
        bounds.into_iter().find_map(|(what, part, whole)| {
            let (part, whole) = part.zip(whole)?;
            (part > whole).then(|| format!("{part} {what} of {whole}"))
        })
    }
}

fn too_many(tracked: Option<u64>, split: Option<u64>) -> Option<String> {
    let (tracked, split) = tracked.zip(split)?;
    (split > tracked).then(|| format!("{split} pages split of {tracked} tracked"))
}
