//! Expressions of DWARF: those that compilers for these machines write for registers that were saved.

use super::reader::Reader;

/// How a constant of four bytes begins where ptxas of toolkits 10 and 11 put the form of the block (`DW_FORM_block`) before its size.
const WITH_FORM: [u8; 3] = [9, 5, 0x0c];

/// Its bytes and its operations.
pub(super) fn expression(rest: &mut Reader<'_>) -> Option<String> {
    if rest.rest().starts_with(&WITH_FORM) {
        rest.number(1)?;
    }
    let size = rest.unsigned()?;
    let mut block = rest.split(size)?;
    let bytes: String = block.rest().iter().map(|byte| format!("{byte:2x} ")).collect();
    let mut operations = Vec::new();
    while !block.is_empty() {
        operations.push(format!("DW_OP_{}", operation(&mut block)?));
    }
    Some(format!("{size:>20} byte block: {bytes}({})", operations.join("; ")))
}

/// What an operation has behind its code.
#[derive(Clone, Copy)]
enum Operand {
    None,
    /// A number of so many bytes.
    Plain(u64),
    /// The same, with a sign.
    WithSign(u64),
    Hexadecimal(u64),
    Unsigned,
    Signed,
    Register,
    /// A register and a signed offset.
    Place,
    /// Two unsigned numbers.
    Pair,
    /// Bytes, and how many they are.
    Block,
}

/// Operations that tables of unwinding may have (DWARF 5, 6.4.2 and table 7.9), but those that are a number in themselves.
const OPERATIONS: [(u64, &str, Operand); 53] = [
    (0x03, "addr", Operand::Hexadecimal(8)),
    (0x06, "deref", Operand::None),
    (0x08, "const1u", Operand::Plain(1)),
    (0x09, "const1s", Operand::WithSign(1)),
    (0x0a, "const2u", Operand::Plain(2)),
    (0x0b, "const2s", Operand::WithSign(2)),
    // with a sign, as cuobjdump has it
    (0x0c, "const4u", Operand::WithSign(4)),
    (0x0d, "const4s", Operand::WithSign(4)),
    (0x0e, "const8u", Operand::Plain(8)),
    (0x0f, "const8s", Operand::WithSign(8)),
    (0x10, "constu", Operand::Unsigned),
    (0x11, "consts", Operand::Signed),
    (0x12, "dup", Operand::None),
    (0x13, "drop", Operand::None),
    (0x14, "over", Operand::None),
    (0x15, "pick", Operand::Plain(1)),
    (0x16, "swap", Operand::None),
    (0x17, "rot", Operand::None),
    (0x18, "xderef", Operand::None),
    (0x19, "abs", Operand::None),
    (0x1a, "and", Operand::None),
    (0x1b, "div", Operand::None),
    (0x1c, "minus", Operand::None),
    (0x1d, "mod", Operand::None),
    (0x1e, "mul", Operand::None),
    (0x1f, "neg", Operand::None),
    (0x20, "not", Operand::None),
    (0x21, "or", Operand::None),
    (0x22, "plus", Operand::None),
    (0x23, "plus_uconst", Operand::Unsigned),
    (0x24, "shl", Operand::None),
    (0x25, "shr", Operand::None),
    (0x26, "shra", Operand::None),
    (0x27, "xor", Operand::None),
    (0x28, "bra", Operand::WithSign(2)),
    (0x29, "eq", Operand::None),
    (0x2a, "ge", Operand::None),
    (0x2b, "gt", Operand::None),
    (0x2c, "le", Operand::None),
    (0x2d, "lt", Operand::None),
    (0x2e, "ne", Operand::None),
    (0x2f, "skip", Operand::WithSign(2)),
    (0x90, "regx", Operand::Register),
    (0x91, "fbreg", Operand::Signed),
    (0x92, "bregx", Operand::Place),
    (0x93, "piece", Operand::Unsigned),
    (0x94, "deref_size", Operand::Plain(1)),
    (0x95, "xderef_size", Operand::Plain(1)),
    (0x96, "nop", Operand::None),
    (0x9d, "bit_piece", Operand::Pair),
    (0x9e, "implicit_value", Operand::Block),
    (0x9f, "stack_value", Operand::None),
    (0xa3, "entry_value", Operand::Block),
];

/// An operation; one that is not known has a number alone.
fn operation(block: &mut Reader<'_>) -> Option<String> {
    let code = block.number(1)?;
    match code {
        0x30..=0x4f => return Some(format!("lit{}  ", code - 0x30)),
        0x50..=0x6f => return Some(format!("reg{}  ", code - 0x50)),
        0x70..=0x8f => return Some(format!("breg{} {}", code - 0x70, block.signed()?)),
        _ => {}
    }
    let Some((_, name, operand)) = OPERATIONS.iter().find(|(known, ..)| *known == code) else {
        return Some(format!("{code:#x}"));
    };
    let text = match *operand {
        Operand::None => return Some((*name).to_owned()),
        Operand::Plain(bytes) => block.number(bytes)?.to_string(),
        Operand::WithSign(bytes) => {
            let unused = 64u64.saturating_sub(bytes.saturating_mul(8)) as u32;
            let number = block.number(bytes)?.unbounded_shl(unused).cast_signed();
            number.unbounded_shr(unused).to_string()
        }
        Operand::Hexadecimal(bytes) => format!("{:#x}", block.number(bytes)?),
        Operand::Unsigned => block.unsigned()?.to_string(),
        Operand::Signed => block.signed()?.to_string(),
        Operand::Register => block.register()?.into_owned(),
        Operand::Place => {
            let register = block.register()?;
            format!("{register} {:#x}", block.signed()? as u32)
        }
        Operand::Pair => format!("{}, {}", block.unsigned()?, block.unsigned()?),
        Operand::Block => {
            let size = block.unsigned()?;
            let bytes = block.split(size)?;
            bytes.rest().iter().map(|byte| format!("{byte:2x} ")).collect()
        }
    };
    Some(format!("{name}: {text}"))
}
