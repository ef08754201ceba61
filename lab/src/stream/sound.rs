//! Rows that contradict themselves: no program wrote them, whatever their checksum says.

use crate::text::shown;
use cowitness::emit::audit_row::AuditRow;
use cowitness::emit::bench_row::BenchRow;
use cowitness::emit::fixed::{Centi, Milli};
use cowitness::emit::memmap_row::{MODES, MemmapRow};
use cowitness::emit::probe_row::ProbeRow;
use cowitness::emit::record::Status;
use cowitness::emit::sharing_row::{SharingFitRow, SharingRow};
use cowitness::emit::sizes_row::SizesRow;
use cowitness::emit::startup_row::{StartupAbRow, StartupFitRow, StartupRow};
use cowitness::emit::survey_row::SurveyRow;
use cowitness::stats::mib_s_centi;

/// The method of the rows of `probe` that read nothing.
const CONTROL: &str = "none";

/// How sharing can have been decided.
const EVIDENCE: [&str; 3] = ["pfn", "exclusive", "none"];

/// What an arena of `bench` can be backed by.
const PAGES: [&str; 2] = ["small", "thp"];

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
        let more = too_many(tracked, split).or(sum).or(large);
        foreign("evidence", self.evidence, &EVIDENCE)
            .or_else(|| foreign("backing", self.pages, &PAGES))
            .or(more)
            .or_else(|| self.pages_contradict())
            .or_else(|| self.times_contradict())
    }
}

/// What of a row of `bench` cannot be beside its split pages.
trait Bench {
    fn pages_contradict(&self) -> Option<String>;
    fn times_contradict(&self) -> Option<String>;
    fn passes_contradict(&self) -> Option<String>;
}

impl Bench for BenchRow<'_> {
    fn pages_contradict(&self) -> Option<String> {
        let (came, arena) = (self.bytes_per_pass, self.arena_bytes);
        // A pass that was cut short says so in its status.
        let whole = came.filter(|came| self.status == Status::Ok && *came != arena);
        // Tracked pages are those that were shared, by definition.
        let tracked = self.tracked_pages.zip(self.shared_before);
        let tracked = tracked.filter(|(tracked, before)| tracked != before);
        let whole = whole.map(|came| format!("ok with {came} bytes of an arena of {arena}"));
        whole.or_else(|| {
            tracked.map(|(tracked, before)| format!("{tracked} pages tracked, {before} shared"))
        })
    }

    fn times_contradict(&self) -> Option<String> {
        let cold = self.bytes_per_pass.zip(self.cold_ns);
        let passes = |bytes: u64| bytes.checked_mul(self.warm_passes);
        let warm = self.bytes_per_pass.and_then(passes).zip(self.warm_ns);
        let (least, most) = (self.warm_min_ns, self.warm_max_ns);
        another_rate("cold", cold, self.cold_mib_s)
            .or_else(|| another_rate("warm", warm, self.warm_mib_s))
            .or_else(|| exceeds(least, "ns for the fastest pass", most, "for the slowest"))
            .or_else(|| exceeds(most, "ns for the slowest pass", self.warm_ns, "for all"))
            .or_else(|| self.passes_contradict())
    }

    /// All passes together take as many times the fastest, at least, and the slowest, at most.
    fn passes_contradict(&self) -> Option<String> {
        let all = self.warm_ns?;
        let passes = self.warm_passes;
        let times = |ns: Option<u64>| ns.map(|ns| ns.saturating_mul(passes));
        if passes == 0 {
            return Some(format!("{all} ns for no warm pass"));
        }
        exceeds(
            times(self.warm_min_ns),
            "ns if all were the fastest",
            Some(all),
            "ns for all passes",
        )
        .or_else(|| {
            exceeds(
                Some(all),
                "ns for all passes",
                times(self.warm_max_ns),
                "ns if all were the slowest",
            )
        })
    }
}

/// A word that the column never has.
fn foreign(column: &str, found: &str, known: &[&str]) -> Option<String> {
    let found_in = known.contains(&found);
    (!found_in).then(|| format!("unknown {column} '{}'", shown(found.as_bytes())))
}

/// A rate that is not that of its bytes and ns.
fn another_rate(pass: &str, moved: Option<(u64, u64)>, rate: Option<Centi>) -> Option<String> {
    let ((bytes, ns), rate) = moved.zip(rate)?;
    let centi = mib_s_centi(bytes, ns)?;
    (rate.0 != centi).then(|| {
        let [said, found] =
            [rate.0, centi].map(|centi| format!("{}.{:02}", centi / 100, centi % 100));
        format!("{bytes} bytes in {ns} ns ({pass}) are {found} MiB/s, not {said}")
    })
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
        foreign("evidence", self.evidence, &EVIDENCE)
            .or_else(|| too_many(self.tracked_pages, self.split_pages))
            .or(returned)
    }
}

impl Sound for SurveyRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let present = self.present_pages;
        let among = [
            ("exclusive", self.exclusive_pages),
            ("shared anonymous", self.shared_anon_pages),
            ("file", self.file_pages),
            ("to be split by proc", self.proc_split_pages),
            ("to be split by vmread", self.vmread_split_pages),
            ("to be split by hybrid", self.hybrid_split_pages),
        ];
        let mut among = among.into_iter();
        among.find_map(|(what, pages)| exceeds(pages, what, present, "pages present"))
    }
}

impl Sound for AuditRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let fate = self.split_pages.zip(self.shared_after);
        let accounted = fate.map(|(split, after)| split.saturating_add(after));
        let came = self.bytes_per_pass.zip(self.unread_bytes);
        let bytes = came.map(|(came, missing)| came.saturating_add(missing));
        let both = self.cold_ns.is_some() && self.warm_ns.is_some();
        let incomplete = bytes.zip(self.readable_bytes).filter(|(bytes, readable)| {
            // A pass that was cut short has not tried all.
            self.status == Status::Ok && bytes != readable
        });
        exceeds(
            accounted,
            "pages split or still shared",
            self.tracked_pages,
            "tracked",
        )
        .or_else(|| {
            exceeds(
                bytes,
                "bytes read or not to be read",
                self.readable_bytes,
                "readable",
            )
        })
        .or_else(|| {
            let least = self.split_at_least_pages;
            exceeds(least, "pages split at least", self.split_pages, "split")
        })
        .or_else(|| {
            let most = self.split_at_most_pages;
            exceeds(self.split_pages, "pages split", most, "split at most")
        })
        .or_else(|| both.then(|| "a pass that is both cold and warm".to_owned()))
        .or_else(|| {
            (self.repeat == 1 && self.warm_ns.is_some())
                .then(|| "a first pass that is warm".to_owned())
        })
        .or_else(|| {
            incomplete.map(|(bytes, readable)| {
                format!("{bytes} bytes read or not to be read make no {readable}")
            })
        })
    }
}

impl Sound for MemmapRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let Self {
            bytes,
            pages,
            page_bytes,
            ..
        } = *self;
        if page_bytes == 0 {
            return Some("pages of 0 bytes".to_owned());
        }
        let wanted = bytes.div_ceil(page_bytes);
        if pages != wanted {
            return Some(format!("{bytes} bytes are {wanted} pages, not {pages}"));
        }
        if !MODES.contains(&self.mode) {
            return Some(format!("unknown mode '{}'", shown(self.mode.as_bytes())));
        }
        if self.status == Status::Ok && self.vmas.is_none_or(|vmas| vmas == 0) {
            return Some("it was touched, and is in no VMA".to_owned());
        }
        exceeds(
            self.anon_huge_kib,
            "KiB in huge pages",
            self.target_rss_kib,
            "KiB of RSS",
        )
        .or_else(|| self.miscounted())
    }
}

/// Faults that the program itself may take meanwhile: the page of a heap's header, those at
/// the ends of a stack's frame, and each page of its code and stack once if the kernel unmaps
/// them to see who uses them (NUMA balancing).
const OWN_FAULTS: u64 = 128;

/// What no touching charges.
trait Miscounted {
    fn miscounted(&self) -> Option<String>;
}

impl Miscounted for MemmapRow<'_> {
    fn miscounted(&self) -> Option<String> {
        let pages = self.pages;
        let first = self.minor_faults.zip(self.major_faults);
        let again = self.again_minor_faults.zip(self.again_major_faults);
        let sum = |(minor, major): (u64, u64)| minor.saturating_add(major);
        if self.status == Status::Ok && first.is_none_or(|both| sum(both) == 0) {
            return Some("it was touched, and no fault was counted".to_owned());
        }
        let mut both = [first, again].into_iter().flatten().map(sum);
        let many = both.find(|faults| *faults > pages.saturating_add(OWN_FAULTS));
        many.map(|faults| format!("{faults} faults of {pages} pages"))
    }
}

impl Sound for SharingRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let Self { idx, n, rep, .. } = *self;
        if rep == 0 || !(1..=n).contains(&idx) {
            return Some(format!("process {idx} of {n} in repetition {rep}"));
        }
        let private = self.Private_Clean.zip(self.Private_Dirty);
        let private = private.map(|(clean, dirty)| clean.saturating_add(dirty));
        let pss = exceeds(self.Pss, "KiB of PSS", self.Rss, "of RSS");
        pss.or_else(|| exceeds(private, "private KiB", self.Rss, "of RSS"))
    }
}

impl Sound for SharingFitRow<'_> {
    fn contradiction(&self) -> Option<String> {
        no_share(self.r2)
    }
}

impl Sound for StartupRow<'_> {
    fn contradiction(&self) -> Option<String> {
        if self.round == 0 || self.position == 0 {
            return Some(format!("place {} of round {}", self.position, self.round));
        }
        exceeds(self.exec_ns, "ns until exec", self.total_ns, "in all")
    }
}

impl Sound for StartupAbRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let within = |low: Option<i64>, at: Option<i64>, high: Option<i64>| {
            let (low, at, high) = (low?, at?, high?);
            (!(low..=high).contains(&at))
                .then(|| format!("a median of {at} ns outside of its interval, {low} to {high}"))
        };
        within(self.low_ns, self.difference_ns, self.high_ns)
            .or_else(|| within(self.null_low_ns, self.null_difference_ns, self.null_high_ns))
    }
}

impl Sound for StartupFitRow<'_> {
    fn contradiction(&self) -> Option<String> {
        no_share(self.r2)
    }
}

impl Sound for SizesRow<'_> {
    fn contradiction(&self) -> Option<String> {
        let parts = [
            (
                "distinct objects",
                self.distinct_objects,
                self.objects,
                "objects",
            ),
            (
                "distinct bytes",
                self.distinct_bytes,
                self.bytes_private,
                "bytes",
            ),
            (
                "distinct chunks",
                self.distinct_chunks,
                self.chunks,
                "chunks",
            ),
            (
                "bytes of index",
                self.index_bytes,
                self.bytes_chunks,
                "bytes of chunks",
            ),
        ];
        let mut parts = parts.into_iter();
        parts.find_map(|(what, part, whole, of)| exceeds(part, what, whole, of))
    }
}

/// A share of the variance that is less than none or more than all.
fn no_share(r2: Option<Milli>) -> Option<String> {
    let out = r2.filter(|r2| !(0..=1000).contains(&r2.0));
    out.map(|r2| format!("a share of {}/1000 of the variance", r2.0))
}

/// `12 distinct chunks of 7 chunks`, if a part is larger than its whole.
fn exceeds(part: Option<u64>, what: &str, whole: Option<u64>, of: &str) -> Option<String> {
    let (part, whole) = part.zip(whole)?;
    (part > whole).then(|| format!("{part} {what} of {whole} {of}"))
}

fn too_many(tracked: Option<u64>, split: Option<u64>) -> Option<String> {
    let (tracked, split) = tracked.zip(split)?;
    (split > tracked).then(|| format!("{split} pages split of {tracked} tracked"))
}
