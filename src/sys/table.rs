//! A growing list of plain values in memory of its own, which children do not get.

use super::{Errno, Region};
use core::marker::PhantomData;
use core::slice;

/// At most a fixed number of `T`.
#[derive(Debug)]
pub struct Table<T> {
    region: Region,
    len: usize,
    capacity: usize,
    kind: PhantomData<T>,
}

/// The table holds as many values as it was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

impl<T: Copy> Table<T> {
    /// Room for `capacity` values; pages are used as they are filled.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(capacity: usize) -> Result<Self, Errno> {
        let bytes = capacity.max(1).checked_mul(size_of::<T>());
        Ok(Self {
            region: Region::not_inherited(bytes.ok_or(Errno::NOMEM)?.max(1))?,
            len: 0,
            capacity,
            kind: PhantomData,
        })
    }

    /// Adds one.
    ///
    /// # Errors
    /// [`TableFull`].
    pub fn push(&mut self, value: T) -> Result<(), TableFull> {
        if self.len == self.capacity {
            return Err(TableFull);
        }
        let at = self.region.bytes_mut().as_mut_ptr().cast::<T>();
        // SAFETY: OWNED; `len` is below the capacity the region was sized for, and a
        // mapping is aligned to a page, more than any `T` needs.
        unsafe { at.add(self.len).write(value) };
        self.len += 1;
        Ok(())
    }

    /// The values added so far.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        let at = self.region.bytes_mut().as_mut_ptr().cast::<T>();
        // SAFETY: OWNED; the first `len` values have been written by `push`.
        unsafe { slice::from_raw_parts_mut(at, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_as_many_as_it_was_made_for() {
        let mut table = Table::new(2).unwrap();
        assert_eq!(table.as_mut_slice(), &mut [] as &mut [u32]);
        assert_eq!(table.push(7u32), Ok(()));
        assert_eq!(table.push(8), Ok(()));
        assert_eq!(table.push(9), Err(TableFull));
        assert_eq!(table.as_mut_slice(), [7, 8]);
    }

    #[test]
    fn too_many_to_address_is_an_error() {
        assert_eq!(Table::<u64>::new(usize::MAX).err(), Some(Errno::NOMEM));
    }
}
