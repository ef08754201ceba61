//! What is certain about the readers that change nothing, of the first page of each kind, and
//! that they change nothing.
//!
//! Sources: for hybrid its decision (src/reader/hybrid/decide.rs, METHOD.md), which goes by
//! fs/proc/task_mmu.c (pagemap); for kcore fs/proc/kcore.c and what pagemap has a frame of,
//! whatever the mapping allows; for map-files fs/proc/base.c (`proc_map_files_lookup`), which
//! has regular files alone, fs/inode.c (`no_open`: ENXIO of a secretmem file, which has no
//! `open` of its own), and of private mappings the pages that are still the file's.

use super::kinds::is_denied;
use super::{Compared, Expected};
use crate::matrix::findings::{Findings, OVER_END};
use crate::matrix::version::Version;
use crate::readers::Class;

/// The first page of a kind.
struct Quiet {
    kind: &'static str,
    /// By hybrid, kcore, map-files.
    says: [Says; 3],
}

/// The readers, in the order of [`Quiet::says`].
const READERS: [&str; 3] = ["hybrid", "kcore", "map-files"];

/// What a reader gets.
#[derive(Clone, Copy)]
enum Says {
    /// This.
    Is(&'static str),
    /// One of these, by what the kernel's direct map has.
    Either(&'static str, &'static str),
    /// What /proc/PID/mem gives of PROT_NONE: it is copied from there.
    AsProc,
    /// pagemap has a bit for guard regions since 6.15 (a516403787e0); before it they look
    /// swapped.
    Guard,
    /// Nothing is certain, or another table has it.
    Open,
}

use Says::{AsProc, Either, Guard, Is, Open};

const READ: Says = Is("read");
const ZEROS: Says = Is("zeros");
const EIO: Says = Is("EIO");
const EFAULT: Says = Is("EFAULT");
/// hybrid: a read would change something.
const LEFT: Says = Is("skipped: left-unread");
/// kcore: there is no frame.
const ABSENT: Says = Is("skipped: page-not-present");
/// map-files: anonymous memory, or the kernel's own.
const NO_FILE: Says = Is("skipped: no-file-behind-it");
/// map-files: the page of a private mapping is a copy.
const COPIED: Says = Is("skipped: page-is-not-the-files");
const BLOCKED: Says = Is("skipped: blocked");
/// memfd_secret takes its pages out of the direct map (mm/secretmem.c). What kcore cannot copy
/// it gives as zeros; they are never taken for content.
const SECRET: Says = Either("read", "skipped: false-zeros");

const fn quiet(kind: &'static str, hybrid: Says, kcore: Says, map_files: Says) -> Quiet {
    Quiet {
        kind,
        says: [hybrid, kcore, map_files],
    }
}

/// Anonymous and in memory.
const fn anonymous(kind: &'static str) -> Quiet {
    quiet(kind, READ, READ, NO_FILE)
}

/// Anonymous, private, and never touched.
const fn untouched(kind: &'static str) -> Quiet {
    quiet(kind, ZEROS, ABSENT, NO_FILE)
}

static QUIET: [Quiet; 42] = [
    anonymous("anon-fork-shared"),
    // hybrid's answers to the first of these and to a hole are in the table of kernels.
    quiet("prot-none", Open, READ, NO_FILE),
    untouched("prot-none-untouched"),
    quiet("hole", Open, ABSENT, EFAULT),
    anonymous("anon-own"),
    anonymous("anon-parent-gone"),
    untouched("anon-untouched"),
    quiet("anon-zero-page", ZEROS, ZEROS, NO_FILE),
    quiet("write-only", AsProc, READ, NO_FILE),
    quiet("exec-only", AsProc, READ, NO_FILE),
    quiet("shared-anon", READ, READ, READ),
    quiet("shared-anon-untouched", READ, ABSENT, READ),
    quiet("file-private", READ, READ, READ),
    quiet("file-private-untouched", READ, ABSENT, READ),
    quiet("file-cow-before-fork", READ, READ, COPIED),
    quiet("file-cow-after-fork", READ, READ, COPIED),
    quiet("file-shared", READ, READ, READ),
    // What lies behind the file's end in its last page comes with that page.
    quiet("file-end", READ, READ, READ),
    // The file has no such page, and a fault would be a SIGBUS.
    quiet("file-beyond-end", LEFT, ABSENT, EIO),
    quiet("memfd", READ, READ, READ),
    // Present and a file's, so pinned, which is refused, and then copied, which is, too.
    quiet("memfd-secret", EIO, SECRET, Is("ENXIO")),
    anonymous("thp"),
    anonymous("mthp-64k"),
    // A private mapping of a file of the kernel's, with pages of its own.
    quiet("hugetlb", READ, READ, COPIED),
    quiet("guard", Guard, ABSENT, NO_FILE),
    quiet("madv-dontfork", EIO, ABSENT, EFAULT),
    untouched("madv-wipeonfork"),
    anonymous("madv-free"),
    anonymous("mlocked"),
    quiet("swapped", LEFT, ABSENT, NO_FILE),
    anonymous("ksm"),
    quiet("uffd-missing", LEFT, ABSENT, NO_FILE),
    // hybrid does not even open a file of FUSE; to read it is to wait for its server.
    quiet("fuse-silent", LEFT, ABSENT, BLOCKED),
    anonymous("heap"),
    anonymous("stack"),
    // Nothing is mapped there, and only a fault would grow what is.
    quiet("below-stack", EIO, ABSENT, EFAULT),
    quiet("vdso", LEFT, ABSENT, NO_FILE),
    quiet("vvar", Open, Open, NO_FILE),
    quiet("vvar-vclock", LEFT, Open, NO_FILE),
    quiet("vsyscall", EIO, Open, NO_FILE),
    anonymous("last-page"),
    quiet("kernel-address", EIO, ABSENT, EFAULT),
];

/// A file's last page, and then what lies behind its end: no page there has a frame, or is the
/// file's.
static OVER: Quiet = quiet(
    OVER_END,
    LEFT,
    Is("half, then ENODATA"),
    Is("half, then EIO"),
);

/// Reasons that say nothing of the reader: the kind is not to be had. These readers are, on every
/// kernel of the table: root reads /proc/kcore and /proc/PID/map_files there.
const NOT_ASKED: [&str; 5] = [
    "skipped: no-such-kind-here",
    "skipped: kernel-did-not-give-it",
    "skipped: needs-setup",
    "skipped: needs-privilege",
    "skipped: cannot-be-proved",
];

/// Compares what these readers got, as far as they were asked, and what they have changed.
pub(super) fn compare(
    found: &Findings,
    expected: &Expected<'_>,
    version: Version,
    compared: &mut Compared,
) {
    for quiet in QUIET.iter().chain([&OVER]) {
        for (reader, says) in READERS.iter().zip(quiet.says) {
            one(
                found,
                expected,
                quiet.kind,
                (reader, says),
                version,
                compared,
            );
        }
    }
    compared.differences.extend(found.harms.iter().cloned());
}

fn one(
    found: &Findings,
    expected: &Expected<'_>,
    kind: &str,
    (reader, says): (&str, Says),
    version: Version,
    compared: &mut Compared,
) {
    let Some(seen) = found.says(kind, reader) else {
        return;
    };
    let lost = expected.lost.contains(&kind);
    if NOT_ASKED.contains(&seen) && (lost || !is_denied(kind, version, seen)) {
        return;
    }
    let wanted = match says {
        Open => return,
        Is(wanted) => wanted,
        Either(one, _) if seen == one => one,
        Either(_, other) => other,
        AsProc => expected.kernel.expect.prot_none(Class::Proc),
        Guard if version >= (6, 15, 0) => "EIO",
        Guard => "skipped: left-unread",
    };
    let what = format!("{kind} by {reader}");
    compared.check(expected.complete, &what, Some(seen), wanted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::expect::samples;

    fn compared(kernel: &str, version: Version, answers: &[(&str, &str, &str)]) -> Compared {
        let found = Findings {
            answers: samples::answers(answers),
            harms: vec!["heap page by kcore changed vma_change 1".to_owned()],
            ..Findings::default()
        };
        let expected = Expected {
            kernel: &samples::kernel(kernel),
            release: "6.12.1",
            complete: true,
            lost: &[],
        };
        let mut compared = Compared::default();
        compare(&found, &expected, version, &mut compared);
        // What was changed is told whatever was answered.
        assert_eq!(compared.differences.pop().unwrap(), found.harms[0]);
        compared
    }

    /// What 6.1 did to a tagged address, no other kernel did: nothing is certain of it.
    #[test]
    fn every_kind_of_probe_has_its_line() {
        let help = include_str!("../../../tests/golden/help-probe.txt");
        let (_, kinds) = help.split_once("Kinds: ").unwrap();
        let (kinds, _) = kinds.split_once('.').unwrap();
        let kinds = kinds.split(',').map(str::trim);
        let kinds = kinds.filter(|name| *name != "tagged-address");
        assert!(kinds.eq(QUIET.iter().map(|quiet| quiet.kind)));
    }

    #[test]
    fn what_changes_nothing_is_judged_by_kind_and_kernel() {
        let answers = [
            ("anon-untouched", "hybrid", "zeros"),
            ("anon-untouched", "kcore", "skipped: page-not-present"),
            ("mthp-64k", "kcore", "skipped: kernel-did-not-give-it"),
            ("vsyscall", "kcore", "skipped: no-such-kind-here"),
            ("swapped", "hybrid", "skipped: left-unread"),
            ("memfd-secret", "kcore", "skipped: false-zeros"),
            ("exec-only", "hybrid", "EIO"),
            ("guard", "hybrid", "EIO"),
            ("vvar", "hybrid", "read"),
        ];
        let right = compared("forky-x86_64", (7, 2, 0), &answers);
        assert_eq!(right.differences, Vec::<String>::new());
        assert_eq!(right.agreed, 6);
        let answers = [
            ("anon-untouched", "hybrid", "EIO"),
            ("swapped", "hybrid", "read"),
            ("anon-own", "kcore", "skipped: not-permitted"),
            ("fuse-silent", "map-files", "skipped: not-in-this-kernel"),
            ("fuse-silent", "kcore", "skipped: no-such-kind-here"),
            ("memfd-secret", "kcore", "zeros"),
            ("exec-only", "hybrid", "EIO"),
            ("guard", "hybrid", "EIO"),
            (OVER_END, "map-files", "half, then EIO"),
            (OVER_END, "hybrid", "read"),
        ];
        assert_eq!(
            compared("6.12-x86_64", (6, 14, 0), &answers).differences,
            [
                "anon-own by kcore: skipped: not-permitted, expected read",
                "anon-untouched by hybrid: EIO, expected zeros",
                "exec-only by hybrid: EIO, expected read",
                "memfd-secret by kcore: zeros, expected skipped: false-zeros",
                "guard by hybrid: EIO, expected skipped: left-unread",
                "swapped by hybrid: read, expected skipped: left-unread",
                "fuse-silent by kcore: skipped: no-such-kind-here, \
                 expected skipped: page-not-present",
                "fuse-silent by map-files: skipped: not-in-this-kernel, \
                 expected skipped: blocked",
                "file-end, cross by hybrid: read, expected skipped: left-unread",
            ]
        );
    }
}
