//! References of x86-64: relative to the instruction pointer; at fixed addresses constants, too.

use iced_x86::{
    Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, OpKind, Register,
};

use super::super::moves::{Move, moved};
use super::reference::{Code, Referring};

/// The first instruction that refers to a region that moves.
pub(super) fn find<'m>(code: Code<'_>, moves: &'m [Move]) -> Option<Referring<'m>> {
    let mut decoder = Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut addresses = addresses(&instruction, code.fixed).into_iter().flatten();
        if let Some(to) = addresses.find_map(|address| moved(moves, address)) {
            let mut text = String::new();
            IntelFormatter::new().format(&instruction, &mut text);
            return Some(Referring { address: instruction.ip(), text, to });
        }
    }
    None
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
