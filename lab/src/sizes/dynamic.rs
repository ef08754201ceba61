//! The dynamic symbols of an ELF file, as the loader finds them: through `PT_DYNAMIC`. That says
//! where they begin; how many there are is known from a hash table only (gABI, "Hash Table":
//! `nchain` is the number of symbols; the GNU table ends with the last chain). Section headers
//! say both, but nothing that runs the file reads them: they may be gone, and must not say
//! something else.

use super::elf::{self as sized, Symbol};
use super::error::SizesError;
use super::image::{Header, Tables};
use object::elf;
use object::read::elf::{
    Dyn, GnuHashTable, HashTable, ProgramHeader, SectionHeader, Sym, SymbolTable,
};
use object::read::{ReadRef, StringTable};
use std::path::Path;

/// Takes a symbol.
pub(super) type Take<'t> = dyn FnMut(&Symbol<'_>) -> Result<(), SizesError> + 't;

/// How much of a hash table is read at first.
const HASH_BYTES: u64 = 1 << 16;

/// A file, and what its dynamic section says.
struct Dynamic<'f, 'd, H: Header, R: ReadRef<'d>> {
    file: &'f Tables<'d, H, R>,
    entries: &'d [H::Dyn],
}

/// Hands every named dynamic symbol to `take`.
///
/// # Errors
/// [`SizesError::Elf`]; [`SizesError::Uncounted`] if nothing tells how many there are;
/// [`SizesError::Contradicts`] if the section headers tell of others.
pub(super) fn symbols<'d, H: Header, R: ReadRef<'d>>(
    path: &Path,
    file: &Tables<'d, H, R>,
    take: &mut Take<'_>,
) -> Result<(), SizesError> {
    let damaged = || SizesError::elf::<String>(path);
    let endian = file.endian;
    let headed = file.sections.symbols(endian, file.data, elf::SHT_DYNSYM);
    let headed = headed.map_err(SizesError::elf(path))?;
    let dynamic = Dynamic::of(file).map_err(damaged())?;
    let dynamic = dynamic.filter(|dynamic| dynamic.value(elf::DT_SYMTAB).is_some());
    let Some(dynamic) = dynamic else {
        return sized::each(path, endian, &headed, take);
    };
    let count = dynamic.count().map_err(damaged())?;
    if !headed.is_empty() {
        return match dynamic.agrees(&headed, count) {
            true => sized::each(path, endian, &headed, take),
            false => Err(SizesError::Contradicts(path.to_owned())),
        };
    }
    let count = count.ok_or_else(|| SizesError::Uncounted(path.to_owned()))?;
    let found = dynamic.table(count).map_err(damaged())?;
    let strings = dynamic.strings().map_err(damaged())?;
    for symbol in found {
        let name = symbol.name(endian, strings);
        sized::hand(name.map_err(SizesError::elf(path))?, endian, symbol, take)?;
    }
    Ok(())
}

impl<'f, 'd, H: Header, R: ReadRef<'d>> Dynamic<'f, 'd, H, R> {
    /// `None`: the file is not linked dynamically, or its dynamic section was taken out.
    fn of(file: &'f Tables<'d, H, R>) -> Result<Option<Self>, String> {
        let told = |error: object::read::Error| error.to_string();
        if file.is_for_debuggers().map_err(told)? {
            return Ok(None);
        }
        for segment in file.segments {
            let entries = segment.dynamic(file.endian, file.data).map_err(told)?;
            if let Some(entries) = entries {
                return Ok(Some(Self { file, entries }));
            }
        }
        Ok(None)
    }

    /// Whether the loader takes the same symbols for what the section headers call so.
    fn agrees(&self, headed: &SymbolTable<'d, H, R>, count: Option<u64>) -> bool {
        let sections = &self.file.sections;
        let starts = [
            (elf::DT_SYMTAB, headed.section()),
            (elf::DT_STRTAB, headed.string_section()),
        ];
        let is_there = |(tag, section)| {
            let place = self.value(tag).and_then(|address| self.place(address));
            let section = sections.section(section).ok();
            let start = section.and_then(|one| one.file_range(self.file.endian));
            place.map(|(at, _)| at) == start.map(|(at, _)| at)
        };
        let counted = count.is_none_or(|count| count == headed.len() as u64);
        counted && starts.into_iter().all(is_there)
    }

    fn value(&self, tag: i64) -> Option<u64> {
        let endian = self.file.endian;
        let entries = self.entries.iter();
        let mut used = entries.take_while(|entry| entry.tag(endian) != elf::DT_NULL);
        let found = used.find(|entry| entry.tag(endian) == tag)?;
        Some(found.val(endian))
    }

    /// Where in the file an address is, and how many bytes of its segment are there.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        let endian = self.file.endian;
        let mut loaded = self.file.loaded();
        loaded.find_map(|segment| {
            let (at, bytes) = segment.file_range(endian);
            let into = address.checked_sub(segment.p_vaddr(endian).into())?;
            let left = bytes.checked_sub(into).filter(|left| *left > 0)?;
            Some((at.checked_add(into)?, left))
        })
    }

    /// At most `most` bytes of a segment from an address on, and whether more follow.
    fn rest(&self, address: u64, most: u64) -> Result<(&'d [u8], bool), String> {
        let place = self.place(address);
        let (at, left) = place.ok_or("Invalid address in the ELF dynamic segment")?;
        let rest = self.file.data.read_bytes_at(at, left.min(most));
        let rest = rest.map_err(|()| "Invalid range in the ELF dynamic segment")?;
        Ok((rest, left > most))
    }

    /// What `read` makes of a table at an address, of which as little is read as tells.
    fn grown<T>(
        &self,
        address: u64,
        read: impl Fn(&'d [u8]) -> object::read::Result<Option<T>>,
    ) -> Result<Option<T>, String> {
        let mut most = HASH_BYTES;
        loop {
            let (bytes, has_more) = self.rest(address, most)?;
            match read(bytes) {
                Ok(None) | Err(_) if has_more => most = most.saturating_mul(2),
                found => return found.map_err(|error| error.to_string()),
            }
        }
    }

    /// How many symbols there are; `None`: nothing tells.
    fn count(&self) -> Result<Option<u64>, String> {
        let endian = self.file.endian;
        if let Some(address) = self.value(elf::DT_GNU_HASH) {
            let count = self.grown(address, |bytes| {
                let table = GnuHashTable::<H>::parse(endian, bytes)?;
                Ok(table.symbol_table_length(endian))
            })?;
            // An empty one tells nothing: it may begin anywhere.
            if let Some(count) = count {
                return Ok(Some(count.into()));
            }
        }
        match self.value(elf::DT_HASH) {
            Some(address) if !self.has_wide_hash() => {
                let count = self.grown(address, |bytes| {
                    let table = HashTable::<H>::parse(endian, bytes)?;
                    Ok(Some(table.symbol_table_length()))
                })?;
                Ok(count.map(u64::from))
            }
            _ => Ok(None),
        }
    }

    /// The words of `DT_HASH` are 64 bits wide on these (binutils, `bfd/elf64-s390.c` and
    /// `bfd/elf64-alpha.c`).
    fn has_wide_hash(&self) -> bool {
        let header = self.file.header;
        let machine = header.e_machine(self.file.endian);
        header.is_type_64() && [elf::EM_S390, elf::EM_ALPHA].contains(&machine)
    }

    fn table(&self, count: u64) -> Result<&'d [H::Sym], String> {
        let place = self
            .value(elf::DT_SYMTAB)
            .and_then(|address| self.place(address));
        let (at, left) = place.ok_or("Invalid ELF dynamic symbol table address")?;
        let bytes = count.saturating_mul(size_of::<H::Sym>() as u64);
        let whole = Some(()).filter(|()| bytes <= left);
        whole.ok_or("Invalid ELF dynamic symbol table size")?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let symbols = self.file.data.read_slice_at(at, count);
        symbols.map_err(|()| "Invalid ELF dynamic symbol table".to_owned())
    }

    fn strings(&self) -> Result<StringTable<'d, R>, String> {
        let [address, bytes] = [elf::DT_STRTAB, elf::DT_STRSZ].map(|tag| self.value(tag));
        let place = address.and_then(|address| self.place(address));
        let (at, left) = place.ok_or("Invalid ELF dynamic string table address")?;
        let bytes = bytes.filter(|bytes| *bytes <= left);
        let bytes = bytes.ok_or("Invalid ELF dynamic string table size")?;
        Ok(StringTable::new(
            self.file.data,
            at,
            at.saturating_add(bytes),
        ))
    }
}

#[cfg(test)]
mod tests {
    use crate::host::Interrupt;
    use crate::scratch::Scratch;
    use crate::sizes::error::SizesError;
    use crate::sizes::{elf, source};
    use object::elf::{DT_DEBUG, DT_GNU_HASH, DT_HASH};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    /// The C library of this process: an object with both hash tables or one, and versions.
    fn c_library() -> PathBuf {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5));
        let path = paths.find(|path| path.contains("/libc.so.") || path.contains("/libc-"));
        path.expect("no C library is mapped").into()
    }

    /// The file without what points to its section headers: `e_shoff`, `e_shnum`, `e_shstrndx`
    /// of a 64-bit file (elf(5)).
    fn without_headers(mut bytes: Vec<u8>) -> Vec<u8> {
        assert_eq!(bytes[4], 2, "not a 64-bit file");
        bytes[0x28..0x30].fill(0);
        bytes[0x3c..0x40].fill(0);
        bytes
    }

    fn names(path: &Path) -> Vec<Vec<u8>> {
        let interrupt = Interrupt::default();
        let file = source::open(path, &interrupt).unwrap();
        let mut names = Vec::new();
        let each = elf::symbols(path, &file, &mut |symbol| {
            names.push(symbol.name.to_vec());
            Ok(())
        });
        each.unwrap();
        names
    }

    /// `Num: Value Size Type Bind Vis Ndx Name`; the first symbol, and sections', have no name.
    fn named_by_readelf(path: &Path) -> usize {
        let readelf = Command::new("readelf")
            .args(["--dyn-syms", "-W"])
            .arg(path)
            .output();
        let said = String::from_utf8(readelf.expect("no readelf: binutils").stdout).unwrap();
        let is_symbol = |line: &&str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let number = fields.first().and_then(|first| first.strip_suffix(':'));
            number.is_some_and(|number| number.parse::<u64>().is_ok()) && fields.len() >= 8
        };
        said.lines().filter(is_symbol).count()
    }

    #[test]
    fn no_section_headers_no_symbol_less() {
        let library = c_library();
        let count = named_by_readelf(&library);
        assert!(count > 1000, "{count}");
        let whole = names(&library);
        let scratch = Scratch::new().unwrap();
        let bare = scratch.path().join("bare");
        fs::write(&bare, without_headers(fs::read(&library).unwrap())).unwrap();
        let found = names(&bare);
        assert_eq!(found.len(), count);
        // A `.symtab` comes after them.
        assert_eq!(found, whole[..count]);
    }

    /// The file with other entries in place of those of its dynamic section that have `tags`:
    /// 16 bytes each, the tag first, where the program header of type 2 says (elf(5)).
    fn without_entries(mut bytes: Vec<u8>, tags: &[i64]) -> Vec<u8> {
        let long = |bytes: &[u8], at: usize| {
            let eight = bytes[at..at + 8].try_into().unwrap();
            usize::try_from(u64::from_ne_bytes(eight)).unwrap()
        };
        let mut header = long(&bytes, 0x20);
        while bytes[header..header + 4] != 2_u32.to_ne_bytes() {
            header += 56;
        }
        let (at, length) = (long(&bytes, header + 8), long(&bytes, header + 32));
        for entry in (at..at + length).step_by(16) {
            let tag: &mut [u8; 8] = (&mut bytes[entry..entry + 8]).try_into().unwrap();
            if tags.contains(&i64::from_ne_bytes(*tag)) {
                *tag = DT_DEBUG.to_ne_bytes();
            }
        }
        bytes
    }

    #[test]
    fn without_a_hash_table_nothing_tells_how_many() {
        let bare = without_headers(fs::read(c_library()).unwrap());
        let scratch = Scratch::new().unwrap();
        let object = scratch.path().join("object");
        let interrupt = Interrupt::default();
        fs::write(&object, without_entries(bare, &[DT_HASH, DT_GNU_HASH])).unwrap();
        let file = source::open(&object, &interrupt).unwrap();
        let found = elf::symbols(&object, &file, &mut |_| Ok(()));
        assert!(matches!(found, Err(SizesError::Uncounted(path)) if path == object));
    }

    #[test]
    fn each_hash_table_tells_the_same_number() {
        let library = c_library();
        let bare = without_headers(fs::read(&library).unwrap());
        let scratch = Scratch::new().unwrap();
        let object = scratch.path().join("object");
        let said = Command::new("readelf").arg("-dW").arg(&library).output();
        let said = String::from_utf8(said.expect("no readelf: binutils").stdout).unwrap();
        for (other, name) in [(DT_GNU_HASH, "(HASH)"), (DT_HASH, "(GNU_HASH)")] {
            if said.contains(name) {
                fs::write(&object, without_entries(bare.clone(), &[other])).unwrap();
                assert_eq!(names(&object).len(), named_by_readelf(&library), "{name}");
            }
        }
    }

    /// Another number of symbols in the section header than the hash table tells, another
    /// place, and another place of their names: each alone is refused.
    #[test]
    fn a_section_header_that_tells_of_other_symbols_is_refused() {
        let library = fs::read(c_library()).unwrap();
        let long = |at: usize| u64::from_ne_bytes(library[at..at + 8].try_into().unwrap());
        let table = usize::try_from(long(0x28)).unwrap();
        let kind = |at: usize| u32::from_ne_bytes(library[at + 4..at + 8].try_into().unwrap());
        let mut headers = (table..).step_by(64);
        // SHT_DYNSYM, and the section it links to.
        let symbols = headers.find(|at| kind(*at) == 11).unwrap();
        let link = u32::from_ne_bytes(library[symbols + 40..symbols + 44].try_into().unwrap());
        let strings = table + 64 * usize::try_from(link).unwrap();
        let scratch = Scratch::new().unwrap();
        let object = scratch.path().join("object");
        let interrupt = Interrupt::default();
        for (field, change) in [(symbols + 32, -24), (symbols + 24, 24), (strings + 24, 1)] {
            let mut lying = library.clone();
            let value = long(field).wrapping_add_signed(change);
            lying[field..field + 8].copy_from_slice(&value.to_ne_bytes());
            fs::write(&object, lying).unwrap();
            let file = source::open(&object, &interrupt).unwrap();
            let found = elf::symbols(&object, &file, &mut |_| Ok(()));
            assert!(
                matches!(&found, Err(SizesError::Contradicts(path)) if *path == object),
                "{found:?}"
            );
        }
    }
}
