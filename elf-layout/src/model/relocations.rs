//! The relocations of a section that is loaded.

use crate::error::{Error, ErrorKind};
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState};
use elf_core::names::{SHT_CREL, SHT_REL, SHT_RELA};
use elf_core::{
    Arch, Definition, File, Pass, Record, Relocations, SectionHeader, decide_all, decides,
};

/// A relocation section whose target is loaded.
pub(crate) struct Target<'a, 's> {
    /// Index of the relocation section.
    pub(crate) section: u32,
    /// Index of the section it applies to.
    pub(crate) target: u32,
    /// Where that is, among all sections.
    pub(crate) slot: &'s SectionSlot,
    pub(crate) records: Relocations<'a>,
}

/// Whether a section holds relocations.
#[inline]
pub(crate) const fn is_relocations(header: &SectionHeader) -> bool {
    matches!(header.r#type, SHT_RELA | SHT_REL | SHT_CREL)
}

/// The relocations of section `index`, which holds some, if they are for a loaded section.
// a part of the loop over sections where there is room for code
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline)]
pub(crate) fn target<'a, 's>(
    number: usize,
    index: u32,
    header: &SectionHeader,
    file: &File<'a>,
    object: &ObjectSlot<'_>,
    sections: &'s [SectionSlot],
) -> Result<Option<Target<'a, 's>>, Error> {
    let elf = Error::elf(number, index);
    let target = header.info;
    let at =
        object.first_section.checked_add(target as usize).filter(|_| target < object.section_count);
    let slot = match at.and_then(|at| sections.get(at)) {
        Some(slot) => slot,
        None => return file.section(target).map(|_| None).map_err(elf),
    };
    if !matches!(slot.state, SectionState::Placed(_)) {
        return Ok(None);
    }
    let Some(records) = file.relocations(header).map_err(elf)? else { return Ok(None) };
    if header.link != object.symbol_table && !records.is_empty() {
        let kind = ErrorKind::SymbolTable { link: header.link };
        return Err(Error { object: number, section: index, kind });
    }
    Ok(Some(Target { section: index, target, slot, records }))
}

/// Offset in section `section` of the label that a record's symbol is.
pub(crate) fn label(object: &ObjectSlot<'_>, section: u32, record: &Record) -> Option<u64> {
    let table = object.symbols.as_ref()?;
    let symbol = table.get(record.symbol).ok()?;
    match table.section_of(record.symbol, &symbol) {
        Ok(Definition::Section(found)) if found == section => Some(symbol.value),
        _ => None,
    }
}

/// Goes over a section's records as they are decided. Where code is scarcer than time (addresses of 32 bits), and there is much to
/// decide, one loop serves all passes; else each has its own, in which what it does with a record is part of the loop.
#[inline]
pub(crate) fn pass_over<A: Arch>(
    records: &Relocations<'_>,
    pass: &mut impl Pass<Error = Error>,
) -> Result<(), Error> {
    if cfg!(target_pointer_width = "64") || !const { decides(A::KINDS) } {
        return decide_all::<A, _>(records, pass);
    }
    decide_all::<A, dyn Pass<Error = Error> + '_>(records, pass)
}
