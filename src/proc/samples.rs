//! Kernel text for the tests: from Linux 6.18 on x86_64 unless another is named, shortened
//! by whole lines only where said.

/// Four VMAs: one of a file, two of a forked child's arena with a hole of 16 KiB between
/// them, and the last.
pub const SMAPS: &str = "\
563908a56000-563908a58000 r--p 00000000 fe:00 247282                     /usr/bin/head
Size:                  8 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                   8 kB
Pss:                   8 kB
Pss_Dirty:             0 kB
Shared_Clean:          0 kB
Shared_Dirty:          0 kB
Private_Clean:         8 kB
Private_Dirty:         0 kB
Referenced:            8 kB
Anonymous:             0 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
THPeligible:           0
VmFlags: rd mr mw me 
7f5a40000000-7f5a40010000 rw-p 00000000 00:00 0 
Size:                 64 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                  64 kB
Pss:                  32 kB
Pss_Dirty:            32 kB
Shared_Clean:          0 kB
Shared_Dirty:         64 kB
Private_Clean:         0 kB
Private_Dirty:         0 kB
Referenced:           64 kB
Anonymous:            64 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
THPeligible:           0
VmFlags: rd wr mr mw me nh ac 
7f5a40014000-7f5a40025000 rw-p 00000000 00:00 0                          [anon:an arena]
Size:                 68 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                  64 kB
Pss:                  48 kB
Pss_Dirty:            28 kB
Shared_Clean:          0 kB
Shared_Dirty:         32 kB
Private_Clean:        20 kB
Private_Dirty:        12 kB
Referenced:           60 kB
Anonymous:            64 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  4 kB
SwapPss:               4 kB
Locked:                0 kB
THPeligible:           0
ProtectionKey:         0
VmFlags: rd wr mr mw me nh ac 
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
Size:                  4 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                   0 kB
Pss:                   0 kB
Pss_Dirty:             0 kB
Shared_Clean:          0 kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:         0 kB
Referenced:            0 kB
Anonymous:             0 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
THPeligible:           0
VmFlags: ex 
";

/// In the form of Linux 2.6.38, the first with all the fields that are read: another
/// order, no VmFlags.
pub const SMAPS_2_6_38: &str = "\
00400000-00421000 r-xp 00000000 08:01 131094                             /bin/dash
Size:                132 kB
Rss:                 100 kB
Pss:                  60 kB
Shared_Clean:         80 kB
Shared_Dirty:          0 kB
Private_Clean:         0 kB
Private_Dirty:        20 kB
Referenced:          100 kB
Anonymous:            20 kB
AnonHugePages:         0 kB
Swap:                  0 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Locked:                0 kB
";

/// smaps_rollup.
pub const ROLLUP: &str = "\
56046ec12000-7ffe6f69f000 ---p 00000000 00:00 0                          [rollup]
Rss:                1656 kB
Pss:                 518 kB
Pss_Dirty:           112 kB
Pss_Anon:            112 kB
Pss_File:            406 kB
Pss_Shmem:             0 kB
Shared_Clean:       1468 kB
Shared_Dirty:          0 kB
Private_Clean:        76 kB
Private_Dirty:       112 kB
Referenced:         1656 kB
Anonymous:           112 kB
KSM:                   0 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
ShmemPmdMapped:        0 kB
FilePmdMapped:         0 kB
Shared_Hugetlb:        0 kB
Private_Hugetlb:       0 kB
Swap:                  0 kB
SwapPss:               0 kB
Locked:                0 kB
";

/// With majflt set to 7, so that it differs from its neighbours.
pub const STAT: &[u8] = b"3512 (cat) R 3505 3505 2739 0 -1 4194304 102 0 7 0 0 0 0 0 20 0 1 0 \
42659 3133440 409 18446744073709551615 94426578169856 94426578189737 140727559491264 0 0 0 0 0 \
0 0 0 0 17 1 0 0 0 0 0 94426578205744 94426578207360 94427424079872 140727559494173 \
140727559494193 140727559494193 140727559495659 0\n";

/// Shortened.
pub const STATUS: &[u8] = b"Name:\thead
Umask:\t0022
State:\tR (running)
Tgid:\t3513
Ngid:\t0
Pid:\t3513
PPid:\t3505
TracerPid:\t0
Uid:\t0\t0\t0\t0
Gid:\t0\t0\t0\t0
Groups:\t \nVmPeak:\t    2928 kB
VmSize:\t    2928 kB
VmHWM:\t    1764 kB
VmRSS:\t    1764 kB
VmSwap:\t       0 kB
untag_mask:\t0xffffffffffffffff
Threads:\t1
SigQ:\t0/96365
CapInh:\t0000000000000000
CapPrm:\t000001fffeffffff
CapEff:\t000001fffeffffff
Cpus_allowed_list:\t0-1
";

/// Its beginning.
pub const MEMINFO: &[u8] = b"MemTotal:       24684092 kB
MemFree:        24370700 kB
MemAvailable:   24359820 kB
Buffers:            2612 kB
Cached:           163820 kB
SwapCached:            0 kB
";

/// Shortened within the line.
pub const CMDLINE: &[u8] = b"mitigations=auto,no_guest_host console=ttyS0 quiet panic=1 \
random.trust_cpu=1 swiotlb=noforce psi=1 rdinit=/init -- --init addr=0.0.0.0:2024\n";

/// Shortened; two CPUs.
pub const CPUINFO_X86: &[u8] = b"processor\t: 0
vendor_id\t: AuthenticAMD
cpu family\t: 26
model\t\t: 2
model name\t: AMD EPYC
stepping\t: 1
cpu MHz\t\t: 2596.094
power management:

processor\t: 1
vendor_id\t: AuthenticAMD
model name\t: another

";

/// In the form of arch/arm64/kernel/cpuinfo.c.
pub const CPUINFO_ARM: &[u8] = b"processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1

processor\t: 1
CPU implementer\t: 0x41
CPU part\t: 0xd03

";
