//! The proof that no instruction refers to bytes that move.

use anyhow::{Result, bail};
use elf_core::names::{EM_AARCH64, EM_X86_64, ET_EXEC};

use super::elf::{Elf, Part};
use super::pointers::{Move, To, target};

mod aarch64;
mod x86;

/// Code that lies at `address`.
#[derive(Clone, Copy, Debug)]
struct Code<'a> {
    bytes: &'a [u8],
    address: u64,
    /// Whether the program is at fixed addresses.
    fixed: bool,
}

/// An instruction that refers to a region that moves, or may do so.
#[derive(Debug)]
struct Referring<'m> {
    address: u64,
    text: String,
    to: &'m Move,
}

/// Decodes all code of a file.
///
/// # Errors
/// Names the first instruction that refers to a region that moves; if the machine is none of those known here.
pub(super) fn check(elf: &Elf<'_>, moves: &[Move]) -> Result<()> {
    let find = match elf.header.e_machine.get() {
        EM_X86_64 => x86::find,
        EM_AARCH64 => aarch64::find,
        machine => bail!(
            "a region grows and has to move, which is known to be safe for x86-64 and AArch64, not for machine {machine}"
        ),
    };
    let fixed = elf.header.e_type == ET_EXEC;
    let parts = elf.parts()?;
    let executable = parts.iter().filter(|part| part.executable);
    for code in executable.flat_map(|part| around(part, moves, fixed)) {
        if let Some(Referring { address, text, to }) = find(code, moves) {
            bail!(
                "the instruction at {address:#x} ({text}) refers to the region at offset {:#x}, which would have to move",
                to.offset
            );
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

/// The region that an address leads to, if it moves.
fn moved(moves: &[Move], address: u64) -> Option<&Move> {
    match target(moves, address) {
        To::Elsewhere => None,
        To::Start(_, one) | To::Inside(one) => Some(one),
    }
}
