//! Attributes (`.riscv.attributes`; RISC-V psABI, "Attributes"): what an object has chosen that others must have chosen, too. What the
//! processors can do is no matter: nothing here depends on it, but on what code has `x3` for.

use elf_core::names::SHT_RISCV_ATTRIBUTES;
use elf_core::{BuildAttributeForm, BuildAttributes, Error, File, build_attributes};

/// Each field has a number and 1.
pub(crate) const EQUAL: &[(u32, &str)] = &[
    (STACK, "the alignment of the stack (Tag_RISCV_stack_align)"),
    (ATOMICS, "the ABI of atomic operations (Tag_RISCV_atomic_abi)"),
    (X3, "the use of x3 (Tag_RISCV_x3_reg_usage)"),
];

const STACK: u32 = 0xfff;
const ATOMICS: u32 = 0xf000;
const X3: u32 = 0xfff_0000;

const TAG_STACK_ALIGN: u32 = 4;
const TAG_ATOMIC_ABI: u32 = 14;
const TAG_X3_REG_USAGE: u32 = 16;

/// [`BuildAttributes::processor`]: x3 is the pointer of a shadow stack or another thing than the global pointer.
pub(crate) const OTHER_X3: u32 = 1;

/// `Tag_RISCV_x3_reg_usage`: the global pointer.
const GLOBAL_POINTER: u32 = 1;

/// `Tag_RISCV_atomic_abi`: the stronger operations of A6, which go together with those of either other ABI.
const A6S: u32 = 2;

/// What the attributes of `file` say.
pub(crate) fn of(file: &File<'_>) -> Result<BuildAttributes, Error> {
    let mut attributes = BuildAttributes::default();
    build_attributes(file, SHT_RISCV_ATTRIBUTES, b"riscv", form, |tag, value| {
        attributes.abi |= field(tag, value);
        if tag == TAG_X3_REG_USAGE && value > GLOBAL_POINTER {
            attributes.processor |= OTHER_X3;
        }
    })?;
    Ok(attributes)
}

const fn form(tag: u32) -> BuildAttributeForm {
    if tag & 1 == 0 { BuildAttributeForm::Number } else { BuildAttributeForm::Text }
}

/// The field of a tag; 0 of what goes together with everything.
fn field(tag: u32, value: u32) -> u32 {
    // 0 is unknown
    let one = match (tag, value) {
        (_, 0) => return 0,
        (TAG_STACK_ALIGN, _) => (STACK, 0),
        (TAG_ATOMIC_ABI, A6S) => return 0,
        (TAG_ATOMIC_ABI, _) => (ATOMICS, 12),
        (TAG_X3_REG_USAGE, _) => (X3, 16),
        _ => return 0,
    };
    let (mask, low): (u32, u32) = one;
    value.saturating_add(1).min(mask.unbounded_shr(low)).unbounded_shl(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices() {
        assert_eq!(field(TAG_STACK_ALIGN, 16), 17);
        assert_eq!(field(TAG_STACK_ALIGN, u32::MAX), STACK);
        for fits_all in [(TAG_ATOMIC_ABI, 0), (TAG_ATOMIC_ABI, A6S), (TAG_X3_REG_USAGE, 0), (6, 1)]
        {
            assert_eq!(field(fits_all.0, fits_all.1), 0, "{fits_all:?}");
        }
        assert_eq!(field(TAG_ATOMIC_ABI, 1), 2 << 12);
        assert_eq!(field(TAG_ATOMIC_ABI, 3), 4 << 12);
        assert_eq!(field(TAG_X3_REG_USAGE, 2), 3 << 16);
        assert_eq!(field(TAG_X3_REG_USAGE, 2047), 2048 << 16);
    }
}
