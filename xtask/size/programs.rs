//! What is measured: the least that a program does with each of the layers.

use elf_core::{Arch, Error, File, Name};
use elf_layout::{External, Layout, Options, Storage};

use crate::harness::seen;

/// Reads an object: sections with names and bytes, symbols with names and definitions, relocations.
pub fn parse(bytes: &'static [u8]) -> Result<(), Error> {
    let file = File::parse(bytes)?;
    for section in file.sections() {
        seen(file.section_name(&section)?);
        seen(file.section_data(&section)?);
        for record in file.relocations(&section)?.into_iter().flatten() {
            seen(record);
        }
    }
    if let Some(table) = file.symbol_table()? {
        for (index, symbol) in (0..u32::MAX).zip(table.symbols()) {
            seen(table.name_of(&symbol)?);
            seen(table.section_of(index, &symbol)?);
        }
    }
    Ok(())
}

/// Reads an object, lays it out in lent storage, relocates it into lent memory and finds a function.
pub fn load<A: Arch>(
    bytes: &'static [u8],
    storage: Storage<'static, 'static>,
    externals: &'static mut dyn FnMut(Name<'_>) -> Option<External>,
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

/// Stands for a place of the caller's that lives as long as the layout.
fn lend<T: Copy>(value: T) -> &'static T {
    unsafe {
        let place = core::ptr::with_exposed_provenance_mut::<T>(seen(value) as usize);
        place.write(value);
        &*place
    }
}
