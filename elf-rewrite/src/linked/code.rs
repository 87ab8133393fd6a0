//! The proof that no instruction refers to bytes that move.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

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

/// All code of a file. What is known before it is decoded is found once, however many layouts are tried.
#[derive(Debug)]
pub(super) struct Checker<'e, 'a> {
    elf: &'e Elf<'a>,
    known: OnceCell<Known<'a>>,
    /// Why regions cannot move, by their offsets and sizes.
    refused: RefCell<HashMap<(u64, u64), Error>>,
}

/// What is known of code.
#[derive(Debug)]
struct Known<'a> {
    extents: Extents,
    parts: Vec<Part<'a>>,
}

impl<'e, 'a> Checker<'e, 'a> {
    pub(super) fn new(elf: &'e Elf<'a>) -> Self {
        Self { elf, known: OnceCell::new(), refused: RefCell::default() }
    }

    /// Decodes all code, unless a region that moves was referred to before.
    ///
    /// # Errors
    /// Names an instruction that refers to a region that moves; if the machine is none of those known here.
    pub(super) fn check(&self, moves: &[Move]) -> Result<()> {
        let find = match self.elf.header.e_machine.get() {
            EM_X86_64 => x86::find,
            EM_AARCH64 => aarch64::find,
            machine => return Err(Error::new(0, ErrorKind::Machine(machine))),
        };
        let refused = self.refused.borrow();
        if let Some(error) = moves.iter().find_map(|one| refused.get(&(one.offset, one.size))) {
            return Err(error.clone());
        }
        drop(refused);
        let fixed = self.elf.header.e_type == ET_EXEC;
        let Known { extents, parts } = self.known()?;
        for code in parts.iter().flat_map(|part| around(part, moves, fixed)) {
            if let Some(Referring { address, text, to }) = find(code, extents, moves) {
                let error = Error::new(to.offset, ErrorKind::Instruction { address, text });
                self.refused.borrow_mut().insert((to.offset, to.size), error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    fn known(&self) -> Result<&Known<'a>> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let mut parts = self.elf.parts()?;
        parts.retain(|part| part.executable);
        let extents = Extents::of(self.elf)?;
        Ok(self.known.get_or_init(|| Known { extents, parts }))
    }
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
