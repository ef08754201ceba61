//! What of an ELF file is looked at: how far it is stripped, its segments, its symbols.

use super::dynamic::{self, Take};
use super::error::SizesError;
use super::source::Source;
use object::read::{ReadCache, ReadRef};
use object::{File as Elf, Object, ObjectSection, ObjectSegment, ObjectSymbol};
use object::{SectionFlags, SectionKind, SegmentFlags, SymbolFlags, SymbolIterator, elf};
use std::io::{Read, Seek};
use std::path::Path;

/// How far an object is stripped. Numbers are what the plan stores; more is more left.
pub(super) const LEVELS: [&str; 6] = [
    "no ELF file",
    "stripped of its section headers, too",
    "stripped",
    "stripped, with .gnu_debugdata",
    "with a symbol table",
    "with debug sections",
];
const NO_ELF: usize = 0;
const NO_SECTIONS: usize = 1;
const STRIPPED: usize = 2;
const DEBUG: usize = 5;

/// Sections that strip(1) takes away, by the start of their names, and the level they show.
/// What is for debuggers is BFD's list (binutils, `bfd/elf.c`, `_bfd_elf_make_section_from_shdr`),
/// with `.ctf`, and the compiler's own code, `.gnu.lto_`.
const MARKS: [(&[u8], usize); 11] = [
    (b".gnu_debugdata", 3),
    (b".symtab", 4),
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

/// Calls `look` with the file at `path`, if it is ELF.
fn with_elf<T>(
    path: &Path,
    file: &Source<'_>,
    look: impl FnOnce(&Elf<'_, &ReadCache<&Source<'_>>>) -> Result<T, SizesError>,
) -> Result<Option<T>, SizesError> {
    let mut file = file;
    let mut magic = Vec::new();
    let started = file
        .rewind()
        .and_then(|()| file.take(4).read_to_end(&mut magic));
    started.map_err(crate::host::HostError::file("read", path))?;
    if magic != elf::ELFMAG {
        return Ok(None);
    }
    let cache = ReadCache::new(file);
    let elf = Elf::parse(&cache).map_err(SizesError::elf(path))?;
    look(&elf).map(Some)
}

/// The index in [`LEVELS`] of how far an object is stripped.
pub(super) fn level(path: &Path, file: &Source<'_>) -> Result<usize, SizesError> {
    let found = with_elf(path, file, |elf| {
        let mut level = NO_SECTIONS;
        for section in elf.sections() {
            let name = section.name_bytes().map_err(SizesError::elf(path))?;
            level = level.max(mark(name, section.flags(), section.kind()));
        }
        Ok(level)
    })?;
    Ok(found.unwrap_or(NO_ELF))
}

/// Sections that are loaded stay, whatever they are called: `.debug_gdb_scripts` may be. But
/// code without bytes is what `objcopy --only-keep-debug` leaves, a file for debuggers alone;
/// a PowerPC linker makes a `.plt` of that kind, too.
fn mark(name: &[u8], flags: SectionFlags, kind: SectionKind) -> usize {
    let SectionFlags::Elf { sh_flags } = flags else {
        return STRIPPED;
    };
    let has = |flag: u32| sh_flags & u64::from(flag) != 0;
    if has(elf::SHF_EXECINSTR) && kind == SectionKind::UninitializedData && name != b".plt" {
        return DEBUG;
    }
    if has(elf::SHF_ALLOC) {
        return STRIPPED;
    }
    let mut marks = MARKS.iter();
    let mark = marks.find(|(start, _)| name.starts_with(start));
    mark.map_or(STRIPPED, |(_, level)| *level)
}

/// An object of `bytes` bytes cut into its loaded segments and what lies between them; all
/// that is no ELF file is one piece.
pub(super) fn pieces(path: &Path, file: &Source<'_>, bytes: u64) -> Result<Vec<Piece>, SizesError> {
    let segments = with_elf(path, file, |elf| {
        Ok(elf.segments().map(|segment| loaded(&segment)).collect())
    })?;
    Ok(cut(segments.unwrap_or_default(), bytes))
}

fn loaded<'data, S: ObjectSegment<'data>>(segment: &S) -> Piece {
    let (at, bytes) = segment.file_range();
    let flags = match segment.flags() {
        SegmentFlags::Elf { p_flags } => p_flags,
        _ => 0,
    };
    Piece {
        at,
        bytes,
        segment: Some((segment.address(), flags)),
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
pub(super) fn symbols(
    path: &Path,
    file: &Source<'_>,
    take: &mut Take<'_>,
) -> Result<(), SizesError> {
    with_elf(path, file, |elf| {
        match elf {
            _ if elf.dynamic_symbol_table().is_some() => {
                each(path, elf.dynamic_symbols(), take)?;
            }
            Elf::Elf32(elf) => dynamic::symbols(path, elf, take)?,
            Elf::Elf64(elf) => dynamic::symbols(path, elf, take)?,
            _ => {}
        }
        each(path, elf.symbols(), take)
    })?;
    Ok(())
}

fn each<'d, R: ReadRef<'d>>(
    path: &Path,
    symbols: SymbolIterator<'d, '_, R>,
    take: &mut Take<'_>,
) -> Result<(), SizesError> {
    for symbol in symbols {
        let name = symbol.name_bytes().map_err(SizesError::elf(path))?;
        let info = match symbol.flags() {
            SymbolFlags::Elf { st_info, .. } => st_info,
            _ => 0,
        };
        if !name.is_empty() {
            take(&Symbol {
                name,
                value: symbol.address(),
                size: symbol.size(),
                info,
                undefined: symbol.is_undefined(),
            })?;
        }
    }
    Ok(())
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
        let level = |name, sh_flags, kind| mark(name, SectionFlags::Elf { sh_flags }, kind);
        assert_eq!(
            level(b".debug_gdb_scripts", 2, SectionKind::Other),
            STRIPPED
        );
        assert_eq!(level(b".text", 6, SectionKind::Text), STRIPPED);
        assert_eq!(level(b".bss", 3, SectionKind::UninitializedData), STRIPPED);
        assert_eq!(level(b".plt", 7, SectionKind::UninitializedData), STRIPPED);
    }

    #[test]
    fn what_strip_takes_away_is_told() {
        let level =
            |name| LEVELS[mark(name, SectionFlags::Elf { sh_flags: 0 }, SectionKind::Other)];
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
        assert_eq!(level(b".symtab"), "with a symbol table");
        assert_eq!(level(b".gnu_debugdata"), "stripped, with .gnu_debugdata");
        assert_eq!(level(b".comment"), "stripped");
        let text = SectionFlags::Elf { sh_flags: 6 };
        let left = mark(b".text", text, SectionKind::UninitializedData);
        assert_eq!(LEVELS[left], "with debug sections");
    }
}
