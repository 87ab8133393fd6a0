//! Branches: what a target's state makes of an instruction (AAELF32, "Call and Jump relocations").
//!
//! Bit 0 of a value is T: of a function as its symbol says, of an address of the caller's as it is. A target that is known to be a
//! function and has no T is Arm code. Of a label nobody knows, and the instruction stays what it is; so does one on M-profile, which has no
//! other state.

use crate::attributes::{J1J2, MICROCONTROLLER, SHORT_BRANCHES};
use crate::field::{exchange_j, is_blx, is_signed};
use elf_core::{SymbolAttributes, Unencodable};

const BL: u64 = 0xeb00_0000;
const BLX: u64 = 0xfa00_0000;
const IMM24: u64 = 0x00ff_ffff;

/// Whether an instruction in such a state goes to Thumb code.
const fn goes_to_thumb(value: i64, target: SymbolAttributes, stays: bool) -> bool {
    value & 1 != 0 || (stays && !target.is_function)
}

/// BL and BLX of Arm code, one for the other.
pub(crate) const fn a32_call(
    word: u64,
    value: i64,
    target: SymbolAttributes,
) -> Result<u64, Unencodable> {
    if goes_to_thumb(value, target, is_blx(word)) {
        // an instruction with a condition has no counterpart
        if !is_blx(word) && word >> 28 != 0xe {
            return Err(Unencodable::Instruction);
        }
        let half = (value & 2).cast_unsigned() << 23;
        return Ok(BLX | half | word & IMM24);
    }
    if value & 2 != 0 {
        return Err(Unencodable::Value);
    }
    Ok(if is_blx(word) { BL | word & IMM24 } else { word })
}

/// B, and BL with a condition: they stay in Arm code.
pub(crate) const fn a32_jump(
    word: u64,
    value: i64,
    _: SymbolAttributes,
) -> Result<u64, Unencodable> {
    match value & 3 {
        0 => Ok(word),
        2 => Err(Unencodable::Value),
        _ => Err(Unencodable::Instruction),
    }
}

/// Either, as the instruction says.
pub(crate) const fn a32_any(
    word: u64,
    value: i64,
    target: SymbolAttributes,
) -> Result<u64, Unencodable> {
    if is_blx(word) || word & 0xff00_0000 == BL {
        a32_call(word, value, target)
    } else {
        a32_jump(word, value, target)
    }
}

/// Whether the processors know of the bits that BL and BLX have had since Armv6T2: to those before it would be another instruction.
const fn spans(value: i64, target: SymbolAttributes) -> bool {
    target.processor & (J1J2 | SHORT_BRANCHES) != SHORT_BRANCHES || is_signed(value, 23)
}

/// The same of Thumb code.
const fn stays_in_thumb(value: i64, target: SymbolAttributes, stays: bool) -> bool {
    target.processor & MICROCONTROLLER != 0 || goes_to_thumb(value, target, stays)
}

/// Set in BL, not in BLX.
const T32_BL: u64 = 0x1000;

/// BL and BLX of Thumb code, one for the other.
pub(crate) const fn t32_call(
    word: u64,
    value: i64,
    target: SymbolAttributes,
) -> Result<u64, Unencodable> {
    if !spans(value, target) {
        return Err(Unencodable::Value);
    }
    if stays_in_thumb(value, target, word & T32_BL != 0) {
        return Ok(exchange_j(word) | T32_BL);
    }
    // BLX counts from the multiple of 4 at or before its own base
    let value = value.wrapping_add(3) & !3;
    if !is_signed(value, 25) || !spans(value, target) {
        return Err(Unencodable::Value);
    }
    let value = value.cast_unsigned();
    let parts = value >> 1 & 0x7ff
        | (value >> 22 & 1) << 11
        | (value >> 23 & 1) << 13
        | (value >> 12 & 0x3ff) << 16
        | (value >> 24 & 1) << 26;
    Ok(exchange_j(word & !(0x07ff_2fff | T32_BL) | parts))
}

/// B.W: it stays in Thumb code.
pub(crate) const fn t32_jump(
    word: u64,
    value: i64,
    target: SymbolAttributes,
) -> Result<u64, Unencodable> {
    match thumb_jump(word, value, target) {
        Ok(word) => Ok(exchange_j(word)),
        error => error,
    }
}

/// The other branches of Thumb code, which stay there.
pub(crate) const fn thumb_jump(
    word: u64,
    value: i64,
    target: SymbolAttributes,
) -> Result<u64, Unencodable> {
    if stays_in_thumb(value, target, true) || target.is_thumb {
        Ok(word)
    } else {
        Err(Unencodable::Instruction)
    }
}
