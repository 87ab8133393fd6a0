//! Whether the attributes of a function still fit its code after the code was changed.

use crate::attribute::Attribute;
use crate::error::Error;
use crate::function::Function;
use crate::instruction::Instructions;
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
    /// The instruction is of the same opcode, but not what the attribute is about or says of it: it reads another special register
    /// than the block's index, does something else with a barrier, has other operands or another size.
    Operands {
        /// The instruction.
        opcode: u16,
    },
    /// An instruction that the attribute listed all of in the old code, and does not list here.
    Unlisted {
        /// The instruction.
        opcode: u16,
    },
}

impl Function<'_> {
    /// Calls `found` with every offset of the attributes that does not fit `code`, which is to take the place of the function's
    /// own code. An attribute's offsets should be those of instructions of the same kind as before: of the same opcode, whatever
    /// the form of its operands; and what a record says beside the offset should still be so.
    ///
    /// # Errors
    /// [`ErrorKind::Elf`](crate::ErrorKind::Elf), `Truncated` or `UnknownFormat` if the file is damaged.
    pub fn check_code(&self, code: &[u8], mut found: impl FnMut(Suspect)) -> Result<(), Error> {
        let Some(sm) = self.cubin().target().sm else { return Ok(()) };
        // offsets count from the section's start, a subroutine's too
        let old = self.cubin().file().section_data(self.section_header())?;
        for row in self.attributes()? {
            let check = Check { form: Instructions::of(sm), row: row?, old, code };
            for offset in check.listed() {
                if let Some(fault) = check.fault(offset) {
                    found(Suspect { attribute: check.row.number, offset, fault });
                }
            }
            check.unlisted(&mut found);
        }
        Ok(())
    }
}

/// An attribute, and the code before and after.
struct Check<'a> {
    form: Instructions,
    row: Attribute<'a>,
    old: &'a [u8],
    code: &'a [u8],
}

impl<'a> Check<'a> {
    /// The offsets of instructions that the attribute is about: not those that a branch may go to.
    fn listed(&self) -> impl Iterator<Item = u32> + use<'a> {
        let (branches, others) = match self.row.payload() {
            Payload::Branches(branches) => (Some(branches), None),
            other => (None, Some(other)),
        };
        let branches = branches.into_iter().flatten().map(|branch| branch.offset);
        branches.chain(others.into_iter().flat_map(Payload::code_offsets))
    }

    fn fault(&self, offset: u32) -> Option<Fault> {
        let form = self.form;
        if !form.holds(offset) {
            return Some(Fault::Misaligned);
        }
        let Some(is) = form.word(self.code, offset) else { return Some(Fault::Outside) };
        let was = form.word(self.old, offset)?;
        let attribute = self.row.number;
        let same_kind = form.kind(attribute, was) == form.kind(attribute, is);
        if same_kind && form.operands(attribute, was) == form.operands(attribute, is) {
            return None;
        }
        let (was, is) = (form.opcode_of(was), form.opcode_of(is));
        Some(if same_kind || was == is {
            Fault::Operands { opcode: is }
        } else {
            Fault::Changed { was, is }
        })
    }

    /// Finds instructions that are new at their place and of a kind that the attribute lists all of.
    fn unlisted(&self, found: &mut impl FnMut(Suspect)) {
        let (form, attribute) = (self.form, self.row.number);
        if self.listed().next().is_none() {
            return;
        }
        let kind = |code: &[u8], offset| Some(form.kind(attribute, form.word(code, offset)?));
        let places = |code: &[u8]| {
            let end = u32::try_from(code.len()).unwrap_or(u32::MAX);
            (0..end)
                .step_by(16)
                .flat_map(|at| [at, at.saturating_add(8)])
                .filter(move |&at| form.holds(at) && at < end)
        };
        for offset in places(self.code) {
            let Some(is) = kind(self.code, offset) else { return };
            if kind(self.old, offset) == Some(is) || self.listed().any(|listed| listed == offset) {
                continue;
            }
            let same = |offset: &u32| kind(self.old, *offset) == Some(is);
            let listed = |offset| self.listed().any(|listed| listed == offset);
            if self.listed().any(|listed| same(&listed))
                && places(self.old).filter(same).all(listed)
            {
                let opcode = form.opcode(self.code, offset).unwrap_or_default();
                let fault = Fault::Unlisted { opcode };
                found(Suspect { attribute, offset, fault });
            }
        }
    }
}
