//! Pointers to regions that move: relocations, and words that are known to be pointers, follow them; any other is a reason to refuse.

use std::collections::HashSet;

use elf_core::names::{
    DT_FINI_ARRAY, DT_GNU_HASH, DT_HASH, DT_INIT_ARRAY, DT_JMPREL, DT_NULL, DT_PLTGOT,
    DT_PREINIT_ARRAY, DT_REL, DT_RELA, DT_RELR, DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED,
    DT_VERSYM, EM_X86_64, ET_EXEC, PT_DYNAMIC, SHF_ALLOC, SHN_LORESERVE, SHN_UNDEF,
    SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL, SHT_ANDROID_RELA, SHT_ANDROID_RELR, SHT_CREL,
    SHT_DYNSYM, SHT_REL, SHT_RELA, SHT_RELR, SHT_SYMTAB, STT_SECTION, STT_TLS,
};
use elf_core::raw64::{Dyn, Rela, Shdr, Sym};
use elf_core::{SectionHeader, relative_type};
use zerocopy::IntoBytes as _;
use zerocopy::byteorder::LE;

use super::moves::{Move, Moved, To, moved, target};
use super::sections::Table;
use crate::change::Change;
use crate::edits::Edits;
use crate::elf::{Elf, rows};
use crate::error::{Error, ErrorKind, Referrer, Result};

/// `R_X86_64_RELATIVE64`, besides `R_X86_64_RELATIVE`.
const R_X86_64_RELATIVE64: u32 = 38;

/// Forms of relocations that are not written here.
const REFUSED: [(u32, &str); 5] = [
    (SHT_REL, "relocations without addends"),
    (SHT_ANDROID_REL, "packed relocations of Android"),
    (SHT_ANDROID_RELA, "packed relocations of Android"),
    (SHT_AARCH64_AUTH_RELR, "signed relocations"),
    (SHT_CREL, "compact relocations (CREL)"),
];

/// Tags of the dynamic section that say where a table is.
const ADDRESSES: [u64; 15] = [
    DT_PLTGOT,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_RELA,
    DT_REL,
    DT_JMPREL,
    DT_INIT_ARRAY,
    DT_FINI_ARRAY,
    DT_PREINIT_ARRAY,
    DT_RELR,
    DT_GNU_HASH,
    DT_VERSYM,
    DT_VERDEF,
    DT_VERNEED,
];

/// Whether relocations of a type have no symbol, and an address for an addend.
fn is_relative(elf: &Elf<'_>, number: u32) -> bool {
    let machine = elf.header.e_machine.get();
    relative_type(machine, true) == number
        || (machine == EM_X86_64 && number == R_X86_64_RELATIVE64)
}

/// Lets everything that points to a region point to where it goes.
///
/// # Errors
/// If something points into a region, or nothing to it.
pub(super) fn retarget(
    elf: &Elf<'_>,
    moves: &[Move],
    pointers: &[u64],
    sections: &Table,
    patches: &mut Edits,
) -> Result<()> {
    let is_free = |one: &Move| [Moved::Tables, Moved::Unchanged].contains(&one.kind);
    let mut found: Vec<bool> = moves.iter().map(is_free).collect();
    let mut mark = |index: usize| {
        if let Some(seen) = found.get_mut(index) {
            *seen = true;
        }
    };
    for table in &elf.tables {
        match table.sh_type.get() {
            SHT_RELA => relocated(elf, table, moves, sections, patches, &mut mark)?,
            SHT_RELR | SHT_ANDROID_RELR => packed(elf, table, moves, patches, &mut mark)?,
            SHT_SYMTAB | SHT_DYNSYM => symbols(elf, table, moves, sections, patches)?,
            _ => {}
        }
    }
    if elf.header.e_type == ET_EXEC {
        fixed(elf, moves, pointers, patches, &mut mark)?;
    }
    dynamic(elf, moves, patches)?;
    match moves.iter().zip(&found).find(|(_, found)| !**found) {
        Some((lost, _)) => Err(Error::new(lost.offset, ErrorKind::Unreferenced)),
        None => Ok(()),
    }
}

/// Which of these addresses something points to.
///
/// # Errors
/// If a table lies outside the file.
pub(super) fn referenced(
    elf: &Elf<'_>,
    addresses: &HashSet<u64>,
    pointers: &[u64],
) -> Result<HashSet<u64>> {
    let mut found = HashSet::new();
    let mut mark = |address: u64| {
        if addresses.contains(&address) {
            found.insert(address);
        }
    };
    for table in &elf.tables {
        match table.sh_type.get() {
            SHT_RELA => {
                let symbols = symbols_of(elf, table)?;
                for record in elf.relocations(table)? {
                    let addend = record.r_addend.get().cast_unsigned();
                    let (symbol, kind) = symbol_and_type(record);
                    match usize::try_from(symbol).ok().and_then(|symbol| symbols.get(symbol)) {
                        Some(symbol) if has_address(elf, symbol) => {
                            mark(symbol.st_value.get().wrapping_add(addend));
                        }
                        _ if is_relative(elf, kind) => mark(addend),
                        _ => {}
                    }
                }
            }
            SHT_RELR | SHT_ANDROID_RELR => {
                let relocations = elf.file.relocations(&relr(table))?;
                let places = relocations.iter().flat_map(|all| all.iter());
                places.filter_map(|place| elf.word(place.offset)).for_each(|(_, word)| mark(word));
            }
            _ => {}
        }
    }
    pointers.iter().filter_map(|at| elf.word_at(*at)).for_each(mark);
    Ok(found)
}

/// Refuses regions with places of relocations: what they become, and where, says nothing of these.
///
/// # Errors
/// Names the first such place; if relocations are of a form that is not read here and a region moves.
pub(super) fn check_places(elf: &Elf<'_>, changes: &[Change]) -> Result<()> {
    let mut regions = Vec::new();
    for change in changes.iter().filter(|change| change.size > 0) {
        // what is not loaded nobody relocates
        let Ok(old) = elf.address(change.at) else { continue };
        let (offset, size, kind) = (change.at, change.size, Moved::WithSection);
        regions.push(Move { old, size, new: old, new_size: size, offset, kind });
    }
    regions.sort_by_key(|one| one.old);
    let check = |place: u64| match moved(&regions, place) {
        Some(one) => Err(Error::new(one.offset, ErrorKind::Relocated(place))),
        None => Ok(()),
    };
    for table in &elf.tables {
        match table.sh_type.get() {
            SHT_RELA => {
                let mut records = elf.relocations(table)?.iter();
                records.try_for_each(|record| check(record.r_offset.get()))?;
            }
            SHT_RELR | SHT_ANDROID_RELR => {
                let relocations = elf.file.relocations(&relr(table))?;
                for record in relocations.iter().flat_map(|all| all.iter()) {
                    check(record.offset)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses relocations of which it is not known here what they point to.
///
/// # Errors
/// Names the first form of them.
pub(super) fn check_forms(elf: &Elf<'_>) -> Result<()> {
    for table in &elf.tables {
        let form = REFUSED.iter().find(|(form, _)| table.sh_type == *form);
        if let Some((_, form)) = form {
            return Err(Error::new(table.sh_offset.get(), ErrorKind::Relocations(form)));
        }
    }
    Ok(())
}

/// A table of relocations without records.
fn relr(table: &Shdr<LE>) -> SectionHeader {
    SectionHeader {
        r#type: SHT_RELR,
        offset: table.sh_offset.get(),
        size: table.sh_size.get(),
        ..SectionHeader::default()
    }
}

/// Addresses in the dynamic section.
fn dynamic(elf: &Elf<'_>, moves: &[Move], patches: &mut Edits) -> Result<()> {
    const ROW: u64 = size_of::<Dyn<LE>>() as u64;
    let Some(segment) = elf.segments.iter().find(|segment| segment.p_type == PT_DYNAMIC) else {
        return Ok(());
    };
    let start = segment.p_offset.get();
    let all: &[Dyn<LE>] = rows(elf.bytes(), start, segment.p_filesz.get() / ROW)?;
    for (at, entry) in (start..).step_by(size_of::<Dyn<LE>>()).zip(all) {
        let tag = entry.d_tag.get().cast_unsigned();
        if tag == DT_NULL {
            break;
        }
        let Some(one) = moved(moves, entry.d_val.get()).filter(|_| ADDRESSES.contains(&tag)) else {
            continue;
        };
        if one.kind != Moved::Tables {
            return Err(inside(one, Referrer::Pointer, at, entry.d_val.get()));
        }
        let new = entry.d_val.get().wrapping_sub(one.old).wrapping_add(one.new);
        patches.put(at.saturating_add(8), &new.to_le_bytes())?;
    }
    Ok(())
}

/// Refuses an address inside a region.
const fn inside(moves: &Move, referrer: Referrer, place: u64, target: u64) -> Error {
    Error::new(moves.offset, ErrorKind::PointsInside { referrer, place, target })
}

/// The symbols that relocations of a table name; none if it names no table of them.
fn symbols_of<'a>(elf: &Elf<'a>, table: &Shdr<LE>) -> Result<&'a [Sym<LE>]> {
    let symbols = usize::try_from(table.sh_link.get()).ok().and_then(|link| elf.tables.get(link));
    match symbols {
        Some(section) if matches!(section.sh_type.get(), SHT_DYNSYM | SHT_SYMTAB) => {
            elf.symbols(section)
        }
        _ => Ok(&[]),
    }
}

/// Whether the value of a symbol is an address in a section here: a thread-local one's is an offset in the thread's block, and a number stays
/// a number. What is not loaded has offsets.
fn has_address(elf: &Elf<'_>, symbol: &Sym<LE>) -> bool {
    let index = symbol.st_shndx.get();
    let section = elf.sections.get(usize::from(index));
    (SHN_UNDEF + 1..SHN_LORESERVE).contains(&index)
        && symbol.st_info & 15 != STT_TLS
        && section.is_none_or(|section| section.sh_flags.get() & SHF_ALLOC != 0)
}

/// Symbol index and type of a relocation.
fn symbol_and_type(record: &Rela<LE>) -> (u64, u32) {
    let info = record.r_info.get();
    (info >> 32, u32::try_from(info & 0xffff_ffff).unwrap_or_default())
}

/// Relocations with addends.
fn relocated(
    elf: &Elf<'_>,
    table: &Shdr<LE>,
    moves: &[Move],
    sections: &Table,
    patches: &mut Edits,
    mark: &mut impl FnMut(usize),
) -> Result<()> {
    const ROW: u64 = size_of::<Rela<LE>>() as u64;
    let symbols = symbols_of(elf, table)?;
    // what `--emit-relocs` leaves for other tools: nobody applies it
    let is_note = table.sh_flags.get() & SHF_ALLOC == 0;
    for (row, record) in (0_u64..).zip(elf.relocations(table)?) {
        let (symbol, kind) = symbol_and_type(record);
        let at = table.sh_offset.get().saturating_add(row.saturating_mul(ROW)).saturating_add(16);
        let addend = record.r_addend.get().cast_unsigned();
        let place = record.r_offset.get();
        if symbol != 0 {
            let symbol = usize::try_from(symbol).ok().and_then(|symbol| symbols.get(symbol));
            let Some(symbol) = symbol.filter(|symbol| has_address(elf, symbol)) else { continue };
            let value = symbol.st_value.get().wrapping_add(addend);
            match target(moves, value) {
                To::Elsewhere => {}
                To::Start(index, one) if is_note && symbol.st_info & 15 == STT_SECTION => {
                    let start = sections.address(symbol.st_shndx.get());
                    let start = start.unwrap_or(symbol.st_value.get());
                    patches.put(at, &one.new.wrapping_sub(start).to_le_bytes())?;
                    mark(index);
                }
                To::Start(index, _) if addend == 0 => mark(index), // the symbol moves along
                To::Inside(one) if addend == 0 && one.kind == Moved::Tables => {}
                To::Start(_, one) | To::Inside(one) => {
                    return Err(inside(one, Referrer::RelocationWithSymbol, place, value));
                }
            }
            continue;
        }
        if !is_relative(elf, kind) {
            continue;
        }
        match target(moves, addend) {
            To::Elsewhere => {}
            To::Inside(one) => return Err(inside(one, Referrer::Relocation, place, addend)),
            To::Start(index, one) => {
                patches.put(at, &one.new.to_le_bytes())?;
                // some linkers write the address to the place as well
                if let Some((at, _)) = elf.word(place).filter(|(_, word)| *word == one.old) {
                    patches.put(at, &one.new.to_le_bytes())?;
                }
                mark(index);
            }
        }
    }
    Ok(())
}

/// Relative relocations without records: the address stands in the place.
fn packed(
    elf: &Elf<'_>,
    table: &Shdr<LE>,
    moves: &[Move],
    patches: &mut Edits,
    mark: &mut impl FnMut(usize),
) -> Result<()> {
    let Some(relocations) = elf.file.relocations(&relr(table))? else { return Ok(()) };
    for record in relocations.iter() {
        let Some((at, value)) = elf.word(record.offset) else { continue };
        match target(moves, value) {
            To::Elsewhere => {}
            To::Inside(one) => {
                return Err(inside(one, Referrer::RelocatedWord, record.offset, value));
            }
            To::Start(index, one) => {
                patches.put(at, &one.new.to_le_bytes())?;
                mark(index);
            }
        }
    }
    Ok(())
}

/// Words of a program at fixed addresses: those that are known to be pointers follow; any other that could be one is a reason to
/// refuse.
fn fixed(
    elf: &Elf<'_>,
    moves: &[Move],
    pointers: &[u64],
    patches: &mut Edits,
    mark: &mut impl FnMut(usize),
) -> Result<()> {
    for &at in pointers {
        let value = elf.word_at(at).unwrap_or_default();
        match target(moves, value) {
            To::Elsewhere => {}
            To::Inside(one) => return Err(inside(one, Referrer::Pointer, at, value)),
            To::Start(index, one) => {
                patches.put(at, &one.new.to_le_bytes())?;
                mark(index);
            }
        }
    }
    let moves_itself = |at: u64| {
        moves.iter().any(|one| (one.offset..one.offset.saturating_add(one.size)).contains(&at))
    };
    for part in elf.parts()?.iter().filter(|part| !part.executable) {
        for (at, word) in (part.offset..).step_by(8).zip(part.bytes.as_chunks::<8>().0) {
            let value = u64::from_le_bytes(*word);
            if let To::Start(_, one) | To::Inside(one) = target(moves, value)
                && !pointers.contains(&at)
                && !moves_itself(at)
            {
                return Err(inside(one, Referrer::Word(part.name.clone()), at, value));
            }
        }
    }
    Ok(())
}

/// Symbols of regions and of sections move along; a table in which any does is written anew.
fn symbols(
    elf: &Elf<'_>,
    table: &Shdr<LE>,
    moves: &[Move],
    sections: &Table,
    patches: &mut Edits,
) -> Result<()> {
    let mut all = elf.symbols(table)?.to_vec();
    let mut changed = false;
    for (row, symbol) in (0_u64..).zip(&mut all) {
        let index = symbol.st_shndx.get();
        if index == SHN_UNDEF || index >= SHN_LORESERVE {
            continue;
        }
        let old = *symbol;
        if !elf.sections.is_empty() {
            symbol.st_shndx = sections.index(index).into();
        }
        if symbol.st_info & 15 == STT_SECTION {
            if let Some(address) = sections.address(index) {
                symbol.st_value = address.into();
            }
        } else if has_address(elf, &old) {
            follow(elf, row, symbol, index, moves, sections)?;
        }
        changed |= old.as_bytes() != symbol.as_bytes();
    }
    if changed { patches.put(table.sh_offset.get(), all.as_bytes()) } else { Ok(()) }
}

/// Lets a symbol of section `index` follow what it is in.
fn follow(
    elf: &Elf<'_>,
    row: u64,
    symbol: &mut Sym<LE>,
    index: u16,
    moves: &[Move],
    sections: &Table,
) -> Result<()> {
    let value = symbol.st_value.get();
    // linkers leave symbols of merged sections behind, with addresses outside of their sections
    let is_other = |one: &Move| {
        let own = elf.sections.get(usize::from(index)).map(|section| {
            let start = section.sh_offset.get();
            start..start.saturating_add(section.sh_size.get())
        });
        let moved = one.offset..one.offset.saturating_add(one.size);
        own.is_some_and(|own| match one.kind {
            Moved::Tables => !moved.contains(&own.start),
            _ => !own.contains(&moved.start),
        })
    };
    match target(moves, value) {
        To::Elsewhere => {}
        To::Start(_, one) | To::Inside(one) if is_other(one) => {}
        To::Start(_, one) | To::Inside(one) if one.kind == Moved::Tables => {
            symbol.st_value = value.wrapping_sub(one.old).wrapping_add(one.new).into();
        }
        To::Inside(one) => return Err(inside(one, Referrer::Symbol, row, value)),
        To::Start(_, one) => {
            if let (Moved::Alone, Some((fresh, _))) = (one.kind, &sections.fresh) {
                symbol.st_shndx = (*fresh).into();
            }
            symbol.st_value = one.new.into();
            if symbol.st_size.get() >= one.size {
                symbol.st_size = one.new_size.into();
            }
        }
    }
    Ok(())
}
