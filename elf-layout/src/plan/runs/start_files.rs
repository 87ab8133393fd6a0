//! The start files of a program (`crti.o`, `crtbegin.o`, `crtend.o`, `crtn.o`): the first begin sections that those of all other objects go on
//! with, and the last end them. `_init` is what all have in `.init`, one behind the other (gABI ch. 5, "Initialization and Termination
//! Functions"); who registers unwinding tables starts at the symbol that stands for an empty `.eh_frame`.
//!
//! Without them, each of these sections is ended by itself.

use crate::model::features::START_FILES;
use crate::model::options::Options;
use crate::plan::runs::key::{FRAMES, Gathers};
use elf_core::{Definition, File, SectionFlags};

const CODE: SectionFlags = SectionFlags::ALLOC.union(SectionFlags::EXECINSTR);

/// What stands together from the start: parts, if `files` are all of an executable and have start files.
pub(crate) fn gathers(files: &[File<'_>], options: &Options) -> Gathers {
    let has_them = START_FILES && options.executable && files.iter().any(is_one);
    if has_them { Gathers::Parts } else { Gathers::Nothing }
}

/// Whether an object begins one of these sections.
fn is_one(file: &File<'_>) -> bool {
    (0..u32::MAX).zip(file.sections()).any(|(index, header)| {
        let Ok(name) = file.section_name(&header) else { return false };
        match name.as_bytes() {
            b".init" | b".fini" => header.flags.contains(CODE) && begins_function(file, index),
            name => {
                name == FRAMES && header.size == 0 && header.flags.contains(SectionFlags::ALLOC)
            }
        }
    })
}

/// Whether `_init` or `_fini` is in a section.
fn begins_function(file: &File<'_>, section: u32) -> bool {
    let Ok(Some(table)) = file.symbol_table() else { return false };
    let mut symbols = (0..u32::MAX).zip(table.symbols()).skip(table.first_global());
    symbols.any(|(index, symbol)| {
        table.section_of(index, &symbol) == Ok(Definition::Section(section))
            && table.name_of(&symbol).is_ok_and(|name| name == "_init" || name == "_fini")
    })
}
