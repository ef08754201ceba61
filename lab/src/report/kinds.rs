//! What kinds of memory are, for those who have not read METHOD.md. One that is not here is shown
//! by its name alone.

/// Kinds of `probe`, with a few words.
pub const KINDS: [(&str, &str); 43] = [
    (
        "anon-fork-shared",
        "private anonymous memory, written, then shared by fork",
    ),
    (
        "anon-own",
        "private anonymous memory, written again after fork",
    ),
    (
        "anon-parent-gone",
        "private anonymous memory, written; the parent has dropped it",
    ),
    ("anon-untouched", "private anonymous memory, never touched"),
    ("anon-zero-page", "read and never written: the zero page"),
    (
        "prot-none",
        "private anonymous memory, written, then made PROT_NONE",
    ),
    (
        "prot-none-untouched",
        "PROT_NONE from the start, never written",
    ),
    ("write-only", "written, then made PROT_WRITE alone"),
    ("exec-only", "written, then made PROT_EXEC alone"),
    ("hole", "not mapped, between two mappings"),
    ("shared-anon", "shared anonymous memory"),
    (
        "shared-anon-untouched",
        "the same, that the target has not touched",
    ),
    ("file-private", "a private mapping of a file"),
    (
        "file-private-untouched",
        "the same, that the target has not touched",
    ),
    (
        "file-cow-before-fork",
        "a private mapping of a file, written before fork",
    ),
    (
        "file-cow-after-fork",
        "a private mapping of a file, written after fork",
    ),
    ("file-shared", "a shared mapping of a file"),
    (
        "file-end",
        "the last page of a file that ends in the middle of it",
    ),
    (
        "file-beyond-end",
        "pages of a mapping that lie beyond the file’s end",
    ),
    ("memfd", "memory of memfd_create(2)"),
    (
        "memfd-secret",
        "memory of memfd_secret(2), that the kernel itself does not map",
    ),
    ("thp", "a transparent huge page"),
    ("mthp-64k", "anonymous folios of 64 KiB"),
    ("hugetlb", "a page of hugetlbfs"),
    ("guard", "a guard region of madvise(2)"),
    ("madv-dontfork", "memory with MADV_DONTFORK"),
    ("madv-wipeonfork", "memory with MADV_WIPEONFORK"),
    ("madv-free", "memory that MADV_FREE gave back"),
    ("mlocked", "memory that mlock(2) holds"),
    ("swapped", "swapped out"),
    ("ksm", "merged by KSM"),
    ("uffd-missing", "userfaultfd memory that nobody serves"),
    (
        "fuse-silent",
        "a file whose FUSE server never answers a read",
    ),
    ("heap", "the heap"),
    ("stack", "the stack"),
    ("below-stack", "just below the stack, where it may grow"),
    ("vdso", "the kernel’s code for the process"),
    ("vvar", "the kernel’s data for it"),
    ("vvar-vclock", "pages of clocks in it"),
    ("vsyscall", "the page of old system calls, x86_64"),
    ("last-page", "the last page below the end of user space"),
    ("kernel-address", "an address of the kernel’s"),
    (
        "tagged-address",
        "an address with a tag in its top byte, aarch64",
    ),
];
