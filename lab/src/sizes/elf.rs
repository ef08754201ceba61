//! What of an ELF file is looked at: how far it is stripped, its segments, its symbols.

use super::dynamic::{self, Take};
use super::error::SizesError;
use super::image::{self, Header, Look, Tables};
use super::source::Source;
use object::elf;
use object::read::elf::{ProgramHeader, SectionHeader, Sym, SymbolTable};
use object::read::{self, ReadRef};
use std::path::Path;

/// How far an object is stripped. Numbers are what the plan stores; more is more left.
pub(super) const LEVELS: [&str; 9] = [
    "no ELF file",
    "stripped of its section headers, too",
    "with section headers that have no names, so that nothing tells how far it is stripped",
    "stripped",
    "stripped, with .gnu_debugdata",
    "with a symbol table, but no local symbols in it",
    "with a symbol table",
    "with debug sections",
    "with debug sections alone, its code taken out",
];
const NO_ELF: usize = 0;
const NO_SECTIONS: usize = 1;
const NO_NAMES: usize = 2;
const STRIPPED: usize = 3;
const DEBUGDATA: usize = 4;
const NO_LOCALS: usize = 5;
const SYMBOLS: usize = 6;
const DEBUG: usize = 7;
const DEBUG_ALONE: usize = 8;

/// Sections that strip(1) takes away, by the start of their names, and the level they show.
/// What is for debuggers is BFD's list (binutils, `bfd/elf.c`, `_bfd_elf_make_section_from_shdr`),
/// with `.ctf`, and the compiler's own code, `.gnu.lto_`.
const MARKS: [(&[u8], usize); 10] = [
    (b".gnu_debugdata", DEBUGDATA),
    (b".debug", DEBUG),
    (b".zdebug", DEBUG),
    (b".stab", DEBUG),
    (b".ctf", DEBUG),
    (b".line", DEBUG),
    (b".gdb_index", DEBUG),
    (b".gnu.lto_", DEBUG),
    (b".gnu.debuglto_", DEBUG),
    (b".gnu.linkonce.wi.", DEBUG),
];

/// A range of an object's bytes that is stored by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where it starts in the file.
    pub(super) at: u64,
    /// Its length.
    pub(super) bytes: u64,
    /// Address and flags (`p_vaddr`, `p_flags`) of its segment; `None`: no segment has it.
    pub(super) segment: Option<(u64, u32)>,
}

/// A symbol, as `.dynsym` or `.symtab` has it.
pub(super) struct Symbol<'s> {
    pub(super) name: &'s [u8],
    pub(super) value: u64,
    pub(super) size: u64,
    /// `st_info`: binding and type.
    pub(super) info: u8,
    /// Whether another object is to define it.
    pub(super) undefined: bool,
}

/// The index in [`LEVELS`] of how far an object is stripped.
pub(super) fn level(path: &Path, file: &Source<'_>) -> Result<usize, SizesError> {
    Ok(image::with(path, file, Level(path))?.unwrap_or(NO_ELF))
}

struct Level<'p>(&'p Path);

impl Look for Level<'_> {
    type Found = usize;

    fn look<'d, H: Header, R: ReadRef<'d>>(
        self,
        tables: &Tables<'d, H, R>,
    ) -> Result<usize, SizesError> {
        level_of(tables).map_err(SizesError::elf(self.0))
    }
}

fn level_of<'d, H: Header, R: ReadRef<'d>>(tables: &Tables<'d, H, R>) -> read::Result<usize> {
    let endian = tables.endian;
    match tables.sections.is_empty() {
        true => return Ok(NO_SECTIONS),
        false if !tables.named => return Ok(NO_NAMES),
        false if tables.is_for_debuggers()? => return Ok(DEBUG_ALONE),
        false => {}
    }
    let (mut level, mut named_so) = (STRIPPED, false);
    for section in tables.sections.iter() {
        let flags: u64 = section.sh_flags(endian).into();
        let name = tables.name(section)?;
        level = level.max(mark(name, flags));
        named_so |= name == b".symtab";
    }
    let symbols = tables
        .sections
        .symbols(endian, tables.data, elf::SHT_SYMTAB)?;
    let found = match symbols.iter().any(|symbol| is_local(endian, symbol)) {
        // A section of this name that is no such table is not what strip(1) leaves.
        _ if symbols.is_empty() && named_so => SYMBOLS,
        _ if symbols.is_empty() => STRIPPED,
        true => SYMBOLS,
        false => NO_LOCALS,
    };
    Ok(level.max(found))
}

/// Whether a symbol is of those that `strip --discard-all` takes away.
fn is_local<S: Sym>(endian: S::Endian, symbol: &S) -> bool {
    let kept = [elf::STT_SECTION, elf::STT_FILE].contains(&symbol.st_type());
    symbol.st_name(endian) != 0 && symbol.st_bind() == elf::STB_LOCAL && !kept
}

/// Sections that are loaded stay, whatever they are called: `.debug_gdb_scripts` may be.
fn mark(name: &[u8], flags: u64) -> usize {
    if flags & u64::from(elf::SHF_ALLOC) != 0 {
        return STRIPPED;
    }
    let mut marks = MARKS.iter();
    let mark = marks.find(|(start, _)| name.starts_with(start));
    mark.map_or(STRIPPED, |(_, level)| *level)
}

/// An object of `bytes` bytes cut into its loaded segments and what lies between them; all
/// that is no ELF file is one piece.
pub(super) fn pieces(path: &Path, file: &Source<'_>, bytes: u64) -> Result<Vec<Piece>, SizesError> {
    let segments = image::with(path, file, Loaded)?;
    Ok(cut(segments.unwrap_or_default(), bytes))
}

struct Loaded;

impl Look for Loaded {
    type Found = Vec<Piece>;

    fn look<'d, H: Header, R: ReadRef<'d>>(
        self,
        tables: &Tables<'d, H, R>,
    ) -> Result<Vec<Piece>, SizesError> {
        let endian = tables.endian;
        let piece = |segment: &H::ProgramHeader| {
            let (at, bytes) = segment.file_range(endian);
            let place = (segment.p_vaddr(endian).into(), segment.p_flags(endian));
            Piece {
                at,
                bytes,
                segment: Some(place),
            }
        };
        Ok(tables.loaded().map(piece).collect())
    }
}

/// Where segments overlap, the byte is the earlier one's. A segment without a byte in the file
/// may begin behind its end.
fn cut(mut segments: Vec<Piece>, bytes: u64) -> Vec<Piece> {
    segments.sort_by_key(|segment| segment.at);
    let mut pieces = Vec::new();
    let mut done = 0;
    let gap = |at, bytes| Piece {
        at,
        bytes,
        segment: None,
    };
    for segment in segments {
        let end = segment.at.saturating_add(segment.bytes).min(bytes);
        if end <= done || segment.at >= bytes {
            continue;
        }
        if segment.at > done {
            pieces.push(gap(done, segment.at - done));
        }
        let at = segment.at.max(done);
        let address = |(address, flags): (u64, u32)| (address.wrapping_add(at - segment.at), flags);
        pieces.push(Piece {
            at,
            bytes: end - at,
            segment: segment.segment.map(address),
        });
        done = end;
    }
    if done < bytes {
        pieces.push(gap(done, bytes - done));
    }
    pieces
}

/// Hands every named symbol to `take`, those of `.dynsym` first.
///
/// # Errors
/// [`SizesError::Elf`], [`SizesError::Uncounted`], [`SizesError::Contradicts`], those of `take`.
pub(super) fn symbols(
    path: &Path,
    file: &Source<'_>,
    take: &mut Take<'_>,
) -> Result<(), SizesError> {
    image::with(path, file, Symbols { path, take })?;
    Ok(())
}

struct Symbols<'p, 't, 'f> {
    path: &'p Path,
    take: &'t mut Take<'f>,
}

impl Look for Symbols<'_, '_, '_> {
    type Found = ();

    fn look<'d, H: Header, R: ReadRef<'d>>(
        self,
        tables: &Tables<'d, H, R>,
    ) -> Result<(), SizesError> {
        let Self { path, take } = self;
        dynamic::symbols(path, tables, take)?;
        let (endian, sections) = (tables.endian, &tables.sections);
        let table = sections.symbols(endian, tables.data, elf::SHT_SYMTAB);
        each(path, endian, &table.map_err(SizesError::elf(path))?, take)
    }
}

/// Hands the named symbols of a section to `take`.
pub(super) fn each<'d, H: Header, R: ReadRef<'d>>(
    path: &Path,
    endian: object::Endianness,
    table: &SymbolTable<'d, H, R>,
    take: &mut Take<'_>,
) -> Result<(), SizesError> {
    for symbol in table.iter() {
        let name = table.symbol_name(endian, symbol);
        hand(name.map_err(SizesError::elf(path))?, endian, symbol, take)?;
    }
    Ok(())
}

/// Hands a symbol to `take`, if it has a name.
pub(super) fn hand<S: Sym>(
    name: &[u8],
    endian: S::Endian,
    symbol: &S,
    take: &mut Take<'_>,
) -> Result<(), SizesError> {
    if name.is_empty() {
        return Ok(());
    }
    take(&Symbol {
        name,
        value: symbol.st_value(endian).into(),
        size: symbol.st_size(endian).into(),
        info: symbol.st_info(),
        undefined: symbol.is_undefined(endian),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(at: u64, bytes: u64, address: u64) -> Piece {
        Piece {
            at,
            bytes,
            segment: Some((address, 5)),
        }
    }

    #[test]
    fn every_byte_is_in_one_piece() {
        let cases = [
            (vec![], 0),
            (vec![], 7),
            (vec![segment(0, 10, 0)], 10),
            (vec![segment(4, 4, 0x4000), segment(10, 2, 0x9000)], 20),
            (vec![segment(4, 8, 0x4000), segment(2, 5, 0x2000)], 9),
            // `.bss` alone, which the linker places behind the end.
            (vec![segment(0, 9, 0), segment(0x1000, 0, 0x2000)], 9),
            (vec![segment(0x1000, 5, 0x2000)], 9),
            (
                vec![
                    segment(2, 100, 0),
                    segment(3, 0, 0),
                    segment(u64::MAX, 9, 0),
                ],
                50,
            ),
        ];
        for (segments, bytes) in cases {
            let pieces = cut(segments, bytes);
            let mut next = 0;
            for piece in &pieces {
                assert!(piece.at == next && piece.bytes > 0, "{pieces:?}");
                next += piece.bytes;
            }
            assert_eq!(next, bytes, "{pieces:?}");
        }
    }

    #[test]
    fn an_overlap_is_the_earlier_segments() {
        let pieces = cut(vec![segment(4, 8, 0x4000), segment(2, 5, 0x2000)], 12);
        let gap = Piece {
            at: 0,
            bytes: 2,
            segment: None,
        };
        assert_eq!(pieces, [gap, segment(2, 5, 0x2000), segment(7, 5, 0x4003)]);
    }

    #[test]
    fn a_loaded_section_tells_nothing() {
        for (name, flags) in [(&b".debug_gdb_scripts"[..], 2), (b".text", 6), (b".bss", 3)] {
            assert_eq!(mark(name, flags), STRIPPED, "{name:?}");
        }
    }

    #[test]
    fn what_strip_takes_away_is_told() {
        let level = |name| LEVELS[mark(name, 0)];
        for name in [
            &b".debug_info"[..],
            b".zdebug_info",
            b".stab",
            b".stabstr",
            b".ctf",
            b".gnu.lto_main.0",
            b".gnu.debuglto_.debug_info",
        ] {
            assert_eq!(level(name), "with debug sections", "{name:?}");
        }
        assert_eq!(level(b".gnu_debugdata"), "stripped, with .gnu_debugdata");
        assert_eq!(level(b".comment"), "stripped");
    }
}
