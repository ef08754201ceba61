//! What is certain about the further kinds of `probe` by the readers that take any memory: by
//! kernel where it depends on that.
//!
//! Sources: mm/gup.c (what is refused: VM_IO, VM_PFNMAP, memfd_secret; unsharing since 5.19),
//! mm/madvise.c (guard regions, 6.13), fs/userfaultfd.c (a fault that may not be retried is
//! not waited for), fs/read_write.c (positions from 2^63 on), mm/mmap.c and mm/gup.c (stacks
//! that grow: see [`GROWS_NOT`]).

use super::{Compared, Expected};
use crate::kernels::table::Expect;
use crate::matrix::findings::Findings;
use crate::matrix::version::Version;
use crate::readers::{Class, READERS, Reader};

/// What a kind's first page gives.
struct Certain {
    kind: &'static str,
    says: Says,
    /// Whether every machine has the kind.
    everywhere: bool,
    /// Whether fork shares it: a pin splits it where pins split.
    shared: bool,
}

/// What readers get.
enum Says {
    /// Everybody the same.
    All(&'static str),
    /// `EIO`, and `EFAULT` from process_vm_readv.
    Refused,
    /// As PROT_NONE.
    Protected,
    /// By /proc/PID/mem, process_vm_readv, ptrace.
    Each([&'static str; 3]),
    /// Zeros, of a stack that the read has grown; nothing from process_vm_readv on kernels where
    /// a pin grows no stack.
    Grown,
}

use Says::{All, Each, Grown, Protected, Refused};

const fn kind(kind: &'static str, says: Says) -> Certain {
    Certain {
        kind,
        says,
        everywhere: true,
        shared: false,
    }
}

const fn shared(name: &'static str) -> Certain {
    Certain {
        shared: true,
        ..kind(name, All("read"))
    }
}

const fn some(certain: Certain) -> Certain {
    Certain {
        everywhere: false,
        ..certain
    }
}

static CERTAIN: [Certain; 32] = [
    kind("anon-own", All("read")),
    kind("anon-parent-gone", All("read")),
    kind("anon-untouched", All("zeros")),
    kind("anon-zero-page", All("zeros")),
    kind("write-only", Protected),
    kind("exec-only", Protected),
    kind("shared-anon", All("read")),
    kind("shared-anon-untouched", All("read")),
    some(kind("file-private", All("read"))),
    some(kind("file-private-untouched", All("read"))),
    some(shared("file-cow-before-fork")),
    some(kind("file-cow-after-fork", All("read"))),
    some(kind("file-shared", All("read"))),
    kind("file-beyond-end", Refused),
    kind("memfd", All("read")),
    some(kind("memfd-secret", Refused)),
    some(shared("thp")),
    some(shared("mthp-64k")),
    some(shared("hugetlb")),
    some(kind("guard", Refused)),
    kind("madv-dontfork", Refused),
    kind("madv-wipeonfork", All("zeros")),
    kind("madv-free", All("read")),
    some(kind("mlocked", All("read"))),
    some(kind("swapped", All("read"))),
    some(kind(
        "uffd-missing",
        Each(["EIO", "skipped: blocked", "EIO"]),
    )),
    shared("heap"),
    shared("stack"),
    kind("below-stack", Grown),
    some(shared("last-page")),
    some(kind("vvar-vclock", Refused)),
    some(kind("kernel-address", Each(["EINVAL", "EFAULT", "EIO"]))),
];

/// Kinds that not every machine has, and from which kernel on they are there: mTHP came with 6.8,
/// guard regions with 6.13, memfd_secret is on unasked since 6.5, FUSE is built into Debian's kernels for
/// guests since 6.12. The others are there or not by CPU and vDSO.
const SINCE: [(&str, Version); 7] = [
    ("memfd-secret", (6, 5, 0)),
    ("mthp-64k", (6, 8, 0)),
    ("guard", GUARDS_SINCE),
    ("fuse-silent", (6, 12, 0)),
    ("vvar-vclock", NEVER_SURE),
    ("vsyscall", NEVER_SURE),
    ("tagged-address", NEVER_SURE),
];
const GUARDS_SINCE: Version = (6, 13, 0);
const NEVER_SURE: Version = (u32::MAX, 0, 0);

/// What a kind that is not known says.
const NO_SUCH_KIND: &str = "skipped: no-such-kind-here";

/// Whether a kernel says that it lacks a kind which it has.
pub(super) fn is_denied(kind: &str, version: Version, says: &str) -> bool {
    let since = SINCE.iter().find(|(name, _)| *name == kind);
    says == NO_SUCH_KIND && since.is_none_or(|(_, since)| version >= *since)
}

/// From the first on, and before the second, a pin grows no stack (8d7071af8907): mainline, and
/// the stable series of its time.
const GROWS_NOT: [(Version, Version); 3] = [
    ((6, 1, 37), (6, 2, 0)),
    ((6, 3, 11), (6, 4, 0)),
    ((6, 4, 1), (u32::MAX, 0, 0)),
];

/// Compares what was found of these kinds, if they were asked for.
pub(super) fn compare(
    found: &Findings,
    expected: &Expected<'_>,
    version: Version,
    compared: &mut Compared,
) {
    let asked = CERTAIN
        .iter()
        .any(|certain| found.says(certain.kind, READERS[0].name).is_some());
    if !asked {
        return;
    }
    for certain in &CERTAIN {
        for reader in &READERS {
            one(found, expected, certain, reader, version, compared);
        }
    }
}

fn one(
    found: &Findings,
    expected: &Expected<'_>,
    certain: &Certain,
    reader: &Reader,
    version: Version,
    compared: &mut Compared,
) {
    let expect = &expected.kernel.expect;
    splits(found, expect, certain, reader, compared);
    let class = match reader.class {
        Class::Proc => 0,
        Class::Vmread => 1,
        Class::Ptrace => 2,
        // Among those that change nothing.
        Class::Hybrid => return,
    };
    let wanted = match &certain.says {
        All(says) => says,
        Refused => ["EIO", "EFAULT", "EIO"][class],
        Protected => expect.prot_none(reader.class),
        // lseek takes any position.
        Each(_) if certain.kind == "kernel-address" && reader.name == "proc-seek" => "EIO",
        Each(says) => says[class],
        Grown if class == 1 && grows_not(version) => "EFAULT",
        Grown => "zeros",
    };
    let says = found.says(certain.kind, reader.name);
    let skipped = says.is_some_and(|says| says.starts_with("skipped: ") && says != wanted);
    let denied = says.is_some_and(|says| is_denied(certain.kind, version, says));
    let must = match certain.kind {
        // Nothing but the kernel's age keeps it from being there.
        "guard" => version >= GUARDS_SINCE,
        _ => certain.everywhere || denied,
    };
    let what = format!("{} by {}", certain.kind, reader.name);
    if !skipped || must {
        compared.check(expected.complete && must, &what, says, wanted);
    }
}

fn splits(
    found: &Findings,
    expect: &Expect,
    certain: &Certain,
    reader: &Reader,
    compared: &mut Compared,
) {
    let percent = if certain.shared {
        expect.split(reader.class)
    } else {
        0
    };
    let mut rows = found.kinds_split.iter();
    let row = rows.find(|row| row.kind == certain.kind && row.method == reader.name);
    if let Some(row) = row {
        let split = row.split.map(|split| split.to_string());
        let what = format!("pages split of {} by {}", certain.kind, reader.name);
        let wanted = (row.tracked * percent / 100).to_string();
        compared.check(false, &what, split.as_deref(), &wanted);
    }
}

fn grows_not(version: Version) -> bool {
    let mut series = GROWS_NOT.iter();
    series.any(|(first, end)| (first..end).contains(&&version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::expect::samples;
    use crate::matrix::findings::KindSplit;

    fn compared(answers: &[(&str, &str, &str)], splits: &[(&str, &str, u64)]) -> Compared {
        let found = Findings {
            answers: samples::answers(answers),
            kinds_split: splits
                .iter()
                .map(|(kind, method, split)| KindSplit {
                    kind: (*kind).to_owned(),
                    method: (*method).to_owned(),
                    tracked: 1,
                    split: Some(*split),
                })
                .collect(),
            ..Findings::default()
        };
        let expected = Expected {
            kernel: &samples::kernel("6.12-x86_64"),
            release: "6.12.1",
            complete: false,
            lost: &[],
        };
        let mut compared = Compared::default();
        compare(&found, &expected, (6, 12, 1), &mut compared);
        compared
    }

    #[test]
    fn answers_and_splits_are_judged_by_reader_and_kernel() {
        let answers = [
            ("anon-own", "proc", "read"),
            ("heap", "vmread", "read"),
            ("below-stack", "vmread", "EFAULT"),
            ("uffd-missing", "vmread", "skipped: blocked"),
            ("guard", "proc", "skipped: no-such-kind-here"),
            ("vvar-vclock", "proc", "skipped: no-such-kind-here"),
            ("thp", "proc", "skipped: kernel-did-not-give-it"),
        ];
        let right = compared(&answers, &[("heap", "vmread", 1), ("heap", "proc", 0)]);
        assert_eq!(right.differences, Vec::<String>::new());
        assert_eq!(right.agreed, 6);
        let answers = [
            ("anon-own", "proc", "zeros"),
            ("below-stack", "vmread", "zeros"),
            ("mthp-64k", "proc", "skipped: no-such-kind-here"),
            ("last-page", "proc", "skipped: no-such-kind-here"),
        ];
        let wrong = compared(&answers, &[("heap", "vmread", 0), ("memfd", "vmread", 1)]);
        assert_eq!(
            wrong.differences,
            [
                "anon-own by proc: zeros, expected read",
                "pages split of memfd by vmread: 1, expected 0",
                "mthp-64k by proc: skipped: no-such-kind-here, expected read",
                "pages split of heap by vmread: 0, expected 1",
                "below-stack by vmread: zeros, expected EFAULT",
                "last-page by proc: skipped: no-such-kind-here, expected read",
            ]
        );
    }

    #[test]
    fn kinds_that_were_not_asked_for_are_no_difference() {
        assert_eq!(
            compared(&[("hole", "proc", "EIO")], &[]),
            Compared::default()
        );
    }

    #[test]
    fn a_pin_grows_stacks_until_it_was_mended_in_each_series() {
        for (version, wanted) in [
            ((5, 10, 257), false),
            ((6, 1, 36), false),
            ((6, 1, 37), true),
            ((6, 2, 16), false),
            ((6, 3, 11), true),
            ((6, 4, 0), false),
            ((6, 4, 1), true),
            ((6, 5, 0), true),
            ((7, 3, 0), true),
        ] {
            assert_eq!(grows_not(version), wanted, "{version:?}");
        }
    }
}
