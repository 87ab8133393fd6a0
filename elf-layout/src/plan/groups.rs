//! COMDAT groups: of several with one signature the first is kept, the members of the others are discarded (gABI ch. 3, "Section Groups").
//! Sections named `.gnu.linkonce.` are what compilers wrote before there were groups: of one name the first is kept, as GNU ld does it.

use crate::error::{Error, ErrorKind};
use crate::hash::GROUP;
use crate::model::linkonce::is_linkonce;
use crate::model::names::Names;
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState};
use elf_core::names::{GRP_COMDAT, SHT_GROUP, STT_SECTION};
use elf_core::{Definition, File, Name, SectionHeader, SymbolTable};

/// Discards the members of every COMDAT group of one object that an earlier object has as well.
pub(crate) fn discard_duplicates(
    number: usize,
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &mut [SectionSlot],
    names: &mut Names<'_, '_>,
) -> Result<(), Error> {
    let (Some(file), Some(object)) = (files.get(number), objects.get(number)) else {
        return Ok(());
    };
    let id_of = |index: u32| GROUP | object.first_section.saturating_add(index as usize) as u32;
    let full = || Error::object(number, ErrorKind::Storage { what: "names", needed: usize::MAX });
    let mut discard = |index: u32, section: &SectionHeader| {
        let elf = Error::elf(number, index);
        discard_members(file, (index, section), |member| {
            let at = object.first_section.checked_add(member as usize);
            if let Some(slot) = at.and_then(|at| sections.get_mut(at)) {
                slot.state = SectionState::Discarded;
            }
        })
        .map_err(elf)
    };
    if let Some(own) = names.known(number) {
        for &(index, signature) in own.groups {
            if !names.is_first_group(signature, id_of(index)).ok_or_else(full)? {
                let section = file.section(index).map_err(Error::elf(number, index))?;
                discard(index, &section)?;
            }
        }
        return Ok(());
    }
    for (index, section) in (0..u32::MAX).zip(file.sections()) {
        let elf = Error::elf(number, index);
        let signature = signature(file, object.symbols.as_ref(), &section).map_err(elf)?;
        let Some(signature) = signature else { continue };
        let id = id_of(index);
        let same = |other: u32| signature_of(files, objects, other & !GROUP) == Some(signature);
        if names.table.find_or_insert(signature, id, same).ok_or_else(full)? != id {
            discard(index, &section)?;
        }
    }
    Ok(())
}

/// Calls `discard` with the sections that go with a COMDAT group.
fn discard_members(
    file: &File<'_>,
    (index, section): (u32, &SectionHeader),
    mut discard: impl FnMut(u32),
) -> Result<(), elf_core::Error> {
    let Some(words) = file.group(section)? else {
        discard(index);
        return Ok(());
    };
    let count = file.sections().len();
    // flags come first
    for member in words.skip(1) {
        if member as usize >= count {
            file.section(member)?;
        }
        discard(member);
    }
    Ok(())
}

/// The signature of a section that is a COMDAT group, by which groups are the same: the name of a symbol, or of the section that it stands
/// for. `None` for other sections.
pub(crate) fn signature<'a>(
    file: &File<'a>,
    symbols: Option<&SymbolTable<'a>>,
    section: &SectionHeader,
) -> Result<Option<Name<'a>>, elf_core::Error> {
    if section.r#type != SHT_GROUP {
        return is_linkonce(file, section).then(|| file.section_name(section)).transpose();
    }
    if !is_comdat(file, section)? {
        return Ok(None);
    }
    let Some(table) = symbols else { return Ok(Some(Name::default())) };
    let symbol = table.get(section.info)?;
    let name = table.name_of(&symbol)?;
    if !name.is_empty() || symbol.r#type() != STT_SECTION {
        return Ok(Some(name));
    }
    match table.section_of(section.info, &symbol)? {
        Definition::Section(section) => file.section_name(&file.section(section)?).map(Some),
        _ => Ok(Some(name)),
    }
}

/// Whether a section is a group of which one is enough.
pub(crate) fn is_comdat(file: &File<'_>, section: &SectionHeader) -> Result<bool, elf_core::Error> {
    let flags = file.group(section)?.and_then(|mut words| words.next());
    Ok(flags.is_some_and(|flags| flags & GRP_COMDAT != 0))
}

/// The same by number.
fn signature_of<'a>(files: &[File<'a>], objects: &[ObjectSlot<'a>], id: u32) -> Option<Name<'a>> {
    let id = id as usize;
    let number = objects.partition_point(|object| object.first_section <= id).checked_sub(1)?;
    let (file, object) = (files.get(number)?, objects.get(number)?);
    let section = file.section(id.checked_sub(object.first_section)? as u32).ok()?;
    signature(file, object.symbols.as_ref(), &section).ok()?
}
