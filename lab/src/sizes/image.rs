//! The tables of an ELF file, read from the file as they are asked for. A string table is read
//! whole, since a name may be of any length; a section table without names is one (gABI,
//! `e_shstrndx`: `SHN_UNDEF`). An error of reading is told from a table that makes no sense.

use super::error::SizesError;
use crate::host::HostError;
use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::read::{self, ReadCache, ReadRef, StringTable};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// A header of either class, in either byte order.
pub(super) trait Header: FileHeader<Endian = Endianness> {}
impl<H: FileHeader<Endian = Endianness>> Header for H {}

/// What is looked for in an ELF file of either class.
pub(super) trait Look {
    /// What it gives.
    type Found;

    /// Looks at the tables.
    ///
    /// # Errors
    /// [`SizesError::Elf`] and what the look has of its own.
    fn look<'d, H: Header, R: ReadRef<'d>>(
        self,
        tables: &Tables<'d, H, R>,
    ) -> Result<Self::Found, SizesError>;
}

/// The tables.
pub(super) struct Tables<'d, H: Header, R: ReadRef<'d>> {
    pub(super) endian: Endianness,
    pub(super) data: R,
    pub(super) header: &'d H,
    pub(super) segments: &'d [H::ProgramHeader],
    pub(super) sections: SectionTable<'d, H, R>,
    /// Whether sections have names.
    pub(super) named: bool,
}

impl<'d, H: Header, R: ReadRef<'d>> Tables<'d, H, R> {
    fn parse(data: R) -> read::Result<Self> {
        let header = H::parse(data)?;
        let endian = header.endian()?;
        let sections = header.section_headers(endian, data)?;
        let named = header.e_shstrndx(endian) != elf::SHN_UNDEF;
        let strings = match named {
            true => header.section_strings(endian, data, sections)?,
            false => StringTable::default(),
        };
        Ok(Self {
            endian,
            data,
            header,
            segments: header.program_headers(endian, data)?,
            sections: SectionTable::new(sections, strings),
            named,
        })
    }

    /// Segments that are loaded.
    pub(super) fn loaded(&self) -> impl Iterator<Item = &'d H::ProgramHeader> {
        let endian = self.endian;
        let segments = self.segments.iter();
        segments.filter(move |segment| segment.p_type(endian) == elf::PT_LOAD)
    }

    /// Whether code has no bytes, which `objcopy --only-keep-debug` leaves so: such a file is
    /// for debuggers alone. A PowerPC linker makes a `.plt` of that kind, too.
    pub(super) fn is_for_debuggers(&self) -> read::Result<bool> {
        for section in self.sections.iter() {
            let flags: u64 = section.sh_flags(self.endian).into();
            let is_code = flags & u64::from(elf::SHF_EXECINSTR) != 0;
            if is_code
                && section.sh_type(self.endian) == elf::SHT_NOBITS
                && self.name(section)? != b".plt"
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A section's name; none has one if the table has no names.
    pub(super) fn name(&self, section: &H::SectionHeader) -> read::Result<&'d [u8]> {
        match self.named {
            true => self.sections.section_name(self.endian, section),
            false => Ok(b""),
        }
    }
}

/// Has `look` see the tables of the file at `path`; `None`: it is no ELF file.
///
/// # Errors
/// [`SizesError::Host`] if it cannot be read, [`SizesError::Elf`], and those of the look.
pub(super) fn with<S: Read + Seek, L: Look>(
    path: &Path,
    mut file: S,
    look: L,
) -> Result<Option<L::Found>, SizesError> {
    let mut ident = Vec::new();
    let started = file.rewind();
    let started = started.and_then(|()| file.by_ref().take(5).read_to_end(&mut ident));
    started.map_err(HostError::file("read", path))?;
    if !ident.starts_with(&elf::ELFMAG) {
        return Ok(None);
    }
    let failed = RefCell::new(None);
    let cache = ReadCache::new(Telling {
        file,
        failed: &failed,
    });
    let names = RefCell::default();
    let data = Names {
        cache: &cache,
        names: &names,
    };
    let found = match ident.get(4) {
        Some(&elf::ELFCLASS32) => seen::<FileHeader32<Endianness>, _, _>(path, data, look),
        _ => seen::<FileHeader64<Endianness>, _, _>(path, data, look),
    };
    match (found, failed.take()) {
        // The parser knows that it got no bytes, but not why.
        (Err(SizesError::Elf { .. }), Some(error)) => {
            Err(HostError::file("read", path)(error).into())
        }
        (found, _) => found.map(Some),
    }
}

fn seen<'d, H: Header, R: ReadRef<'d>, L: Look>(
    path: &Path,
    data: R,
    look: L,
) -> Result<L::Found, SizesError> {
    let tables = Tables::<H, R>::parse(data).map_err(SizesError::elf(path))?;
    look.look(&tables)
}

/// A file that keeps the error of a read that failed.
struct Telling<'f, S> {
    file: S,
    failed: &'f RefCell<Option<io::Error>>,
}

impl<S> Telling<'_, S> {
    fn told<T>(&self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed.replace(Some(error));
            kind.into()
        })
    }
}

impl<S: Read> Read for Telling<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return self.told(read),
            }
        }
    }
}

impl<S: Seek> Seek for Telling<'_, S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // A place that no file has is the table's fault.
        self.file.seek(to)
    }
}

/// What was read of string tables: the last bytes before an end, from where on.
type Known<'c> = RefCell<BTreeMap<u64, (u64, &'c [u8])>>;

/// A file whose string tables are read whole. [`ReadCache`] looks for a string's end within 4
/// KiB, and keeps each string by itself, so that those that share their ends take more memory
/// than the file is large.
struct Names<'n, 'c, S: Read + Seek> {
    cache: &'c ReadCache<S>,
    names: &'n Known<'c>,
}

impl<S: Read + Seek> Clone for Names<'_, '_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Read + Seek> Copy for Names<'_, '_, S> {}

impl<'c, S: Read + Seek> Names<'_, 'c, S> {
    /// The bytes of a range. Of one end at least twice as many are read as before, so that all
    /// of them are no more than a few times the file.
    fn range(self, range: &Range<u64>) -> Result<&'c [u8], ()> {
        let wanted = range.end.checked_sub(range.start).ok_or(())?;
        let known = self.names.borrow().get(&range.end).copied();
        let (start, bytes) = match known {
            Some((start, bytes)) if start <= range.start => (start, bytes),
            known => {
                let twice = known.map_or(0, |(_, bytes)| bytes.len() as u64 * 2);
                let start = range.end.saturating_sub(wanted.max(twice));
                let bytes = self.cache.read_bytes_at(start, range.end - start)?;
                self.names.borrow_mut().insert(range.end, (start, bytes));
                (start, bytes)
            }
        };
        let into = usize::try_from(range.start - start).map_err(|_| ())?;
        bytes.get(into..).ok_or(())
    }
}

impl<'c, S: Read + Seek> ReadRef<'c> for Names<'_, 'c, S> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'c [u8], ()> {
        self.cache.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'c [u8], ()> {
        let bytes = self.range(&range)?;
        let mut strings = bytes.splitn(2, |byte| *byte == delimiter);
        let string = strings.next();
        // Without a second part there is no delimiter.
        strings.next().and(string).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Cursor;

    /// The names of all sections.
    struct Sections;

    impl Look for Sections {
        type Found = Vec<Vec<u8>>;

        fn look<'d, H: Header, R: ReadRef<'d>>(
            self,
            tables: &Tables<'d, H, R>,
        ) -> Result<Self::Found, SizesError> {
            let sections = tables.sections.iter();
            let names = sections.map(|section| tables.name(section).map(<[u8]>::to_vec));
            names
                .collect::<Result<_, _>>()
                .map_err(SizesError::elf(Path::new("object")))
        }
    }

    fn sections<S: Read + Seek>(file: S) -> Result<Option<Vec<Vec<u8>>>, SizesError> {
        with(Path::new("object"), file, Sections)
    }

    /// A file whose disk fails from some byte on.
    struct Failing(Cursor<Vec<u8>>, u64);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.position() + buffer.len() as u64 > self.1 {
                return Err(io::Error::from_raw_os_error(5));
            }
            self.0.read(buffer)
        }
    }

    impl Seek for Failing {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_disk_that_fails_is_no_damaged_file() {
        let bytes = fs::read("/bin/sh").unwrap();
        let whole = sections(Cursor::new(bytes.clone())).unwrap().unwrap();
        assert!(whole.contains(&b".dynsym".to_vec()));
        for sound in [64, 1024, bytes.len() as u64 / 2, bytes.len() as u64 - 64] {
            let found = sections(Failing(Cursor::new(bytes.clone()), sound));
            match found.unwrap_err() {
                SizesError::Host(HostError::File { doing, error, .. }) => {
                    assert_eq!((doing, error.raw_os_error()), ("read", Some(5)), "{sound}");
                }
                other => panic!("{sound}: {other}"),
            }
        }
        // The same bytes that are not there: the file is cut.
        let cut = sections(Cursor::new(bytes[..1024].to_vec())).unwrap_err();
        assert!(matches!(cut, SizesError::Elf { .. }), "{cut}");
    }

    #[test]
    fn a_name_is_as_long_as_its_table() {
        let mut bytes = vec![b'x'; 100_000];
        bytes[0] = 0;
        for zero in [10_000, 99_999] {
            bytes[zero] = 0;
        }
        let cache = ReadCache::new(Cursor::new(bytes));
        let names = RefCell::default();
        let data = Names {
            cache: &cache,
            names: &names,
        };
        let strings = StringTable::new(data, 0, 100_000);
        for (at, length) in [
            (99_999, 0),
            (90_000, 9_999),
            (10_001, 89_998),
            (1, 9_999),
            (0, 0),
            (5_000, 5_000),
        ] {
            assert_eq!(strings.get(at).map(<[u8]>::len), Ok(length), "{at}");
        }
        // The last one has no end within its table.
        assert!(StringTable::new(data, 0, 99_999).get(90_000).is_err());
        assert!(StringTable::new(data, 0, 100_001).get(90_000).is_err());
    }

    #[test]
    fn names_that_share_their_ends_take_the_memory_of_one() {
        let mut bytes = vec![b'x'; 1 << 20];
        *bytes.last_mut().unwrap() = 0;
        let cache = ReadCache::new(Cursor::new(bytes));
        let names = RefCell::default();
        let data = Names {
            cache: &cache,
            names: &names,
        };
        let strings = StringTable::new(data, 0, 1 << 20);
        let mut starts = std::collections::BTreeSet::new();
        for at in (0..1 << 20).rev().step_by(9973) {
            assert!(strings.get(at).is_ok());
            starts.insert(names.borrow()[&(1 << 20)].0);
        }
        assert!(starts.len() <= 21, "{}", starts.len());
    }
}
