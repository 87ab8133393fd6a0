//! All symbols that a layout misses: the error has the first.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use elf_core::names::{STB_LOCAL, STB_WEAK};
use elf_core::{Arch, File, Name, SectionFlags, find};

use crate::error::{Error, ErrorKind};
use crate::plan::linker_defined::is_linker_defined;
use crate::plan::runs::key;
use crate::plan::symbols::is_of_layout;
use crate::plan::versions;

/// The undefined symbols of objects, each with the first relocation of a loaded section that asks for it, as an error: those that no object
/// defines, nor the layout itself, and that `is_missing`, which is asked once a name, says nobody else defines. At most `most` of them, and how
/// many more there are. What cannot be read is passed over: that is an error of the layout.
pub fn undefined_symbols<A: Arch>(
    files: &[File<'_>],
    most: usize,
    is_missing: &mut dyn FnMut(Name<'_>) -> bool,
) -> (Vec<Error>, usize) {
    let (mut found, mut more) = (Vec::new(), 0_usize);
    let mut known = defined(files);
    for (object, file) in files.iter().enumerate() {
        let Ok(Some(table)) = file.symbol_table() else { continue };
        let mut looked = BTreeSet::new();
        for header in file.sections() {
            let Ok(Some(relocations)) = file.relocations(&header) else { continue };
            let target = file.section(header.info);
            let is_loaded = target.is_ok_and(|one| one.flags.contains(SectionFlags::ALLOC));
            if !is_loaded {
                continue;
            }
            for record in relocations.iter() {
                if !looked.insert(record.symbol) {
                    continue;
                }
                let Ok(symbol) = table.get(record.symbol) else { continue };
                let Ok(name) = table.name_of(&symbol) else { continue };
                let is_strong = !matches!(symbol.binding(), STB_LOCAL | STB_WEAK);
                let asks = symbol.is_undefined() && is_strong && !name.is_empty();
                // asked once, whatever the answer
                if !asks || !known.insert(name) || !is_missing(name) {
                    continue;
                }
                let is_made = is_linker_defined(name) || is_of_layout(name);
                if is_made
                    || key::has_sections(name, files)
                    || versions::has_definition(name, files)
                {
                    continue;
                }
                if found.len() >= most {
                    more = more.saturating_add(1);
                    continue;
                }
                let kind = ErrorKind::Undefined {
                    symbol: record.symbol,
                    offset: record.offset,
                    r#type: record.r#type,
                    name: find(A::KINDS, record.r#type).map_or("unknown type", |kind| kind.name),
                };
                found.push(Error { object, section: header.info, kind });
            }
        }
    }
    (found, more)
}

/// The names that objects define for one another.
fn defined<'a>(files: &[File<'a>]) -> BTreeSet<Name<'a>> {
    let mut names = BTreeSet::new();
    for table in files.iter().filter_map(|file| file.symbol_table().ok().flatten()) {
        let globals = table.symbols().iter().skip(table.first_global());
        let own = globals.filter(|symbol| !symbol.is_undefined());
        names.extend(own.filter_map(|symbol| table.name_of(&symbol).ok()));
    }
    names
}
