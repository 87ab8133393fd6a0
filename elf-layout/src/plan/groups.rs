//! COMDAT groups: of several with one signature the first is kept, the members of the others are discarded (gABI ch. 3, "Section Groups").
//! Sections named `.gnu.linkonce.` are what compilers wrote before there were groups: of one name the first is kept, as GNU ld does it.

use crate::error::{Error, ErrorKind};
use crate::hash::{GROUP, NameTable};
use crate::model::linkonce::is_linkonce;
use crate::model::storage::{ObjectSlot, SectionSlot, SectionState};
use elf_core::names::{GRP_COMDAT, SHT_GROUP, STT_SECTION};
use elf_core::{File, Name, SectionHeader};

/// Discards the members of every COMDAT group of one object that an earlier object has as well.
pub(crate) fn discard_duplicates(
    number: usize,
    files: &[File<'_>],
    objects: &[ObjectSlot<'_>],
    sections: &mut [SectionSlot],
    names: &mut NameTable<'_>,
) -> Result<(), Error> {
    let (Some(file), Some(object)) = (files.get(number), objects.get(number)) else {
        return Ok(());
    };
    for (index, section) in (0..u32::MAX).zip(file.sections()) {
        let is_linkonce = is_linkonce(file, &section);
        if section.r#type != SHT_GROUP && !is_linkonce {
            continue;
        }
        let elf = Error::elf(number, index);
        let mut words = file.group(&section).map_err(&elf)?;
        let flags = words.as_mut().and_then(Iterator::next);
        if !is_linkonce && flags.is_none_or(|flags| flags & GRP_COMDAT == 0) {
            continue;
        }
        let signature = signature(file, object, &section).map_err(&elf)?;
        let id = GROUP | object.first_section.saturating_add(index as usize) as u32;
        let same = |other: u32| signature_of(files, objects, other & !GROUP) == Some(signature);
        let full = Error::object(number, ErrorKind::Storage { what: "names", needed: usize::MAX });
        if names.find_or_insert(signature, id, same).ok_or(full)? == id {
            continue;
        }
        let mut discard = |member: u32| {
            let at = object.first_section.checked_add(member as usize);
            if let Some(slot) = at.and_then(|at| sections.get_mut(at)) {
                slot.state = SectionState::Discarded;
            }
        };
        while let Some(member) = words.as_mut().and_then(Iterator::next) {
            file.section(member).map_err(&elf)?;
            discard(member);
        }
        if is_linkonce {
            discard(index);
        }
    }
    Ok(())
}

/// The signature, by which groups are the same: the name of a symbol, or of the section that it stands for.
fn signature<'a>(
    file: &File<'a>,
    object: &ObjectSlot<'a>,
    group: &SectionHeader,
) -> Result<Name<'a>, elf_core::Error> {
    if group.r#type != SHT_GROUP {
        return file.section_name(group);
    }
    let Some(table) = &object.symbols else { return Ok(Name::default()) };
    let symbol = table.get(group.info)?;
    let name = table.name_of(&symbol)?;
    match table.section_of(group.info, &symbol)? {
        elf_core::Definition::Section(section)
            if name.is_empty() && symbol.r#type() == STT_SECTION =>
        {
            file.section_name(&file.section(section)?)
        }
        _ => Ok(name),
    }
}

/// The same by number.
fn signature_of<'a>(files: &[File<'a>], objects: &[ObjectSlot<'a>], id: u32) -> Option<Name<'a>> {
    let id = id as usize;
    let number = objects.partition_point(|object| object.first_section <= id).checked_sub(1)?;
    let (file, object) = (files.get(number)?, objects.get(number)?);
    let section = file.section(id.checked_sub(object.first_section)? as u32).ok()?;
    signature(file, object, &section).ok()
}
