//! Expressions of DWARF: those that compilers for these machines write for registers that were saved.

use super::reader::Reader;

/// Its bytes and its operations.
pub(super) fn expression(rest: &mut Reader<'_>) -> Option<String> {
    let size = rest.unsigned()?;
    let mut block = rest.split(size)?;
    let bytes: String = block.rest().iter().map(|byte| format!("{byte:2x} ")).collect();
    let mut operations = Vec::new();
    while !block.is_empty() {
        operations.push(format!("DW_OP_{}", operation(&mut block)?));
    }
    Some(format!("{size:>20} byte block: {bytes}({})", operations.join("; ")))
}

/// An operation (DWARF 5, table 7.9).
fn operation(block: &mut Reader<'_>) -> Option<String> {
    let code = block.number(1)?;
    Some(match code {
        0x03 => format!("addr: {:#x}", block.number(8)?),
        0x06 => "deref".to_owned(),
        0x22 => "plus".to_owned(),
        0x23 => format!("plus_uconst: {}", block.unsigned()?),
        0x30..=0x4f => format!("lit{}  ", code - 0x30),
        0x50..=0x6f => format!("reg{}  ", code - 0x50),
        0x70..=0x8f => format!("breg{} {}", code - 0x70, block.signed()?),
        0x92 => {
            let register = block.register()?;
            format!("bregx: {register} {:#x}", block.signed()? as u32)
        }
        0x93 => format!("piece: {}", block.unsigned()?),
        0x96 => "nop".to_owned(),
        code => format!("{code:#x}"),
    })
}
