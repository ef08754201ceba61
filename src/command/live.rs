//! A live process, as `survey` and `audit` see it: its mappings one after the other, whether
//! they changed meanwhile, and why it cannot be looked at.

use super::probe::prober;
use crate::emit::crc::Crc32;
use crate::emit::record::Status;
use crate::error::{Denial, Error};
use crate::fixture::kinds::{KINDS, Op};
use crate::measure::probe::Prober;
use crate::proc::lines::LineBuffer;
use crate::proc::maps::{MapsLine, Perms};
use crate::proc::number::{self, decimal, word};
use crate::proc::status::{field, hex_field};
use crate::reader::Method;
use crate::reader::vma::{MISSING_SERVED, has_file, has_flag};
use crate::sys::file::{Process, open_proc, read_next, read_proc, read_whole};
use crate::sys::{Clock, Errno};
use crate::text::Text;
use heapless::Vec;
use rustix::fd::AsFd;

/// A line of maps: a path has up to 4,096 bytes, each of which may be printed as four.
const LINE_BYTES: usize = 20 << 10;
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
    /// Its anonymous memory in KiB; `None` from maps, which does not tell.
    pub(super) anonymous_kib: Option<u64>,
    /// Why nobody should read it; `None` from maps, which does not tell.
    pub(super) unsafe_to_read: Option<&'static str>,
}

impl Vma {
    fn of(line: &MapsLine<'_>) -> Self {
        Self {
            start: line.start,
            end: line.end,
            perms: line.perms,
            name: name(line.name),
            fills_up: has_file(line),
            anonymous_kib: None,
            unsafe_to_read: None,
        }
    }

    /// Takes over what a line of smaps below its header says.
    fn field(&mut self, line: &[u8]) -> Result<(), Error> {
        if let Some(kib) = line.strip_prefix(b"Anonymous:") {
            self.anonymous_kib = Some(number::kib(kib).ok_or(NOT_UNDERSTOOD)?);
        }
        if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            self.unsafe_to_read = danger(flags);
        }
        Ok(())
    }
}

/// Flags of a VMA (Documentation/filesystems/proc.rst) that say: do not read.
const DANGERS: [(&[&[u8]], &str); 2] = [
    // Registers of a device may be behind it, and reading them may do something.
    (&[b"io", b"pf"], "device-memory"),
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
    sum: u32,
}

impl Mappings {
    /// None.
    pub(super) const fn none() -> Self {
        Self { vmas: 0, sum: 0 }
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

/// Whether readers split shared pages on this kernel, each tried on a child of our own when it
/// is first asked about.
pub(super) struct Splits {
    clock: Clock,
    page_bytes: usize,
    prober: Option<Prober>,
    known: Vec<(Method, Option<bool>), { Method::ALL.len() }>,
}

impl Splits {
    /// Nothing tried yet.
    pub(super) const fn untried(clock: Clock, page_bytes: usize) -> Self {
        Self {
            clock,
            page_bytes,
            prober: None,
            known: Vec::new(),
        }
    }

    /// Of `shared` pages, how many `method` splits; `None` if that could not be tried, or if there
    /// are `doubtful` ones, of which pagemap does not tell whether they are shared.
    pub(super) fn of(&mut self, method: Method, shared: u64, doubtful: u64) -> Option<u64> {
        if shared + doubtful == 0 {
            return Some(0);
        }
        let known = self.known.iter().find(|(known, _)| *known == method);
        let splits = match known {
            Some(&(_, splits)) => splits,
            None => {
                let tried = self.tried(method);
                // There is room for every method.
                let _ = self.known.push((method, tried));
                tried
            }
        };
        match splits? {
            true if doubtful > 0 => None,
            true => Some(shared),
            false => Some(0),
        }
    }

    fn tried(&mut self, method: Method) -> Option<bool> {
        if self.prober.is_none() {
            self.prober = prober(self.clock, self.page_bytes).ok();
        }
        let prober = self.prober.as_mut()?;
        let probed = prober.probe(&KINDS[0], Op::Page, Some(method)).ok()?;
        let changes = probed.changes.filter(|_| probed.status == Status::Ok)?;
        Some(changes.split > 0)
    }
}

/// What reading a process would change, as far as its page table tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outlook {
    /// Pages that vmread would split.
    pub(super) vmread_split: Option<u64>,
    /// Pages that hybrid would split.
    pub(super) hybrid_split: Option<u64>,
    /// Absent pages that all but hybrid would bring in.
    pub(super) filled_up: u64,
    /// Swapped-out pages that all but hybrid would bring in.
    pub(super) swapped: u64,
}

impl Outlook {
    /// The reader to take, and why.
    pub(super) const fn advice(&self) -> &'static str {
        match (self.vmread_split, self.hybrid_split) {
            (Some(0), _) if self.filled_up + self.swapped == 0 => {
                "vmread, 1 MiB a call: there is nothing to split or to bring in, and it is fastest"
            }
            (_, Some(0)) => {
                "hybrid: it splits nothing and brings nothing in; swapped-out pages it leaves unread"
            }
            (Some(0), _) => {
                "vmread, 1 MiB a call: it splits nothing here, but brings in what is absent"
            }
            _ => "proc: it splits nothing, but brings in what is absent or swapped out",
        }
    }
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
    fn advice_follows_what_would_change() {
        let advice = |vmread, hybrid, filled_up, swapped| {
            let outlook = Outlook {
                vmread_split: vmread,
                hybrid_split: hybrid,
                filled_up,
                swapped,
            };
            let words = outlook.advice();
            words.split_once([':', ',']).unwrap().0
        };
        assert_eq!(advice(Some(0), Some(0), 0, 0), "vmread");
        assert_eq!(advice(Some(9), Some(0), 0, 0), "hybrid");
        assert_eq!(advice(Some(0), Some(0), 7, 0), "hybrid");
        assert_eq!(advice(Some(0), Some(0), 0, 7), "hybrid");
        assert_eq!(advice(None, Some(0), 0, 0), "hybrid");
        assert_eq!(advice(Some(0), None, 7, 0), "vmread");
        assert_eq!(advice(Some(9), None, 0, 0), "proc");
        assert_eq!(advice(None, None, 0, 0), "proc");
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
