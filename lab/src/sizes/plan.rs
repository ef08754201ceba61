//! What is to be stored: roots, their objects, and what each object is. It stands in a file
//! of its own, so that memory does not grow with the manifest.

use super::database;
use super::elf::{self, LEVELS};
use super::error::SizesError;
use super::source;
use crate::digest::{Hash, Hashing};
use crate::host::{HostError, Interrupt};
use crate::text::printable;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::io::{self, BufRead, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "
    CREATE TABLE root(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE object(id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
        bytes INTEGER NOT NULL DEFAULT 0, hash BLOB, level INTEGER NOT NULL DEFAULT 0,
        device INTEGER, inode INTEGER, first INTEGER, file INTEGER,
        stored INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX object_hash ON object(hash, device, inode);
    CREATE TABLE member(root INTEGER NOT NULL, object INTEGER NOT NULL,
        PRIMARY KEY(root, object)) WITHOUT ROWID;
    CREATE INDEX member_object ON member(object, root);";

/// The longest line of a manifest in bytes: two paths of PATH_MAX.
const LINE_MAX: u64 = 8192;

/// The largest object in bytes: SQLite's limit of a row (`SQLITE_MAX_LENGTH`), less what else
/// is in it, a path and a few numbers.
const BLOB_MAX: u64 = 1_000_000_000 - LINE_MAX - 64;

/// How many objects the error names; more are named in a line each.
const NAMED_MAX: u64 = 20;

/// A file of a root: the first object with its bytes, under the path that was named first.
pub(super) struct Member {
    pub(super) id: i64,
    pub(super) path: String,
    pub(super) bytes: u64,
}

/// What is found out about an object.
struct Facts {
    bytes: u64,
    hash: Hash,
    level: usize,
    device: u64,
    inode: u64,
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

    /// Reads an object once: its size, its hash, its strip level, and whether an earlier one is
    /// the same. `Some`: why it cannot be stored.
    pub(super) fn look_at(
        &self,
        id: u64,
        interrupt: &Interrupt,
    ) -> Result<Option<SizesError>, SizesError> {
        let path = self.path(id)?;
        let facts = match facts(&path, interrupt) {
            Ok(facts) => facts,
            Err(error) => return Ok(Some(error)),
        };
        // SQLite's integers are signed; these keep their bits.
        let [device, inode] = [facts.device, facts.inode].map(u64::cast_signed);
        let sql = "UPDATE object SET bytes = ?2, hash = ?3, level = ?4, device = ?5, inode = ?6,
                   first = ifnull((SELECT first FROM object WHERE hash = ?3 LIMIT 1), id),
                   file = ifnull((SELECT file FROM object
                       WHERE hash = ?3 AND device = ?5 AND inode = ?6 LIMIT 1), id)
                   WHERE id = ?1";
        let mut update = self.database.prepare_cached(sql)?;
        update.execute(params![
            id,
            facts.bytes,
            facts.hash,
            facts.level,
            device,
            inode
        ])?;
        Ok(None)
    }

    /// The first root that has an object.
    pub(super) fn root_of(&self, object: u64) -> Result<u64, SizesError> {
        let sql = "SELECT min(root) FROM member WHERE object = ?1";
        let mut root = self.database.prepare_cached(sql)?;
        Ok(root.query_row([object], |row| row.get(0))?)
    }

    /// The root with which an object came into the stores; `None`: it is not there.
    pub(super) fn stored_by(&self, id: u64) -> Result<Option<u64>, SizesError> {
        let sql = "SELECT stored FROM object WHERE id = ?1 AND stored";
        let mut root = self.database.prepare_cached(sql)?;
        Ok(root.query_row([id], |row| row.get(0)).optional()?)
    }

    /// The hash of an object that is in the stores; `None`: it is not.
    pub(super) fn stored_hash(&self, id: u64) -> Result<Option<Hash>, SizesError> {
        let sql = "SELECT hash FROM object WHERE id = ?1 AND stored";
        let mut hash = self.database.prepare_cached(sql)?;
        Ok(hash.query_row([id], |row| row.get(0)).optional()?)
    }

    /// Refuses objects that are not stripped alike, else says how they are. What is no ELF
    /// file has nothing to strip. If an error cannot name all that are odd, `say` does.
    pub(super) fn strip_level(&self, say: &dyn Fn(&str)) -> Result<&'static str, SizesError> {
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
            norm: match count {
                1 => format!("1 object is {}", LEVELS[norm]),
                count => format!("{count} objects are {}", LEVELS[norm]),
            },
            odd: format!("{others} not so: {}", self.odd(norm, others, say)?),
        })
    }

    fn odd(&self, norm: usize, others: u64, say: &dyn Fn(&str)) -> Result<String, SizesError> {
        let sql = "SELECT path, level FROM object WHERE level NOT IN (0, ?1) ORDER BY id";
        let mut odd = self.database.prepare(sql)?;
        let name = |row: &Row<'_>| {
            let (path, level): (String, usize) = (row.get(0)?, row.get(1)?);
            Ok(format!(
                "{} ({})",
                printable(path.as_bytes()),
                LEVELS[level]
            ))
        };
        let mut named = odd.query_map([norm], name)?;
        if others <= NAMED_MAX {
            let named: Vec<String> = named.collect::<Result<_, _>>()?;
            return Ok(named.join(", "));
        }
        named.try_for_each(|name| {
            say(&format!("not so: {}", name?));
            Ok::<(), SizesError>(())
        })?;
        Ok("they are named above".to_owned())
    }

    /// The files of a root, in the order of the manifest; roots go from 1 to `roots`. A file
    /// that has several paths is one.
    pub(super) fn members(&self, root: u64) -> Result<Vec<Member>, SizesError> {
        let sql = "SELECT first.id, first.path, first.bytes
                   FROM member JOIN object AS named ON named.id = object
                   JOIN object AS first ON first.id = named.first
                   WHERE root = ?1 GROUP BY named.file ORDER BY min(named.id)";
        let mut members = self.database.prepare_cached(sql)?;
        let read = |row: &Row<'_>| {
            Ok(Member {
                id: row.get(0)?,
                path: row.get(1)?,
                bytes: row.get(2)?,
            })
        };
        Ok(members.query_map([root], read)?.collect::<Result<_, _>>()?)
    }

    /// Whether an object is not in the stores, where it counts as being from `root` on.
    pub(super) fn is_new(&self, id: i64, root: u64) -> Result<bool, SizesError> {
        let sql = "UPDATE object SET stored = ?2 WHERE id = ?1 AND NOT stored";
        let new = self
            .database
            .prepare_cached(sql)?
            .execute(params![id, root])?;
        Ok(new == 1)
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

/// What some editors put at the beginning of a file in UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

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
        let text = line.strip_prefix(BOM).filter(|_| number == 1);
        let fields = fields(text.unwrap_or(&line)).map_err(|problem| SizesError::Manifest {
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

fn facts(path: &Path, interrupt: &Interrupt) -> Result<Facts, SizesError> {
    let source = source::open(path, interrupt)?;
    let about = source.file().metadata();
    let about = about.map_err(HostError::file("read", path))?;
    if about.len() > BLOB_MAX {
        let problem = "is larger than a row of SQLite can be, 1 GB";
        return Err(SizesError::object(path, problem));
    }
    let level = elf::level(path, &source)?;
    // Whether they can be read.
    elf::symbols(path, &source, &mut |_| Ok(()))?;
    let (mut input, mut hash) = (&source, Hashing::default());
    let copied = input
        .rewind()
        .and_then(|()| io::copy(&mut input, &mut hash));
    Ok(Facts {
        bytes: copied.map_err(HostError::file("read", path))?,
        hash: hash.hash(),
        level,
        device: about.dev(),
        inode: about.ino(),
    })
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

    #[test]
    fn a_mark_of_utf_8_is_part_of_no_name() {
        let mut roots = Vec::new();
        let mut text = "\u{feff}a\t/b\na\t/c\n".as_bytes();
        let taken = lines(&mut text, &mut |root, _| {
            roots.push(root.to_owned());
            Ok(())
        });
        assert!(taken.is_ok());
        assert_eq!(roots, ["a", "a"]);
    }
}
