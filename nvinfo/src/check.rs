//! Whether the attributes of a function still fit its code after the code was changed.

use crate::attribute::Attribute;
use crate::error::Error;
use crate::function::Function;
use crate::payload::Payload;

/// An offset in the code that does not fit the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Number of the attribute.
    pub attribute: u8,
    /// The offset in bytes.
    pub offset: u32,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with an offset in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// It is behind the end of the code.
    Outside,
    /// It is not that of an instruction.
    Misaligned,
    /// Another instruction is there now. The numbers are those of [`Instructions::opcode`].
    Changed {
        /// The instruction that was there.
        was: u16,
        /// The one that is there.
        is: u16,
    },
    /// An instruction that the attribute listed all of in the old code, and does not list here.
    Unlisted {
        /// The instruction.
        opcode: u16,
    },
}

/// How an architecture's instructions stand in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// `sm_35`, `sm_37`: 8 bytes, the first of eight words holds no instruction.
    Kepler,
    /// `sm_50` to `sm_62`: 8 bytes, the first of four words holds no instruction.
    Maxwell,
    /// From `sm_70` on: 16 bytes.
    Volta,
}

impl Instructions {
    /// Those of this architecture.
    #[must_use]
    pub const fn of(sm: u32) -> Self {
        match sm {
            0..50 => Self::Kepler,
            50..70 => Self::Maxwell,
            _ => Self::Volta,
        }
    }

    /// Bytes of an instruction.
    #[must_use]
    pub const fn size(self) -> u32 {
        match self {
            Self::Kepler | Self::Maxwell => 8,
            Self::Volta => 16,
        }
    }

    /// Whether an instruction can be at this offset.
    #[must_use]
    pub const fn holds(self, offset: u32) -> bool {
        match self {
            Self::Kepler => offset.is_multiple_of(8) && !offset.is_multiple_of(64),
            Self::Maxwell => offset.is_multiple_of(8) && !offset.is_multiple_of(32),
            Self::Volta => offset.is_multiple_of(16),
        }
    }

    /// The bits of the instruction at `offset` that say what it does, without its operands and its predicate.
    #[must_use]
    pub fn opcode(self, code: &[u8], offset: u32) -> Option<u16> {
        let rest = code.get(usize::try_from(offset).ok()?..)?;
        let word = u64::from_le_bytes(*rest.first_chunk()?);
        Some(match self {
            Self::Kepler => ((word >> 55) << 2 | word & 3) as u16,
            Self::Maxwell => (word >> 52) as u16,
            Self::Volta => (word & 0xfff) as u16,
        })
    }
}

impl Function<'_> {
    /// Calls `found` with every offset of the attributes that does not fit `code`, which is to take the place of the function's
    /// own code. An attribute's offsets should be those of instructions of the same opcode as before.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`](crate::ErrorKind::Elf), `Truncated` or `UnknownFormat` if the file is damaged.
    pub fn check_code(&self, code: &[u8], mut found: impl FnMut(Suspect)) -> Result<(), Error> {
        let Some(sm) = self.cubin().target().sm else { return Ok(()) };
        let form = Instructions::of(sm);
        // offsets count from the section's start, a subroutine's too
        let old = self.cubin().file().section_data(self.section_header())?;
        for row in self.attributes()? {
            let row = row?;
            let attribute = row.number;
            for offset in instructions(&row) {
                let fault = fault_at(form, old, code, offset);
                fault.into_iter().for_each(|fault| found(Suspect { attribute, offset, fault }));
            }
            unlisted(form, &row, old, code, &mut found);
        }
        Ok(())
    }
}

/// The offsets of instructions that `row` is about: not those that a branch may go to.
fn instructions<'a>(row: &Attribute<'a>) -> impl Iterator<Item = u32> + use<'a> {
    let (branches, others) = match row.payload() {
        Payload::Branches(branches) => (Some(branches), None),
        other => (None, Some(other)),
    };
    let branches = branches.into_iter().flatten().map(|branch| branch.offset);
    branches.chain(others.into_iter().flat_map(Payload::code_offsets))
}

fn fault_at(form: Instructions, old: &[u8], code: &[u8], offset: u32) -> Option<Fault> {
    if !form.holds(offset) {
        return Some(Fault::Misaligned);
    }
    let Some(is) = form.opcode(code, offset) else { return Some(Fault::Outside) };
    match form.opcode(old, offset) {
        Some(was) if was != is => Some(Fault::Changed { was, is }),
        _ => None,
    }
}

/// Finds instructions that are new at their place and of a kind that `row` lists all of.
fn unlisted(
    form: Instructions,
    row: &Attribute<'_>,
    old: &[u8],
    code: &[u8],
    found: &mut impl FnMut(Suspect),
) {
    let listed = |offset| instructions(row).any(|listed| listed == offset);
    let places = |code: &[u8]| {
        let end = u32::try_from(code.len()).unwrap_or(u32::MAX);
        (0..end)
            .step_by(16)
            .flat_map(|at| [at, at.saturating_add(8)])
            .filter(move |&at| form.holds(at) && at < end)
    };
    for offset in places(code) {
        let (Some(is), was) = (form.opcode(code, offset), form.opcode(old, offset)) else { return };
        if Some(is) == was || listed(offset) {
            continue;
        }
        let same = |offset: u32| form.opcode(old, offset) == Some(is);
        let any = instructions(row).any(same);
        if any && places(old).filter(|&offset| same(offset)).all(listed) {
            let fault = Fault::Unlisted { opcode: is };
            found(Suspect { attribute: row.number, offset, fault });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_by_architecture() {
        assert!(!Instructions::of(35).holds(64) && Instructions::of(35).holds(8));
        assert!(!Instructions::of(61).holds(32) && Instructions::of(61).holds(64 + 24));
        assert!(!Instructions::of(80).holds(8) && Instructions::of(80).holds(16));
        let exit = [0x4d, 0x79, 0, 0, 0, 0, 0, 0];
        assert_eq!(Instructions::Volta.opcode(&exit, 0), Some(0x94d));
        assert_eq!(Instructions::Volta.opcode(&exit, 8), None);
    }
}
