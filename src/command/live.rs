//! A live process, as `survey` and `audit` see it: its mappings one after the other, whether
//! they changed meanwhile, and why it cannot be looked at.

use crate::emit::crc::Crc32;
use crate::error::{Denial, Error};
use crate::measure::census::{Census, CensusError, Counter, Doubts};
use crate::proc::lines::LineBuffer;
use crate::proc::maps::{LINE_BYTES, MapsLine, Perms};
use crate::proc::number::{self, decimal, word};
use crate::proc::status::{field, hex_field};
use crate::reader::hybrid::{large, nothing_is_half_swapped, nothing_is_joined};
use crate::reader::vma::{MISSING_SERVED, has_file, has_flag};
use crate::sys::Errno;
use crate::sys::file::{Process, mapped_bytes, open_proc, read_next, read_proc, read_whole};
use crate::text::Text;
use rustix::fd::AsFd;

/// Longest name in a row.
const NAME_BYTES: usize = 256;
/// Addresses from here on are no process's own: `[vsyscall]` is the same page in all.
pub(super) const KERNEL_HALF: u64 = 1 << 63;
/// What is said where a line has another form than proc_pid_smaps(5) gives it.
const NOT_UNDERSTOOD: Error = Error::Invalid("a line of maps or smaps is not understood");

/// A VMA, out of the lines it stood on.
pub(super) struct Vma {
    /// First address.
    pub(super) start: u64,
    /// First address behind it.
    pub(super) end: u64,
    /// What it allows.
    pub(super) perms: Perms,
    /// As maps prints it, cut to what a row holds.
    pub(super) name: Text,
    /// Whether absent pages of it come from a file, or from memory that others see: touching
    /// them makes the process larger. Others are zeros until they are written.
    pub(super) fills_up: bool,
    /// Where in its file it begins.
    offset: u64,
    /// Its anonymous memory in KiB; `None` from maps, which does not tell, and of hugetlb pages,
    /// which smaps does not count there.
    anonymous_kib: Option<u64>,
    /// Why nobody should read it. maps tells this of `[vvar]` alone, by its name.
    pub(super) unsafe_to_read: Option<&'static str>,
}

impl Vma {
    /// By its line of maps.
    pub(super) fn of(line: &MapsLine<'_>) -> Self {
        Self {
            start: line.start,
            end: line.end,
            perms: line.perms,
            name: name(line.name),
            fills_up: has_file(line),
            offset: line.offset,
            anonymous_kib: None,
            unsafe_to_read: line.name.starts_with(b"[vvar").then_some(DEVICE),
        }
    }

    /// Takes over what a line of smaps below its header says.
    fn field(&mut self, line: &[u8]) -> Result<(), Error> {
        if let Some(kib) = line.strip_prefix(b"Anonymous:") {
            self.anonymous_kib = Some(number::kib(kib).ok_or(NOT_UNDERSTOOD)?);
        }
        if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            self.unsafe_to_read = danger(flags);
            if has_flag(flags, &[b"ht"]) {
                self.anonymous_kib = None;
            }
        }
        Ok(())
    }
}

/// Why memory of devices is not read.
const DEVICE: &str = "device-memory";

/// Flags of a VMA (Documentation/filesystems/proc.rst) that say: do not read.
const DANGERS: [(&[&[u8]], &str); 2] = [
    // Registers of a device may be behind it, and reading them may do something.
    (&[b"io", b"pf"], DEVICE),
    // process_vm_readv of a page that nobody serves never comes back.
    (MISSING_SERVED, "userfaultfd"),
];

fn danger(flags: &[u8]) -> Option<&'static str> {
    let found = DANGERS
        .into_iter()
        .find(|(names, _)| has_flag(flags, names));
    found.map(|(_, why)| why)
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
    let file = open(pid, source)?;
    let mut lines = LineBuffer::<LINE_BYTES>::new();
    let mut waiting: Option<Vma> = None;
    loop {
        let line = lines.read_line(|space| read_next(file.as_fd(), space));
        let line = line.map_err(|errno| Error::Process(pid, source, errno, None))?;
        let header = line.as_ref().and_then(|line| MapsLine::parse(line.bytes));
        match (header, line, &mut waiting) {
            (Some(header), ..) => {
                let complete = waiting.replace(Vma::of(&header));
                complete.iter().try_for_each(&mut *take)?;
            }
            (None, None, _) => return waiting.iter().try_for_each(take),
            (None, Some(line), Some(vma)) if source == "smaps" => vma.field(line.bytes)?,
            _ => return Err(NOT_UNDERSTOOD),
        }
    }
}

/// Counts the pages of a VMA, with what smaps and the file's length tell beyond its page table.
/// `seen` is told of the bytes looked at.
///
/// # Errors
/// See [`CensusError`].
pub(super) fn count(
    counter: &mut Counter,
    vma: &Vma,
    seen: &mut dyn FnMut(u64),
) -> Result<Census, CensusError> {
    let mut census = counter.count(vma.start, vma.end, seen)?;
    if vma.fills_up {
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
    Ok(census)
}

/// What there is on this machine that makes bit 56 err.
pub(super) fn doubts(pid: i32) -> Doubts {
    Doubts::default()
        .and_if(large::possible(), Doubts::LARGE)
        .and_if(!nothing_is_joined(pid), Doubts::JOINED)
        .and_if(!nothing_is_half_swapped(), Doubts::HALF_SWAPPED)
}

/// Whether bit 56 may err in it: unless the flags of all its frames say otherwise, which only root
/// is told.
pub(super) fn bit_56_may_err(
    counter: &mut Counter,
    vma: &Vma,
    census: &Census,
    doubts: Doubts,
) -> bool {
    doubts.concern(census) > 0 && !counter.is_sure(vma.start, vma.end, doubts)
}

/// Where in a mapping its file has ended, in whole pages: nothing can be brought in from there on.
/// Its end, if that cannot be told: who sees no frames may not look at map_files, either.
fn behind(counter: &Counter, vma: &Vma) -> u64 {
    let len = match counter.frames_are_hidden() {
        true => None,
        false => mapped_bytes(counter.pid(), vma.start, vma.end)
            .ok()
            .flatten(),
    };
    let pages = len.map(|len| len.next_multiple_of(counter.page_kib() * 1024));
    pages.map_or(vma.end, |bytes| {
        let mapped = bytes.saturating_sub(vma.offset);
        vma.end.min(vma.start.saturating_add(mapped))
    })
}

/// Opens a file of the process, or says why it cannot be.
///
/// # Errors
/// [`Error::Process`] with the likely cause.
pub(super) fn open(pid: i32, file: &'static str) -> Result<rustix::fd::OwnedFd, Error> {
    open_proc(Process::Id(pid), file).map_err(|errno| refused(pid, file, errno))
}

/// The error of a file, or a call, that the kernel refused, with the likely cause.
pub(super) fn refused(pid: i32, file: &'static str, errno: Errno) -> Error {
    Error::Process(pid, file, errno, denial(pid, errno))
}

const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Why a process cannot be looked at, as far as /proc shows it: the rules of
/// `__ptrace_may_access`, kernel/ptrace.c, and of Yama.
fn denial(pid: i32, errno: Errno) -> Option<Denial> {
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
    cause(own, theirs, scope, &may_look, errno)
}

/// The cause, by the status of both, Yama's ptrace_scope where there is Yama, and whether the
/// page table may be looked at.
fn cause(
    own: &[u8],
    theirs: &[u8],
    scope: Option<u64>,
    may_look: &dyn Fn() -> bool,
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
    let privileged = hex_field(own, b"CapEff").is_some_and(|caps| caps & CAP_SYS_PTRACE != 0);
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
    fn memory_that_bites_is_known_by_its_flags() {
        assert_eq!(danger(b" rd mr pf io de dd "), Some("device-memory"));
        assert_eq!(danger(b" rd wr mr mw me um ac "), Some("userfaultfd"));
        assert_eq!(danger(b" rd wr mr mw me ac sd "), None);
        // Not a flag, but a part of one.
        assert_eq!(danger(b" iox umx"), None);
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
            let found = cause(own, theirs, scope, &|| may_look, Errno::ACCESS);
            assert_eq!(found, Some(want));
        }
        // Another errno has another cause.
        assert_eq!(
            cause(OWN, plain.as_bytes(), None, &|| true, Errno::NOMEM),
            None
        );
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

    /// smaps counts no hugetlb page as anonymous, private ones included.
    #[test]
    fn zero_anonymous_kib_of_hugetlb_is_no_answer() {
        let told = |flags: &[u8]| {
            let header = MapsLine::parse(b"1000-2000 rw-p 00000000 00:00 0 ").unwrap();
            let mut vma = Vma::of(&header);
            vma.field(b"Anonymous:             0 kB").unwrap();
            vma.field(flags).unwrap();
            vma.anonymous_kib
        };
        assert_eq!(told(b"VmFlags: rd wr mr mw me ac"), Some(0));
        assert_eq!(told(b"VmFlags: rd wr mr mw me de ht"), None);
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
