//! The proof that no instruction refers to bytes that move.

use elf_core::names::{EM_AARCH64, EM_X86_64, ET_EXEC};

use super::moves::Move;
use crate::elf::{Elf, Part};
use crate::error::{Error, ErrorKind, Result};
use extents::Extents;
use reference::{Code, Referring};

mod aarch64;
mod extents;
mod reference;
mod x86;

/// Decodes all code of a file.
///
/// # Errors
/// Names the first instruction that refers to a region that moves; if the machine is none of those known here.
pub(super) fn check(elf: &Elf<'_>, moves: &[Move]) -> Result<()> {
    let find = match elf.header.e_machine.get() {
        EM_X86_64 => x86::find,
        EM_AARCH64 => aarch64::find,
        machine => return Err(Error::new(0, ErrorKind::Machine(machine))),
    };
    let fixed = elf.header.e_type == ET_EXEC;
    let extents = Extents::of(elf)?;
    let parts = elf.parts()?;
    let executable = parts.iter().filter(|part| part.executable);
    for code in executable.flat_map(|part| around(part, moves, fixed)) {
        if let Some(Referring { address, text, to }) = find(code, &extents, moves) {
            return Err(Error::new(to.offset, ErrorKind::Instruction { address, text }));
        }
    }
    Ok(())
}

/// The code around regions: without section headers, all that is known is that they lie in a segment with code.
fn around<'a>(part: &Part<'a>, moves: &[Move], fixed: bool) -> Vec<Code<'a>> {
    let mut code = Code { bytes: part.bytes, address: part.address, fixed };
    let mut all = Vec::new();
    for one in moves {
        let split = |at: u64| {
            let (before, behind) = code
                .bytes
                .split_at_checked(usize::try_from(at.checked_sub(code.address)?).ok()?)?;
            Some((Code { bytes: before, ..code }, Code { bytes: behind, address: at, ..code }))
        };
        if let Some((before, _)) = split(one.old)
            && let Some((_, behind)) = split(one.old.saturating_add(one.size))
        {
            all.push(before);
            code = behind;
        }
    }
    all.push(code);
    all
}
