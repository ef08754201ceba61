//! What is to be stored: roots, their objects, and what each object is. It stands in a file
//! of its own, so that memory does not grow with the manifest.

use super::database;
use super::digest::{Hash, Hashing};
use super::elf::{self, LEVELS};
use super::error::SizesError;
use crate::host::HostError;
use crate::text::printable;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::fs::File;
use std::io::{self, BufRead, Read, Seek};
use std::path::{Path, PathBuf};

const SCHEMA: &str = "
    CREATE TABLE root(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE object(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
        bytes INTEGER NOT NULL DEFAULT 0, hash BLOB, level INTEGER NOT NULL DEFAULT 0,
        stored INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE member(root INTEGER NOT NULL, object INTEGER NOT NULL,
        PRIMARY KEY(root, object)) WITHOUT ROWID;";

/// The longest line of a manifest in bytes: two paths of PATH_MAX.
const LINE_MAX: u64 = 8192;

/// The largest object in bytes: SQLite's own limit of a blob.
const BLOB_MAX: u64 = 1_000_000_000;

/// How many objects a message names.
const NAMED_MAX: usize = 20;

/// An object of a root.
pub(super) struct Member {
    pub(super) id: i64,
    pub(super) path: String,
    pub(super) bytes: u64,
    /// Whether it is already in the stores.
    pub(super) stored: bool,
}

/// The plan.
pub(super) struct Plan {
    database: Connection,
    pub(super) roots: u64,
    pub(super) objects: u64,
}

impl Plan {
    /// Reads a manifest into the new file `path`.
    pub(super) fn read(path: &Path, manifest: &mut dyn BufRead) -> Result<Self, SizesError> {
        let database = database::create(path, 4096, SCHEMA)?;
        database.execute_batch("BEGIN")?;
        lines(manifest, &mut |root, object| add(&database, root, object))?;
        database.execute_batch("COMMIT")?;
        let count = |sql| database.query_row(sql, [], |row| row.get(0));
        let roots = count("SELECT count(*) FROM root")?;
        let objects = count("SELECT count(*) FROM object")?;
        if objects == 0 {
            return Err(SizesError::Empty);
        }
        Ok(Self {
            database,
            roots,
            objects,
        })
    }

    /// The path of an object; numbers go from 1 to `objects`.
    pub(super) fn path(&self, id: u64) -> Result<PathBuf, SizesError> {
        let sql = "SELECT path FROM object WHERE id = ?1";
        let mut path = self.database.prepare_cached(sql)?;
        let path: String = path.query_row([id], |row| row.get(0))?;
        Ok(path.into())
    }

    /// Reads an object once: its size, its hash, its strip level.
    pub(super) fn look_at(&self, id: u64) -> Result<(), SizesError> {
        let path = self.path(id)?;
        let (bytes, hash, level) = facts(&path)?;
        let sql = "UPDATE object SET bytes = ?2, hash = ?3, level = ?4 WHERE id = ?1";
        let mut update = self.database.prepare_cached(sql)?;
        update.execute(params![id, bytes, hash, level])?;
        Ok(())
    }

    /// The hash of an object that was looked at.
    pub(super) fn hash(&self, id: u64) -> Result<Hash, SizesError> {
        let sql = "SELECT hash FROM object WHERE id = ?1";
        let mut hash = self.database.prepare_cached(sql)?;
        Ok(hash.query_row([id], |row| row.get(0))?)
    }

    /// Refuses objects that are not stripped alike, else says how they are. What is no ELF
    /// file has nothing to strip.
    pub(super) fn strip_level(&self) -> Result<&'static str, SizesError> {
        let sql = "SELECT level, count(*) FROM object WHERE level > 0 GROUP BY level
                   ORDER BY count(*) DESC, min(id)";
        let mut levels = self.database.prepare(sql)?;
        let read = |row: &Row<'_>| Ok((row.get::<_, usize>(0)?, row.get::<_, u64>(1)?));
        let levels: Vec<_> = levels.query_map([], read)?.collect::<Result<_, _>>()?;
        let Some((norm, count)) = levels.first().copied() else {
            return Ok(LEVELS[0]);
        };
        if levels.len() == 1 {
            return Ok(LEVELS[norm]);
        }
        let others: u64 = levels[1..].iter().map(|(_, count)| count).sum();
        Err(SizesError::Strip {
            norm: format!("{count} objects are {}", LEVELS[norm]),
            odd: format!("{others} not so: {}", self.odd(norm, others)?),
        })
    }

    fn odd(&self, norm: usize, others: u64) -> Result<String, SizesError> {
        let sql = "SELECT path, level FROM object WHERE level NOT IN (0, ?1) ORDER BY id LIMIT ?2";
        let mut odd = self.database.prepare(sql)?;
        let name = |row: &Row<'_>| {
            let (path, level): (String, usize) = (row.get(0)?, row.get(1)?);
            Ok(format!(
                "{} ({})",
                printable(path.as_bytes()),
                LEVELS[level]
            ))
        };
        let named = odd.query_map(params![norm, NAMED_MAX], name)?;
        let named: Vec<String> = named.collect::<Result<_, _>>()?;
        let more = match others.saturating_sub(NAMED_MAX as u64) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(named.join(", ") + &more)
    }

    /// The objects of a root, in the order of the manifest; roots go from 1 to `roots`.
    pub(super) fn members(&self, root: u64) -> Result<Vec<Member>, SizesError> {
        let sql = "SELECT id, path, bytes, stored FROM member JOIN object ON id = object
                   WHERE root = ?1 ORDER BY id";
        let mut members = self.database.prepare_cached(sql)?;
        let read = |row: &Row<'_>| {
            Ok(Member {
                id: row.get(0)?,
                path: row.get(1)?,
                bytes: row.get(2)?,
                stored: row.get(3)?,
            })
        };
        Ok(members.query_map([root], read)?.collect::<Result<_, _>>()?)
    }

    /// Remembers that an object is in the stores.
    pub(super) fn is_stored(&self, id: i64) -> Result<(), SizesError> {
        let sql = "UPDATE object SET stored = 1 WHERE id = ?1";
        self.database.prepare_cached(sql)?.execute([id])?;
        Ok(())
    }

    /// Everything that `work` changes is written at once.
    pub(super) fn at_once<T>(
        &self,
        work: impl FnOnce() -> Result<T, SizesError>,
    ) -> Result<T, SizesError> {
        self.database.execute_batch("BEGIN")?;
        let done = work()?;
        self.database.execute_batch("COMMIT")?;
        Ok(done)
    }
}

/// Hands every line's root and object to `take`. Blank lines and those that begin with `#`
/// are none.
fn lines(
    manifest: &mut dyn BufRead,
    take: &mut dyn FnMut(&str, &str) -> Result<(), SizesError>,
) -> Result<(), SizesError> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut limited = Read::take(&mut *manifest, LINE_MAX + 1);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(SizesError::Unreadable)?;
        if line.is_empty() {
            break;
        }
        let fields = fields(&line).map_err(|problem| SizesError::Manifest {
            line: number,
            problem,
        })?;
        if let Some((root, object)) = fields {
            take(root, object)?;
        }
    }
    Ok(())
}

fn fields(line: &[u8]) -> Result<Option<(&str, &str)>, &'static str> {
    if line.len() as u64 > LINE_MAX {
        return Err("it is longer than two paths can be");
    }
    let line = std::str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let line = line.trim_end_matches(['\n', '\r']);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (root, object) = line.split_once('\t').ok_or("it has no tab")?;
    match (root, object) {
        ("", _) => Err("it names no root"),
        (_, "") => Err("it names no object"),
        (_, object) if object.contains('\t') => Err("it has more than one tab"),
        both => Ok(Some(both)),
    }
}

fn add(plan: &Connection, root: &str, object: &str) -> Result<(), SizesError> {
    let root = number(plan, "root", "name", root)?;
    let object = number(plan, "object", "path", object)?;
    let sql = "INSERT OR IGNORE INTO member VALUES (?1, ?2)";
    plan.prepare_cached(sql)?.execute([root, object])?;
    Ok(())
}

/// The number of a row of `table` by its `key`; it is made if it is new.
fn number(plan: &Connection, table: &str, key: &str, value: &str) -> Result<i64, SizesError> {
    let find = format!("SELECT id FROM {table} WHERE {key} = ?1");
    let found = plan
        .prepare_cached(&find)?
        .query_row([value], |row| row.get(0));
    if let Some(id) = found.optional()? {
        return Ok(id);
    }
    let make = format!("INSERT INTO {table}({key}) VALUES (?1)");
    plan.prepare_cached(&make)?.execute([value])?;
    Ok(plan.last_insert_rowid())
}

fn facts(path: &Path) -> Result<(u64, Hash, usize), SizesError> {
    let mut file = open(path)?;
    let level = elf::level(path, &file)?;
    let mut hash = Hashing::default();
    let copied = file.rewind().and_then(|()| io::copy(&mut file, &mut hash));
    let bytes = copied.map_err(HostError::file("read", path))?;
    if bytes > BLOB_MAX {
        return Err(SizesError::object(
            path,
            "is larger than a blob of SQLite can be",
        ));
    }
    Ok((bytes, hash.hash(), level))
}

/// Opens an object. What is no regular file is refused before it is opened: a FIFO would
/// not answer.
pub(super) fn open(path: &Path) -> Result<File, SizesError> {
    let about = path.metadata().map_err(HostError::file("open", path))?;
    if !about.is_file() {
        return Err(SizesError::object(path, "is not a regular file"));
    }
    Ok(File::open(path).map_err(HostError::file("open", path))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_root_and_an_object() {
        let fine: [(&[u8], _); 5] = [
            (b"a\t/b\n", Some(("a", "/b"))),
            (b"a b\t/c d\r\n", Some(("a b", "/c d"))),
            (b"a\t/b", Some(("a", "/b"))),
            (b"\n", None),
            (b"# skipped\n", None),
        ];
        for (line, wanted) in fine {
            assert_eq!(fields(line), Ok(wanted));
        }
        for line in [
            &b"a /b\n"[..],
            b"\t/b\n",
            b"a\t\n",
            b"a\tb\tc\n",
            b"\xff\tb\n",
            &[b'x'; 9000],
        ] {
            assert!(fields(line).is_err(), "{line:?}");
        }
    }
}
