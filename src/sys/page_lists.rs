//! The lists on which each CPU gathers pages before it moves them to the kernel's own lists (mm/swap.c,
//! `cpu_fbatches`). A page on one is referred to by it, for as long as it takes until the list is
//! full: up to 31 pages a list and CPU, and maybe hours.

use super::arch::{nr, syscall6};
use super::{Errno, check};

/// Empties the lists of all CPUs. Takes no privilege, and changes nothing else.
///
/// C form: `move_pages(0, 1, &page, &node, &status, 0)` of a page of our own and the node that it
/// is on, which `move_pages(0, 1, &page, NULL, &node, 0)` has told: so it stays where it is.
/// move_pages(2); mm/migrate.c, `do_pages_move`, begins by emptying the lists (`migrate_prep` from
/// Linux 2.6.29 on, `lru_cache_disable` since 5.13).
///
/// # Errors
/// `ENOSYS` (a kernel without CONFIG_NUMA, or without CONFIG_MIGRATION), `EPERM` (seccomp).
pub fn drain() -> Result<(), Errno> {
    let mut node = -1i32;
    let mut status = -1i32;
    // Written to, so it is in memory.
    let page = &raw const status as usize;
    ask(page, 0, (&raw mut node) as usize)?;
    ask(page, (&raw const node) as usize, (&raw mut status) as usize)
}

/// `move_pages` of one page of this process: `nodes` is 0 or where an `i32` lies, `status` where one
/// lies that is written.
fn ask(page: usize, nodes: usize, status: usize) -> Result<(), Errno> {
    const MYSELF: usize = 0;
    let at = (&raw const page) as usize;
    // SAFETY: SYSCALL; the kernel reads the address at `at` and one i32 at `nodes`, if that is not
    // 0, and writes one i32 at `status`: locals of the one caller, which live until it returns.
    check(unsafe { syscall6(nr::MOVE_PAGES, MYSELF, 1, at, nodes, status, 0) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::drain;
    use crate::sys::Errno;

    #[test]
    fn anybody_may_empty_the_lists() {
        assert!(matches!(drain(), Ok(()) | Err(Errno::NOSYS)));
    }
}
