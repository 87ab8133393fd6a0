//! Whether objects go together by their `e_flags`: ABIs of one machine that pass arguments in other registers do not.

use crate::error::{Error, ErrorKind};
use elf_core::{Arch, File, SectionFlags};

/// Compares the flags of all objects with code.
pub(crate) fn check<A: Arch>(files: &[File<'_>]) -> Result<(), Error> {
    if A::EQUAL_FLAGS.is_empty() || files.len() < 2 {
        return Ok(());
    }
    let mut first = None;
    for (number, file) in (0..usize::MAX).zip(files).filter(|(_, file)| has_code(file)) {
        let found = file.header().flags;
        let (object, expected) = *first.get_or_insert((number, found));
        for &(mask, what) in A::EQUAL_FLAGS {
            if (found ^ expected) & mask != 0 {
                let kind = ErrorKind::Flags { what, found, first: object, expected };
                return Err(Error::object(number, kind));
            }
        }
    }
    Ok(())
}

/// Whether the object has any: what made one of data alone may have left the flags as they were.
fn has_code(file: &File<'_>) -> bool {
    let is_code = |header: elf_core::SectionHeader| {
        header.size > 0 && header.flags.contains(SectionFlags::EXECINSTR)
    };
    file.sections().try_for_each(|header| if is_code(header) { Err(()) } else { Ok(()) }).is_err()
}
