//! What is certain about the further kinds of `probe` by the readers that take any memory: by
//! kernel where it depends on that.
//!
//! Sources: mm/gup.c (what is refused: VM_IO, VM_PFNMAP, memfd_secret; unsharing since 5.19),
//! mm/madvise.c (guard regions, 6.13), fs/userfaultfd.c (a fault that may not be retried is
//! not waited for), fs/read_write.c (positions from 2^63 on), mm/mmap.c and mm/gup.c (stacks
//! that grow: see [`GROWS_NOT`]), mm/memory.c (a page in swap is brought in, see [`SWAPPED`]),
//! fs/fuse/file.c (a page that is not there is asked for, and waited for).

use super::{Compared, Expected};
use crate::kernels::table::Expect;
use crate::matrix::findings::{Findings, OVER_END};
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

/// The kind of which reading one page brings that page in, and no other: a fault goes through
/// do_swap_page, whoever causes it, and swap on zram is read page by page (SWP_SYNCHRONOUS_IO, since
/// 0bcac06f27d7 in Linux 4.15), not ahead. Its frame is another one than before it went out, but
/// nobody shares it: nothing is split.
const SWAPPED: &str = "swapped";

static CERTAIN: [Certain; 35] = [
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
    some(kind("file-end", All("read"))),
    some(kind(
        OVER_END,
        Each(["half, then EIO", "half, then EFAULT", "half, then EIO"]),
    )),
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
    // The guests are given zram and FUSE, see crate::kernels::modules.
    kind(SWAPPED, All("read")),
    some(kind(
        "uffd-missing",
        Each(["EIO", "skipped: blocked", "EIO"]),
    )),
    kind("fuse-silent", All("skipped: blocked")),
    shared("heap"),
    shared("stack"),
    kind("below-stack", Grown),
    some(shared("last-page")),
    some(kind("vvar-vclock", Refused)),
    some(kind("kernel-address", Each(["EINVAL", "EFAULT", "EIO"]))),
];

/// Kinds that not every machine has, and from which kernel on they are there: mTHP came with 6.8,
/// guard regions with 6.13, memfd_secret is on unasked since 6.5. The others are there or not by
/// CPU and vDSO.
const SINCE: [(&str, Version); 6] = [
    ("memfd-secret", (6, 5, 0)),
    ("mthp-64k", (6, 8, 0)),
    ("guard", GUARDS_SINCE),
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
    changed(found, expect, certain, reader, version, compared);
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
        kind if expected.lost.contains(&kind) => false,
        // Nothing but the kernel's age keeps it from being there.
        "guard" => version >= GUARDS_SINCE,
        _ => certain.everywhere || denied,
    };
    let what = format!("{} by {}", certain.kind, reader.name);
    if !skipped || must {
        compared.check(expected.complete && must, &what, says, wanted);
    }
}

fn changed(
    found: &Findings,
    expect: &Expect,
    certain: &Certain,
    reader: &Reader,
    version: Version,
    compared: &mut Compared,
) {
    let percent = if certain.shared {
        expect.split(reader.class)
    } else {
        0
    };
    let mut rows = found.kinds_changed.iter();
    let row = rows.find(|row| row.kind == certain.kind && row.method == reader.name);
    let Some(row) = row else { return };
    // hybrid leaves what is in swap.
    let swapped_in = certain.kind == SWAPPED && reader.class != Class::Hybrid;
    let grows = matches!(certain.says, Grown)
        && match reader.class {
            Class::Proc | Class::Ptrace => true,
            Class::Vmread => !grows_not(version),
            Class::Hybrid => false,
        };
    let signed = |pages: Option<u64>| pages.map(u64::cast_signed);
    for (what, pages, wanted) in [
        (
            "split",
            signed(row.split),
            (row.tracked * percent / 100).cast_signed(),
        ),
        ("swapped in", signed(row.swapped_in), i64::from(swapped_in)),
        ("more in mappings", row.grown, i64::from(grows)),
    ] {
        let pages = pages.map(|pages| pages.to_string());
        let what = format!("pages {what} of {} by {}", certain.kind, reader.name);
        compared.check(false, &what, pages.as_deref(), &wanted.to_string());
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
    use crate::matrix::findings::KindChanged;

    fn compared(answers: &[(&str, &str, &str)], splits: &[(&str, &str, u64)]) -> Compared {
        let changed = |&(kind, method, split): &(&str, &str, u64)| KindChanged {
            kind: kind.to_owned(),
            method: method.to_owned(),
            tracked: 1,
            split: Some(split),
            swapped_in: None,
            grown: None,
        };
        let found = Findings {
            answers: samples::answers(answers),
            kinds_changed: splits.iter().map(changed).collect(),
            ..Findings::default()
        };
        compared_without(&found, &[])
    }

    fn compared_without(found: &Findings, lost: &[&str]) -> Compared {
        let expected = Expected {
            kernel: &samples::kernel("6.12-x86_64"),
            release: "6.12.1",
            complete: false,
            lost,
        };
        let mut compared = Compared::default();
        compare(found, &expected, (6, 12, 1), &mut compared);
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
            (OVER_END, "vmread", "half, then EIO"),
            (OVER_END, "proc", "half, then EIO"),
            ("below-stack", "vmread", "zeros"),
            ("mthp-64k", "proc", "skipped: no-such-kind-here"),
            ("last-page", "proc", "skipped: no-such-kind-here"),
        ];
        let wrong = compared(&answers, &[("heap", "vmread", 0), ("memfd", "vmread", 1)]);
        assert_eq!(
            wrong.differences,
            [
                "anon-own by proc: zeros, expected read",
                "file-end, cross by vmread: half, then EIO, expected half, then EFAULT",
                "pages split of memfd by vmread: 1, expected 0",
                "mthp-64k by proc: skipped: no-such-kind-here, expected read",
                "pages split of heap by vmread: 0, expected 1",
                "below-stack by vmread: zeros, expected EFAULT",
                "last-page by proc: skipped: no-such-kind-here, expected read",
            ]
        );
    }

    /// What reading a page in swap did, and of another kind.
    #[test]
    fn a_page_in_swap_is_brought_in_and_no_other() {
        let row = |kind: &str, method: &str, swapped_in| KindChanged {
            kind: kind.to_owned(),
            method: method.to_owned(),
            tracked: 0,
            split: Some(0),
            swapped_in: Some(swapped_in),
            grown: Some(0),
        };
        let of = |rows: &[KindChanged]| {
            let found = Findings {
                answers: samples::answers(&[("anon-own", "proc", "read")]),
                kinds_changed: rows.to_vec(),
                ..Findings::default()
            };
            compared_without(&found, &[]).differences
        };
        let right = [
            row("swapped", "proc", 1),
            row("swapped", "vmread", 1),
            row("swapped", "hybrid", 0),
            row("heap", "ptrace", 0),
        ];
        assert_eq!(of(&right), Vec::<String>::new());
        let wrong = [
            row("swapped", "proc", 0),
            row("swapped", "vmread", 8),
            row("swapped", "hybrid", 1),
            row("heap", "ptrace", 1),
        ];
        let wanted = [("swapped", "proc", 0, 1), ("swapped", "vmread", 8, 1)];
        let more = [("swapped", "hybrid", 1, 0), ("heap", "ptrace", 1, 0)];
        let wanted = wanted.iter().chain(&more);
        let line = |(kind, method, found, wanted): &(&str, &str, u64, u64)| {
            format!("pages swapped in of {kind} by {method}: {found}, expected {wanted}")
        };
        assert_eq!(of(&wrong), wanted.map(line).collect::<Vec<_>>());
    }

    /// Who reads below a stack makes its mapping longer, but for who changes nothing, and on this
    /// kernel who pins; no other read does.
    #[test]
    fn a_mapping_grows_below_a_stack_alone() {
        let row = |&(kind, method, grown): &(&str, &str, i64)| KindChanged {
            kind: kind.to_owned(),
            method: method.to_owned(),
            tracked: 0,
            split: Some(0),
            swapped_in: Some(0),
            grown: Some(grown),
        };
        let of = |rows: &[(&str, &str, i64)]| {
            let found = Findings {
                answers: samples::answers(&[("anon-own", "proc", "read")]),
                kinds_changed: rows.iter().map(row).collect(),
                ..Findings::default()
            };
            compared_without(&found, &[]).differences
        };
        let right = [
            ("below-stack", "proc", 1),
            ("below-stack", "ptrace", 1),
            ("below-stack", "vmread", 0),
            ("below-stack", "hybrid", 0),
            ("heap", "proc", 0),
        ];
        assert_eq!(of(&right), Vec::<String>::new());
        let wrong = right.map(|(kind, method, grown)| (kind, method, 1 - grown));
        let mut wanted = right.map(|(kind, method, grown)| {
            let found = 1 - grown;
            format!("pages more in mappings of {kind} by {method}: {found}, expected {grown}")
        });
        wanted.sort_unstable();
        let mut found = of(&wrong);
        found.sort_unstable();
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_kind_that_lacks_its_module_is_no_difference() {
        let found = Findings {
            answers: samples::answers(&[
                ("anon-own", "proc", "read"),
                ("swapped", "proc", "skipped: needs-setup"),
                ("fuse-silent", "proc", "skipped: no-such-kind-here"),
            ]),
            ..Findings::default()
        };
        let lost = compared_without(&found, &["swapped", "fuse-silent"]);
        assert_eq!(lost.differences, Vec::<String>::new());
        assert_eq!(
            compared_without(&found, &[]).differences,
            [
                "swapped by proc: skipped: needs-setup, expected read",
                "fuse-silent by proc: skipped: no-such-kind-here, expected skipped: blocked",
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
