//! What is certain about the further kinds of `probe`: by kernel where it depends on that.
//!
//! Sources: mm/gup.c (what is refused: VM_IO, VM_PFNMAP, memfd_secret; unsharing since 5.19),
//! mm/madvise.c (guard regions, 6.13), fs/userfaultfd.c (a fault that may not be retried is
//! not waited for), fs/read_write.c (positions from 2^63 on), mm/mmap.c and mm/gup.c (stacks
//! that grow: no more in a pin since 6.5, 8d7071af8907, which Debian's 6.1 has, too, since
//! stable's 6.1.37).

use super::{Compared, Expected};
use crate::matrix::findings::Findings;
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
    /// The same, and process_vm_readv otherwise from this kernel on.
    Since((u32, u32), [&'static str; 3], &'static str),
}

use Says::{All, Each, Protected, Refused, Since};

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
    kind(
        "below-stack",
        Since((6, 1), ["zeros", "zeros", "zeros"], "EFAULT"),
    ),
    some(shared("last-page")),
    some(kind("vvar-vclock", Refused)),
    some(kind("kernel-address", Each(["EINVAL", "EFAULT", "EIO"]))),
];

/// Guard regions came with this kernel: before it the kind is skipped, from it on there.
const GUARDS_SINCE: (u32, u32) = (6, 13);

/// Compares what was found of these kinds, if they were asked for.
pub(super) fn compare(found: &Findings, expected: &Expected<'_>, compared: &mut Compared) {
    let asked = CERTAIN
        .iter()
        .any(|certain| found.says(certain.kind, READERS[0].name).is_some());
    if !asked {
        return;
    }
    let version = version(expected.release);
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
    version: (u32, u32),
    compared: &mut Compared,
) {
    let expect = &expected.kernel.expect;
    let class = match reader.class {
        Class::Proc => 0,
        Class::Vmread => 1,
        Class::Ptrace => 2,
    };
    let wanted = match &certain.says {
        All(says) => says,
        Refused => ["EIO", "EFAULT", "EIO"][class],
        Protected => expect.prot_none(reader.class),
        // lseek takes any position.
        Each(_) if certain.kind == "kernel-address" && reader.name == "proc-seek" => "EIO",
        Each(says) => says[class],
        Since(since, _, then) if class == 1 && version >= *since => then,
        Since(_, says, _) => says[class],
    };
    let says = found.says(certain.kind, reader.name);
    let skipped = says.is_some_and(|says| says.starts_with("skipped: ") && says != wanted);
    let must = match certain.kind {
        "guard" => version >= GUARDS_SINCE,
        _ => certain.everywhere,
    };
    let what = format!("{} by {}", certain.kind, reader.name);
    if !skipped || must {
        compared.check(expected.complete && must, &what, says, wanted);
    }
    let percent = if certain.shared {
        expect.split(reader.class)
    } else {
        0
    };
    let mut rows = found.kinds_split.iter();
    let row = rows.find(|row| row.kind == certain.kind && row.method == reader.name);
    if let Some(row) = row {
        let split = row.split.map(|split| split.to_string());
        let what = format!("pages split of {what}");
        let wanted = (row.tracked * percent / 100).to_string();
        compared.check(false, &what, split.as_deref(), &wanted);
    }
}

/// Major and minor number of a release; (0, 0) if it has none.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || numbers.next().and_then(|number| number.parse().ok());
    next().zip(next()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::table::Table;
    use crate::matrix::findings::{Answer, KindSplit};

    fn compared(answers: &[(&str, &str, &str)], splits: &[(&str, &str, u64)]) -> Compared {
        let found = Findings {
            answers: answers
                .iter()
                .map(|(kind, method, says)| Answer {
                    kind: (*kind).to_owned(),
                    method: (*method).to_owned(),
                    says: (*says).to_owned(),
                })
                .collect(),
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
        let table = Table::built_in();
        let mut kernels = table.kernels.iter();
        let kernel = kernels.find(|kernel| kernel.name == "6.12-x86_64").unwrap();
        let expected = Expected {
            kernel,
            release: "6.12.1",
            complete: false,
        };
        let mut compared = Compared::default();
        compare(&found, &expected, &mut compared);
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
        ];
        let right = compared(&answers, &[("heap", "vmread", 1), ("heap", "proc", 0)]);
        assert_eq!(right.differences, Vec::<String>::new());
        assert_eq!(right.agreed, 6);
        let answers = [
            ("anon-own", "proc", "zeros"),
            ("below-stack", "vmread", "zeros"),
        ];
        let wrong = compared(&answers, &[("heap", "vmread", 0), ("memfd", "vmread", 1)]);
        assert_eq!(
            wrong.differences,
            [
                "anon-own by proc: zeros, expected read",
                "pages split of memfd by vmread: 1, expected 0",
                "pages split of heap by vmread: 0, expected 1",
                "below-stack by vmread: zeros, expected EFAULT",
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
    fn a_release_has_a_version() {
        assert_eq!(version("6.12.117+deb13-cloud-amd64"), (6, 12));
        assert_eq!(version("?"), (0, 0));
    }
}
