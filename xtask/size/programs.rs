//! What is measured: the least that a program does with each of the layers.

use elf_core::names::{SHT_RELA, SHT_SYMTAB};
use elf_core::{Arch, ClassFile, Elf64, Error, File, Name, Record, SectionHeader, Symbol};
use zerocopy::LE;
use elf_layout::{ExternalSymbol, Layout, Options, Storage};

use elf_image::{AddressKind, Image};

use crate::harness::seen;

/// Reads an object: sections with names and bytes, symbols with names and definitions, relocations.
pub fn parse(bytes: &'static [u8]) -> Option<()> {
    let file = File::parse(bytes).ok()?;
    for section in file.sections() {
        seen(file.section_name(&section).ok()?);
        seen(file.section_data(&section).ok()?);
        if let Some(relocations) = file.relocations(&section).ok()? {
            for record in relocations {
                seen(record);
            }
        }
    }
    if let Some(table) = file.symbol_table().ok()? {
        for (index, symbol) in (0..u32::MAX).zip(table.symbols()) {
            seen(table.name_of(&symbol).ok()?);
            seen(table.section_of(index, &symbol).ok()?);
        }
    }
    Some(())
}

/// The same, of one class only and with the forms of relocations that its objects have: what firmware needs to look into one.
pub fn parse_class(bytes: &'static [u8]) -> Result<(), Error> {
    let file = ClassFile::<Elf64<LE>>::parse(bytes)?;
    let names = file.section_names()?;
    for row in file.sections() {
        let section = SectionHeader::from(*row);
        seen(names.get(section.name)?);
        match section.r#type {
            SHT_RELA => file.rela(&section)?.iter().for_each(|row| {
                seen(Record::from(*row));
            }),
            SHT_SYMTAB => {
                let names = file.string_table(section.link, "sh_link")?;
                for row in file.symbols(&section)? {
                    let symbol = Symbol::from(*row);
                    seen(names.get(symbol.name)?);
                    seen(symbol);
                }
            }
            _ => {
                seen(file.section_data(&section)?);
            }
        }
    }
    Ok(())
}

/// Reads an object, lays it out in lent storage, relocates it into lent memory and finds a function.
pub fn load<A: Arch>(
    bytes: &'static [u8],
    storage: Storage<'static, 'static>,
    externals: &'static mut dyn FnMut(Name<'_>) -> Option<ExternalSymbol>,
    image: &'static mut [u8],
    base: u64,
    function: Name<'static>,
) -> Option<u64> {
    let files: &'static [File<'static>; 1] = lend([File::parse(bytes).ok()?]);
    let layout = Layout::<A>::plan(files, Options::default(), storage, externals).ok()?;
    layout.write(image, base).ok()?;
    let (object, symbol) = layout.find(function)?;
    Some(layout.symbol(object, symbol)?.at(base))
}

/// Reads an executable, copies it to lent memory and applies its relative relocations: what a boot loader does.
pub fn boot<A: Arch>(bytes: &'static [u8], memory: &'static mut [u8], base: u64) -> Option<u64> {
    let image = Image::parse(File::parse_segments(bytes).ok()?, AddressKind::Virtual).ok()?;
    image.write(memory).ok()?;
    image.relocate_relative::<A>(memory, base).ok()?;
    image.entry(base)
}

/// The same with all relocations, for what the file defines itself.
pub fn boot_all<A: Arch>(bytes: &'static [u8], memory: &'static mut [u8], base: u64) -> Option<u64> {
    let image = Image::parse(File::parse_segments(bytes).ok()?, AddressKind::Virtual).ok()?;
    image.write(memory).ok()?;
    image.relocate::<A>(memory, base, &image.own_symbols::<A>(base).ok()?).ok()?;
    image.entry(base)
}

/// Stands for a place of the caller's that lives as long as the layout.
fn lend<T: Copy>(value: T) -> &'static T {
    unsafe {
        let place = core::ptr::with_exposed_provenance_mut::<T>(seen(value) as usize);
        place.write(value);
        &*place
    }
}
