//! Content-defined chunks: each distinct one once in a pack, and an index that says where.
//! The index is a SQLite file like the stores; the chunks themselves are not in it.

use super::database;
use super::error::SizesError;
use super::plan::Member;
use super::source;
use super::store::{Store, begun, recommit};
use crate::digest;
use crate::host::{HostError, Interrupt};
use fastcdc::v2020::{self, StreamCDC};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "
    CREATE TABLE chunk(hash BLOB PRIMARY KEY, at INTEGER NOT NULL, bytes INTEGER NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE object(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, recipe BLOB NOT NULL);";

/// A part of an object in its recipe: where in the pack, and how long.
const PART_BYTES: usize = 12;

/// The smallest chunk but an object's last is the average over this, the largest the average
/// times this.
pub(super) const SPREAD: u64 = 4;

/// The averages that FastCDC takes, smallest and largest in bytes.
pub(crate) const AVERAGES: [u64; 2] = [v2020::AVERAGE_MIN as u64, v2020::AVERAGE_MAX as u64];

/// The chunks of one average size.
pub(super) struct Chunks {
    index: Connection,
    pack: BufWriter<File>,
    pack_path: PathBuf,
    /// The average that was asked for, in bytes.
    pub(super) average: u64,
    /// Chunks of all objects, and how many were new.
    pub(super) chunks: u64,
    pub(super) distinct: u64,
    /// Bytes of the pack.
    pub(super) pack_bytes: u64,
}

impl Chunks {
    /// A new store in `directory`.
    pub(super) fn create(
        directory: &Path,
        average: u64,
        page_bytes: u64,
    ) -> Result<Self, SizesError> {
        let index = directory.join(format!("index-{average}"));
        let pack_path = directory.join(format!("pack-{average}"));
        let pack = File::create_new(&pack_path);
        Ok(Self {
            index: begun(database::create(&index, page_bytes, SCHEMA)?)?,
            pack: BufWriter::new(pack.map_err(HostError::file("write", &pack_path))?),
            pack_path,
            average,
            chunks: 0,
            distinct: 0,
            pack_bytes: 0,
        })
    }

    /// Bytes of the index.
    pub(super) fn index_bytes(&self) -> Result<u64, SizesError> {
        database::bytes(&self.index)
    }

    /// Where the chunk is in the pack; it is put there if it is new.
    fn place(&mut self, data: &[u8]) -> Result<u64, SizesError> {
        let hash = digest::hash(data);
        let mut find = self
            .index
            .prepare_cached("SELECT at FROM chunk WHERE hash = ?1")?;
        self.chunks += 1;
        if let Some(at) = find.query_row([hash], |row| row.get(0)).optional()? {
            return Ok(at);
        }
        let at = self.pack_bytes;
        let written = self.pack.write_all(data);
        written.map_err(HostError::file("write", &self.pack_path))?;
        let sql = "INSERT INTO chunk VALUES (?1, ?2, ?3)";
        let mut insert = self.index.prepare_cached(sql)?;
        insert.execute(params![hash, at, data.len()])?;
        self.distinct += 1;
        self.pack_bytes += data.len() as u64;
        Ok(at)
    }

    fn recipe(&mut self, path: &Path, interrupt: &Interrupt) -> Result<Vec<u8>, SizesError> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let [least, average, most] = [self.average / SPREAD, self.average, self.average * SPREAD];
        let source = source::open(path, interrupt)?;
        let mut recipe = Vec::new();
        for chunk in StreamCDC::new(&source, size(least), size(average), size(most)) {
            let chunk = chunk.map_err(io::Error::from);
            let data = chunk.map_err(HostError::file("read", path))?.data;
            let at = self.place(&data)?;
            // A chunk is 16 MiB at most.
            let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
            recipe.extend(at.to_le_bytes());
            recipe.extend(bytes.to_le_bytes());
        }
        Ok(recipe)
    }
}

impl Store for Chunks {
    fn name(&self) -> String {
        format!("chunks of {} bytes", self.average)
    }

    fn put(&mut self, object: &Member, interrupt: &Interrupt) -> Result<(), SizesError> {
        let recipe = self.recipe(Path::new(&object.path), interrupt)?;
        let sql = "INSERT INTO object VALUES (?1, ?2, ?3)";
        let mut insert = self.index.prepare_cached(sql)?;
        insert.execute(params![object.id, object.path, recipe])?;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SizesError> {
        let flushed = self.pack.flush();
        flushed.map_err(HostError::file("write", &self.pack_path))?;
        recommit(&self.index)
    }

    fn get(&mut self, object: u64, out: &mut dyn Write) -> Result<(), SizesError> {
        let sql = "SELECT recipe FROM object WHERE id = ?1";
        let mut recipe = self.index.prepare_cached(sql)?;
        let read = |row: &Row<'_>| row.get::<_, Vec<u8>>(0);
        let recipe = recipe.query_row([object], read)?;
        let copied = File::open(&self.pack_path).and_then(|mut pack| {
            recipe
                .chunks(PART_BYTES)
                .try_for_each(|part| copy(&mut pack, part, out))
        });
        Ok(copied.map_err(HostError::file("read", &self.pack_path))?)
    }
}

fn copy(pack: &mut File, part: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let short = || io::Error::from(io::ErrorKind::InvalidData);
    let (at, rest) = part.split_first_chunk().ok_or_else(short)?;
    let (bytes, _) = rest.split_first_chunk().ok_or_else(short)?;
    pack.seek(SeekFrom::Start(u64::from_le_bytes(*at)))?;
    let bytes = u64::from(u32::from_le_bytes(*bytes));
    io::copy(&mut pack.take(bytes), out)?;
    Ok(())
}
