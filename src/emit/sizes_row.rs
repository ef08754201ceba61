//! The record of the lab's `sizes`: one number of roots.

use super::record::Status;
use crate::record;

record! {
    /// bytes(R) of the first `r` roots under three storage models.
    pub struct SizesRow<'a> = "sizes" {
        /// What `--label` said.
        label: &'a str,
        /// Roots, the first of the manifest.
        r: u64,
        /// Objects of these roots, each root's counted.
        objects: Option<u64>,
        /// Of these, distinct ones.
        distinct_objects: Option<u64>,
        /// Bytes of the distinct objects.
        distinct_bytes: Option<u64>,
        /// Bytes if each root has its own copy.
        bytes_private: Option<u64>,
        /// Bytes of a relational store, one blob an object.
        bytes_store: Option<u64>,
        /// Bytes of a relational store of segments and symbols.
        bytes_store_symbols: Option<u64>,
        /// Bytes of distinct content-defined chunks and their index.
        bytes_chunks: Option<u64>,
        /// Chunks, repeated ones counted.
        chunks: Option<u64>,
        /// Distinct chunks.
        distinct_chunks: Option<u64>,
        /// Bytes of the chunks' index.
        index_bytes: Option<u64>,
        /// Page size of the stores.
        page_size: u64,
        /// Average chunk size asked for.
        avg_chunk: u64,
        /// Whether it was measured.
        status: Status<'a>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::record::Record;

    /// The order that scripts rely on, as the protocol has it.
    const INTERFACE: &str = "record,label,r,objects,distinct_objects,distinct_bytes,bytes_private,bytes_store,\
        bytes_store_symbols,bytes_chunks,chunks,distinct_chunks,index_bytes,page_size,\
        avg_chunk,status";

    #[test]
    fn columns_are_the_interface() {
        let columns = SizesRow::COLUMNS.iter().copied();
        assert!(INTERFACE.split(',').skip(1).eq(columns));
    }
}
