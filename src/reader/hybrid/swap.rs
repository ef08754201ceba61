//! Whether the machine's swap is in use.

use crate::proc::status;
use crate::sys::file::read_whole;
use crate::sys::machine::{Swap, swap};

/// Whether no page on this machine is in swap: one that is in memory, too, can be another
/// process's although only one maps it, and a pin would split it. Unknown is no.
#[must_use]
pub fn nothing_is_half_swapped() -> bool {
    let mut buffer = [0; 8192];
    let text = read_whole(c"/proc/meminfo", &mut buffer);
    text.is_ok_and(|text| swap().is_ok_and(|swap| is_unused(text, swap)))
}

/// By the call, over which nothing can be mounted, and by /proc/meminfo, which alone says what there is
/// while swap is taken away (SwapCached; mm/swapfile.c, `si_swapinfo`, calls all of that free). SwapCached
/// by itself is summed over processors now and then only, and may be 0 for a second although there
/// are such pages. In containers the file may be another one (lxcfs(1) puts one over it, with the
/// container's own swap or none): one that does not have the machine's swap is not believed.
fn is_unused(meminfo: &[u8], swap: Swap) -> bool {
    let kib = |name: &[u8]| status::kib_field(meminfo, name).unwrap_or(0);
    swap.free_kib == swap.total_kib
        && kib(b"SwapTotal") == swap.total_kib
        && kib(b"SwapCached") == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_swap_in_use_makes_bit_56_unsafe_whatever_one_of_them_says() {
        let file =
            |cached, total| std::format!("SwapCached:  {cached} kB\nSwapTotal:  {total} kB\n");
        for (meminfo, total_kib, free_kib, unused) in [
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
            let swap = Swap {
                total_kib,
                free_kib,
            };
            assert_eq!(is_unused(meminfo.as_bytes(), swap), unused, "{meminfo}");
        }
    }
}
