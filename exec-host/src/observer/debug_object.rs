//! An object as debuggers and profilers want it: its sections at the addresses where they are loaded, nothing left to relocate.

use super::Loaded;
use crate::Host;
use crate::word::raw::{Shdr, Sym};
use crate::word::{self, bytes};
use core::mem::offset_of;
use core::ops::Range;
use elf_core::names::{
    SHN_ABS, SHN_UNDEF, SHT_CREL, SHT_GROUP, SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA,
};
use elf_core::{
    Decision, Definition, File, Query, Record, Role, SectionFlags, SectionHeader, SectionMut, Site,
    SymbolTable, apply_kind, decide, find_of,
};

/// A copy of object `object`, still relocatable by its type, with `sh_addr` of every loaded section. Sections that are not
/// loaded are no sections any more. Relocations are applied and gone but for those of compressed sections.
///
/// Nothing if the object is not of this process's class and little-endian: no debugger of this process would understand it.
pub(super) fn debug_object(loaded: &Loaded<'_>, object: usize) -> Option<Vec<u8>> {
    let file = loaded.files().get(object)?;
    let encoding = file.encoding();
    if encoding.is_64() != word::IS_64 || encoding.is_big_endian() {
        return None;
    }
    let mut copy = Copy { loaded, object, file, bytes: file.bytes().to_vec() };
    let table = file.symbol_table().ok().flatten();
    for (index, header) in (0u32..).zip(file.sections()) {
        copy.section(index, &header, table.as_ref());
    }
    if let Some(table) = table {
        copy.symbols(&table);
    }
    Some(copy.bytes)
}

struct Copy<'c, 'l> {
    loaded: &'c Loaded<'l>,
    object: usize,
    file: &'c File<'l>,
    bytes: Vec<u8>,
}

impl Copy<'_, '_> {
    fn section(&mut self, index: u32, header: &SectionHeader, table: Option<&SymbolTable<'_>>) {
        let relocates = matches!(header.r#type, SHT_RELA | SHT_REL | SHT_CREL);
        let mut gone = header.r#type == SHT_GROUP;
        if header.flags.contains(SectionFlags::ALLOC) && !relocates {
            match self.loaded.section(self.object, index) {
                Some(address) => self.copy_loaded(index, header, address),
                None => gone = true,
            }
        } else if relocates {
            gone = match self.file.section(header.info) {
                Ok(target) if target.flags.contains(SectionFlags::ALLOC) => true,
                Ok(target) if target.flags.contains(SectionFlags::COMPRESSED) => false,
                Ok(target) => table.is_none_or(|table| self.relocate(header, &target, table)),
                Err(_) => false,
            };
        }
        if gone {
            self.put(index, offset_of!(Shdr, sh_type), &SHT_NULL.to_le_bytes());
        }
        let kept = header.flags - (SectionFlags::GROUP | SectionFlags::LINK_ORDER);
        self.put(index, offset_of!(Shdr, sh_flags), &bytes(kept.bits()));
    }

    /// Changes a field of a section's header.
    fn put(&mut self, index: u32, field: usize, value: &[u8]) {
        let start = (index as usize).checked_mul(size_of::<Shdr>());
        let start = start.and_then(|start| start.checked_add(field));
        let start =
            start.and_then(|start| start.checked_add(self.file.header().section_headers as usize));
        write(&mut self.bytes, start, value);
    }

    /// Takes address, size and bytes of a section from the image.
    fn copy_loaded(&mut self, index: u32, header: &SectionHeader, address: u64) {
        let size = self.loaded.layout.section_size(self.object, index).unwrap_or(header.size);
        self.put(index, offset_of!(Shdr, sh_addr), &bytes(address));
        self.put(index, offset_of!(Shdr, sh_size), &bytes(size));
        if header.r#type != SHT_NOBITS
            && let Some(image) = self.loaded.bytes(address, size)
        {
            write(&mut self.bytes, usize::try_from(header.offset).ok(), image);
        }
    }

    /// Relocates a section that is not loaded. What cannot be known stays as it is.
    fn relocate(
        &mut self,
        header: &SectionHeader,
        target: &SectionHeader,
        table: &SymbolTable<'_>,
    ) -> bool {
        let Ok(Some(records)) = self.file.relocations(header) else { return false };
        let Some(bytes) = range(target).and_then(|range| self.bytes.get_mut(range)) else {
            return false;
        };
        // 0 would end a list of ranges
        let name = self.file.section_name(target).unwrap_or_default();
        let nowhere = u64::from(name == ".debug_ranges" || name == ".debug_loc");
        let (loaded, object, file) = (self.loaded, self.object, self.file);
        let resolve = |query: &Query| {
            if !matches!(query.role, Role::Address | Role::Plt) {
                return None;
            }
            let symbol = table.get(query.symbol).ok()?;
            let gone = || Some(nowhere.wrapping_add_signed(query.addend.wrapping_neg()));
            match table.section_of(query.symbol, &symbol).ok()? {
                Definition::Section(section) => {
                    let flags = file.section(section).ok()?.flags;
                    // the place that is meant: what is before it may have become shorter
                    let meant = symbol.value.wrapping_add_signed(query.addend);
                    match loaded.place(object, section, meant) {
                        Some(place) => Some(place.wrapping_add_signed(query.addend.wrapping_neg())),
                        None if flags.contains(SectionFlags::ALLOC) => gone(),
                        None => Some(symbol.value),
                    }
                }
                _ => loaded.symbol(object, query.symbol).or_else(gone),
            }
        };
        let records: Vec<Record> = records.iter().collect();
        let mut section = SectionMut { bytes, address: 0, big_endian: false };
        for index in 0..records.len() {
            // a debugger knows less of what cannot be applied, and is not told anything wrong; the second of a pair went with the first
            let _ = apply_record(&records, index, &mut section, &resolve);
        }
        true
    }

    /// Symbols of sections that are not loaded are defined elsewhere; common ones have an address; of those that are loaded value and size are
    /// as in memory.
    fn symbols(&mut self, table: &SymbolTable<'_>) {
        let Ok(header) = self.file.section(table.section()) else { return };
        for (index, symbol) in (0u32..).zip(table.symbols().iter()) {
            let layout = self.loaded.layout;
            let (section, value) = match table.section_of(index, &symbol) {
                Ok(Definition::Section(section))
                    if self.loaded.section(self.object, section).is_none()
                        && self
                            .file
                            .section(section)
                            .is_ok_and(|section| section.flags.contains(SectionFlags::ALLOC)) =>
                {
                    (SHN_UNDEF, 0)
                }
                Ok(Definition::Section(section))
                    if layout.section_size(self.object, section).is_some_and(|size| {
                        self.file.section(section).is_ok_and(|header| size < header.size)
                    }) =>
                {
                    let start = layout.section(self.object, section).unwrap_or(0);
                    let place = layout.place(self.object, section, symbol.value).unwrap_or(start);
                    (symbol.shndx, place.wrapping_sub(start))
                }
                Ok(Definition::Common) => match self.loaded.symbol(self.object, index) {
                    Some(address) => (SHN_ABS, address),
                    None => continue,
                },
                _ => continue,
            };
            let start = (index as usize).checked_mul(size_of::<Sym>());
            let start =
                start.and_then(|start| start.checked_add(usize::try_from(header.offset).ok()?));
            let field = |field: usize| start.and_then(|start| start.checked_add(field));
            write(&mut self.bytes, field(offset_of!(Sym, st_shndx)), &section.to_le_bytes());
            write(&mut self.bytes, field(offset_of!(Sym, st_value)), &bytes(value));
            let size = layout.symbol_size(self.object, index).unwrap_or(symbol.size);
            write(&mut self.bytes, field(offset_of!(Sym, st_size)), &bytes(size));
        }
    }
}

/// Applies a record to a section of no code, with the one that belongs to it: sizes of code that may have become shorter.
fn apply_record(
    records: &[Record],
    index: usize,
    section: &mut SectionMut<'_>,
    symbols: &impl Fn(&Query) -> Option<u64>,
) -> Option<()> {
    let site = Site::new(&[], records, index)?;
    let kind = find_of::<Host>(site.record.r#type)?;
    let partner = match decide(kind, &site, symbols).ok()? {
        Decision::Pair(pairing) => Some(pairing.partner),
        _ => None,
    };
    apply_kind::<Host>(kind, site.record, partner.as_ref(), section, symbols).ok()
}

/// Where a section's bytes are in its file.
fn range(header: &SectionHeader) -> Option<Range<usize>> {
    let start = usize::try_from(header.offset).ok()?;
    Some(start..start.checked_add(usize::try_from(header.size).ok()?)?)
}

/// Overwrites bytes, if they are all there.
pub(super) fn write(bytes: &mut [u8], start: Option<usize>, value: &[u8]) {
    let place = start.and_then(|start| bytes.get_mut(start..)?.get_mut(..value.len()));
    if let Some(place) = place {
        place.copy_from_slice(value);
    }
}
