//! What may differ between two links: where the entries of a GOT are, and by which instructions they are used.

use std::collections::HashMap;

use archs::Architecture;
use elf_core::{
    Arch, File, Query, Record, Role, SectionHeader, SectionMut, Slot, apply_kind, find,
};
use elf_layout::Layout;
use hoist_tool::objects::Objects;

use crate::descriptors;
use crate::linker::content;
use crate::meaning;

/// Leads the fields of a section that mean GOT entries to the other linker's entries of the same content: how many they are.
pub(crate) fn lead_to_other_got<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    (number, index): (usize, u32),
    ours: &mut [u8],
    linked: &File<'_>,
    theirs: &[u8],
    base: u64,
) -> usize {
    let file = &objects.files()[number];
    let address = base + layout.section(number, index).expect("a section that is loaded");
    let big_endian = file.encoding().is_big_endian();
    let entries = entries_of(linked, A::ADDRESS_SIZE as usize, big_endian);
    let moved = |offset| layout.place(number, index, offset).expect("a place") + base - address;
    let section = file.section(index).expect("a section");
    let original = file.section_data(&section).expect("its bytes");
    let mut count = 0;
    for header in file.sections().iter().filter(|header| header.info == index) {
        for mut record in file.relocations(&header).expect("relocations").into_iter().flatten() {
            let Some(kind) = find(A::KINDS, record.r#type) else { continue };
            // a lower part has the value of the upper one at its label
            let upper = match kind.value.of {
                Role::Partner => upper_part::<A>(file, &header, &record),
                _ => None,
            };
            let asked = upper.unwrap_or(record);
            let role = find(A::KINDS, asked.r#type).map(|kind| kind.value.of);
            let mut content = match role {
                Some(Role::Got(content)) => content,
                Some(Role::TypeInfo) => Slot::Address,
                _ => continue,
            };
            // LoongArch's lower parts leave it to the symbol
            if content == Slot::Address && layout.variable(number, asked.symbol).is_some() {
                content = Slot::TlsGd;
            }
            count += 1;
            let start = moved(record.offset);
            let place = start as usize..start as usize + kind.field.bytes();
            if theirs.get(place.clone()) == ours.get(place.clone()) {
                continue;
            }
            // the addend of a REL record was at the place
            let at = record.offset as usize..record.offset as usize + kind.field.bytes();
            let held = || kind.field.addend_at(&original[at.clone()], big_endian);
            record = Record { addend: record.addend.or_else(held), offset: start, ..record };
            let upper = upper.map(|upper| Record { offset: moved(upper.offset), ..upper });
            let got_base = base + layout.got().0;
            let held = match content {
                Slot::Address => layout.symbol(number, asked.symbol).map(|it| it.at(base)),
                // the module's own
                Slot::TlsLd => Some(0),
                content => variable(layout, number, asked.symbol, content),
            };
            let Some(held) = held else { continue };
            let module = layout.executable_tls_block().module;
            // the second of two words
            let before = (content.entries() - 1) * A::ADDRESS_SIZE;
            for entry in entries.get(&held).map_or(&[][..], Vec::as_slice) {
                let entry = entry - before;
                let is_pair = matches!(content, Slot::TlsGd | Slot::TlsLd);
                let starts = || entries.get(&module).is_some_and(|found| found.contains(&entry));
                if is_pair && !starts() {
                    continue;
                }
                let resolve = |query: &Query| match query.role {
                    Role::Got(_) | Role::TypeInfo => Some(entry),
                    Role::GotBase => Some(got_base),
                    _ => None,
                };
                let mut section = SectionMut { bytes: &mut *ours, address, big_endian };
                let _ = apply_kind::<A>(kind, &record, upper.as_ref(), &mut section, &resolve);
                if theirs.get(place.clone()) == ours.get(place.clone()) {
                    break;
                }
            }
        }
    }
    count
}

/// The relocation with the upper part, which is at the label that a record's symbol is.
fn upper_part<A: Arch>(file: &File<'_>, header: &SectionHeader, record: &Record) -> Option<Record> {
    let table = file.symbol_table().expect("symbols")?;
    let label = table.get(record.symbol).expect("a symbol").value;
    let is_got = |record: &Record| {
        find(A::KINDS, record.r#type).is_some_and(|kind| matches!(kind.value.of, Role::Got(_)))
    };
    let mut records = file.relocations(header).expect("relocations").into_iter().flatten();
    records.find(|record| record.offset == label && is_got(record))
}

/// The last word of a GOT entry of this content for a thread-local variable.
fn variable<A: Arch>(
    layout: &Layout<'_, '_, A>,
    object: usize,
    symbol: u32,
    content: Slot,
) -> Option<u64> {
    let offset = layout.variable(object, symbol)?;
    let word = match content {
        Slot::TpOffset => offset.wrapping_add_signed(layout.executable_tls_block().tp_offset?),
        Slot::TlsGd => offset.wrapping_add_signed(A::TLS?.dtp_bias),
        _ => return None,
    };
    Some(if A::ADDRESS_SIZE == 4 { word & u64::from(u32::MAX) } else { word })
}

/// Where an instruction and the linker's do the same in other words, takes the linker's: how often.
pub(crate) fn take_their_words<A: Arch>(
    layout: &Layout<'_, '_, A>,
    objects: &Objects<'_>,
    (number, index): (usize, u32),
    (ours, image): (&mut [u8], &[u8]),
    linked: &File<'_>,
    theirs: &[u8],
    base: u64,
) -> usize {
    let file = &objects.files()[number];
    let address = base + layout.section(number, index).expect("a section that is loaded");
    let machine = objects.machine();
    let got_base = base + layout.got().0;
    let word = |bytes: &[u8]| {
        let bytes = bytes.get(..A::ADDRESS_SIZE as usize)?;
        let fold = |word, &byte: &u8| word << 8 | u64::from(byte);
        Some(match file.encoding().is_big_endian() {
            true => bytes.iter().fold(0, fold),
            false => bytes.iter().rev().fold(0, fold),
        })
    };
    let our_got = |at: u64| word(image.get(usize::try_from(at.checked_sub(base)?).ok()?..)?);
    let tables = [".got", ".got.plt"].map(|name| content(linked, name));
    let their_got = |at: u64| {
        let entry =
            |(start, bytes): &(u64, &[u8])| word(bytes.get(at.checked_sub(*start)? as usize..)?);
        tables.iter().flatten().find_map(entry)
    };
    let mut count = 0;
    for header in file.sections().iter().filter(|header| header.info == index) {
        for record in file.relocations(&header).expect("relocations").into_iter().flatten() {
            if machine == Architecture::Arm && record.r#type == descriptors::WORD {
                let original = file.section(index).and_then(|header| file.section_data(&header));
                let original = original.expect("its bytes");
                let place = record.offset as usize;
                let big_endian = file.encoding().is_big_endian();
                let codes = descriptors::Codes { original, theirs, address, big_endian };
                count += usize::from(codes.take_initial_exec(place, ours, &their_got));
                continue;
            }
            let Some((before, size)) = meaning::extent(machine, record.r#type) else { continue };
            let Some(start) = (record.offset as usize).checked_sub(before) else { continue };
            let place = start..start + size;
            let (Some(our), Some(their)) = (ours.get(place.clone()), theirs.get(place.clone()))
            else {
                continue;
            };
            if our == their {
                continue;
            }
            let at = address + start as u64;
            let meant = meaning::meaning(machine, our, at, got_base, &our_got);
            if meant.is_some()
                && meant == meaning::meaning(machine, their, at, got_base, &their_got)
            {
                count += 1;
                ours[place.clone()].copy_from_slice(&theirs[place]);
            }
        }
    }
    count
}

/// The GOT entries of a linked file by what they hold.
fn entries_of(linked: &File<'_>, size: usize, big_endian: bool) -> HashMap<u64, Vec<u64>> {
    let mut entries: HashMap<u64, Vec<u64>> = HashMap::new();
    for name in [".got", ".got.plt"] {
        let Some((address, bytes)) = content(linked, name) else { continue };
        for (entry, word) in (address..).step_by(size).zip(bytes.chunks(size)) {
            let fold = |word, &byte: &u8| word << 8 | u64::from(byte);
            let value = if big_endian {
                word.iter().fold(0, fold)
            } else {
                word.iter().rev().fold(0, fold)
            };
            entries.entry(value).or_default().push(entry);
        }
    }
    entries
}
