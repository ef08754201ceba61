//! The relational stores: one with an object in one blob, one with its segments and symbols.
//! Objects are told apart by their bytes and kept under the path that was named first. A
//! symbol's name is a blob: nothing says that it is UTF-8.

use super::database;
use super::elf::{self, Piece, Symbol};
use super::error::SizesError;
use super::plan::Member;
use super::source::{self, Source};
use crate::host::{HostError, Interrupt};
use rusqlite::blob::Blob;
use rusqlite::{Connection, Row, params};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// How much of an object is copied at a time.
const BLOCK_BYTES: usize = 1 << 16;

const BLOBS: &str = "
    CREATE TABLE object(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, data BLOB NOT NULL);";

const SEGMENTS: &str = "
    CREATE TABLE object(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
    CREATE TABLE segment(id INTEGER PRIMARY KEY, object INTEGER NOT NULL, at INTEGER NOT NULL,
        address INTEGER, flags INTEGER, data BLOB NOT NULL);
    CREATE INDEX segment_object ON segment(object, at);
    CREATE TABLE symbol(id INTEGER PRIMARY KEY, object INTEGER NOT NULL, name BLOB NOT NULL,
        value INTEGER NOT NULL, size INTEGER NOT NULL, info INTEGER NOT NULL,
        undefined INTEGER NOT NULL);
    CREATE INDEX symbol_name ON symbol(name);";

/// Where objects are kept once each.
pub(super) trait Store {
    /// What to call it.
    fn name(&self) -> String;

    /// Keeps an object that it does not have yet.
    fn put(&mut self, object: &Member, interrupt: &Interrupt) -> Result<(), SizesError>;

    /// Everything since the last call is in the file from now on.
    fn commit(&mut self) -> Result<(), SizesError>;

    /// Gives the bytes of an object back.
    fn get(&mut self, object: u64, out: &mut dyn Write) -> Result<(), SizesError>;
}

/// One blob an object.
pub(super) struct Blobs(pub(super) Connection);

/// Segments, what lies between them, and symbols.
pub(super) struct Segments(pub(super) Connection);

impl Blobs {
    /// A new store in the file `path`.
    pub(super) fn create(path: &Path, page_bytes: u64) -> Result<Self, SizesError> {
        begun(database::create(path, page_bytes, BLOBS)?).map(Self)
    }
}

impl Segments {
    /// A new store in the file `path`.
    pub(super) fn create(path: &Path, page_bytes: u64) -> Result<Self, SizesError> {
        begun(database::create(path, page_bytes, SEGMENTS)?).map(Self)
    }
}

impl Store for Blobs {
    fn name(&self) -> String {
        "the store of blobs".to_owned()
    }

    fn put(&mut self, object: &Member, interrupt: &Interrupt) -> Result<(), SizesError> {
        let path = Path::new(&object.path);
        let file = source::open(path, interrupt)?;
        let sql = "INSERT INTO object VALUES (?1, ?2, zeroblob(?3))";
        let mut insert = self.0.prepare_cached(sql)?;
        insert.execute(params![object.id, object.path, object.bytes])?;
        let mut blob = self
            .0
            .blob_open("main", "object", "data", object.id, false)?;
        fill(&mut blob, &file, object.bytes, path)
    }

    fn commit(&mut self) -> Result<(), SizesError> {
        recommit(&self.0)
    }

    fn get(&mut self, object: u64, out: &mut dyn Write) -> Result<(), SizesError> {
        empty(&self.0, "object", object.cast_signed(), out)
    }
}

impl Store for Segments {
    fn name(&self) -> String {
        "the store of segments".to_owned()
    }

    fn put(&mut self, object: &Member, interrupt: &Interrupt) -> Result<(), SizesError> {
        let path = Path::new(&object.path);
        let file = source::open(path, interrupt)?;
        let sql = "INSERT INTO object VALUES (?1, ?2)";
        let mut insert = self.0.prepare_cached(sql)?;
        insert.execute(params![object.id, object.path])?;
        let pieces = elf::pieces(path, &file, object.bytes)?;
        for piece in pieces {
            self.put_piece(object, &piece, &file)?;
        }
        elf::symbols(path, &file, &mut |symbol| {
            super::go_on(interrupt)?;
            self.put_symbol(object.id, symbol)
        })
    }

    fn commit(&mut self) -> Result<(), SizesError> {
        recommit(&self.0)
    }

    fn get(&mut self, object: u64, out: &mut dyn Write) -> Result<(), SizesError> {
        let sql = "SELECT id FROM segment WHERE object = ?1 ORDER BY at";
        let mut segments = self.0.prepare_cached(sql)?;
        let id = |row: &Row<'_>| row.get::<_, i64>(0);
        for segment in segments.query_map([object], id)? {
            empty(&self.0, "segment", segment?, out)?;
        }
        Ok(())
    }
}

impl Segments {
    fn put_piece(
        &self,
        object: &Member,
        piece: &Piece,
        mut file: &Source<'_>,
    ) -> Result<(), SizesError> {
        let path = Path::new(&object.path);
        let sql = "INSERT INTO segment(object, at, address, flags, data)
                   VALUES (?1, ?2, ?3, ?4, zeroblob(?5))";
        // SQLite's integers are signed; an address keeps its bits.
        let address = piece.segment.map(|(address, _)| address.cast_signed());
        let flags = piece.segment.map(|(_, flags)| flags);
        let mut insert = self.0.prepare_cached(sql)?;
        insert.execute(params![object.id, piece.at, address, flags, piece.bytes])?;
        let id = self.0.last_insert_rowid();
        let mut blob = self.0.blob_open("main", "segment", "data", id, false)?;
        let found = file.seek(SeekFrom::Start(piece.at));
        found.map_err(HostError::file("read", path))?;
        fill(&mut blob, file, piece.bytes, path)
    }

    fn put_symbol(&self, object: i64, symbol: &Symbol<'_>) -> Result<(), SizesError> {
        let sql = "INSERT INTO symbol(object, name, value, size, info, undefined)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (value, size) = (symbol.value.cast_signed(), symbol.size.cast_signed());
        let mut insert = self.0.prepare_cached(sql)?;
        insert.execute(params![
            object,
            symbol.name,
            value,
            size,
            symbol.info,
            symbol.undefined
        ])?;
        Ok(())
    }
}

/// A store is always within a transaction, which `commit` ends and begins.
pub(super) fn begun(database: Connection) -> Result<Connection, SizesError> {
    database.execute_batch("BEGIN")?;
    Ok(database)
}

pub(super) fn recommit(database: &Connection) -> Result<(), SizesError> {
    Ok(database.execute_batch("COMMIT; BEGIN")?)
}

/// Copies `bytes` bytes into a blob of that size.
fn fill(blob: &mut Blob<'_>, file: &Source<'_>, bytes: u64, path: &Path) -> Result<(), SizesError> {
    let mut left = file.take(bytes);
    let mut block = vec![0; BLOCK_BYTES];
    let mut copied = 0;
    loop {
        let read = left.read(&mut block);
        let read = read.map_err(HostError::file("read", path))?;
        if read == 0 {
            break;
        }
        let written = blob.write_all(&block[..read]);
        written.map_err(HostError::file("store", path))?;
        copied += read as u64;
    }
    if copied < bytes {
        return Err(SizesError::object(path, "has become shorter"));
    }
    Ok(())
}

fn empty(store: &Connection, table: &str, row: i64, out: &mut dyn Write) -> Result<(), SizesError> {
    let mut blob = store.blob_open("main", table, "data", row, true)?;
    io::copy(&mut blob, out).map_err(HostError::file("read", Path::new("a store")))?;
    Ok(())
}
