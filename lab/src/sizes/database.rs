//! A SQLite file of our own that nobody else opens.

use super::error::SizesError;
use rusqlite::Connection;
use std::path::Path;

/// KiB of pages that SQLite holds in memory, for each file.
const CACHE_KIB: u64 = 8192;

/// Makes the file `path` with `schema`. It is never recovered, so it has no journal, and is
/// not synchronised; neither changes its size.
pub(super) fn create(path: &Path, page_bytes: u64, schema: &str) -> Result<Connection, SizesError> {
    let database = Connection::open(path)?;
    database.execute_batch(&format!(
        "PRAGMA page_size = {page_bytes}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
         PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -{CACHE_KIB}; {schema}"
    ))?;
    Ok(database)
}

/// Bytes of the file, once everything is committed: its pages, among them none that is free,
/// since nothing is ever deleted.
pub(super) fn bytes(database: &Connection) -> Result<u64, SizesError> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let mut bytes = database.prepare_cached(sql)?;
    Ok(bytes.query_row([], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use std::fs;

    #[test]
    fn the_pages_are_the_file() {
        let scratch = Scratch::new().unwrap();
        for page_bytes in [512, 4096, 65536] {
            let path = scratch.path().join(format!("{page_bytes}"));
            let database = create(&path, page_bytes, "CREATE TABLE t(x)").unwrap();
            database
                .execute("INSERT INTO t VALUES (zeroblob(1000000))", [])
                .unwrap();
            let told = bytes(&database).unwrap();
            assert!(
                told > 1_000_000 && told.is_multiple_of(page_bytes),
                "{told}"
            );
            drop(database);
            assert_eq!(fs::metadata(&path).unwrap().len(), told);
        }
    }
}
