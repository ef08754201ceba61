//! The auxiliary vector: what the kernel told this process at exec.
//!
//! Source: getauxval(3). Read once from the initial stack by the entry code, so that it
//! is known before /proc is mounted (the appliance may be PID 1).

/// The entries the appliance uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auxv {
    /// Bytes in a page (`AT_PAGESZ`).
    pub page_bytes: usize,
    /// Where the vDSO's ELF header lies in this process (`AT_SYSINFO_EHDR`), if mapped.
    pub vdso: Option<usize>,
}

const AT_NULL: usize = 0;
const AT_PAGESZ: usize = 6;
const AT_SYSINFO_EHDR: usize = 33;

impl Auxv {
    /// Reads (type, value) pairs up to `AT_NULL`. `None` if no page size is among them.
    #[must_use]
    pub fn from_pairs(pairs: impl Iterator<Item = (usize, usize)>) -> Option<Self> {
        let mut page_bytes = 0;
        let mut vdso = None;
        for (kind, value) in pairs.take_while(|&(kind, _)| kind != AT_NULL) {
            match kind {
                AT_PAGESZ => page_bytes = value,
                AT_SYSINFO_EHDR if value != 0 => vdso = Some(value),
                _ => {}
            }
        }
        usize::is_power_of_two(page_bytes).then_some(Self { page_bytes, vdso })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_at_the_null_entry() {
        let pairs = [(6, 16384), (33, 0x7000), (0, 0), (6, 4096)];
        let auxv = Auxv::from_pairs(pairs.into_iter());
        let want = Auxv {
            page_bytes: 16384,
            vdso: Some(0x7000),
        };
        assert_eq!(auxv, Some(want));
    }

    #[test]
    fn a_vector_without_a_page_size_is_refused() {
        assert_eq!(Auxv::from_pairs([(33, 0x7000)].into_iter()), None);
        assert_eq!(Auxv::from_pairs([(6, 0)].into_iter()), None);
        assert_eq!(Auxv::from_pairs([(6, 5000)].into_iter()), None);
    }
}
