//! Pointers to regions that move: relocations, and words that are known to be pointers, follow them; any other is a reason to refuse.

use elf_core::names::{
    EM_X86_64, ET_EXEC, SHN_LORESERVE, SHN_UNDEF, SHT_AARCH64_AUTH_RELR, SHT_ANDROID_REL,
    SHT_ANDROID_RELA, SHT_ANDROID_RELR, SHT_CREL, SHT_DYNSYM, SHT_REL, SHT_RELA, SHT_RELR,
    SHT_SYMTAB,
};
use elf_core::raw64::{Rela, Shdr, Sym};
use elf_core::{SectionHeader, relative_type};
use zerocopy::byteorder::LE;

use super::moves::{Move, To, target};
use crate::elf::Elf;
use crate::error::{Error, ErrorKind, Referrer, Result};
use crate::plan::Draft;

/// `R_X86_64_RELATIVE64`, besides `R_X86_64_RELATIVE`.
const RELATIVE_64: u32 = 38;

/// Forms of relocations that are not written here.
const REFUSED: [(u32, &str); 5] = [
    (SHT_REL, "relocations without addends"),
    (SHT_ANDROID_REL, "packed relocations of Android"),
    (SHT_ANDROID_RELA, "packed relocations of Android"),
    (SHT_AARCH64_AUTH_RELR, "signed relocations"),
    (SHT_CREL, "compact relocations (CREL)"),
];

/// Whether relocations of a type have no symbol, and an address for an addend.
fn is_relative(elf: &Elf<'_>, number: u32) -> bool {
    let machine = elf.header.e_machine.get();
    relative_type(machine, true) == number || (machine == EM_X86_64 && number == RELATIVE_64)
}

/// Lets everything that points to a region point to where it goes.
///
/// # Errors
/// If something points into a region, or nothing to it.
pub(super) fn retarget(
    elf: &Elf<'_>,
    moves: &[Move],
    pointers: &[u64],
    plan: &mut Draft,
) -> Result<()> {
    let mut found = vec![false; moves.len()];
    let mut mark = |index: usize| {
        if let Some(seen) = found.get_mut(index) {
            *seen = true;
        }
    };
    for table in &elf.tables {
        match table.sh_type.get() {
            SHT_RELA => relocated(elf, table, moves, plan, &mut mark)?,
            SHT_RELR | SHT_ANDROID_RELR => packed(elf, table, moves, plan, &mut mark)?,
            SHT_SYMTAB | SHT_DYNSYM => symbols(elf, table, moves, plan)?,
            other => {
                if let Some((_, form)) = REFUSED.iter().find(|(form, _)| *form == other) {
                    return Err(Error::new(table.sh_offset.get(), ErrorKind::Relocations(form)));
                }
            }
        }
    }
    if elf.header.e_type == ET_EXEC {
        fixed(elf, moves, pointers, plan, &mut mark)?;
    }
    match moves.iter().zip(&found).find(|(_, found)| !**found) {
        Some((lost, _)) => Err(Error::new(lost.offset, ErrorKind::Unreferenced)),
        None => Ok(()),
    }
}

/// Refuses an address inside a region.
const fn inside(moves: &Move, referrer: Referrer, place: u64, target: u64) -> Error {
    Error::new(moves.offset, ErrorKind::PointsInside { referrer, place, target })
}

/// Relocations with addends.
fn relocated(
    elf: &Elf<'_>,
    table: &Shdr<LE>,
    moves: &[Move],
    plan: &mut Draft,
    mark: &mut impl FnMut(usize),
) -> Result<()> {
    const ROW: u64 = size_of::<Rela<LE>>() as u64;
    let symbols = usize::try_from(table.sh_link.get()).ok().and_then(|link| elf.tables.get(link));
    let symbols: &[Sym<LE>] = match symbols {
        Some(section) if matches!(section.sh_type.get(), SHT_DYNSYM | SHT_SYMTAB) => {
            elf.symbols(section)?
        }
        _ => &[],
    };
    for (row, record) in (0_u64..).zip(elf.relocations(table)?) {
        let info = record.r_info.get();
        let (symbol, kind) = (info >> 32, u32::try_from(info & 0xffff_ffff).unwrap_or_default());
        let addend = record.r_addend.get().cast_unsigned();
        let place = record.r_offset.get();
        if symbol != 0 {
            let symbol = usize::try_from(symbol).ok().and_then(|symbol| symbols.get(symbol));
            let Some(symbol) = symbol.filter(|symbol| symbol.st_shndx != SHN_UNDEF) else {
                continue;
            };
            let value = symbol.st_value.get().wrapping_add(addend);
            match target(moves, value) {
                To::Elsewhere => {}
                To::Start(index, _) if addend == 0 => mark(index), // the symbol moves along
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
                let at = table
                    .sh_offset
                    .get()
                    .saturating_add(row.saturating_mul(ROW))
                    .saturating_add(16);
                plan.edits.put(at, &one.new.to_le_bytes())?;
                // some linkers write the address to the place as well
                if let Some((at, _)) = elf.word(place).filter(|(_, word)| *word == one.old) {
                    plan.edits.put(at, &one.new.to_le_bytes())?;
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
    plan: &mut Draft,
    mark: &mut impl FnMut(usize),
) -> Result<()> {
    let header = SectionHeader {
        r#type: SHT_RELR,
        offset: table.sh_offset.get(),
        size: table.sh_size.get(),
        ..SectionHeader::default()
    };
    let Some(relocations) = elf.file.relocations(&header)? else { return Ok(()) };
    for record in relocations.iter() {
        let Some((at, value)) = elf.word(record.offset) else { continue };
        match target(moves, value) {
            To::Elsewhere => {}
            To::Inside(one) => {
                return Err(inside(one, Referrer::RelocatedWord, record.offset, value));
            }
            To::Start(index, one) => {
                plan.edits.put(at, &one.new.to_le_bytes())?;
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
    plan: &mut Draft,
    mark: &mut impl FnMut(usize),
) -> Result<()> {
    for &at in pointers {
        let value = elf.word_at(at).unwrap_or_default();
        match target(moves, value) {
            To::Elsewhere => {}
            To::Inside(one) => return Err(inside(one, Referrer::Pointer, at, value)),
            To::Start(index, one) => {
                plan.edits.put(at, &one.new.to_le_bytes())?;
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

/// Symbols of regions move along.
fn symbols(elf: &Elf<'_>, table: &Shdr<LE>, moves: &[Move], plan: &mut Draft) -> Result<()> {
    const ROW: u64 = size_of::<Sym<LE>>() as u64;
    for (row, symbol) in (0_u64..).zip(elf.symbols(table)?) {
        let index = symbol.st_shndx.get();
        let at = table.sh_offset.get().saturating_add(row.saturating_mul(ROW));
        if index == SHN_UNDEF || index >= SHN_LORESERVE {
            continue;
        }
        if symbol.st_info & 15 == elf_core::names::STT_SECTION {
            // a section that moves as a whole takes its symbol along
            let own = moves.iter().filter(|one| one.section == usize::from(index));
            if let Some(start) = own.map(|one| one.new).min() {
                let new = Sym { st_value: start.into(), ..*symbol };
                plan.edits.put(at, zerocopy::IntoBytes::as_bytes(&new))?;
            }
            continue;
        }
        // linkers leave symbols of merged sections behind, with addresses outside of their sections
        let other = |one: &Move| {
            !elf.sections.is_empty() && elf.section_at(one.offset) != Some(usize::from(index))
        };
        match target(moves, symbol.st_value.get()) {
            To::Elsewhere => {}
            To::Start(_, one) | To::Inside(one) if other(one) => {}
            To::Inside(one) => {
                return Err(inside(one, Referrer::Symbol, row, symbol.st_value.get()));
            }
            To::Start(_, one) => {
                let size = symbol.st_size.get();
                let mut new = *symbol;
                if !elf.sections.is_empty() {
                    let section = u16::try_from(one.section);
                    new.st_shndx =
                        section.map_err(|_| Error::new(at, ErrorKind::TooManyHeaders))?.into();
                }
                new.st_value = one.new.into();
                new.st_size = if size >= one.size { one.new_size.into() } else { symbol.st_size };
                plan.edits.put(at, zerocopy::IntoBytes::as_bytes(&new))?;
            }
        }
    }
    Ok(())
}
