//! The result of an audit in words: per reader, what was expected and what came, and which
//! one to take.

use super::pass::{Expected, Passed};
use super::row::Common;
use crate::emit::record::Status;
use crate::proc::smaps::UsageDelta;
use crate::reader::hybrid::decide::Why;
use crate::reader::{Care, Method};
use crate::stats::mib_s_centi;
use crate::sys::errno;
use crate::sys::stdio::stderr;
use crate::text::Text;

/// What is known of one reader at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finding {
    method: Method,
    predicted: Option<Expected>,
    cold: Option<Seen>,
    /// The fastest warm pass.
    warm_centi: Option<u64>,
    /// What the warm passes have split, if that is known.
    warm_split: Option<u64>,
}

/// Of the cold pass.
#[derive(Clone, Copy, Debug)]
struct Seen {
    tally: crate::measure::audit::Tally,
    usage: Option<UsageDelta>,
    whole: bool,
    went_on: bool,
    pfn: bool,
    split: Option<u64>,
    bounds: Option<(u64, u64)>,
    faulted_in: Option<u64>,
    swapped_in: Option<u64>,
    stood: bool,
    unexplained: Option<u64>,
    care: Option<Care>,
}

impl Finding {
    /// Nothing yet.
    pub(super) const fn of(method: Method) -> Self {
        Self {
            method,
            predicted: None,
            cold: None,
            warm_centi: None,
            warm_split: Some(0),
        }
    }

    /// Takes over a pass.
    pub(super) fn note(&mut self, predicted: Option<Expected>, passed: &Passed) {
        if passed.cold {
            self.predicted = predicted;
            self.cold = Some(Seen {
                tally: passed.tally,
                usage: passed.usage,
                whole: passed.went_on || passed.status() == Status::Ok,
                went_on: passed.went_on,
                pfn: passed.pfn,
                split: passed.split(),
                bounds: passed.split_bounds(),
                faulted_in: passed.faulted_in(),
                swapped_in: passed.swapped_in(),
                stood: passed.stood,
                unexplained: unexplained(passed),
                care: passed.care,
            });
            return;
        }
        if passed.status() == Status::Ok {
            let rate = mib_s_centi(passed.tally.bytes, passed.tally.ns);
            self.warm_centi = self.warm_centi.max(rate);
        }
        let sum = |one: Option<u64>, more| one.zip(more).map(|(one, more)| one + more);
        self.warm_split = sum(self.warm_split, passed.split());
        let Some(seen) = &mut self.cold else { return };
        seen.unexplained = sum(seen.unexplained, unexplained(passed));
        if let Some((care, more)) = seen.care.as_mut().zip(passed.care) {
            care.pin_faults = sum(care.pin_faults, more.pin_faults);
            care.not_pinned = more.not_pinned.or(care.not_pinned);
        }
    }

    /// The cold pass, if it began.
    fn seen(&self) -> Option<&Seen> {
        self.cold.as_ref().filter(|seen| seen.tally.readable > 0)
    }

    fn describe(&self, line: &mut Text, page_bytes: u64) {
        line.add("  ").add(self.method.name()).pad_to(15);
        let Some(seen) = self.seen() else {
            line.add("read nothing: see the status column\n");
            return;
        };
        self.describe_rate(seen, line);
        self.describe_split(seen, line, page_bytes);
        self.describe_faults(seen, line);
        describe_unread(seen, line);
    }

    fn describe_rate(&self, seen: &Seen, line: &mut Text) {
        let tally = &seen.tally;
        line.number(tally.bytes >> 20).add(" MiB");
        if let Some(rate) = mib_s_centi(tally.bytes, tally.ns) {
            line.add(", ").number(rate / 100).add(" MiB/s cold");
        }
        if let Some(rate) = self.warm_centi {
            line.add(", ").number(rate / 100).add(" MiB/s warm");
        }
        line.add(match seen.whole {
            true => "\n",
            false => ", and then no further\n",
        });
        if seen.went_on {
            line.pad_line()
                .add("it was set going meanwhile (SIGCONT): what it did itself is among this\n");
        }
    }

    /// What became of the process's figures, and what came in, against what was predicted.
    fn describe_faults(&self, seen: &Seen, line: &mut Text) {
        let (tally, fate) = (&seen.tally, &seen.tally.fate);
        line.pad_line();
        if let Some(usage) = &seen.usage {
            line.add("RSS ").change(usage.rss_kib).add(" KiB, PSS ");
            line.change(usage.pss_kib).add(" KiB, private ");
            line.change(usage.private_kib()).add(" KiB");
            if usage.anon_huge_kib != 0 {
                line.add(", huge pages ").change(usage.anon_huge_kib);
                line.add(" KiB");
            }
            line.add("\n").pad_line();
        }
        match seen.faulted_in {
            Some(pages) => line.number(pages),
            None => line.add("an unknown number of"),
        };
        line.add(" pages faulted in, ");
        match seen.swapped_in {
            Some(pages) => line.number(pages),
            None => line.add("an unknown number"),
        };
        line.add(" swapped in");
        if let Some(expected) = self.predicted {
            line.add("; predicted ");
            let came = seen.faulted_in.zip(seen.swapped_in);
            match (expected.brought_in, came) {
                (None, _) => line.add("an unknown number"),
                (Some(expected), Some((faulted, swapped))) => line
                    .number(expected)
                    .add(agreement(expected, faulted + swapped)),
                // What comes of shared memory has no place in the page table.
                (Some(expected), None) => line.number(expected).add(": NOT known to be so"),
            };
        }
        line.add("\n").pad_line();
        match seen.pfn {
            true => line.number(fate.raced).add(" raced"),
            false => line.add("raced unknown: frames are hidden"),
        };
        if let Some(faults) = tally.faults {
            line.add("; ").number(faults.minor + faults.major);
            line.add(" faults charged to the reader");
            if faults.major > 0 {
                line.add(", ").number(faults.major).add(" of them major");
            }
        }
        line.add("\n");
    }

    /// What was split, against what was predicted, and what makes that uncertain.
    fn describe_split(&self, seen: &Seen, line: &mut Text, page_bytes: u64) {
        let fate = &seen.tally.fate;
        line.pad_line().add("split ");
        match seen.split {
            Some(split) => {
                line.number(split).add(" of ").number(fate.tracked);
                line.add(" shared pages, ")
                    .number(split * (page_bytes / 1024));
                line.add(" KiB")
            }
            None => line.add("an unknown number of pages"),
        };
        match self.warm_split {
            Some(0) => {}
            Some(more) => drop(line.add(", and ").number(more).add(" more in warm passes")),
            None => drop(line.add(", and an unknown number in warm passes")),
        }
        let all = seen.split.zip(self.warm_split);
        match self.predicted.and_then(|expected| expected.split) {
            None => line.add("; not predicted: it cannot be told here"),
            Some(predicted) => {
                let agrees = |(split, more)| agreement(predicted, split + more);
                line.add("; predicted ").number(predicted);
                line.add(all.map_or(": NOT known to be so", agrees))
            }
        };
        line.add("\n");
        match seen.split {
            Some(_) => describe_known_split(seen, line),
            None => describe_unknown_split(seen, line),
        }
        if fate.taken > 0 {
            line.pad_line().number(fate.taken);
            line.add(match seen.pfn {
                true => {
                    " pages of hugetlb memory TAKEN from another process, which gets SIGBUS there\n"
                }
                false => {
                    " pages of hugetlb memory copied, or TAKEN from another process, which gets \
                     SIGBUS there: frames are hidden\n"
                }
            });
        }
    }
}

/// What there is beside a number that is known: pages that none had expected, faults without a copy.
fn describe_known_split(seen: &Seen, line: &mut Text) {
    let fate = &seen.tally.fate;
    if fate.split_exclusive > 0 {
        line.pad_line()
            .add(if fate.is_mixed { "at least " } else { "" })
            .number(fate.split_exclusive)
            .add(" of them pagemap had called the process's own\n");
    }
    let Some(faults) = seen.unexplained.filter(|&faults| faults > 0) else {
        return;
    };
    let huge = seen.usage.map_or(0, |usage| usage.anon_huge_kib);
    line.pad_line()
        .add("faults without a copy: ")
        .number(faults);
    line.add(match huge {
        ..0 => ", huge pages broken up, or pages unshared in place, perhaps\n",
        _ => ", pages unshared in place, perhaps\n",
    });
}

/// Within which bounds an unknown number lies, and why it is unknown.
fn describe_unknown_split(seen: &Seen, line: &mut Text) {
    if let Some((least, most)) = seen.bounds {
        line.pad_line().number(least).add(" to ").number(most);
        line.add(match (seen.stood, seen.pfn) {
            (false, _) => ": it ran meanwhile, or ended\n",
            (_, true) if seen.tally.bounds.others_were_there() => {
                ": others, or the kernel, replaced pages meanwhile\n"
            }
            (_, true) => ": the kernel moved, swapped or joined pages, or does not tell all\n",
            (_, false) => ": frames are hidden\n",
        });
    }
    if seen.tally.maybe_taken > 0 {
        line.pad_line().number(seen.tally.maybe_taken);
        line.add(" pages of hugetlb memory that other processes let go, or lost\n");
    }
}

/// Faults charged to the tool for which nothing was seen, where they are counted.
fn unexplained(passed: &Passed) -> Option<u64> {
    passed.tally.faults.map(|_| passed.tally.unexplained)
}

/// Whether the reader pinned the process's own pages, and what that was charged.
fn describe_pins(care: &Care, line: &mut Text) {
    line.pad_line();
    match (care.not_pinned, care.wholes_copied) {
        (Some(obstacle), _) => line.add("copied, not pinned: ").add(obstacle.name()),
        (None, false) => line.add("pinned what is the process's own"),
        (None, true) => {
            line.add("pinned what is the process's own, copied what may be in huge pages")
        }
    };
    match care.pin_faults {
        Some(faults) => line.add("; ").number(faults).add(" faults in pins\n"),
        None => line.add("; faults in pins unknown\n"),
    };
}

/// What did not come, and why.
fn describe_unread(seen: &Seen, line: &mut Text) {
    let tally = &seen.tally;
    if let Some(errno) = tally.errno {
        line.pad_line().add("not read: ").number(tally.unread);
        line.add(" bytes in ")
            .number(tally.unread_runs)
            .add(" places, first ");
        line.add(errno::name_or_unknown(errno)).add("\n");
    }
    let Some(care) = &seen.care else { return };
    describe_pins(care, line);
    if care.unread() > 0 {
        line.pad_line().add("left unread, pages:");
        for why in Why::ALL {
            let pages = care.left[why as usize];
            if pages > 0 {
                line.add(" ").add(why.name()).add(" ").number(pages);
            }
        }
        line.add("\n");
    }
}

impl Text {
    /// Begins a line below the reader's name.
    fn pad_line(&mut self) -> &mut Self {
        self.add("                 ")
    }

    /// A difference with its sign.
    fn change(&mut self, value: i64) -> &mut Self {
        if value >= 0 {
            self.add("+");
        }
        self.signed(value)
    }
}

/// The bound is 1 %.
fn agreement(predicted: u64, split: u64) -> &'static str {
    match predicted.abs_diff(split) {
        0 => ": as predicted",
        off if off * 100 <= predicted.max(split) => ": within 1 %",
        _ => ": NOT as predicted",
    }
}

/// Writes it; a courtesy of standard error.
pub(super) fn say(findings: &[Finding], common: &Common<'_>, stopped: bool) {
    let mut line = Text::new();
    line.add("cowitness audit: process ")
        .signed(common.pid.into());
    line.add(if stopped { ", stopped" } else { ", running" });
    let seen = findings.iter().find_map(Finding::seen);
    if let Some(Seen { tally, .. }) = seen {
        line.add(", ").number(tally.vmas).add(" readable VMAs, ");
        line.number(tally.readable >> 20).add(" MiB");
        if tally.left_out > 0 {
            line.add("; ").number(tally.left_out >> 10);
            line.add(" KiB of devices, userfaultfd or mere reserves left out");
        }
    }
    write(line.add("\n"));
    for finding in findings {
        let mut text = Text::new();
        finding.describe(&mut text, common.page_bytes);
        write(&text);
    }
    let ran = |finding: &Finding| finding.seen().is_some_and(|seen| !seen.stood);
    if !stopped && findings.iter().any(ran) {
        write(Text::new().add(
            "  The process ran meanwhile: what it did itself is among this; --stop keeps it out.\n",
        ));
    }
}

fn write(text: &Text) {
    let _ = stderr().write_all(text.read().unwrap_or("…\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::charge::Bounds;
    use crate::proc::vmstat::Moves;
    use crate::sys::process::Faults;

    fn passed(cold: bool, split: u64, copies_hide: bool) -> Passed {
        let mut tally = crate::measure::audit::Tally {
            readable: 1,
            bytes: 1,
            ..Default::default()
        };
        tally.fate.split = split;
        Passed {
            method: Method::Hybrid,
            cold,
            pfn: true,
            copies_hide,
            bounds: (split, split),
            swap_unseen: false,
            tally,
            ended: Ok(()),
            usage: None,
            faults: None,
            vma_change: None,
            vm_size_kib: None,
            went_on: false,
            stood: true,
            moves: Some(Moves::default()),
            charges: true,
            care: Some(Care {
                pin_faults: Some(split),
                ..Care::default()
            }),
        }
    }

    #[test]
    fn what_a_warm_pass_splits_is_among_it() {
        let says = |warm: &Passed, words: &str| {
            let mut finding = Finding::of(Method::Hybrid);
            let predicted = Some(Expected {
                split: Some(0),
                brought_in: Some(0),
            });
            finding.note(predicted, &passed(true, 0, false));
            finding.note(predicted, warm);
            let mut text = Text::new();
            finding.describe(&mut text, 4096);
            let text = text.read().unwrap();
            assert!(text.contains(words), "{text}");
        };
        says(&passed(false, 0, false), "0 KiB; predicted 0: as predicted");
        let warm = passed(false, 5, false);
        says(&warm, "and 5 more in warm passes; predicted 0: NOT as");
        says(&warm, "; 5 faults in pins");
        let unknown = passed(false, 5, true);
        says(&unknown, "unknown number in warm passes; predicted 0: NOT");
    }

    /// Pages split, by what else may have replaced some of them.
    #[test]
    fn what_somebody_else_may_have_done_is_unknown() {
        let quiet = Bounds {
            least: 150,
            least_if_quiet: 200,
            most: 200,
            ..Bounds::default()
        };
        let told = |stood: bool, pins: Option<u64>, bounds: Bounds| {
            let mut passed = passed(true, 200, false);
            passed.tally.fate.tracked = 200;
            passed.tally.faults = Some(Faults {
                minor: 250,
                major: 50,
            });
            passed.tally.bounds = bounds;
            passed.faults = Some((0, 0));
            passed.stood = stood;
            passed.care = pins.map(|faults| Care {
                pin_faults: Some(faults),
                ..Care::default()
            });
            passed.bound();
            (passed.bounds, passed.split(), passed.tally.fate.raced)
        };
        assert_eq!(told(true, None, quiet), ((200, 200), Some(200), 0));
        // Each fault may have split a page that is gone.
        assert_eq!(told(false, None, quiet), ((0, 300), None, 0));
        // Pages went meanwhile, or others were there.
        let lost = Bounds { lost: 1, ..quiet };
        assert_eq!(told(true, None, lost), ((150, 200), None, 0));
        let others = Bounds {
            others: true,
            ..quiet
        };
        assert_eq!(told(true, None, others), ((150, 200), None, 0));
        // Within a hundredth.
        let close = Bounds {
            least: 198,
            others: true,
            ..quiet
        };
        assert_eq!(told(true, None, close), ((198, 200), Some(200), 0));
        // hybrid splits by pins alone, but not with each fault there.
        assert_eq!(told(false, Some(0), quiet), ((0, 0), Some(0), 200));
        assert_eq!(told(true, Some(2), quiet), ((2, 2), Some(2), 198));
        assert_eq!(told(false, Some(2), quiet), ((0, 2), None, 198));
    }

    /// Of those that look like copies; of what came out of swap and went there meanwhile, and what KSM joined and
    /// gave back.
    #[test]
    fn what_the_kernel_may_have_moved_is_not_certain_to_be_split() {
        let told = |moves: Option<[u64; 4]>, [unproven, cached, joined, mergeable]: [u64; 4]| {
            let mut passed = passed(true, 200, false);
            passed.tally.faults = Some(Faults {
                minor: 230,
                major: 0,
            });
            passed.tally.bounds = Bounds {
                least: 150,
                least_if_quiet: 200,
                most: 200,
                unproven,
                cached,
                joined,
                mergeable,
                ..Bounds::default()
            };
            passed.faults = Some((0, 0));
            passed.care = None;
            passed.moves = moves.map(|[migrated, swapped_out, swapped_in, taken_apart]| Moves {
                migrated,
                swapped_out,
                swapped_in,
                taken_apart,
            });
            passed.bound();
            (passed.bounds, passed.split())
        };
        let exact = ((200, 200), Some(200));
        assert_eq!(told(Some([0; 4]), [200, 200, 0, 8192]), exact);
        assert_eq!(told(Some([1000, 0, 1000, 1000]), [0; 4]), exact);
        // The reader's own: what it has read from swap, and taken apart.
        assert_eq!(told(Some([0, 0, 999, 120]), [200, 0, 120, 8192]), exact);
        let near = ((198, 200), Some(200));
        assert_eq!(told(Some([2, 0, 0, 0]), [200, 0, 0, 0]), near);
        for (moves, pages, bounds) in [
            ([30, 0, 0, 0], [200, 0, 0, 0], (170, 200)),
            ([30, 0, 0, 0], [20, 0, 0, 0], (180, 200)),
            ([30, 999, 7, 0], [20, 0, 0, 0], (173, 200)),
            ([0, 30, 999, 0], [0, 0, 0, 0], (170, 200)),
            ([0, 30, 999, 0], [0, 20, 0, 0], (150, 200)),
            ([0, 999, 999, 0], [0, 0, 0, 0], (0, 200)),
            ([0, 0, 0, 20], [0, 0, 0, 8192], (180, 220)),
            ([0, 0, 0, 20], [0, 0, 15, 8192], (195, 205)),
            ([0, 0, 0, 20], [0, 0, 0, 7], (193, 207)),
            // No more than there were faults.
            ([0, 0, 0, 50], [0, 0, 0, 8192], (150, 230)),
            ([10, 20, 20, 30], [200, 0, 0, 8192], (140, 230)),
        ] {
            let found = told(Some(moves), pages);
            assert_eq!(found, (bounds, None), "{moves:?} {pages:?}");
        }
        // Of hugetlb memory a fault copies many pages.
        let mut hugetlb = passed(true, 512, false);
        hugetlb.tally.faults = Some(Faults { minor: 3, major: 0 });
        hugetlb.tally.hugetlb = true;
        hugetlb.tally.bounds = Bounds {
            least_if_quiet: 512,
            most: 512,
            mergeable: 8192,
            ..Bounds::default()
        };
        (hugetlb.faults, hugetlb.care) = (Some((0, 0)), None);
        hugetlb.bound();
        assert_eq!(hugetlb.bounds, (512, 512));
        hugetlb.moves = Some(Moves {
            taken_apart: 2,
            ..Moves::default()
        });
        hugetlb.bound();
        assert_eq!(hugetlb.bounds, (510, 514));
        // Nobody counts it.
        assert_eq!(told(None, [0; 4]), ((0, 200), None));
        assert_eq!(told(None, [0, 0, 0, 8192]), ((0, 230), None));
    }

    /// Before Linux 5.9 no fault is charged, and none bounds anything.
    #[test]
    fn where_nobody_is_charged_a_process_that_ran_has_no_bounds() {
        let told = |stood| {
            let mut passed = passed(true, 200, false);
            passed.tally.fate.faulted_in = 7;
            passed.tally.faults = Some(Faults::default());
            passed.tally.bounds = Bounds {
                least_if_quiet: 200,
                most: 200,
                least_came_if_quiet: 7,
                ..Bounds::default()
            };
            passed.faults = Some((0, 0));
            passed.care = Some(Care {
                pin_faults: Some(0),
                ..Care::default()
            });
            (passed.charges, passed.stood) = (false, stood);
            passed.bound();
            (passed.split_bounds(), passed.split(), passed.faulted_in())
        };
        assert_eq!(told(true), (Some((200, 200)), Some(200), Some(7)));
        assert_eq!(told(false), (None, None, None));
    }

    #[test]
    fn a_fault_of_hugetlb_memory_adds_many_pages() {
        let mut passed = passed(true, 0, false);
        passed.care = None;
        passed.tally.faults = Some(Faults { minor: 9, major: 0 });
        passed.tally.bounds.most = 512;
        (passed.tally.hugetlb, passed.stood) = (true, false);
        passed.bound();
        assert_eq!(passed.bounds, (0, 521));
    }

    /// What came in, by whether the process ran, and the reader had faults.
    #[test]
    fn what_a_running_process_brought_in_is_not_the_readers() {
        let came = |stood, minor| {
            let mut passed = passed(true, 0, false);
            passed.tally.fate.faulted_in = 7;
            passed.tally.bounds.least_came_if_quiet = 7;
            passed.tally.faults = Some(Faults { minor, major: 0 });
            passed.stood = stood;
            passed.faulted_in()
        };
        assert_eq!(came(true, 9), Some(7));
        assert_eq!(came(false, 9), None);
        assert_eq!(came(false, 0), Some(7));
    }

    /// Nor that of others, whose pages and the reader's cannot be told apart.
    #[test]
    fn what_came_in_while_others_did_too_is_known_within_a_hundredth_or_not() {
        let came = |least_came, others| {
            let mut passed = passed(true, 0, false);
            (passed.tally.fate.faulted_in, passed.tally.fate.swapped_in) = (190, 10);
            passed.tally.bounds = Bounds {
                least_came,
                least_came_if_quiet: if others { 200 } else { least_came },
                others,
                ..Bounds::default()
            };
            passed.stood = true;
            (passed.faulted_in(), passed.swapped_in())
        };
        for others in [false, true] {
            assert_eq!(came(200, others), (Some(190), Some(10)));
            assert_eq!(came(198, others), (Some(190), Some(10)));
            assert_eq!(came(197, others), (None, None));
        }
    }

    #[test]
    fn one_percent_is_the_bound() {
        assert_eq!(agreement(200, 200), ": as predicted");
        assert_eq!(agreement(200, 198), ": within 1 %");
        assert_eq!(agreement(200, 197), ": NOT as predicted");
        assert_eq!(agreement(0, 1), ": NOT as predicted");
    }
}
