//! What pagemap shows of the tool itself: whether frame numbers are to be seen, and which frame a page
//! of its own has.

use crate::proc::pagemap::{Entry, file_offset};
use crate::sys::Errno;
use crate::sys::file::{Process, open_proc, read_words_at};
use rustix::fd::AsFd;

/// The entry of the page at `address`, which is in memory.
///
/// # Errors
/// As open(2) and read(2) of /proc/self/pagemap; `EIO` if it shows no page there.
pub fn own_entry(address: u64, page_bytes: u64) -> Result<Entry, Errno> {
    let pagemap = open_proc(Process::Myself, "pagemap")?;
    let mut word = [0];
    let read = read_words_at(pagemap.as_fd(), &mut word, file_offset(address, page_bytes))?;
    let entry = Entry(word[0]);
    match read == 1 && entry.present() {
        true => Ok(entry),
        false => Err(Errno::IO),
    }
}

#[cfg(test)]
mod tests {
    use super::own_entry;
    use crate::sys::Errno;

    #[test]
    fn a_page_of_the_stack_is_there_and_the_first_is_not() {
        let local = 7;
        let entry = own_entry((&raw const local).addr() as u64, 4096).unwrap();
        assert!(entry.anonymous() && entry.exclusive());
        assert_eq!(own_entry(0, 4096), Err(Errno::IO));
    }
}
