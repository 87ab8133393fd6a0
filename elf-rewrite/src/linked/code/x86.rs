//! References of x86-64: relative to the instruction pointer; at fixed addresses constants, too.

use iced_x86::{
    Decoder, DecoderOptions, Formatter as _, Instruction, IntelFormatter, OpKind, Register,
};

use super::super::moves::{Move, moved};
use super::extents::Extents;
use super::reference::{Code, Referring};

/// The first instruction that refers to a region that moves.
pub(super) fn find<'m>(
    code: Code<'_>,
    extents: &Extents,
    moves: &'m [Move],
) -> Option<Referring<'m>> {
    let end = code.address.saturating_add(code.bytes.len() as u64);
    let mut at = code.address;
    while at < end {
        if let Some(behind) = extents.data_at(at) {
            at = behind;
            continue;
        }
        // decoding starts anew with each function: what is between two may be data that nothing tells of
        let next = extents.next(at).map_or(end, |next| next.min(end));
        let part = at.checked_sub(code.address)?..next.checked_sub(code.address)?;
        let part = usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?;
        let function = Code { bytes: code.bytes.get(part)?, address: at, ..code };
        if let Some(found) = decode(function, extents, moves) {
            return Some(found);
        }
        at = next;
    }
    None
}

/// The same of code that is decoded from its start on. Behind a function there may be tables that nothing tells of: they are soon no
/// instructions, and what follows in them is none either.
fn decode<'m>(code: Code<'_>, extents: &Extents, moves: &'m [Move]) -> Option<Referring<'m>> {
    let mut decoder = Decoder::with_ip(64, code.bytes, code.address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut is_table = false;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        is_table |= instruction.is_invalid() && !extents.is_function(instruction.ip());
        let mut addresses = addresses(&instruction, code.fixed).into_iter().flatten();
        let to = addresses.find_map(|address| moved(moves, address));
        if let Some(to) = to.filter(|_| !is_table || extents.is_function(instruction.ip())) {
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
