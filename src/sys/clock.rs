//! CLOCK_MONOTONIC in nanoseconds, through the vDSO where there is one.
//!
//! Times are `u64` nanoseconds since an unspecified start (boot): they overflow after
//! 584 years of uptime. Only differences mean anything.

use super::arch::{VDSO_CLOCK_GETTIME, nr, syscall6};
use super::auxv::Auxv;

/// `struct __kernel_timespec`: 64-bit on both CPUs.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const CLOCK_REALTIME: usize = 0;
const CLOCK_MONOTONIC: i32 = 1;

type VdsoClock = unsafe extern "C" fn(i32, *mut Timespec) -> i32;

/// A way to read the clock, chosen once.
#[derive(Clone, Copy)]
pub struct Clock {
    vdso: Option<VdsoClock>,
}

impl Clock {
    /// The vDSO's clock if this process has a vDSO that offers one, else the system call.
    #[must_use]
    pub fn best(auxv: &Auxv) -> Self {
        let address = auxv
            .vdso()
            // SAFETY: the kernel mapped its vDSO there for the life of the process.
            .and_then(|base| unsafe { vdso::symbol(base, VDSO_CLOCK_GETTIME) });
        // SAFETY: the symbol's type is documented in vdso(7): int (clockid_t, struct timespec *).
        let vdso = address.map(|at| unsafe { core::mem::transmute::<usize, VdsoClock>(at) });
        Self { vdso }.proved().unwrap_or(Self::system_call())
    }

    /// The same clock, if two readings are above 0 and in order; `None` if it cannot be
    /// read (a filter may deny the call) or stands still at 0.
    #[must_use]
    pub fn proved(self) -> Option<Self> {
        let (first, second) = (self.now_ns(), self.now_ns());
        (first > 0 && second >= first).then_some(self)
    }

    /// The system call, so that a tracer can see each reading.
    #[must_use]
    pub const fn system_call() -> Self {
        Self { vdso: None }
    }

    /// `vdso` or `syscall`: the path each reading takes.
    ///
    /// Under a clock source the vDSO cannot read, the kernel's code falls back to the
    /// system call by itself; the environment names the clock source beside this.
    #[must_use]
    pub const fn path(&self) -> &'static str {
        match self.vdso {
            Some(_) => "vdso",
            None => "syscall",
        }
    }

    /// Nanoseconds now.
    #[inline(always)]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        let mut time = Timespec {
            seconds: 0,
            nanoseconds: 0,
        };
        // CLOCK_MONOTONIC with a valid pointer fails only where a filter denies the call;
        // then the reading is 0, which `proved` finds out before anything is timed.
        match self.vdso {
            // SAFETY: `time` outlives the call; the function came from the vDSO.
            Some(read) => unsafe {
                read(CLOCK_MONOTONIC, &raw mut time);
            },
            // SAFETY: SYSCALL; the kernel writes one timespec into `time`.
            None => unsafe {
                let at = (&raw mut time) as usize;
                syscall6(nr::CLOCK_GETTIME, CLOCK_MONOTONIC as usize, at, 0, 0, 0, 0);
            },
        }
        time.seconds.cast_unsigned() * 1_000_000_000 + time.nanoseconds.cast_unsigned()
    }
}

/// Seconds since 1970-01-01 UTC, leap seconds not counted; for a record, not for
/// measuring. CLOCK_REALTIME, clock_gettime(2); the kernel refuses dates before 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    let at = (&raw mut time) as usize;
    // SAFETY: SYSCALL; the kernel writes one timespec into `time`.
    unsafe {
        syscall6(nr::CLOCK_GETTIME, CLOCK_REALTIME, at, 0, 0, 0, 0);
    }
    u64::try_from(time.seconds).unwrap_or(0)
}

/// CPU time of a process in nanoseconds, of all its threads and those that have ended: what it has run
/// for until it was last taken off a CPU, or a tick came (clock_getcpuclockid(3); kernel/sched/cputime.c,
/// `thread_group_cputime`). `None`: it is gone, the number is a thread's that is not the first, or the
/// kernel has no such clocks (CONFIG_POSIX_TIMERS).
#[must_use]
pub fn cpu_time_ns(pid: i32) -> Option<u64> {
    /// A process's, by the scheduler's reckoning; above these bits is the number, inverted
    /// (include/linux/posix-timers.h, `make_process_cpuclock`).
    const CPUCLOCK_SCHED: i32 = 2;
    let clock = ((!pid << 3) | CPUCLOCK_SCHED).cast_unsigned() as usize;
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    let at = (&raw mut time) as usize;
    // SAFETY: SYSCALL; the kernel writes one timespec into `time`.
    let done = unsafe { syscall6(nr::CLOCK_GETTIME, clock, at, 0, 0, 0, 0) };
    let nanoseconds = time.seconds.cast_unsigned() * 1_000_000_000;
    (done == 0).then_some(nanoseconds + time.nanoseconds.cast_unsigned())
}

/// Just enough ELF to find a function in the vDSO.
///
/// Layout: elf(5). The kernel builds this image itself, so its tables are trusted.
mod vdso {
    const PT_LOAD: u32 = 1;
    const PT_DYNAMIC: u32 = 2;
    const DT_HASH: u64 = 4;
    const DT_STRTAB: u64 = 5;
    const DT_SYMTAB: u64 = 6;
    const DT_GNU_HASH: u64 = 0x6fff_fef5;

    #[repr(C)]
    struct ElfHeader {
        ident: [u8; 16],
        kind: u16,
        machine: u16,
        version: u32,
        entry: u64,
        program_headers: u64,
        section_headers: u64,
        flags: u32,
        header_bytes: u16,
        program_header_bytes: u16,
        program_header_count: u16,
    }

    #[repr(C)]
    struct ProgramHeader {
        kind: u32,
        flags: u32,
        offset: u64,
        virtual_address: u64,
    }

    #[repr(C)]
    struct Symbol {
        name: u32,
        info: u8,
        other: u8,
        section: u16,
        value: u64,
        bytes: u64,
    }

    struct Tables {
        strings: usize,
        symbols: usize,
        count: usize,
    }

    /// The address of the defined symbol `name`.
    ///
    /// # Safety
    /// `base` must be where the kernel mapped the vDSO.
    pub(super) unsafe fn symbol(base: usize, name: &[u8]) -> Option<usize> {
        // SAFETY: the caller vouches for `base`.
        let (bias, dynamic) = unsafe { load_bias(base) }?;
        // SAFETY: `dynamic` came from the image's own program headers.
        let tables = unsafe { tables(bias, dynamic) }?;
        for index in 0..tables.count {
            // SAFETY: `index` is below the count the image's hash table gives.
            let symbol = unsafe { &*(tables.symbols as *const Symbol).add(index) };
            // SAFETY: names are offsets into the image's string table.
            let named = unsafe { is_named(tables.strings + symbol.name as usize, name) };
            if symbol.section != 0 && named {
                return Some(bias.wrapping_add(symbol.value as usize));
            }
        }
        None
    }

    /// (what to add to the image's addresses, address of its dynamic section).
    unsafe fn load_bias(base: usize) -> Option<(usize, usize)> {
        // SAFETY: an ELF header lies at `base` (AT_SYSINFO_EHDR).
        let header = unsafe { &*(base as *const ElfHeader) };
        let mut bias = None;
        let mut dynamic = None;
        for index in 0..usize::from(header.program_header_count) {
            let at = base
                + header.program_headers as usize
                + index * usize::from(header.program_header_bytes);
            // SAFETY: the header says how many program headers follow, and where.
            let program = unsafe { &*(at as *const ProgramHeader) };
            match program.kind {
                PT_LOAD if bias.is_none() => {
                    bias = Some(
                        (base + program.offset as usize)
                            .wrapping_sub(program.virtual_address as usize),
                    );
                }
                PT_DYNAMIC => dynamic = Some(base + program.offset as usize),
                _ => {}
            }
        }
        Some((bias?, dynamic?))
    }

    /// Symbol and string tables, and how many symbols there are.
    unsafe fn tables(bias: usize, dynamic: usize) -> Option<Tables> {
        let (mut strings, mut symbols, mut count) = (None, None, None);
        let mut at = dynamic as *const [u64; 2];
        loop {
            // SAFETY: the dynamic section is an array of pairs that ends with DT_NULL.
            let [tag, value] = unsafe { *at };
            let address = bias.wrapping_add(value as usize);
            match tag {
                0 => break,
                DT_STRTAB => strings = Some(address),
                DT_SYMTAB => symbols = Some(address),
                // SAFETY: the second word of DT_HASH is the number of symbols (gABI).
                DT_HASH => count = Some(unsafe { *(address as *const u32).add(1) } as usize),
                // SAFETY: `address` is the table the image names.
                DT_GNU_HASH if count.is_none() => count = Some(unsafe { gnu_hash_count(address) }),
                _ => {}
            }
            // SAFETY: DT_NULL has not been seen, so another pair follows.
            at = unsafe { at.add(1) };
        }
        Some(Tables {
            strings: strings?,
            symbols: symbols?,
            count: count?,
        })
    }

    /// Symbols in a GNU hash table: one past the end of the last chain.
    ///
    /// arm64 and newer x86 vDSOs carry no DT_HASH.
    unsafe fn gnu_hash_count(table: usize) -> usize {
        let words = table as *const u32;
        // SAFETY: four header words, then bloom words, buckets and chains, as the
        // header counts them (binutils' "GNU hash table" layout).
        unsafe {
            let (buckets, first, bloom) = (
                *words as usize,
                *words.add(1) as usize,
                *words.add(2) as usize,
            );
            let bucket_at = words.add(4 + bloom * 2);
            let chain_at = bucket_at.add(buckets);
            let mut last = 0;
            for index in 0..buckets {
                last = last.max(*bucket_at.add(index) as usize);
            }
            if last < first {
                return first;
            }
            // A chain ends with an entry whose lowest bit is set.
            while *chain_at.add(last - first) & 1 == 0 {
                last += 1;
            }
            last + 1
        }
    }

    unsafe fn is_named(string: usize, name: &[u8]) -> bool {
        let at = string as *const u8;
        let matches = name
            .iter()
            .enumerate()
            // SAFETY: stops at the first difference, so never reads past the string's NUL.
            .all(|(index, &byte)| unsafe { *at.add(index) } == byte);
        // SAFETY: all of `name` matched, so the string is at least that long plus its NUL.
        matches && unsafe { *at.add(name.len()) } == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn auxv() -> Auxv {
        let raw = std::fs::read("/proc/self/auxv").unwrap();
        let word = |bytes: &[u8]| usize::from_ne_bytes(bytes.try_into().unwrap());
        let pairs = raw
            .chunks_exact(16)
            .map(|pair| (word(&pair[..8]), word(&pair[8..])));
        // SAFETY: the kernel's own, of this process.
        unsafe { Auxv::from_pairs(pairs) }.unwrap()
    }

    #[test]
    fn both_paths_read_the_same_clock() {
        let auxv = auxv();
        let fast = Clock::best(&auxv);
        let slow = Clock::system_call();
        if auxv.vdso().is_some() {
            assert_eq!(fast.path(), "vdso");
        }
        // Readings in turn: each must lie between its neighbours.
        let readings = [slow.now_ns(), fast.now_ns(), slow.now_ns(), fast.now_ns()];
        assert!(readings.is_sorted(), "{readings:?}");
        assert!(readings[0] > 0);
    }

    #[test]
    fn the_date_is_the_systems() {
        let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let now = unix_seconds();
        let after = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        assert!((before..=after).contains(&now));
    }
}
