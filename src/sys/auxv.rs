//! The auxiliary vector: what the kernel told this process at exec.
//!
//! Source: getauxval(3). Read once from the initial stack by the entry code, so that it
//! is known before /proc is mounted (the appliance may be PID 1).

/// The entries the appliance uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auxv {
    page_bytes: usize,
    vdso: Option<usize>,
}

const AT_NULL: usize = 0;
const AT_PAGESZ: usize = 6;
const AT_SYSINFO_EHDR: usize = 33;

impl Auxv {
    /// Bytes in a page (`AT_PAGESZ`).
    #[must_use]
    pub const fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Where the vDSO's ELF header lies in this process (`AT_SYSINFO_EHDR`), if mapped.
    pub(super) const fn vdso(&self) -> Option<usize> {
        self.vdso
    }

    /// Reads (type, value) pairs up to `AT_NULL`. `None` if no page size is among them.
    ///
    /// # Safety
    /// They are the ones that the kernel gave this process: the vDSO is where they say.
    #[must_use]
    pub unsafe fn from_pairs(pairs: impl Iterator<Item = (usize, usize)>) -> Option<Self> {
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
        // SAFETY: nothing looks at the vDSO of this value.
        let auxv = unsafe { Auxv::from_pairs(pairs.into_iter()) };
        let want = Auxv {
            page_bytes: 16384,
            vdso: Some(0x7000),
        };
        assert_eq!(auxv, Some(want));
    }

    #[test]
    fn a_vector_without_a_page_size_is_refused() {
        for pairs in [[(33, 0x7000)], [(6, 0)], [(6, 5000)]] {
            // SAFETY: nothing looks at the vDSO of this value.
            assert_eq!(unsafe { Auxv::from_pairs(pairs.into_iter()) }, None);
        }
    }
}
