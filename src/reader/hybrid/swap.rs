//! Whether the machine's swap is in use.

use crate::proc::status;
use crate::sys::file::read_whole;
use rustix::system::sysinfo;

/// KiB of the machine's swap, as sysinfo(2) has them: nothing can be mounted over a call.
#[derive(Clone, Copy)]
struct Swap {
    total: u64,
    free: u64,
}

impl Swap {
    fn now() -> Self {
        let info = sysinfo();
        let kib = |units| u64::from(info.mem_unit) * units / 1024;
        Self {
            total: kib(info.totalswap),
            free: kib(info.freeswap),
        }
    }
}

/// Whether no page on this machine is in swap: one that is in memory, too, can be another
/// process's although only one maps it, and a pin would split it. Unknown is no.
#[must_use]
pub fn nothing_is_half_swapped() -> bool {
    let mut buffer = [0; 8192];
    let text = read_whole(c"/proc/meminfo", &mut buffer);
    text.is_ok_and(|text| is_unused(text, Swap::now()))
}

/// By /proc/meminfo, too, which alone says what there is while swap is taken away (SwapCached;
/// mm/swapfile.c, `si_swapinfo`, calls all of that free). SwapCached by itself is summed over
/// processors now and then only, and may be 0 for a second although there are such pages. In
/// containers the file may be another one (lxcfs(1) puts one over it, with the container's own swap
/// or none): one that does not have the machine's swap is not believed.
fn is_unused(meminfo: &[u8], swap: Swap) -> bool {
    let kib = |name: &[u8]| status::kib_field(meminfo, name).unwrap_or(0);
    swap.free == swap.total && kib(b"SwapTotal") == swap.total && kib(b"SwapCached") == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_swap_in_use_makes_bit_56_unsafe_whatever_one_of_them_says() {
        let file =
            |cached, total| std::format!("SwapCached:  {cached} kB\nSwapTotal:  {total} kB\n");
        for (meminfo, total, free, unused) in [
            (file(0, 0), 0, 0, true),
            (file(0, 100), 100, 100, true),
            (file(0, 100), 100, 96, false),
            (file(4, 100), 100, 100, false),
            (file(4, 0), 0, 0, false),
            // Of a container, on a machine with swap.
            (file(0, 0), 100, 96, false),
            (file(0, 0), 100, 100, false),
            (file(0, 50), 100, 100, false),
            // Of a kernel without.
            ("MemTotal:  100 kB\n".into(), 0, 0, true),
        ] {
            let swap = Swap { total, free };
            assert_eq!(is_unused(meminfo.as_bytes(), swap), unused, "{meminfo}");
        }
    }

    /// The kernel's two accounts of the same.
    #[test]
    fn the_call_and_the_file_agree() {
        for _ in 0..100 {
            let swap = Swap::now();
            let text = std::fs::read("/proc/meminfo").unwrap();
            let kib = |name: &[u8]| status::kib_field(&text, name).unwrap_or(0);
            if (kib(b"SwapTotal"), kib(b"SwapFree")) == (swap.total, swap.free) {
                return;
            }
            // Swap came, went or was used in between.
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("never the same");
    }
}
