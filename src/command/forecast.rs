//! What reading a live process would change, by its page table: one rule for `survey`, which
//! says it, and `audit`, which compares it with what came.

use super::probe::prober;
use crate::emit::record::Status;
use crate::error::Error;
use crate::measure::census::Census;
use crate::measure::probe::Probed;
use crate::reader::Method;
use crate::reader::hybrid::Manners;
use crate::reader::vma::Vma;
use crate::sys::Clock;
use heapless::Vec;

/// What [`Splits::untried`] means.
pub(super) const UNTRIED: Error = Error::Invalid(
    "no reader could be tried on a child: raise ulimit -n, -u or -d, or there is no memory, or \
     a filter (seccomp) answers a reader's call with an error that the call never gives",
);

/// What is said where [`Forecast::hugetlb`] is not 0. mm/hugetlb.c, `hugetlb_wp`.
pub(super) const HUGETLB_WARNING: &str = "  beware: hugetlb pages are shared by fork: a reader that \
    splits them takes them from the other\n  process where none is free, and that one dies of \
    SIGBUS; proc and hybrid do not\n";

/// Pages of a VMA, or of several, by what reading them would do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Forecast {
    /// Anonymous, and mapped by others, too.
    shared: u64,
    /// Of which pagemap does not tell whether others have them: possibly part of a large folio,
    /// joined by KSM, or in swap.
    doubtful: u64,
    /// Absent or swapped out, and brought in by a reader that takes everything; at most.
    pub(super) faulted_at_most: u64,
    /// The absent ones of hugetlb memory of these, which come in only where a page of that size is
    /// free.
    absent_hugetlb: u64,
    /// The swapped-out ones of these.
    pub(super) swapped: u64,
    /// Of these, those of shared memory, which no process need map to bring them in.
    swapped_shared: u64,
    /// Of private hugetlb memory, and shared: where none is free, the owner's copy of such a page is
    /// taken from the others.
    pub(super) hugetlb: u64,
    /// Its owner may not read it; /proc/PID/mem may all the same.
    unreadable: bool,
}

impl Forecast {
    /// Of a page that may be shared or not.
    pub(super) const DOUBT: Self = Self {
        doubtful: 1,
        ..Self::NONE
    };

    const NONE: Self = Self {
        shared: 0,
        doubtful: 0,
        faulted_at_most: 0,
        absent_hugetlb: 0,
        swapped: 0,
        swapped_shared: 0,
        hugetlb: 0,
        unreadable: false,
    };

    /// Of a VMA; nobody reads what `audit` leaves out. `unsure`: bit 56 may err in it, see
    /// [`bit_56_may_err`](super::live::bit_56_may_err).
    pub(super) const fn of(vma: &Vma, census: &Census, unsure: bool) -> Self {
        let mut forecast = Self {
            unreadable: !vma.perms.readable,
            ..Self::NONE
        };
        if vma.unsafe_to_read.is_some() {
            return forecast;
        }
        forecast.shared = census.shared_anon;
        if vma.is_hugetlb && !vma.perms.shared {
            forecast.hugetlb = census.shared_anon;
        }
        if unsure || forecast.hugetlb > 0 {
            forecast.doubtful = census.anonymous();
        }
        // A fork shares what is in swap, too, and pagemap does not tell; what is shared comes in
        // as one page, which a pin then copies. Of shared memory there is nothing to copy.
        if !vma.perms.shared {
            forecast.doubtful += census.swapped;
        }
        if vma.perms.readable && !vma.is_secret {
            forecast.swapped = census.in_swap();
            forecast.swapped_shared = census.swapped_shared;
            // Two looks: what was in reach may have gone between them.
            let absent = census.absent.saturating_sub(census.out_of_reach);
            forecast.faulted_at_most = forecast.swapped + absent;
            if vma.is_hugetlb {
                forecast.absent_hugetlb = absent;
            }
        }
        forecast
    }

    /// Adds another VMA's.
    pub(super) const fn add(&mut self, other: &Self) {
        self.shared += other.shared;
        self.doubtful += other.doubtful;
        self.faulted_at_most += other.faulted_at_most;
        self.absent_hugetlb += other.absent_hugetlb;
        self.swapped += other.swapped;
        self.swapped_shared += other.swapped_shared;
        self.hugetlb += other.hugetlb;
    }

    /// Pages that a reader brings in which takes everything; `None` if that cannot be told.
    pub(super) const fn faulted(&self) -> Option<u64> {
        match self.absent_hugetlb {
            0 => Some(self.faulted_at_most),
            _ => None,
        }
    }

    /// Pages that a reader brings in. Shared memory in swap comes through its file, and who sees no
    /// frames (`hidden`) mostly may not open that: then it cannot be told.
    pub(super) const fn brought_in(
        &self,
        method: Method,
        manners: Manners,
        hidden: bool,
    ) -> Option<u64> {
        let by_file = hidden && self.swapped_shared > 0;
        match method {
            Method::Hybrid if !manners.swap_in => Some(0),
            Method::Hybrid if manners.no_files => Some(self.swapped - self.swapped_shared),
            Method::Hybrid | Method::MapFiles if by_file => None,
            Method::Hybrid => Some(self.swapped),
            Method::MapFiles => Some(self.swapped_shared),
            Method::Kcore => Some(0),
            _ => self.faulted(),
        }
    }
}

/// Whether readers split shared pages on this kernel, tried on a child of our own when one is first
/// asked about.
pub(super) struct Splits<'s> {
    clock: Clock,
    page_bytes: usize,
    methods: &'s [Method],
    known: Vec<(Method, Option<bool>), { Method::ALL.len() }>,
    /// Whether there was no child to try a reader on.
    pub(super) untried: bool,
}

impl<'s> Splits<'s> {
    /// Of these readers, each named once; nothing tried yet.
    pub(super) const fn untried(clock: Clock, page_bytes: usize, methods: &'s [Method]) -> Self {
        Self {
            clock,
            page_bytes,
            methods,
            known: Vec::new(),
            untried: false,
        }
    }

    /// How many pages `method` splits; `None` if that could not be tried, or if there are doubtful
    /// ones.
    pub(super) fn of(&mut self, method: Method, forecast: &Forecast) -> Option<u64> {
        let (shared, doubtful) = match forecast.unreadable && method != Method::Proc {
            true => (0, 0),
            false => (forecast.shared, forecast.doubtful),
        };
        if shared + doubtful == 0 {
            return Some(0);
        }
        match self.tried(method)? {
            true if doubtful > 0 => None,
            true => Some(shared),
            false => Some(0),
        }
    }

    /// Whether a child was made already: there is one at most.
    pub(super) fn is_tried(&self) -> bool {
        !self.known.is_empty() || self.untried
    }

    /// As [`tried`](Self::tried), but nothing is tried for it.
    pub(super) fn known(&self, method: Method) -> Option<bool> {
        let (_, splits) = self.known.iter().find(|(known, _)| *known == method)?;
        *splits
    }

    /// Whether `method` splits what is shared; `None` if that could not be tried. What reads files,
    /// or frames, has no part in the process's page table.
    pub(super) fn tried(&mut self, method: Method) -> Option<bool> {
        if matches!(method, Method::MapFiles | Method::Kcore) {
            return Some(false);
        }
        if !self.is_tried() {
            self.try_all();
        }
        self.known(method)
    }

    fn try_all(&mut self) {
        let known = &mut self.known;
        let mut answers = 0;
        let mut tell = |method, probed: &Probed| {
            // The others are answers: not in this kernel, not permitted.
            answers += usize::from(!matches!(probed.status, Status::Errno(_)));
            let changes = probed.changes.filter(|_| probed.status == Status::Ok);
            let split = changes.filter(|changes| changes.tracked == 1);
            // There is room for every method.
            let _ = known.push((method, split.map(|changes| changes.split == 1)));
        };
        let prober = prober(self.clock, self.page_bytes);
        let _ = prober.map(|mut prober| prober.trial(self.methods, &mut tell));
        self.untried = answers < self.methods.len();
    }
}

/// What is said of pages that pagemap alone vouches for: bit 56 counts mappings, and a pin asks who
/// refers to the page (mm/memory.c, `wp_can_reuse_anon_folio`).
pub(super) const VOUCHED_FOR: &str = "    by pagemap, which calls the rest the process's own: of \
    these, a page that a pipe, a socket or\n    a list of the kernel still holds would be split all \
    the same\n";

/// What reading a process would change, as far as its page table tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Whether vmread splits on this kernel, if that was tried.
    pub(super) vmread_splits: Option<bool>,
    /// Pages that hybrid would split.
    pub(super) hybrid_split: Option<u64>,
    /// Absent and swapped-out pages that all but hybrid would bring in.
    pub(super) brought_in: u64,
    /// Whether frame numbers, and so files behind mappings, are not to be had.
    pub(super) hidden: bool,
}

impl Outlook {
    /// The reader to take, and why. That pagemap calls all pages the process's own does not make
    /// vmread harmless.
    pub(super) const fn advice(&self) -> (Method, &'static str) {
        match (self.vmread_splits, self.hybrid_split) {
            (Some(false), _) if self.brought_in == 0 => (
                Method::Vmread,
                ", 1 MiB a call: on this kernel it splits nothing, nothing is absent, and it is \
                 fastest",
            ),
            (_, Some(0)) => (
                Method::Hybrid,
                match self.hidden {
                    false => {
                        ": it brings nothing in, leaves unread what is in swap, and where something \
                         else holds a page it\n  notices, and copies from then on"
                    }
                    true => {
                        ": it brings nothing in, leaves unread what is in swap and, without \
                         CAP_SYS_ADMIN, absent pages\n  of files, and where something else holds a \
                         page it notices, and copies from then on"
                    }
                },
            ),
            (Some(false), _) => (
                Method::Vmread,
                ", 1 MiB a call: on this kernel it splits nothing, but it brings in what is absent",
            ),
            _ => (
                Method::Proc,
                ": it splits nothing, but brings in what is absent or swapped out (what hybrid splits\n  \
                 is unknown here, or its call denied)",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::maps::MapsLine;

    /// A fork shares pages in swap, too; pages of shared memory are not copied.
    #[test]
    fn what_is_in_swap_may_be_shared() {
        let census = Census {
            exclusive: 5,
            swapped: 7,
            guard: 2,
            absent: 30,
            out_of_reach: 10,
            ..Census::default()
        };
        let of = |line: &[u8]| {
            let vma = Vma::of(&MapsLine::parse(line).unwrap());
            let forecast = Forecast::of(&vma, &census, false);
            (forecast.doubtful, forecast.faulted())
        };
        assert_eq!(of(b"1000-9000 rw-p 00000000 00:00 0 "), (7, Some(27)));
        let shared = b"1000-9000 rw-s 00000000 00:01 5 /dev/zero";
        assert_eq!(of(shared), (0, Some(27)));
        assert_eq!(of(b"1000-9000 ---p 00000000 00:00 0 "), (7, Some(0)));
        assert_eq!(of(b"1000-9000 r--p 00000000 00:00 0 [vvar]"), (0, Some(0)));
    }

    /// More may be absent behind the end of a file at the second look than was in all at the first.
    #[test]
    fn what_goes_between_two_looks_makes_no_forecast_below_nothing() {
        let census = Census {
            swapped: 3,
            absent: 1,
            out_of_reach: 9,
            ..Census::default()
        };
        let vma = Vma::of(&MapsLine::parse(b"1000-9000 rw-p 00000000 08:01 5 /file").unwrap());
        assert_eq!(Forecast::of(&vma, &census, false).faulted(), Some(3));
    }

    /// Memory may be mapped that no huge page is set aside for (MAP_NORESERVE).
    #[test]
    fn absent_hugetlb_pages_may_not_come_in() {
        let census = Census {
            absent: 512,
            ..Census::default()
        };
        let line = MapsLine::parse(b"200000-400000 rw-p 00000000 00:0f 5 /anon_hugepage");
        let vma = Vma {
            is_hugetlb: true,
            ..Vma::of(&line.unwrap())
        };
        let mut total = Forecast::default();
        let of_all = |forecast: &Forecast, method| {
            let brought_in = forecast.brought_in(method, Manners::default(), false);
            (forecast.faulted(), brought_in)
        };
        assert_eq!(of_all(&total, Method::Vmread), (Some(0), Some(0)));
        total.add(&Forecast::of(&vma, &census, false));
        assert_eq!(total.faulted_at_most, 512);
        assert_eq!(of_all(&total, Method::Vmread), (None, None));
        assert_eq!(of_all(&total, Method::Hybrid), (None, Some(0)));
    }

    #[test]
    fn advice_follows_what_would_change() {
        let advice = |vmread_splits, hybrid_split, brought_in| {
            let outlook = Outlook {
                vmread_splits,
                hybrid_split,
                brought_in,
                hidden: false,
            };
            outlook.advice().0
        };
        assert_eq!(advice(Some(false), Some(0), 0), Method::Vmread);
        // However few pages pagemap calls shared.
        assert_eq!(advice(Some(true), Some(0), 0), Method::Hybrid);
        assert_eq!(advice(None, Some(0), 0), Method::Hybrid);
        assert_eq!(advice(Some(false), Some(0), 7), Method::Hybrid);
        assert_eq!(advice(Some(false), None, 7), Method::Vmread);
        assert_eq!(advice(Some(true), None, 0), Method::Proc);
        assert_eq!(advice(None, None, 0), Method::Proc);
    }
}
