//! Whether objects go together by their `e_flags` and build attributes: ABIs of one machine that pass arguments in other registers
//! do not. And what the processors can do that all of them are for.

use crate::error::{Error, ErrorKind};
use elf_core::{Arch, File, SectionFlags};

/// Compares the flags and attributes of all objects with code. Gives what the processors can do that they are for.
pub(crate) fn check<A: Arch>(files: &[File<'_>]) -> Result<u32, Error> {
    let mut processor = 0;
    if A::EQUAL_FLAGS.is_empty() && A::EQUAL_ATTRIBUTES.is_empty() {
        return Ok(processor);
    }
    let mut first = None;
    // the choices of the ABI so far, and the object that has made each last
    let (mut abi, mut owners) = (0, [0usize; u32::BITS as usize]);
    for number in 0..files.len() {
        let Some(file) = files.get(number).filter(|file| has_code(file)) else { continue };
        let found = file.header().flags;
        let (object, expected) = *first.get_or_insert((number, found));
        for &(mask, what) in A::EQUAL_FLAGS {
            if (found ^ expected) & mask != 0 {
                let kind = ErrorKind::Flags { what, found, first: object, expected };
                return Err(Error::object(number, kind));
            }
        }
        if A::EQUAL_ATTRIBUTES.is_empty() {
            continue;
        }
        let own = A::build_attributes(file).map_err(Error::elf(number, 0))?;
        processor |= own.processor;
        for (&(mask, what), owner) in A::EQUAL_ATTRIBUTES.iter().zip(&mut owners) {
            let (found, expected) = (own.abi & mask, abi & mask);
            if found == 0 || found == expected {
                continue;
            }
            if expected != 0 {
                let low = mask.trailing_zeros();
                let value = |field: u32| field.unbounded_shr(low).wrapping_sub(1);
                let [found, expected] = [found, expected].map(value);
                let kind = ErrorKind::Attributes { what, found, first: *owner, expected };
                return Err(Error::object(number, kind));
            }
            (abi, *owner) = (abi | found, number);
        }
    }
    Ok(processor)
}

/// Whether the object has any: what made one of data alone may have left the flags as they were.
fn has_code(file: &File<'_>) -> bool {
    let is_code = |header: elf_core::SectionHeader| {
        header.size > 0 && header.flags.contains(SectionFlags::EXECINSTR)
    };
    file.sections().try_for_each(|header| if is_code(header) { Err(()) } else { Ok(()) }).is_err()
}
