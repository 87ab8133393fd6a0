//! The proof that no instruction refers to bytes that move.

use anyhow::{Result, bail};
use elf_core::SectionFlags;
use elf_core::names::{ET_EXEC, SHT_NOBITS};
use iced_x86::{
    Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, OpKind, Register,
};

use super::elf::Elf;
use super::pointers::{Move, To, target};

/// Decodes all code of an x86-64 file.
///
/// # Errors
/// Names the first instruction that refers to a region that moves.
pub(super) fn check(elf: &Elf<'_>, moves: &[Move]) -> Result<()> {
    let fixed = elf.header.e_type == ET_EXEC;
    for section in elf.file.sections() {
        if !section.flags.contains(SectionFlags::EXECINSTR) || section.r#type == SHT_NOBITS {
            continue;
        }
        let bytes = elf.file.section_data(&section)?;
        let mut decoder = Decoder::with_ip(64, bytes, section.address, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let found =
                addresses(&instruction, fixed).into_iter().flatten().find_map(
                    |address| match target(moves, address) {
                        To::Elsewhere => None,
                        To::Start(_, one) | To::Inside(one) => Some(one),
                    },
                );
            if let Some(one) = found {
                let mut text = String::new();
                IntelFormatter::new().format(&instruction, &mut text);
                bail!(
                    "the instruction at {:#x} ({text}) refers to the region at offset {:#x}, which would have to move",
                    instruction.ip(),
                    one.offset
                );
            }
        }
    }
    Ok(())
}

/// What an instruction may refer to: an address relative to itself; in a program at fixed addresses also a constant.
fn addresses(instruction: &Instruction, fixed: bool) -> [Option<u64>; 3] {
    let relative =
        instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address());
    if !fixed {
        return [relative, None, None];
    }
    let kinds = 0..instruction.op_count();
    let immediate = kinds.clone().find_map(|operand| match instruction.op_kind(operand) {
        OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64 => {
            Some(instruction.immediate(operand))
        }
        _ => None,
    });
    let absolute = kinds.into_iter().any(|operand| instruction.op_kind(operand) == OpKind::Memory)
        && instruction.memory_base() != Register::RIP;
    let displacement = absolute.then(|| instruction.memory_displacement64());
    [relative, immediate, displacement]
}
