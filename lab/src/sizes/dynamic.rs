//! The dynamic symbols of an ELF file whose section headers are gone: where the loader finds
//! them, through `PT_DYNAMIC`. That says where they begin; how many there are is known from
//! a hash table only (gABI, "Hash Table": `nchain` is the number of symbols; the GNU table ends
//! with the last chain).

use super::elf::Symbol;
use super::error::SizesError;
use object::Endianness;
use object::elf;
use object::read::elf::{Dyn, ElfFile, FileHeader, GnuHashTable, HashTable, ProgramHeader, Sym};
use object::read::{ReadRef, StringTable};
use std::path::Path;

/// Takes a symbol.
pub(super) type Take<'t> = dyn FnMut(&Symbol<'_>) -> Result<(), SizesError> + 't;

/// A file, and what its dynamic section says.
struct Dynamic<'f, 'd, H: FileHeader, R: ReadRef<'d>> {
    file: &'f ElfFile<'d, H, R>,
    entries: &'d [H::Dyn],
}

/// Hands every named dynamic symbol to `take`.
///
/// # Errors
/// [`SizesError::Elf`]; [`SizesError::Uncounted`] if no hash table tells how many there are.
pub(super) fn symbols<'d, H, R>(
    path: &Path,
    file: &ElfFile<'d, H, R>,
    take: &mut Take<'_>,
) -> Result<(), SizesError>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let damaged = || SizesError::elf::<String>(path);
    let Some(dynamic) = Dynamic::of(file).map_err(damaged())? else {
        return Ok(());
    };
    let Some(symbols_at) = dynamic.value(elf::DT_SYMTAB) else {
        return Ok(());
    };
    let count = dynamic.count().map_err(damaged())?;
    let count = count.ok_or_else(|| SizesError::Uncounted(path.to_owned()))?;
    let found = dynamic.table(symbols_at, count).map_err(damaged())?;
    let strings = dynamic.strings().map_err(damaged())?;
    for symbol in found {
        let name = symbol.name(file.endian(), strings);
        let name = name.map_err(SizesError::elf(path))?;
        if !name.is_empty() {
            take(&Symbol {
                name,
                value: symbol.st_value(file.endian()).into(),
                size: symbol.st_size(file.endian()).into(),
                info: symbol.st_info(),
                undefined: symbol.is_undefined(file.endian()),
            })?;
        }
    }
    Ok(())
}

impl<'f, 'd, H: FileHeader<Endian = Endianness>, R: ReadRef<'d>> Dynamic<'f, 'd, H, R> {
    /// `None`: the file is not linked dynamically.
    fn of(file: &'f ElfFile<'d, H, R>) -> Result<Option<Self>, String> {
        for segment in file.elf_program_headers() {
            if let Some(entries) = segment
                .dynamic(file.endian(), file.data())
                .map_err(|error| error.to_string())?
            {
                return Ok(Some(Self { file, entries }));
            }
        }
        Ok(None)
    }

    fn value(&self, tag: i64) -> Option<u64> {
        let endian = self.file.endian();
        let entries = self.entries.iter();
        let mut used = entries.take_while(|entry| entry.tag(endian) != elf::DT_NULL);
        let found = used.find(|entry| entry.tag(endian) == tag)?;
        Some(found.val(endian))
    }

    /// Where in the file an address is, and how many bytes of its segment are there.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        let endian = self.file.endian();
        let segments = self.file.elf_program_headers().iter();
        let mut loaded = segments.filter(|one| one.p_type(endian) == elf::PT_LOAD);
        loaded.find_map(|segment| {
            let (at, bytes) = segment.file_range(endian);
            let into = address.checked_sub(segment.p_vaddr(endian).into())?;
            let left = bytes.checked_sub(into).filter(|left| *left > 0)?;
            Some((at.checked_add(into)?, left))
        })
    }

    /// All of a segment that follows an address.
    fn rest(&self, address: u64) -> Result<&'d [u8], String> {
        let place = self.place(address);
        let (at, left) = place.ok_or("Invalid address in the ELF dynamic segment")?;
        let rest = self.file.data().read_bytes_at(at, left);
        rest.map_err(|()| "Invalid range in the ELF dynamic segment".to_owned())
    }

    /// How many symbols there are; `None`: nothing tells.
    fn count(&self) -> Result<Option<u64>, String> {
        let endian = self.file.endian();
        if let Some(address) = self.value(elf::DT_GNU_HASH) {
            let table = GnuHashTable::<H>::parse(endian, self.rest(address)?)
                .map_err(|error| error.to_string())?;
            // An empty one tells nothing: it may begin anywhere.
            if let Some(count) = table.symbol_table_length(endian) {
                return Ok(Some(count.into()));
            }
        }
        match self.value(elf::DT_HASH) {
            Some(address) if !self.has_wide_hash() => {
                let table = HashTable::<H>::parse(endian, self.rest(address)?)
                    .map_err(|error| error.to_string())?;
                Ok(Some(table.symbol_table_length().into()))
            }
            _ => Ok(None),
        }
    }

    /// The words of `DT_HASH` are 64 bits wide on these (binutils, `bfd/elf64-s390.c` and
    /// `bfd/elf64-alpha.c`).
    fn has_wide_hash(&self) -> bool {
        let header = self.file.elf_header();
        let machine = header.e_machine(self.file.endian());
        header.is_type_64() && [elf::EM_S390, elf::EM_ALPHA].contains(&machine)
    }

    fn table(&self, address: u64, count: u64) -> Result<&'d [H::Sym], String> {
        let place = self.place(address);
        let (at, left) = place.ok_or("Invalid ELF dynamic symbol table address")?;
        let bytes = count.saturating_mul(size_of::<H::Sym>() as u64);
        let whole = Some(()).filter(|()| bytes <= left);
        whole.ok_or("Invalid ELF dynamic symbol table size")?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let symbols = self.file.data().read_slice_at(at, count);
        symbols.map_err(|()| "Invalid ELF dynamic symbol table".to_owned())
    }

    fn strings(&self) -> Result<StringTable<'d, R>, String> {
        let [address, bytes] = [elf::DT_STRTAB, elf::DT_STRSZ].map(|tag| self.value(tag));
        let place = address.and_then(|address| self.place(address));
        let (at, left) = place.ok_or("Invalid ELF dynamic string table address")?;
        let bytes = bytes.filter(|bytes| *bytes <= left);
        let bytes = bytes.ok_or("Invalid ELF dynamic string table size")?;
        Ok(StringTable::new(
            self.file.data(),
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
}
