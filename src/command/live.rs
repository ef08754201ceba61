//! A live process, as `survey` and `audit` see it: its mappings one after the other, whether
//! they changed meanwhile, and why it cannot be looked at.

use crate::emit::crc::Crc32;
use crate::error::{Denial, Error};
use crate::measure::census::{Census, CensusError, Counter};
use crate::measure::doubts::Doubts;
use crate::proc::number::{decimal, word};
use crate::proc::status::{field, hex_field};
use crate::reader::hybrid::{large, nothing_is_half_swapped, nothing_is_joined};
use crate::reader::vma::{self, Vmas};
use crate::sys::Errno;
use crate::sys::file::{Process, mapped_file, open_proc, proc_owner, read_proc, read_whole};
use crate::text::Text;
use core::ops::Deref;
use rustix::process::geteuid;

/// Longest name in a row.
const NAME_BYTES: usize = 256;
/// Addresses from here on are no process's own: `[vsyscall]` is the same page in all.
pub(super) const KERNEL_HALF: u64 = 1 << 63;
/// What is said where a line has another form than proc_pid_smaps(5) gives it.
const NOT_UNDERSTOOD: Error = Error::Invalid("a line of maps or smaps is not understood");

/// A VMA with its name.
pub(super) struct Vma {
    /// What is known of it.
    pub(super) known: vma::Vma,
    /// As maps prints it, cut to what a row holds.
    pub(super) name: Text,
}

impl Deref for Vma {
    type Target = vma::Vma;

    fn deref(&self) -> &vma::Vma {
        &self.known
    }
}

/// What is mapped, as far as two looks at it can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mappings {
    /// How many VMAs.
    pub(super) vmas: u64,
    /// Bytes of them.
    pub(super) bytes: u64,
    sum: u32,
}

impl Mappings {
    /// None.
    pub(super) const fn none() -> Self {
        Self {
            vmas: 0,
            bytes: 0,
            sum: 0,
        }
    }

    /// Those that the process has now.
    ///
    /// # Errors
    /// As [`each_vma`].
    pub(super) fn now(pid: i32) -> Result<Self, Error> {
        let mut mappings = Self::none();
        each_vma(pid, "maps", &mut |vma| {
            mappings.add(vma);
            Ok(())
        })?;
        Ok(mappings)
    }

    /// Counts one more.
    pub(super) fn add(&mut self, vma: &Vma) {
        let mut crc = Crc32::new();
        crc.update(&self.sum.to_ne_bytes());
        crc.update(&vma.start.to_ne_bytes());
        crc.update(&vma.end.to_ne_bytes());
        crc.update(&vma.perms.as_bytes());
        self.sum = crc.value();
        self.vmas += 1;
        self.bytes += vma.end - vma.start;
    }
}

/// Gets each VMA.
pub(super) type TakeVma<'t> = &'t mut dyn FnMut(&Vma) -> Result<(), Error>;

/// Gives `take` every VMA of `maps`, or of `smaps` with what only that one tells. The memory
/// this takes does not grow with the process.
///
/// # Errors
/// [`Error::Process`]; a text that is not understood; what `take` gives.
pub(super) fn each_vma(pid: i32, source: &'static str, take: TakeVma<'_>) -> Result<(), Error> {
    let mut vmas = Vmas::open(pid, source).map_err(|errno| refused(pid, source, errno))?;
    loop {
        let mut named = Text::new();
        let next = vmas.next(&mut |line| named = name(line.name));
        let known = next.map_err(|errno| match errno {
            Errno::IO => NOT_UNDERSTOOD,
            errno => Error::Process(pid, source, errno, None),
        })?;
        match known {
            Some(known) => take(&Vma { known, name: named })?,
            None => return Ok(()),
        }
    }
}

/// What is mapped now, and whether maps will do or it takes smaps, for which the kernel walks all
/// pages of the process once more. Only smaps tells zero pages from shared ones where frames are
/// hidden, what shared memory is in swap, what a userfaultfd serves, what is a device's, and what
/// is of hugetlb pages.
///
/// # Errors
/// As [`each_vma`].
pub(super) fn source(counter: &Counter, doubts: Doubts) -> Result<(Mappings, &'static str), Error> {
    let pid = counter.pid();
    let mut mappings = Mappings::none();
    let mut needs_flags = counter.frames_are_hidden()
        || doubts.has(Doubts::HALF_SWAPPED)
        || userfaultfd_may_be_in_use();
    let mut last_file = None;
    each_vma(pid, "maps", &mut |vma| {
        mappings.add(vma);
        let file = (vma.device, vma.inode);
        if needs_flags || vma.has_file && last_file == Some(file) {
            return Ok(());
        }
        needs_flags = match vma.has_file {
            // The name of memfd_secret(2), which any file may have.
            true => vma.is_secret || !is_plain_file(counter, vma),
            false => vma.is_special && !is_known_special(vma),
        };
        last_file = vma.has_file.then_some(file);
        Ok(())
    })?;
    let source = if needs_flags { "smaps" } else { "maps" };
    Ok((mappings, source))
}

/// Whether there may be a userfaultfd on this machine. Each is an object of a cache of the kernel's
/// own (fs/userfaultfd.c, which is never merged with another: it has a constructor); the count is an
/// upper bound. Unknown is yes. Only root is told.
fn userfaultfd_may_be_in_use() -> bool {
    let mut buffer = [0; 256];
    let objects = read_whole(
        c"/sys/kernel/slab/userfaultfd_ctx_cache/objects",
        &mut buffer,
    );
    match objects {
        Ok(text) => word(text).and_then(|(count, _)| decimal(count)) != Some(0),
        // A kernel without userfaultfd, if there are such files at all.
        Err(Errno::NOENT) => {
            read_whole(c"/sys/kernel/slab/mm_struct/objects", &mut buffer).is_err()
        }
        Err(_) => true,
    }
}

/// Whether what a VMA maps is a file with contents on a file system, of usual pages: not a device, nor
/// what is one behind a name in /sys or without a name, of which no blocks are on any disk.
fn is_plain_file(counter: &Counter, vma: &Vma) -> bool {
    mapped_file(counter.pid(), vma.start, vma.end).is_ok_and(|file| {
        let large = file.block_bytes > counter.page_kib() * 1024;
        let hugetlb = large && (vma.start | vma.end).is_multiple_of(file.block_bytes);
        file.is_regular && file.blocks > 0 && !hugetlb
    })
}

/// Whether the flags of such a mapping of the kernel's own are known without asking.
fn is_known_special(vma: &Vma) -> bool {
    let name = vma.name.read();
    vma.unsafe_to_read.is_some() || matches!(name, Ok("[vdso]" | "[vsyscall]"))
}

/// Counts the pages of a VMA, with what smaps and the file's length tell beyond its page table.
/// `seen` is told of the bytes looked at.
///
/// # Errors
/// See [`CensusError`].
pub(super) fn count(
    counter: &mut Counter,
    vma: &Vma,
    doubts: Doubts,
    seen: &mut dyn FnMut(u64),
) -> Result<Census, CensusError> {
    // The kernel has looked at each page for smaps: that need not be done twice.
    if let Some(found) = vma.all_in_memory() {
        seen(vma.end - vma.start);
        return Ok(Census {
            exclusive: found.private_kib / counter.page_kib(),
            shared_anon: found.shared_kib / counter.page_kib(),
            ..Census::default()
        });
    }
    let mut census = counter.count(vma.start, vma.end, seen)?;
    if vma.has_file {
        census.out_of_reach = match census.absent {
            0 => 0,
            _ => {
                counter
                    .count(behind(counter, vma), vma.end, &mut |_| ())?
                    .absent
            }
        };
    }
    // The zero page is not among it.
    if let Some(kib) = vma.anonymous_kib {
        census.know_anonymous(kib / counter.page_kib());
    }
    // Where nothing at all is in swap, nothing of it is.
    let unused = !doubts.has(Doubts::HALF_SWAPPED);
    if let Some(kib) = vma.swap_kib.or(unused.then_some(0)) {
        let pages = kib / counter.page_kib();
        // Who sees frames sees which entries are swap, and some may have gone there since smaps was read.
        let seen = match counter.frames_are_hidden() {
            true => 0,
            false => census.swapped,
        };
        census.know_swap(pages.max(seen));
    }
    Ok(census)
}

/// What there is on this machine that makes bit 56 err. What comes is to be asked for again afterwards;
/// what has come and gone in between is not seen.
pub(super) fn doubts(pid: i32) -> Doubts {
    Doubts::of(large::now())
        .and_if(!nothing_is_joined(pid), Doubts::JOINED)
        .and_if(!nothing_is_half_swapped(), Doubts::HALF_SWAPPED)
}

/// What came of this while pages were counted.
pub(super) struct Come {
    /// What may make bit 56 of those err.
    pub(super) doubts: bool,
    /// Swap: nothing of them was looked for there before.
    pub(super) swap: bool,
}

impl Come {
    /// Since the doubts were `then`.
    pub(super) fn since(then: Doubts, pid: i32, counted: &Census) -> Self {
        let now = doubts(pid);
        Self {
            doubts: !then.has(now) && now.concern(counted) > 0,
            swap: now.has(Doubts::HALF_SWAPPED) && !then.has(Doubts::HALF_SWAPPED),
        }
    }
}

/// Whether bit 56 may err in it: unless smaps shows that it has no huge page, where these are all that
/// may be, or the flags of its frames say otherwise, which only root is told.
pub(super) fn bit_56_may_err(
    counter: &mut Counter,
    vma: &Vma,
    census: &Census,
    doubts: Doubts,
) -> bool {
    let doubts = match vma.anonymous_huge_kib {
        Some(0) => doubts.without_huge_pages(),
        _ => doubts,
    };
    doubts.concern(census) > 0 && !counter.is_sure(vma.start, vma.end, doubts)
}

/// Where in a mapping its file has ended, in whole pages: nothing can be brought in from there on.
/// Its end, if that cannot be told: who sees no frames may not look at map_files, either.
fn behind(counter: &Counter, vma: &Vma) -> u64 {
    let len = match counter.frames_are_hidden() {
        true => None,
        false => mapped_file(counter.pid(), vma.start, vma.end)
            .ok()
            .filter(|file| file.is_regular)
            .map(|file| file.bytes),
    };
    let pages = len.map(|len| len.next_multiple_of(counter.page_kib() * 1024));
    pages.map_or(vma.end, |bytes| {
        let mapped = bytes.saturating_sub(vma.offset);
        vma.end.min(vma.start.saturating_add(mapped))
    })
}

/// The error of a file, or a call, that the kernel refused, with the likely cause.
pub(super) fn refused(pid: i32, file: &'static str, errno: Errno) -> Error {
    Error::Process(pid, file, errno, denial(pid, errno))
}

const CAP_SYS_PTRACE: u64 = 1 << 19;
/// CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: either opens what a file's mode does not.
const CAP_DAC: u64 = 1 << 1 | 1 << 2;

/// Whether the process's files in /proc and this one's own are this user's: pagemap is for its owner
/// only. A process that is not dumpable, as one with capabilities of its file is, has root's
/// (fs/proc/base.c, `task_dump_owner`).
fn owns_files(pid: i32) -> bool {
    let user = geteuid().as_raw();
    let mut both = [Process::Id(pid), Process::Myself].into_iter();
    both.all(|process| proc_owner(process, "pagemap") == Ok(user))
}

/// Why a process cannot be looked at, as far as /proc shows it: the rules of
/// `__ptrace_may_access`, kernel/ptrace.c, and of Yama.
pub(super) fn denial(pid: i32, errno: Errno) -> Option<Denial> {
    if matches!(errno, Errno::MFILE | Errno::NFILE) {
        return Some(Denial::Descriptors);
    }
    let (mut theirs, mut own) = ([0; 4096], [0; 4096]);
    let own = read_proc(Process::Myself, "status", &mut own).ok()?;
    let Ok(theirs) = read_proc(Process::Id(pid), "status", &mut theirs) else {
        return Some(match rustix::process::Pid::from_raw(pid) {
            Some(pid) if rustix::process::test_kill_process(pid) == Err(Errno::PERM) => {
                Denial::Hidden
            }
            _ => Denial::NoSuch,
        });
    };
    let mut scope = [0; 16];
    let scope = read_whole(c"/proc/sys/kernel/yama/ptrace_scope", &mut scope);
    let scope = scope.ok().and_then(|text| decimal(text.trim_ascii()));
    // Looking is not restricted by Yama, attaching is: so who may look is refused by it.
    let may_look = || open_proc(Process::Id(pid), "pagemap").is_ok();
    cause(own, theirs, scope, [&may_look, &|| owns_files(pid)], errno)
}

/// The cause, by the status of both, Yama's ptrace_scope where there is Yama, and whether the
/// page table may be looked at, and its file is this user's.
fn cause(
    own: &[u8],
    theirs: &[u8],
    scope: Option<u64>,
    [may_look, owns_files]: [&dyn Fn() -> bool; 2],
    errno: Errno,
) -> Option<Denial> {
    if field(theirs, b"State").is_some_and(|state| state.starts_with(b"Z")) {
        let threads = field(theirs, b"Threads").and_then(decimal);
        return Some(match threads {
            Some(2..) => Denial::DeadLeader,
            _ => Denial::Zombie,
        });
    }
    if field(theirs, b"VmSize").is_none() {
        return Some(Denial::NoMemory);
    }
    if !matches!(errno, Errno::PERM | Errno::ACCESS) {
        return None;
    }
    let caps = hex_field(own, b"CapEff").unwrap_or(0);
    let privileged = caps & CAP_SYS_PTRACE != 0;
    if privileged && caps & CAP_DAC == 0 && errno == Errno::ACCESS && !owns_files() {
        return Some(Denial::NotItsFiles);
    }
    Some(match (privileged, scope) {
        (true, Some(3)) => Denial::YamaForAll,
        (true, _) => Denial::DespitePrivilege,
        _ if !same_owner(own, theirs) => Denial::OtherOwner,
        _ if more_capable(own, theirs) => Denial::MoreCapable,
        _ if !may_look() => Denial::NotDumpable,
        (_, Some(1)) => Denial::YamaRelatives,
        (_, Some(2 | 3)) => Denial::YamaForAll,
        _ => Denial::Unknown,
    })
}

/// Whether all ids of theirs are those of ours: real for the caller, all three for the target.
fn same_owner(own: &[u8], theirs: &[u8]) -> bool {
    let same = |name: &[u8]| {
        let mine = field(own, name).and_then(word).map(|(real, _)| real);
        let mut rest = field(theirs, name);
        let mut ids = core::iter::from_fn(|| {
            let (id, left) = word(rest?)?;
            rest = Some(left);
            Some(id)
        });
        mine.is_some() && ids.by_ref().take(3).all(|id| Some(id) == mine)
    };
    same(b"Uid") && same(b"Gid")
}

fn more_capable(own: &[u8], theirs: &[u8]) -> bool {
    let (mine, other) = (hex_field(own, b"CapPrm"), hex_field(theirs, b"CapPrm"));
    mine.zip(other)
        .is_some_and(|(mine, other)| other & !mine != 0)
}

/// A name as maps prints it, cut to what a row holds; what is not UTF-8 becomes `?`.
fn name(bytes: &[u8]) -> Text {
    let mut text = Text::new();
    let cut = &bytes[..bytes.len().min(NAME_BYTES)];
    for chunk in cut.utf8_chunks() {
        text.add_printable(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.add("?");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_breaks_a_row() {
        assert_eq!(
            name(b"/tmp/a b\\012 (deleted)").read().unwrap(),
            "/tmp/a b\\012 (deleted)"
        );
        assert_eq!(name(b"/tmp/\xff\xfe.so").read().unwrap(), "/tmp/??.so");
        assert_eq!(name(&[b'x'; 5000]).read().unwrap().len(), NAME_BYTES);
    }

    #[test]
    fn each_refusal_has_its_cause() {
        const OWN: &[u8] = b"Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n";
        const ROOT: &[u8] = b"Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCapPrm:\t0000000000080000\nCapEff:\t0000000000080000\n";
        let target = |more: &str| {
            std::format!("State:\tS (sleeping)\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\n{more}")
        };
        let plain = &*target("VmSize:\t8 kB\nCapPrm:\t0000000000000000\n");
        let capable = &*target("VmSize:\t8 kB\nCapPrm:\t0000000000000400\n");
        let other = &*plain.replace("Uid:\t1", "Uid:\t2");
        let kernel = &*target("");
        let zombie = &*plain.replace("S (sleeping)", "Z (zombie)");
        let leader = &*std::format!("{zombie}Threads:\t3\n");
        for (own, theirs, scope, may_look, want) in [
            (OWN, other, Some(0), false, Denial::OtherOwner),
            (OWN, capable, Some(0), false, Denial::MoreCapable),
            (OWN, plain, Some(0), false, Denial::NotDumpable),
            (OWN, plain, Some(1), true, Denial::YamaRelatives),
            (OWN, plain, Some(2), true, Denial::YamaForAll),
            (OWN, plain, Some(0), true, Denial::Unknown),
            (OWN, plain, None, true, Denial::Unknown),
            (ROOT, plain, Some(3), true, Denial::YamaForAll),
            (ROOT, plain, Some(2), true, Denial::DespitePrivilege),
            (ROOT, kernel, None, true, Denial::NoMemory),
            (ROOT, zombie, None, true, Denial::Zombie),
            (ROOT, leader, None, true, Denial::DeadLeader),
        ] {
            let theirs = theirs.as_bytes();
            let found = cause(own, theirs, scope, [&|| may_look, &|| true], Errno::ACCESS);
            assert_eq!(found, Some(want));
        }
        // Another errno has another cause.
        let of = |own: &[u8], owns, errno| {
            cause(own, other.as_bytes(), None, [&|| false, &|| owns], errno)
        };
        assert_eq!(of(OWN, true, Errno::NOMEM), None);
        // With CAP_SYS_PTRACE alone the file's mode decides, which is not asked of a reader.
        let refused = [Errno::ACCESS, Errno::PERM].map(|errno| of(ROOT, false, errno));
        let despite = Some(Denial::DespitePrivilege);
        assert_eq!(refused, [Some(Denial::NotItsFiles), despite]);
        assert_eq!(of(ROOT, true, Errno::ACCESS), despite);
        let with_dac = std::str::from_utf8(ROOT)
            .unwrap()
            .replace("0080000", "0080004");
        assert_eq!(of(with_dac.as_bytes(), false, Errno::ACCESS), despite);
    }

    #[test]
    fn owners_are_the_same_only_in_all_three_ids() {
        let own = b"Uid:\t1\t1\t1\t1\nGid:\t5\t5\t5\t5\nCapPrm:\t0000000000000001\n";
        assert!(same_owner(own, own));
        for theirs in [
            &b"Uid:\t1\t0\t1\t1\nGid:\t5\t5\t5\t5\n"[..],
            b"Uid:\t1\t1\t1\t1\nGid:\t5\t5\t6\t5\n",
            b"Uid:\t2\t2\t2\t2\nGid:\t5\t5\t5\t5\n",
        ] {
            assert!(!same_owner(own, theirs));
        }
        assert!(more_capable(own, b"CapPrm:\t0000000000000003\n"));
        assert!(!more_capable(own, b"CapPrm:\t0000000000000001\n"));
    }

    /// Every process has a stack, and the kernel's own pages that no reader should touch.
    #[test]
    fn smaps_tells_what_maps_does_not() {
        let pid = std::process::id().cast_signed();
        let (mut stack, mut vvar) = (None, None);
        each_vma(pid, "smaps", &mut |vma| {
            match vma.name.read().unwrap() {
                "[stack]" => stack = Some((vma.anonymous_kib, vma.unsafe_to_read)),
                "[vvar]" => vvar = Some(vma.unsafe_to_read),
                _ => {}
            }
            Ok(())
        })
        .unwrap();
        let (anonymous, danger) = stack.unwrap();
        assert!(anonymous.unwrap() > 0);
        assert_eq!(danger, None);
        assert!(vvar.is_none_or(|danger| danger == Some("device-memory")));
    }
}
